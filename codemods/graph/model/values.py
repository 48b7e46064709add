"""What a name can hold while a program is simulated: symbols instead of tensors.

Values are immutable or are identities (``oid``) whose contents live in the
:class:`~codemods.graph.model.state.State`, so that branches can be run both ways and joined.
"""

from __future__ import annotations

import ast
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

from codemods.graph.model.kinds import FunctionKind, GradSetting, PlainKind, SequenceKind
from codemods.graph.model.nodes import Node, Shadow, Value

if TYPE_CHECKING:
    from dataclasses import dataclass

    from codemods.graph.model.nodes import Alias, Owned
    from codemods.graph.model.program import ClassInfo, ParsedFile
else:
    from codemods.graph.model.fixed import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Const(Value):
    """A Python constant: None, a bool, a number, a string, a member of an enumeration."""

    value: Any

    @property
    def node(self) -> None:  # type: ignore[override]
        return None


_NUMBER = re.compile(r"-?\d+")
"""What ``str`` writes of a number that counts."""


@dataclass(frozen=True, eq=False, slots=True)
class Plain(Value):
    """Certainly no tensor and never attached: a number, a string, a numpy array, a shape."""

    kind: PlainKind = PlainKind.NUMBER
    begin: str = ""
    """What a text begins with, as far as that is known; ``end`` what it ends with."""
    end: str = ""
    turn: int | None = None
    """Of a number that counts the turns of a loop, or a name that is another in each: in which turn, of those that are
    run; of a range, 0 where it begins there. Of itself nothing is known, for later turns are like these."""
    counts: tuple[ast.AST, int] | None = None
    """What is gone through in these turns: the expression, and the identity of what gives the names. Without a
    ``turn`` it is the number of the turn before."""
    number: bool = False
    """Whether between the ends of a text a number stands that counts, as ``str`` writes it."""
    shares: Value | None = None
    """The tensor whose memory an array shares."""
    shows: frozenset[Node] = frozenset()
    """The graphs that a text tells of: what ``str`` makes of a tensor says whether it has one."""

    def may_be(self, text: str) -> bool:
        """Whether it may be a certain text."""
        known = len(self.begin) + len(self.end)
        if len(text) < known or not text.startswith(self.begin) or not text.endswith(self.end):
            return False
        return not self.number or bool(_NUMBER.fullmatch(text, len(self.begin), len(text) - len(self.end)))

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
    """The tensors whose memory it may share: what it is a view of, what it was before it was changed in place; of a
    chain of these only the first."""
    gradient: bool = False
    """Whether it was read as ``.grad``."""


@dataclass(frozen=True, eq=False, slots=True)
class Tuple(Value):
    """An immutable sequence of known values; ``names`` are those of its fields, if it has any."""

    items: tuple[Value, ...]
    names: tuple[str, ...] = ()
    closed: bool = False
    """Whether it certainly has no attributes but these and those of every tuple."""

    def lacks(self, name: str) -> bool:
        """Whether to read an attribute raises."""
        return self.closed and name not in self.names and not hasattr(tuple, name)


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
    within: Unknown | None = None
    """What code that cannot be seen made of a module, where it is that: itself."""
    as_module: bool = False
    """Whether something was asked of it that only a module has."""

    @property
    def path(self) -> str:
        """The public name of what it is, of a call that made it, or of what it belongs to; else empty."""
        return self.origin if self.public else ""


@dataclass(frozen=True, eq=False, slots=True)
class Hook:
    """What runs before or after each forward of a module: ``oid`` is the module's, ``leaf`` what stands for its
    parameters; ``keywords``: whether it gets the named arguments, too (None: not known)."""

    oid: int
    leaf: Node | None
    function: Value
    before: bool
    keywords: bool | None


@dataclass(frozen=True, eq=False, slots=True)
class Sequence(Value):
    """A mutable list, deque or set; contents in the state under (oid, ITEMS) as a tuple and (oid, REST)."""

    oid: int
    kind: SequenceKind = SequenceKind.LIST
    bounded: bool = False
    """Whether the oldest item goes when one comes that is too many."""


@dataclass(frozen=True, eq=False, slots=True)
class Mapping(Value):
    """A dict; contents in the state under (oid, ("key", constant)) and (oid, REST)."""

    oid: int


WRAPPED = "[wrapped]"
"""The cell of a model that was given to an object which has none of its attributes: they lie in ``module``."""


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
    inplace: bool = False
    """Whether it may write its output into its input, or, of one with parameters, change these in a forward."""
    overwrites: bool = False
    """Whether it surely writes its output into its input, whatever mode it is in."""
    within: Unknown | None = None
    """What code that cannot be seen made of it, where it is that."""


