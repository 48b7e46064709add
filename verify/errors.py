"""What can go wrong with a verification; each text is the one sentence that says what."""

from __future__ import annotations

from codemods.terms.errors import UserError


class VerifyError(UserError):
    """Something the user has to put right: a script that does not exist, an option that makes no sense."""


class OutOfTime(Exception):
    """It is too late to begin another run: ``within`` seconds are over."""

    def __init__(self, within: float) -> None:
        super().__init__(f"the {within:g} s for all runs were over; --within gives more time")
