"""Statements, modules and roots: the simulated engine as a whole.

A :class:`Machine` runs one root (a script, or a function that nothing in the tree calls) over symbols and leaves a
:class:`~codemods.graph.trace.Trace` behind. Branches are run both ways and joined, loops for two turns, so that what
one turn leaves for the next shows by itself. Nothing of the code is executed or imported.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from codemods.graph import facts
from codemods.graph.arguments import Arguments
from codemods.graph.core import ITEMS, REST, BudgetEnded
from codemods.graph.expressions import Expressions
from codemods.graph.modules import Modules
from codemods.graph.program import ClassInfo, ParsedFile, walk
from codemods.graph.state import Key, State
from codemods.graph.torch_model import canonical
from codemods.graph.trace import Accumulation, Frame, Mark, Place, Ran, Trace
from codemods.graph.values import (
    NONE,
    NUMBER,
    Carrier,
    Class,
    Const,
    Function,
    GradMode,
    Imported,
    Instance,
    Join,
    Library,
    Mapping,
    Method,
    Module,
    Node,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    TreeModule,
    Tuple,
    Unknown,
    Value,
    may_carry,
)

_BUILTINS = frozenset(dir(builtins))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOAD_BUDGET = 60_000
_ROOTS = 3
"""How many functions of a file may spend all of their budget; research code stays far below that."""
NEVER_OF_THE_TREE = frozenset({"torch", "torchvision", "numpy", "__future__", "typing"})
"""What these names mean is known, also in a tree that holds a copy of them."""


class Importer(Protocol):
    """Where the machine gets files from."""

    modules: Modules
    """What imports have left so far."""

    def file(self, relative: str) -> ParsedFile | None:
        """The parsed file at a path below the root, None if it does not parse."""
        ...

    def import_module(self, module: str, importer: ParsedFile) -> str | None:
        """The file of ``import module``, the folder of a package without ``__init__``, or None outside the tree."""
        ...

    def import_relative(self, module: str | None, level: int, importer: ParsedFile) -> str | None:
        """The same for relative imports."""
        ...

    def member_file(self, package: str, name: str) -> str | None:
        """The file or folder ``name`` in a package's folder."""
        ...


