"""When a campaign may publish, and how much of it in a day: people have to read what it opens."""

from __future__ import annotations

import datetime
import re
from typing import NamedTuple

_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]|24):([0-5]\d)")
_DAY = 24 * 60


class Hours(NamedTuple):
    """A stretch of each day, in minutes since midnight; one that ends before it begins goes on after midnight."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """How many minutes it has."""
        return (self.end - self.start) % _DAY or _DAY

    def text(self) -> str:
        """It as it is written: ``22:00-06:00``."""
        return "-".join(f"{minutes // 60:02}:{minutes % 60:02}" for minutes in self)


def parse(text: str) -> Hours:
    """Read hours such as ``22:00-06:00``. Raises :class:`ValueError` for what is none."""
    match = _HOURS.fullmatch(text.strip())
    if match is None or (match[3] == "24" and match[4] != "00"):
        raise ValueError
    start, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    return Hours(start, end)


def begun(hours: Hours | None, now: float) -> float:
    """When the campaign's day began, in seconds since 1970: with its hours, without any at midnight; in local time."""
    return _beginning(hours, now).timestamp()


def closed_until(hours: Hours | None, now: float) -> str:
    """When the hours begin next, for people; empty where they are on, or there are none."""
    if hours is None:
        return ""
    began = _beginning(hours, now)
    if _local(now) < began + datetime.timedelta(minutes=hours.length):
        return ""
    return f"{began + datetime.timedelta(days=1):%Y-%m-%d %H:%M}"


def _beginning(hours: Hours | None, now: float) -> datetime.datetime:
    here = _local(now)
    start = hours.start if hours is not None else 0
    began = here.replace(hour=start // 60, minute=start % 60, second=0, microsecond=0)
    return began if began <= here else began - datetime.timedelta(days=1)


def _local(now: float) -> datetime.datetime:
    # Without a zone: what a clock on the wall shows is what is meant, also on the days that have 23 hours.
    return datetime.datetime.fromtimestamp(now)
