"""The ground the simulated engine stands on: what belongs to a run, identities, moments and places.

A :class:`~codemods.graph.run.run.Run` is made of subjects, a class each, from this one up; ``docs/architecture.md``
lists them in order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cells import Key
from codemods.graph.model.kinds import Marked, PlainKind
from codemods.graph.model.memo import Memo
from codemods.graph.model.nodes import Frame, Node, Place, Unseen, Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.state import State
from codemods.graph.model.trace import Accumulation, Mark, Trace
from codemods.graph.model.values import (
    TEXT,
    Const,
    Function,
    Hook,
    Instance,
    Join,
    Library,
    Method,
    Module,
    Optimizer,
    Partial,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    options_of,
    scalar,
)
from codemods.graph.run.interpreter import Interpreter


class BudgetEnded(Exception):
    """A root took more steps than it may; what it would have shown is unknown."""


def known_as(value: Value) -> object:
    """What tells a tensor, a function or a member of an enumeration from others."""
    if isinstance(value, Function):
        return value.definition
    if isinstance(value, Tensor) and value.node is not None and value.node.leaf:
        # net.weight is one tensor, as often as it is asked for
        return value.node
    return value.value.key if isinstance(value, Const) else value


class Core:
    """State, trace and identities of one simulated run.

    ``budget`` is the number of evaluated syntax nodes that a run may take. From two thirds of it on, calls are no
    longer entered; at its end the run stops and its trace is marked incomplete.
    """

    interpreter: Interpreter
    """Who this run is of."""

    def __init__(self, budget: int = 150_000) -> None:
        self.s: State = State.empty()
        self.dead = False
        self.joined_at: ast.AST | None = None
        """The expression that gave all values which are joined now, where it is one."""
        self.trace = Trace("")
        self.clock = 0
        self.oids = 0
        self.budget = budget
        self.spent = 0
        self.newest = 0
        """When the newest node was made."""
        self.frame: Frame = None  # type: ignore[assignment]
        self.attributes: dict[int, dict[Any, None]] = {}
        """The names (for dicts: cells) under which an object holds anything, in the order in which they came."""
        self.bars: set[int] = set()
        """What progress bars were put around, by identity."""
        self.looked_at: set[str] = set()
        """The files that imports were resolved to, by path below the root."""
        self.entered: dict[ast.AST, ParsedFile] = {}
        self.called: dict[ast.AST, ParsedFile] = {}
        """Functions that were entered because code of the tree calls them, other than themselves."""
        self.active: list[ast.AST] = []
        self.computing: dict[tuple[ast.AST, bool], bool] = {}
        """Of functions, and of methods: whether they only compute."""
        self.values: dict[ast.expr, Value] = {}
        """What each expression gave when it was evaluated last."""
        self.returned_sums: dict[ast.AST, list[Accumulation]] = {}
        """What a call may have let grow by the sum that it returned last: one for each parameter among its terms, which
        is the target."""
        self.walked_at: set[ast.expr] = set()
        """Expressions that made something a backward came to, which proved that it has a graph."""
        self.perhaps_off: set[Node] = set()
        """What was computed where nobody knows whether gradients are on."""
        self.born: dict[int, int] = {}
        """The moment at which each list and dict was made."""
        self.memos: dict[Any, Memo] = {}
        self.class_attributes: set[str] = set()
        """The names under which anything was written to a class."""
        self.unknowns: list[Unknown] | None = None
        """Those that were made since a module is being loaded."""
        self.running: set[int] = set()
        """The ``Sequential`` modules whose children are being run."""
        self.displaced: set[int] = set()
        """Lists whose order of elements is unknown."""
        self.counts: dict[tuple[ast.AST, int, int], Plain] = {}
        """The numbers of turns, by what is gone through."""
        self.began: dict[ast.AST, int] = {}
        """When a loop began last, by what it goes through."""
        self.turned: dict[ast.AST, int] = {}
        """The same of its turns."""
        self.filled: dict[tuple[ast.AST, int], dict[Sequence, None]] = {}
        """The lists into which turns put something where they count to, by what is gone through."""
        self.lengths: dict[int, Value] = {}
        """How many elements lists have that were made by ``[x] * n`` or for each of a range, unless that may have
        changed."""
        self.open_loops: list[int] = []
        """When the loops around began that may take more turns than are run, outermost first."""
        self.repeated: set[int] = set()
        """Lists that were made by ``[x] * n``, by identity: how many elements they have is not followed."""
        self.deferred: dict[int, Any] = {}
        """What generators can read when they go on, by identity."""
        self.uncounted: set[int] = set()
        """Lists that may have more elements than are known, by identity."""
        self.identities: dict[int, tuple[Any, frozenset[int]]] = {}
        """What cells hold, and the identities that changes in place look for in it."""
        self.cells_with: dict[int, dict[Key, None]] = {}
        """The cells in which something with an identity was ever written."""
        self.lists_written: dict[Key, tuple[Any, ...]] = {}
        """What was written last into cells that hold the elements of a list."""
        self.caches: dict[ast.AST, Unseen | None] = {}
        self.unseen_since: dict[Unseen, int] = {}
        """The moments at which code that cannot be seen was called, by what stands for what it made."""
        self.instances: set[int] = set()
        """The objects of the tree's classes, by identity."""
        self.closures: dict[int, int] = {}
        """The frame around each frame in which a function was defined, 0 for none."""
        self.written: set[Key] = set()
        """The cells that the call that ended last has written."""
        self.holders: set[int] = set()
        """The outermost of the things that cannot be seen and into which something attached was put."""
        self.hooks: list[Hook] = []
        self.names_kept: dict[Any, int] = {}
        """The identities under which tensors, functions and members of enumerations keep attributes that code gave
        them, by what tells them from others."""
        self.to_leave: dict[int, list[Callable[[], object]]] = {}
        """What a stack of contexts does where it ends, under its identity: the last comes first."""
        self.buffers: dict[int, Value] = {}
        """The tensors made by ``torch.nn.Buffer``, by its ``id``: what has one as attribute takes no numbers."""
        self.guessed: dict[int, dict[str, None]] = {}
        """Attributes that objects have of bases that cannot be seen, by their identity: what they were taken for."""
        self.attached_gradients = False
        self.gradients: dict[Tensor, Mark] = {}
        """What reads of ``.grad`` gave, with the marks of these reads."""
        """Whether a value that may have a graph was put into the ``.grad`` of a tensor."""
        self.closing: dict[ast.AST, str] = {}
        """The methods that contexts call on what they are given, where they end: ``with closing(connection)``."""
        self.named_as: dict[int, list[Plain]] = {}
        """The computed names under which attributes were written to objects, by their identities."""
        self.naming = TEXT
        """The one under which an attribute is being written."""
        self.class_bodies: list[tuple[Frame, dict[str, Value]]] = []
        """The classes whose bodies are being run, with the frames around them."""
        self.renewed: set[Node] = set()
        """The parameters of modules that leave a weight with its graph behind each forward."""
        self.trying = 0
        """How many ``try`` statements are around what runs."""
        self.catching = 0
        """How many of them swallow the errors of a backward."""
        self.unsettled: set[Hashable] = set()
        """The names of attributes, of variables of files and of elements, and the variables of functions, that code
        writes at times that are not known."""
        self.unsettling: set[int] = set()
        """The classes of which it was noted what their special methods write."""
        self.thrown: list[Value] = []
        """What was raised and is not caught yet."""
        self.left_unbound: dict[tuple[int, ast.If], tuple[tuple[object, ...], list[dict[Key, object]]]] = {}
        """Of each ``if`` that comes out the same in all turns: what decides it, and the names that its two ways left
        unbound in its first turn, with what the other way bound last."""
        self.rebound: dict[Key, int] = {}
        """How often names were bound and attributes written."""
        self.entering_root = False
        """Whether the next function entered is a root: nobody in the tree calls it."""

    # identities and places

    def new_oid(self) -> int:
        """A fresh identity."""
        self.oids += 1
        return self.oids

    def kept_under(self, receiver: Value) -> int:
        """The identity under which something that has none keeps attributes that code gave it."""
        key = known_as(receiver)
        if key not in self.names_kept:
            self.names_kept[key] = self.new_oid()
        return self.names_kept[key]

    def tick(self) -> int:
        """The next moment of the run."""
        self.clock += 1
        return self.clock

    def birth(self) -> int:
        """The next moment of the run, at which a node is made."""
        self.newest = self.tick()
        return self.newest

    def left_out(self, path: str, what: ast.AST, why: str) -> None:
        """Note that a function, or further turns of a loop, are not entered: nothing is proven by what is left out."""
        self.trace.notes.append(f"{path}:{getattr(what, 'lineno', 0)}: not entered, {why}")
        self.trace.cut_short.add(self.frame)
        self.trace.blind.append(self.tick())

    @property
    def tired(self) -> bool:
        """Whether so much of the budget is gone that calls are no longer entered."""
        return self.spent * 3 > self.budget * 2

    @property
    def loading(self) -> bool:
        """Whether a module is being loaded; only what it leaves behind is kept."""
        return self.unknowns is not None

    def place(self, node: ast.AST) -> Place:
        """Here and now, at ``node``."""
        frame = self.frame
        return Place(node, frame.statement, frame, tuple(frame.loops), self.clock)

    def mark(
        self,
        kind: Marked,
        node: ast.AST,
        of: Iterable[Node] | None = None,
        *,
        exact: bool = False,
        by: Value | None = None,
    ) -> None:
        """Record that gradients are needed or tampered with here: those ``of`` these nodes, None if that is unseen."""
        self.tick()
        self.trace.marks.append(Mark(kind, self.place(node), None if of is None else tuple(of), exact, by))

    def unknown(
        self, origin: str = "", node: Node | None = None, *, data: bool = False, public: bool = False
    ) -> Unknown:
        """A fresh thing that cannot be seen."""
        made = Unknown(self.new_oid(), origin, node, data=data, public=public)
        if self.unknowns is not None:
            self.unknowns.append(made)
        return made

    # what a value is, by itself

    @staticmethod
    def options(value: Value) -> tuple[Value, ...]:
        """The possibilities of a value."""
        return options_of(value)

    def add_hook(self, oid: int, leaf: Node | None, args: Arguments, *, before: bool) -> None:
        """Have a function run with each forward of a module (0: of all), as ``register_forward_hook`` gets it."""
        flag = args.keywords.get("with_kwargs")
        keywords = None if args.more else False if flag is None else self.truth(flag)
        self.hooks.append(Hook(oid, leaf, args.get(0, "hook") or args.all()[0], before, keywords))

    def may_be_true(self, flag: Value | None) -> bool:
        """Whether an argument is given that is not seen to be false."""
        return flag is not None and self.truth(flag) is not False

    def truth(self, value: Value) -> bool | None:
        """What ``bool(value)`` gives, None if it cannot be seen."""
        if isinstance(value, Const):
            return bool(value.value)
        if isinstance(value, Library) and value.path in ("typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING"):
            # packages import all their modules under it
            return False
        if isinstance(value, (Module, Optimizer, Function, Method, Partial)):
            return True
        if isinstance(value, Instance):
            return True if value.cls.find("__len__") is None and value.cls.find("__bool__") is None else None
        if isinstance(value, Tuple):
            return bool(value.items)
        if isinstance(value, Join):
            truths = {self.truth(option) for option in value.options}
            return truths.pop() if len(truths) == 1 else None
        return None

    @staticmethod
    def is_none(value: Value) -> bool:
        """Whether a value is surely ``None``."""
        return isinstance(value, Const) and value.value is None

    def is_module(self, value: Value) -> bool:
        """Whether calling it is a forward of an ``nn.Module``."""
        if isinstance(value, Instance):
            return value.cls.is_module
        if isinstance(value, Unknown):
            return value.module is not None
        return isinstance(value, Module)

    def is_scalar(self, value: Value) -> bool:
        """Whether it is a number or a tensor proven to have one element."""
        return scalar(value)

    def is_dimensionless(self, value: Value) -> bool:
        """Whether it is a number or an attached tensor proven to have no dimension."""
        if isinstance(value, Const):
            return isinstance(value.value, (int, float))
        if isinstance(value, Plain):
            return value.kind is PlainKind.NUMBER
        if isinstance(value, (Tensor, Unknown)):
            return value.node is not None and value.node.dimensionless
        if isinstance(value, Join):
            return all(self.is_dimensionless(option) for option in value.options)
        return False
