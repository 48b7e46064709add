"""The memory of the simulated program: copied where paths part, joined where they meet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, groupby, takewhile
from math import inf
from typing import Any

from codemods.graph.model.cells import GONE, Cells, Key
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Const, Join, Plain, Tensor, Tuple, Unknown

FOLLOWED = frozenset({tuple, Tuple, Join, Tensor, Unknown})
"""The classes of what is looked for in all cells when a tensor is changed in place."""
CLEARED = "cleared"
"""When a list was cleared last, under its identity."""
TURNS = "[turns]"
"""What the turns of a loop put into a list, each where it counts to: the loop, what the list held then, its values."""
VIEWS = {"keys": "[keys]", "values": "[values]", "items": "[items]"}
"""Where a dict has the views of it that may be looked at later."""
MADE = "[made]"
"""Says of an object of the tree that it was made in sight, with all the attributes that its class gives it."""
PARTLY = "[partly]"
"""Before the name of an attribute that an object may have or not: some of the paths that met set it."""
SINCE = "[since]"
"""Before the name of an attribute that was written after all that was written under names that are not known."""
BUFFER = "[buffer]"
"""Before the name of an attribute of a module that takes nothing but tensors."""
FROZEN = "frozen"
"""Whether ``requires_grad = False`` was set on a leaf, under minus its birth: True, False or ``maybe``."""


_OWN = 64
"""Cells up to which a state is copied as a whole."""
_SHARING = 8
"""From so many times the root of all cells on that are a state's own they are shared: what is copied at each fork and
what sharing takes are balanced then."""


_VERSIONS = count(1)
"""What tells versions of states apart, in all runs: a later one is greater."""


class Log:
    """The keys written since a point; ``parent`` is the log of the point before.

    ``since`` is the moment of that point, infinite for a path that other paths may have led to.
    """

    __slots__ = ("keys", "parent", "since")

    def __init__(self, parent: Log | None, since: float) -> None:
        self.keys: dict[Key, None] = {}
        self.parent = parent
        self.since = since


@dataclass(eq=False, slots=True)
class State:
    """What every variable, attribute and element holds at one point of one path.

    ``grad`` tells whether operations are recorded: True, False, or None where paths disagree. Where ``reads`` is a
    dict, it takes what each cell held when it was first read or written. ``base`` holds what cells contain that were
    never written here. ``written`` takes each tensor, container and unseen thing that any path puts into a cell.

    Most cells are the same on all paths. They are ``_shared``, and only ``_own`` is copied where paths part.

    Two states of one ``version`` hold the same leaves under all identities that were watched before it began;
    ``watched`` says since when each of them is.
    """

    _own: dict[Key, Any]
    _shared: dict[Key, Any]
    log: Log
    grad: bool | None
    reads: dict[Key, Any] | None
    base: dict[Key, Any]
    written: list[tuple[Key, Any]]
    watched: dict[int, int]
    version: int

    @staticmethod
    def empty(base: dict[Key, Any] | None = None) -> State:
        """A state in which nothing was written and gradients are recorded."""
        return State({}, {}, Log(None, 0), True, None, {} if base is None else base, [], {}, next(_VERSIONS))

    def get(self, key: Key) -> Any:
        """The content of a cell, None if it was never written."""
        value = self._own.get(key)
        if value is None:
            value = self._shared.get(key)
            if value is None:
                value = self.base.get(key)
        elif value is GONE:
            value = self.base.get(key)
        if self.reads is not None and key not in self.reads:
            self.reads[key] = value
        return value

    def peek(self, key: Key) -> Any:
        """The same, without being noted as a read."""
        value = self._own.get(key)
        if value is None:
            value = self._shared.get(key)
            if value is None:
                value = self.base.get(key)
        elif value is GONE:
            value = self.base.get(key)
        return value

    def holds(self, cells: dict[Key, Any]) -> bool:
        """Whether each of ``cells`` holds the very thing that it is told to hold; not noted as reads."""
        own, shared, base = self._own.get, self._shared.get, self.base.get
        for key, content in cells.items():
            value = own(key)
            if value is None:
                value = shared(key)
                if value is None:
                    value = base(key)
            elif value is GONE:
                value = base(key)
            if value is not content:
                return False
        return True

    def untouched(self, key: Key) -> bool:
        """Whether nothing was ever written to a cell."""
        return not (key in self._own or key in self._shared or key in self.base)

    def here(self, key: Key) -> Any:
        """The content of a cell that was written here, None if it was not."""
        value = self._own.get(key)
        if value is None:
            return self._shared.get(key)
        return None if value is GONE else value

    def set(self, key: Key, value: Any) -> None:
        """Write a cell."""
        if self.reads is not None and key not in self.reads:
            self.reads[key] = self.peek(key)
        if key[0] in self.watched:
            self._change(key, value)
        self._own[key] = GONE if value is None else value
        self.log.keys[key] = None
        if value.__class__ in FOLLOWED:
            self.written.append((key, value))

    def put(self, key: Key, value: Any) -> None:
        """Let a cell hold something else, and no write be noted."""
        if key[0] in self.watched:
            self._change(key, value)
        self._own[key] = GONE if value is None else value
        if value.__class__ in FOLLOWED:
            self.written.append((key, value))

    def take(self, key: Key, value: Any) -> None:
        """The same for what a path to here wrote, which noted it: nothing is there."""
        if value is not None:
            if key[0] in self.watched:
                self._change(key, value)
            self._own[key] = value

    def delete(self, key: Key) -> None:
        """Forget a cell."""
        if self.here(key) is not None:
            self.drop(key)
            self.log.keys[key] = None

    def drop(self, key: Key) -> None:
        """Forget a cell that nobody asks for any more, and let no write be noted."""
        if key[0] in self.watched:
            self._change(key, None)
        self._own.pop(key, None)
        if key in self._shared:
            self._own[key] = GONE

    def _change(self, key: Key, value: Any) -> None:
        """Begin another version, unless the cell leads to no leaf, neither before nor after it holds ``value``."""
        after = self.base.get(key) if value is None else value
        if not (_leafless(after) and _leafless(self.peek(key))):
            self.version = next(_VERSIONS)

    def watch(self, owners: Iterable[int]) -> None:
        """Let every write that changes what leaves lie under one of ``owners`` begin another version."""
        version = self.version
        for owner in owners:
            version = max(version, self.watched.setdefault(owner, next(_VERSIONS)))
        if version != self.version:
            # states of this version may hold other things there
            self.version = next(_VERSIONS)

    def end(self, keys: Iterable[Key]) -> None:
        """Forget cells that are gone for good, such as a call's variables: where paths meet nobody looks for them."""
        written = self.log.keys
        for key in keys:
            self.drop(key)
            written.pop(key, None)

    def cells(self) -> Cells:
        """What all cells hold that were written here; good for as long as nothing is written."""
        return Cells(self._own, self._shared)

    def moment(self) -> Cells:
        """What they hold now, for good."""
        return Cells(self._own.copy(), self._shared)

    def weight(self) -> int:
        """What copying it costs, in evaluated syntax nodes."""
        return len(self._own) >> 10

    def fork(self, now: int) -> State:
        """A copy that remembers what is written from here on, from the moment ``now`` of the run."""
        own, shared = self._own, self._shared
        if len(own) > _OWN and len(own) * len(own) > _SHARING * len(shared):
            self._shared = shared = self.cells().as_one()
            self._own = own = {}
        return State(
            own.copy(),
            shared,
            Log(self.log, now),
            self.grad,
            self.reads,
            self.base,
            self.written,
            self.watched,
            self.version,
        )


