"""What a person has to put right, as an exception that every part of both halves can raise."""

from __future__ import annotations


class UserError(Exception):
    """Something the user has to put right; its text is the one sentence that says what.

    The command line prints the sentence and ends with status 2. Subclasses are for callers from Python.
    """