class Machine(Expressions):
    """One simulated run."""

    executors: ClassVar[dict[type[ast.AST], Callable[[Any, Any], None]]] = {}
    """The method for each kind of statement, by its class."""

    def __init__(self, importer: Importer, budget: int = 150_000) -> None:
        super().__init__(budget)
        self.importer = importer
        modules = self.modules = importer.modules
        modules.clean()
        self.s = State.empty(modules.cells)
        self.clock, self.oids = modules.clock, modules.oids
        self.attributes = dict(modules.attributes)
        self.returns: list[tuple[State, Value]] = []
        self.breaks: list[State] = []
        self.continues: list[State] = []
        self.raises: list[State] = []
        self.raises_here = False
        self.resolving: set[Key] = set()
        """The imported names that are being looked up."""
        self.narrowed: list[tuple[Key, Value, Value]] = []
        """What the branch that begins now knows of cells: key, what it holds on all paths, what it holds here."""
        self.closures: dict[int, int] = dict(modules.closures)
        """The enclosing frame of each frame that a function closes over."""
        self.stars: dict[int, list[str]] = dict(modules.stars)
        """Libraries that a module star-imports."""

    # roots

    def run_script(self, file: ParsedFile) -> Trace:
        """Run a file's top level as ``python file`` would."""
        self.trace = Trace(file.path)
        self._guard(lambda: self._run_module(file, "__main__"))
        return self.trace

    def run_functions(self, file: ParsedFile, wanted: set[ast.AST]) -> list[Trace]:
        """Run functions of a file that nothing in the tree calls, with arguments that cannot be seen, twice each.

        A trace for each function, and one for the methods of each class: they share an object. Each has the budget for
        itself, and all together that of a few. A function that another one of them turns out to call is left out if the
        other one's turn comes first.
        """
        left = _ROOTS * self.budget
        self.trace = Trace(file.path)
        frame = Frame(self._load(file), file, None, None, 0)
        frame.module_globals = frame.fid
        traces: dict[ast.stmt, Trace] = {}
        for statement, functions in _callers_first(file, wanted):
            inside = functions - self.called.keys()
            if not inside:
                continue
            self.trace = Trace(f"{file.path} ({getattr(statement, 'name', '')})")
            self.spent = 0
            self.frame, self.dead, self.active = frame, False, []
            frame.loops, frame.statement = [], None
            self._guard(lambda s=statement, w=inside: self._run_wanted(frame, s, w))  # type: ignore[misc]
            traces[statement] = self.trace
            left -= self.spent
            if left < 0:
                line = getattr(statement, "lineno", 0)
                self.trace.notes.append(f"{file.path}:{line}: the budget of this file's functions ended here")
                break
        return [traces[statement] for statement in file.tree.body if statement in traces]

    def _guard(self, run: Callable[[], object]) -> None:
        try:
            run()
            self.modules.clock, self.modules.oids = self.clock, self.oids
        except BudgetEnded:
            self.modules.clock, self.modules.oids = self.clock, self.oids
            self.trace.complete = False
            where = self.frame.statement if self.frame is not None else None
            path = self.frame.file.path if self.frame is not None else self.trace.root
            self.trace.notes.append(f"{path}:{getattr(where, 'lineno', 0)}: the budget of this run ended here")
        except RecursionError:
            self.modules.clock, self.modules.oids = self.clock, self.oids
            self.trace.complete = False
            self.trace.notes.append(f"{self.trace.root}: nested too deeply to be followed")

    def _run_module(self, file: ParsedFile, name: str) -> Frame:
        frame = self._module_frame(file)
        self.s.set((frame.fid, "__name__"), Const(name))
        self.s.set((frame.fid, "__file__"), Plain("text"))
        self.frame = frame
        self.execute(file.tree.body)
        frame.end = self.tick()
        return frame

    def _module_frame(self, file: ParsedFile) -> Frame:
        fid = self.new_oid()
        self.looked_at.add(file.relative.as_posix())
        frame = Frame(fid, file, None, None, 0)
        frame.module_globals = fid
        frame.birth = self.tick()
        self.trace.frames.append(frame)
        return frame

    def _run_wanted(self, frame: Frame, statement: ast.stmt, wanted: set[ast.AST]) -> None:
        if isinstance(statement, _FUNCTIONS) and statement in wanted:
            value = self.s.get((frame.fid, statement.name))
            if isinstance(value, Function) and value.definition is statement:
                self.trace.roots.append(statement)
                self._run_root(value, None, statement)
        elif isinstance(statement, ast.ClassDef):
            self._run_class(frame, statement, wanted)

    def _run_class(self, frame: Frame, statement: ast.ClassDef, wanted: set[ast.AST]) -> None:
        value = self.s.get((frame.fid, statement.name))
        methods = [m for m in statement.body if isinstance(m, _FUNCTIONS) and m in wanted]
        if not isinstance(value, Class) or not methods:
            return
        receiver = self.instantiate(value.info, Arguments(), statement)
        self.raises_here = False
        if isinstance(receiver, Instance):
            self._evidence(statement, receiver)
        roots: list[Function] = []
        for method in _uncalled_first(frame.file, methods):
            member = value.info.members.get(method.name)
            if not isinstance(member, Function) or member.definition is not method or method.name == "__init__":
                continue
            if method not in self.called:
                roots.append(member)
                self.trace.roots.append(method)
                self._run_method(member, receiver)
        for member in roots:
            self._run_method(member, receiver)

    def _run_method(self, member: Function, receiver: Value) -> None:
        self._run_root(member, None if member.kind == "staticmethod" else receiver, member.definition, turns=1)

    def _evidence(self, scope: ast.AST, receiver: Instance) -> None:
        """``self.net.eval()`` anywhere in a class shows what ``self.net`` is, wherever it comes from."""
        for node, name in receiver.cls.file.once(_own_modules, scope):
            value = self.s.get((receiver.oid, name))
            if isinstance(value, Unknown) and value.module is None:
                value.module = Module(self.new_oid(), "", self.leaf(node, name))

    def _run_root(self, function: Function, receiver: Value | None, at: ast.AST, turns: int = 2) -> None:
        definition = function.definition
        evidence = function.file.once(_module_names, definition)
        spec = definition.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        skip = 1 if receiver is not None and function.kind != "staticmethod" else 0
        if function.kind == "classmethod" and function.cls is not None:
            receiver = Class(function.cls)
        assert self.frame is not None
        outer = self.frame
        for turn in range(turns):
            args = Arguments()
            for name in names[skip:]:
                value = self.argument(name)
                if name in evidence:
                    value.module = Module(self.new_oid(), "", self.leaf(definition, name))
                args.keywords[name] = value
            for arg in spec.kwonlyargs:
                args.keywords[arg.arg] = self.argument(arg.arg)
            self.frame = outer
            # arguments are unknown, but an argument with a default is most often not given
            outer.loops.append((at, turn))
            try:
                self.entering_root = True
                result = self.call_function(function, args, definition, receiver=receiver)
            finally:
                outer.loops.pop()
            # what it raises ends this run of it, and not the next one
            self.raises_here = False
            self.escape(result, "returned to a caller that cannot be seen")
            for item in self.elements(result):
                self.escape(item, "returned to a caller that cannot be seen")
            self.dead = False

    # names

    def load_name(self, name: str, at: ast.AST) -> Value:
        frame: Frame | None = self.frame
        assert frame is not None
        if name not in frame.globals and name in frame.names:
            value = self.s.get((frame.fid, name))
            if isinstance(value, (Imported, Join)) and (found := self._imported(value)) is not None:
                return found
            if isinstance(value, Value):
                if may_carry(value):
                    self.read(value, Carrier("local", frame.fid, name), at)
                return value
        fid = frame.function.closure if frame.function is not None else 0
        while fid:
            value = self.s.get((fid, name))
            if isinstance(value, (Imported, Join)) and (found := self._imported(value)) is not None:
                return found
            if isinstance(value, Value):
                if may_carry(value):
                    self.read(value, Carrier("local", fid, name), at)
                return value
            fid = self.closures.get(fid, 0)
        value = self.s.get((frame.module_globals, name))
        if isinstance(value, (Imported, Join)) and (found := self._imported(value)) is not None:
            return found
        if isinstance(value, Value):
            if may_carry(value):
                self.read(value, Carrier("global", frame.module_globals, name), at)
            return value
        if name in _BUILTINS:
            return Library(f"builtins.{name}")
        star = self.stars.get(frame.module_globals)
        if star:
            return Library(f"{star[-1]}.{name}")
        return self.unknown(name)

    def store_name(self, name: str, value: Value, at: ast.AST) -> None:
        """Bind a variable of the running frame."""
        frame = self.frame
        if frame.function is None or name in frame.globals:
            key = (frame.module_globals, name)
            kind = "global"
        elif name in frame.nonlocals:
            fid = frame.function.closure
            while fid and self.s.peek((fid, name)) is None:
                fid = self.closures.get(fid, 0)
            key = (fid or frame.fid, name)
            kind = "local"
        else:
            key = (frame.fid, name)
            kind = "local"
            frame.names.add(name)
        self.s.set(key, value)
        if may_carry(value):
            self.stored(value, Carrier(kind, key[0], name), at)

    # statements

    def execute(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.dead:
                return
            self.spend()
            frame = self.frame
            outer_statement = frame.statement
            frame.statement = statement
            first = self.clock + 1
            method = self.executors.get(statement.__class__)
            if method is not None:
                method(self, statement)
            if self.raises_here:
                self.raises_here = False
                self.dead = True
                self.raises.append(self.s)
            if not frame.inside_module:
                self.trace.ran.append(Ran(statement, frame, tuple(frame.loops), first, self.clock + 1))
            frame.statement = outer_statement

    def _do_Expr(self, s: ast.Stmt) -> None:  # type: ignore[name-defined]
        self.evaluate(s.value)

    def _do_Assign(self, s: ast.Assign) -> None:
        value = self.evaluate(s.value)
        for target in s.targets:
            self._note_sum(target, s.value, value)
            self.assign(target, value, s.value)

    def _do_AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is not None:
            self.assign(s.target, self.evaluate(s.value), s.value)

    def _note_sum(self, target: ast.expr, expression: ast.expr, value: Value) -> None:
        """``total = total + loss`` is an accumulation too, and so is ``mean = 0.9 * mean + 0.1 * loss``."""
        if not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            return
        begun: list[ast.expr] = []
        if isinstance(expression, ast.IfExp):
            # mean = loss if mean is None else 0.9 * mean + 0.1 * loss
            begun = [a for a in (expression.body, expression.orelse) if not isinstance(a, ast.BinOp)]
            sums = [a for a in (expression.body, expression.orelse) if isinstance(a, ast.BinOp)]
            if len(sums) != 1:
                return
            expression = sums[0]
        if not isinstance(expression, ast.BinOp) or not isinstance(expression.op, ast.Add):
            return
        terms: list[ast.expr] = [expression]
        while isinstance(terms[0], ast.BinOp) and isinstance(terms[0].op, ast.Add):
            terms[:1] = [terms[0].left, terms[0].right]
        text = ast.unparse(target)
        mine = next((t for t in terms if _factor(t, text)), None)
        old = self.values.get(mine) if mine is not None else None
        others = [t for t in terms if t is not mine]
        added = self._one_of([v for t in others if (v := self.values.get(t)) is not None])
        if old is None or added is None:
            return
        parts = tuple(part for t in (*others, *begun) for part in self.parts_of(t))
        self.trace.accumulations.append(
            Accumulation(
                self.place(expression), target, others[-1], old, added, value, self.carrier(target), self.s.grad, parts
            )
        )

    def carrier(self, target: ast.expr) -> Carrier | None:
        """What a target names, for blame."""
        if isinstance(target, ast.Name):
            frame = self.frame
            if frame.function is None or target.id in frame.globals:
                return Carrier("global", frame.module_globals, target.id)
            return Carrier("local", frame.fid, target.id)
        if isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value)
            oid = getattr(owner, "oid", 0)
            return Carrier("attribute", oid, target.attr)
        if isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value)
            return Carrier("element", getattr(owner, "oid", 0), "")
        return None

    def _do_AugAssign(self, s: ast.AugAssign) -> None:
        old = self.evaluate(s.target)
        added = self.evaluate(s.value)
        if isinstance(s.target, (ast.Name, ast.Attribute)):
            self.alter(old, "attached" if self.nodes_of(added) else "values", s)
        name = type(s.op).__name__
        value: Value
        listed = name == "Add" and isinstance(added, (Parameters, Sequence))
        if isinstance(old, Parameters) and (old.element or not listed):
            self.mark_owned("parameter-changed", s, old)
        if listed and isinstance(old, (Parameters, Sequence)) and Parameters in (old.__class__, added.__class__):
            # params += list(net.parameters())
            value = super().binary(name, old, added, s)
        elif name == "Add" and isinstance(old, Sequence):
            self.container_method(old, "extend", Arguments(None, [added]), s)
            value = old
        else:
            value = super().binary(name, old, added, s)
            if isinstance(value, (Plain, Const)):
                value = NUMBER if not (isinstance(value, Plain) and value.kind != "number") else value
        if name == "Add":
            self.trace.accumulations.append(
                Accumulation(
                    self.place(s),
                    s.target,
                    s.value,
                    old,
                    added,
                    value,
                    self.carrier(s.target),
                    self.s.grad,
                    tuple(self.parts_of(s.value)),
                )
            )
        self.assign(s.target, value, None)

    def assign(self, target: ast.expr, value: Value, value_expr: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.store_name(target.id, value, target)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value)
            self.set_attribute(owner, target.attr, value, target)
            if target.attr == "requires_grad" and self.truth(value) is True:
                self._ask_for_gradients(target, owner)
        elif isinstance(target, ast.Subscript):
            container = self.evaluate(target.value)
            key = self.evaluate(target.slice)
            if isinstance(container, Tensor) and isinstance(target.value, ast.Name | ast.Attribute):
                # an element written in place: the tensor now depends on the value as well
                self.alter(container, "attached" if self.nodes_of(value) else "values", target)
                if self.nodes_of(value) or container.node is not None:
                    changed = self.tensor_op(target, "setitem", [container, value], saves=False)
                    self.note_element(target, value_expr, value, changed)
                    self.assign(target.value, changed, None)
                return
            self.set_item(container, key, value, target, value_expr)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, value_expr)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, self.new_sequence(self.elements(value)), None)

    def _ask_for_gradients(self, target: ast.Attribute, owner: Value) -> None:
        """``x.requires_grad = True`` makes a leaf of data, as ``requires_grad_()`` does."""
        if not isinstance(owner, (Tensor, Unknown)) or owner.node is not None or self.is_module(owner):
            return
        if self.thawed(target.value):
            return
        if isinstance(target.value, (ast.Name, ast.Attribute, ast.Subscript)):
            leaf = self.leaf(target, "input")
            # an argument may be attached already: then nothing changes
            leaf.shadow = owner.shadow
            self.assign(
                target.value, Tensor(leaf, isinstance(owner, Tensor) and owner.scalar, shadow=leaf.shadow), None
            )

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, value_expr: ast.expr | None) -> None:
        count = len(target.elts)
        starred = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
        exprs: list[ast.expr | None] = [None] * count
        if isinstance(value_expr, (ast.Tuple, ast.List)) and len(value_expr.elts) == count and starred is None:
            exprs = list(value_expr.elts)
        columns = self._columns(value, count, starred, target)
        for element, part, expr in zip(target.elts, columns, exprs, strict=True):
            self.assign(element, part, expr)

    def _columns(self, value: Value, count: int, starred: int | None, at: ast.AST) -> list[Value]:
        items: list[Value] | None = None
        if isinstance(value, Tuple):
            items = list(value.items)
        elif (
            isinstance(value, Sequence)
            and self.s.get((value.oid, REST)) is None
            and value.kind not in ("turns", "generator")
        ):
            items = list(self.s.get((value.oid, ITEMS)) or ())
        elif isinstance(value, Join):
            per_option = [
                self._columns(o, count, starred, at)
                for o in value.options
                if not (isinstance(o, Const) and o.value is None)
            ]
            if per_option:
                joined = per_option[0]
                for other in per_option[1:]:
                    joined = [self.join(a, b) for a, b in zip(joined, other, strict=True)]
                return joined
        if items is not None:
            if starred is None and len(items) == count:
                return items
            if starred is not None and len(items) >= count - 1:
                tail = count - starred - 1
                middle = items[starred : len(items) - tail]
                return [*items[:starred], self.new_sequence(middle), *items[len(items) - tail :]]
            if items:
                one = self._one_of(items)
                assert one is not None
                return [one] * count
        if isinstance(value, Tensor):
            if value.node is None:
                return [Tensor(None, index=value.index, shadow=value.shadow)] * count
            return [self.tensor_op(at, "getitem", [value], saves=False) for _ in range(count)]
        if isinstance(value, Unknown):
            if value.node is not None:
                return [self.unknown("item", self.part(at, value, f"item {i}")) for i in range(count)]
            if not value.data and value.origin not in ("item",):
                return [self._unknown_attribute(value, f"[{i}]", at) for i in range(count)]
            return [self.unknown("item", data=True) for _ in range(count)]
        if isinstance(value, (Plain, Const)):
            return [value if isinstance(value, Plain) else NUMBER] * count
        turns = self.iterate(value, at)
        if turns:
            return [turns[min(i, len(turns) - 1)] for i in range(count)]
        return [self.lost() for _ in range(count)]

    def _do_Delete(self, s: ast.Delete) -> None:
        for target in s.targets:
            if isinstance(target, ast.Name):
                self.s.delete((self.frame.fid if self.frame.function else self.frame.module_globals, target.id))
            elif isinstance(target, ast.Subscript):
                container = self.evaluate(target.value)
                self.evaluate(target.slice)
                if isinstance(container, Sequence) and isinstance(target.slice, ast.Slice):
                    # del rewards[:] empties the list, as clear() does
                    self.container_method(container, "clear", Arguments(), s)
            elif isinstance(target, ast.Attribute):
                owner = self.evaluate(target.value)
                oid = getattr(owner, "oid", None)
                if isinstance(oid, int):
                    self.s.delete((oid, target.attr))

    def _do_Return(self, s: ast.Return) -> None:
        value = self.evaluate(s.value) if s.value is not None else NONE
        if self.raises_here:
            return
        self.returns.append((self.s, value))
        self.dead = True

    def _do_Raise(self, s: ast.Raise) -> None:
        for part in (s.exc, s.cause):
            if part is not None:
                self.evaluate(part)
        self.raises.append(self.s)
        self.dead = True

    def _do_Assert(self, s: ast.Assert) -> None:
        self.use(self.evaluate(s.test), "truth", s)
        if s.msg is not None:
            self.evaluate(s.msg)

    def _do_Global(self, s: ast.Global) -> None:
        self.frame.globals.update(s.names)

    def _do_Nonlocal(self, s: ast.Nonlocal) -> None:
        self.frame.nonlocals.update(s.names)

    def _do_Break(self, s: ast.Break) -> None:
        self.breaks.append(self.s)
        self.dead = True

    def _do_Continue(self, s: ast.Continue) -> None:
        self.continues.append(self.s)
        self.dead = True

    def _do_If(self, s: ast.If) -> None:
        test = self.evaluate(s.test)
        if self.raises_here:
            return
        self.use(test, "truth", s)
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
            # both ways meet again: what each knew is known no more
            for state, key, whole, part in narrowed:
                if state.cells.get(key) is part:
                    state.cells[key] = whole
        self.meet(ends, base)

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

    def _rebind(self, subject: ast.expr, value: Value) -> None:
        if isinstance(subject, ast.Name):
            for fid in (self.frame.fid, self.frame.module_globals):
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

    # loops

    def _do_For(self, s: ast.For) -> None:
        values = self.iterate(self.evaluate(s.iter), s.iter)
        if self.raises_here:
            return
        self._loop(s, values, lambda value: self.assign(s.target, value, None))

    _do_AsyncFor = _do_For  # noqa: N815

    def _do_While(self, s: ast.While) -> None:
        test = self.evaluate(s.test)
        if self.truth(test) is False:
            self.execute(s.orelse)
            return

        def again(turn: Value) -> None:
            if turn is not NONE:
                self.evaluate(s.test)

        self._loop(s, [NONE, NUMBER], again, forever=isinstance(s.test, ast.Constant))

    def _loop(
        self,
        s: ast.For | ast.AsyncFor | ast.While,
        values: list[Value],
        begin: Callable[[Value], None],
        *,
        forever: bool = False,
    ) -> None:
        base = self.s
        outer_breaks, outer_continues = self.breaks, self.continues
        self.breaks = []
        self.s = base.fork()
        finished: list[State] = []
        for turn, value in enumerate(values):
            self.frame.loops.append((s, turn))
            self.continues = []
            start = self.s
            self.s = start.fork()
            begin(value)
            self.execute(s.body)
            ends = ([] if self.dead else [self.s]) + self.continues
            self.frame.loops.pop()
            if not ends:
                self.dead = True
                break
            self.meet(ends, start)
        if not self.dead:
            self.execute(s.orelse)
            if not self.dead:
                finished.append(self.s)
        ends = finished + self.breaks
        self.breaks, self.continues = outer_breaks, outer_continues
        if not ends:
            # every turn left the function; the loop may also run no turn at all
            if forever:
                self.dead = True
                return
            self.dead = False
            self.s = base
            return
        self.meet(ends, base)

    def run_turns(self, loop: ast.AST, values: list[Value], body: Callable[[Value], None]) -> None:
        for turn, value in enumerate(values):
            self.frame.loops.append((loop, turn))
            try:
                body(value)
            finally:
                self.frame.loops.pop()

    # with, try, match

    def _do_With(self, s: ast.With) -> None:
        saved = self.s.grad
        exits: list[Callable[[], None]] = []
        for item in s.items:
            self._enter(item, exits)
        if self.raises_here:
            for leave in reversed(exits):
                leave()
            return
        leaving = (self.breaks, self.continues, self.raises)
        before = [len(states) for states in leaving]
        returned = len(self.returns)
        self.execute(s.body)
        for leave in reversed(exits):
            leave()
        if not exits:
            return
        # what left through return, break or raise has left the context as well
        self.s.grad = saved
        for state, _ in self.returns[returned:]:
            state.grad = saved
        for states, count in zip(leaving, before, strict=True):
            for state in states[count:]:
                state.grad = saved

    _do_AsyncWith = _do_With  # noqa: N815

    def _enter(self, item: ast.withitem, exits: list[Callable[[], None]]) -> None:
        value = self.evaluate(item.context_expr)
        result: Value = value
        if isinstance(value, Join):
            modes = {o.enabled for o in value.options if isinstance(o, GradMode)}
            if modes:
                before = self.s.grad
                others = [o for o in value.options if not isinstance(o, GradMode)]
                if others:
                    modes.add(before)
                self.s.grad = modes.pop() if len(modes) == 1 else None
                exits.append(lambda: setattr(self.s, "grad", before))
        elif isinstance(value, GradMode):
            before = value.previous if value.switched else self.s.grad
            self.s.grad = value.enabled
            exits.append(lambda: setattr(self.s, "grad", before))
        elif isinstance(value, Instance):
            enter = value.cls.find("__enter__")
            leave = value.cls.find("__exit__")
            before = self.s.grad
            if isinstance(enter, Function):
                result = self.call_function(enter, Arguments(), item.context_expr, receiver=value)
            if isinstance(leave, Function):
                exits.append(
                    lambda: (
                        self.call_function(leave, Arguments(None, [NONE] * 3), item.context_expr, receiver=value),
                        None,
                    )[1]
                )
        elif isinstance(item.context_expr, ast.Call):
            function = self.evaluate(item.context_expr.func) if isinstance(item.context_expr.func, ast.Name) else None
            if isinstance(function, Function) and function.file.once(_touches_grad_mode, function.definition):
                before = self.s.grad
                self.s.grad = None
                exits.append(lambda: setattr(self.s, "grad", before))
            elif isinstance(value, Unknown) and "scale_loss" in value.origin:
                # apex.amp.scale_loss(loss, optimizer) as scaled_loss
                result = value
        if item.optional_vars is not None:
            if isinstance(result, Sequence) and result.kind == "generator":
                result = self._one_of(self.elements(result)) or self.unknown("entered")
            self.assign(item.optional_vars, result, None)

    def _do_Try(self, s: ast.Try) -> None:
        base = self.s
        self.s = base.fork()
        outer_raises = self.raises
        self.raises = []
        before = self.s.fork()
        self.execute(s.body)
        ends: list[State] = []
        if not self.dead:
            self.execute(s.orelse)
        after = self.s
        completed = not self.dead
        if completed:
            ends.append(self.s)
        thrown = self.raises
        self.raises = outer_raises
        for handler in s.handlers:
            # an exception may come at any point of the body: at its begin, or with all its effects
            candidates = [before.fork(), *(state.fork() for state in thrown[:2])]
            if completed:
                candidates.append(after.fork())
            self.meet(candidates, base) if len(candidates) > 1 else None
            self.s = candidates[0]
            self.s.log = type(self.s.log)(base.log)
            self.s.log.keys |= base.log.keys
            self.dead = False
            if handler.name:
                self.store_name(handler.name, self.unknown("exception"), handler)
            self.execute(handler.body)
            if not self.dead:
                ends.append(self.s)
        if not s.handlers:
            self.raises.extend(thrown)
        self.meet(ends, base)
        if s.finalbody:
            was_dead = self.dead
            self.dead = False
            self.execute(s.finalbody)
            self.dead = self.dead or was_dead

    _do_TryStar = _do_Try  # noqa: N815

    def _do_Match(self, s: ast.Match) -> None:
        subject = self.evaluate(s.subject)
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
        if isinstance(pattern, ast.MatchAs):
            if pattern.pattern is not None:
                self._bind_pattern(pattern.pattern, subject)
            if pattern.name is not None:
                self.store_name(pattern.name, subject, pattern)
        elif isinstance(pattern, ast.MatchStar):
            if pattern.name is not None:
                self.store_name(pattern.name, subject, pattern)
        elif isinstance(pattern, ast.MatchOr):
            for alternative in pattern.patterns:
                self._bind_pattern(alternative, subject)
        elif isinstance(pattern, ast.MatchSequence):
            starred = next((i for i, p in enumerate(pattern.patterns) if isinstance(p, ast.MatchStar)), None)
            columns = self._columns(subject, len(pattern.patterns), starred, pattern)
            for inner, value in zip(pattern.patterns, columns, strict=True):
                self._bind_pattern(inner, value)
        elif isinstance(pattern, ast.MatchMapping):
            for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
                self._bind_pattern(inner, self.get_item(subject, self.evaluate(key), pattern))
            if pattern.rest is not None:
                self.store_name(pattern.rest, subject, pattern)
        elif isinstance(pattern, ast.MatchClass):
            for attribute, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                self._bind_pattern(inner, self.get_attribute(subject, attribute, pattern))
            # Class(x): of a builtin the object itself, else the field that is declared there
            fields = subject.cls.fields() if isinstance(subject, Instance) else []
            for i, inner in enumerate(pattern.patterns):
                if isinstance(subject, Instance) and i < len(fields):
                    self._bind_pattern(inner, self.get_attribute(subject, fields[i], pattern))
                else:
                    whole = isinstance(subject, (Tensor, Const, Plain, Sequence, Mapping, Tuple))
                    value = subject if whole else self.unknown("matched", self.part(pattern, subject, "matched"))
                    self._bind_pattern(inner, value)

    # definitions

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Value:
        frame = self.frame
        closure = 0
        if frame.function is not None:
            closure = frame.fid
            frame.captured = True
            self.closures[frame.fid] = frame.function.closure
        defaults = tuple(self.evaluate(d) for d in node.args.defaults)
        kw_defaults = tuple(
            (arg.arg, self.evaluate(d))
            for arg, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if d is not None
        )
        return Function(
            node, frame.file, closure, defaults=defaults, kw_defaults=kw_defaults, module_globals=frame.module_globals
        )

    def _do_FunctionDef(self, s: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.store_name(s.name, self._decorate(s, self.define_function(s)), s)

    _do_AsyncFunctionDef = _do_FunctionDef  # noqa: N815

    def _decorate(self, s: ast.FunctionDef | ast.AsyncFunctionDef, value: Value) -> Value:
        for expression in reversed(s.decorator_list):
            if not isinstance(value, Function):
                break
            decorator = self.evaluate(expression)
            if isinstance(decorator, GradMode):
                if decorator.switched:
                    self.s.grad = decorator.previous
                value = replace(value, grad_mode=decorator.enabled)
            elif isinstance(decorator, Library):
                path = canonical(decorator.path)
                if path in facts.GRAD_OFF:
                    value = replace(value, grad_mode=False)
                elif path in facts.GRAD_ON:
                    value = replace(value, grad_mode=True)
                elif path.rpartition(".")[2] in ("staticmethod", "classmethod", "property", "cached_property"):
                    kind = path.rpartition(".")[2].replace("cached_property", "property")
                    value = replace(value, kind=kind)
            elif isinstance(decorator, Method) and decorator.name == "setter":
                value = replace(value, kind="setter")
            elif isinstance(decorator, (Function, Method)):
                inner = decorator if isinstance(decorator, Function) else decorator.function
                if inner is not None and inner.file.once(_touches_grad_mode, inner.definition):
                    value = replace(value, grad_mode=None)
            elif isinstance(decorator, Unknown) and "grad" in decorator.origin:
                value = replace(value, grad_mode=None)
        return value

    def _do_ClassDef(self, s: ast.ClassDef) -> None:
        self.store_name(s.name, self._define_class(s), s)

    def _define_class(self, s: ast.ClassDef) -> Class:
        bases = tuple(self.evaluate(b) for b in s.bases if not isinstance(b, ast.Starred))
        info = ClassInfo(s.name, s, self.frame.file, bases, oid=self.new_oid())
        info.family = _family(s, bases)
        for expression in s.decorator_list:
            self.evaluate(expression)
        for statement in s.body:
            if isinstance(statement, _FUNCTIONS):
                value = self._decorate(statement, self.define_function(statement))
                if isinstance(value, Function):
                    if value.kind == "setter":
                        continue
                    value = replace(value, cls=info)
                info.members[statement.name] = value
            elif isinstance(statement, ast.ClassDef):
                info.members[statement.name] = self._define_class(statement)
            elif isinstance(statement, ast.Assign):
                alias = info.members.get(statement.value.id) if isinstance(statement.value, ast.Name) else None
                value = alias if alias is not None else self.evaluate(statement.value)
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        info.members[target.id] = value
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                if isinstance(statement.target, ast.Name):
                    name = statement.target.id
                    info.members[name] = self.evaluate(statement.value)
                    self._note_factory(info, name, statement.value)
            elif isinstance(statement, (ast.If, ast.Try, ast.With)):
                for inner in ast.walk(statement):
                    if isinstance(inner, _FUNCTIONS):
                        made = self._decorate(inner, self.define_function(inner))
                        info.members[inner.name] = replace(made, cls=info) if isinstance(made, Function) else made
        return Class(info)

    def _note_factory(self, info: ClassInfo, name: str, expression: ast.expr) -> None:
        """``field(default_factory=list)`` of a dataclass: each object gets one of its own."""
        if isinstance(expression, ast.Call):
            function = self.values.get(expression.func)
            for keyword in expression.keywords:
                if keyword.arg == "default_factory" and isinstance(function, Library):
                    info.factories[name] = self.values.get(keyword.value) or self.evaluate(keyword.value)

    # imports

    def _do_Import(self, s: ast.Import) -> None:
        for alias in s.names:
            top = alias.name.partition(".")[0]
            if alias.asname:
                self.store_name(alias.asname, self._module_value(alias.name), s)
                continue
            self.store_name(top, self._module_value(top), s)

    def _module_value(self, name: str) -> Value:
        found = (
            None if name.partition(".")[0] in NEVER_OF_THE_TREE else self.importer.import_module(name, self.frame.file)
        )
        return Library(name) if found is None else TreeModule(found)

    def _load(self, file: ParsedFile) -> int:
        """Run a module's top level as an import does, once for all runs; return what owns its globals."""
        key = file.relative.as_posix()
        modules = self.modules
        self.looked_at.add(key)
        known = modules.loaded.get(key)
        if known is not None:
            self.looked_at |= modules.needs.get(key, set())
            return known
        names = (
            "s",
            "trace",
            "frame",
            "dead",
            "spent",
            "budget",
            "active",
            "memos",
            "raises_here",
            "narrowed",
            "returns",
            "breaks",
            "continues",
            "raises",
            "looked_at",
            "written",
            "entering_root",
            "unknowns",
        )
        saved = {name: getattr(self, name) for name in names}
        self.s = State.empty(modules.cells)
        self.trace = Trace(file.path)
        self.dead = self.raises_here = self.entering_root = False
        self.returns, self.breaks, self.continues, self.raises, self.narrowed = [], [], [], [], []
        self.active, self.memos, self.written, self.looked_at = [], {}, set(), set()
        self.spent, self.budget = 0, _LOAD_BUDGET
        self.unknowns = []
        first = self.oids
        frame = self._module_frame(file)
        modules.loaded[key] = frame.fid
        modules.globals[frame.fid] = {}
        if saved["frame"] is not None:
            frame.depth = saved["frame"].depth + 1
        self.frame = frame
        self.s.set((frame.fid, "__name__"), Const(file.relative.stem))
        try:
            if frame.depth < 40:
                self.execute(file.tree.body)
        except (BudgetEnded, RecursionError):
            saved["trace"].notes.append(f"{file.path}: its top level takes too long to be followed")
        modules.keep_cells(self.s.cells)
        modules.keep(self.trace.nodes, self.unknowns)
        modules.needs[key] = self.looked_at
        for oid in range(first, self.oids + 1):
            if oid in self.attributes:
                modules.attributes[oid] = self.attributes[oid]
            if oid in self.closures:
                modules.closures[oid] = self.closures[oid]
            if oid in self.stars:
                modules.stars[oid] = self.stars[oid]
        saved["looked_at"] |= self.looked_at
        for name, value in saved.items():
            setattr(self, name, value)
        return frame.fid

    def _do_ImportFrom(self, s: ast.ImportFrom) -> None:
        if s.level:
            found = self.importer.import_relative(s.module, s.level, self.frame.file)
        elif s.module and s.module.partition(".")[0] in NEVER_OF_THE_TREE:
            found = None
        else:
            found = self.importer.import_module(s.module or "", self.frame.file)
        if found is None:
            prefix = s.module or ""
            for alias in s.names:
                if alias.name == "*":
                    self.stars.setdefault(self.frame.module_globals, []).append(prefix)
                    self._star_library(prefix)
                else:
                    value: Value = Library(f"{prefix}.{alias.name}") if prefix else self.unknown(alias.name)
                    self.store_name(alias.asname or alias.name, value, s)
            return
        module = TreeModule(found)
        for alias in s.names:
            if alias.name == "*":
                self._import_star(module, s)
            else:
                self.store_name(alias.asname or alias.name, Imported(module, alias.name), s)

    def _star_library(self, prefix: str) -> None:
        """``from torch.nn import *`` and the like: the names that matter are known."""
        known: dict[str, frozenset[str]] = {
            "torch.nn": facts.MODULES_WITH_PARAMETERS
            | facts.MODULES_WITHOUT_PARAMETERS
            | facts.LOSS_MODULES
            | facts.MODULE_CONTAINERS
            | {"Module", "Parameter"},
            "torch.autograd": frozenset({"Variable", "Function", "grad", "no_grad", "backward"}),
            "torch": frozenset({"nn", "optim", "Tensor", "no_grad", "autograd", "cuda"}),
            "torch.optim": frozenset({"Adam", "SGD", "RMSprop", "AdamW", "Adagrad", "lr_scheduler"}),
        }
        for name in known.get(prefix, ()):
            self.store_name(name, Library(f"{prefix}.{name}"), self.frame.statement or ast.Pass())

    def _import_star(self, module: TreeModule, at: ast.stmt) -> None:
        file = None if module.path.endswith("/") else self.importer.file(module.path)
        if file is None:
            return
        fid = self._load(file)
        for name in list(self.modules.globals[fid]):
            value = self.modules.cells.get((fid, name))
            if not name.startswith("_") and isinstance(value, Value):
                self.store_name(name, value, at)
        for prefix in self.stars.get(fid, ()):
            self.stars.setdefault(self.frame.module_globals, []).append(prefix)

    def _imported(self, value: Imported | Join) -> Value | None:
        """What an imported name stands for, on any of the paths; None if nothing in ``value`` is one."""
        if isinstance(value, Imported):
            return self.module_member(value.module, value.name)
        if not any(isinstance(option, Imported) for option in value.options):
            return None
        return self._one_of(
            [self.module_member(o.module, o.name) if isinstance(o, Imported) else o for o in value.options]
        )

    def set_module_member(self, module: TreeModule, name: str, value: Value, at: ast.AST) -> None:
        file = None if module.path.endswith("/") else self.importer.file(module.path)
        if file is not None:
            fid = self._load(file)
            self.s.set((fid, name), value)
            self.stored(value, Carrier("global", fid, name), at)

    def module_member(self, module: TreeModule, name: str) -> Value:
        package: str | None
        if module.path.endswith("/"):
            package = module.path.rstrip("/")
        else:
            file = self.importer.file(module.path)
            if file is None:
                self.looked_at.add(module.path)
                return self.unknown(name)
            fid = self._load(file)
            value = self.s.get((fid, name))
            if isinstance(value, (Imported, Join)):
                if (fid, name) in self.resolving:
                    # two modules that import a name from each other
                    return self.unknown(name)
                self.resolving.add((fid, name))
                try:
                    value = self._imported(value) or value
                finally:
                    self.resolving.discard((fid, name))
            if isinstance(value, Value):
                self.read(value, Carrier("global", fid, name), self.frame.statement or ast.Pass())
                return value
            package = str(file.relative.parent) if file.relative.name == "__init__.py" else None
        if package is not None:
            found = self.importer.member_file("" if package == "." else package, name)
            if found is not None:
                return TreeModule(found)
        return self.unknown(name)


Machine.executors = {
    getattr(ast, name.removeprefix("_do_")): method
    for name, method in vars(Machine).items()
    if name.startswith("_do_") and hasattr(ast, name.removeprefix("_do_"))
}


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
            names.append(file.once(_names, statement))
    users: Counter[str] = Counter(name for used in names for name in used)
    own = [getattr(statement, "name", "") for statement, _ in found]
    free = [users[name] == (name in used) for name, used in zip(own, names, strict=True)]
    first = [pair for pair, alone in zip(found, free, strict=True) if alone]
    return first + [pair for pair, alone in zip(found, free, strict=True) if not alone][::-1]


def _uncalled_first(file: ParsedFile, methods: list[_Function]) -> list[_Function]:
    """The methods of a class that are to be run, those that no other one of them names first."""
    named = Counter(name for method in methods for name in file.once(_attributes, method) - {method.name})
    return [m for m in methods if not named[m.name]] + [m for m in methods if named[m.name]]


def _names(scope: ast.AST) -> frozenset[str]:
    return frozenset(node.id for node in walk(scope) if isinstance(node, ast.Name))


def _attributes(scope: ast.AST) -> frozenset[str]:
    return frozenset(node.attr for node in walk(scope) if isinstance(node, ast.Attribute))


def _own_modules(scope: ast.AST) -> tuple[tuple[ast.AST, str], ...]:
    """Attributes of ``self`` on which a class calls what only a module has, with the calls."""
    return tuple(
        (node, node.func.value.attr)
        for node in walk(scope)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("eval", "train", "parameters")
        and isinstance(node.func.value, ast.Attribute)
        and isinstance(node.func.value.value, ast.Name)
        and node.func.value.value.id == "self"
    )


def _factor(term: ast.expr, text: str) -> bool:
    """Whether a term of a sum is what reads ``text``, or a multiple of that."""
    if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
        return _factor(term.left, text) or (isinstance(term.op, ast.Mult) and _factor(term.right, text))
    if isinstance(term, ast.Call) and isinstance(term.func, ast.Attribute) and term.func.attr == "get" and term.args:
        # sums[key] = sums.get(key, 0) + loss
        return f"{ast.unparse(term.func.value)}[{ast.unparse(term.args[0])}]" == text
    return ast.unparse(term) == text


def _module_names(definition: ast.AST) -> set[str]:
    """Arguments on which a function calls what only a module has, ``eval`` or ``train`` without more."""
    found = set()
    for node in walk(definition):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("eval", "train", "parameters", "named_parameters", "load_state_dict")
            and isinstance(node.func.value, ast.Name)
        ):
            found.add(node.func.value.id)
    return found


