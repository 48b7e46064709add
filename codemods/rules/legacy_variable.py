"""The rule ``legacy-variable``."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from codemods.edits.model import Edit, KeepPart, RemoveStatement, RenameArgument, ReplaceExpression
from codemods.findings import Finding, Promise, Span, TrailStep
from codemods.graph import facts
from codemods.graph.expressions import first_element
from codemods.graph.program import ParsedFile
from codemods.graph.trace import Alias, Trace
from codemods.graph.values import Const, Join, Node, Parameters, Plain, Tensor, Unknown, Unseen, Value
from codemods.rules.base import Decision, Observation, Rule, Site, sites
from codemods.rules.carried_hidden_state import is_variable, repackaging_helpers
from codemods.rules.surplus_retain_graph import SurplusRetainGraph

_SURPLUS = SurplusRetainGraph.name

_OF_ONE_ELEMENT = frozenset({"sum", "mean", "prod", "norm", "std", "var"})
"""Methods that, called without arguments, leave one element (docs: torch.Tensor)."""

_WITHOUT_DATA = frozenset(
    (
        *("item", "size", "dim", "ndimension", "numel", "nelement", "tolist", "type", "new", "new_zeros", "new_ones"),
        *("new_empty", "new_full", "new_tensor", "shape", "dtype", "device", "ndim", "is_cuda", "get_device"),
    )
)
"""What is the same with or without a history, so that nothing need stand for ``.data``."""

_ITSELF = facts.VIEWS | facts.MAY_COPY | frozenset(("short", "byte", "bool"))
"""Methods that may return the very object they are called on."""


class LegacyVariable(Rule):
    """Forms from before PyTorch 0.4, when a ``Variable`` with a history was wrapped around each tensor.

    Tensors have histories of their own today. What is left of the old forms is refused (``loss.data[0]`` on a loss,
    ``retain_variables=``), ignored (``volatile=``), or does something that its name does not say: ``Variable(x)`` makes
    another tensor over the same memory, without the history of ``x``.

    What each becomes is what it does today, or, where it raises today, what it did where it ran:

    * ``Variable(x)`` -> ``x``; ``x.detach()`` where ``x`` has a history or that cannot be ruled out, or where one of
      the two objects is changed afterwards (``unsqueeze_``, ``requires_grad = True``) and the other is used.
      ``Variable(x, requires_grad=True)`` -> a new leaf, ``x.detach().requires_grad_()``. A statement that would then
      assign a name to itself goes.
    * ``volatile=`` is dropped, also where it is no literal. A literal ``volatile=True`` on evaluation is mended
      together with it by ``grad-in-evaluation``, which goes first.
    * ``loss.data[0]``, also through ``.cpu()`` and ``.numpy()`` -> ``loss.item()``, where one element is proven: a
      reduced loss, something that ``backward()`` was called on. A vector's first element stays an index.
    * ``x.data`` that is only read -> ``x.detach()``. It stays where it is written through, where ``x`` may be something
      else (a packed sequence, a data frame), and where it enters a graph while ``x`` changes in place before the
      backward: a parameter that an optimizer steps. There ``detach()`` would raise, because it shares the counter by
      which autograd notices such changes.
    * ``retain_variables=`` -> ``retain_graph=``, where ``surplus-retain-graph`` does not drop it.
    * ``type(x) == Variable``, which no tensor is any more -> ``isinstance(x, torch.Tensor)``; that changes what runs
      today, so it is ``behaviour``. The helper that repackages hidden state belongs to ``carried-hidden-state``.
      ``isinstance(x, Variable)`` still holds for every tensor and stays.

    Why it hurts: ``Variable(x)`` costs a call (some microseconds) and cuts a graph without saying so; ``loss.data[0]``
    and ``retain_variables=`` end the run with IndexError and TypeError.

    Imports that nothing uses any more go with the last use. Left alone: ``Variable`` of other libraries and of the
    tree, calls with ``*args``, ``Variable()`` and ``Variable(None)``, numpy arrays (``Variable`` refuses them).

    Promise: exact.

    Source: https://pytorch.org/blog/pytorch-0_4_0-migration-guide/
    """

    name = "legacy-variable"
    promise = Promise.EXACT
    since = "0.4"
    summary = "forms of PyTorch before 0.4 that are refused, ignored or misleading today"
    gate = (
        b"Variable",
        b"volatile",
        b"retain_variables",
        b".data[",
        b".data)",
        b".data,",
        b".data]",
        b".data *",
        b".data +",
        b".data -",
        b".data /",
        b".data.abs",
        b".data.clone",
        b".data.cpu",
        b".data.cuda",
        b".data.eq",
        b".data.float",
        b".data.item",
        b".data.long",
        b".data.max",
        b".data.mean",
        b".data.min",
        b".data.new",
        b".data.norm",
        b".data.numpy",
        b".data.size",
        b".data.squeeze",
        b".data.sum",
        b".data.tolist",
        b".data.topk",
        b".data.type",
        b".data.view",
    )

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not (trace.aliases or trace.old or trace.walks or trace.alterations):
            return
        changes = _Changes(trace)
        for alias in trace.aliases:
            file, node = alias.place.frame.file, alias.place.node
            if alias.form == "variable" and isinstance(node, ast.Call):
                history = _history(alias.given)
                yield self.seen(file, node, "variable", "fault", history=history, changed=changes.objects(alias))
            elif alias.form == "data" and isinstance(node, ast.Attribute):
                yield self.seen(file, node, "data", "needed" if changes.tied(alias) else "fault")
        for old in trace.old:
            file, node = old.place.frame.file, old.place.node
            if old.kind == "first-element":
                proven = _one_element(old.value) or _reduced(old.subject)
                subject = file.span(old.subject)
                verdict = "fault" if proven else "unsure"
                yield self.seen(file, node, "item", verdict, subject=subject, unreached=False)
            elif old.kind == "type-is-variable":
                yield self.seen(file, node, "type", "fault")
        for change in trace.alterations:
            statement = change.place.statement
            if change.how == "volatile" and isinstance(change.value, Tensor) and isinstance(statement, ast.Assign):
                yield self.seen(change.place.frame.file, statement, "volatile", "fault")
        yield from self._retained(trace)
        yield from self._unreached(trace)

    def _unreached(self, trace: Trace) -> Iterator[Observation]:
        """What stands in branches that this run did not take: a constant decides them, or another device."""
        seen = {id(alias.place.node) for alias in trace.aliases} | {id(old.place.node) for old in trace.old}
        done: set[int] = set()
        for frame in trace.frames:
            code = frame.definition or frame.file.tree
            if id(code) in done or isinstance(code, ast.Lambda):
                continue
            done.add(id(code))
            for node in _old_forms(frame.file, code):
                if id(node) in seen:
                    continue
                if isinstance(node, ast.Call):
                    yield self.seen(frame.file, node, "variable", "fault", history="unseen", changed=False)
                elif (subject := first_element(node)) is not None:
                    proven = _reduced(subject) or _walked(subject, code)
                    span = frame.file.span(subject)
                    verdict = "fault" if proven else "unsure"
                    yield self.seen(frame.file, node, "item", verdict, subject=span, unreached=True)

    def _retained(self, trace: Trace) -> Iterator[Observation]:
        walks = [w for w in trace.walks if w.retain_argument == "retain_variables" and w.call is not None]
        if not walks:
            return
        surplus = {(o.path, o.span): o.verdict for o in SurplusRetainGraph().observe(trace)}
        for walk in walks:
            assert walk.call is not None
            file = walk.place.frame.file
            dropped = surplus.get((file.path, file.span(walk.call))) == "fault"
            yield self.seen(file, walk.call, "retain", "fault", dropped=dropped)

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        lines: dict[tuple[str, Span, int, Promise], _Line] = {}
        for change in self._changes(observations, decision):
            key = (change.file.path, change.statement, change.line, change.promise)
            lines.setdefault(key, _Line()).changes.append(change)
        for (path, statement, _, promise), line in sorted(lines.items(), key=lambda item: item[0][:3]):
            yield self._finding(path, statement, promise, line)

    def _changes(self, observations: list[Observation], decision: Decision) -> Iterator[_Change]:
        items = [_without_unseen(s) for s in sites(observations, "item")]
        numbers = [(s.path, s.span) for s in items]
        yield from _each(items, decision, _item)
        yield from _each(sites(observations, "variable"), decision, _variable)
        data = [s for s in sites(observations, "data") if not any(_within(s, *number) for number in numbers)]
        yield from _each(data, decision, _data)
        yield from _each(sites(observations, "type"), decision, _type)
        yield from _each(sites(observations, "volatile"), decision, _volatile)
        owned = _SURPLUS not in decision.options.ignore and _SURPLUS in (decision.options.select or (_SURPLUS,))
        retained = [
            s for s in sites(observations, "retain") if not (owned and all(o.facts["dropped"] for o in s.observations))
        ]
        yield from _each(retained, decision, _retain)

    def _finding(self, path: str, statement: Span, promise: Promise, line: _Line) -> Finding:
        edits = line.edits(statement)
        messages = list(dict.fromkeys(change.message for change in line.changes))
        remedies = list(dict.fromkeys(change.remedy for change in line.changes))
        span = min(change.span for change in line.changes)
        trail = tuple(
            TrailStep(path, c.span.line, f"written for PyTorch before 0.4: {c.old}") for c in line.changes[:3]
        )
        return Finding(
            self.name,
            path,
            span,
            promise,
            "; ".join(messages),
            "; ".join(remedies),
            tuple(dict.fromkeys(trail)),
            tuple((path, edit) for edit in edits),
            yields=True,
        )


@dataclass(frozen=True)
class _Change:
    """One old form and what is to become of it; ``same`` says that only the argument is left."""

    file: ParsedFile
    span: Span
    statement: Span
    line: int
    old: str
    message: str
    remedy: str
    edit: Edit
    promise: Promise = Promise.EXACT
    same: bool = False


@dataclass
class _Line:
    """The old forms in one line of a statement, which are mended together."""

    changes: list[_Change] = field(default_factory=list)

    def edits(self, statement: Span) -> list[Edit]:
        """The edits, or the removal of a statement that would then only assign names to themselves."""
        file = self.changes[0].file
        node = file.find(statement, ast.stmt)
        calls = {c.span for c in self.changes if c.same}
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and len(calls) == len(self.changes):
            targets, values = _parts(node.targets[0]), _parts(node.value)
            if len(targets) == len(values) and all(
                isinstance(v, ast.Call) and file.span(v) in calls and _given(v) == ast.unparse(t)
                for t, v in zip(targets, values, strict=True)
            ):
                return [RemoveStatement(statement)]
        return [change.edit for change in self.changes]


def _parts(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]


def _given(call: ast.Call) -> str:
    argument = _argument(call, 0, "data")
    return ast.unparse(argument) if argument is not None else ""


# what a run shows


class _Changes:
    """What a run changes in place, and what enters a graph."""

    def __init__(self, trace: Trace) -> None:
        self._of_alias: dict[int, list[str]] = defaultdict(list)
        self._of_value: dict[int, list[tuple[str, int]]] = defaultdict(list)
        self._of_node: dict[int, list[int]] = defaultdict(list)
        for change in trace.alterations:
            if isinstance(change.value, Tensor):
                for alias in change.value.aliases:
                    self._of_alias[id(alias.origin)].append(change.how)
            self._of_value[id(change.value)].append((change.how, change.place.clock))
            if change.value.node is not None:
                self._of_node[id(change.value.node)].append(change.place.clock)
        self._unpacked = trace.unpacked
        self._drawn = {id(alias.origin) for aliases, _ in trace.drawn for alias in aliases}

    def objects(self, alias: Alias) -> bool:
        """Whether one of the two tensors is changed in a way that the other would not be."""
        born = alias.place.clock
        hows = {*self._of_alias[id(alias)], *(how for how, at in self._of_value[id(alias.given)] if at >= born)}
        return not hows.isdisjoint(("shape", "requires_grad", "attached"))

    def _packed(self, node: Node | None) -> bool:
        """Whether a value may be a packed sequence, whose ``data`` is one of its fields."""
        if node is None:
            return False
        recurrent = node.kind == "module" and node.label in facts.RECURRENT
        return node.label.startswith("pack") or (recurrent and node not in self._unpacked)

    def tied(self, alias: Alias) -> bool:
        """Whether ``x.data`` is more than a reading of ``x``, or ``x`` may not be a tensor."""
        given = alias.given
        if not isinstance(given, Tensor) or self._packed(given.node) or self._of_alias[id(alias)]:
            return True
        if id(alias) not in self._drawn:
            return False
        if given.node is not None and given.node.leaf and given.node.label != "input":
            return True
        born = alias.place.clock
        clocks = [at for _, at in self._of_value[id(given)]]
        clocks += self._of_node[id(given.node)] if given.node is not None else []
        return any(at >= born for at in clocks)


def _history(value: Value) -> str:
    """Whether a value is attached: ``plain``, ``attached``, ``maybe``, or ``unsure`` where it may be no tensor."""
    if isinstance(value, Join):
        found = {
            _history(option) for option in value.options if not (isinstance(option, Const) and option.value is None)
        }
        return next((word for word in ("unsure", "maybe", "attached") if word in found), "plain" if found else "unsure")
    if isinstance(value, Parameters):
        return "attached" if value.element else "unsure"
    if not isinstance(value, (Tensor, Unknown)):
        return "unsure"
    if value.node is not None:
        return "attached"
    if any(isinstance(origin, Unseen) for origin in value.shadow):
        return "maybe"
    return "plain" if isinstance(value, Tensor) or value.data else "maybe"


def _one_element(value: Value) -> bool:
    """Whether a value is proven to be a tensor of one element."""
    if isinstance(value, Tensor):
        return value.scalar or (value.node is not None and value.node.scalar)
    if isinstance(value, Unknown):
        return value.node is not None and value.node.scalar
    if isinstance(value, Join):
        tensors = [option for option in value.options if not isinstance(option, (Const, Plain))]
        return bool(tensors) and all(_one_element(option) for option in tensors)
    return False


def _reduced(expression: ast.expr) -> bool:
    """Whether it is written as a reduction to one element: ``(a == b).sum()``."""
    return (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Attribute)
        and expression.func.attr in _OF_ONE_ELEMENT
        and not expression.args
        and not expression.keywords
    )


def _without_unseen(site: Site) -> Site:
    """A site by what runs showed; where none came through, by what its function says."""
    ran = [o for o in site.observations if not o.facts["unreached"]]
    if ran:
        return Site(site.path, site.span, site.kind, tuple(ran))
    return site


@functools.lru_cache(maxsize=512)
def _old_forms(file: ParsedFile, code: ast.AST) -> tuple[ast.expr, ...]:
    """The calls of ``Variable`` and the ``[0]`` behind a ``.data`` in a function, or at the top level."""
    found: list[ast.expr] = []
    stack: list[ast.AST] = list(ast.iter_child_nodes(code))
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call):
            if _is_named_variable(node.func) and is_variable(file, node.func):
                found.append(node)
        elif isinstance(node, ast.Subscript) and first_element(node) is not None:
            found.append(node)
        stack.extend(ast.iter_child_nodes(node))
    return tuple(found)


def _is_named_variable(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return str(name).endswith(("Variable", "V", "Var"))


def _walked(subject: ast.expr, code: ast.AST) -> bool:
    """Whether a function calls ``backward()`` on a name, which it can only on one element."""
    return isinstance(subject, ast.Name) and any(
        isinstance(node, ast.Call)
        and not node.args
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == subject.id
        for node in ast.walk(code)
    )


# what becomes of it


def _each(
    found: Iterable[Site], decision: Decision, make: Callable[[Site, ParsedFile], _Change | None]
) -> Iterator[_Change]:
    for site in found:
        file = decision.files(site.path)
        if file is None or _repackages(site, file):
            continue
        change = make(site, file)
        if change is not None:
            yield change


def _repackages(site: Site, file: ParsedFile) -> bool:
    """Whether it is a line of a broken helper for hidden state, which ``carried-hidden-state`` mends."""
    node = file.find(site.span, ast.expr)
    function = file.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef) if node is not None else None
    return isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        _within(site, file.path, helper) for helper in repackaging_helpers(file, function)
    )


def _within(site: Site, path: str, outer: Span) -> bool:
    start, end = (site.span.line, site.span.column), (site.span.end_line, site.span.end_column)
    return site.path == path and (outer.line, outer.column) <= start and end <= (outer.end_line, outer.end_column)


def _change(file: ParsedFile, node: ast.expr, message: str, remedy: str, edit: Edit, **more: object) -> _Change | None:
    statement = file.enclosing(node, ast.stmt)
    if statement is None:
        return None
    span, whole = file.span(node), file.span(statement)
    # the header of a loop or a branch is a line of its own
    line = 0 if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Call, ast.Tuple)) else span.line
    old = ast.unparse(node)
    short = old if len(old) <= 60 else f"{old[:57]}..."
    return _Change(file, span, whole, line, short, message, remedy, edit, **more)  # type: ignore[arg-type]


def _variable(site: Site, file: ParsedFile) -> _Change | None:
    call = file.find(site.span, ast.Call)
    if not isinstance(call, ast.Call):
        return None
    histories = {o.facts["history"] for o in site.observations} - {"unseen"} or {"maybe"}
    given = _argument(call, 0, "data")
    known = {"data", "requires_grad", "volatile"}
    if given is None or "unsure" in histories or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if len(call.args) > 3 or any(k.arg not in known for k in call.keywords) or isinstance(given, ast.Constant):
        return None
    if _loses_comments(file, call, given):
        return None
    plain = histories == {"plain"}
    fresh = _is_fresh(given)
    asks = _argument(call, 1, "requires_grad")
    wants = ""
    if asks is not None and not (isinstance(asks, ast.Constant) and not asks.value):
        literal = isinstance(asks, ast.Constant) and asks.value is True
        wants = ".requires_grad_()" if literal else f".requires_grad_({ast.unparse(asks)})"
    apart = bool(wants) or site.any("changed")
    cuts = not plain or (apart and not fresh)
    suffix = (".detach()" if cuts and not _is_data(given) else "") + wants
    volatile = _argument(call, 2, "volatile") is not None
    if wants:
        message = "Variable(..., requires_grad=True) makes a new leaf, which a tensor does by itself since PyTorch 0.4"
    elif not plain:
        message = "Variable() hands its tensor on without its history, which today is called detach()"
    else:
        message = "Variable() has had no use since PyTorch 0.4: it hands its tensor on"
    if volatile:
        message += "; volatile= is ignored"
    return _change(
        file,
        call,
        message,
        f"write `{_short(given)}{suffix}`",
        KeepPart(site.span, file.span(given), suffix),
        same=not suffix,
    )


def _item(site: Site, file: ParsedFile) -> _Change | None:
    node = file.find(site.span, ast.Subscript)
    if not site.faulty or not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    outer = file.parent(node)
    if isinstance(outer, (ast.Attribute, ast.Subscript, ast.AugAssign)) and getattr(outer, "target", node) is node:
        # something is done with it that no number can do
        return None
    subject = site.facts["subject"]
    inner = file.find(subject, ast.expr)
    if not isinstance(inner, ast.expr) or _loses_comments(file, node, inner):
        return None
    middle = _text(file, Span(subject.end_line, subject.end_column, site.span.end_line, site.span.end_column))
    return _change(
        file,
        node,
        f"`{middle}` raises on a 0-dimensional tensor, which a loss is since PyTorch 0.4",
        f"write `{_short(inner)}.item()`",
        KeepPart(site.span, subject, ".item()"),
    )


def _data(site: Site, file: ParsedFile) -> _Change | None:
    node = file.find(site.span, ast.Attribute)
    if not site.faulty or not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return None
    if _loses_comments(file, node, node.value) or _writes_data(file, node):
        return None
    outer = file.parent(node)
    if isinstance(outer, ast.Attribute) and outer.attr in _WITHOUT_DATA and not _casts(file, outer):
        message, suffix = f".data has no use in front of {outer.attr}", ""
    else:
        message, suffix = ".data hides from autograd what happens to the tensor; detach() reads the same", ".detach()"
    return _change(
        file,
        node,
        message,
        f"write `{_short(node.value)}{suffix}`",
        KeepPart(site.span, file.span(node.value), suffix),
    )


def _casts(file: ParsedFile, method: ast.Attribute) -> bool:
    """Whether it is ``type(...)`` with an argument, which returns a tensor."""
    call = file.parent(method)
    return method.attr == "type" and isinstance(call, ast.Call) and bool(call.args or call.keywords)


def _writes_data(file: ParsedFile, node: ast.expr) -> bool:
    """Whether its statement writes through a ``.data``: there the two are kept alike."""
    statement = file.enclosing(node, ast.stmt)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        return isinstance(function, ast.Attribute) and function.attr.endswith("_") and _mentions_data(function.value)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(target is not None and _mentions_data(target) for target in targets)


def _mentions_data(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "data" for n in ast.walk(node))


def _type(site: Site, file: ParsedFile) -> _Change | None:
    node = file.find(site.span, ast.Compare)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    asked = next(
        (
            side.args[0]
            for side in (node.left, node.comparators[0])
            if isinstance(side, ast.Call)
            and isinstance(side.func, ast.Name)
            and side.func.id == "type"
            and len(side.args) == 1
        ),
        None,
    )
    if asked is None:
        return None
    negation = {ast.Eq: "", ast.Is: "", ast.NotEq: "not ", ast.IsNot: "not "}.get(type(node.ops[0]))
    if negation is None:
        return None
    code = f"{negation}isinstance({ast.unparse(asked)}, {{torch}}.Tensor)"
    return _change(
        file,
        node,
        "the type of a tensor is never Variable since PyTorch 0.4, so this comparison has one outcome only",
        f"write `{code.format(torch='torch')}`",
        ReplaceExpression(site.span, code),
        promise=Promise.BEHAVIOUR,
    )


def _volatile(site: Site, file: ParsedFile) -> _Change | None:
    statement = file.find(site.span, ast.Assign)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    if not isinstance(statement.value, (ast.Constant, ast.Name)):
        return None
    old = ast.unparse(statement)
    message = "volatile is ignored since PyTorch 0.4"
    return _Change(
        file, site.span, site.span, site.span.line, old, message, f"drop `{old}`", RemoveStatement(site.span)
    )


def _retain(site: Site, file: ParsedFile) -> _Change | None:
    call = file.find(site.span, ast.Call)
    if not isinstance(call, ast.Call) or not any(k.arg == "retain_variables" for k in call.keywords):
        return None
    return _change(
        file,
        call,
        "retain_variables= is refused since PyTorch 0.4",
        "write `retain_graph=`",
        RenameArgument(site.span, "retain_variables", "retain_graph"),
    )


# reading an expression


def _argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    keyword = next((k.value for k in call.keywords if k.arg == name), None)
    if keyword is not None:
        return keyword
    return call.args[index] if index < len(call.args) else None


def _is_data(node: ast.expr) -> bool:
    """Whether it is ``x.data``, an object without history that nobody else has."""
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _is_fresh(node: ast.expr) -> bool:
    """Whether an expression makes a tensor object that nothing else can hold."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)) or _is_data(node):
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, node.func.value
    root = receiver
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name) and root.id == "torch":
        return name in facts.FACTORIES or name not in ("as_tensor", "asarray")
    if name in _ITSELF or (name.endswith("_") and not name.startswith("_")):
        return _is_fresh(receiver)
    return name in facts.FACTORIES | facts.REDUCTIONS | facts.WITHOUT_GRADIENT | frozenset(("clone", "repeat"))


def _loses_comments(file: ParsedFile, node: ast.expr, kept: ast.expr) -> bool:
    """Whether comments stand in an expression outside of the part that is kept."""
    whole, part = file.span(node), file.span(kept)
    if whole.line == whole.end_line:
        return False
    before = Span(whole.line, whole.column, part.line, part.column)
    after = Span(part.end_line, part.end_column, whole.end_line, whole.end_column)
    return "#" in _text(file, before) + _text(file, after)


def _text(file: ParsedFile, span: Span) -> str:
    lines = file.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return "\n".join(lines)


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        text = f"({text})"
    return text if len(text) <= 40 else "..."


RULE = LegacyVariable
