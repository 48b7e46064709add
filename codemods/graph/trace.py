"""What a simulated run leaves behind: the events that rules read."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codemods.graph.values import Carrier, Node, Value

if TYPE_CHECKING:
    from codemods.graph.arguments import Arguments
    from codemods.graph.program import ParsedFile
    from codemods.graph.values import Function


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
    left_unseen: bool = False
    """Whether it returned what code that cannot be seen made while it ran."""

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

    def turns(self) -> list[tuple[ast.AST, int]]:
        """The loops around this point and their turns, outermost first, through all calling frames."""
        turns: list[tuple[ast.AST, int]] = []
        place: Place | None = self
        while place is not None:
            turns[:0] = place.loops
            place = place.frame.call
        return turns

    def chain(self) -> list[Place]:
        """This place and the places of the calls that led here, innermost first."""
        places = [self]
        while (call := places[-1].frame.call) is not None:
            places.append(call)
        return places


@dataclass(eq=False, slots=True)
class Walk:
    """A ``backward`` or ``autograd.grad`` that walked a graph.

    ``retains`` is True, False, or None where the argument is no literal; ``seen`` are the nodes that it walked,
    ``again`` those among them that an earlier walk had been through, with that walk.
    """

    place: Place
    call: ast.Call | None
    roots: tuple[Node, ...]
    kind: str
    retains: bool | None
    creates: bool | None
    retain_argument: str | int | None
    seen: list[Node] = field(default_factory=list)
    again: list[tuple[Node, Walk]] = field(default_factory=list)
    grad: bool | None = True
    with_gradient: bool = False
    cells: dict[Any, Any] = field(default_factory=dict)
    """What every variable and attribute held when it began."""
    inputs: tuple[Node, ...] | None = ()
    """What ``autograd.grad`` takes gradients of, or ``backward`` was told to; None where that cannot be seen."""
    caught: bool = False
    """Whether what it raises may be caught."""

    @property
    def ran(self) -> tuple[int, str]:
        """The cell that says on each path whether it came this way."""
        return 0, f"walk {self.place.clock}"

    def follows(self, earlier: Walk) -> bool:
        """Whether a path leads from ``earlier`` to this walk."""
        return earlier.ran in self.cells


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """An attached value that was read: from an attribute or a container, or from a variable after a later backward.

    ``nodes`` are the graph nodes in ``value``, ``containers`` the identities of the containers in it.
    """

    carrier: Carrier
    place: Place
    value: Value
    nodes: tuple[Node, ...]
    containers: frozenset[int]


@dataclass(frozen=True, slots=True)
class Owned:
    """The parameters that an optimizer (or what was given for one) stands for, by the leaves of the graph.

    ``exact`` tells that all of what each leaf stands for is among them; ``more`` that there may be others.
    """

    leaves: tuple[Node, ...]
    exact: bool
    more: bool


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """A call of an optimizer's ``step``; ``owned`` is what it updates, None where that cannot be seen."""

    place: Place
    optimizer: Value | None
    owned: Owned | None = None

    @property
    def leaves(self) -> tuple[Node, ...] | None:
        """The leaves of the parameters that it updates, None where not all of them can be seen."""
        return None if self.owned is None or self.owned.more else self.owned.leaves or None


@dataclass(frozen=True, eq=False, slots=True)
class Mark:
    """Something that needs gradients or tampers with them: ``kind`` says what.

    ``of`` are the graph nodes that it concerns (leaves, where it is about gradients), None where that cannot be seen.
    ``exact`` tells that it concerns all that these leaves stand for; ``by`` is the optimizer or module that does it.
    """

    kind: str
    place: Place
    of: tuple[Node, ...] | None = None
    exact: bool = False
    by: Value | None = None

    @property
    def leaves(self) -> tuple[Node, ...] | None:
        """The nodes that it concerns, None where none of them can be seen."""
        return self.of or None


@dataclass(frozen=True, eq=False, slots=True)
class Ran:
    """One execution of a statement: all that was created and marked while ``first <= clock < last``."""

    statement: ast.stmt
    frame: Frame
    loops: tuple[tuple[ast.AST, int], ...]
    first: int
    last: int


@dataclass(frozen=True, eq=False, slots=True)
class Forward:
    """A call of a module, or of a method of one, that is not itself part of another forward.

    ``first <= clock < last`` spans what it recorded; ``grad`` tells whether gradients were on.
    """

    place: Place
    module: Value
    first: int
    last: int
    grad: bool | None
    method: str
    args: Arguments
    volatile: tuple[Place, ...] = ()
    """Where the ``Variable(..., volatile=True)`` stand that its inputs come from."""
    mode: str = ""
    """eval or train where that was called on the module, loaded where a state dict was loaded into it, or empty."""
    closed: Function | None = None
    """The method of the tree that was called, if what it returned is proven to carry no graph."""


