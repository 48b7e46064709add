"""What can go wrong with a campaign, and with one repository of it."""

from __future__ import annotations

import errno
import os

from codemods.terms.errors import UserError


class CampaignError(UserError):
    """Something the user has to put right before a campaign can go on; the text is the one sentence that says what."""


class Refused(Exception):
    """A repository that is not dealt with on purpose; the text says why. Trying again will not change it."""


class Failed(Exception):
    """A stage of a repository that did not come to its end; the text says why. It may when tried again."""


class Exhausted(Exception):
    """This machine has run out of something (disk): no repository's fault, so the campaign stops and goes on later."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
#: What programs say of these; the C library's words, in the locale that they are started in.
_FULL_TEXTS = (*(os.strerror(number).lower() for number in _FULL), "out of diskspace", "database or disk is full")


def is_full(error: BaseException | str) -> bool:
    """Whether an error, or a program's message about one, means a full disk or a spent quota."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    text = str(error).lower()
    return any(full in text for full in _FULL_TEXTS)