def _touches_grad_mode(definition: ast.AST) -> bool:
    names = ("no_grad", "set_grad_enabled", "inference_mode", "enable_grad", "requires_grad", "requires_grad_")
    return any(
        (isinstance(node, ast.Attribute) and node.attr in names) or (isinstance(node, ast.Name) and node.id in names)
        for node in walk(definition)
    )


def _family(s: ast.ClassDef, bases: tuple[Value, ...]) -> str:
    family = "plain"
    for base in bases:
        if isinstance(base, Class):
            if base.info.family != "plain":
                return base.info.family
        elif isinstance(base, Library):
            path = canonical(base.path)
            if path in facts.FRAMEWORK_BASES:
                return facts.FRAMEWORK_BASES[path]
            if path.startswith("torch.nn."):
                return "module"
            if path.startswith("torch.optim."):
                return "optimizer"
            if path.endswith("LightningModule"):
                return "lightning"
            if path.split(".")[0] in (
                "builtins",
                "abc",
                "typing",
                "enum",
                "collections",
                "threading",
                "unittest",
                "argparse",
            ):
                continue
            family = "external"
        elif isinstance(base, Unknown):
            family = "external"
    if family == "external":
        names = {m.name for m in s.body if isinstance(m, _FUNCTIONS)}
        if "forward" in names:
            return "module"
    return family


__all__ = ["Importer", "Machine", "Mark", "Node", "Parameters", "Place"]
