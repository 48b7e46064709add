"""Nodes of the simulated graph, the places that made them and the walks that came through them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from codemods.graph.model.cells import Cells
from codemods.graph.model.kinds import NodeKind, WalkKind

if TYPE_CHECKING:
    from dataclasses import dataclass

    from codemods.graph.model.kinds import AliasForm, CarrierKind, Escape, UnseenKind, UseKind
    from codemods.graph.model.program import ParsedFile
    from codemods.graph.model.values import Function
else:
    from codemods.graph.model.fixed import dataclass


@dataclass(eq=False, slots=True)
class Frame:
    """One entry of a function (or of a module's top level, where ``function`` is None).

    ``call`` is the place that called it, None for a root. ``inside_module`` tells whether this or an outer frame is a
    method of an ``nn.Module`` that was called as part of a forward.
    """

    fid: int
    file: ParsedFile
    function: Function | None
    call: Place | None
    depth: int
    inside_module: bool = False
    receiver: Value | None = None
    loops: list[tuple[ast.AST, int]] = field(default_factory=list)
    statement: ast.stmt | None = None
    names: set[str] = field(default_factory=set)
    scopes: list[tuple[int, frozenset[str]]] = field(default_factory=list)
    """Owner and variables of the comprehensions that run, the innermost last: a variable of theirs ends with them."""
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    captured: bool = False
    birth: int = 0
    end: int = -1
    caught: Value | None = None
    """The exception that is being handled."""
    grad: bool | None = True
    """Whether gradients were recorded when it was entered."""
    yields: list[Value] = field(default_factory=list)
    yielded: int = 0
    """When it last handed on to whoever asks it for values: what it does after that, it does later."""
    sent: list[Value] = field(default_factory=list)
    """What its ``yield`` gave: whatever is sent to the generator."""
    module_globals: int = 0
    root: bool = False
    """Whether nothing in the tree called it: its arguments are unknown."""
    handed: bool = False
    """Whether it was called by code that cannot be seen, which may call it again."""
    left: tuple[Node, ...] = ()
    """The graphs made in it that outlive it: what it returned, and what it left in things that were there before. Not
    noted of what runs inside a forward."""
    held: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    """Those that only attributes of objects hold which the program made itself, by the name of the attribute."""
    took: dict[ast.Subscript, list[Node]] = field(default_factory=dict)
    """What it took out of lists, tuples and dicts of its program, by the expressions that did."""
    left_unseen: bool = False
    """Whether it returned what code that cannot be seen made while it ran."""
    around: tuple[tuple[ast.AST, int], ...] = field(init=False)
    """The loops around the call and their turns, outermost first, through all calling frames."""

    def __post_init__(self) -> None:
        self.around = self.call.turns() if self.call is not None else ()

    def owners(self, name: str) -> Iterator[int]:
        """What may hold a local variable of this name: the comprehensions that run, from within, then itself."""
        yield from (owner for owner, names in reversed(self.scopes) if name in names)
        yield self.fid

    def outward(self) -> Iterator[Frame]:
        """This frame and those of its callers."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.call.frame if frame.call is not None else None

    @property
    def definition(self) -> ast.AST | None:
        """The ``def`` or lambda that runs, None for a module's top level."""
        return self.function.definition if self.function is not None else None


@dataclass(frozen=True, eq=False, slots=True)
class Place:
    """A point of the simulated run: the node of the syntax tree, its statement, the frame and the turns of its
    loops."""

    node: ast.AST
    statement: ast.stmt | None
    frame: Frame
    loops: tuple[tuple[ast.AST, int], ...]
    clock: int

    @property
    def path(self) -> str:
        """The display path of the file."""
        return self.frame.file.path

    @property
    def line(self) -> int:
        """The line of the node, from 1."""
        return getattr(self.node, "lineno", 0)

    def turns(self) -> tuple[tuple[ast.AST, int], ...]:
        """The loops around this point and their turns, outermost first, through all calling frames."""
        return self.frame.around + self.loops

    def chain(self) -> list[Place]:
        """This place and the places of the calls that led here, innermost first."""
        places = [self]
        while (call := places[-1].frame.call) is not None:
            places.append(call)
        return places

    def seen_from(self, frame: Frame) -> Place | None:
        """This place as a frame sees it: where the frame is, or the call in it that led here; None if neither is."""
        place: Place | None = self
        while place is not None and place.frame is not frame:
            place = place.frame.call
        return place


class Use(NamedTuple):
    """One reading of a value: ``name`` is the method, attribute or function.

    ``detached`` tells that what was read is a tensor without history that comes from the value.
    """

    kind: UseKind
    place: Place
    name: str = ""
    detached: bool = False


@dataclass(eq=False, slots=True)
class Walk:
    """A ``backward`` or ``autograd.grad`` that walked a graph.

    ``retains`` is True, False, or None where the argument is no literal; ``seen`` are the nodes of its graph, ``again``
    those among them that it goes through as an earlier walk did, with that walk.
    """

    place: Place
    call: ast.Call | None
    roots: tuple[Node, ...]
    kind: WalkKind
    retains: bool | None
    creates: bool | None
    retain_argument: str | int | None
    seen: list[Node] = field(default_factory=list)
    again: list[tuple[Node, Walk]] = field(default_factory=list)
    grad: bool | None = True
    with_gradient: bool = False
    weighed: tuple[Node, ...] = ()
    """What the gradient that a ``backward`` was given was computed of, or detached from."""
    cells: Cells = field(default_factory=lambda: Cells({}, {}))
    """What every variable and attribute held when it began."""
    inputs: tuple[Node, ...] | None = ()
    """What ``autograd.grad`` takes gradients of, or ``backward`` was told to; None where that cannot be seen."""
    caught: bool = False
    """Whether what it raises may be caught."""
    handed: bool = False
    """Whether a method that cannot be seen was given the loss: that it walks it only its name says."""
    asked: bool | None = False
    """Whether its graph is to be kept, in this run; None where that cannot be seen."""
    asked_by: tuple[Place, str] | None = None
    """The call of a function of the tree that says so by a literal, and the keyword, where the backward itself does
    not."""
    _through: frozenset[Node] | None = None

    @property
    def ran(self) -> tuple[int, str]:
        """The cell that says on each path whether it came this way."""
        return 0, f"walk {self.place.clock}"

    @property
    def through(self) -> frozenset[Node] | None:
        """What it goes through of its graph, where it takes gradients of some nodes only; None where that is all.

        Behind its inputs it computes and frees nothing; ``backward`` computes with them (ran: torch 2.13).
        """
        if self.inputs and self._through is None:
            # all descendants of a parameter are most of the run: what lies in this graph is looked for from there
            inputs = frozenset(self.inputs)
            found: set[Node] = set()
            for node in sorted(self.seen, key=lambda n: n.birth):
                begins = not inputs.isdisjoint(node.parents) if self.kind is WalkKind.GRAD else node in inputs
                if begins or not found.isdisjoint(node.parents):
                    found.add(node)
            self._through = frozenset(found)
        return self._through

    def goes_through(self, node: Node) -> bool:
        """Whether it computes with a node of its graph, and frees it."""
        return self.through is None or node in self.through

    def follows(self, earlier: Walk) -> bool:
        """Whether a path leads from ``earlier`` to this walk."""
        return earlier.ran in self.cells


@dataclass(frozen=True, slots=True)
class Owned:
    """The parameters that an optimizer (or what was given for one) stands for, by the leaves of the graph.

    ``exact`` tells that all of what each leaf stands for is among them; ``more`` that there may be others.
    """

    leaves: tuple[Node, ...]
    exact: bool
    more: bool


@dataclass(frozen=True, eq=False, slots=True)
class Alias:
    """A tensor without history that shares its memory with ``given``; ``form`` tells what made it.

    The node of ``place`` is the call, or for ``x.data`` the attribute. ``source`` is set where a tensor may share the
    memory of that alias, or may be a copy.
    """

    form: AliasForm
    place: Place
    given: Value
    grad: bool | None
    source: Alias | None = None

    @property
    def origin(self) -> Alias:
        """Itself, or the alias whose memory it may share."""
        return self if self.source is None else self.source

    def perhaps(self) -> Alias:
        """The same of something that may be a copy."""
        return self if self.source is not None else Alias(self.form, self.place, self.given, self.grad, self)


@dataclass(eq=False, slots=True)
class Node:
    """One node of the simulated autograd graph.

    ``parents`` are the nodes it was computed from. ``saves`` tells whether the operation keeps tensors for its
    backward: only such a node can raise when it is walked a second time. ``certain`` is proof that a real run has this
    node: a parameter takes part, or ``backward`` was called on it. ``scalar`` is proof that it has one element,
    ``dimensionless`` that it has no dimension, as a reduced loss. ``public`` tells of a module's forward that it is a
    library's, known by its public name, and keeps no graph, frozen or not.
    """

    birth: int
    kind: NodeKind
    parents: tuple[Node, ...]
    place: Place
    saves: bool = field(kw_only=True)
    certain: bool = field(kw_only=True)
    scalar: bool = field(default=False, kw_only=True)
    dimensionless: bool = field(default=False, kw_only=True)
    label: str = field(default="", kw_only=True)
    public: bool = field(default=False, kw_only=True)
    walks: list[Walk] = field(default_factory=list, init=False)
    uses: list[Use] = field(default_factory=list, init=False)
    stores: list[tuple[Carrier, Place]] = field(default_factory=list, init=False)
    reads: list[tuple[Carrier, Place]] = field(default_factory=list, init=False)
    escapes: list[Escape] = field(default_factory=list, init=False)
    children: list[Node] = field(default_factory=list, init=False)
    shadow: Shadow = field(default=(), init=False)
    leaf: bool = field(init=False)
    """Whether it is a leaf: leaves gather gradients, they are not freed and shared by all steps."""

    def __post_init__(self) -> None:
        self.leaf = self.kind is NodeKind.LEAF
        for parent in self.parents:
            parent.children.append(self)

    @property
    def operation(self) -> str:
        """The operation alone: after a colon its label may tell that the other operand is a number."""
        return self.label.partition(":")[0]

    def ancestors(self, seen: set[int] | None = None) -> Iterator[Node]:
        """This node and everything it was computed from, each once; nothing that was ``seen``, by its ``id``."""
        seen = set() if seen is None else seen
        stack = [] if id(self) in seen else [self]
        seen.add(id(self))
        while stack:
            node = stack.pop()
            yield node
            for parent in node.parents:
                if id(parent) not in seen:
                    seen.add(id(parent))
                    stack.append(parent)

    def descendants(self) -> Iterator[Node]:
        """This node and everything computed from it, each once."""
        seen = {id(self)}
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            for child in node.children:
                if id(child) not in seen:
                    seen.add(id(child))
                    stack.append(child)

    def forget(self) -> None:
        """Break the circles that it is part of, for a node that nobody asks any more."""
        self.parents = ()
        for events in (self.walks, self.uses, self.stores, self.reads, self.children):
            events.clear()

    def __repr__(self) -> str:
        return f"<{self.kind.value} {self.label} #{self.birth} line {getattr(self.place.node, 'lineno', 0)}>"


def all_ancestors(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes and everything they were computed from, each once."""
    seen: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(node.parents)


def all_descendants(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes and everything computed from them, each once."""
    seen: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(node.children)


@dataclass(frozen=True)
class Carrier:
    """What holds a value: ``name`` of a ``kind``, owned by frame or object ``owner``."""

    kind: CarrierKind
    owner: int
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Unseen:
    """A graph that a value may carry although none is known; ``kind`` tells where it may come from."""

    kind: UnseenKind
    name: str


Shadow = tuple["Node | Place | Unseen", ...]
"""Where a value without history comes from: nodes it was detached from, places of ``Variable(..., volatile=True)``, and
what may be a graph that cannot be seen."""


class Value:
    """Base of all symbols; ``node`` is the graph node that the value carries, if it is known to carry one."""

    __slots__ = ()
    node: Node | None = None
