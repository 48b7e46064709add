"""Promises held against runs: errors, growth, endings, and which rewrite is to blame."""
