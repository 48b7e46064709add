"""What can go wrong with a verification before anything was run; each text is the one sentence that says what."""

from __future__ import annotations

from codemods.terms.errors import UserError


class VerifyError(UserError):
    """Something the user has to put right: a script that does not exist, an option that makes no sense."""