def _leafless(content: Any) -> bool:
    """Whether what a cell holds is no leaf and leads to none."""
    kind = content.__class__
    if kind is Tensor:
        return content.node is None or not content.node.leaf
    return content is None or kind is Const or kind is Plain


def by_owner(cells: Iterable[Key]) -> dict[int, list[Hashable]]:
    """The names in ``cells``, by the identities that hold something under them."""
    found: dict[int, list[Hashable]] = {}
    for owner, name in cells:
        found.setdefault(owner, []).append(name)
    return found


def written_since(state: State, point: Log) -> dict[Key, None]:
    """The keys that ``state`` has written since it forked off at ``point``, in an order that hashes do not change."""
    keys: dict[Key, None] = {}
    log: Log | None = state.log
    while log is not None and log is not point:
        keys |= log.keys
        log = log.parent
    return keys


def merge(
    states: list[State],
    base: Log,
    join: Callable[[Value, Value], Value],
    before: State,
    maybe: Callable[[Value], Value],
) -> State | None:
    """The state after paths that forked off at ``base`` have met; None if no path gets here.

    A cell that only some of the paths wrote keeps what they wrote. What was there ``before`` and was taken away on some
    of the paths is ``maybe`` still there.
    """
    if not states:
        return None
    first, *others = states
    written = written_since(first, base)
    if others:
        writers: dict[Key, State | None] = dict.fromkeys(written, first)
        for other in others:
            for key in written_since(other, base):
                writers[key] = None if key in writers else other
        partly = _meet(first, others, writers, join, before, maybe)
        written = dict.fromkeys(writers) | partly
    base.keys |= written
    first.log = base
    if any(other.grad is not first.grad for other in others):
        first.grad = None
    return first


