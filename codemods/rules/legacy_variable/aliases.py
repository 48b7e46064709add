"""What a run shows of tensors that share their memory, and of the forms that PyTorch had before 0.4."""

from __future__ import annotations

import ast
import enum
from collections import defaultdict
from collections.abc import Iterable

from codemods.graph.model.facts.layers import RECURRENT
from codemods.graph.model.facts.operations import KEEPS_SHAPE
from codemods.graph.model.kinds import Altered, NodeKind
from codemods.graph.model.nodes import Alias, Node, Unseen, Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Const, Join, Parameters, Plain, Tensor, Unknown, memory
from codemods.graph.python.old_forms import first_element
from codemods.proofs.reach import spread
from codemods.proofs.repackaging import is_variable
from codemods.proofs.syntax import bare_method, method
from codemods.source.walking import children, walk

_MOVING = frozenset({"to", "cuda", "cpu", "pin_memory", "float", "double", "half"})
"""Methods that packed sequences have as well as tensors (docs: torch.nn.utils.rnn.PackedSequence)."""

_OF_ONE_ELEMENT = frozenset({"sum", "mean", "prod", "norm", "std", "var"})
"""Methods that, called without arguments, leave one element (docs: torch.Tensor)."""


class Changes:
    """What a run changes in place, and what enters a graph."""

    def __init__(self, trace: Trace) -> None:
        self._of_alias: dict[int, list[Altered]] = defaultdict(list)
        self._of_object: dict[int, list[Altered]] = defaultdict(list)
        self._of_value: dict[int, list[tuple[Altered, int]]] = defaultdict(list)
        self._of_memory: dict[int, list[int]] = defaultdict(list)
        self._of_node: dict[int, list[int]] = defaultdict(list)
        for change in trace.alterations:
            if isinstance(change.value, Tensor):
                for alias in change.value.aliases:
                    self._of_alias[id(alias.origin)].append(change.how)
                for alias in change.value.aliases[-1:]:
                    # ``x.data`` and ``x.detach()`` are objects of their own
                    self._of_object[id(alias.origin)].append(change.how)
            self._of_value[id(change.value)].append((change.how, change.place.clock))
            for shared in _in_memory(change.value):
                self._of_memory[shared].append(change.place.clock)
            if change.value.node is not None:
                self._of_node[id(change.value.node)].append(change.place.clock)
        self._unpacked = trace.unpacked
        self._walks = trace.walks
        self._drawn = {id(alias.origin) for aliases, _ in trace.drawn for alias in aliases}

    def objects(self, alias: Alias) -> bool:
        """Whether one of the two tensors is changed in a way that the other would not be."""
        born = alias.place.clock
        hows = {*self._of_object[id(alias)], *(how for how, at in self._of_value[id(alias.given)] if at >= born)}
        return not hows.isdisjoint((Altered.SHAPE, Altered.REQUIRES_GRAD, Altered.ATTACHED))

    def _packed(self, node: Node | None) -> bool:
        """Whether a value may be a packed sequence, whose ``data`` is one of its fields: on one path, or moved."""

        def before(one: Node) -> Iterable[Node]:
            moves = one.kind is NodeKind.OP and one.label in _MOVING
            return one.parents if moves or one.kind is NodeKind.PHI else ()

        return any(
            one.label.startswith("pack")
            or (one.kind is NodeKind.MODULE and one.label in RECURRENT and one not in self._unpacked)
            for one in spread([node] if node is not None else [], before)
        )

    def tied(self, alias: Alias) -> bool:
        """Whether ``x.data`` is more than a reading of ``x``, or ``x`` may not be a tensor."""
        given = alias.given
        hows = set(self._of_alias[id(alias)])
        if not isinstance(given, Tensor) or self._packed(given.node) or hows - {Altered.UNSEEN}:
            return True
        if hows and self._walked_later(alias):
            return True
        if id(alias) not in self._drawn:
            return False
        if given.node is not None and given.node.leaf and given.node.label != "input":
            return True
        born = alias.place.clock
        clocks = [at for shared in _in_memory(given) for at in self._of_memory[shared]]
        clocks += self._of_node[id(given.node)] if given.node is not None else []
        return any(at >= born for at in clocks)

    def _walked_later(self, alias: Alias) -> bool:
        """Whether a backward comes to what was computed of the tensor, or to what it was computed from, afterwards."""
        node = alias.given.node
        return node is not None and any(w.place.clock > alias.place.clock and node in w.seen for w in self._walks)


