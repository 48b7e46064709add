"""What a simulated run leaves behind: the events that rules read."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from codemods.graph.model.cells import Cells
from codemods.graph.model.kinds import Altered, Marked, ModuleMode, OldKind
from codemods.graph.model.nodes import Alias, Carrier, Frame, Node, Owned, Place, Value, Walk

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass

    from codemods.graph.model.arguments import Arguments
    from codemods.graph.model.program import ClassInfo
    from codemods.graph.model.values import Function
else:
    from codemods.graph.model.fixed import dataclass

_Said = TypeVar("_Said")


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """An attached value that was read: from an attribute or a container, or from a variable after a later backward or,
    where it was made behind the backward of its turn, in the next one.

    ``nodes`` are the graph nodes in ``value``, ``containers`` the identities of the containers in it.
    """

    carrier: Carrier
    place: Place
    value: Value
    nodes: tuple[Node, ...]
    containers: frozenset[int]


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """A call of an optimizer's ``step``; ``owned`` is what it updates, None where that cannot be seen."""

    place: Place
    optimizer: Value | None
    owned: Owned | None = None
    unnoticed: bool = False
    """Whether it may write through ``.data``, so that no backward refuses what it changed."""

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

    kind: Marked
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

    @property
    def place(self) -> Place:
        """Where and when it began."""
        return Place(self.statement, self.statement, self.frame, self.loops, self.first)


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
    mode: ModuleMode | None = None
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
    old: Value
    added: Value
    new: Value
    carrier: Carrier | None
    grad: bool | None
    parts: tuple[tuple[ast.expr, Value], ...] = ()


GROWN = "grown"
"""The method of a storing where a container takes the place of the one it was made of: ``losses = [*losses, loss]``."""
NAMED = "[name]"
"""The method of a storing under a key that is a known text, which the next one under it replaces."""


@dataclass(frozen=True, eq=False, slots=True)
class Storing:
    """A value put into a container that holds more than one: ``append``, ``extend``, ``d[k] = v``.

    ``nodes`` are those in the value, ``held`` those in the container afterwards, ``parts`` the smallest expressions of
    the value that carry a graph, with their values; ``born`` is the moment at which the container was made; ``copies``
    are the containers that the value is copied from.
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
    copies: tuple[Copied, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Copied:
    """A list or dict that is copied on its way into a container, and holds tensors, numbers and texts only.

    ``pairs`` tells that it is a dict, ``mixed`` that not all of it are tensors. ``whole`` is what gives a copy of it
    and nothing else: a display, a function, or a method, which gives what its class says.
    """

    expression: ast.expr
    pairs: bool
    mixed: bool
    nodes: tuple[Node, ...]
    whole: ast.expr | None


@dataclass(frozen=True, eq=False, slots=True)
class Handing:
    """A call of what cannot be seen that got graphs or models; ``given`` is all that it got, the callee or receiver
    last. ``models`` tells whether it comes to a module with parameters through them."""

    place: Place
    given: tuple[Value, ...]
    models: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Alteration:
    """A tensor that was changed in place; ``value`` is what it was before.

    ``sure`` tells that nothing decides about it that cannot be seen.
    """

    how: Altered
    place: Place
    value: Value
    sure: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class OldForm:
    """Something that is written in another way today: ``kind`` says what, ``subject`` is the expression that it is
    about, and ``value`` what that was."""

    kind: OldKind
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
        self.growths: list[Accumulation] = []
        """Sums that grow in other ways than by ``+``, or by other statements than assignments."""
        self.storings: list[Storing] = []
        self.handed: set[int] = set()
        """Objects of the tree, by identity, that code gets which cannot be seen."""
        self.called_unseen: set[ast.AST] = set()
        """Functions, and classes of objects, that code got which cannot be seen: it may call them at any time."""
        self.hooks: set[ast.AST] = set()
        """Functions of the tree that ran as hooks before or after a forward."""
        self.handings: list[Handing] = []
        self.called: dict[ast.AST, str] = {}
        """The public names of what calls went to: empty where that is of the tree, or not one thing; ``?.name`` for a
        method of what cannot be seen."""
        self.saved: set[ClassInfo] = set()
        """The classes of the tree of which the program saves whole models."""
        self.puts: dict[int, list[int]] = defaultdict(list)
        """When something was put into each dict, by its identity."""
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
        """Where something was asked of a number or None that only a tensor has, or a gradient of a tensor without a
        graph, by path, line and name: True if it was nothing else there, False if that is one possibility of several.
        """
        self.unpacked: set[Node] = set()
        """What recurrent modules made of tensors: of anything else they might make packed sequences."""
        self.given_away: dict[int, list[Place]] = {}
        """Calls of ``Variable(..., volatile=True)``, by identity, whose results unseen code gets, and where."""
        self.cut_short: set[Frame] = set()
        """Entries of functions that made calls which were not entered, because the budget was spent."""
        self.blind: list[int] = []
        """The moments of calls that were not entered: what was stored before may have been back-propagated there."""
        self.caching: list[tuple[int, int]] = []
        """From when to when forwards used the casts that others made of their weights."""
        self.shared_weights: list[tuple[int, int]] = []
        """From when to when forwards shared what parametrizations compute."""
        self.complete = True
        self.notes: list[str] = []
        self._said: dict[object, Any] = {}

    def once(self, ask: Callable[[Trace], _Said]) -> _Said:
        """What ``ask`` says of a run that has ended, worked out once."""
        if ask not in self._said:
            self._said[ask] = ask(self)
        return self._said[ask]  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Break the circles in it when all rules have read it: it goes without a look for garbage."""
        self._said.clear()
        for node in self.nodes:
            node.forget()
        for walk in self.walks:
            walk.cells = Cells({}, {})
            walk.seen.clear()
            walk.again.clear()
