"""Whether a name is bound where an edit would mention it, on every path, and what it may hold there.

Binding is asked of the syntax: which names are surely assigned when a statement begins or ends. What a name holds is
asked of the simulated run: of the contents of its cell at all the moments at which the place was passed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from codemods.graph.model.cells import Cells
from codemods.graph.model.nodes import Frame, Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.values import (
    Const,
    Instance,
    Join,
    Mapping,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    options_of,
)
from codemods.proofs.syntax import COMPREHENSIONS, DEFINITIONS, FUNCTIONS, ends_errors, names, scope
from codemods.source import walking

# A name, or a name that is bound wherever a test holds (True) or does not (False).
_Fact = str | tuple[str, bool, str]
_Facts = frozenset[_Fact]


def bound_at(file: ParsedFile, statement: ast.stmt, name: str, where: str = "after") -> bool:
    """Whether the variable ``name`` is bound on every path when ``statement`` has ended, or ``before`` it begins.

    A name that the function around it does not bind is looked for at the end of what is around that.
    """
    for i, flow in enumerate(_flows(file, statement)):
        if name in flow.own:
            known = flow.at_end if i else (flow.after if where == "after" else flow.before).get(statement)
            return known is not None and name in known
    return False


def bound_around(file: ParsedFile, statement: ast.stmt, name: str) -> bool | None:
    """Whether the scope of ``statement`` binds ``name`` itself (True), or one around it does (False); None: none does.

    What is declared global may be bound by any function of the file.
    """
    for i, flow in enumerate(_flows(file, statement)):
        if name in flow.own:
            return i == 0
    return False if name in file.once(_globals, file.tree) else None


def _flows(file: ParsedFile, statement: ast.stmt) -> Iterator[_Flow]:
    """Those of the scope of a statement and of what is around that; a class is only seen from within itself."""
    around = file.enclosing(statement, *FUNCTIONS, ast.ClassDef) or file.tree
    yield file.once(_flow_of, around)
    while around is not file.tree:
        around = scope(file, around)
        yield file.once(_flow_of, around)


def _globals(tree: ast.Module) -> set[str]:
    return {name for node in walking.walk(tree) if isinstance(node, ast.Global) for name in node.names}


def kinds(value: Value | None, cells: Cells, depth: int = 0) -> set[str]:
    """What a value may be: ``tensor``, ``none``, ``number``, ``tensors`` (a container of nothing else), ``mixed`` (a
    container of other things too) or ``unknown``."""
    if isinstance(value, Join):
        return {kind for option in value.options for kind in kinds(option, cells, depth)}
    if isinstance(value, Tensor):
        return {"tensor"}
    if isinstance(value, Const) and value.value is None:
        return {"none"}
    if isinstance(value, (Const, Plain)):
        return {"number"}
    parts = contents(value, cells)
    if parts is None or depth > 3:
        return {"unknown"}
    inner = {kind for part in parts for kind in kinds(part, cells, depth + 1)}
    return {"tensors"} if inner <= {"tensor", "tensors"} and inner else {"mixed"}


def contents(value: Value | None, cells: Cells) -> list[Value] | None:
    """What is in a container, by the cells of some moment; None if it is none."""
    if isinstance(value, Tuple):
        return list(value.items)
    if isinstance(value, Sequence):
        rest = cells.get((value.oid, "[rest]"))
        return [*(cells.get((value.oid, "[items]")) or ()), *([rest] if isinstance(rest, Value) else [])]
    if isinstance(value, Mapping):
        found = [v for (owner, name), v in cells.items() if owner == value.oid and _is_entry(name)]
        return [v for v in found if isinstance(v, Value)]
    return None


def _is_entry(name: object) -> bool:
    return name == "[rest]" or (isinstance(name, tuple) and name[:1] == ("key",))


def held(path: str, frame: Frame, cells: Cells) -> list[Value] | None:
    """What ``path``, a name with attributes, may hold in a frame at some moment; None if it may hold nothing.

    Whether a variable is bound on every path the cells do not tell: :func:`bound_at` does.
    """
    root, *attributes = path.split(".")
    local = frame.function is not None and root not in frame.globals
    found = cells.get((frame.fid, root)) if local else None
    fid = frame.function.closure if frame.function is not None else 0
    for owner in (fid, frame.module_globals):
        found = cells.get((owner, root)) if found is None else found
    values = [found] if isinstance(found, Value) else None
    for name in attributes:
        values = _attribute(values, name, cells) if values is not None else None
    return values


def _attribute(values: list[Value], name: str, cells: Cells) -> list[Value] | None:
    found: list[Value] = []
    for value in values:
        for option in options_of(value):
            owner = option.module if isinstance(option, Unknown) and option.module is not None else option
            inner = cells.get((getattr(owner, "oid", 0), name))
            if inner is None and isinstance(owner, Instance):
                inner = owner.cls.find(name)
            if not isinstance(inner, Value):
                return None
            found.append(inner)
    return found


def memory_of(value: Value) -> set[Value]:
    """A tensor, and those whose memory it may share; nothing of anything else."""
    if not isinstance(value, Tensor):
        return set()
    return {value, *value.bases, *(alias.given for alias in value.aliases)}


# which names are surely bound


@dataclass(eq=False)
class _Flow:
    """What is surely bound before and after each statement of one scope, and at its end."""

    own: set[str] = field(default_factory=set)
    before: dict[ast.stmt, _Facts | None] = field(default_factory=dict)
    after: dict[ast.stmt, _Facts | None] = field(default_factory=dict)
    at_end: _Facts | None = None


def _flow_of(code: ast.AST) -> _Flow:
    flow = _Flow()
    body: list[ast.stmt] = getattr(code, "body", [])
    arguments: set[str] = set()
    if isinstance(code, FUNCTIONS):
        arguments = {a.arg for a in walking.walk(code.args) if isinstance(a, ast.arg)}
    declared = {n for s in _statements(body) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    flow.own = (arguments | {n for s in _statements(body) for n in _bindings(s)}) - declared
    walk = _Walk(flow)
    flow.at_end = _meet([walk.suite(body, frozenset(arguments)), *walk.returns])
    return flow


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope, but for those in the functions and classes in it."""
    stack = list(body)
    while stack:
        statement = stack.pop()
        yield statement
        if isinstance(statement, (*DEFINITIONS, ast.ClassDef)):
            continue
        for child in walking.children(statement):
            if isinstance(child, ast.stmt):
                stack.append(child)
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                stack.extend(child.body)


