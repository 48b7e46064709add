"""Calls that are made though the script does not come to them, and calls that are left out."""
