"""Enumerations: which member it is decides which way is taken."""

from __future__ import annotations

import pytest

from tests.graph.tools import run

PHASE = """
import enum
from enum import Enum, auto

class Phase({base}):
    TRAIN = {train}
    VAL = {val}
    {more}

def chosen(phase):
    return {choice}

y = chosen({given})
"""

KINDS = [
    ("enum.Enum", "1", "2"),
    ("Enum", "'a'", "'b'"),
    ("Enum", "0,", "1"),
    ("Enum", "(0, 'a')", "(0, 'b')"),
    ("Enum", "auto()", "auto()"),
    ("enum.Enum", "enum.auto()", "enum.auto()"),
    ("enum.IntEnum", "1", "2"),
    ("str, Enum", "'a'", "'b'"),
]

CHOICES = [
    "w if phase == Phase.TRAIN else x",
    "w if phase is Phase.TRAIN else x",
    "x if phase != Phase.TRAIN else w",
    "w if phase in (Phase.TRAIN,) else x",
    "{Phase.TRAIN: w, Phase.VAL: x}[phase]",
    "x if phase is not Phase.TRAIN else w",
]


def result(base: str, train: str, val: str, choice: str, given: str, more: str = "") -> str:
    text = PHASE.format(base=base, train=train, val=val, choice=choice, given=given, more=more)
    return run(text).graph("y")


@pytest.mark.parametrize(("base", "train", "val"), KINDS)
@pytest.mark.parametrize("choice", CHOICES)
def test_a_member_is_itself_alone(base: str, train: str, val: str, choice: str) -> None:
    assert result(base, train, val, choice, "Phase.TRAIN") == "attached"
    assert result(base, train, val, choice, "Phase.VAL") == "free"


@pytest.mark.parametrize(
    ("choice", "given", "expected"),
    [
        # by name, and all of them in turn
        ("w if phase == Phase.TRAIN else x", "Phase['TRAIN']", "attached"),
        ("w if phase == Phase.TRAIN else x", "Phase[input()]", "perhaps"),
        ("w if phase == Phase.TRAIN else x", "Phase(int(input()))", "perhaps"),
        ("w if phase.name == 'TRAIN' else x", "Phase.VAL", "free"),
        ("w if phase.value == 1 else x", "Phase.TRAIN", "attached"),
        ("[w if p == Phase.TRAIN else x for p in phase][1]", "Phase", "free"),
        ("[w if p == Phase.TRAIN else x for p in phase][0]", "Phase", "attached"),
        ("w if isinstance(phase, Phase) else x", "Phase.VAL", "attached"),
        ("w if phase else x", "Phase.VAL", "attached"),
        # what has a value is not that value
        ("w if phase == 1 else x", "Phase.TRAIN", "free"),
    ],
)
def test_what_is_asked_of_members(choice: str, given: str, expected: str) -> None:
    assert result("Enum", "1", "2", choice, given) == expected


@pytest.mark.parametrize(
    ("train", "val"),
    [
        ("1", "1"),
        ("(1, 2)", "(1, 2)"),
        # values that cannot be seen may be the same
        ("int(input())", "int(input())"),
        ("auto()", "1"),
    ],
)
def test_two_names_may_be_one_member(train: str, val: str) -> None:
    found = result("Enum", train, val, "w if phase == Phase.TRAIN else x", "Phase.VAL")
    assert found in ("attached", "perhaps")


@pytest.mark.parametrize(
    ("more", "given", "expected"),
    [
        ("def learns(self): return self == Phase.TRAIN", "Phase.TRAIN.learns()", "attached"),
        ("def learns(self): return self is Phase.TRAIN", "Phase.VAL.learns()", "free"),
        ("@property\n    def learns(self): return self == Phase.TRAIN", "Phase.VAL.learns", "free"),
    ],
)
def test_methods_of_members(more: str, given: str, expected: str) -> None:
    assert result("Enum", "1", "2", "w if phase else x", given, more) == expected


def test_members_of_two_classes_are_not_the_same() -> None:
    more = "\n\nclass Other(Enum):\n    TRAIN = 1"
    assert result("Enum", "1", "2", "w if phase == Other.TRAIN else x", "Phase.TRAIN", more) == "free"
