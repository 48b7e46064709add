"""Changes by hand of which a run says nothing where it shows no difference: constants that they alter and nothing
else, operands of conditions that come or go, and what they no longer set or call for its effect."""

from __future__ import annotations

import ast
import contextlib
import copy
from collections import Counter
from collections.abc import Collection, Iterator

from codemods.proofs.syntax import defaults
from codemods.rewriting.choices import is_number, name_of
from codemods.rewriting.parts import SUITES, header
from codemods.source.errors import SourceError
from codemods.source.syntax import parse

#: Flags of the graph: what they are for is asked of the run in other ways, see walks.py.
_SEEN = frozenset(("retain_graph", "create_graph", "set_to_none"))
#: Flags that are on where they are not written.
_ON = frozenset(("strict", "weights_only"))


def changed_constants(old: str, new: str, path: str, before: Collection[int], after: Collection[int]) -> str:
    """Say which constants (numbers, texts, flags, names such as ``SUM``) differ, if the statements at the lines
    ``before`` of ``old`` and ``after`` of ``new`` differ in nothing else; empty if they do. Arguments by keyword that
    are one may come and go."""
    was, became = (_headers(text, path, lines) for text, lines in ((old, before), (new, after)))
    if not was or len(was) != len(became):
        return ""
    told: list[str] = []
    for one, other in zip(was, became, strict=True):
        found = _told(one, other, [])
        found = _told(*_without_keywords(one, other)) if found is None else found
        if found is None:
            return ""
        told += found
    return ", ".join(dict.fromkeys(told))


def fixed_values(old: str, new: str, path: str, before: Collection[int], after: Collection[int]) -> str:
    """Say what is a constant in the statements at the lines ``before`` of ``old`` or ``after`` of ``new``, and is
    computed or looked up in the others; empty if nothing is, or the text binds the name to that constant alone."""
    was, became = (_headers(text, path, lines) for text, lines in ((old, before), (new, after)))
    if len(was) != len(became):
        return ""
    known, bound = _bindings(old, path), _bindings(new, path)
    imported = _imported(old, path) | _imported(new, path)
    told = [
        f"`{ast.unparse(one)}` became `{ast.unparse(other)}`"
        for first, second in zip(was, became, strict=True)
        for one, other in _fixed(first, second, imported) or ()
        if known.get(name_of(one)) != ast.unparse(other) and bound.get(name_of(other)) != ast.unparse(one)
    ]
    return ", ".join(dict.fromkeys(told))


def _fixed(one: object, other: object, imported: Collection[str]) -> list[tuple[ast.AST, ast.AST]] | None:
    """The expressions at the same place of both, of which one is a constant and the other reads a variable, which
    names that are ``imported`` are not; None where more differs than constants."""
    if not (isinstance(one, ast.AST) and isinstance(other, ast.AST)):
        return [] if one == other else None
    constant = [_is_constant(each) or _is_flag(each) for each in (one, other)]
    if any(constant):
        nodes = [each for node in (one, other) for each in ast.walk(node)]
        called = [each.func for each in nodes if isinstance(each, ast.Call)]
        read = {each.id for each in nodes if isinstance(each, ast.Name) and each not in called}
        return [(one, other)] if not all(constant) and not read <= set(imported) else []
    if type(one) is not type(other):
        return None
    if isinstance(one, ast.keyword) and one.arg in _SEEN:
        return []
    if isinstance(one, ast.BinOp) and isinstance(other, ast.BinOp) and _is_turned(one, other):
        return []
    found: list[tuple[ast.AST, ast.AST]] = []
    for name in one._fields:
        sides = [getattr(each, name, None) for each in (one, other)]
        mine, theirs = ([*side] if isinstance(side, list) else [side] for side in sides)
        inside = [_fixed(left, right, imported) for left, right in zip(mine, theirs, strict=False)]
        if len(mine) != len(theirs) or None in inside:
            return None
        found += [pair for pairs in inside for pair in pairs or ()]
    return found


def _is_turned(one: ast.BinOp, other: ast.BinOp) -> bool:
    """Whether two operands, of which one is a number, change places in a sum or a product."""
    commutes = isinstance(one.op, (ast.Add, ast.Mult)) and type(one.op) is type(other.op)
    turned = (ast.dump(one.left), ast.dump(one.right)) == (ast.dump(other.right), ast.dump(other.left))
    return commutes and turned and (is_number(one.left) or is_number(one.right))


def _imported(text: str, path: str) -> set[str]:
    """The names that ``text`` imports."""
    imports = (node for node in _nodes(text, path) if isinstance(node, ast.Import | ast.ImportFrom))
    return {(each.asname or each.name).partition(".")[0] for node in imports for each in node.names}


