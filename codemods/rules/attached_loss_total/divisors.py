"""Whether a sum of numbers can be divided as one of tensors: by 0 a number raises, and a tensor gives infinity."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.graph.model.arguments import given_for
from codemods.graph.model.nodes import Place
from codemods.graph.model.program import ParsedFile
from codemods.proofs.blocks import suite_of
from codemods.proofs.earlier import assigned
from codemods.proofs.effects import CONTAINER_CHANGES, written_by_name
from codemods.proofs.syntax import DEFINITIONS, FUNCTIONS, LEAVING, LOOPS, bindings, defaults, method, own_nodes, scope
from codemods.source import walking
from codemods.source.walking import last_name

_AS_IT_IS = ("float", "abs")
_WHOLE = ("int", "round", "ceil")
_ADDING = ("append", "add", "insert", "appendleft")
_DEPTH = 4
"""How many names and arguments are followed, as they may go in circles."""


class Divisors:
    """The divisors of sums that grow at the place ``grown``: what is divided has grown, or is no tensor."""

    def __init__(self, grown: Place) -> None:
        self.grown = grown
        self.statement = grown.statement if grown.statement is not None else grown.node
        self.file = grown.frame.file

    def never_zero(self, divisor: ast.expr, place: Place, dividend: ast.expr, depth: int = 0) -> bool:
        """Whether ``divisor`` is proven not to be 0 at a place where ``dividend`` holds the sum."""
        if depth > _DEPTH:
            return False
        match divisor:
            case ast.Constant(value=value):
                return bool(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                # counts are not below 0
                return any(isinstance(side, ast.Constant) and side.value for side in (left, right))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return all(self.never_zero(side, place, dividend, depth + 1) for side in (left, right))
            case ast.BinOp(left=left, op=ast.Div()):
                return self.never_zero(left, place, dividend, depth + 1)
            case (
                ast.Subscript(value=ast.Attribute(attr="shape", value=sized))
                | ast.Call(func=ast.Attribute(attr="size" | "numel" | "nelement", value=sized))
            ):
                return self._sized(sized, place)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._counts(divisor, place, dividend, depth)
            case ast.Call(args=[given, *others]):
                name = last_name(divisor.func)
                if name == "max":
                    return any(isinstance(one, ast.Constant) and one.value for one in (given, *others))
                if name == "len" and not others:
                    return self._filled(given, place, depth)
                part = isinstance(given, ast.BinOp) and isinstance(given.op, ast.Div)
                if name in _AS_IT_IS or (name in _WHOLE and (name == "ceil" or not part)):
                    return self.never_zero(given, place, dividend, depth + 1)
        return False

    def _sized(self, tensor: ast.expr, place: Place) -> bool:
        """Whether a tensor has rows: a batch has, what is picked out of one need not."""
        around = scope(place.frame.file, place.node)
        given = [
            n.value
            for n in walking.walk(around)
            if isinstance(n, ast.Assign) and ast.unparse(tensor) in map(ast.unparse, n.targets)
        ]
        return isinstance(tensor, (ast.Name, ast.Attribute, ast.Subscript)) and all(map(_holds_data, given))

    def _filled(self, container: ast.expr, place: Place, depth: int) -> bool:
        """Whether a container has elements where the sum has grown: a loop around goes over it, it gets one beside the
        sum, or the program does not fill it: data, a loader."""
        text = ast.unparse(container)
        here = place.frame.file is self.file
        if here and any(text in map(ast.unparse, walking.walk(loop.iter)) for loop in self._loops()):
            return True
        if isinstance(container, ast.Name):
            given, by = self._given(container.id, place)
            if given is not None and by is not None:
                return depth < _DEPTH and self._filled(given, by, depth + 1)
        around = place.frame.file.enclosing(place.node, *FUNCTIONS) or place.frame.file.tree
        tree = around if isinstance(container, ast.Name) and bindings(around, container.id) else place.frame.file.tree
        filled = bare = False
        for node in walking.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if method(node) in CONTAINER_CHANGES and ast.unparse(node.func.value) == text:
                    filled |= here and method(node) in _ADDING and self._beside(node, place)
                    if not filled or method(node) not in _ADDING:
                        return False
            elif isinstance(node, (ast.AugAssign, ast.Delete)):
                changed = [node.target] if isinstance(node, ast.AugAssign) else walking.walk(node)
                if text in map(ast.unparse, changed):
                    return False
            elif isinstance(node, ast.Assign) and text in map(ast.unparse, node.targets) and not filled:
                display = isinstance(node.value, (ast.List, ast.Tuple, ast.Dict, ast.Set))
                bare |= display and not (getattr(node.value, "elts", None) or getattr(node.value, "keys", None))
                if not display and not _holds_data(node.value):
                    return False
        return filled or isinstance(container, ast.Attribute) or not bare

    def _counts(self, counter: ast.expr, place: Place, dividend: ast.expr, depth: int) -> bool:
        """Whether a counter is not 0 where the sum has grown: it grows beside it, and is 0 only where the sum is reset;
        or it gets nothing that may be 0, or something before would have raised."""
        file, text = place.frame.file, ast.unparse(counter)
        around = scope(file, place.node)
        if isinstance(counter, ast.Name):
            given, by = self._given(counter.id, place)
            if given is not None:
                return self.never_zero(given, by or place, dividend, depth + 1)
        if _divides(around, text) or (file is self.file and self._turns(text)):
            return True
        shared = any(isinstance(n, (ast.Global, ast.Nonlocal)) and text in n.names for n in walking.walk(file.tree))
        own = isinstance(counter, ast.Name) and not shared and bool(bindings(around, text))
        grows = settled = zero = False
        if _changed_by_call(file.tree, counter):
            return False
        for node, value, more in _changes(file, around if own else file.tree, counter):
            begins = isinstance(value, ast.Constant) and not value.value and not more
            if begins and isinstance(node, ast.Assign) and self._reset_with_it(node, dividend, file):
                zero = True
            elif value is not None and self._added(value, node, place, dividend, depth):
                settled |= not more
                grows |= more and file is self.file and self._beside(node, place)
            else:
                return False
        return grows or (settled and not zero)

    def _added(self, value: ast.expr, node: ast.AST, place: Place, dividend: ast.expr, depth: int) -> bool:
        """The same of what a counter gets, in the function where it gets it."""
        here = scope(place.frame.file, node)
        for known in (place, self.grown):
            if here in (known.frame.definition, known.frame.file.tree):
                return self.never_zero(value, known, dividend, depth + 1)
        return isinstance(value, ast.Constant) and bool(value.value)

    def _given(self, name: str, place: Place) -> tuple[ast.expr | None, Place | None]:
        """What the call of a function gives to a parameter, and where; else its default."""
        definition = place.frame.definition
        if not isinstance(definition, DEFINITIONS) or place.frame.root or bindings(definition, name):
            return None, None
        given = given_for(place.frame, name)
        if given is not None:
            return given, place.frame.call
        return dict(defaults(definition.args)).get(name), None

    def _loops(self) -> Iterator[ast.For | ast.AsyncFor]:
        """The loops around the place where the sum grows."""
        for outer in self.file.outward(self.statement, *FUNCTIONS):
            if isinstance(outer, (ast.For, ast.AsyncFor)):
                yield outer

    def _turns(self, text: str) -> bool:
        """Whether a loop around the sum takes so many turns."""
        for loop in self._loops():
            for node in walking.walk(loop.iter):
                if isinstance(node, ast.Call) and last_name(node.func) == "range":
                    first = [] if len(node.args) == 1 else node.args[:1]
                    zero = all(isinstance(a, ast.Constant) and a.value == 0 for a in first)
                    if zero and ast.unparse(node.args[min(1, len(node.args) - 1)]) == text:
                        return True
        return False

    def _beside(self, node: ast.AST, place: Place) -> bool:
        """Whether something is done whenever the sum grows, before what is done at a place."""
        file = self.file
        if scope(file, node) is not scope(file, self.statement):
            return False
        if not set(_conditions(file, self.statement)).issuperset(_conditions(file, node)):
            return False
        begin, end = sorted((_line(self.statement), _line(node)))
        if end == _line(self.statement):
            return True
        inside = own_nodes(getattr(scope(file, node), "body", ()))
        left = any(isinstance(n, LEAVING) and begin < n.lineno < end for n in inside)
        early = scope(file, node) is scope(file, place.node) and begin <= _line(place.node) < end
        return not left and not early

    def _reset_with_it(self, node: ast.Assign, dividend: ast.expr, file: ParsedFile) -> bool:
        """Whether a counter gets 0 where the sum is reset as well, or only before it grows."""
        # an element begins anew where what holds it is made anew
        holders = {last_name(n.value) for n in _places(dividend) if isinstance(n, ast.Subscript)} - {""}
        names = _named(dividend) | holders
        for other in suite_of(file, node):
            targets = other.targets if isinstance(other, ast.Assign) else [getattr(other, "target", other)]
            if isinstance(other, (ast.Assign, ast.AnnAssign)) and any(names & _named(target) for target in targets):
                return True
        if file is not self.file or scope(file, node) is not scope(file, self.statement):
            return False
        around = {n for n in file.outward(self.statement, *FUNCTIONS) if isinstance(n, LOOPS)}
        mine = {n for n in file.outward(node, *FUNCTIONS) if isinstance(n, LOOPS)}
        return mine.isdisjoint(around) and node.lineno < _line(self.statement)


def _holds_data(value: ast.expr) -> bool:
    """Whether it is written as what holds data: no part of something, no text, nothing that is picked out."""
    if isinstance(value, ast.Call):
        picks = ("filter", "nonzero", "where", "masked_select", "unique", "set", "split")
        return not any(isinstance(n, ast.Call) and last_name(n.func) in picks for n in walking.walk(value))
    if isinstance(value, ast.ListComp):
        return not any(each.ifs for each in value.generators)
    return isinstance(value, (ast.Name, ast.Attribute))


def _places(expression: ast.AST) -> Iterator[ast.expr]:
    """The variables, attributes and elements that stand in an expression, not what these are parts of."""
    if isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript)):
        yield expression
        return
    for inner in ast.iter_child_nodes(expression):
        yield from _places(inner)


def _named(expression: ast.AST) -> set[str]:
    """The last names of these; of an element all of it."""
    return {last_name(n) or ast.unparse(n) for n in _places(expression)}


def _same(target: ast.AST, counter: ast.expr) -> bool:
    """Whether code names the counter, also as an attribute of what it calls another name."""
    if isinstance(target, ast.Attribute) and isinstance(counter, ast.Attribute):
        return target.attr == counter.attr
    return isinstance(target, ast.expr) and ast.unparse(target) == ast.unparse(counter)


def _changes(file: ParsedFile, around: ast.AST, counter: ast.expr) -> Iterator[tuple[ast.AST, ast.expr | None, bool]]:
    """What code gives to a counter, or adds to it (True), and where; None for what cannot be told."""
    for node in walking.walk(around):
        if not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)) or not _same(node, counter):
            continue
        made = file.enclosing(node, ast.stmt, ast.comprehension, ast.NamedExpr) or node
        value, more = None, isinstance(made, ast.AugAssign)
        if isinstance(made, ast.AugAssign):
            value = made.value if isinstance(made.op, ast.Add) else None
        elif isinstance(made, ast.Assign):
            value = assigned(made, node)
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and _same(value.left, counter):
                value, more = value.right, True
        elif isinstance(made, (ast.For, ast.AsyncFor, ast.comprehension)):
            value = ast.Constant(value=_from_one(made.iter, made.target, ast.unparse(counter)) or None)
        yield made, value, more


def _changed_by_call(tree: ast.AST, counter: ast.expr) -> bool:
    """Whether ``setattr`` names the counter, or a method changes what it is an element of."""
    for node in walking.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(counter, ast.Attribute) and f".{counter.attr}" in written_by_name(node):
                return True
            held = ast.unparse(counter.value) if isinstance(counter, ast.Subscript) else ""
            own = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            if held and held == own and method(node) in CONTAINER_CHANGES:
                return True
    return False


def _from_one(values: ast.expr, target: ast.expr, text: str) -> bool:
    """Whether a loop counts its turns from 1 on, or goes over lengths that are not 0."""
    if not isinstance(values, ast.Call):
        return False
    name, args = last_name(values.func), values.args
    start = next((k.value for k in values.keywords if k.arg == "start"), args[1] if len(args) > 1 else None)
    if name == "enumerate" and isinstance(target, ast.Tuple) and ast.unparse(target.elts[0]) == text:
        return isinstance(start, ast.Constant) and bool(start.value)
    if name == "range" and len(args) > 1 and ast.unparse(target) == text:
        return isinstance(args[0], ast.Constant) and bool(args[0].value)
    if name in ("tqdm", "trange") and args:
        return _from_one(args[0], target, text)
    return False


def _divides(around: ast.AST, text: str) -> bool:
    """Whether code takes a rest by it, which raises for 0."""
    return any(
        isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mod, ast.FloorDiv)) and ast.unparse(n.right) == text
        for n in walking.walk(around)
    )


def _conditions(file: ParsedFile, node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """The branches and loops around a node that may leave it out, each with the suite in which the node is."""
    inner = node
    for outer in file.outward(node, *FUNCTIONS):
        if isinstance(outer, (ast.If, ast.IfExp, ast.Try, ast.Match, *LOOPS)):
            first = getattr(outer, "body", [])
            yield outer, any(one is inner for one in first) if isinstance(first, list) else first is inner
        inner = outer


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)
