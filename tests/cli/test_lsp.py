"""``codemod lsp`` where its library is missing; what it does with it is tested in tests/editor."""

from __future__ import annotations

import importlib.util

import pytest

from tests.commands import codemod


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pygls" else find(name))
    assert codemod("lsp") == (
        2,
        "",
        "codemod: codemod lsp needs pygls: python -m pip install '.[lsp]' in a clone of codemod\n",
    )
