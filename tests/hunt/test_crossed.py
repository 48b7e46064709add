"""Programs of situations and ways: their tables, a value on its way, and the hunt with them in small."""

from __future__ import annotations

import pytest

from tests.hunt.crossed import tables
from tests.hunt.crossed.programs import FORMS, written
from tests.hunt.crossed.tables import SITUATIONS, WAYS, Row
from tests.hunt.hunting import Hunt, hunted
from tests.hunt.running import run

ASKED = Row(
    "",
    "given = torch.ones(2, 3, requires_grad=True).tanh() + 0\ngot = CARRIED(given)\n"
    "print(torch.is_tensor(got), got.requires_grad)",
)
"""A situation that asks whether a value has come with a graph."""


def test_rows_say_what_they_carry() -> None:
    assert WAYS
    for name, row in WAYS.items():
        assert "IN" in row.code, name
        assert "OUT" in row.code, name
    assert [name for name, row in SITUATIONS.items() if "= CARRIED(" not in row.top + row.code] == []


def test_no_two_rows_have_a_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tables, "HERE", tmp_path)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "a.txt").write_text("# About.\n== one\nx = 1\n--\ny = 2\n== two\nz = 3\n")
    assert tables.rows("some") == {"one": Row("x = 1", "y = 2"), "two": Row("", "z = 3")}
    (tmp_path / "some" / "b.txt").write_text("# About.\n== one\n")
    with pytest.raises(ValueError, match="one is there twice"):
        tables.rows("some")


@pytest.mark.parametrize("form", sorted(set(FORMS)))
@pytest.mark.parametrize("called", [True, False])
def test_ways_follow_each_other_in_every_form(form: str, called: bool, monkeypatch) -> None:
    monkeypatch.setitem(SITUATIONS, "asked", ASKED)
    files = written("asked", ["exit stack", "nonlocal", "exit stack"], form, called=called)
    assert len(files) == 1 + (form == "another file")
    text = "".join(files.values())
    assert "as st1:" in text
    assert "as st3:" in text
    assert run(files).output == "True True\n"


def test_two_programs() -> None:
    found = hunted((Hunt(crossed=True), 0, 2))
    assert found.programs == 2
    assert not found.broken, found.table()


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(WAYS), 60))
def test_every_way_carries_the_graph(start: int, monkeypatch) -> None:
    monkeypatch.setitem(SITUATIONS, "asked", ASKED)
    for name in list(WAYS)[start : start + 60]:
        found = run(written("asked", [name]))
        assert (found.error, found.output) == (None, "True True\n"), name


@pytest.mark.slow
@pytest.mark.parametrize("start", range(900_000, 900_300, 50))
def test_no_program_breaks_a_promise(start: int) -> None:
    found = hunted((Hunt(crossed=True), start, start + 50))
    assert not found.broken, found.table()
    assert found.rewritten > 50 // 4