@dataclass(frozen=True, eq=False, slots=True)
class Instance(Value):
    """An object of a class that stands in the tree; attributes in the state under (oid, name)."""

    oid: int
    cls: ClassInfo
    leaf: Node | None = None
    """For modules: what stands for parameters of bases that cannot be seen."""
    within: Unknown | None = None
    """What code that cannot be seen made of it, where it is that."""


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
    grad_mode: GradSetting = GradSetting.UNSET
    caching: bool = False
    """Whether forwards in it share what is made of their weights."""
    cls: ClassInfo | None = None
    kind: FunctionKind = FunctionKind.FUNCTION
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


@dataclass(frozen=True)
class EnumMember:
    """A member of an enumeration, as a constant: ``key`` tells it from all others."""

    key: tuple[str, int, str]
    """The file, the line of the class, and the name."""
    of: Value = field(compare=False)
    """Its ``value``."""
    cls: ClassInfo = field(compare=False)


@dataclass(frozen=True, eq=False, slots=True)
class Library(Value):
    """Something outside the tree, by its full dotted name."""

    path: str


@dataclass(frozen=True, eq=False, slots=True)
class TreeModule(Value):
    """A Python module of the tree by its path below the root, or a folder (with ``/`` after it) without
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
    method: bool = False
    """``functools.partialmethod``: it gets the object before these."""


@dataclass(frozen=True, eq=False, slots=True)
class Reference(Value):
    """``weakref.ref``: keeps nothing alive; a call of it gives what it refers to."""

    target: Value


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
    if kind is Instance:
        return bool(value.cls.container)  # type: ignore[union-attr]
    if kind is Method:
        return value.function is None and may_carry(value.receiver)  # type: ignore[union-attr]
    return kind in CONTAINING


def options_of(value: Value) -> tuple[Value, ...]:
    """What a value may be: itself, or each of several where branches met."""
    return value.options if isinstance(value, Join) else (value,)


def is_setting(value: object) -> bool:
    """Whether a value is a number or a text, or one of several."""
    kind = value.__class__
    if kind is Join:
        return all(map(is_setting, value.options))  # type: ignore[attr-defined]
    return kind is Const or (kind is Plain and value.kind is not PlainKind.ARRAY)  # type: ignore[attr-defined]


def scalar(value: Value) -> bool:
    """Whether it is a number or a tensor proven to have one element."""
    if isinstance(value, Const):
        return isinstance(value.value, (int, float, complex)) or value.value is None
    if isinstance(value, Plain):
        return value.kind is not PlainKind.ARRAY
    if isinstance(value, Join):
        return all(map(scalar, value.options))
    one = isinstance(value, Tensor) and value.scalar
    return one or (isinstance(value, (Tensor, Unknown)) and value.node is not None and value.node.scalar)


def nodes_of(value: Value) -> list[Node]:
    """The nodes of the tensors that a value may be."""
    return [o.node for o in options_of(value) if isinstance(o, (Tensor, Unknown)) and o.node is not None]


NONE = Const(None)
TRUE = Const(True)
NUMBER = Plain(PlainKind.NUMBER)
TEXT = Plain(PlainKind.TEXT)
ARRAY = Plain(PlainKind.ARRAY)
SHAPE = Plain(PlainKind.RANGE)
"""The sizes of a tensor: whole numbers in an order, as those of a range are."""
DATA = Tensor(None)
INDEX = Tensor(None, index=True)


def memory(value: Value) -> tuple[Tensor, ...]:
    """The tensors by which it is known what shares memory with a tensor: two that share it have one in common."""
    if not isinstance(value, Tensor):
        return ()
    return value.bases if value.bases or value is DATA or value is INDEX else (value,)


def written_plainly(value: Value) -> bool:
    """Whether a value is a number that counts, of which ``str`` writes the digits."""
    if isinstance(value, Const):
        return type(value.value) is int
    return isinstance(value, Plain) and value.kind is PlainKind.NUMBER and value.turn is not None


def formatted(pattern: Value, sign: str, given: list[Value]) -> Plain:
    """What ``"..." % value`` gives, or ``format``: the text up to the first ``sign`` stays as it is. So does the text
    behind it where one number that counts is ``given`` and nothing else."""
    if not isinstance(pattern, Const) or not isinstance(pattern.value, str) or sign not in pattern.value:
        return TEXT
    if any(twice in pattern.value for twice in ("%%", "{{", "}}")):
        # a sign or a brace that is written twice stands for itself
        return TEXT
    begin, _, rest = pattern.value.partition(sign)
    once = len(given) == 1 and written_plainly(given[0]) and sign not in rest
    for end in ("}", "0}") if sign == "{" else ("d", "s"):
        if once and rest.startswith(end):
            return Plain(PlainKind.TEXT, begin, rest.removeprefix(end), number=True)
    return Plain(PlainKind.TEXT, begin)
