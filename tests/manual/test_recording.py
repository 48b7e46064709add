"""The picture in the README is what the commands print."""

from __future__ import annotations

import html
import re
from pathlib import Path

from tests.manual.recording import COMMANDS, SCRIPT, record

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "recording.svg"


def shown(picture: str) -> str:
    return html.unescape("\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))).replace("\xa0", " ")


def test_the_picture_in_the_readme_shows_what_check_prints_today() -> None:
    now = record(COMMANDS[:1])
    kept = shown(PICTURE.read_text(encoding="utf-8"))
    for line in shown(now).splitlines():
        assert line in kept
    assert "$ codemod check" in kept
    assert "every promise held" in kept
    assert "retain_graph=True" in SCRIPT


def test_it_needs_nothing_of_the_network_and_names_no_folder() -> None:
    for picture in (record(COMMANDS[:1]), PICTURE.read_text(encoding="utf-8")):
        assert "@font-face" not in picture
        assert "url(http" not in picture
        assert "/tmp" not in picture
