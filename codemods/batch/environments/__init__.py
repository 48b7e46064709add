"""The interpreter that a repository is run with, and what it requires."""