def _in_memory(value: Value) -> set[int]:
    """What a tensor has in common with those that share its memory: itself, where nothing is known of that."""
    return {id(value), *map(id, memory(value))}


_SHAPED = frozenset(("view", "reshape", "flatten", "ravel", "unsqueeze", "expand", "repeat", "stack", "cat"))
"""What makes tensors of one dimension at least, written as people write it."""


class History(enum.Enum):
    """Whether the tensor that ``Variable`` gets has a history."""

    PLAIN = "plain"
    ATTACHED = "attached"
    MAYBE = "maybe"
    UNSURE = "unsure"
    """It may be no tensor."""
    UNSEEN = "unseen"
    """The call did not run."""


def history_of(value: Value) -> History:
    """Whether a value has a history."""
    if isinstance(value, Join):
        # None is one of these: of that Variable makes an empty tensor
        found = {history_of(option) for option in value.options}
        return next(one for one in (History.UNSURE, History.MAYBE, History.ATTACHED, History.PLAIN) if one in found)
    if isinstance(value, Parameters):
        return History.ATTACHED if value.element else History.UNSURE
    if not isinstance(value, (Tensor, Unknown)):
        return History.UNSURE
    if value.node is not None:
        return History.ATTACHED
    if any(isinstance(origin, Unseen) for origin in value.shadow):
        return History.MAYBE
    return History.PLAIN if isinstance(value, Tensor) or value.data else History.MAYBE


def one_element(value: Value) -> bool:
    """Whether a value is proven to be a tensor of one element."""
    if isinstance(value, Tensor):
        return value.scalar or (value.node is not None and value.node.scalar)
    if isinstance(value, Unknown):
        return value.node is not None and value.node.scalar
    if isinstance(value, Join):
        tensors = [option for option in value.options if not isinstance(option, (Const, Plain))]
        return bool(tensors) and all(one_element(option) for option in tensors)
    return False


def has_dimension(value: Value, subject: ast.expr) -> bool:
    """Whether a tensor surely has a dimension, by its operation or as it is written: ``x.view(-1)``. Its ``[0]`` runs
    today."""
    if method(subject) in _SHAPED:
        return True
    return isinstance(value, (Tensor, Unknown)) and value.node is not None and _is_shaped(value.node)


def _is_shaped(node: Node) -> bool:
    while node.kind is NodeKind.OP and node.label in KEEPS_SHAPE and len(node.parents) == 1:
        node = node.parents[0]
    return node.kind is NodeKind.OP and node.label.removesuffix("_") in _SHAPED


def reduced(expression: ast.expr) -> bool:
    """Whether it is written as a reduction to one element: ``(a == b).sum()``."""
    return bare_method(expression) in _OF_ONE_ELEMENT


def old_forms(file: ParsedFile, code: ast.AST) -> list[ast.expr]:
    """The calls of ``Variable`` and the ``[0]`` behind a ``.data`` in a function, or at the top level."""
    return [e for e in file.once(_forms, code) if not isinstance(e, ast.Call) or is_variable(file, e.func)]


def _forms(code: ast.AST) -> list[ast.expr]:
    """The same by their look."""
    found: list[ast.expr] = []
    stack: list[ast.AST] = children(code)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) or (
                isinstance(node.func, ast.Attribute) and node.func.attr == "Variable"
            ):
                found.append(node)
        elif isinstance(node, ast.Subscript) and first_element(node) is not None:
            found.append(node)
        stack.extend(children(node))
    return found


def walked(subject: ast.expr, code: ast.AST) -> bool:
    """Whether a function calls ``backward()`` on a name, which it can only on one element."""
    if not isinstance(subject, ast.Name):
        return False
    for node in walk(code):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="backward"), args=[]) if name == subject.id:
                return True
    return False
