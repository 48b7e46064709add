"""Roots: the simulated engine as a whole, and what it is started on.

A :class:`Machine` runs one root (a script, or a function that nothing in the tree calls) over symbols and leaves a
:class:`~codemods.graph.model.trace.Trace` behind. Branches are run both ways and joined, loops for two turns, so that
what one turn leaves for the next shows by itself. Nothing of the code is executed or imported.
"""

from __future__ import annotations

import ast
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import Escape, FunctionKind, PlainKind
from codemods.graph.model.nodes import Frame, Value
from codemods.graph.model.program import ClassInfo, ParsedFile, receiver_name
from codemods.graph.model.state import MADE
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Class, Const, Function, Instance, Plain, Unknown
from codemods.graph.model.walks import walks
from codemods.graph.python.evidence import module_names, own_modules
from codemods.graph.python.loading import Importer
from codemods.graph.python.statements import Statements
from codemods.graph.run.core import BudgetEnded
from codemods.source.walking import names_in, walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ROOTS = 3
"""How many functions of a file may spend all of their budget; research code stays far below that."""


class Machine(Statements):
    """The interpreter of Python as a whole, the third of the engine's parts, at work on one simulated run."""

    def __init__(self, importer: Importer, budget: int = 150_000) -> None:
        super().__init__(importer, budget)
        # no cycle: what a run holds goes with it, before the garbage collector looks
        self.run.interpreter = weakref.proxy(self)

    def run_script(self, file: ParsedFile) -> Trace:
        """Run a file's top level as ``python file`` would."""
        self.run.trace = Trace(file.path)
        self._guard(lambda: self._run_module(file, "__main__"))
        return self.run.trace

    def run_functions(self, file: ParsedFile, wanted: set[ast.AST]) -> list[Trace]:
        """Run functions of a file that nothing in the tree calls, with arguments that cannot be seen, twice each.

        A trace for each function, and one for the methods of each class: they share an object. Each has the budget for
        itself, and all together that of a few. A function that another one of them turns out to call is left out if the
        other one's turn comes first.
        """
        run = self.run
        left = _ROOTS * run.budget
        run.trace = Trace(file.path)
        frame = Frame(self.load_module(file), file, None, None, 0)
        frame.module_globals = frame.fid
        traces: dict[ast.stmt, Trace] = {}
        for statement, functions in _callers_first(file, wanted):
            inside = functions - run.called.keys()
            if not inside:
                continue
            run.trace = Trace(f"{file.path} ({getattr(statement, 'name', '')})")
            run.spent = 0
            run.frame, run.dead, run.active = frame, False, []
            frame.loops, frame.statement = [], None
            self._guard(lambda s=statement, w=inside: self._run_wanted(frame, s, w))  # type: ignore[misc]
            traces[statement] = run.trace
            left -= run.spent
            if left < 0:
                line = getattr(statement, "lineno", 0)
                run.trace.notes.append(f"{file.path}:{line}: the budget of this file's functions ended here")
                break
        return [traces[statement] for statement in file.tree.body if statement in traces]

    def forget(self) -> None:
        """Let go of all that the run holds, when nobody asks it any more: what it put aside to be called later holds
        the run, and with it every value until the garbage collector looks."""
        self.run.__dict__.clear()

    def _guard(self, run: Callable[[], object]) -> None:
        try:
            run()
            self.modules.clock, self.modules.oids = self.run.clock, self.run.oids
        except BudgetEnded:
            self.modules.clock, self.modules.oids = self.run.clock, self.run.oids
            self.run.trace.complete = False
            where = self.run.frame.statement if self.run.frame is not None else None
            path = self.run.frame.file.path if self.run.frame is not None else self.run.trace.root
            self.run.trace.notes.append(f"{path}:{getattr(where, 'lineno', 0)}: the budget of this run ended here")
        except RecursionError:
            self.modules.clock, self.modules.oids = self.run.clock, self.run.oids
            self.run.trace.complete = False
            self.run.trace.notes.append(f"{self.run.trace.root}: nested too deeply to be followed")

    def _run_module(self, file: ParsedFile, name: str) -> Frame:
        frame = self.module_frame(file)
        self.run.s.set((frame.fid, "__name__"), Const(name))
        self.run.s.set((frame.fid, "__file__"), Plain(PlainKind.TEXT))
        self.run.frame = frame
        self.execute(file.tree.body)
        frame.end = self.run.tick()
        return frame

    # functions that nothing calls

    def _run_wanted(self, frame: Frame, statement: ast.stmt, wanted: set[ast.AST]) -> None:
        if isinstance(statement, _FUNCTIONS) and statement in wanted:
            value = self.run.s.get((frame.fid, statement.name))
            if isinstance(value, Function) and value.definition is statement:
                self.run.trace.roots.append(statement)
                self._run_root(value, None, statement)
        elif isinstance(statement, ast.ClassDef):
            self._run_class(frame, statement, wanted)

    def _run_class(self, frame: Frame, statement: ast.ClassDef, wanted: set[ast.AST]) -> None:
        value = self.run.s.get((frame.fid, statement.name))
        methods = [m for m in statement.body if isinstance(m, _FUNCTIONS) and m in wanted]
        if not isinstance(value, Class) or not methods:
            return
        receiver = self.instantiate(value.info, Arguments(), statement)
        self.raises_here = False
        if isinstance(receiver, Instance):
            # with other arguments it may have other attributes
            self.run.s.delete((receiver.oid, MADE))
            self._evidence(statement, receiver)
        for before in _initializers(value.info, methods):
            self._run_method(before, receiver)
        own = {m.name: found for m in methods if (found := _defined(value.info, m)) is not None}
        inherited = _templates(value.info, own)
        roots: list[Function] = []
        for name, member in _uncalled_first({**own, **inherited}):
            if member.definition not in self.run.called:
                roots.append(member)
                if name in own:
                    self.run.trace.roots.append(member.definition)
                self._run_method(member, receiver)
        for member in roots:
            self._run_method(member, receiver)

    def _run_method(self, member: Function, receiver: Value) -> None:
        bound = None if member.kind is FunctionKind.STATIC_METHOD else receiver
        self._run_root(member, bound, member.definition, turns=1)

    def _evidence(self, scope: ast.AST, receiver: Instance) -> None:
        """``self.net.eval()`` anywhere in a class shows what ``self.net`` is, wherever it comes from."""
        for node, name in receiver.cls.file.once(own_modules, scope):
            value = self.run.s.get((receiver.oid, name))
            if isinstance(value, Unknown) and value.module is None:
                self.run.show_module(value, node, "module")

    def _run_root(self, function: Function, receiver: Value | None, at: ast.AST, turns: int = 2) -> None:
        run = self.run
        definition = function.definition
        evidence = function.file.once(module_names, definition)
        spec = definition.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        skip = 1 if receiver is not None and function.kind is not FunctionKind.STATIC_METHOD else 0
        if function.kind is FunctionKind.CLASS_METHOD and function.cls is not None:
            receiver = Class(function.cls)
        assert run.frame is not None
        outer = run.frame
        for turn in range(turns):
            args = Arguments()
            for name in names[skip:]:
                value = self.argument(name)
                if name in evidence:
                    run.show_module(value, definition, "module")
                args.keywords[name] = value
            for arg in spec.kwonlyargs:
                args.keywords[arg.arg] = self.argument(arg.arg)
            run.frame = outer
            # arguments are unknown, but an argument with a default is most often not given
            outer.loops.append((at, turn))
            try:
                run.entering_root = True
                result = self.call_function(function, args, definition, receiver=receiver)
            finally:
                outer.loops.pop()
            # what it raises ends this run of it, and not the next one
            self.raises_here = False
            run.escape_all([result], Escape.RETURNED_TO_CALLER)
            run.dead = False


