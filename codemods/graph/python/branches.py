"""``if`` and ``match``: every way is run, knowing what its condition says, and they are joined."""

from __future__ import annotations

import ast

from codemods.graph.model.kinds import UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.state import Key, State, written_since
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
from codemods.graph.python.builtins.classes import is_instance, is_of_type
from codemods.graph.python.expressions import Expressions
from codemods.source.walking import names_in, walk

_COMPARING = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


class Branches(Expressions):
    """The part of the engine that runs branches."""

    # if

    def _do_If(self, s: ast.If) -> None:
        test = self.evaluate(s.test)
        if self.raises_here:
            return
        self.use(test, UseKind.TRUTH, s)
        truth = self.truth(test)
        if truth is True:
            self.execute(s.body)
            return
        if truth is False:
            self.execute(s.orelse)
            return
        base = self.s
        ends: list[State] = []
        narrowed: list[tuple[State, Key, Value, Value]] = []
        for branch, holds in ((s.body, True), (s.orelse, False)):
            self.s = base.fork()
            self.dead = False
            self.narrowed = []
            self._refine(s.test, holds)
            refinements = self.narrowed
            self.execute(branch)
            if not self.dead:
                ends.append(self.s)
                narrowed += [(self.s, *refinement) for refinement in refinements]
        if len(ends) == 2:
            self._unbound_again(s, ends, base)
            # both ways meet again: what each knew is known no more
            for state, key, whole, part in narrowed:
                if state.cells.get(key) is part:
                    state.cells[key] = whole
        self.meet(ends, base)

    def _unbound_again(self, s: ast.If, ends: list[State], base: State) -> None:
        """A name that one way left unbound in an earlier turn is unbound again behind it, where the way that is taken
        is the same in all turns: what the other way bound in that turn cannot be there."""
        asked = self._asked_of_texts(s.test)
        if not asked or not self.frame.loops:
            return
        names = self.frame.file.once(names_in, s.test)
        if any(not names.isdisjoint(self.frame.file.once(_stored_in, loop)) for loop, _ in self.frame.loops):
            return
        values = tuple(map(id, asked))
        owner = self.frame.fid if self.frame.function is not None else self.frame.module_globals
        before = self.left_unbound.get((owner, s))
        if before is None:
            found = [
                [key for key in written_since(other, base.log) if key[0] == owner and end.peek(key) is None]
                for end, other in (ends, ends[::-1])
            ]
            # the values are kept, so that no other comes under their identities
            self.left_unbound[owner, s] = (asked, values, found)
            return
        for end, other, keys in zip(ends, ends[::-1], before[2] if before[1] == values else (), strict=False):
            for key in keys:
                stale = base.peek(key)
                if end.peek(key) is stale and other.peek(key) is not stale and other.peek(key) is not None:
                    end.delete(key)

    def _asked_of_texts(self, test: ast.expr) -> tuple[Value, ...]:
        """What a condition compares with texts, if it asks for nothing else and all of it is there from outside: a
        setting. Empty otherwise."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._asked_of_texts(test.operand)
        if isinstance(test, ast.BoolOp):
            parts = [self._asked_of_texts(part) for part in test.values]
            return tuple(value for part in parts for value in part) if all(parts) else ()
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], _COMPARING):
            return ()
        texts = test.comparators[0]
        listed = texts.elts if isinstance(texts, (ast.Tuple, ast.List, ast.Set)) else [texts]
        if not all(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in listed):
            return ()
        plain = all(isinstance(n, (ast.Name, ast.Attribute, ast.expr_context)) for n in ast.walk(test.left))
        value = self.values.get(test.left)
        if not plain or not isinstance(value, Unknown):
            return ()
        # an attribute of what cannot be seen may change without a word
        return (value,) if value.data or isinstance(test.left, ast.Name) else ()

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
        """``isinstance(x, kind)``: of several that ``x`` may be, a branch knows those that the test rules out."""
        if len(test.args) != 2 or not isinstance(test.args[0], (ast.Name, ast.Attribute)):
            return
        called, value = self.evaluate(test.func), self.evaluate(test.args[0])
        if isinstance(value, Join) and isinstance(called, Library) and called.path == "builtins.isinstance":
            kinds = self.evaluate(test.args[1])
            answers = [(option, is_instance(self, option, kinds)) for option in value.options]
            self._keep(test.args[0], [o for o, answer in answers if self.truth(answer) is not (not holds)], value)

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
            wanted = self.elements(kinds) if isinstance(test.ops[0], (ast.In, ast.NotIn)) else [kinds]
            ruled_out = holds is negated
            kept = [o for o in value.options if is_of_type(o, wanted) is not ruled_out]
            self._keep(asked.args[0], kept, value)

    def _keep(self, subject: ast.expr, kept: list[Value], whole: Join) -> None:
        if kept and len(kept) < len(whole.options):
            self._rebind(subject, kept[0] if len(kept) == 1 else Join(tuple(kept)))

    def _rebind(self, subject: ast.expr, value: Value) -> None:
        if isinstance(subject, ast.Name):
            for fid in (*self.frame.owners(subject.id), self.frame.module_globals):
                if self.s.peek((fid, subject.id)) is not None:
                    self._narrow((fid, subject.id), value)
                    return
        elif isinstance(subject, ast.Attribute):
            owner = self.evaluate(subject.value)
            oid = getattr(owner, "oid", None)
            if isinstance(oid, int):
                self._narrow((oid, subject.attr), value)

    def _narrow(self, key: Key, value: Value) -> None:
        whole = self.s.get(key)
        self.s.set(key, value)
        if isinstance(whole, Value):
            self.narrowed.append((key, whole, value))

    # match

    def _do_Match(self, s: ast.Match) -> None:
        subject = self.evaluate(s.subject)
        self.use(subject, UseKind.PASSED, s, "match")
        base = self.s
        ends: list[State] = []
        exhaustive = False
        for case in s.cases:
            self.s = base.fork()
            self.dead = False
            self._bind_pattern(case.pattern, subject)
            if case.guard is not None:
                self.evaluate(case.guard)
            self.execute(case.body)
            if not self.dead:
                ends.append(self.s)
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None:
                exhaustive = True
                break
        if not exhaustive:
            ends.append(base.fork())
        self.meet(ends, base)

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
                self._bind_pattern(inner, subject if whole else self.taken(pattern, subject, "matched"))

    def _matched_fields(self, subject: Value) -> list[str]:
        """The attributes that a pattern ``Class(x, y)`` asks for by position."""
        if not isinstance(subject, Instance):
            return []
        named = subject.cls.find("__match_args__")
        if isinstance(named, Tuple):
            return [str(item.value) for item in named.items if isinstance(item, Const)]
        return subject.cls.fields()


def _stored_in(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