@dataclass(frozen=True, eq=False, slots=True)
class Accumulation:
    """``total += value`` and its relatives: ``old`` is what the target held, ``added`` what came to it, ``new`` the
    sum.

    ``parts`` are the smallest expressions of what came to it that carry a graph, with their values: factors that are
    plain numbers are left out.
    """

    place: Place
    target: ast.expr
    added_expr: ast.expr
    old: Value
    added: Value
    new: Value
    carrier: Carrier | None
    grad: bool | None
    parts: tuple[tuple[ast.expr, Value], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Storing:
    """A value put into a container that holds more than one: ``append``, ``extend``, ``d[k] = v``.

    ``nodes`` are those in the value, ``held`` those in the container afterwards, ``parts`` the smallest expressions of
    the value that carry a graph, with their values; ``born`` is the moment at which the container was made.
    """

    place: Place
    container: Value
    value_expr: ast.expr
    value: Value
    method: str
    grad: bool | None
    nodes: tuple[Node, ...] = ()
    held: tuple[Node, ...] = ()
    parts: tuple[tuple[ast.expr, Value], ...] = ()
    born: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Handing:
    """A call of what cannot be seen that got graphs; ``given`` is all that it got, the callee or receiver last."""

    place: Place
    given: tuple[Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Alias:
    """A tensor without history that shares its memory with ``given``: ``form`` is variable, data or detach.

    The node of ``place`` is the call, or for ``x.data`` the attribute. ``source`` is set where a tensor may share the
    memory of that alias, or may be a copy.
    """

    form: str
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
        return Alias(self.form, self.place, self.given, self.grad, self.origin)


@dataclass(frozen=True, eq=False, slots=True)
class Alteration:
    """A tensor that was changed in place; ``value`` is what it was before.

    ``how``: ``values``, ``attached`` (values with a history came in), ``shape`` (the object itself changed, and not its
    memory), ``requires_grad`` or ``volatile``.
    """

    how: str
    place: Place
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class OldForm:
    """Something that is written in another way today: ``kind`` says what, ``subject`` is the expression that it is
    about, and ``value`` what that was."""

    kind: str
    place: Place
    subject: ast.expr
    value: Value


class Trace:
    """The record of one simulated run of one root: a script, or a function that nothing in the tree calls."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.roots: list[ast.AST] = []
        """The functions that were run for themselves, where the root is no script."""
        self.nodes: list[Node] = []
        self.walks: list[Walk] = []
        self.steps: list[Step] = []
        self.marks: list[Mark] = []
        self.ran: list[Ran] = []
        self.frames: list[Frame] = []
        self.forwards: list[Forward] = []
        self.accumulations: list[Accumulation] = []
        self.storings: list[Storing] = []
        self.handed: set[int] = set()
        """Objects of the tree, by identity, that code gets which cannot be seen."""
        self.handings: list[Handing] = []
        self.called: dict[ast.AST, str] = {}
        """The public names of what calls went to: empty where that is of the tree, or not one thing; ``?.name`` for a
        method of what cannot be seen."""
        self.emptied: list[tuple[int, int]] = []
        """Containers from which something was taken, by identity, with the moment."""
        self.readings: list[Reading] = []
        self.plain: set[ast.AST] = set()
        """Names and attributes that at some time were read as something that is no tensor: a number, a text, None."""
        self.aliases: list[Alias] = []
        self.alterations: list[Alteration] = []
        self.drawn: list[tuple[tuple[Alias, ...], Node]] = []
        """Aliases that became part of a graph, with the node that may save them."""
        self.old: list[OldForm] = []
        self.misuses: dict[tuple[str, int, str], bool] = {}
        """Where something was asked of a number or None that only a tensor has, by path, line and name: True if it was
        nothing else there, False if that is one possibility of several."""
        self.unpacked: set[Node] = set()
        """What recurrent modules made of tensors: of anything else they might make packed sequences."""
        self.given_away: dict[int, list[Place]] = {}
        """Calls of ``Variable(..., volatile=True)``, by identity, whose results unseen code gets, and where."""
        self.cut_short: set[Frame] = set()
        """Entries of functions that made calls which were not entered, because the budget was spent."""
        self.blind: list[int] = []
        """The moments of calls that were not entered: what was stored before may have been back-propagated there."""
        self.complete = True
        self.notes: list[str] = []

    def forget(self) -> None:
        """Break the circles in it when all rules have read it: it goes without a look for garbage."""
        for node in self.nodes:
            node.forget()
        for walk in self.walks:
            walk.cells.clear()
            walk.seen.clear()
            walk.again.clear()
