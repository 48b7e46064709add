"""Changes for a fault, as texts: which are offered, and where nothing is."""

from __future__ import annotations

from textwrap import dedent

import pytest

from verify.diagnosis.model import Clue, Fault, Kind
from verify.fixing.candidates import Candidate, candidates
from verify.measured.records import Site


def at(line: int, function: str = "f") -> Site:
    return Site("t.py", line, function)


def offered(kind: Kind, text: str, *clues: Clue, site: Site | None = None, remedy: str = "") -> list[Candidate]:
    text = dedent(text).lstrip()
    return candidates(Fault(kind, "", site, clues, remedy), {"t.py": text}.__getitem__)


def changed(kind: Kind, text: str, *clues: Clue, site: Site | None = None, remedy: str = "") -> list[str]:
    """The first line that each candidate adds."""
    old = dedent(text).lstrip().splitlines()
    found = []
    for candidate in offered(kind, text, *clues, site=site, remedy=remedy):
        new = candidate.files["t.py"].splitlines()
        found.append(next(line.strip() for place, line in enumerate(new) if place >= len(old) or line != old[place]))
    return found


LOOP = """
def f():
    y = t @ a
    for step in range(3):
        loss = (y - 1).sum()
        loss.backward()
"""


def test_a_graph_made_before_the_loop_is_made_in_it() -> None:
    clues = (Clue("cause", at(2)), Clue("carrier", name="y", function="f"), Clue("consumer", at(4)))
    found = changed(Kind.SECOND_BACKWARD, LOOP, *clues, Clue("freed by", at(5)))
    assert found[:2] == ["y = t @ a", "y = y.detach()"]


def test_what_is_made_beside_its_use_is_not_made_twice() -> None:
    text = """
    def f():
        for step in range(3):
            z = trunk(draw())
            first = left(z)
            second = right(z)
            first.backward()
            second.backward()
    """
    clues = (Clue("cause", at(3)), Clue("carrier", name="z", function="f"), Clue("consumer", at(5)))
    found = changed(Kind.SECOND_BACKWARD, text, *clues, Clue("freed by", at(6)), remedy="both losses are built on z")
    assert "z = trunk(draw())" not in found
    assert "first.backward(retain_graph=True)" in found


def test_a_state_is_detached_where_it_is_kept_whatever_it_is() -> None:
    text = "out, self.h = self.rnn(x, self.h)\nreturn_(out)\n"
    tensor = (Clue("cause", at(1)), Clue("carrier", name="self.h"), Clue("consumer", at(1)))
    several = (Clue("cause", at(1)), Clue("carrier", name="self.h[0]"), Clue("consumer", at(1)))
    assert changed(Kind.SECOND_BACKWARD, text, *tensor)[0] == "self.h = self.h.detach()"
    assert changed(Kind.SECOND_BACKWARD, text, *several)[0] == "self.h = tuple(part.detach() for part in self.h)"


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("h[:, 0] = 0", "h = h.clone()"),
        ("mask.mul_(0.5)", "mask = mask.mul(0.5)"),
        ("x -= x.mean()", "x = x - (x.mean())"),
        ("self.x *= 2", "self.x = self.x * (2)"),
    ],
)
def test_changes_in_place_are_written_elsewhere(statement: str, wanted: str) -> None:
    assert changed(Kind.CHANGED_IN_PLACE, statement + "\n", Clue("cause", at(1)))[0] == wanted


def test_a_step_goes_behind_the_backward_that_needs_its_parameters() -> None:
    text = "od.step()\nog.zero_grad()\nloss.backward()\nog.step()\n"
    (moved,) = offered(Kind.CHANGED_IN_PLACE, text, Clue("cause", at(1)), site=at(3))
    assert moved.files["t.py"] == "og.zero_grad()\nloss.backward()\nod.step()\nog.step()\n"


def test_what_is_kept_is_kept_without_its_graph() -> None:
    text = "loss = f(x)\ntotal += loss\nself.history.append(loss)\nother.append(loss)\n"
    clues = (Clue("cause", at(1)), Clue("carrier", name="trainer.history[*]"))
    assert changed(Kind.GROWING_GRAPH, text, *clues) == ["self.history.append(loss.detach())"]
    assert changed(Kind.GROWING_GRAPH, text, Clue("cause", at(1)), Clue("carrier", name="total")) == [
        "total += loss.detach()"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1; b.mul_(2)\n",
        "if (b.mul_(2)).any(): pass\n",
        "b.mul_(\n  2)\n",
        "not python(\n",
        "b.mul(2)\n",
        "b.__x__()\n",
    ],
)
def test_nothing_is_offered_for_what_cannot_be_changed_alone(text: str) -> None:
    assert offered(Kind.CHANGED_IN_PLACE, text, Clue("cause", at(1))) == []


def test_nothing_is_offered_without_a_line_or_for_a_notebook_or_another_kind() -> None:
    assert offered(Kind.CHANGED_IN_PLACE, "b.mul_(2)\n", Clue("cause")) == []
    assert offered(Kind.CHANGED_IN_PLACE, "b.mul_(2)\n", Clue("cause", Site("a.ipynb", 1, "f"))) == []
    assert offered(Kind.SLOWER_STEPS, "b.mul_(2)\n", Clue("cause", at(1))) == []
