"""No report makes a CI server do anything."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from codemods.source.logs import quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::no\n", "\\::error::no\n"),
        ("one\n   ::set-output name=x::1\n", "one\n   \\::set-output name=x::1\n"),
        ("said ##vso[task.setvariable variable=x]1", "said ##vso\\[task.setvariable variable=x]1"),
        ("##[group]title", "##\\[group]title"),
        ("[a].py:1: said\n::error::no\n", "[a].py:1: said\n\\::error::no\n"),
        ("##teamcity[buildStatus status='FAILURE']", "##teamcity\\[buildStatus status='FAILURE']"),
    ],
)
def test_what_a_server_takes_for_a_command_is_quoted(text: str, shown: str) -> None:
    assert quoted(text) == shown
    assert quoted(shown) == shown


@pytest.mark.parametrize(
    "text", ["a[::2] b[1::2]\n", "## [a](b)\n", "std::vector<x::y>\n", "x ::error::\n", "::\n", "#!\n"]
)
def test_all_else_stays(text: str) -> None:
    assert quoted(text) == text


def test_data_reads_the_same() -> None:
    said = "##vso[x] ##[group] ::error::\n::error::no"
    text = json.dumps({"said": said, said: [said]}, indent=1)
    assert "##" not in quoted(text)
    assert json.loads(quoted(text)) == json.loads(text)
    page = f'<?xml version="1.0"?>\n<a b="{said}">{said}</a>'
    assert "##" not in quoted(page)
    read = ET.fromstring(quoted(page))
    assert (read.text, read.get("b")) == (said, said.replace("\n", " "))
    assert "\n::" not in quoted(page)
