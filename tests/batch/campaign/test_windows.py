"""When a campaign may publish: hours that go on after midnight, and days that begin with them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import read
from codemods.batch.campaign.windows import Hours, begun, closed_until, parse
from codemods.batch.errors import CampaignError


def at(clock: str) -> float:
    return time.mktime(time.strptime(f"2026-11-20 {clock}", "%Y-%m-%d %H:%M"))


@pytest.mark.parametrize(
    ("text", "length", "told"),
    [
        ("22:00-06:00", 480, "22:00-06:00"),
        ("9:30 - 17:00", 450, "09:30-17:00"),
        ("00:00-24:00", 1440, "00:00-24:00"),
        ("08:00-08:00", 1440, "08:00-08:00"),
    ],
)
def test_hours_are_read(text: str, length: int, told: str) -> None:
    assert (parse(text).length, parse(text).text()) == (length, told)


@pytest.mark.parametrize("text", ["", "22-06", "25:00-06:00", "22:00-24:30", "22:60-06:00", "night"])
def test_what_is_no_hours(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the campaign file says what it has to be
        parse(text)
    file = tmp_path / "c.toml"
    file.write_text(f'[publish]\nhours = "{text}"\n')
    with pytest.raises(CampaignError, match=r"'hours' in \[publish\] must be hours such as \"22:00-06:00\""):
        read(file)


@pytest.mark.parametrize(
    ("hours", "clock", "until"),
    [
        (None, "12:00", ""),
        ("22:00-06:00", "21:59", "2026-11-20 22:00"),
        ("22:00-06:00", "22:00", ""),
        ("22:00-06:00", "03:00", ""),
        ("22:00-06:00", "06:00", "2026-11-20 22:00"),
        ("09:00-17:00", "08:59", "2026-11-20 09:00"),
        ("09:00-17:00", "16:59", ""),
        ("09:00-17:00", "17:00", "2026-11-21 09:00"),
        ("00:00-24:00", "00:00", ""),
    ],
)
def test_when_it_is_open(hours: str | None, clock: str, until: str) -> None:
    assert closed_until(parse(hours) if hours else None, at(clock)) == until


@pytest.mark.parametrize(
    ("hours", "clock", "began"),
    [(None, "03:00", at("00:00")), ("02:00-06:00", "03:00", at("02:00")), ("22:00-06:00", "03:00", at("00:00") - 7200)],
)
def test_a_day_begins_with_its_hours(hours: str | None, clock: str, began: float) -> None:
    assert begun(Hours(*parse(hours)) if hours else None, at(clock)) == began