def _meet(
    first: State,
    others: list[State],
    writers: dict[Key, State | None],
    join: Callable[[Value, Value], Value],
    before: State,
    maybe: Callable[[Value], Value],
) -> dict[Key, None]:
    """Let the cells of ``first`` hold what they hold on any path; the cells that say which attributes some of the paths
    have not. ``writers`` has the cells that any path wrote, with the path that did, None for several.

    Of an error that is caught there are hundreds of paths, which hold few values: each value is joined once. Of a name
    that chooses one of many classes there are dozens, each with objects of its own: these are handed on.
    """
    partly: dict[Key, None] = {}
    untouched = before.untouched
    mine_of, theirs_of = first._own.get, [other._own.get for other in others]
    # those that share their cells hold the same where their own hold the same
    groups = [list(alike) for _, alike in groupby(others, lambda other: id(other._shared))]
    alike = all(other._shared is first._shared for other in others)
    for key, writer in writers.items():
        name = key[1]
        if writer is not None and name not in (TURNS, FROZEN) and untouched(key) and untouched((key[0], MADE)):
            # no other path has the object, or anything there
            first.take(key, writer.here(key))
            continue
        own: Any = mine_of(key)
        if alike or (own is not None and own is not GONE):
            for get in theirs_of:
                if get(key) is not own:
                    break
            else:
                continue
        if name == FROZEN:
            first.put(key, _frozen_on(-key[0], [(state, state.peek(key)) for state in (first, *others)]))
            continue
        # what a path did not write is what the loaded modules left there
        mine: Any = first.peek(key) if own is None or own is GONE else own
        joined = {id(mine)}
        for group in groups:
            seen = {id(own)} if group[0]._shared is first._shared else set()
            for other in group:
                theirs: Any = other._own.get(key)
                if id(theirs) in seen:
                    continue
                seen.add(id(theirs))
                if theirs is None or theirs is GONE:
                    theirs = other.peek(key)
                if id(theirs) not in joined:
                    joined.add(id(theirs))
                    if (mine is None or theirs is None) and before.peek((key[0], MADE)) is not None:
                        # the object was there before the paths parted
                        partly[(key[0], f"{PARTLY}{key[1]}")] = None
                    first.put(key, _either(key, mine, theirs, first, other, join, before, maybe))
                    mine = first.peek(key)
    for key in partly:
        first.put(key, True)
    return partly


def _either(
    key: Key,
    mine: Any,
    theirs: Any,
    first: State,
    other: State,
    join: Callable[[Value, Value], Value],
    before: State,
    maybe: Callable[[Value], Value],
) -> Any:
    """What a cell holds after two paths that left different things there."""
    if key[1] == TURNS:
        return ()
    if mine is None or theirs is None:
        left = theirs if mine is None else mine
        return maybe(left) if left is before.here(key) and isinstance(left, Value) else left
    if (
        isinstance(mine, tuple)
        and isinstance(before.here(key), tuple)
        and not (mine and theirs)
        and first.here((key[0], CLEARED)) != other.here((key[0], CLEARED))
    ):
        # a list that was cleared on one of the paths
        kept = before.here(key)
        return tuple(maybe(v) if v in kept else v for v in mine or theirs)
    return _join_cells(mine, theirs, join)


def _frozen_on(birth: int, paths: list[tuple[State, Any]]) -> Any:
    """Whether a leaf made at ``birth`` is frozen where paths meet that hold different things of it.

    A path that says nothing of it may be one on which it was never made. Frozen on some of those that have it, or some
    of its parameters: gradients may be needed.
    """
    told = [(state, frozen) for state, frozen in paths if frozen is not None]
    silent = [state for state, frozen in paths if frozen is None]
    if any(frozen is not told[0][1] for _, frozen in told):
        return "maybe"
    made_there = all(birth > _parted(state.log, told[0][0].log) for state in silent)
    return told[0][1] if made_there else "maybe"


def _parted(one: Log, other: Log) -> float:
    """The moment from which on what one of two paths does is not done on the other; infinite if never for sure."""
    mine, theirs = [*_back(one)], [*_back(other)]
    shared = set(mine).intersection(theirs)
    apart = [list(takewhile(lambda log: log not in shared, logs)) for logs in (mine, theirs)]
    if any(log.since == inf for logs in apart for log in logs):
        return inf
    # what a path did since its last fork nobody else did
    return min((logs[0].since for logs in apart if logs), default=inf)


def _back(log: Log | None) -> Iterator[Log]:
    while log is not None:
        yield log
        log = log.parent


def _join_cells(mine: Any, theirs: Any, join: Callable[[Value, Value], Value]) -> Any:
    if isinstance(mine, Value) and isinstance(theirs, Value):
        return join(mine, theirs)
    if isinstance(mine, tuple) and isinstance(theirs, tuple):
        # contents of a sequence: the longer path wins where it extends the other, else element by element
        longer, shorter = (mine, theirs) if len(mine) >= len(theirs) else (theirs, mine)
        if any(
            all(a is b for a, b in zip(longer[i:], shorter, strict=False))
            for i in range(len(longer) - len(shorter) + 1)
        ):
            # one path took something away at an end
            return longer
        return tuple(
            join(value, shorter[i]) if i < len(shorter) and shorter[i] is not value else value
            for i, value in enumerate(longer)
        )
    return mine if mine == theirs else None
