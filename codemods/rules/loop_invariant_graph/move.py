"""Whether the statements that build an old graph may move to the top of the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.facts.layers import REPEATABLE_MODULES
from codemods.graph.model.kinds import Marked, NodeKind
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.program import ParsedFile, receiver_name
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Mapping, Sequence, Tensor, options_of
from codemods.proofs.bindings import held, memory_of
from codemods.proofs.blocks import altered, bound, read, suites_around
from codemods.proofs.effects import Effects
from codemods.proofs.marks import writes_parameters
from codemods.proofs.syntax import DEFINITIONS, FUNCTIONS, names, scope
from codemods.source import walking
from codemods.source.walking import called, last_name
from codemods.terms.spans import Span


class Move:
    """Looks for the statements that build the old graph, and whether they may move to the top of the loop."""

    def __init__(self, trace: Trace, earlier: Walk, walk: Walk, old: list[Node]) -> None:
        self.trace = trace
        self.effects = trace.once(Effects)
        self.earlier = earlier
        self.walk = walk
        self.old = old
        self.why = ""
        self.remedy = "move it to the top of the loop body"
        self.at: Place | None = None
        """The statement that builds the last of the graph."""

    def find(self) -> tuple[Span | None, list[Span]]:
        """The loop or function, and the statements that move to its top; none where that is not sound."""
        frame, file = self.walk.place.frame, self.walk.place.frame.file
        loops = self.walk.place.loops
        known = {id(n) for n in self.old}
        everything = {n for node in self.old for n in node.ancestors() if not n.leaf}
        if self._trained_before(everything):
            self.why = "the parameters that it is computed from change before the loop"
            return None, []
        if (made := self._constructor(everything)) is not None:
            return self._to_the_reader(made, everything)
        places = []
        for node in everything:
            place = node.place.seen_from(frame)
            if place is None or place.statement is None:
                self.why = "it is built in another function"
                return None, []
            places.append((place, node))
            if id(node) in known and (self.at is None or place.clock > self.at.clock):
                self.at = place
        if not loops or not isinstance(loops[-1][0], (ast.For, ast.While)):
            self.why = "the loop is in another function"
            return None, []
        loop = loops[-1][0]
        assert isinstance(loop, (ast.For, ast.While))
        statements = sorted({p.statement for p, _ in places if p.statement is not None}, key=lambda s: s.lineno)
        if (
            not self._movable(file, loop, statements, places)
            or self._draws(places)
            or not self._used_in(loop, everything)
        ):
            return None, []
        if self._again_in(loop, statements, places):
            return None, []
        return file.span(loop), [file.span(s) for s in statements]

    def _trained_before(self, everything: set[Node]) -> bool:
        """Whether parameters of the graph change between its making and the first backward that comes to it."""
        leaves = {parent for node in everything for parent in node.parents if parent.leaf}
        first, last = min(node.birth for node in everything), self.earlier.place.clock
        changes = [(step.place, step.leaves) for step in self.trace.steps]
        changes += [
            (m.place, m.leaves) for m in self.trace.marks if writes_parameters(m) or m.kind is Marked.DATA_WRITTEN
        ]
        return any(
            first < place.clock < last and (changed is None or not leaves.isdisjoint(changed))
            for place, changed in changes
        )

    def _constructor(self, everything: set[Node]) -> Place | None:
        """The statement of an ``__init__`` that builds all of the graph, if there is one."""
        found: list[Place] = []
        for node in everything:
            place = next((p for p in node.place.chain() if getattr(p.frame.definition, "name", "") == "__init__"), None)
            if place is None or (found and found[0].statement is not place.statement):
                return None
            found.append(place)
        return found[0] if found and found[0].statement is not None else None

    def _to_the_reader(self, made: Place, everything: set[Node]) -> tuple[Span | None, list[Span]]:
        """The one method that reads the attribute computes it anew, where that needs nothing of ``__init__``."""
        self.at = made
        file, statement, definition = made.frame.file, made.statement, made.frame.definition
        owner = file.enclosing(definition, ast.ClassDef) if definition is not None else None
        self.why = "it is built in `__init__`, from what the method that reads it may not see"
        if not isinstance(statement, ast.Assign) or not isinstance(owner, ast.ClassDef) or definition is None:
            return None, []
        target = statement.targets[0]
        direct = any(s is statement for s in getattr(definition, "body", ()))
        if len(statement.targets) > 1 or not isinstance(target, ast.Attribute) or not direct:
            return None, []
        inside = names(definition, ast.Store)
        own = receiver_name(definition)
        inside |= {a.arg for a in walking.walk(definition) if isinstance(a, ast.arg)} - {own}
        if ast.unparse(target.value) != own or read([statement]) & inside:
            return None, []
        # each object that the class makes has a frame of its own
        places = [(next(p for p in n.place.chain() if p.frame.definition is definition), n) for n in everything]
        if self._draws(places):
            return None, []
        files = {frame.file for frame in self.trace.frames}
        needed = read([statement]) | self._free(places)
        if self._changed_since(needed, [statement], made) or self._written_after(needed, files, statement, definition):
            self.why = "what it is computed from is changed later"
            return None, []
        readers = [
            (f, n)
            for f in files
            for n in walking.walk(f.tree)
            if isinstance(n, ast.Attribute) and n.attr == target.attr and n is not target
        ]
        methods = {file.enclosing(n, *FUNCTIONS) for f, n in readers if f is file}
        method = methods.pop() if len(methods) == 1 else None
        if (
            any(f is not file or ast.unparse(n.value) != own for f, n in readers)
            or method not in owner.body
            or method is definition
            or any(_asks_by_name(f, target.attr) for f in files)
        ):
            self.why = "it is built in `__init__` and read in several places"
            return None, []
        if any(not isinstance(n.ctx, ast.Load) for _, n in readers) or not isinstance(method, ast.FunctionDef):
            return None, []
        if method.decorator_list or not method.args.args or receiver_name(method) != own:
            return None, []
        self.remedy = f"compute it in `{method.name}`, where it is used"
        for loop, _ in reversed(self.walk.place.turns()):
            if isinstance(loop, (ast.For, ast.While)) and all(_within(file, n, loop) for _, n in readers):
                return file.span(loop), [file.span(statement)]
        return file.span(method), [file.span(statement)]

    def _written_after(
        self, needed: set[str], files: set[ParsedFile], statement: ast.stmt, definition: ast.AST
    ) -> bool:
        """Whether anything that runs after a statement of an ``__init__`` may write what it reads."""
        own = _heirs(files, definition)
        for file in files:
            names: dict[str, int] = {}
            for node in walking.walk(file.tree):
                if isinstance(node, (ast.Global, ast.Nonlocal)) and not needed.isdisjoint(node.names):
                    return True
                if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in needed:
                    if file.enclosing(node, *FUNCTIONS) is None:
                        names[node.id] = names.get(node.id, 0) + 1
                elif isinstance(node, ast.Attribute) and f".{node.attr}" in needed:
                    if isinstance(node.ctx, ast.Load):
                        continue
                    around = file.enclosing(node, *FUNCTIONS)
                    if around is definition:
                        made = node.lineno < statement.lineno
                    else:
                        # an object of another class is made
                        made = (
                            isinstance(around, DEFINITIONS)
                            and around.name == "__init__"
                            and file.parent(around) not in own
                            and ast.unparse(node.value) == receiver_name(around)
                        )
                    if not made:
                        return True
            if any(count > 1 for count in names.values()):
                return True
        return False

    def _movable(
        self, file: ParsedFile, loop: ast.For | ast.While, statements: list[ast.stmt], places: list[tuple[Place, Node]]
    ) -> bool:
        around = list(suites_around(file, loop))
        home = next(suites_around(file, statements[0]))[0]
        match = next(((suite, index) for suite, index in around if suite is home), None)
        if match is None:
            self.why = "it is not before the loop"
            return False
        suite, index = match
        if any(next(suites_around(file, s))[0] is not suite or suite.index(s) > index for s in statements):
            self.why = "its parts are in several places"
            return False
        if any(not isinstance(s, (ast.Assign, ast.AnnAssign)) for s in statements):
            self.why = "it is more than an assignment"
            return False
        made, needed = bound(statements), read(statements) | self._free(places)
        head = loop.test if isinstance(loop, ast.While) else loop.iter
        if made & read([ast.Expr(head), *loop.orelse]):
            self.why = "its result is used outside of the loop too"
            return False
        outer = suite[index]
        assert isinstance(outer, (ast.For, ast.While, ast.With, ast.If, ast.Try)) or outer is loop
        changed = bound([outer]) | altered(self.trace, file, [outer])
        if made & changed or needed & changed:
            self.why = f"{', '.join(sorted((made | needed) & changed))} is bound in the loop"
            return False
        if self._changed_since(needed, statements, self.walk.place):
            self.why = "what it is computed from is changed in place"
            return False
        first = suite.index(statements[0])
        others = [s for s in suite[first:index] if s not in statements]
        given = bound(others) | altered(self.trace, file, others)
        if made & read(others) or needed & given or made & given:
            self.why = "a statement in between uses it"
            return False
        inside = {id(n) for s in (*statements, *loop.body) for n in walking.walk(s)}
        for node in walking.walk(scope(file, loop)):
            if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in inside and ast.unparse(node) in made:
                self.why = "its result is used outside of the loop too"
                return False
        return True

    def _free(self, places: list[tuple[Place, Node]]) -> set[str]:
        """The names from outside that the functions read which the statements enter."""
        entered = {p.frame.definition for _, node in places for p in node.place.chain()}
        entered -= {p.frame.definition for p in self.walk.place.chain()}
        found: set[str] = set()
        for definition in entered:
            if isinstance(definition, DEFINITIONS):
                own = {n.arg for n in walking.walk(definition) if isinstance(n, ast.arg)} | names(definition, ast.Store)
                found |= {name for name in read([definition]) if name.partition(".")[0] not in own}
        return found

    def _changed_since(self, needed: set[str], statements: list[ast.stmt], at: Place) -> bool:
        """Whether a container or a tensor of data that the frame of ``at`` has under one of these names is changed in
        place later."""
        since, trace = self.at.clock if self.at is not None else 0, self.trace
        found = [v for name in needed for v in held(name, at.frame, self.walk.cells) or ()]
        values = [option for value in found for option in options_of(value)]

        def later(place: Place) -> bool:
            return place.clock >= since and place.statement not in statements

        containers = {v.oid for v in values if isinstance(v, (Sequence, Mapping))}
        changed = {getattr(s.container, "oid", 0) for s in trace.storings if later(s.place)}
        changed |= {oid for oid, clock in trace.emptied if clock >= since}
        changed |= {oid for oid, moments in trace.puts.items() if moments[-1] >= since}
        # parameters change in every step: that is why it is computed anew
        data = {one for v in values if isinstance(v, Tensor) and v.node is None for one in memory_of(v)}
        altered = (a.value for a in trace.alterations if later(a.place))
        written = {one for value in altered for one in memory_of(value)}
        return not containers.isdisjoint(changed) or not data.isdisjoint(written)

    def _draws(self, places: list[tuple[Place, Node]]) -> bool:
        """Whether random numbers are drawn or statistics kept where the graph is built."""
        for place, node in places:
            if node.kind is NodeKind.CALL or (node.kind is NodeKind.MODULE and node.label not in REPEATABLE_MODULES):
                self.why = "what runs there may draw random numbers or keep statistics, which a move would change"
                return True
            bodies: list[ast.AST] = [place.statement] if place.statement is not None else []
            # the functions entered on the way from the statement to the operation
            for inner_place in node.place.chain():
                if inner_place.frame is place.frame:
                    break
                definition = inner_place.frame.definition
                if getattr(definition, "decorator_list", ()):
                    self.why = "what decorates a function there may remember what it gave"
                    return True
                if definition is not None:
                    bodies.append(definition)
            for body in bodies:
                if why := self.effects.of(body):
                    self.why = why
                    return True
        return False

    def _again_in(self, loop: ast.AST, statements: list[ast.stmt], places: list[tuple[Place, Node]]) -> bool:
        """Whether the loop computes the same by itself: moved there, the old values would equal the new ones.

        The ratio of proximal policy optimization would be 1 in every turn, and its gradient 0: a `.detach()` was meant.
        """
        own = {name for s in statements for name in names(s, ast.Store)}

        def text(node: ast.AST) -> str:
            known = isinstance(node, ast.Call) and not read([ast.Expr(node)]) & own
            return ast.dump(node) if known else ""

        before = {text(place.node) for place, _ in places} - {""}
        frame = self.walk.place.frame
        for node in self.walk.seen:
            place = node.place.seen_from(frame)
            if place is not None and any(around is loop for around, _ in place.loops) and text(place.node) in before:
                self.why = "the loop computes the same by itself, so it was meant as it was: detach it there"
                return True
        return False

    def _used_in(self, loop: ast.AST, everything: set[Node]) -> bool:
        """Whether all that is computed from the graph is computed in the loop itself."""
        walked = {id(n) for n in self.walk.seen}
        frame = self.walk.place.frame
        for node in everything:
            for child in node.children:
                if child in everything or id(child) not in walked or child.kind in (NodeKind.PHI, NodeKind.PART):
                    continue
                place = child.place.seen_from(frame)
                if place is None or not any(around is loop for around, _ in place.loops):
                    self.why = "what is computed from it stands outside of the loop"
                    return False
        return True


def _within(file: ParsedFile, node: ast.AST, loop: ast.For | ast.While) -> bool:
    """Whether a node stands in the body of a loop, which runs anew in each turn."""
    return any(inner is statement for inner in (node, *file.outward(node)) for statement in loop.body)


def _asks_by_name(file: ParsedFile, attribute: str) -> bool:
    """Whether a file may look an attribute up by its name, or look at all that an object has."""
    for node in walking.walk(file.tree):
        if isinstance(node, ast.Constant) and node.value == attribute:
            return True
        if isinstance(node, ast.MatchClass) and attribute in node.kwd_attrs:
            return True
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
        if name in ("vars", "dir", "__dict__", "__slots__"):
            return True
        if (
            isinstance(node, ast.Call)
            and called(node) in ("getattr", "hasattr", "setattr", "delattr")
            and not all(isinstance(given, ast.Constant) for given in node.args[1:2])
            and not file.named(node.args[0])
        ):
            return True
    return False


def _heirs(files: Iterable[ParsedFile], method: ast.AST) -> set[ast.AST | None]:
    """The class of a method and those that derive from it, as far as their names tell."""
    classes = [node for file in files for node in walking.walk(file.tree) if isinstance(node, ast.ClassDef)]
    found: set[ast.AST | None] = {node for node in classes if method in node.body}
    while True:
        known = {getattr(node, "name", "") for node in found}
        more = {node for node in classes if any(last_name(base) in known for base in node.bases)} - found
        if not more:
            return found
        found |= more