def _bindings(statement: ast.stmt) -> set[str]:
    """The names that a statement binds itself, and not the statements in it."""
    if isinstance(statement, (*DEFINITIONS, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    found: set[str] = set()
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        for child in walking.children(node):
            if not isinstance(child, (ast.stmt, ast.Lambda, *COMPREHENSIONS)):
                stack.append(child)
    return found


def _targets(statement: ast.stmt) -> set[str]:
    """The names that a simple statement surely binds when it has run."""
    if isinstance(statement, (*DEFINITIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
        return _bindings(statement)
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.AnnAssign) and statement.value is not None):
        targets = [statement.target]
    else:
        return set()
    return {name for target in targets for name in names(target, ast.Store)}


class _Walk:
    """Goes through a scope; None stands for a point that is never reached."""

    def __init__(self, flow: _Flow) -> None:
        self.flow = flow
        self.breaks: list[_Facts] = []
        self.returns: list[_Facts] = []

    def suite(self, statements: Iterable[ast.stmt], facts: _Facts | None) -> _Facts | None:
        for statement in statements:
            self.flow.before[statement] = facts
            facts = None if facts is None else self._one(statement, facts)
            self.flow.after[statement] = facts
        return facts

    def _one(self, statement: ast.stmt, facts: _Facts) -> _Facts | None:
        if isinstance(statement, ast.If):
            return self._if(statement, facts)
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(statement, facts)
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            given = {n for item in statement.items if item.optional_vars for n in _stored(item.optional_vars)}
            begun = _bind(facts, given)
            end = self.suite(statement.body, begun)
            return _meet([end, begun]) if ends_errors(statement) else end
        if ends_errors(statement):
            return self._try(statement, facts)
        if isinstance(statement, ast.Match):
            ends = [self.suite(case.body, _bind(facts, _stored(case.pattern))) for case in statement.cases]
            return _meet([*ends, facts])
        if isinstance(statement, (ast.Return, ast.Raise)):
            if isinstance(statement, ast.Return):
                self.returns.append(facts)
            return None
        if isinstance(statement, (ast.Break, ast.Continue)):
            if isinstance(statement, ast.Break):
                self.breaks.append(facts)
            return None
        if isinstance(statement, ast.Delete):
            gone = names(statement, ast.Del)
            return frozenset(fact for fact in facts if (fact if isinstance(fact, str) else fact[2]) not in gone)
        return _bind(facts, _targets(statement), _attributes(statement))

    def _if(self, statement: ast.If, facts: _Facts) -> _Facts | None:
        test = ast.unparse(statement.test)
        then = self.suite(statement.body, _given(facts, test, holds=True))
        other = self.suite(statement.orelse, _given(facts, test, holds=False))
        met = _meet([then, other])
        if met is None:
            return None
        more = {(test, True, n) for n in (then or frozenset()) - met if isinstance(n, str)}
        more |= {(test, False, n) for n in (other or frozenset()) - met if isinstance(n, str)}
        if not more or any(isinstance(n, (ast.Call, ast.NamedExpr)) for n in walking.walk(statement.test)):
            return met
        # where a branch changes what its own test asks for, it says nothing of later ones
        changed = {n for s in _statements([statement]) for n in (*_bindings(s), *_attributes(s))}
        return met | more if not _mentions(statement.test, changed) else met

    def _loop(self, statement: ast.For | ast.AsyncFor | ast.While, facts: _Facts) -> _Facts | None:
        outer, self.breaks = self.breaks, []
        changed = {n for s in _statements(statement.body) for n in (*_bindings(s), *_attributes(s))}
        turning = set() if isinstance(statement, ast.While) else _stored(statement.target)
        # what a turn changes may undo what was known of a test before it
        start = frozenset(f for f in facts if isinstance(f, str) or not _mentions(_expression(f[0]), changed | turning))
        start -= {name for s in statement.body for name in names(s, ast.Del)}
        self.suite(statement.body, _bind(start, turning))
        forever = isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and statement.test.value
        ends = [*self.breaks, *([] if forever else [self.suite(statement.orelse, start)])]
        self.breaks = outer
        return _meet(ends)

    def _try(self, statement: Any, facts: _Facts) -> _Facts | None:
        done = self.suite(statement.orelse, self.suite(statement.body, facts))
        handled = [
            self.suite(handler.body, _bind(facts, {handler.name} if handler.name else set()))
            for handler in statement.handlers
        ]
        met = _meet([done, *handled])
        last = self.suite(statement.finalbody, facts)
        if met is None or last is None:
            return None
        return met | last


def _bind(facts: _Facts, given: set[str], attributes: Iterable[str] = ()) -> _Facts:
    changed = given | set(attributes)
    if not changed:
        return facts
    return frozenset(f for f in facts if isinstance(f, str) or not _mentions(_expression(f[0]), changed)) | given


def _given(facts: _Facts, test: str, *, holds: bool) -> _Facts:
    return facts | {f[2] for f in facts if isinstance(f, tuple) and f[:2] == (test, holds)}


def _meet(ends: Iterable[_Facts | None]) -> _Facts | None:
    reached = [end for end in ends if end is not None]
    return frozenset.intersection(*reached) if reached else None


def _stored(target: ast.AST) -> set[str]:
    return names(target, ast.Store) | {
        n.name for n in walking.walk(target) if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name
    }


def _attributes(statement: ast.stmt) -> set[str]:
    """The attributes that a statement assigns, by their texts."""
    return {
        ast.unparse(n) for n in walking.walk(statement) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    }


def _expression(text: str) -> ast.AST:
    return ast.parse(text, mode="eval").body


def _mentions(test: ast.AST, asked: set[str]) -> bool:
    return any(isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) in asked for n in walking.walk(test))
