"""Programs of situations and ways: their tables, a value on its way, and the hunt with them in small."""

from __future__ import annotations

import pytest

from tests.hunt.checking import check
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
    way = next(iter(WAYS))
    assert [name for name in SITUATIONS if any("CARRIED(" in text for text in written(name, [way]).values())] == []


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


BROKEN = {
    "default dicts nested by a loop": ("bootstrapped value", "gan joint", "gan second", "invariant"),
    "dicts around each other": ("bootstrapped value",),
    "dicts nested by a loop, asked with get": ("bootstrapped value", "gan joint", "gan second", "invariant"),
    "dicts nested by a while loop": ("bootstrapped value",),
    "namespaces nested by a loop": ("gan joint", "invariant"),
    "objects nested by a loop": ("bootstrapped value", "gan joint", "gan second", "invariant"),
    "objects nested by a loop, with defaults": ("bootstrapped value", "gan joint", "gan second", "invariant"),
    "trie": ("bootstrapped value",),
    "forward hook with keywords": ("legacy var", "legacy data"),
    "hook of several gradients": ("total after", "total tensor", "history shown"),
    "mode of functions, pushed": ("bootstrapped value",),
    "async future": ("gan second", "val reg", "eval grad"),
    "asyncio done callback": ("gan second", "val reg", "eval grad"),
    "attribute of a class of torch": ("gan joint", "invariant"),
    "attribute of a module": ("gan joint", "invariant"),
    "attribute of builtins": ("gan joint", "invariant"),
    "buffer not saved": ("gan joint", "val reg", "eval grad"),
    "closure cell": ("gan joint", "gan second", "invariant"),
    "collector of garbage": ("gan joint", "val reg", "eval grad"),
    "count of elements": ("gan joint", "invariant"),
    "dataclass InitVar": ("gan second", "input grad"),
    "deleted slice": ("input grad",),
    "eval text": ("invariant",),
    "exception star group": ("input grad",),
    "exception traceback frame": ("input grad",),
    "finalizer taken back": ("gan joint", "invariant"),
    "global hook": ("gan second",),
    "group of an optimizer": ("gan joint", "invariant"),
    "group that is added": ("gan second", "invariant"),
    "hook for all registrations": ("gan second", "val reg"),
    "hook of the state dict": ("gan joint", "gan second"),
    "linked list": ("input grad",),
    "log handler args": ("val reg", "input grad", "eval grad"),
    "log record factory": ("val reg", "eval grad"),
    "mapping of one's own": ("gan joint", "invariant"),
    "mappingproxy": ("gan joint", "gan second", "invariant"),
    "metaclass getattr": ("gan second",),
    "metaclass getitem": ("gan second",),
    "metaclass iterated": ("gan joint", "retain twice"),
    "metaclass singleton": ("gan second", "input grad"),
    "missing member": ("gan joint", "val reg", "retain twice"),
    "mock call arguments": ("gan joint", "invariant"),
    "mock patch": ("gan joint", "invariant"),
    "mock patch dict": ("gan second", "invariant"),
    "module made at run time": ("gan joint", "invariant"),
    "module that is imported by name": ("gan joint",),
    "named set": ("gan second",),
    "node metadata": ("gan joint", "invariant"),
    "order of a graph": ("gan second",),
    "parsed by hook": ("gan joint", "invariant"),
    "parser defaults": ("gan joint", "val reg"),
    "prepared class": ("gan joint", "gan second"),
    "sysmodules": ("gan joint", "invariant"),
    "torch function mode": ("input grad", "bootstrapped value", "total after", "history shown"),
    "typeddict": ("input grad",),
    "warnings show": ("gan joint", "invariant"),
}
"""Ways by which a graph came back unseen, and where that broke a promise."""


@pytest.mark.parametrize(("way", "situation"), [(way, where) for way, places in BROKEN.items() for where in places])
def test_what_came_back_unseen_is_seen(way: str, situation: str) -> None:
    assert check(written(situation, [way])).violations == []


TOGETHER = [
    ("bootstrapped value", ["subclass that keeps"], "another file"),
    ("invariant", ["reduce getitem", "module buffer state"], "method"),
    ("legacy var", ["log handler args", "parser defaults"], "in line"),
    ("losses replayed", ["log adapter"], "in line"),
    ("total reg", ["function that keeps", "class made by types"], "method"),
]
"""Where a value that may have a graph was taken for data, two tensors for one, and two objects for one."""


@pytest.mark.parametrize(("situation", "ways", "form"), TOGETHER)
def test_what_was_taken_for_something_else_is_told_apart(situation: str, ways: list[str], form: str) -> None:
    assert check(written(situation, ways, form)).violations == []


DIGITS = Row(
    "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
    "for x in torch.randn(4, 5, 3):\n    loss = net(x).pow(2).mean()\n    digits = loss.item()\n"
    "    opt.zero_grad()\n    loss.backward(retain_graph=True)\n    opt.step()\n    got = CARRIED(digits)\n"
    "    print(got)",
)
"""A situation in which only digits go a way, so that no graph need stay for them."""


NOT_FOLLOWED = {
    "closure cell",
    "collector of garbage",
    "eval text",
    "exception traceback frame",
    "hook for all registrations",
    "hook of the state dict",
    "linked list",
    "mock patch",
    "mock patch dict",
    "mode of functions, pushed",
    "module made at run time",
    "module that is imported by name",
    "torch function mode",
}
"""Ways of which the engine only knows that anything may come back."""

ONLY_TENSORS = {"forward hook with keywords"}
"""Ways that no digits go."""


@pytest.mark.parametrize("way", sorted(BROKEN.keys() - NOT_FOLLOWED - ONLY_TENSORS))
def test_digits_on_such_a_way_need_no_graph(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SITUATIONS, "digits", DIGITS)
    verdict = check(written("digits", [way]))
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1


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
    # fewer would say nothing; most of these programs are to be left alone
    assert found.rewritten >= 50 // 10
