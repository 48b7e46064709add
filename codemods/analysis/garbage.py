"""What the garbage collector need not look through between two runs: syntax trees and modules, which stay."""

from __future__ import annotations

import gc

#: Python 3.12 starts with some hundreds of frozen objects; whoever has more has frozen them.
_AT_START = 10_000

_frozen = False


def freeze() -> None:
    """Leave the objects of now alone until :func:`unfreeze`; does nothing where our host has frozen some."""
    global _frozen
    if _frozen or gc.get_freeze_count() < _AT_START:
        gc.freeze()
        _frozen = True


def unfreeze() -> None:
    """Look through everything again. What the host froze stays so: Python cannot tell it from what we froze."""
    global _frozen
    if _frozen:
        gc.unfreeze()
        _frozen = False
