"""Values that a step leaves for the next one with the graph that ``backward`` has freed.

Shared by the rules ``carried-hidden-state`` and ``stored-graph``: what crosses from one turn of a loop to a later one,
what held it meanwhile, where it can be cut, and what the flag ``retain_graph`` has to do with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from codemods.edits.model import AddHelper, DropArgument, Edit, InsertStatements
from codemods.findings import Finding, Promise, Span, TrailStep
from codemods.graph import facts
from codemods.graph.program import ParsedFile
from codemods.graph.trace import Accumulation, Frame, Place, Reading, Trace, Walk
from codemods.graph.values import (
    Carrier,
    Const,
    Instance,
    Join,
    Mapping,
    Module,
    Node,
    Optimizer,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    Value,
)

SURPLUS = "surplus-retain-graph"

_TURNING = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SEEN_MODULES = (
    facts.MODULES_WITH_PARAMETERS | facts.MODULES_WITHOUT_PARAMETERS | facts.LOSS_MODULES | facts.MODULE_CONTAINERS
)
_OPERATORS = frozenset(c.__name__ for c in ast.operator.__subclasses__())

HELPER = """def detach_state(state):
    if isinstance(state, {torch}.Tensor):
        return state.detach()
    if isinstance(state, dict):
        return {key: detach_state(part) for key, part in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(detach_state(part) for part in state)
    return state
"""


def crossed(old: Place, new: Place) -> ast.AST | None:
    """The loop that has turned between two places of one run, None if none has."""
    for (loop, turn), (other, later) in zip(old.turns(), new.turns(), strict=False):
        if loop is not other:
            return None
        if turn != later:
            return loop if turn < later and isinstance(loop, _TURNING) else None
    return None


def opaque(node: Node) -> bool:
    """Whether it cannot be seen how (and if) the node depends on its parents."""
    if node.kind in ("call", "argument"):
        return True
    if node.kind != "module":
        return False
    label = node.label.partition(":")[0]
    return label in ("module", "forward") or (
        label[:1].isupper() and label not in _SEEN_MODULES and label not in _OPERATORS
    )


def reach(roots: Iterable[Node]) -> set[Node]:
    """What a backward from ``roots`` surely comes through, or does on one of the paths that the code may take."""
    found: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found.add(node)
        if not opaque(node):
            stack.extend(node.parents)
    return found


def origins(node: Node, *, sure: bool = True) -> list[Node]:
    """What a value may be that was joined from several paths; where it shall be ``sure``, empty if on one of them it is
    not there or detached."""
    found: list[Node] = []
    stack = [node]
    seen: set[Node] = set()
    while stack:
        one = stack.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.kind != "phi":
            found.append(one)
        elif one.certain or not sure:
            stack.extend(one.parents)
        else:
            return []
    return found


def weighted(node: Node) -> bool:
    """Whether parameters act on what the node is computed from, as in a layer, rather than being added to it."""
    if node.kind == "module":
        return any(p.leaf for p in node.parents)
    return node.saves and any(_parameter(p) for p in node.parents)


def _parameter(node: Node) -> bool:
    while not node.leaf and node.kind == "op" and len(node.parents) == 1 and not node.saves:
        node = node.parents[0]
    return node.leaf


@dataclass(eq=False)
class Carry:
    """Something attached that a ``carrier`` held from one turn of ``loop`` to a later one.

    ``store`` wrote it, ``reading`` read it again; ``old`` is what was carried and ``child`` the first node made of it;
    ``freed_by`` is the last backward of the old turn that walked it and ``walk`` the later one that walks it again
    (None where none does). ``saving`` tells whether the nodes that are walked again have saved tensors.
    """

    carrier: Carrier
    store: Place
    reading: Reading
    old: Node
    child: Node
    loop: ast.AST
    freed_by: Walk
    walk: Walk | None
    saving: bool
    graph: set[Node] = field(default_factory=set)
    edges: set[tuple[Node, Node]] = field(default_factory=set)


class Ledger:
    """What one run shows about carried values."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._reach: dict[int, set[Node]] = {}

    def reached(self, walk: Walk) -> set[Node]:
        """What a walk surely comes through."""
        if id(walk) not in self._reach:
            self._reach[id(walk)] = reach(walk.roots)
        return self._reach[id(walk)]

    @cached_property
    def stored_in(self) -> dict[Carrier, list[tuple[Place, Node]]]:
        """What each carrier came to hold, in order."""
        found: dict[Carrier, list[tuple[Place, Node]]] = {}
        for node in self.trace.nodes:
            for carrier, place in node.stores:
                found.setdefault(carrier, []).append((place, node))
        for entries in found.values():
            entries.sort(key=lambda entry: entry[0].clock)
        return found

    @cached_property
    def readings_of(self) -> dict[Node, list[Reading]]:
        """Where each node was read."""
        found: dict[Node, list[Reading]] = {}
        for reading in self.trace.readings:
            for node in reading.nodes:
                found.setdefault(node, []).append(reading)
        return found

    @cached_property
    def carries(self) -> list[Carry]:
        """What is walked again in a later turn, by what carried it."""
        found: dict[tuple[Carrier, int], Carry] = {}
        for walk in self.trace.walks:
            if not any(crossed(earlier.place, walk.place) for _, earlier in walk.again):
                continue
            for carry in self._carried_into(walk):
                key = (carry.carrier, id(carry.store.statement))
                known = found.setdefault(key, carry)
                known.edges |= carry.edges
                known.saving |= carry.saving
                known.graph |= carry.graph
        return list(found.values())

    def _carried_into(self, walk: Walk) -> Iterator[Carry]:
        reached = self.reached(walk)
        again = {node for node, _ in walk.again}
        for child in sorted(reached, key=lambda n: n.birth):
            if opaque(child) or (child.kind == "phi" and not child.certain):
                continue
            for old in child.parents:
                loop = None if old.leaf else crossed(old.place, child.place)
                if loop is None:
                    continue
                if child.kind == "phi" and not all(crossed(p.place, child.place) for p in child.parents):
                    continue
                yield from self._carry(walk, again, child, old, loop)

    def _carry(self, walk: Walk, again: set[Node], child: Node, old: Node, loop: ast.AST) -> Iterator[Carry]:
        sources = origins(old)
        if not sources or not all(crossed(o.place, child.place) for o in sources):
            return
        graph: set[Node] = set()
        freed_by: Walk | None = None
        saving = False
        for source in sources:
            mine = reach([source])
            walks = {n: w for n in mine if n in again and not n.leaf for w in [self._walked_before(n, child)] if w}
            if not walks:
                return
            graph |= set(walks)
            for node, earlier in walks.items():
                if freed_by is None or earlier.place.clock > freed_by.place.clock:
                    freed_by = earlier
                saving |= node.saves and earlier.retains is False and earlier.creates is False
        assert freed_by is not None
        for reading, store, carrier in self._held(child, old, sources):
            yield Carry(carrier, store, reading, old, child, loop, freed_by, walk, saving, graph, {(child, old)})

    def _walked_before(self, node: Node, child: Node) -> Walk | None:
        for walk in reversed(node.walks):
            if walk.place.clock < child.birth and crossed(walk.place, child.place):
                return walk if node in self.reached(walk) else None
        return None

    def _held(self, child: Node, old: Node, sources: list[Node]) -> list[tuple[Reading, Place, Carrier]]:
        found: dict[Carrier, tuple[Reading, Place, Carrier]] = {}
        chain = {id(place.statement) for place in child.place.chain()}
        wanted = [old, *sources]
        readings = {id(r): r for node in wanted for r in self.readings_of.get(node, ())}
        for reading in sorted(readings.values(), key=lambda r: r.place.clock):
            if reading.place.clock > child.birth or not crossed(old.place, reading.place):
                continue
            if crossed(reading.place, child.place):
                continue
            best: tuple[Place, Carrier] | None = None
            for direct in (True, False):
                for node in wanted:
                    for carrier, place in node.stores:
                        fits = (
                            carrier == reading.carrier
                            if direct
                            else carrier.kind == "element" and carrier.owner in reading.containers
                        )
                        if not fits or place.clock > reading.place.clock or not crossed(place, reading.place):
                            continue
                        if best is None or place.clock > best[0].clock:
                            best = (place, carrier)
                if best is not None:
                    break
            # a test whether it is None reads it too
            closer = id(reading.place.statement) in chain
            if best is not None and (
                best[1] not in found or (closer and id(found[best[1]][0].place.statement) not in chain)
            ):
                found[best[1]] = (reading, best[0], best[1])
        nearest = [entry for entry in found.values() if id(entry[0].place.statement) in chain]
        return nearest or list(found.values())

    def later(self, carry: Carry) -> list[tuple[Place, Node]]:
        """What the same carrier came to hold in the turn that reads the old value."""
        return [
            (place, node)
            for place, node in self.stored_in.get(carry.carrier, ())
            if place.clock > carry.reading.place.clock and crossed(carry.old.place, place)
        ]

    def recurrent(self, carry: Carry) -> bool:
        """Whether the new value is computed from the old one through weights."""
        return any(self._through_weights(carry.old, node) for _, node in self.later(carry))

    def grows(self, carry: Carry) -> bool:
        """Whether the new value is computed from the old one at all."""
        return any(carry.old in reach([node]) for _, node in self.later(carry))

    @staticmethod
    def _through_weights(old: Node, new: Node) -> bool:
        after = set(old.descendants()) - {old}
        stack = [new] if new in after else []
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if opaque(node):
                continue
            if weighted(node):
                return True
            stack.extend(p for p in node.parents if p in after)
        return False

    def changed(self, carry: Carry, *kinds: str) -> bool:
        """Whether parameters were changed between the making of the old value and the walk that comes to it again."""
        first = carry.freed_by.place.clock
        last = carry.walk.place.clock if carry.walk is not None else first
        if "step" in kinds and any(first <= s.place.clock <= last for s in self.trace.steps):
            return True
        return any(m.kind in kinds and first <= m.place.clock <= last for m in self.trace.marks)

    def promise(self, carry: Carry, *, saved_parameters: bool) -> Promise | None:
        """What cutting the carried value promises, None if nothing is wrong with it."""
        freed_by = carry.freed_by
        if carry.saving:
            return Promise.REPAIR
        if freed_by.retains is None or freed_by.creates is not False:
            return None
        if freed_by.retains is True:
            if self.changed(carry, "step", "parameter-changed"):
                return Promise.REPAIR if saved_parameters else Promise.BEHAVIOUR
            return Promise.BEHAVIOUR if self.changed(carry, "data-written") else None
        return Promise.BEHAVIOUR

    def surplus(self, carries: Iterable[Carry]) -> list[Walk]:
        """The walks whose ``retain_graph=True`` keeps alive nothing but what the cuts take away."""
        carries = list(carries)
        edges = {edge for carry in carries for edge in carry.edges}
        cut = {node for carry in carries for _, node in self.stored_in.get(carry.carrier, ())}
        found: dict[int, Walk] = {}
        for carry in carries:
            walk = carry.freed_by
            if (
                walk.call is None
                or walk.retains is not True
                or walk.retain_argument is None
                or walk.creates is not False
            ):
                continue
            if not self._needed(walk.call, edges, cut):
                found.setdefault(id(walk.call), walk)
        return list(found.values())

    def _needed(self, call: ast.Call, edges: set[tuple[Node, Node]], cut: set[Node]) -> bool:
        for number, walk in enumerate(self.trace.walks):
            earlier = {id(w) for w in self.trace.walks[:number] if w.call is call}
            if not earlier:
                continue
            seen: set[Node] = set()
            stack = list(walk.roots)
            while stack:
                node = stack.pop()
                if node in seen:
                    continue
                seen.add(node)
                if not node.leaf and any(id(w) in earlier for w in node.walks):
                    return True
                stack.extend(
                    p
                    for p in node.parents
                    if (node, p) not in edges
                    and not all(o in cut and crossed(o.place, node.place) for o in origins(p, sure=False))
                )
        return False

    # where to cut

    def cut(self, carries: list[Carry], style: str = "state") -> list[tuple[str, Edit]] | None:
        """One statement each after the end of the step that detaches what is carried; None if it has no name there."""
        lines: dict[tuple[str, Span], list[str]] = {}
        edits: list[tuple[str, Edit]] = []
        for carry in carries:
            found = self._cut(carry, style)
            if found is None:
                return None
            path, anchor, line, helps = found
            known = lines.setdefault((path, anchor), [])
            if line not in known:
                known.append(line)
            if helps and (path, AddHelper("detach_state", HELPER)) not in edits:
                edits.append((path, AddHelper("detach_state", HELPER)))
        inserted = [
            (path, InsertStatements(anchor, "after", "\n".join(code))) for (path, anchor), code in lines.items()
        ]
        return [*inserted, *edits]

    def _cut(self, carry: Carry, style: str) -> tuple[str, Span, str, bool] | None:
        places = list(self._inside(carry.freed_by.place, carry.loop))
        # through a global only in the function of the loop: a helper may serve others too
        attempts = [(place, step, False) for step in (True, False) for place in places]
        attempts += [(place, step, True) for step in (True, False) for place in reversed(places)]
        for place, with_step, through_globals in attempts:
            anchor = self._anchor(place, carry, with_step=with_step)
            path = self.path(carry, place.frame, through_globals=through_globals) if anchor is not None else None
            if anchor is not None and path is not None:
                file = place.frame.file
                return (file.path, file.span(anchor), *_detached(path, carry, style))
        return None

    @staticmethod
    def _inside(place: Place, loop: ast.AST) -> Iterator[Place]:
        for outer in place.chain():
            yield outer
            if any(turning is loop for turning, _ in outer.loops):
                return

    def _anchor(self, place: Place, carry: Carry, *, with_step: bool) -> ast.stmt | None:
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
        for step in sorted(self.trace.steps, key=lambda s: isinstance(s.optimizer, Optimizer)):
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

    def path(self, carry: Carry, frame: Frame, *, through_globals: bool) -> str | None:
        """How code of ``frame`` can name what carries the value, so that it can be assigned."""
        carrier, cells = carry.carrier, carry.freed_by.cells
        if carrier.kind in ("local", "global"):
            if carrier.owner == (frame.fid if frame.function is not None else frame.module_globals):
                return carrier.name
            if carrier.kind == "global":
                if carrier.owner == frame.module_globals and carrier.name in frame.globals:
                    return carrier.name
            elif carrier.name in frame.nonlocals:
                return carrier.name
            return self._handed_on(carry, frame)
        owner = paths_in(frame, cells, through_globals=through_globals).get(carrier.owner)
        if owner is None:
            return None
        return f"{owner}.{carrier.name}" if carrier.kind == "attribute" else owner

    @staticmethod
    def _handed_on(carry: Carry, frame: Frame) -> str | None:
        """A local of ``frame`` that holds the value and is returned."""
        definition = frame.definition
        if definition is None:
            return None
        returned = {
            name.id
            for node in ast.walk(definition)
            if isinstance(node, ast.Return) and node.value is not None
            for name in ast.walk(node.value)
            if isinstance(name, ast.Name)
        }
        held = {c.name for c, _ in carry.old.stores if c.kind == "local" and c.owner == frame.fid}
        both = sorted(held & returned, key=lambda name: (name != carry.carrier.name, name))
        return both[0] if both else None


def _climb(file: ParsedFile, statement: ast.stmt | None) -> list[ast.stmt]:
    """A statement and the ``with`` blocks around it that it shares with nothing but their own lines."""
    found: list[ast.stmt] = []
    node: ast.AST | None = statement
    while isinstance(node, ast.stmt):
        found.append(node)
        outer = file.parent(node)
        if not isinstance(outer, (ast.With, ast.AsyncWith)):
            break
        node = outer
    return found


def _siblings(file: ParsedFile, one: ast.stmt, other: ast.stmt) -> bool:
    outer = file.parent(one)
    if outer is None or outer is not file.parent(other):
        return False
    return any(
        isinstance(suite, list) and one in suite and other in suite
        for suite in (getattr(outer, name, None) for name in ("body", "orelse", "finalbody"))
    )


def paths_in(frame: Frame, cells: dict[Any, Any], *, through_globals: bool) -> dict[int, str]:
    """The shortest names by which code of ``frame`` reaches objects, by identity."""
    members: dict[int, list[tuple[str, Value]]] = {}
    for (owner, name), value in cells.items():
        if isinstance(name, str) and isinstance(value, Value) and name.isidentifier():
            members.setdefault(owner, []).append((name, value))
    found: dict[int, str] = {}
    level: list[tuple[str, Value]] = []
    if frame.function is not None:
        level += sorted(members.get(frame.fid, ()), key=lambda entry: entry[0] != "self")
    if frame.function is None or through_globals:
        level += members.get(frame.module_globals, ())
    for _ in range(5):
        following: list[tuple[str, Value]] = []
        for path, value in level:
            if isinstance(value, Unknown) and value.module is not None:
                value = value.module
            if not isinstance(value, (Instance, Module, Sequence, Mapping, Unknown)) or value.oid in found:
                continue
            found[value.oid] = path
            if not isinstance(value, (Sequence, Mapping)):
                following += [(f"{path}.{name}", member) for name, member in members.get(value.oid, ())]
        level = following
    return found


def _detached(path: str, carry: Carry, style: str) -> tuple[str, bool]:
    """The statement that detaches ``path``, and whether it needs the helper."""
    cells = carry.freed_by.cells
    value: Value = carry.reading.value
    if carry.carrier.kind == "element":
        container = _find(value, carry.carrier.owner, cells)
        if style == "last":
            return f"{path}[-1] = {path}[-1].detach()", False
        if container is not None:
            value = container
    if isinstance(value, Join):
        kept = [o for o in value.options if not isinstance(o, (Const, Plain))]
        if len(kept) == 1:
            value = kept[0]
    if isinstance(value, Tensor):
        return f"{path} = {path}.detach()", False
    if isinstance(value, Tuple) and value.items and all(_tensor(v) for v in value.items):
        return f"{path} = tuple(h.detach() for h in {path})", False
    if isinstance(value, Sequence) and value.kind == "list":
        items = contents(value, cells)
        if items and all(_tensor(v) for v in items):
            return f"{path} = [h.detach() for h in {path}]", False
    return f"{path} = detach_state({path})", True


def _tensor(value: Value) -> bool:
    return isinstance(value, Tensor) and value.node is not None


def contents(value: Value, cells: dict[Any, Any]) -> list[Value]:
    """What is in a container, by the cells of some moment."""
    if isinstance(value, Tuple):
        return list(value.items)
    if isinstance(value, Sequence):
        rest = cells.get((value.oid, "[rest]"))
        return [*(cells.get((value.oid, "[items]")) or ()), *([rest] if isinstance(rest, Value) else [])]
    return []


def _find(value: Value, oid: int, cells: dict[Any, Any], depth: int = 0) -> Value | None:
    if isinstance(value, (Sequence, Mapping)) and value.oid == oid:
        return value
    if depth < 3:
        inner = value.options if isinstance(value, Join) else contents(value, cells)
        for part in inner:
            found = _find(part, oid, cells, depth + 1)
            if found is not None:
                return found
    return None


def averages(trace: Trace, event: Accumulation) -> bool:
    """Whether a sum is a running mean whose value, detached, takes part in what is back-propagated.

    Such a mean belongs to the computation and to ``stored-graph``; one that is only looked at is a total.
    """
    expression = event.place.node
    if not isinstance(expression, ast.BinOp) or not isinstance(expression.op, ast.Add):
        return False
    text = ast.unparse(event.target)
    if any(ast.unparse(side) == text for side in (expression.left, expression.right)):
        return False
    sums = {n for v in _options(event.new) if isinstance(v, (Tensor, Unknown)) for n in [v.node] if n is not None}
    entered = {o for walk in trace.walks for n in walk.seen for o in n.shadow if isinstance(o, Node)}
    return bool(entered) and any(d in entered for n in sums for d in n.descendants())


def _options(value: Value) -> tuple[Value, ...]:
    return value.options if isinstance(value, Join) else (value,)


# findings


def by_statement(carries: Iterable[Carry]) -> list[list[Carry]]:
    """What one statement stored, together; a local variable counts once however often its function ran."""
    grouped: dict[int, dict[tuple[str, int, str], Carry]] = {}
    for carry in carries:
        carrier = carry.carrier
        owner = 0 if carrier.kind == "local" else carrier.owner
        grouped.setdefault(id(carry.store.statement), {}).setdefault((carrier.kind, owner, carrier.name), carry)
    return [list(found.values()) for found in grouped.values()]


def trail(carry: Carry) -> list[tuple[str, int, str]]:
    """The stations of the carried graph, as plain data."""
    made = carry.store if carry.old.kind == "phi" else carry.old.place
    return [
        (made.path, made.line, "graph produced here"),
        (
            carry.store.path,
            carry.store.line,
            f"carried by `{carry.carrier.name}`" if carry.carrier.name else "carried from here",
        ),
        (carry.freed_by.place.path, carry.freed_by.place.line, _freed(carry.freed_by)),
        (carry.reading.place.path, carry.reading.place.line, "used again here, one step later"),
    ]


def _freed(walk: Walk) -> str:
    return "retained here" if walk.retains else "freed here"


def flags(walks: list[Walk]) -> list[tuple[str, Span, Span, str | int]]:
    """The ``retain_graph`` arguments of walks, as plain data: path, spans of statement and call, argument."""
    found = []
    for walk in walks:
        file = walk.place.frame.file
        if walk.call is not None and walk.retain_argument is not None:
            statement = walk.place.statement or walk.call
            found.append((file.path, file.span(statement), file.span(walk.call), walk.retain_argument))
    return found


def paired(
    rule: str,
    site: tuple[str, Span],
    promise: Promise,
    message: str,
    remedy: str,
    steps: tuple[TrailStep, ...],
    edits: list[tuple[str, Edit]],
    dropped: list[tuple[str, Span, Span, str | int]],
    *,
    alone: bool,
    kept: str = "what is carried over from earlier steps",
    together: str = "the cut",
    uncovers: tuple[str, ...] = (),
) -> Iterator[Finding]:
    """A finding and those for the flags that go with it; ``alone`` where the rule of the flags is not asked for.

    ``kept`` says what the flags keep alive, ``together`` with what they go.
    """
    path, span = site
    drops: list[tuple[str, Edit]] = [(p, DropArgument(call, argument)) for p, _, call, argument in dropped]
    partners = () if alone else tuple((SURPLUS, p, statement.line) for p, statement, _, _ in dropped)
    found = Finding(rule, path, span, promise, message, remedy, steps, (*edits, *drops), partners, uncovers=uncovers)
    yield found
    if alone:
        return
    for (p, statement, _, _), drop in zip(dropped, drops, strict=True):
        yield Finding(
            SURPLUS,
            p,
            statement,
            promise,
            f"retain_graph=True only keeps alive {kept}",
            f"drop the argument, together with {together}",
            steps,
            (drop,),
            ((rule, path, span.line),),
        )
