"""The memory of a run: two layers that act as one, and an index that finds what a look at all cells would find."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.analysis import workers
from codemods.analysis.analyse import Analysis, analyse
from codemods.graph.model import state as memory
from codemods.graph.model.cells import Key
from codemods.graph.model.nodes import Value
from codemods.graph.model.state import State, merge
from codemods.graph.model.values import Const, Join, Tensor
from codemods.graph.python.remembering import Remembering
from codemods.graph.run.uses import Uses
from codemods.source.files import source_from_bytes
from codemods.source.options import Options
from fixtures import Case, cases
from tests.graph.tools import run
from tests.hunt.programs import program
from tests.hunt.rewriting import root

KEYS = [(1, "a"), (2, "a")]


@given(
    st.lists(
        st.tuples(st.sampled_from(["set", "none", "delete", "drop", "fork", "back"]), st.sampled_from(KEYS)),
        min_size=6,
        max_size=30,
    ),
    st.sampled_from([0, 2, 64]),
)
def test_two_layers_act_as_one(steps: list[tuple[str, Key]], own: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_OWN", own)
        patch.setattr(memory, "_SHARING", 0)
        base: dict[Key, Any] = {(1, "a"): Const(0)}
        states: list[tuple[State, dict[Key, Any]]] = [(State.empty(base), {})]
        kept = []
        for number, (what, key) in enumerate(steps):
            now, model = states[-1]
            if what == "set":
                model[key] = Const(number)
                now.set(key, model[key])
            elif what == "none":
                model.pop(key, None)
                now.put(key, None)
            elif what in ("delete", "drop"):
                model.pop(key, None)
                getattr(now, what)(key)
            elif what == "fork":
                states.append((now.fork(0), dict(model)))
            elif len(states) > 1:
                states.pop()
            now, model = states[-1]
            kept.append((now.moment(), dict(model)))
        for now, model in states:
            assert dict(now.cells().items()) == model
            assert [now.peek(key) for key in KEYS] == [model.get(key, base.get(key)) for key in KEYS]
        for cells, model in kept:
            assert dict(cells.items()) == model
            assert [cells.get(key) for key in KEYS] == [model.get(key) for key in KEYS]
            assert [key in cells for key in KEYS] == [key in model for key in KEYS]


def test_what_paths_have_in_common_is_not_copied() -> None:
    state = State.empty()
    for number in range(10_000):
        state.set((number, "name"), Const(number))
    one = state.fork(0)
    one.set((0, "name"), Const(-1))
    other = one.fork(0)
    assert one.weight() == other.weight() == 0
    assert [s.peek((0, "name")).value for s in (state, one, other)] == [0, -1, -1]
    assert other.peek((9_999, "name")).value == 9_999


IN_PLACE = """
rows = [torch.zeros(3), torch.ones(3)]
pair = rows[0], x
view = x[:1]
class Box: pass
box = Box()
box.kept = x
def fill(into, others):
    into[0] = net(x)
    others[1].add_(net(x))
fill({target}, rows)
more = []
for number in range(2):
    more.append(torch.zeros(3))
    kept = [*more]
for one in kept:
    one.mul_(net(x))
