"""What a probed process wrote down is read back, and held against what only the probe would have written."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from codemods.source.secrets import Secrets
from verify.measured.events import Reading
from verify.measured.records import Record

_NO_SECRETS = Secrets(())


#: The bytes of a record at most, and the records of a run: more are none of the probe's.
_LARGEST, _MOST = 1 << 29, 4096
_CUT, _FOREIGN = "lines of its record are missing", "its record has lines that the probe did not write"


def read_records(folder: Path, secrets: Secrets = _NO_SECRETS) -> list[Record]:
    """Read all records in ``folder``, less ``secrets``: the main process first, then by the process's name, and
    in the order in which they were started.

    The program could write there, too: no link is followed, nothing is waited for, and what the probe did not write is
    told (``tampered``). A last line that was cut off by a kill is left out.
    """
    try:
        within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return [Record(tampered="the folder of its record was removed or replaced")]
    try:
        names = sorted(name for name in os.listdir(within) if name.endswith(".jsonl"))
        records = [_read(name, within, secrets) for name in names[:_MOST]]
    finally:
        os.close(within)
    if len(names) > _MOST:
        records[0].tampered = "it has more records than the probe writes"
    return sorted(records, key=_place)


def _place(record: Record) -> tuple[bool, str, int]:
    pid = record.about.get("pid")
    return record.process != "main", record.process, pid if isinstance(pid, int) else 0


def _read(name: str, within: int, secrets: Secrets) -> Record:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=within)
    except OSError:
        return Record(tampered="its record is no file")
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        os.close(descriptor)
        return Record(tampered="its record is no file")
    with open(descriptor, "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        return Record(tampered="its record is larger than what the probe writes")
    return read_record(data.decode("utf-8", "replace"), secrets, numbered=True)


def read_record(text: str, secrets: Secrets = _NO_SECRETS, *, numbered: bool = False) -> Record:
    """Read the lines of one process; in place of ``secrets`` stands which variable each is the value of.

    Where they are ``numbered``, as in a file of the probe, one that is missing or more is told (``tampered``).
    """
    reading = Reading()
    # Not by splitlines: texts may have other ends of lines in them.
    lines = text.split("\n")
    last, number = len(lines) - 1, 0
    for place, line in enumerate(lines):
        event = _event(line, secrets)
        if event is None:
            # The last one may have been cut off by a kill.
            if numbered and line and place != last:
                reading.record.tampered = _FOREIGN
            continue
        kind, own = str(event.pop("event", "")), event.pop("n", None)
        if numbered and own != 0:
            if type(own) is not int or (own != number + 1 and not (own == 1 and kind == "start")):
                reading.record.tampered = _CUT if type(own) is int and own > number else _FOREIGN
            number = own if type(own) is int else number
        try:
            reading.read(kind, event)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            if not numbered:
                raise
            reading.record.tampered = _FOREIGN
    return reading.record


def _event(line: str, secrets: Secrets) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    return secrets.mask_all(event) if secrets.mask(line) != line else event