def _bindings(text: str, path: str) -> dict[str, str]:
    """The constant that each variable or attribute of ``text`` is bound to, by its last name, where that is all."""
    stores: Counter[str] = Counter()
    values: dict[str, str] = {}
    for node in _nodes(text, path):
        if isinstance(node, ast.arguments):
            values.update((arg, ast.unparse(default)) for arg, default in defaults(node))
        elif isinstance(node, ast.arg | ast.keyword):
            stores[node.arg or ""] += 1
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            stores[name_of(node)] += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values.update((name_of(target), ast.unparse(node.value)) for target in targets)
    return {name: value for name, value in values.items() if stores[name] == 1}


def unread_settings(old: str, new: str, path: str, before: Collection[int]) -> str:
    """Say what the lines ``before`` of ``old`` look up by a text (``config["rate"]``), and nothing in ``new`` does any
    more; empty if there is none."""
    known = {ast.unparse(each) for each in _lookups(new, path, None)}
    texts = dict.fromkeys(ast.unparse(each) for each in _lookups(old, path, before))
    return ", ".join(f"`{each}`" for each in texts if each not in known)


def _lookups(text: str, path: str, lines: Collection[int] | None) -> Iterator[ast.Subscript]:
    """What the statements at ``lines`` of ``text`` look up by a text, None for all of them."""
    for node in _nodes(text, path):
        there = lines is None or (isinstance(node, ast.expr) and not set(lines).isdisjoint(_lines(node)))
        if there and isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_text(node.slice):
            yield node


def changed_operands(old: str, new: str, path: str, before: Collection[int], after: Collection[int]) -> str:
    """Say which operands of ``and`` and ``or`` come or go between the lines ``before`` of ``old`` and ``after`` of
    ``new``; empty if there are as many as before."""
    was, became = (_headers(text, path, lines) for text, lines in ((old, before), (new, after)))
    if len(was) != len(became):
        return ""
    told: list[str] = []
    for one, other in zip(was, became, strict=True):
        less, more = _operands(one), _operands(other)
        if len(less) != len(more):
            lost, added = set(less) - _texts(other), set(more) - _texts(one)
            told += [*(f"`{each}` is gone" for each in sorted(lost)), *(f"`{each}` is new" for each in sorted(added))]
    return ", ".join(told)


def _operands(node: ast.AST) -> list[str]:
    return [ast.unparse(value) for each in ast.walk(node) if isinstance(each, ast.BoolOp) for value in each.values]


def _texts(node: ast.AST) -> set[str]:
    """All expressions in ``node``."""
    return {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.expr)}


def dropped_settings(old: str, new: str, path: str, before: Collection[int], after: Collection[int]) -> str:
    """Say what the lines ``before`` of ``old`` set to a constant, alone or among others, and neither the lines
    ``after`` of ``new`` nor any other lines set instead; empty if there is none."""
    was, became = (_headers(text, path, lines) for text, lines in ((old, before), (new, after)))
    instead = {target for each in became for target, _ in _set(each)}
    gone = [(target, value) for each in was for target, value in _set(each) if value and target not in instead]
    if not gone:
        return ""
    whole = Counter(each for node in _nodes(old, path) for each in _set(node))
    whole -= Counter(each for node in _nodes(new, path) for each in _set(node))
    told = (f"`{target} = {value}`" for target, value in gone if whole[target, value])
    return ", ".join(f"{each} is gone" for each in dict.fromkeys(told))


