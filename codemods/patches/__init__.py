"""Patches that survive drift: what a reviewer accepted, recorded so that it can be fitted to files that changed since.

``bundle`` writes and reads the record, ``parsing`` any unified diff, ``placing`` and ``fuzzy`` find where a hunk
belongs now, ``fitting`` holds what they find to the checks that every edit is held to.
"""
