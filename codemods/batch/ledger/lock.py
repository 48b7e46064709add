"""One owner of a campaign at a time: a lock of the operating system, which goes with the process that holds it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from codemods.batch.errors import CampaignError, Exhausted, is_full
from codemods.source.errors import os_reason

FILE = "lock"
#: Who only asks for the owner holds the lock for a moment, and is no reason to refuse.
_ATTEMPTS, _PAUSE = 4, 0.05


@contextlib.contextmanager
def owned(work: Path) -> Iterator[None]:
    """Own the campaign in ``work``, which is made. Raises :class:`CampaignError` naming who owns it already."""
    if sys.platform == "win32":
        raise CampaignError("campaigns run on Linux and macOS; use WSL")
    import fcntl

    try:
        work.mkdir(parents=True, exist_ok=True)
        file = open(work / FILE, "a+", encoding="utf-8")  # noqa: SIM115  closed below
    except OSError as error:
        if is_full(error):
            raise Exhausted(f"{work}: no space left on the device") from None
        raise CampaignError(f"{work}: {os_reason(error)}") from None
    with file:
        try:
            for attempt in range(_ATTEMPTS):
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if attempt == _ATTEMPTS - 1:
                        raise CampaignError(f"the campaign is at work already: {_owner(work)}") from None
                    time.sleep(_PAUSE)
        except OSError as error:
            raise CampaignError(f"{work / FILE} cannot be locked: {error.strerror}") from None
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        # Only for people: who holds the lock is the system's to say.
        with contextlib.suppress(OSError):
            file.truncate(0)
            file.write(json.dumps(owner) + "\n")
            file.flush()
        yield


def owner(work: Path) -> str:
    """Who is at work on the campaign in ``work``, for people; empty if nobody is."""
    if sys.platform == "win32":
        return ""
    import fcntl

    try:
        with open(work / FILE, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(work)
    except OSError:
        return ""
    return ""


def _owner(work: Path) -> str:
    try:
        owner = json.loads((work / FILE).read_text(encoding="utf-8"))
        return f"process {owner['pid']} on {owner['host']}, since {owner['since']}"
    except (OSError, ValueError, KeyError):
        return "its owner has not said who it is"