def _callers_first(file: ParsedFile, wanted: set[ast.AST]) -> list[tuple[ast.stmt, set[ast.AST]]]:
    """The statements of a file that hold functions of ``wanted``, with these; those that no other one names come first.

    Helpers stand before what uses them most often, so the named ones are turned round.
    """
    found: list[tuple[ast.stmt, set[ast.AST]]] = []
    names: list[frozenset[str]] = []
    for statement in file.tree.body:
        inside = wanted.intersection([statement, *getattr(statement, "body", ())])
        if inside:
            found.append((statement, inside))
            names.append(file.once(names_in, statement))
    users: Counter[str] = Counter(name for used in names for name in used)
    own = [getattr(statement, "name", "") for statement, _ in found]
    free = [users[name] == (name in used) for name, used in zip(own, names, strict=True)]
    first = [pair for pair, alone in zip(found, free, strict=True) if alone]
    return first + [pair for pair, alone in zip(found, free, strict=True) if not alone][::-1]


def _defined(info: ClassInfo, method: _Function) -> Function | None:
    """What a class makes of a definition in its body; None where it is another one that bears its name."""
    found = info.members.get(method.name)
    own = isinstance(found, Function) and found.definition is method and method.name != "__init__"
    return found if own else None  # type: ignore[return-value]


