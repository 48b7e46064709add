"""Verify's results within another page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.verify.reports import tools
from tests.verify.reports.test_html import Reader
from verify.measured.results import Verification
from verify.reports.html import fragment, page


@pytest.mark.parametrize("shape", tools.ALL)
def test_every_shape_is_one_element(shape: Callable[[], Verification]) -> None:
    text = fragment(shape())
    read = Reader(text)
    assert text.startswith('<div class="codemod-verify">')
    assert text.endswith("</div>\n")
    tags = {tag for tag, _ in read.seen}
    assert not tags & {"html", "head", "body", "main", "header", "h1", "h2", "script", "link", "img"}
    assert not [attributes for tag, attributes in read.seen if tag == "a"]
    identifiers = [attributes["id"] for _, attributes in read.seen if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', text)) <= set(identifiers)


def test_it_says_what_the_page_says() -> None:
    made = tools.repaired()
    text = Reader(fragment(made)).text
    assert "Every promise that was put to the test held" in text
    assert text.index("carried-hidden-state") < text.index("raised RuntimeError")
    assert "To reproduce: codemod verify train.py -- --epochs 1" in text
    tables = [re.findall(r"<table.*?</table>", of(made), re.DOTALL) for of in (fragment, page)]
    assert tables[0] == tables[1]
    assert fragment(made).count("<svg") == page(made).count("<svg") == 3


def test_its_style_holds_for_it_alone() -> None:
    text = fragment(tools.repaired())
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    body = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL).strip()
    assert body.startswith(".codemod-verify {")
    depth = 0
    for place, character in enumerate(body):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth > 0 or place in range(len(".codemod-verify ")) or place == len(body) - 1


def test_injected_markup_is_text() -> None:
    text = fragment(tools.hostile())
    assert text.count("</style>") == 1
    assert "<script" not in text
    assert "<img" not in text