def _set(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The targets of an assignment, each with its value where that is a constant, else with nothing."""
    pairs: list[tuple[ast.expr, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        pairs = [(node.target, node.value if isinstance(node, ast.AnnAssign) else None)]
    for target, value in pairs:
        targets, values = [target], [value]
        if isinstance(target, ast.Tuple):
            apart = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            targets, values = target.elts, [*value.elts] if apart else [None] * len(target.elts)  # type: ignore[union-attr]
        for name, given in zip(targets, values, strict=True):
            yield ast.unparse(name), ast.unparse(given) if given is not None and _is_constant(given) else ""


def dropped_calls(old: str, new: str, path: str, before: Collection[int], after: Collection[int]) -> str:
    """Say which calls that stand for their effect (statements, decorators, contexts) go with the lines ``before`` of
    ``old``, without others in their place in the lines ``after`` of ``new`` or anywhere else; empty if none do."""
    instead = _effects(new, path, after, stored=True) - _effects(old, path, before, stored=True)
    if instead:
        return ""
    gone = _effects(old, path, before) - _effects(new, path, after)
    whole = _effects(old, path, None) - _effects(new, path, None)
    return ", ".join(f"`{each}`" for each in gone if each in whole)


def _effects(text: str, path: str, lines: Collection[int] | None, *, stored: bool = False) -> Counter[str]:
    """The calls for their effect in ``lines`` of ``text``, None for all; with ``stored`` all that is assigned, too."""
    found: list[ast.AST] = []
    for node in _nodes(text, path):
        if isinstance(node, ast.Expr):
            found += [node.value] if any(isinstance(each, ast.Call) for each in ast.walk(node)) else []
        elif isinstance(node, ast.Assign | ast.AugAssign):
            found += [node] if stored else []
        else:
            found += getattr(node, "decorator_list", ())
            found += (item.context_expr for item in getattr(node, "items", ()))
    told = [each for each in found if lines is None or not set(lines).isdisjoint(_lines(each))]
    return Counter(ast.unparse(each) for each in told)


def _nodes(text: str, path: str) -> Iterator[ast.AST]:
    """All nodes of ``text``; none where it cannot be read."""
    with contextlib.suppress(SourceError):
        yield from ast.walk(parse(text, path))


def _lines(node: ast.AST) -> range:
    return range(node.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]


def _told(one: ast.AST, other: ast.AST, keywords: list[str]) -> list[str] | None:
    """The constants that differ between two statements, behind those of ``keywords``; None where more differs."""
    first, second = _constants(one), _constants(other)
    if ast.dump(_blank(one)) != ast.dump(_blank(other)) or len(first) != len(second):
        return None
    return [*keywords, *(f"{a!r} became {b!r}" for a, b in zip(first, second, strict=True) if a != b)]


def _without_keywords(one: ast.AST, other: ast.AST) -> tuple[ast.AST, ast.AST, list[str]]:
    """Two statements without the arguments that are constants and that only one of them has, and what these are."""
    mine, theirs = copy.deepcopy(one), copy.deepcopy(other)
    ours, others = ([each for each in ast.walk(node) if isinstance(each, ast.Call)] for node in (mine, theirs))
    told: list[str] = []
    for left, right in zip(ours, others, strict=False):
        for call, match, what in ((left, right, "is gone"), (right, left, "is new")):
            known = {keyword.arg for keyword in match.keywords}
            alone = [each for each in call.keywords if each.arg not in known and _tells(each)]
            told += [f"`{ast.unparse(each)}` {what}" for each in alone]
            call.keywords = [each for each in call.keywords if each not in alone]
    return mine, theirs, told


def _tells(keyword: ast.keyword) -> bool:
    """Whether an argument that comes or goes is a constant, and not a default that is written out."""
    if _is_flag(keyword.value):
        return keyword.arg not in _SEEN and (keyword.value.value or keyword.arg in _ON)  # type: ignore[attr-defined]
    return _is_constant(keyword.value) or _is_named(keyword.value)


def _is_constant(node: ast.AST) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return is_number(node) or _is_text(node)


def _headers(text: str, path: str, lines: Collection[int]) -> list[ast.AST]:
    """The statements at ``lines``, of compound ones the headers."""
    nodes = [n for n in _nodes(text, path) if isinstance(n, ast.stmt) and set(header(n)).intersection(lines)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return [_Folded().visit(_bare(node)) for node in nodes]


def _bare(node: ast.stmt) -> ast.AST:
    fields = {
        name: ([] if name in SUITES and isinstance(value, list) else value) for name, value in ast.iter_fields(node)
    }
    return ast.copy_location(type(node)(**fields), node)


def _constants(node: ast.AST) -> list[object]:
    """The numbers, texts and names of constants in ``node``."""
    found: list[object] = []
    for each in ast.walk(node):
        if is_number(each) or _is_text(each) or _is_flag(each):
            found.append(each.value)  # type: ignore[attr-defined]
        elif _is_named(each):
            found.append(each.attr)  # type: ignore[attr-defined]
    return found


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_flag(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _is_named(node: ast.AST) -> bool:
    """Whether ``node`` is a constant by its name, as members of an enumeration are."""
    return isinstance(node, ast.Attribute) and node.attr.isupper() and len(node.attr) > 1


class _Folded(ast.NodeTransformer):
    """Numbers that are computed of numbers alone become one, and so do those with a sign."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.USub) or not is_number(node.operand):
            return node
        return ast.Constant(-node.operand.value)  # type: ignore[attr-defined]

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        of_numbers = is_number(node.left) and is_number(node.right)
        if not of_numbers or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv):
            return node
        try:
            return ast.Constant(eval(compile(ast.Expression(ast.fix_missing_locations(node)), "", "eval")))
        except ArithmeticError:
            return node


class _Blank(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if _is_text(node) or _is_flag(node):
            return ast.Constant("" if _is_text(node) else False)
        return ast.Constant(0) if is_number(node) else node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        if node.arg not in _SEEN or not _is_flag(node.value):
            self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return ast.Attribute(node.value, "_", node.ctx) if _is_named(node) else node


def _blank(node: ast.AST) -> ast.AST:
    blank: ast.AST = _Blank().visit(copy.deepcopy(node))
    return blank