def _uncalled_first(methods: dict[str, Function]) -> list[tuple[str, Function]]:
    """The methods of an object that are to be run, those that no other one of them names first."""
    named = Counter(other for name, m in methods.items() for other in m.file.once(_own_names, m.definition) - {name})
    pairs = list(methods.items())
    return [pair for pair in pairs if not named[pair[0]]] + [pair for pair in pairs if named[pair[0]]]


def _templates(info: ClassInfo, own: dict[str, Function]) -> dict[str, Function]:
    """The methods that a class inherits and that come to one of its ``own``: users of its objects call those."""
    inherited: dict[str, Function] = {}
    for cls in info.mro()[1:]:
        for name, member in cls.members.items():
            if isinstance(member, Function) and member.kind is FunctionKind.FUNCTION and name not in info.members:
                inherited.setdefault(name, member)
    inherited.pop("__init__", None)
    found: dict[str, Function] = {}
    wanted = set(own)
    while True:
        more = {n: m for n, m in inherited.items() if n not in found and not wanted.isdisjoint(_attributes_of(m))}
        if not more:
            return found
        found |= more
        wanted |= more.keys()


def _initializers(info: ClassInfo, methods: list[_Function]) -> list[Function]:
    """The methods of a class that others call, and that alone give its objects what ``methods`` read of them: without
    one of them nobody can have called these. None that comes to a backward."""
    members: dict[str, Function] = {}
    for cls in reversed(info.mro()):
        members |= {name: found for name, found in cls.members.items() if isinstance(found, Function)}
    file = info.file
    run = _led_to(file, methods, members)
    made = {name for method in (*run, *_led_to(file, [], members, "__init__")) for name in file.once(_bound, method)}
    missing = {name for method in run for name in file.once(_attributes, method)} - made - members.keys()
    return [
        found
        for name, found in members.items()
        if found.kind is FunctionKind.FUNCTION
        and found.definition not in run
        and name != "__init__"
        and not missing.isdisjoint(file.once(_bound, found.definition))
        and not any(file.once(walks, method) for method in _led_to(file, [found.definition], members))
    ]


def _led_to(
    file: ParsedFile, methods: Iterable[ast.AST], members: dict[str, Function], *names: str
) -> dict[ast.AST, None]:
    """Methods, and those of the same object that they name."""
    found: dict[ast.AST, None] = {}
    stack = [*methods, *(members[name].definition for name in names if name in members)]
    while stack:
        method = stack.pop()
        if method not in found:
            found[method] = None
            stack += [members[name].definition for name in file.once(_attributes, method) if name in members]
    return found


def _bound(method: ast.AST) -> frozenset[str]:
    """The attributes that a method binds of its object."""
    return frozenset(node.attr for node in _of_itself(method) if isinstance(node.ctx, ast.Store))


def _own_names(method: ast.AST) -> frozenset[str]:
    """The attributes of its own object that a method names: ``self.net.train()`` names no method ``train`` of it."""
    return frozenset(node.attr for node in _of_itself(method))


def _of_itself(method: ast.AST) -> Iterator[ast.Attribute]:
    own = receiver_name(method)
    for node in walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
            yield node


def _attributes_of(method: Function) -> frozenset[str]:
    return method.file.once(_attributes, method.definition)


def _attributes(scope: ast.AST) -> frozenset[str]:
    return frozenset(node.attr for node in walk(scope) if isinstance(node, ast.Attribute))