"""


@pytest.mark.parametrize("target", ["x", "rows[0]", "pair[0]", "view", "box.kept", "rows[-1].data", "torch.ones(3)"])
def test_a_write_reaches_whoever_holds_the_tensor(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["rows", "pair", "view", "x", "more", "kept"]
    text = IN_PLACE.replace("{target}", target)
    found = {name: graph.graph(name) for graph in [run(text)] for name in names}
    monkeypatch.setattr(Uses, "_holders", _looked_for)
    assert found == {name: graph.graph(name) for graph in [run(text)] for name in names}
    assert [found["rows"], found["more"]].count("free") == 0


def _looked_for(self: Uses, wanted: Collection[Value]) -> list[Key]:
    """What the index is to find, by a look at all cells."""
    asked = frozenset(map(id, wanted))
    return [k for k, content in self.s.cells().items() if not asked.isdisjoint(self._identities(content))]


def _seen(files: dict[str, bytes], options: Options | None = None) -> Analysis:
    workers._memory.clear()
    targets = [source_from_bytes(text, path, root() / path) for path, text in files.items()]
    return analyse(targets, options=options or Options(), jobs=1)


def _plainly(files: dict[str, bytes]) -> Iterator[Analysis]:
    """The analyses with all that saves time, without calls that are remembered, without any of the rest, and with
    memory shared at every fork."""
    yield _seen(files)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Remembering, "asked_for", lambda *_: None)
        yield _seen(files)
    for own, index in ((10**9, _looked_for), (0, Uses._holders)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory, "_OWN", own)
            patch.setattr(memory, "_SHARING", 0)
            patch.setattr(Uses, "_holders", index)
            yield _seen(files)


def _alike(files: dict[str, bytes]) -> bool:
    return all(one == other for one, other in itertools.pairwise(_plainly(files)))


@pytest.mark.parametrize("case", list(cases())[::12], ids=str)
def test_fixtures_show_the_same(case: Case) -> None:
    assert _alike(case.before)


@pytest.mark.parametrize("seed", range(8))
def test_programs_show_the_same(seed: int) -> None:
    assert _alike({path: text.encode() for path, text in program(seed).files.items()})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 80))
def test_many_programs_show_the_same(seed: int) -> None:
    assert _alike({path: text.encode() for path, text in program(seed).files.items()})


@pytest.mark.slow
@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_all_fixtures_show_the_same(case: Case) -> None:
    assert _alike(case.before)


def test_the_variables_of_a_call_are_not_looked_for_where_paths_meet() -> None:
    call = "def f(n):\n    first = n\n    second = first\n    return second\nif x.any():\n    f(1)\nelse:\n    f(2)\n"
    machine = run(call).machine
    assert "f" in {name for _, name in machine.run.s.log.keys}
    assert {"n", "first", "second"}.isdisjoint(name for _, name in machine.run.s.log.keys)


@pytest.mark.parametrize("own", [0, 64])
def test_of_many_paths_each_value_is_joined_once(own: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_OWN", own)
    monkeypatch.setattr(memory, "_SHARING", 0)
    asked = []

    def join(mine: Value, theirs: Value) -> Value:
        asked.append(theirs)
        return Join((mine, theirs))

    base = State.empty()
    before, after, same = Const(0), Const(1), Const(2)
    base.set((1, "a"), before)
    base.set((1, "same"), same)
    paths = [base.fork(0) for _ in range(100)]
    for path in paths[40:]:
        path.set((1, "a"), after)
    for path in paths:
        path.set((1, "same"), same)
    met = merge([path.fork(0) for path in paths] if own == 0 else paths, base.log, join, base, lambda value: value)
    assert met is not None
    assert len(asked) == 1
    assert met.peek((1, "a")).options == (before, after)
    assert met.peek((1, "same")) is same


def test_what_some_of_many_paths_took_away_may_be_there() -> None:
    base = State.empty({(1, "loaded"): Const(5)})
    base.set((1, "a"), Const(0))
    base.set((1, "kept"), Const(1))
    six = Const(6)
    paths = [base.fork(0) for _ in range(20)]
    for path in paths[10:]:
        path.delete((1, "a"))
        path.set((1, "loaded"), six)
    there = Const("there")
    met = merge(paths, base.log, lambda mine, theirs: Join((mine, theirs)), base, lambda value: there)
    assert met is not None
    assert met.peek((1, "a")) is there
    assert met.peek((1, "kept")) is base.peek((1, "kept"))
    assert [option.value for option in met.peek((1, "loaded")).options] == [5, 6]


def test_what_one_path_alone_wrote_is_handed_on_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    put = State.put
    monkeypatch.setattr(State, "put", lambda self, key, value: (written.append(key), put(self, key, value))[1])
    base = State.empty()
    base.set((1, "net"), Const(0))
    rest = base.fork(0)
    # a chain of elif: each branch makes objects of its own, and what the later ones left comes in from below
    outer = [rest]
    for _ in range(30):
        outer.append(outer[-1].fork(0))
    met = outer[-1]
    for number in reversed(range(30)):
        branch = outer[number].fork(0)
        branch.set((1, "net"), Const(number))
        for name in "abcdef":
            branch.set((10 + number, name), Const(name))
        joined = merge([branch, met], outer[number].log, lambda mine, theirs: mine, outer[number], lambda value: value)
        assert joined is not None
        met = joined
    assert set(written) == {(1, "net")}
    assert all(met.peek((10 + number, name)).value == name for number in range(30) for name in "abcdef")
    assert {(10, "a"), (39, "f")} <= met.log.keys.keys()


def _meeting(base: State, write: Callable[[State], object], *, first: bool) -> State:
    """What is there after two paths of which one writes."""
    paths = [base.fork(5), base.fork(5)]
    write(paths[0 if first else 1])
    met = merge(paths, base.log, lambda mine, theirs: Join((mine, theirs)), base, lambda value: Const("maybe"))
    assert met is not None
    return met


@pytest.mark.parametrize("first", [True, False])
def test_what_was_there_before_or_is_no_value_is_joined_though_one_path_wrote_it(*, first: bool) -> None:
    base = State.empty({(2, "loaded"): Const("loaded")})
    base.set((1, "a"), Const("old"))
    one = _meeting(base, lambda path: path.set((1, "a"), Const("new")), first=first).peek((1, "a"))
    assert {option.value for option in one.options} == {"old", "new"}
    one = _meeting(base, lambda path: path.set((2, "loaded"), Const("new")), first=first).peek((2, "loaded"))
    assert {option.value for option in one.options} == {"loaded", "new"}
    assert _meeting(base, lambda path: path.delete((1, "a")), first=first).peek((1, "a")).value == "maybe"
    # which turn put what is known of no list that only one path filled
    assert _meeting(base, lambda path: path.set((3, memory.TURNS), (1,)), first=first).peek((3, memory.TURNS)) == ()
    # a leaf that both paths have may be frozen
    frozen = (-1, memory.FROZEN)
    assert _meeting(base, lambda path: path.set(frozen, True), first=first).peek(frozen) == "maybe"
    # an object that was there may have the attribute or not
    base.set((5, memory.MADE), True)
    met = _meeting(base, lambda path: path.set((5, "a"), Const("new")), first=first)
    assert (met.peek((5, "a")).value, met.peek((5, f"{memory.PARTLY}a"))) == ("new", True)

    # what came and went is not there
    def come_and_go(path: State) -> None:
        path.set((4, "b"), Const(1))
        path.delete((4, "b"))

    gone = _meeting(base, come_and_go, first=first)
    assert gone.peek((4, "b")) is None


@pytest.mark.parametrize("first", [True, False])
def test_a_leaf_that_one_path_made_begins_another_version(*, first: bool) -> None:
    base = State.empty()
    base.watch([7])
    before = base.version
    leaf = run("").value("w")
    assert _meeting(base, lambda path: path.set((7, "weight"), leaf), first=first).version != before
    assert _meeting(base, lambda path: path.set((7, "name"), Const("n")), first=first).version == before


def test_a_caught_error_has_what_was_there_at_any_point() -> None:
    calls = "".join(f"        f({number})\n        a = net(x)\n" for number in range(30))
    code = "def f(n):\n    if x.any():\n        raise ValueError\ndef g():\n    a = x\n    b = x\n    try:\n"
    graph = run(f"{code}{calls}    except ValueError:\n        return a, b\n    return b, b\none, other = g()\n")
    assert graph.graph("one") != graph.graph("other") == run("other = x\n").graph("other")
    assert len(graph.nodes("one")) <= 4


@pytest.mark.parametrize("change", ["y[0] = w.sum()", "v.mul_(w)"])
def test_a_tensor_that_changes_often_says_by_one_what_shares_its_memory(change: str) -> None:
    graph = run("y = w * 2\nv = y.view(-1)\n" + f"{change}\n" * 30 + "v[0] = net(x)\n")
    for name in ("y", "v"):
        value = graph.value(name)
        assert isinstance(value, Tensor)
        assert len(value.bases) <= 1
    assert "free" not in (graph.graph("y"), graph.graph("v"))


def test_what_shares_no_memory_stays_as_it_is() -> None:
    graph = run("v = x.view(-1)\ny = torch.zeros(3)\nz = y.clone()\nfor _ in range(9):\n    y.add_(w)\n")
    assert [graph.graph(name) for name in ("x", "v", "z")] == [run("y = x\n").graph("y")] * 3
    assert graph.graph("y") != graph.graph("z")
