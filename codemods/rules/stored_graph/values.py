"""The expressions that hold a stored value: what was stored, where the old value is read, what is new in a mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.graph.model.nodes import Node, Value
from codemods.graph.model.trace import Storing, Trace
from codemods.graph.model.values import Tensor, nodes_of, options_of
from codemods.proofs.carried import Carry, Ledger
from codemods.proofs.reach import through_phi
from codemods.source.walking import walk


def stored_expression(ledger: Ledger, carry: Carry) -> ast.expr | None:
    """The expression whose value was stored, None where it has no place of its own."""
    for storing in ledger.trace.storings:
        if storing.place.node is carry.store.node and storing.place.clock >= carry.store.clock:
            return storing.value_expr if isinstance(storing.value, Tensor) else _part_of(carry, storing)
    statement = carry.store.statement
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        value: ast.expr = statement.value
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
                for part, expression in zip(target.elts, value.elts, strict=False):
                    if part is carry.store.node:
                        return expression
            elif target is carry.store.node and len(targets) == 1 and _is_tensor(ledger, carry, value):
                return value
            elif target is carry.store.node and len(targets) == 1:
                read = {id(r.place.node) for r in ledger.readings_of.get(carry.old, ()) if isinstance(r.value, Tensor)}
                parts = [part for part in _elements(value) if id(part) in read]
                return parts[0] if len(parts) == 1 else None
    return None


def _part_of(carry: Carry, storing: Storing) -> ast.expr | None:
    """The one part that is carried of a tuple, list or dict, where that is written out or made element by element."""
    carried = set(through_phi(carry.old))
    parts = [p for p, v in storing.parts if _has_detach(v) and carried <= set(through_phi(*nodes_of(v)))]
    written_out = any(part is each for part in parts[:1] for each in _elements(storing.value_expr))
    return parts[0] if len(parts) == 1 and written_out else None


def _elements(display: ast.expr) -> Iterator[ast.expr]:
    """The elements of a tuple, list or dict that is written out, or made turn by turn, and of those in it."""
    inner: list[ast.expr] = []
    if isinstance(display, (ast.Tuple, ast.List)):
        inner = display.elts
    elif isinstance(display, ast.Dict):
        inner = display.values
    elif isinstance(display, ast.ListComp):
        inner = [display.elt]
    elif isinstance(display, ast.DictComp):
        inner = [display.value]
    for each in inner:
        yield each
        yield from _elements(each)


def always_tensors(trace: Trace, statement: ast.stmt) -> bool:
    """Whether what a statement stores, or each part of it with a graph, has a ``detach`` each time."""
    here = [storing for storing in trace.storings if storing.place.statement is statement]
    return all(_has_detach(s.value) or (s.parts and all(_has_detach(part) for _, part in s.parts)) for s in here)


def _has_detach(value: Value) -> bool:
    return all(isinstance(one, Tensor) or one.node is not None for one in options_of(value))


def _is_tensor(ledger: Ledger, carry: Carry, value: ast.expr) -> bool:
    """Whether what a statement stores is proven to be a tensor: what is read later, or what it is read as there."""
    stored = (r.value for r in ledger.readings_of.get(carry.old, ()) if r.place.node is value)
    read = isinstance(carry.reading.value, Tensor) and not _is_field(carry.reading.place.node, carry.store.node)
    return read or any(isinstance(one, Tensor) for one in stored)


def _is_field(read: ast.AST, stored: ast.AST) -> bool:
    """Whether what is read is an attribute of what was stored, which then is an object that holds the tensor."""
    name = ast.unparse(stored)
    inner = read
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        field = isinstance(inner, ast.Attribute) and inner.attr not in ("data", "T", "mT", "H", "mH", "real", "imag")
        inner = inner.value
        if field and ast.unparse(inner) == name:
            return True
    return False


def simple_sum(statement: ast.stmt) -> bool:
    """Whether a value is combined from old and new by one arithmetic expression, or a part of that, and given to one
    name."""
    if isinstance(statement, ast.Assign) and len(statement.targets) != 1:
        return False
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    value = getattr(statement, "value", None)
    while isinstance(value, ast.Subscript):
        # queue = torch.cat([new, queue])[:size]
        value = value.value
    return isinstance(target, (ast.Name, ast.Attribute)) and isinstance(value, (ast.BinOp, ast.Call))


def running_sum(statement: ast.stmt) -> bool:
    """The same of one name, attribute or element: ``mean[name] = 0.9 * mean[name] + 0.1 * new``."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        element = isinstance(statement.targets[0], ast.Subscript) and isinstance(statement.value, (ast.BinOp, ast.Call))
        return element or simple_sum(statement)
    return False


def reads_in(ledger: Ledger, old: Node, statement: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement that read the old value."""
    found: dict[int, ast.expr] = {}
    for reading in ledger.readings_of.get(old, ()):
        node = reading.place.node
        if reading.place.statement is not statement or not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            continue
        outer = reading.place.frame.file.parent(node)
        if isinstance(outer, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in outer.ops):
            continue
        if isinstance(reading.value, Tensor):
            found.setdefault(id(node), node)
    return list(found.values())


def new_part(ledger: Ledger, value: ast.expr, old: ast.AST) -> ast.expr:
    """What is new in ``a * old + b * new``: the one attached factor of the summand, else the whole."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return value
    holds_old = [any(n is old for n in walk(side)) for side in (value.left, value.right)]
    if holds_old == [True, False]:
        part = value.right
    elif holds_old == [False, True]:
        part = value.left
    else:
        return value
    while isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Mult, ast.Div)):
        left, right = _plain(ledger, part.left), _plain(ledger, part.right)
        if left and not right:
            part = part.right
        elif right and not left:
            part = part.left
        else:
            break
    return part


def _plain(ledger: Ledger, node: ast.expr) -> bool:
    """Whether it is a number and no tensor."""
    if isinstance(node, ast.Constant) or node in ledger.trace.plain:
        return True
    if isinstance(node, ast.BinOp):
        return _plain(ledger, node.left) and _plain(ledger, node.right)
    return isinstance(node, ast.UnaryOp) and _plain(ledger, node.operand)
