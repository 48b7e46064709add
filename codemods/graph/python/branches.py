"""``if`` and ``match``: every way is run, knowing what its condition says, and they are joined."""

from __future__ import annotations

import ast
from collections import Counter

from codemods.graph.model.cells import Key
from codemods.graph.model.kinds import PlainKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.state import State, written_since
from codemods.graph.model.values import (
    NONE,
    Const,
    Instance,
    Join,
    Library,
    Mapping,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.python.builtins.classes import is_instance, is_of_type, may_be_subclass
from codemods.graph.python.expressions import Expressions
from codemods.graph.run.contents import ANY
from codemods.source.walking import names_in, walk


class Branches(Expressions):
    """The part of the engine that runs branches."""

    # if

    def _do_If(self, s: ast.If) -> None:
        run = self.run
        test = self.evaluate(s.test)
        if self.raises_here:
            return
        run.use(test, UseKind.TRUTH, s)
        truth = run.truth(test)
        if truth is None:
            truth = self.in_this_turn(s)
        if truth is True:
            self.execute(s.body)
            return
        if truth is False:
            self.execute(s.orelse)
            return
        base = run.s
        ends: list[State] = []
        narrowed: list[tuple[State, Key, Value, Value]] = []
        for branch, holds in ((s.body, True), (s.orelse, False)):
            run.s = base.fork(run.clock)
            run.dead = False
            self.narrowed = []
            self._refine(s.test, holds)
            refinements = self.narrowed
            self.execute(branch)
            if not run.dead:
                ends.append(run.s)
                narrowed += [(run.s, *refinement) for refinement in refinements]
        if len(ends) == 2:
            self._unbound_again(s, ends, base)
            # both ways meet again: what each knew is known no more
            for state, key, whole, part in narrowed:
                if state.here(key) is part:
                    state.put(key, whole)
        run.meet(ends, base)

    def _unbound_again(self, s: ast.If, ends: list[State], base: State) -> None:
        """A name that one way left unbound in an earlier turn is unbound again after it, where the way that is taken
        is the same in all turns: what the other way bound in that turn cannot be there."""
        run = self.run
        if not run.frame.loops:
            return
        asked = self._settled_by(s)
        if not asked:
            return
        chain = self._chain_of(s)
        others = [self._settled_by(outer) for outer in chain[1:]]
        whole = chain[-1] if all(others) else None
        asked += tuple(one for part in others for one in part)
        owner = run.frame.fid if run.frame.function is not None else run.frame.module_globals
        decided, left = run.left_unbound.get((owner, s), (asked, None))
        if left is None:
            left = [
                {key: None for key in written_since(other, base.log) if key[0] == owner and end.peek(key) is None}
                for end, other in (ends, ends[::-1])
            ]
        for end, other, bound in zip(ends, ends[::-1], left if decided == asked else (), strict=False):
            for key, last in bound.items():
                stale, new = base.peek(key), other.peek(key)
                if (
                    end.peek(key) is stale
                    and new not in (stale, None)
                    and (stale is last or (whole is not None and self._only_binds(whole, str(key[1]))))
                ):
                    # nothing else bound it since
                    end.delete(key)
                bound[key] = new
        run.left_unbound[owner, s] = (asked, left)

    def _settled_by(self, s: ast.If) -> tuple[object, ...]:
        """What decides an ``if`` that comes out the same in all turns of the loops around it; else nothing."""
        asked = self._same_in_all_turns(s.test)
        names = self.run.frame.file.once(names_in, s.test)
        again = any(
            not names.isdisjoint(self.run.frame.file.once(_stores_of, loop)) for loop, _ in self.run.frame.loops
        )
        return () if again else asked

    def _chain_of(self, s: ast.If) -> list[ast.If]:
        """An ``if`` and those that it is an ``elif`` of, innermost first."""
        chain = [s]
        while isinstance(outer := self.run.frame.file.parent(chain[-1]), ast.If) and outer.orelse == [chain[-1]]:
            chain.append(outer)
        return chain

    def _only_binds(self, whole: ast.If, name: str) -> bool:
        """Whether nothing in the loops around a chain of ``if`` binds a name but the chain."""
        file = self.run.frame.file
        within = file.once(_stores_of, whole).get(name)
        return name not in file.once(_declared_in, file.tree) and all(
            file.once(_stores_of, loop).get(name) == within for loop, _ in self.run.frame.loops
        )

    def _same_in_all_turns(self, test: ast.expr) -> tuple[object, ...]:
        """What decides a condition, if it comes out the same for as long as that is the same: settings, numbers that
        nothing writes again, what has an attribute or is None. Empty of other conditions."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._same_in_all_turns(test.operand)
        if isinstance(test, ast.BoolOp):
            parts = [self._same_in_all_turns(part) for part in test.values]
            return tuple(one for part in parts for one in part) if all(parts) else ()
        if isinstance(test, ast.Call):
            named = len(test.args) == 2 and isinstance(test.args[1], ast.Constant) and not test.keywords
            called = self.run.values.get(test.func)
            asks = isinstance(called, Library) and called.path == "builtins.hasattr"
            # where code in sight sets the attribute, the answer is known from there on
            return (self.run.values.get(test.args[0]),) if named and asks and _is_plain(test.args[0]) else ()
        if not isinstance(test, ast.Compare):
            return self._settled(test, None)
        sides = [test.left, *test.comparators]
        constants = [_constants(side) for side in sides]
        asked = [self._settled(s, constants[1] or ()) for s, known in zip(sides, constants, strict=True) if not known]
        return tuple(one for part in asked for one in part) if len(sides) == 2 and all(asked) else ()

    def _settled(self, subject: ast.expr, against: tuple[object, ...] | None) -> tuple[object, ...]:
        """What stands for the content of a name, an attribute or an element, if that is what it was unless it is
        written again; ``against`` are the constants that it is compared with, None where its truth is asked for."""
        run = self.run
        value = run.values.get(subject)
        if not _is_plain(subject) or value is None:
            return ()
        fixed = all(_is_fixed(option) for option in run.options(value))
        only_none = against == (None,)
        if fixed or (only_none and isinstance(subject, ast.Name)):
            key = self._cell_of(subject)
            return () if key is None else (key, run.rebound.get(key, 0), run.rebound.get((key[0], ANY), 0))
        if not isinstance(value, Unknown):
            return ()
        if isinstance(subject, ast.Name) and against and all(isinstance(c, str) for c in against):
            return (value,)
        # an attribute of what cannot be seen may change without a word
        filled = against is None and any(
            ast.unparse(subject) in run.frame.file.once(_opened_in, loop) for loop, _ in run.frame.loops
        )
        return (value,) if value.data and not filled else ()

    def _cell_of(self, subject: ast.expr) -> Key | None:
        """Where the content of a name or an attribute is kept."""
        if isinstance(subject, ast.Name):
            for fid in (*self.run.frame.owners(subject.id), self.run.frame.module_globals):
                if self.run.s.peek((fid, subject.id)) is not None:
                    return (fid, subject.id)
        elif isinstance(subject, ast.Attribute):
            oid = getattr(self.run.values.get(subject.value), "oid", None)
            if isinstance(oid, int):
                return (oid, subject.attr)
        return None

    def _refine(self, test: ast.expr, holds: bool) -> None:
        """What a branch knows: ``x is None`` in it, or not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._refine(test.operand, not holds)
            return
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) == holds:
                for part in test.values:
                    self._refine(part, holds)
            return
        if isinstance(test, ast.Call):
            self._refine_kind(test, holds)
            return
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Call):
            self._refine_type(test, test.left, holds)
            return
        negated = False
        subject: ast.expr = test
        if (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
        ):
            comparator = test.comparators[0]
            if not (isinstance(comparator, ast.Constant) and comparator.value is None):
                return
            negated = isinstance(test.ops[0], (ast.IsNot, ast.NotEq))
            subject = test.left
            is_none = holds is not negated
        elif isinstance(test, (ast.Name, ast.Attribute)):
            if not holds:
                return
            is_none = False
        else:
            return
        if not isinstance(subject, (ast.Name, ast.Attribute)):
            return
        value = self.evaluate(subject)
        if isinstance(value, Join):
            kept = tuple(o for o in value.options if (isinstance(o, Const) and o.value is None) is is_none)
            if not kept:
                return
            narrowed: Value = kept[0] if len(kept) == 1 else Join(kept)
            self._rebind(subject, narrowed)
        elif is_none and isinstance(value, Unknown) and value.module is None and value.node is None:
            self._rebind(subject, NONE)

    def _refine_kind(self, test: ast.Call, holds: bool) -> None:
        """``isinstance(x, kind)``, ``issubclass(x, kind)``: of several that ``x`` may be, a branch knows those that the
        test rules out."""
        if len(test.args) != 2 or not isinstance(test.args[0], (ast.Name, ast.Attribute)):
            return
        called, value = self.evaluate(test.func), self.evaluate(test.args[0])
        if not isinstance(value, Join) or not isinstance(called, Library):
            return
        if called.path == "builtins.isinstance":
            kinds = self.evaluate(test.args[1])
            answers = [(option, is_instance(self, option, kinds)) for option in value.options]
            self._keep(test.args[0], [o for o, answer in answers if self.run.truth(answer) is not (not holds)], value)
        elif called.path == "builtins.issubclass" and holds:
            kinds = self.evaluate(test.args[1])
            self._keep(test.args[0], [o for o in value.options if may_be_subclass(self, o, kinds)], value)

    def _refine_type(self, test: ast.Compare, asked: ast.Call, holds: bool) -> None:
        """``type(x) == kind``, ``type(x) not in [kind, kind]``: likewise."""
        if len(test.ops) != 1 or len(asked.args) != 1 or not isinstance(asked.args[0], (ast.Name, ast.Attribute)):
            return
        negated = isinstance(test.ops[0], (ast.IsNot, ast.NotEq, ast.NotIn))
        if not negated and not isinstance(test.ops[0], (ast.Is, ast.Eq, ast.In)):
            return
        called, value = self.evaluate(asked.func), self.evaluate(asked.args[0])
        if isinstance(value, Join) and isinstance(called, Library) and called.path == "builtins.type":
            kinds = self.evaluate(test.comparators[0])
            wanted = self.run.elements(kinds) if isinstance(test.ops[0], (ast.In, ast.NotIn)) else [kinds]
            ruled_out = holds is negated
            kept = [o for o in value.options if is_of_type(o, wanted) is not ruled_out]
            self._keep(asked.args[0], kept, value)

    def _keep(self, subject: ast.expr, kept: list[Value], whole: Join) -> None:
        if kept and len(kept) < len(whole.options):
            self._rebind(subject, kept[0] if len(kept) == 1 else Join(tuple(kept)))

    def _rebind(self, subject: ast.expr, value: Value) -> None:
        key = self._cell_of(subject)
        if key is not None:
            self._narrow(key, value)

    def _narrow(self, key: Key, value: Value) -> None:
        whole = self.run.s.get(key)
        self.run.s.set(key, value)
        if isinstance(whole, Value):
            self.narrowed.append((key, whole, value))

    # match

    def _do_Match(self, s: ast.Match) -> None:
        run = self.run
        subject = self.evaluate(s.subject)
        run.use(subject, UseKind.PASSED, s, "match")
        base = run.s
        ends: list[State] = []
        exhaustive = False
        for case in s.cases:
            run.s = base.fork(run.clock)
            run.dead = False
            self._bind_pattern(case.pattern, subject)
            if case.guard is not None:
                self.evaluate(case.guard)
            self.execute(case.body)
            if not run.dead:
                ends.append(run.s)
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None:
                exhaustive = True
                break
        if not exhaustive:
            ends.append(base.fork(run.clock))
        run.meet(ends, base)

    def _bind_pattern(self, pattern: ast.pattern, subject: Value) -> None:
        bind = getattr(self, f"_bind_{type(pattern).__name__}", None)
        if bind is not None:
            bind(pattern, subject)

    def _bind_MatchAs(self, pattern: ast.MatchAs, subject: Value) -> None:
        if pattern.pattern is not None:
            self._bind_pattern(pattern.pattern, subject)
        if pattern.name is not None:
            self.store_name(pattern.name, subject, pattern)

    def _bind_MatchStar(self, pattern: ast.MatchStar, subject: Value) -> None:
        if pattern.name is not None:
            self.store_name(pattern.name, subject, pattern)

    def _bind_MatchOr(self, pattern: ast.MatchOr, subject: Value) -> None:
        for alternative in pattern.patterns:
            self._bind_pattern(alternative, subject)

    def _bind_MatchSequence(self, pattern: ast.MatchSequence, subject: Value) -> None:
        starred = next((i for i, p in enumerate(pattern.patterns) if isinstance(p, ast.MatchStar)), None)
        columns = self.columns(subject, len(pattern.patterns), starred, pattern)
        for inner, value in zip(pattern.patterns, columns, strict=True):
            self._bind_pattern(inner, value)

    def _bind_MatchMapping(self, pattern: ast.MatchMapping, subject: Value) -> None:
        for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
            self._bind_pattern(inner, self.get_item(subject, self.evaluate(key), pattern))
        if pattern.rest is not None:
            self.store_name(pattern.rest, subject, pattern)

    def _bind_MatchClass(self, pattern: ast.MatchClass, subject: Value) -> None:
        for attribute, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            self._bind_pattern(inner, self.get_attribute(subject, attribute, pattern))
        # Class(x): of a builtin the object itself, else the field that is declared there
        fields = self._matched_fields(subject)
        for i, inner in enumerate(pattern.patterns):
            if isinstance(subject, Instance) and i < len(fields):
                self._bind_pattern(inner, self.get_attribute(subject, fields[i], pattern))
            else:
                whole = isinstance(subject, (Tensor, Const, Plain, Sequence, Mapping, Tuple))
                self._bind_pattern(inner, subject if whole else self.run.taken(pattern, subject, "matched"))

    def _matched_fields(self, subject: Value) -> list[str]:
        """The attributes that a pattern ``Class(x, y)`` asks for by position."""
        if not isinstance(subject, Instance):
            return []
        named = subject.cls.find("__match_args__")
        if isinstance(named, Tuple):
            return [str(item.value) for item in named.items if isinstance(item, Const)]
        return subject.cls.fields()


def _is_fixed(value: Value) -> bool:
    """Whether it is of a type that nothing changes in place."""
    return isinstance(value, Const) or (isinstance(value, Plain) and value.kind is not PlainKind.ARRAY)


def _is_plain(node: ast.expr) -> bool:
    """Whether it is a name, or an attribute or an element under a constant of such a thing."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def _constants(node: ast.expr) -> tuple[object, ...]:
    """The constants that stand there; empty of anything else."""
    if isinstance(node, ast.Constant):
        return (node.value,)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _constants(node.operand)
    parts = [_constants(n) for n in node.elts] if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [()]
    return tuple(value for part in parts for value in part) if all(parts) else ()


def _opened_in(node: ast.AST) -> frozenset[str]:
    """The expressions of which a loop reads attributes or elements."""
    return frozenset(ast.unparse(n.value) for n in walk(node) if isinstance(n, (ast.Attribute, ast.Subscript)))


def _stores_of(node: ast.AST) -> dict[str, int]:
    """The names that are bound in a piece of code, with how often they stand there to be bound."""
    return Counter(n.id for n in walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))


def _declared_in(node: ast.AST) -> frozenset[str]:
    """The names that functions bind for others."""
    return frozenset(name for n in walk(node) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names)
