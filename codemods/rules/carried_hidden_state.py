"""The rule ``carried-hidden-state``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from codemods.edits.model import Edit, InsertStatements, ReplaceExpression
from codemods.findings import Finding, Promise, Span, TrailStep
from codemods.graph.program import ClassInfo, ParsedFile, walk
from codemods.graph.trace import Frame, Trace
from codemods.graph.values import Function, Instance
from codemods.rules._carried import SURPLUS, Carry, Ledger, by_statement, flags, paired, trail
from codemods.rules.base import Decision, Observation, Rule, Site, sites

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SHUFFLING = frozenset(
    {"shuffle", "randperm", "permutation", "RandomSampler", "WeightedRandomSampler", "sample", "choices"}
)
_DRAWING = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "rand_like",
        "randn_like",
        "randint_like",
        "randperm",
        "normal",
        "normal_",
        "uniform",
        "uniform_",
        "random_",
        "bernoulli",
        "bernoulli_",
        "exponential_",
        "xavier_uniform_",
        "xavier_normal_",
        "kaiming_uniform_",
        "kaiming_normal_",
        "orthogonal_",
        "trunc_normal_",
    ]
)


class CarriedHiddenState(Rule):
    """Recurrent state that enters a step with the graph of the step before.

    Why it hurts: The state that a recurrent network leaves behind is attached to the graph that made it. Read by the
    next forward, it makes the next ``backward`` walk into the step before, whose graph is freed: "Trying to backward
    through the graph a second time". ``retain_graph=True`` only exchanges that error for another, because the optimizer
    has changed the weights that the old graph saved, or for memory and time that grow with every step.

    The rewrite: Where batches have nothing to do with each other and the class can make a fresh state, it is made at
    the top of ``forward``; where they continue one sequence, or there is no such constructor, the state is detached
    once, where the step ends. A ``retain_graph=True`` that only kept the old state alive goes with it. A repackaging
    helper that asks for ``type(h) == Variable``, which no tensor is since PyTorch 0.4, is mended.

    Left alone: state that is made fresh, reset or cut anywhere in the tree before it is read again; time steps inside
    one sequence, windows, several trials before one backward; one optimizer step per sequence with a backward for every
    time step; state under ``no_grad``; whatever is carried without a graph (masks, indices); layers whose code cannot
    be seen.

    Promise: repair, the original raises in its second step; ``behaviour`` where weights are updated through ``.data``
    and the retained graphs are really walked again. Where the state was carried attached, what is learned from the
    first carried step on is truncated back-propagation.

    Options: ``--hidden-state auto|reinit|detach``. With ``auto`` the state is made anew only where nothing says that
    batches continue one sequence, and ``detach`` wins where both fit.

    Source: https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """

    name = "carried-hidden-state"
    promise = Promise.REPAIR
    summary = "recurrent state is carried into the next step with its graph"
    gate = (
        b".backward(",
        b"manual_backward(",
        b"== Variable",
        b"==Variable",
        b"is Variable",
        b"autograd.Variable:",
        b"Variable == type(",
        b"Variable==type(",
    )

    def observe(self, trace: Trace) -> Iterable[Observation]:
        yield from _helpers(self, trace)
        if not trace.complete:
            return
        ledger = Ledger(trace)
        for carries in by_statement(c for c in ledger.carries if ledger.recurrent(c)):
            yield from self._observe(ledger, carries)

    def _observe(self, ledger: Ledger, carries: list[Carry]) -> Iterator[Observation]:
        promises = [ledger.promise(carry, saved_parameters=True) for carry in carries]
        first = carries[0]
        if None in promises:
            return
        promise = max((p for p in promises if p is not None), key=lambda p: p.rank)
        store = first.store
        cut = ledger.cut(carries)
        walks = ledger.surplus(carries)
        if store.statement is None:
            return
        yield self.seen(
            store.frame.file,
            store.statement,
            "state",
            "fault",
            promise=promise,
            name=_spoken(carries),
            goes="go" if len({c.carrier.name for c in carries}) > 1 else "goes",
            cut=cut,
            fresh=_fresh(ledger, carries),
            continues=_continues(ledger, first),
            flags=flags(walks),
            retained=first.freed_by.retains is True,
            trail=trail(first),
        )

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        for site in sites(observations, "helper"):
            yield self._mended(site)
        for site in sites(observations, "state"):
            yield from self._cut(site, decision)

    def _mended(self, site: Site) -> Finding:
        name = site.facts["name"]
        return Finding(
            self.name,
            site.path,
            site.span,
            Promise.REPAIR,
            f"type({name}) is never Variable since PyTorch 0.4, so this helper takes the state apart down to its "
            "numbers and raises instead of detaching it",
            f"ask isinstance({name}, torch.Tensor) and detach",
            (TrailStep(site.path, site.span.line, "the state should be cut here"),),
            tuple((site.path, edit) for edit in site.facts["edits"]),
        )

    def _cut(self, site: Site, decision: Decision) -> Iterator[Finding]:
        found = [o.facts for o in site.observations]
        style = decision.options.hidden_state
        again = any(f["continues"] for f in found)
        fresh = [f["fresh"] for f in found]
        reinit = all(fresh) and (style == "reinit" or (style == "auto" and not again))
        edits: list[tuple[str, Edit]] = []
        for facts in found:
            for edit in facts["fresh"] if reinit else facts["cut"] or ():
                if edit not in edits:
                    edits.append(edit)
        promise = max((f["promise"] for f in found), key=lambda p: p.rank)
        facts = found[0]
        dropped = list(dict.fromkeys(flag for f in found for flag in f["flags"]))
        name, goes = facts["name"], facts["goes"]
        if facts["retained"]:
            message = (
                f"{name} {goes} into the next step with the graph of this one: retain_graph=True keeps it alive, but "
                "the weights that it saved change"
            )
            if promise is Promise.BEHAVIOUR:
                message = (
                    f"{name} {goes} into the next step with the retained graphs of all the steps before: "
                    "each step is slower"
                )
        else:
            message = f"{name} {goes} into the next step with the graph of this one, which backward() has freed"
        remedy = "make a fresh state at the top of forward" if reinit else "detach it where the step ends"
        steps = tuple(dict.fromkeys(TrailStep(*step) for step in facts["trail"]))
        if not edits or any(not reinit and f["cut"] is None for f in found):
            yield Finding(
                self.name, site.path, site.span, Promise.ADVICE,
                f"{message}; where the step ends it has no name that could be detached", "", steps,
            )  # fmt: skip
            return
        alone = SURPLUS in decision.options.ignore
        yield from paired(
            self.name, (site.path, site.span), promise, message, remedy, steps, edits, dropped, alone=alone
        )


def _spoken(carries: list[Carry]) -> str:
    names = list(dict.fromkeys(f"`{carry.carrier.name}`" for carry in carries if carry.carrier.name))
    if not names:
        return "the stored state"
    return f"the state {names[0]}" if len(names) == 1 else f"the states {', '.join(names[:-1])} and {names[-1]}"


# a fresh state


def _fresh(ledger: Ledger, carries: list[Carry]) -> list[tuple[str, Edit]] | None:
    """The statements that make the states anew at the top of a forward, None where the code has no way to."""
    edits: list[tuple[str, Edit]] = []
    for carry in carries:
        made = _fresh_one(ledger, carry)
        if made is None:
            return None
        if made not in edits:
            edits.append(made)
    return edits


def _fresh_one(ledger: Ledger, carry: Carry) -> tuple[str, Edit] | None:
    if carry.carrier.kind != "attribute":
        return None
    owner = _instance(carry)
    if owner is None:
        return None
    attribute = carry.carrier.name
    forward = owner.cls.find("forward")
    constructor = _constructor(owner.cls, attribute)
    if isinstance(forward, Function) and constructor is not None and _once(ledger, carry, owner, forward):
        return _at_top(forward, constructor)
    for holder, name in _holders(carry, owner):
        outer = holder.cls.find("forward")
        if not isinstance(outer, Function) or not _once(ledger, carry, holder, outer):
            continue
        code = _owner_constructor(holder.cls, name, attribute)
        if code is None and constructor is not None and constructor.count("self") == constructor.count("self."):
            own = constructor.replace("self.", f"self.{name}.")
            code = own if "(" in own and own.rstrip().endswith("()") else None
        if code is not None and not _draws(owner.cls, code):
            return _at_top(outer, code)
    return None


def _at_top(forward: Function, code: str) -> tuple[str, Edit]:
    return forward.file.path, InsertStatements(forward.file.span(forward.definition), "first-in", code)


def _instance(carry: Carry) -> Instance | None:
    frame: Frame | None = carry.store.frame
    while frame is not None:
        if isinstance(frame.receiver, Instance) and frame.receiver.oid == carry.carrier.owner:
            return frame.receiver if frame.receiver.cls.is_module else None
        frame = frame.call.frame if frame.call is not None else None
    return None


def _once(ledger: Ledger, carry: Carry, owner: Instance, forward: Function) -> bool:
    """Whether a forward runs once for each backward."""
    last = carry.freed_by.place.clock
    before = [w.place.clock for w in ledger.trace.walks if w.place.clock < last and w.place.clock < carry.old.birth]
    first = max(before, default=-1)
    runs = [
        f
        for f in ledger.trace.frames
        if f.definition is forward.definition
        and isinstance(f.receiver, Instance)
        and f.receiver.oid == owner.oid
        and first < f.birth < last
        and f.grad is not False
    ]
    return len(runs) == 1


def _methods(cls: ClassInfo) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for info in reversed(cls.mro()):
        for member in info.node.body:
            if isinstance(member, _FUNCTIONS):
                found[member.name] = member
    return found


def _constructor(cls: ClassInfo, attribute: str) -> str | None:
    """The statement of a class that makes a fresh state, usable in any of its methods."""
    methods = _methods(cls)
    for method in methods.values():
        parameters = _parameters(method) - {"self"}
        for node in ast.walk(method):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            if attribute not in _own_targets(node.targets[0]):
                continue
            call = node.value
            if not (isinstance(call, ast.Call) and _is_own(call.func) and isinstance(call.func, ast.Attribute)):
                continue
            maker = methods.get(call.func.attr)
            names = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            if maker is None or names - {"self"} or names & parameters or _drawing(maker):
                continue
            return ast.unparse(node)
    for name, method in methods.items():
        if name in ("forward", "__init__") or len(_parameters(method)) != 1 or _drawing(method):
            continue
        body = method.body[1:] if ast.get_docstring(method) is not None else method.body
        assigned = [t for s in body if isinstance(s, ast.Assign) for target in s.targets for t in _own_targets(target)]
        if attribute in assigned and all(isinstance(s, ast.Assign) for s in body):
            calls = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Call) and _is_own(n.func)]
            if not calls:
                return f"self.{name}()"
    return None


def _owner_constructor(cls: ClassInfo, name: str, attribute: str) -> str | None:
    """``self.encoder.hidden = self.encoder.init_hidden(self.size)`` in the ``__init__`` of the owner."""
    init = _methods(cls).get("__init__")
    if init is None:
        return None
    for node in ast.walk(init):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Call):
            continue
        if ast.unparse(node.targets[0]) != f"self.{name}.{attribute}":
            continue
        if not ast.unparse(node.value.func).startswith(f"self.{name}."):
            continue
        if {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)} == {"self"}:
            return ast.unparse(node)
    return None


def _draws(cls: ClassInfo, code: str) -> bool:
    called = {
        n.func.attr for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    }
    methods = _methods(cls)
    return any(_drawing(methods[name]) for name in called if name in methods)


def _drawing(method: ast.AST) -> bool:
    """Whether it draws random numbers: calling it once more would move the generator."""
    return any(
        (isinstance(n, ast.Attribute) and n.attr in _DRAWING) or (isinstance(n, ast.Name) and n.id in _DRAWING)
        for n in ast.walk(method)
    )


def _parameters(method: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    spec = method.args
    more = [a for a in (spec.vararg, spec.kwarg) if a is not None]
    return {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *more)}


def _own_targets(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [p.attr for p in parts if isinstance(p, ast.Attribute) and _is_own(p)]


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _holders(carry: Carry, inner: Instance) -> Iterator[tuple[Instance, str]]:
    """The modules on the way to the store whose attribute the stateful one is."""
    cells = carry.freed_by.cells
    frame: Frame | None = carry.store.frame
    seen: set[int] = {inner.oid}
    while frame is not None:
        holder = frame.receiver
        if isinstance(holder, Instance) and holder.cls.is_module and holder.oid not in seen:
            seen.add(holder.oid)
            for (owner, name), value in cells.items():
                if (
                    owner == holder.oid
                    and isinstance(name, str)
                    and isinstance(value, Instance)
                    and value.oid == inner.oid
                ):
                    yield holder, name
        frame = frame.call.frame if frame.call is not None else None


# one sequence, or batches that have nothing to do with each other


def _continues(ledger: Ledger, carry: Carry) -> bool:
    """Whether something says that consecutive batches continue one sequence."""
    frames = _frames_to(carry)
    files: dict[str, ParsedFile] = {f.file.path: f.file for f in frames}
    generator = _generator(carry, frames[-1], files)
    if generator is not None:
        files.setdefault(generator[0].path, generator[0])
    if any(_shuffles(file.tree) for file in files.values()):
        return False
    loop = carry.loop
    if isinstance(loop, ast.While) or generator is not None:
        return True
    counted = isinstance(loop, (ast.For, ast.AsyncFor)) and any(
        isinstance(n, ast.Call) and _called(n) in ("range", "count") for n in ast.walk(loop.iter)
    )
    return counted or any(_resets(file, carry) for file in files.values())


def _frames_to(carry: Carry) -> list[Frame]:
    found = []
    for place in carry.freed_by.place.chain():
        found.append(place.frame)
    return found


def _generator(carry: Carry, frame: Frame, files: dict[str, ParsedFile]) -> tuple[ParsedFile, ast.AST] | None:
    loop = carry.loop
    iterated = getattr(loop, "iter", None)
    if isinstance(loop, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
        iterated = loop.generators[0].iter
    names = {_called(n) for n in ast.walk(iterated) if isinstance(n, ast.Call)} if iterated is not None else set()
    for file in files.values():
        for node in ast.walk(file.tree):
            if not isinstance(node, _FUNCTIONS) or node.name not in names:
                continue
            if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)):
                return file, node
    return None


def _called(call: ast.Call) -> str:
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _shuffles(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if _called(node) in _SHUFFLING:
                return True
            for keyword in node.keywords:
                off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg == "shuffle" and not off:
                    return True
    return False


def _resets(file: ParsedFile, carry: Carry) -> bool:
    """Whether code outside the class assigns the state, as a training loop does before each epoch."""
    name = carry.carrier.name
    return any(
        isinstance(target, ast.Attribute) and target.attr == name and not _is_own(target)
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if file.enclosing(node, ast.ClassDef) is None
    )


# the broken helper


def _helpers(rule: Rule, trace: Trace) -> Iterator[Observation]:
    done: set[int] = set()
    for frame in trace.frames:
        definition = frame.definition
        if isinstance(definition, _FUNCTIONS) and id(definition) not in done:
            done.add(id(definition))
            yield from _helper(rule, frame.file, definition)


def repackaging_helpers(file: ParsedFile, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Span]:
    """Where a function repackages hidden state by asking for a type that no tensor has: lines of this rule."""
    return [observation.span for observation in _helper(RULE(), file, function)]


def _helper(rule: Rule, file: ParsedFile, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Observation]:
    """``if type(h) == Variable: return Variable(h.data)`` in a function that calls itself on the parts of ``h``."""
    if not any(isinstance(n, ast.Call) and _called(n) == function.name for n in walk(function)):
        return
    for node in ast.walk(function):
        if not isinstance(node, ast.If) or len(node.body) != 1 or not isinstance(node.body[0], ast.Return):
            continue
        name = _asked_for_variable(file, node.test)
        value = node.body[0].value
        if name is None or value is None:
            continue
        code = _detaching(value, name)
        if code is None:
            continue
        edits: list[Edit] = [ReplaceExpression(file.span(node.test), f"isinstance({name}, {{torch}}.Tensor)")]
        if ast.unparse(value) != code:
            edits.append(ReplaceExpression(file.span(value), code))
        test = file.span(node)
        last = file.span(node.body[0])
        span = Span(test.line, test.column, last.end_line, last.end_column)
        yield Observation(rule.name, file.path, span, "helper", "fault", {"name": name, "edits": edits})


def _asked_for_variable(file: ParsedFile, test: ast.expr) -> str | None:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return None
    for asked, kind in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        if (
            isinstance(asked, ast.Call)
            and _called(asked) == "type"
            and len(asked.args) == 1
            and isinstance(asked.args[0], ast.Name)
            and is_variable(file, kind)
        ):
            return asked.args[0].id
    return None


def is_variable(file: ParsedFile, node: ast.expr) -> bool:
    """Whether an expression names ``torch.autograd.Variable``, by the imports of the file."""
    text = ast.unparse(node)
    if text in ("torch.autograd.Variable", "autograd.Variable", "torch.autograd.variable.Variable"):
        return True
    if not isinstance(node, ast.Name):
        return False
    names = file.once(_variable_names, file.tree)
    return "*" in names or node.id in names


def _variable_names(tree: ast.Module) -> frozenset[str]:
    """What imports call ``torch.autograd.Variable``; ``*`` where all of a module of torch is imported."""
    return frozenset(
        alias.name if alias.name == "*" else alias.asname or alias.name
        for statement in ast.walk(tree)
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("torch")
        for alias in statement.names
        if alias.name in ("*", "Variable")
    )


def _detaching(value: ast.expr, name: str) -> str | None:
    """What the cut of ``name`` becomes, None if the expression is no cut of it."""
    text = ast.unparse(value)
    if text in (f"{name}.detach()", f"{name}.data", f"{name}.detach().clone()", f"{name}.data.clone()"):
        return f"{name}.detach().clone()" if "clone" in text else f"{name}.detach()"
    if isinstance(value, ast.Call) and _called(value) == "Variable" and len(value.args) == 1:
        inner = _detaching(value.args[0], name) if not isinstance(value.args[0], ast.Name) else f"{name}.detach()"
        keywords: dict[str | None, Any] = {k.arg: k.value for k in value.keywords}
        if (
            inner is None
            or not ast.unparse(value.args[0]).startswith(name)
            or keywords.keys() - {"volatile", "requires_grad"}
        ):
            return None
        asks = keywords.get("requires_grad")
        if asks is None or (isinstance(asks, ast.Constant) and asks.value is False):
            return inner
        return f"{inner}.requires_grad_()" if isinstance(asks, ast.Constant) else None
    return None


RULE = CarriedHiddenState
