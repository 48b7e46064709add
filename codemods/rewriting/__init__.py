"""From findings to new texts: edits tried and proven round by round, and written."""
