"""What a name can hold while a program is simulated: symbols instead of tensors.

Values are immutable or are identities (``oid``) whose contents live in the :class:`~codemods.graph.state.State`, so
that branches can be run both ways and joined. Only :class:`Node`, the simulated ``grad_fn``, keeps a history of its
own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codemods.graph.program import ClassInfo, ParsedFile
    from codemods.graph.trace import Alias, Owned, Place, Walk


class Node:
    """One node of the simulated autograd graph.

    ``parents`` are the nodes it was computed from. ``saves`` tells whether the operation keeps tensors for its
    backward: only such a node can raise when it is walked a second time. ``certain`` is proof that a real run has this
    node: a parameter takes part, or ``backward`` was called on it. ``scalar`` is proof that it has one element,
    ``dimensionless`` that it has no dimension, as a reduced loss. ``kind`` is ``leaf`` (a parameter or an input that
    asks for gradients), ``module`` (output of a module), ``op``, ``phi`` (either of its parents), ``part`` (an element
    or attribute of something opaque), ``call`` (a call that cannot be seen) or ``argument`` (an argument that nobody in
    the tree passes: it may be attached outside).
    """

    __slots__ = (
        "birth",
        "certain",
        "children",
        "dimensionless",
        "escapes",
        "kind",
        "label",
        "parents",
        "place",
        "saves",
        "scalar",
        "shadow",
        "stale_reads",
        "stores",
        "uses",
        "walks",
    )

    def __init__(
        self,
        birth: int,
        kind: str,
        parents: tuple[Node, ...],
        place: Place,
        *,
        saves: bool,
        certain: bool,
        scalar: bool = False,
        dimensionless: bool = False,
        label: str = "",
    ) -> None:
        self.birth = birth
        self.kind = kind
        self.parents = parents
        self.place = place
        self.saves = saves
        self.certain = certain
        self.scalar = scalar
        self.dimensionless = dimensionless
        self.label = label
        self.walks: list[Walk] = []
        self.uses: list[tuple[str, Place]] = []
        self.stores: list[tuple[Carrier, Place]] = []
        self.stale_reads: list[tuple[Carrier, Place]] = []
        self.escapes: list[str] = []
        self.children: list[Node] = []
        self.shadow: Shadow = ()
        for parent in parents:
            parent.children.append(self)

    @property
    def leaf(self) -> bool:
        """Whether it is a leaf: leaves gather gradients, they are not freed and shared by all steps."""
        return self.kind == "leaf"

    def ancestors(self) -> Iterator[Node]:
        """This node and everything it was computed from, each once."""
        seen = {id(self)}
        stack = [self]
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
        for events in (self.walks, self.uses, self.stores, self.stale_reads, self.children):
            events.clear()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.label} #{self.birth} line {getattr(self.place.node, 'lineno', 0)}>"


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
    """What holds a value: ``name`` of a ``kind``, owned by frame or object ``owner``.

    The kinds are local, global, attribute, element, and held: an element that became what it is after it was put there.
    """

    kind: str
    owner: int
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Unseen:
    """A graph that a value may carry although none is known.

    ``kind``: what an unseen ``call`` made, an ``argument`` of a root, an ``attribute`` that nothing in sight sets, or
    something ``lost``: taken from where the simulation does not know what lies there, perhaps a graph that it knows.
    """

    kind: str
    name: str


Shadow = tuple["Node | Place | Unseen", ...]
"""Where a value without history comes from: nodes it was detached from, places of ``Variable(..., volatile=True)``, and
what may be a graph that cannot be seen."""


class Value:
    """Base of all symbols; ``node`` is the graph node that the value carries, if it is known to carry one."""

    __slots__ = ()
    node: Node | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Const(Value):
    """A Python constant: None, a bool, a number, a string."""

    value: Any

    @property
    def node(self) -> None:  # type: ignore[override]
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Plain(Value):
    """Certainly no tensor and never attached: a number, a string, a numpy array, a shape."""

    kind: str = "number"
    begin: str = ""
    """What a text begins with, as far as that is known; ``end`` what it ends with."""
    end: str = ""

    def may_be(self, text: str) -> bool:
        """Whether it may be a certain text."""
        known = len(self.begin) + len(self.end)
        return len(text) >= known and text.startswith(self.begin) and text.endswith(self.end)

    @property
    def node(self) -> None:  # type: ignore[override]
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Tensor(Value):
    """A tensor; ``node`` None means that it certainly has no history. ``scalar`` means proven to have one element."""

    node: Node | None = None
    scalar: bool = False
    index: bool = False
    """Whether it holds integers or booleans, which never carry gradients."""
    shadow: Shadow = ()
    aliases: tuple[Alias, ...] = ()
    """By what it shares its memory with other tensors, outside of the graph: ``x.detach()``, ``x.data``,
    ``Variable(x)``."""
    either: tuple[Tensor, ...] = ()
    """Where branches met: the tensors without history of which it is one."""
    bases: tuple[Tensor, ...] = ()
    """The tensors whose memory it may share: what it is a view of, what it was before it was changed in place."""


@dataclass(frozen=True, eq=False, slots=True)
class Tuple(Value):
    """An immutable sequence of known values; ``names`` are those of its fields, if it has any."""

    items: tuple[Value, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Join(Value):
    """One of several: what branches left in one place, at most one of each sort."""

    options: tuple[Value, ...]


@dataclass(eq=False, slots=True)
class Unknown(Value):
    """Something that cannot be seen, with an identity: what is learned about it later stays with it.

    ``origin`` is a full public name where it is ``public``, else what the program calls it, which says nothing.
    ``module`` is set when it behaves like an ``nn.Module`` (``eval``, ``parameters`` and the like were called on it).
    """

    oid: int
    origin: str = ""
    node: Node | None = None
    module: Module | None = None
    members: dict[str, Unknown] = field(default_factory=dict)
    data: bool = False
    """Whether it came out of a data loader, a file or an array: plain data that carries no history."""
    shadow: Shadow = ()
    owner: Unknown | None = None
    """What it is an attribute or an element of."""
    public: bool = False
    """Whether it came from a library whose name it bears, or is part of such a thing."""

    @property
    def path(self) -> str:
        """The public name of what it is, of a call that made it, or of what it belongs to; else empty."""
        return self.origin if self.public else ""


@dataclass(frozen=True, eq=False, slots=True)
class Sequence(Value):
    """A mutable list, deque or set; contents in the state under (oid, ITEMS) as a tuple and (oid, REST)."""

    oid: int
    kind: str = "list"


@dataclass(frozen=True, eq=False, slots=True)
class Mapping(Value):
    """A dict; contents in the state under (oid, ("key", constant)) and (oid, REST)."""

    oid: int


@dataclass(frozen=True, eq=False, slots=True)
class Module(Value):
    """An ``nn.Module`` of the library or of an unknown class; ``name`` is its class in ``torch.nn`` or empty.

    ``leaf`` stands for its parameters, None if it has none.
    """

    oid: int
    name: str
    leaf: Node | None = None
    scalar_output: bool = False
    dimensionless_output: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Instance(Value):
    """An object of a class that stands in the tree; attributes in the state under (oid, name)."""

    oid: int
    cls: ClassInfo
    leaf: Node | None = None
    """For modules: what stands for parameters of bases that cannot be seen."""


@dataclass(frozen=True, eq=False, slots=True)
class Optimizer(Value):
    """An optimizer; ``params`` are the modules, instances or leaves whose parameters it owns.

    ``once`` says that a step evaluates its closure once, as those of torch do but for LBFGS (docs: torch.optim).
    """

    oid: int
    params: tuple[Value, ...] = ()
    owned: Owned | None = None
    """Its parameters when it was made; None where they cannot be seen."""
    cls: ClassInfo | None = None
    """Its class, if that stands in the tree."""
    once: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Parameters(Value):
    """What ``module.parameters()`` gives, or one element of it."""

    owner: Value
    named: bool = False
    element: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Function(Value):
    """A function or lambda of the tree with the frame it closes over."""

    definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    file: ParsedFile
    closure: int
    grad_mode: bool | str | None = ""
    """What a decorator sets: False for ``no_grad``, True for ``enable_grad``, None for unknown, "" for nothing."""
    cls: ClassInfo | None = None
    kind: str = "function"
    """function, staticmethod, classmethod or property"""
    defaults: tuple[Value, ...] = ()
    kw_defaults: tuple[tuple[str, Value], ...] = ()
    module_globals: int = 0
    """What owns the globals that it sees."""
    wrapped: bool = False
    """Whether something decorates it that may keep what it returns."""


@dataclass(frozen=True, eq=False, slots=True)
class Method(Value):
    """A function bound to an object, or a method (``name``) of something that is not in the tree."""

    receiver: Value
    function: Function | None
    name: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Class(Value):
    """A class of the tree."""

    info: ClassInfo


@dataclass(frozen=True, eq=False, slots=True)
class Library(Value):
    """Something outside the tree, by its full dotted name."""

    path: str


@dataclass(frozen=True, eq=False, slots=True)
class TreeModule(Value):
    """A Python module of the tree by its path below the root, or a folder (with ``/`` behind it) without
    ``__init__``."""

    path: str


@dataclass(frozen=True, eq=False, slots=True)
class Imported(Value):
    """``name`` of a module of the tree: looked up when it is used, not when it is imported."""

    module: TreeModule
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Super(Value):
    """``super()`` in a method of ``cls`` on ``receiver``."""

    cls: ClassInfo
    receiver: Value


@dataclass(frozen=True, eq=False, slots=True)
class GradMode(Value):
    """A context manager that sets gradient recording: True, False, or None where that cannot be seen.

    ``switched`` means that making it set the mode already (``set_grad_enabled``); ``previous`` is the mode before that.
    """

    enabled: bool | None
    previous: bool | None = None
    switched: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Partial(Value):
    """``functools.partial``: a callable with arguments already given."""

    function: Value
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Namespace(Value):
    """``vars(obj)``, ``obj.__dict__``, ``globals()`` or ``locals()``: what the owner ``oid`` holds under its names, as
    a dict that writes through. ``of`` is the object, None for variables."""

    oid: int
    of: Value | None = None


CONTAINING = frozenset({Join, Tuple, Sequence, Mapping, Parameters, Partial, Namespace})
"""Values that may hold others that carry graph nodes, beside methods and objects of derived containers."""


def may_carry(value: Value | None) -> bool:
    """Whether a value may have graph nodes in it: cheaper than to look for them."""
    kind = value.__class__
    if kind is Tensor or kind is Unknown:
        return value.node is not None  # type: ignore[union-attr]
    if isinstance(value, Instance):
        return bool(value.cls.container)
    if isinstance(value, Method):
        return value.function is None and may_carry(value.receiver)
    return kind in CONTAINING


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)
NUMBER = Plain("number")
TEXT = Plain("text")
ARRAY = Plain("array")
DATA = Tensor(None)
INDEX = Tensor(None, index=True)


def formatted(pattern: Value, sign: str) -> Plain:
    """What ``"..." % value`` gives, or ``format``: the text up to the first ``sign`` stays as it is."""
    if not isinstance(pattern, Const) or not isinstance(pattern.value, str) or sign not in pattern.value:
        return TEXT
    # a sign or a brace that is written twice stands for itself
    return (
        TEXT
        if any(twice in pattern.value for twice in ("%%", "{{", "}}"))
        else Plain("text", pattern.value.partition(sign)[0])
    )
