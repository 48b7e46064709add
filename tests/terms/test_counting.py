"""How numbers of things are told."""

from __future__ import annotations

import pytest

from codemods.terms.counting import bytes_text, count_text, listed, plain_count_text


@pytest.mark.parametrize(
    ("names", "text"), [("", ""), ("ab", "a, b"), ("abc", "a, b and 1 more"), ("abcd", "a, b and 2 more")]
)
def test_of_many_names_the_first_are_listed(names: str, text: str) -> None:
    assert listed(names, 2) == text


def test_what_stands_between_names_can_be_chosen() -> None:
    assert listed(["a", "b", "c"], 2, between="; ") == "a; b and 1 more"


def test_counts_have_a_plural() -> None:
    assert [count_text(1, "step"), count_text(1240, "step")] == ["1 step", "1,240 steps"]
    assert [plain_count_text(0, "step"), plain_count_text(1240, "step")] == ["0 steps", "1240 steps"]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (61_200, "59.8 KiB"),
        (412 << 20, "412 MiB"),
        (1 << 30, "1.00 GiB"),
        (5 << 40, "5.00 TiB"),
        (-2048, "-2.00 KiB"),
    ],
)
def test_bytes(size: int, text: str) -> None:
    assert bytes_text(size) == text


def test_signs_are_for_what_changes() -> None:
    assert bytes_text(0.2, signed=True) == "0 B"
    assert bytes_text(2048, signed=True) == "+2.00 KiB"
    assert bytes_text(-2048, signed=True) == "-2.00 KiB"
