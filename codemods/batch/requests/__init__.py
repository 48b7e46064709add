"""Branches to their remotes, and pull requests from the first push to the merge."""
