"""Where carried values can be detached at the end of a step: after which statement, by which name, in which words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from codemods.graph.model.cells import Cells
from codemods.graph.model.kinds import CarrierKind, NodeKind, SequenceKind
from codemods.graph.model.nodes import Frame, Place, Value, Walk
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import (
    WRAPPED,
    Const,
    Instance,
    Join,
    Mapping,
    Module,
    Optimizer,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.proofs.bindings import bound_at, contents, held, kinds
from codemods.proofs.blocks import suite_of
from codemods.proofs.carried import Carry
from codemods.proofs.reach import origins
from codemods.proofs.turns import crossed
from codemods.source import walking
from codemods.terms.edits import AddHelper, Edit, InsertStatements, WrapExpression
from codemods.terms.spans import Span

_HELPER = """def detach_state(state):
    if isinstance(state, {torch}.Tensor):
        return state.detach()
    if isinstance(state, dict):
        for key, part in state.items():
            state[key] = detach_state(part)
    if isinstance(state, list):
        return [detach_state(part) for part in state]
    if isinstance(state, tuple):
        parts = [detach_state(part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state
"""
_ADDED = AddHelper("detach_state", _HELPER)
_STATEMENT = re.compile(r"^\S.*(?:\n[ ].*)*", re.MULTILINE)
"""A statement at the margin, with what stands in it."""


def detaching(trace: Trace, carries: list[Carry], style: str = "state") -> list[tuple[str, Edit]] | None:
    """One statement each after the end of the step that detaches what is carried; None if it has no name there.

    ``style`` is ``last`` for the newest element of a list, and ``any`` where the helper may get what nobody knows.
    """
    cuts: list[list[tuple[str, Edit]]] = []
    for carry in carries:
        found = _cut(trace, carry, style)
        if found is None:
            return None
        path, anchor, line, helps = found
        wrapped = _where_it_is_stored(carry, path, anchor, line)
        if wrapped is not None:
            cuts.append([wrapped])
        else:
            cuts.append([(path, InsertStatements(anchor, "after", line)), *([(path, _ADDED)] if helps else [])])
    return united(cuts)


def united(cuts: Iterable[Iterable[tuple[str, Edit]]]) -> list[tuple[str, Edit]] | None:
    """The edits of several values or runs, each name detached once at a place; None where no statement fits them all.

    What is one tensor in a run and several in another is left to the helper, which asks what it gets.
    """
    lines: dict[tuple[str, Span], dict[str, str]] = {}
    edits: dict[tuple[str, Edit], None] = {}
    for path, edit in (one for cut in cuts for one in cut):
        if not isinstance(edit, InsertStatements) or edit.where != "after":
            edits[(path, edit)] = None
            continue
        known = lines.setdefault((path, edit.anchor), {})
        for line in _STATEMENT.findall(edit.code):
            name = line.strip().rpartition("\n")[2].strip().partition(" = ")[0]
            if known.setdefault(name, line) == line:
                continue
            any_of, *others = _forms(name)
            if not {_unguarded(name, line), _unguarded(name, known[name])} <= {any_of, *others}:
                return None
            known[name] = any_of
            edits[(path, _ADDED)] = None
    inserted = [
        (path, InsertStatements(anchor, "after", "\n".join(code.values()))) for (path, anchor), code in lines.items()
    ]
    return [*inserted, *edits]


def _unguarded(name: str, statement: str) -> str:
    """A statement without the question whether there is anything to detach, which the helper asks as well."""
    return statement.removeprefix(f"if {name} is not None:\n").strip()


def _forms(name: str) -> tuple[str, str, str, str]:
    """What detaches a name, whatever it holds; a tensor; a tuple of tensors; a list of them."""
    return (
        f"{name} = detach_state({name})",
        f"{name} = {name}.detach()",
        f"{name} = tuple(h.detach() for h in {name})",
        f"{name} = [h.detach() for h in {name}]",
    )


def stands_behind(edits: list[tuple[str, Edit]] | None, carries: list[Carry]) -> bool:
    """Whether a graph is cut in the very block of the backward that frees it, so that it stays intact where that
    block does not run."""
    places = [carry.freed_by.place for carry in carries]
    files = {place.frame.file.path: place.frame.file for place in places}
    blocks = {place.frame.file.parent(place.statement) for place in places if place.statement is not None}
    for path, edit in edits or ():
        file = files.get(path)
        anchor = file.find(edit.anchor, ast.stmt) if file is not None and isinstance(edit, InsertStatements) else None
        if file is None or anchor is None or file.parent(anchor) not in blocks:
            return False
    return bool(edits)


def _cut(trace: Trace, carry: Carry, style: str) -> tuple[str, Span, str, bool] | None:
    places = list(_inside(carry.freed_by.place, carry.loop))
    # through a global only in the function of the loop: a helper may serve others too
    attempts = [(place, step, False) for step in (True, False) for place in places]
    attempts += [(place, step, True) for step in (True, False) for place in reversed(places)]
    for place, with_step, through_globals in attempts:
        anchor = _anchor(trace, place, carry, with_step=with_step)
        path = _path(carry, place.frame, through_globals=through_globals) if anchor is not None else None
        if anchor is None or path is None:
            continue
        file = place.frame.file
        stored = _stored_behind(carry, place.frame, anchor)
        anchor = stored or anchor
        if not bound_at(file, anchor, path.partition(".")[0]):
            continue
        moments = _moments(trace, carry, place.frame)
        if stored is not None:
            # what is there when the first step ends is not what is stored
            moments = [(walk, frame) for walk, frame in moments if walk.place.clock > carry.store.clock]
        before = [held(path, frame, walk.cells) for walk, frame in moments]
        if any(values is None for values in before):
            # somewhere the step ends before there is anything to detach
            continue
        found = {
            k
            for (walk, _), values in zip(moments, before, strict=True)
            for v in values or ()
            for k in kinds(v, walk.cells)
        }
        sure = _siblings(file, carry.store.statement, anchor) if carry.store.statement is not None else False
        made = _detached(path, carry, style, found, sure=sure)
        if made is not None and made[1] and asked_for(trace, carry):
            # the helper makes leaves of which nobody could ask for gradients
            continue
        if made is not None:
            line = made[0].replace(".detach()", cut_of(trace, carry))
            return file.path, file.span(anchor), line, made[1]
    return None


def asked_for(trace: Trace, carry: Carry) -> bool:
    """Whether ``autograd.grad`` takes gradients of what is carried, which it refuses of what asks for none."""
    wanted = {carry.old, *origins(carry.old, sure=False)}
    inputs = {one for walk in trace.walks for one in walk.inputs or ()}
    whole = {parent if one.kind is NodeKind.PART else one for one in inputs for parent in (one, *one.parents)}
    return not wanted.isdisjoint(whole) or any(carry.carrier == held for one in whole for held, _ in one.stores)


def cut_of(trace: Trace, carry: Carry) -> str:
    """What cuts a carried value, put behind it."""
    return ".detach().requires_grad_()" if asked_for(trace, carry) else ".detach()"


def _stored_behind(carry: Carry, frame: Frame, anchor: ast.stmt) -> ast.stmt | None:
    """The statement of ``frame`` that stores what is carried, or contains what does, behind the end of the step."""
    file = frame.file
    at = carry.store.seen_from(frame)
    store = at.statement if at is not None else None
    while store is not None and not _siblings(file, anchor, store):
        outer = file.parent(store)
        store = outer if isinstance(outer, ast.stmt) else None
    behind = store is not None and (store.lineno, store.col_offset) > (anchor.lineno, anchor.col_offset)
    return store if behind else None


def _where_it_is_stored(carry: Carry, path: str, anchor: Span, line: str) -> tuple[str, Edit] | None:
    """The edit of the very value that is stored, in place of a ``line`` behind it that would detach it."""
    statement, file = carry.store.statement, carry.store.frame.file
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    if (file.path, file.span(statement)) != (path, anchor):
        return None
    begin, _, cut = line.partition(".detach()")
    target = ast.unparse(statement.targets[0])
    if begin != f"{target} = {target}" or cut not in ("", ".requires_grad_()"):
        return None
    return path, WrapExpression(file.span(statement.value), "", f".detach(){cut}")


def _moments(trace: Trace, carry: Carry, frame: Frame) -> list[tuple[Walk, Frame]]:
    """The backwards, of all turns and calls, that end a step of the code of ``frame``, each with its frame."""
    return [
        (walk, place.frame)
        for walk in trace.walks
        if walk.call is carry.freed_by.call
        for place in walk.place.chain()
        if place.frame is frame or (frame.function is not None and place.frame.definition is frame.definition)
    ]


def _inside(place: Place, loop: ast.AST) -> Iterator[Place]:
    for outer in place.chain():
        yield outer
        if any(turning is loop for turning, _ in outer.loops):
            return


def _anchor(trace: Trace, place: Place, carry: Carry, *, with_step: bool) -> ast.stmt | None:
    """The statement of ``place``'s frame after which the step is over."""
    file = place.frame.file
    mine = _climb(file, place.statement)
    if not mine:
        return None
    if not with_step:
        return mine[-1]
    best: ast.stmt | None = None
    last = carry.reading.place.clock
    # a scheduler that cannot be seen looks like an optimizer that cannot be seen
    for step in sorted(trace.steps, key=lambda s: isinstance(s.optimizer, Optimizer)):
        if best is not None and not isinstance(step.optimizer, Optimizer):
            continue
        if not carry.freed_by.place.clock <= step.place.clock <= last or crossed(carry.freed_by.place, step.place):
            continue
        for outer in step.place.chain():
            if outer.frame is place.frame:
                for statement in _climb(file, outer.statement):
                    if any(_siblings(file, statement, other) for other in mine):
                        best = statement
    return best


def _path(carry: Carry, frame: Frame, *, through_globals: bool) -> str | None:
    """How code of ``frame`` can name what carries the value, so that it can be assigned."""
    carrier, cells = carry.carrier, carry.freed_by.cells
    if carrier.kind in (CarrierKind.LOCAL, CarrierKind.GLOBAL):
        if carrier.owner == (frame.fid if frame.function is not None else frame.module_globals):
            return carrier.name
        if carrier.kind is CarrierKind.GLOBAL:
            if carrier.owner == frame.module_globals and carrier.name in frame.globals:
                return carrier.name
        elif carrier.name in frame.nonlocals:
            return carrier.name
        return _handed_on(carry, frame)
    owner = _paths_in(frame, cells, through_globals=through_globals).get(carrier.owner)
    if owner is None:
        return None
    if carrier.kind is not CarrierKind.ATTRIBUTE and frame.function is not None and (frame.fid, owner) not in cells:
        # an outer name, which an assignment would take over
        return owner if "." in owner or owner in frame.globals or owner in frame.nonlocals else None
    return f"{owner}.{carrier.name}" if carrier.kind is CarrierKind.ATTRIBUTE else owner


def _handed_on(carry: Carry, frame: Frame) -> str | None:
    """A local of ``frame`` that holds the value and is returned."""
    definition = frame.definition
    inside = walking.walk(definition) if definition is not None else ()
    returned = {name for node in inside if isinstance(node, ast.Return) for name in walking.names_in(node)}
    held = {c.name for c, _ in carry.old.stores if c.kind is CarrierKind.LOCAL and c.owner == frame.fid}
    both = sorted(held & returned, key=lambda name: (name != carry.carrier.name, name))
    return both[0] if both else None


def _climb(file: ParsedFile, statement: ast.stmt | None) -> list[ast.stmt]:
    """A statement and the ``with`` blocks around it, the innermost first."""
    found = [] if statement is None else [statement]
    for outer in file.outward(statement) if statement is not None else ():
        if not isinstance(outer, (ast.With, ast.AsyncWith)):
            break
        found.append(outer)
    return found


def _siblings(file: ParsedFile, one: ast.stmt, other: ast.stmt) -> bool:
    return other in suite_of(file, one)


def _paths_in(frame: Frame, cells: Cells, *, through_globals: bool) -> dict[int, str]:
    """The shortest names by which code of ``frame`` reaches objects, by identity."""
    members: dict[int, list[tuple[str, Value]]] = {}
    for (owner, name), value in cells.items():
        if isinstance(name, str) and isinstance(value, Value) and name.isidentifier():
            members.setdefault(owner, []).append((name, value))
    found: dict[int, str] = {}
    level: list[tuple[str, Value]] = []
    if frame.function is not None:
        level += sorted(members.get(frame.fid, ()), key=lambda entry: entry[1] is not frame.receiver)
    if frame.function is None or through_globals:
        level += members.get(frame.module_globals, ())
    while level:
        following: list[tuple[str, Value]] = []
        for path, value in level:
            if isinstance(value, Unknown) and value.module is not None:
                value = value.module
            if isinstance(value, Join):
                following += [(f"{path}.{name}", member) for name, member in _common(value, members)]
                continue
            if not isinstance(value, (Instance, Module, Sequence, Mapping, Unknown)) or value.oid in found:
                continue
            if isinstance(value, Instance) and _fixed(value):
                continue
            if (value.oid, WRAPPED) in cells and value is not frame.receiver:
                # Which name has what is around it, nobody knows.
                continue
            found[value.oid] = path
            if not isinstance(value, (Sequence, Mapping)):
                following += [(f"{path}.{name}", member) for name, member in members.get(value.oid, ())]
        level = following
    return found


def _fixed(value: Instance) -> bool:
    """Whether no attribute of an object can be set, or setting one does more than that: a named tuple, a frozen
    dataclass, a class with a ``__setattr__``."""
    return (
        value.cls.container == "record"
        or value.cls.find("__setattr__") is not None
        or any(
            keyword.arg == "frozen" and isinstance(keyword.value, ast.Constant) and keyword.value.value
            for cls in value.cls.mro()
            for decorator in cls.node.decorator_list
            if isinstance(decorator, ast.Call)
            for keyword in decorator.keywords
        )
    )


def _common(value: Join, members: dict[int, list[tuple[str, Value]]]) -> list[tuple[str, Value]]:
    """The attributes with one and the same value in all the objects that a name may hold, with that value."""
    owners = [option for option in value.options if isinstance(option, Instance)]
    if len(owners) < len(value.options):
        return []
    first, *others = (dict(members.get(owner.oid, ())) for owner in owners)
    return [(name, member) for name, member in first.items() if all(other.get(name) is member for other in others)]


def _detached(path: str, carry: Carry, style: str, found: set[str], *, sure: bool) -> tuple[str, bool] | None:
    """The statement that detaches ``path``, and whether it needs the helper; None if nothing fits all it may hold.

    ``found`` says what it held wherever a step ended; ``sure`` tells that every step stores something there.
    """
    cells = carry.freed_by.cells
    value: Value = carry.reading.value
    if carry.carrier.kind is CarrierKind.ELEMENT:
        container = _find(value, carry.carrier.owner, cells)
        if style == "last":
            line = f"{path}[-1] = {path}[-1].detach()"
            return line if sure else f"if {path}:\n    {line}", False
        if container is not None:
            value = container
    if isinstance(value, Join):
        kept = [o for o in value.options if not isinstance(o, (Const, Plain))]
        if len(kept) == 1:
            value = kept[0]
    found = found | kinds(value, cells)
    guard = ""
    if found & {"number", "unknown", "mixed"}:
        guard = f"isinstance({path}, {{torch}}.Tensor)"
    elif "none" in found:
        guard = f"{path} is not None"
    any_of, tensor, in_tuple, in_list = _forms(path)
    line, helps = any_of, True
    if isinstance(value, Tensor) and (guard or "tensors" not in found):
        line, helps = tensor, False
    elif found <= {"tensors", "none"} and isinstance(value, Tuple) and all(_tensor(v) for v in value.items):
        line, helps = in_tuple, False
    elif found <= {"tensors", "none"} and isinstance(value, Sequence) and value.kind is SequenceKind.LIST:
        items = contents(value, cells) or ()
        if items and all(_tensor(v) for v in items):
            line, helps = in_list, False
    if helps:
        # the helper asks for itself what it gets
        known = "unknown" not in kinds(value, cells) and not _others(value, cells)
        return (line, True) if known or style == "any" else None
    return (f"if {guard}:\n    {line}" if guard else line), False


def _others(value: Value, cells: Cells, depth: int = 0) -> bool:
    """Whether it contains containers that the helper does not know."""
    if isinstance(value, Sequence) and value.kind is not SequenceKind.LIST:
        return True
    inner = value.options if isinstance(value, Join) else contents(value, cells) or ()
    # what lies deeper than people nest it may hold itself: it is not gone through
    return bool(inner) if depth >= 4 else any(_others(part, cells, depth + 1) for part in inner)


def _tensor(value: Value) -> bool:
    return isinstance(value, Tensor) and value.node is not None


def _find(value: Value, oid: int, cells: Cells) -> Value | None:
    """The container ``oid`` in a value."""
    stack, seen = [value], {id(value)}
    while stack:
        one = stack.pop()
        if isinstance(one, (Sequence, Mapping)) and one.oid == oid:
            return one
        inner = one.options if isinstance(one, Join) else contents(one, cells) or ()
        stack += [part for part in inner if id(part) not in seen]
        seen.update(map(id, inner))
    return None
