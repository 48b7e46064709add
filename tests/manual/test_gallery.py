"""The gallery is what the rules, their fixtures and the measurements say."""

from __future__ import annotations

import re
from pathlib import Path

from codemods.rules import rule_names
from tests.manual.gallery import gallery, main

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"


def test_the_gallery_is_up_to_date_and_shows_every_rule_once(tmp_path: Path) -> None:
    text = gallery()
    assert "Retain_graph" not in text
    assert PAGE.read_text(encoding="utf-8") == text, "run `python -m tests.manual.gallery docs/gallery.md`"
    shown = re.findall(r"^### \[([\w-]+)\]\(rules/([\w-]+)\.md\)$", text, re.MULTILINE)
    assert sorted(shown) == [(name, name) for name in rule_names()]
    assert text.count("```diff") + text.count("```python") == len(shown)
    assert main([str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
    assert main([]) == main(["--help"]) == 2
