"""Whether a module can make its recurrent state anew, and the statement that does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.program import ClassInfo, ParsedFile, receiver_name
from codemods.graph.model.values import Function, Instance
from codemods.proofs.carried import Carry, Ledger
from codemods.proofs.syntax import DEFINITIONS, is_own, renamed
from codemods.source.walking import walk
from codemods.terms.edits import Edit, InsertStatements
from codemods.terms.words import words

_OWN = "__own__"
"""What statements call the object whose method they go to, before that is known."""

_DRAWING = words(
    "rand randn randint rand_like randn_like randint_like randperm normal normal_ uniform uniform_ random_ bernoulli "
    "bernoulli_ exponential_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_ "
    "trunc_normal_ multinomial poisson sample rsample"
)
"""Functions of torch, and methods of tensors, that draw random numbers (docs)."""

_Methods = dict[str, tuple[ast.FunctionDef | ast.AsyncFunctionDef, ParsedFile]]


def fresh_state(ledger: Ledger, carries: list[Carry]) -> list[tuple[str, Edit]] | None:
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
    if carry.carrier.kind is not CarrierKind.ATTRIBUTE:
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
        if code is None and constructor is not None and constructor.count(_OWN) == constructor.count(f"{_OWN}."):
            own = constructor.replace(f"{_OWN}.", f"{_OWN}.{name}.")
            code = own if "(" in own and own.rstrip().endswith("()") else None
        if code is not None and not _draws(owner.cls, code):
            return _at_top(outer, code)
    return None


def _at_top(forward: Function, code: str) -> tuple[str, Edit]:
    code = renamed(ast.parse(code), _OWN, receiver_name(forward.definition))
    return forward.file.path, InsertStatements(forward.file.span(forward.definition), "first-in", code)


def _instance(carry: Carry) -> Instance | None:
    for frame in carry.store.frame.outward():
        if isinstance(frame.receiver, Instance) and frame.receiver.oid == carry.carrier.owner:
            return frame.receiver if frame.receiver.cls.is_module else None
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


def _methods(cls: ClassInfo) -> _Methods:
    found: _Methods = {}
    for info in reversed(cls.mro()):
        for member in info.node.body:
            if isinstance(member, DEFINITIONS):
                found[member.name] = (member, info.file)
    return found


def _constructor(cls: ClassInfo, attribute: str) -> str | None:
    """The statement of a class that makes a fresh state, usable in any of its methods."""
    methods = _methods(cls)
    for method, _ in methods.values():
        own = receiver_name(method)
        for node in walk(method):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            if attribute not in _own_targets(node.targets[0], own):
                continue
            call = node.value
            if not (isinstance(call, ast.Call) and is_own(call.func, own) and isinstance(call.func, ast.Attribute)):
                continue
            names = {n.id for n in walk(call) if isinstance(n, ast.Name)}
            if call.func.attr not in methods or names - {own}:
                continue
            if not _drawing(call.func.attr, methods):
                return renamed(node, own, _OWN)
    for name, (method, _) in methods.items():
        if name in ("forward", "__init__") or len(_parameters(method)) != 1 or _drawing(name, methods):
            continue
        own = receiver_name(method)
        body = method.body[1:] if ast.get_docstring(method) is not None else method.body
        assigned = [
            t for s in body if isinstance(s, ast.Assign) for target in s.targets for t in _own_targets(target, own)
        ]
        if attribute in assigned and all(isinstance(s, ast.Assign) for s in body):
            calls = [n for s in body for n in walk(s) if isinstance(n, ast.Call) and is_own(n.func, own)]
            if not calls:
                return f"{_OWN}.{name}()"
    return None


def _owner_constructor(cls: ClassInfo, name: str, attribute: str) -> str | None:
    """``self.encoder.hidden = self.encoder.init_hidden(self.size)`` in the ``__init__`` of the owner."""
    init = _methods(cls).get("__init__")
    if init is None:
        return None
    own = receiver_name(init[0])
    for node in walk(init[0]):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Call):
            continue
        if ast.unparse(node.targets[0]) != f"{own}.{name}.{attribute}":
            continue
        if not ast.unparse(node.value.func).startswith(f"{own}.{name}."):
            continue
        if {n.id for n in walk(node.value) if isinstance(n, ast.Name)} == {own}:
            return renamed(node, own, _OWN)
    return None


def _draws(cls: ClassInfo, code: str) -> bool:
    called = {
        n.func.attr for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    }
    methods = _methods(cls)
    return any(_drawing(name, methods) for name in called if name in methods)


def _drawing(name: str, methods: _Methods, active: frozenset[str] = frozenset()) -> bool:
    """Whether a method may draw random numbers: calling it once more would move the generator."""
    method, file = methods[name]
    own = receiver_name(method)
    for call in (n for n in walk(method) if isinstance(n, ast.Call)):
        path = file.named(call.func)
        if path:
            if not path.startswith(("torch.", "builtins.")) or path.rpartition(".")[2] in _DRAWING:
                return True
        elif not isinstance(call.func, ast.Attribute):
            # a function of the tree, or one that cannot be seen
            return True
        elif is_own(call.func, own) and call.func.attr in methods:
            if call.func.attr not in active and _drawing(call.func.attr, methods, active | {name}):
                return True
        elif call.func.attr in _DRAWING:
            return True
    return False


def _parameters(method: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    spec = method.args
    more = [a for a in (spec.vararg, spec.kwarg) if a is not None]
    return {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *more)}


def _own_targets(target: ast.expr, own: str) -> list[str]:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [p.attr for p in parts if isinstance(p, ast.Attribute) and is_own(p, own)]


def _holders(carry: Carry, inner: Instance) -> Iterator[tuple[Instance, str]]:
    """The modules on the way to the store whose attribute the stateful one is."""
    cells = carry.freed_by.cells
    seen: set[int] = {inner.oid}
    for frame in carry.store.frame.outward():
        holder = frame.receiver
        if isinstance(holder, Instance) and holder.cls.is_module and holder.oid not in seen:
            seen.add(holder.oid)
            for (owner, name), value in cells.items():
                held = isinstance(value, Instance) and value.oid == inner.oid
                if held and owner == holder.oid and isinstance(name, str):
                    yield holder, name
