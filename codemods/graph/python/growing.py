"""What grows by being made anew: sums, running means and containers, in all their spellings."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from codemods.graph.model.arguments import given_for
from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.nodes import Carrier, Value
from codemods.graph.model.trace import Accumulation
from codemods.graph.model.values import Const, Join, Mapping, Plain, Sequence, Tensor, Tuple
from codemods.graph.torch.model import Torch
from codemods.source.walking import walk

_PLACES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_BEST = frozenset(("torch.min", "torch.max", "torch.minimum", "torch.maximum", "torch.fmin", "torch.fmax"))
_SUMS = frozenset(("operator.add", "operator.iadd", "torch.add", "torch.lerp")) | _BEST
"""Functions whose first two arguments are added up, or mixed, or that keep the graphs of both."""
_OF_TENSORS = frozenset(("add", "add_", "lerp", "lerp_", "minimum", "maximum", "fmin", "fmax"))
"""Methods that add their first argument to a tensor, or mix it in."""
_SCALED = frozenset(("mul", "mul_", "div", "div_", "multiply", "divide", "true_divide"))
_REMADE = frozenset(
    (
        *(f"builtins.{name}" for name in ("list", "tuple", "set", "frozenset", "dict", "sorted", "reversed")),
        *("collections.deque", "collections.OrderedDict", "copy.copy", "itertools.chain"),
    )
)
"""Functions that hand on what their arguments hold."""


class Growing:
    """Tells growing values from those that are only assigned, and notes them in the trace."""

    def __init__(self, torch: Torch) -> None:
        self.run = torch.run
        self.torch = torch

    def note_sum(
        self, target: ast.expr, expression: ast.expr, value: Value, also: Iterable[str] = (), *, alone: bool = True
    ) -> None:
        """``total = total + loss`` is an accumulation too, and so is ``mean = 0.9 * mean + 0.1 * loss``.

        ``also`` are names under which the old value is read as well; ``alone`` tells whether the statement makes
        nothing but this sum.
        """
        run = self.run
        if isinstance(target, ast.Tuple) and isinstance(expression, ast.Tuple):
            # total, count = total + loss, count + 1
            starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *expression.elts))
            for one, given in zip(target.elts, expression.elts, strict=False) if not starred else ():
                made = run.values.get(given)
                if made is not None:
                    self.note_sum(one, given, made)
            return
        if not isinstance(target, _PLACES):
            return
        if isinstance(expression, (ast.ListComp, ast.DictComp)):
            self._note_sums_in_turns(target, expression, value)
            return
        self.note_entries(target, expression)
        if isinstance(expression, ast.Call):
            self._note_sum_of_call(target, expression, {place_text(target), *also})
        begun: list[ast.expr] = []
        if isinstance(expression, ast.IfExp):
            # mean = loss if mean is None else 0.9 * mean + 0.1 * loss
            begun = [a for a in (expression.body, expression.orelse) if self._sum_in(a) is None]
            sums = [a for a in (expression.body, expression.orelse) if self._sum_in(a) is not None]
            if len(sums) != 1:
                return
            expression = sums[0]
        made_of = self._sum_in(expression)
        if made_of is None:
            return
        terms = self._terms(made_of)
        texts = {place_text(target), *also}
        mine = next((t for t in terms if self._factor(t, texts)), None)
        old = run.values.get(mine) if mine is not None else None
        others = [t for t in terms if t is not mine]
        added = run.one_of([v for t in others if (v := run.values.get(t)) is not None])
        if old is None or added is None:
            return
        parts = tuple(part for t in (*others, *begun) for part in self.torch.parts_of(t))
        carrier = self.carrier(target)
        alone = alone and isinstance(target, _PLACES[:3])
        known = alone and made_of is expression and isinstance(made_of, ast.BinOp)
        events = run.trace.accumulations if known else run.trace.growths
        events.append(Accumulation(run.place(made_of), target, old, added, value, carrier, run.s.grad, parts))

    def note_returned(self, expression: ast.expr, value: Value) -> None:
        """``return old + new``: a sum grows where the caller puts it in place of what it gave for ``old``."""
        run = self.run
        call, sum_ = run.frame.call, self._sum_in(expression)
        if call is None or sum_ is None or not run.nodes_of(value):
            return
        terms = self._terms(sum_)
        rebound = run.frame.file.once(_rebound, run.frame.definition or sum_)
        known = [one for one in run.returned_sums.get(call.node, ()) if one.place.frame is run.frame]
        for mine in terms:
            old = run.values.get(mine)
            others = [t for t in terms if t is not mine]
            added = run.one_of([v for t in others if (v := run.values.get(t)) is not None])
            if old is None or added is None:
                continue
            parts = tuple(part for t in others for part in self.torch.parts_of(t))
            known += [
                Accumulation(run.place(sum_), name, old, added, value, None, run.s.grad, parts)
                for name in ast.walk(mine)
                if isinstance(name, ast.Name) and self._factor(mine, {name.id}) and name.id not in rebound
            ]
        run.returned_sums[call.node] = known

    def _note_sum_of_call(self, target: ast.expr, call: ast.Call, texts: set[str]) -> None:
        """``total = add(total, loss)``, where ``add`` returns the sum of both."""
        for one in self.run.returned_sums.pop(call, ()):
            assert isinstance(one.target, ast.Name)
            given = given_for(one.place.frame, one.target.id)
            if given is not None and place_text(given) in texts:
                self.run.trace.growths.append(replace(one, target=target, carrier=self.carrier(target)))

    def note_entries(self, container: ast.expr, *expressions: ast.expr) -> None:
        """``sums = {**sums, "a": sums["a"] + loss}``: what lies under a name grows, too."""
        for expression in expressions:
            for name, given in self._entries(expression) if _names_a_place(container) else ():
                value = self.run.values.get(given)
                if value is not None:
                    element = ast.copy_location(ast.Subscript(container, name, ast.Load()), given)
                    self.note_sum(element, given, value, alone=False)

    def note_updated(self, call: ast.AST) -> None:
        """``sums.update(a=sums["a"] + loss)``."""
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            self.note_entries(call.func.value, *call.args, _by_name(call))
        elif isinstance(call, ast.AugAssign):
            self.note_entries(call.target, call.value)

    def note_counted(self, call: ast.AST, key: Value, old: Value, added: Value, new: Value) -> None:
        """``counter.update(loss=loss)`` adds to what lies under each name."""
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(key, Const)):
            return
        for name, given in (pair for e in (*call.args, _by_name(call)) for pair in self._entries(e)):
            if isinstance(name, ast.Constant) and name.value == key.value:
                target = ast.copy_location(ast.Subscript(call.func.value, name, ast.Load()), given)
                parts, carrier = tuple(self.torch.parts_of(given)), self.carrier(target)
                event = Accumulation(self.run.place(given), target, old, added, new, carrier, self.run.s.grad, parts)
                self.run.trace.growths.append(event)

    def _entries(self, expression: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
        """The names and values in what a dict is filled from, as far as they stand there."""
        if isinstance(expression, ast.Dict):
            pairs = list(zip(expression.keys, expression.values, strict=True))
            inner = [pair for key, value in pairs if key is None for pair in self._entries(value)]
            return [*inner, *((key, value) for key, value in pairs if key is not None)]
        if isinstance(expression, (ast.List, ast.Tuple)):
            rows = [e.elts for e in expression.elts if isinstance(e, (ast.Tuple, ast.List))]
            return [(row[0], row[1]) for row in rows if len(row) == 2]
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr):
            return [*self._entries(expression.left), *self._entries(expression.right)]
        if not isinstance(expression, ast.Call):
            return []
        path = self.run.trace.called.get(expression, "")
        given = expression.args
        if path == "builtins.zip" and all(isinstance(a, (ast.List, ast.Tuple)) for a in given) and len(given) == 2:
            return list(zip(given[0].elts, given[1].elts, strict=False))  # type: ignore[attr-defined]
        if path in ("builtins.dict", "collections.OrderedDict"):
            return [pair for a in (*given, _by_name(expression)) for pair in self._entries(a)]
        return []

    def _note_sums_in_turns(self, target: ast.expr, made: ast.ListComp | ast.DictComp, value: Value) -> None:
        """``sums = [a + b for a, b in zip(sums, losses)]``: each of several sums grows."""
        sum_ = made.elt if isinstance(made, ast.ListComp) else made.value
        if len(made.generators) == 1:
            # each by itself, as it is read later
            sums = Join(tuple(self.run.elements(value)))
            self.note_sum(target, sum_, sums, self._elements_in_turns(target, made.generators[0]), alone=False)

    def _elements_in_turns(self, target: ast.expr, turns: ast.comprehension) -> set[str]:
        """How the turns of a comprehension read the elements of a container."""
        through, variables, text = turns.iter, turns.target, ast.unparse(target)
        found = {f"{text}[{n.id}]" for n in ast.walk(variables) if isinstance(n, ast.Name)}
        if ast.unparse(through) == text:
            # for value in sums
            found.add(ast.unparse(variables))
        if not isinstance(through, ast.Call) or not isinstance(variables, ast.Tuple):
            return found
        path, method = self.run.trace.called.get(through, ""), through.func
        if path == "builtins.zip" and len(through.args) == len(variables.elts):
            pairs = zip(through.args, variables.elts, strict=True)
            return found | {ast.unparse(variable) for given, variable in pairs if ast.unparse(given) == text}
        items = method.value if isinstance(method, ast.Attribute) and method.attr == "items" else None
        source = through.args[0] if path == "builtins.enumerate" and through.args else items
        if source is not None and ast.unparse(source) == text:
            found.add(ast.unparse(variables.elts[-1]))
        return found

    def note_added(self, function: ast.Attribute, old: Value, call: ast.Call | None, new: Value) -> None:
        """``total.add_(loss)``: a sum that grows in place."""
        if function.attr not in _OF_TENSORS or call is None or not call.args or not isinstance(old, Tensor):
            return
        target = function.value
        while isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute) and target.func.attr in _SCALED:
            target = target.func.value
        given = call.args[0]
        added = self.run.values.get(given)
        if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) and added is not None:
            parts, carrier = tuple(self.torch.parts_of(given)), self.carrier(target)
            self.run.trace.growths.append(
                Accumulation(self.run.place(call), target, old, added, new, carrier, self.run.s.grad, parts)
            )

    def note_growth(self, target: ast.expr, expression: ast.expr, value: Value) -> None:
        """``losses = [*losses, loss]``: a container that is made anew holds what it held before, and more."""
        if isinstance(target, _PLACES) and isinstance(value, (Sequence, Mapping, Tuple)):
            text = place_text(target)
            parts = self.parts_of_container(expression)
            more = [part for part in parts if place_text(part) != text]
            if len(more) < len(parts):
                self.torch.note_grown(value, more)

    def note_rebound(self, target: ast.expr, expression: ast.expr, value: Value) -> None:
        """The same of what is set by a function, as ``setattr`` does."""
        self.note_sum(target, expression, value)
        self.note_growth(target, expression, value)

    def parts_of_container(self, expression: ast.expr) -> list[ast.expr]:
        """What a container is put together from: other containers as they are, displays by their elements."""
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Add, ast.BitOr)):
            return [*self.parts_of_container(expression.left), *self.parts_of_container(expression.right)]
        if isinstance(expression, (ast.List, ast.Tuple, ast.Set)):
            return [
                part
                for e in expression.elts
                for part in (self.parts_of_container(e.value) if isinstance(e, ast.Starred) else [e])
            ]
        if isinstance(expression, ast.Dict):
            pairs = zip(expression.keys, expression.values, strict=True)
            return [p for key, v in pairs for p in (self.parts_of_container(v) if key is None else [v])]
        if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Slice):
            # losses[-9:] holds some of what losses did
            return self.parts_of_container(expression.value)
        if isinstance(expression, ast.Call):
            return self._parts_of_call(expression)
        return [expression]

    def _parts_of_call(self, call: ast.Call) -> list[ast.expr]:
        path = self.run.trace.called.get(call, "")
        given = [*call.args, *(k.value for k in call.keywords if k.arg is None)]
        if path in _REMADE:
            if path == "builtins.dict":
                # by names, as in a display
                return [p for e in given for p in self.parts_of_container(e)] + [
                    k.value for k in call.keywords if k.arg is not None
                ]
            return [p for e in given for p in self.parts_of_container(e.value if isinstance(e, ast.Starred) else e)]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "copy" and not given:
            return self.parts_of_container(call.func.value)
        return [call]

    def carrier(self, target: ast.expr) -> Carrier | None:
        """What a target names, for blame."""
        if isinstance(target, ast.Name):
            frame = self.run.frame
            if frame.function is None or target.id in frame.globals:
                return Carrier(CarrierKind.GLOBAL, frame.module_globals, target.id)
            return Carrier(CarrierKind.LOCAL, frame.fid, target.id)
        if isinstance(target, ast.Attribute):
            owner = self.run.interpreter.evaluate(target.value)
            oid = getattr(owner, "oid", 0)
            return Carrier(CarrierKind.ATTRIBUTE, oid, target.attr)
        if isinstance(target, ast.Subscript):
            owner = self.run.interpreter.evaluate(target.value)
            return Carrier(CarrierKind.ELEMENT, getattr(owner, "oid", 0), "")
        return None

    # sums

    def _sum_in(self, expression: ast.expr) -> ast.expr | None:
        """The sum that an expression is, or a multiple of: ``(total * n + loss) / (n + 1)``."""
        while isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Mult, ast.Div)):
            sides = [s for s in (expression.left, expression.right) if not self._is_plain(s)]
            if len(sides) != 1 or (isinstance(expression.op, ast.Div) and sides[0] is expression.right):
                return None
            expression = sides[0]
        added = isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add)
        return expression if added or self._summands(expression) else None

    def _is_plain(self, expression: ast.expr) -> bool:
        return isinstance(self.run.values.get(expression), (Const, Plain))

    def _terms(self, expression: ast.expr) -> list[ast.expr]:
        terms: list[ast.expr] = [expression]
        while isinstance(terms[0], ast.BinOp) and isinstance(terms[0].op, ast.Add):
            terms[:1] = [terms[0].left, terms[0].right]
        return terms if len(terms) > 1 else self._summands(expression)

    def _summands(self, expression: ast.expr) -> list[ast.expr]:
        """What a call adds up, if it is one that does: ``torch.add(total, loss)``, ``sum([total, loss])``."""
        if not isinstance(expression, ast.Call) or not expression.args:
            return []
        path = self.run.trace.called.get(expression, "")
        first = expression.args[0]
        if path == "builtins.sum" and len(expression.args) == 1 and isinstance(first, (ast.List, ast.Tuple)):
            return [] if any(isinstance(e, ast.Starred) for e in first.elts) else first.elts
        if path in _SUMS and len(expression.args) > 1:
            return expression.args[:2]
        method = expression.func
        if isinstance(method, ast.Attribute) and method.attr in _OF_TENSORS:
            return [method.value, first] if isinstance(self.run.values.get(method.value), Tensor) else []
        return []

    def _factor(self, term: ast.expr, texts: set[str]) -> bool:
        """Whether a term of a sum is what reads one of ``texts``, or a multiple of that."""
        if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
            return self._factor(term.left, texts) or (isinstance(term.op, ast.Mult) and self._factor(term.right, texts))
        scaled = isinstance(term, ast.Call) and isinstance(term.func, ast.Attribute) and term.func.attr in _SCALED
        if scaled and isinstance(self.run.values.get(term.func.value), Tensor):  # type: ignore[attr-defined]
            return self._factor(term.func.value, texts)  # type: ignore[attr-defined]
        return place_text(term) in texts


def _by_name(call: ast.Call) -> ast.Dict:
    """The keywords of a call as a dict."""
    named = call.keywords
    return ast.Dict([None if k.arg is None else ast.Constant(k.arg) for k in named], [k.value for k in named])


def _names_a_place(expression: ast.expr) -> bool:
    """Whether it may be evaluated once more: a name, an attribute or element of one, or the names of an object."""
    while isinstance(expression, (ast.Attribute, ast.Subscript)):
        if isinstance(expression, ast.Subscript) and not isinstance(expression.slice, (ast.Name, ast.Constant)):
            return False
        expression = expression.value
    if isinstance(expression, ast.Call):
        named = isinstance(expression.func, ast.Name) and expression.func.id == "vars" and len(expression.args) == 1
        return named and _names_a_place(expression.args[0])
    return isinstance(expression, ast.Name)


def place_text(expression: ast.expr) -> str:
    """The text of a place that is read or written, the same for all its spellings."""
    if isinstance(expression, ast.Call) and len(expression.args) > 1 and not expression.keywords:
        owner, name = expression.args[:2]
        if isinstance(expression.func, ast.Name) and expression.func.id == "getattr":
            return attribute_text(owner, name)
    method = expression.func if isinstance(expression, ast.Call) and expression.args else None
    if isinstance(method, ast.Attribute) and method.attr == "get":
        # sums[key] = sums.get(key, 0) + loss
        return f"{ast.unparse(method.value)}[{ast.unparse(expression.args[0])}]"  # type: ignore[attr-defined]
    if isinstance(expression, ast.Subscript):
        space = expression.value
        if isinstance(space, ast.Attribute) and space.attr == "__dict__":
            return attribute_text(space.value, expression.slice)
        if isinstance(space, ast.Call) and isinstance(space.func, ast.Name) and space.func.id == "vars" and space.args:
            return attribute_text(space.args[0], expression.slice)
    return ast.unparse(expression)


def attribute_text(owner: ast.expr, name: ast.expr) -> str:
    """The text of an attribute by its name, which may be computed."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return f"{ast.unparse(owner)}.{name.value}"
    return f"getattr({ast.unparse(owner)}, {ast.unparse(name)})"


def _rebound(tree: ast.AST) -> frozenset[str]:
    """The names that are bound or deleted somewhere in a tree."""
    return frozenset(n.id for n in walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
