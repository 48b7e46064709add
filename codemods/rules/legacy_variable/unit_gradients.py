"""Constants of shape [1] that ``backward`` gets as the gradient of a loss without dimensions.

Until PyTorch 0.4 a loss had the shape [1], and so had ``one`` in ``loss.backward(one)``; today a reduced loss has no
dimension, and the call raises. The constant is mended where it is made, if nothing else reads it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codemods.graph.model.facts.operations import KEEPS_SHAPE
from codemods.graph.model.kinds import WalkKind
from codemods.graph.model.nodes import Walk
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.proofs.observations import Site
from codemods.proofs.repackaging import is_variable
from codemods.proofs.syntax import DEFINITIONS, answered, argument, method
from codemods.source import walking
from codemods.terms.edits import Edit, ReplaceExpression
from codemods.terms.spans import Span

_DTYPES = {"Tensor": "", "FloatTensor": "", "DoubleTensor": "float64", "HalfTensor": "float16"}

_MOVES = KEEPS_SHAPE | {"detach", "neg"}


@dataclass(frozen=True)
class Reading:
    """What an expression gives that leads to a constant: the calls that make it, and the names that it goes by."""

    makers: tuple[ast.Call, ...] = ()
    names: tuple[ast.Name, ...] = ()

    def __add__(self, other: Reading) -> Reading:
        return Reading(self.makers + other.makers, self.names + other.names)


@dataclass
class Constant:
    """One constant under all its names."""

    names: set[str]
    makers: list[ast.Call]
    read: set[ast.Name]
    """Where its names are read to make it or to hand it to a backward that is known."""
    sites: list[Site] = field(default_factory=list)


def gradient_of(call: ast.Call) -> ast.expr | None:
    """What ``loss.backward(gradient)`` is given for the gradient, None where nothing is."""
    given = argument(call, 0, "gradient")
    return None if method(call) != "backward" or isinstance(given, (ast.Constant, ast.Starred)) else given


def given_gradients(trace: Trace) -> Iterator[tuple[Walk, ast.Call]]:
    """The backward passes of a run that were given a gradient, with their calls."""
    for walk in trace.walks:
        if walk.kind is WalkKind.BACKWARD and walk.with_gradient and walk.call is not None and gradient_of(walk.call):
            yield walk, walk.call


def is_dimensionless(walk: Walk) -> bool:
    """Whether what a backward begins at is proven to have no dimension."""
    return bool(walk.roots) and all(root.dimensionless for root in walk.roots)


def named_elsewhere(trace: Trace, file: ParsedFile) -> frozenset[str]:
    """The names and attributes of the other files of a run."""
    others = {id(f.file): f.file for f in trace.frames if f.file is not file}
    return frozenset(name for other in others.values() for name in other.once(_identifiers, other.tree))


def _identifiers(tree: ast.Module) -> frozenset[str]:
    found = set()
    for node in walking.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return frozenset(found)


class Constants:
    """The constants of a file that backward passes get; ``sites`` are those calls that a run came to."""

    def __init__(self, file: ParsedFile, sites: Iterable[Site]) -> None:
        self.file = file
        self.bound: dict[str, list[ast.expr | None]] = defaultdict(list)
        self.loads: dict[str, set[ast.Name]] = defaultdict(set)
        self.inner: set[str] = set()
        """Names that only functions bind."""
        self._look()
        self.found: list[Constant] = []
        for site in sites:
            call = file.find(site.span, ast.Call)
            given = (
                gradient_of(call) if isinstance(call, ast.Call) and not answered(file, call, "RuntimeError") else None
            )
            reading = self._read(given) if given is not None else None
            constant = self._follow(reading) if reading is not None else None
            if constant is not None:
                self._add(constant, site)

    def proven(self, constant: Constant) -> bool:
        """Whether all that reads a constant is a backward that needs it without dimensions."""
        if not all(site.faulty for site in constant.sites):
            return False
        outside = {name for site in constant.sites for o in site.observations for name in o.facts["elsewhere"]}
        if constant.names & outside or constant.names & self.file.once(_attributes, self.file.tree):
            return False
        program = any(o.facts["program"] for site in constant.sites for o in site.observations)
        if not (program or constant.names <= self.inner):
            return False
        return all(self.loads[name] <= constant.read for name in constant.names)

    def edits(self, constant: Constant) -> list[Edit]:
        """What makes the constant without dimensions."""
        return [ReplaceExpression(*_dimensionless(self.file, call)) for call in constant.makers]

    # reading the file

    def _look(self) -> None:
        outer: set[str] = set()
        assigned: set[ast.Name] = set()
        for node in walking.walk(self.file.tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name, value in _pairs(target, node.value):
                        self.bound[name.id].append(value)
                        assigned.add(name)
        for node in walking.walk(self.file.tree):
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self.loads[node.id].add(node)
                else:
                    if node not in assigned:
                        self.bound[node.id].append(None)
                    if self.file.enclosing(node, *DEFINITIONS, ast.Lambda) is None:
                        outer.add(node.id)
            elif isinstance(node, ast.arg):
                self.bound[node.arg].append(None)
            elif isinstance(node, (*DEFINITIONS, ast.ClassDef, ast.ExceptHandler)) and node.name:
                self.bound[node.name].append(None)
            elif isinstance(node, ast.alias):
                self.bound[node.asname or node.name].append(None)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                outer.update(node.names)
        self.inner = set(self.bound) - outer

    def _read(self, e: ast.expr) -> Reading | None:
        """What of a constant an expression reads; None where it may be anything else."""
        if isinstance(e, ast.Name):
            return Reading(names=(e,))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            return self._read(e.operand)
        if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
            if _number(e.right) is not None:
                return self._read(e.left)
            return self._read(e.right) if _number(e.left) is not None else None
        if isinstance(e, ast.IfExp):
            first, second = self._read(e.body), self._read(e.orelse)
            return first + second if first is not None and second is not None else None
        if not isinstance(e, ast.Call):
            return None
        if _made(self.file, e) is not None:
            return Reading(makers=(e,))
        if is_variable(self.file, e.func):
            asks = any(k.arg in ("requires_grad", None) for k in e.keywords)
            return self._read(e.args[0]) if len(e.args) == 1 and not asks else None
        if isinstance(e.func, ast.Attribute) and e.func.attr in _MOVES:
            return self._read(e.func.value)
        if isinstance(e.func, ast.Attribute) and e.func.attr in ("mul", "div") and not e.keywords:
            return self._read(e.func.value) if e.args and all(_number(a) is not None for a in e.args) else None
        return None

    def _follow(self, reading: Reading) -> Constant | None:
        """The constant behind what an expression reads, None where a name may stand for anything else."""
        constant = Constant(set(), [], set())
        stack = [reading]
        while stack:
            one = stack.pop()
            constant.makers += [call for call in one.makers if call not in constant.makers]
            constant.read.update(one.names)
            for name in {n.id for n in one.names} - constant.names:
                constant.names.add(name)
                for value in self.bound[name]:
                    found = self._read(value) if value is not None else None
                    if found is None:
                        return None
                    stack.append(found)
        return constant if constant.makers else None

    def _add(self, constant: Constant, site: Site) -> None:
        """Take in a constant, together with those that go by one of its names."""
        constant.sites.append(site)
        same = [c for c in self.found if c.names & constant.names]
        for other in same:
            self.found.remove(other)
            constant.names |= other.names
            constant.makers += [call for call in other.makers if call not in constant.makers]
            constant.read |= other.read
            constant.sites += other.sites
        self.found.append(constant)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The names that an assignment binds to expressions of their own."""
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
        if len(target.elts) == len(value.elts) and not starred:
            for one, other in zip(target.elts, value.elts, strict=True):
                yield from _pairs(one, other)


def _attributes(tree: ast.Module) -> frozenset[str]:
    return frozenset(node.attr for node in walking.walk(tree) if isinstance(node, ast.Attribute))


def _number(e: ast.expr) -> str | None:
    """The text of a number that is written out."""
    operand = e.operand if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub) else e
    if isinstance(operand, ast.Constant) and type(operand.value) in (int, float):
        return ast.unparse(e)
    return None


def _only(e: ast.expr) -> ast.expr | None:
    """The element of a list or tuple of one."""
    return e.elts[0] if isinstance(e, (ast.List, ast.Tuple)) and len(e.elts) == 1 else None


def _made(file: ParsedFile, call: ast.Call) -> str | None:
    """By which function of torch a call makes a tensor of shape [1] from a number, None if it does not."""
    path, _, name = ast.unparse(call.func).rpartition(".")
    if path not in ("torch", "torch.cuda") or not file.once(_imports_torch, file.tree) or len(call.args) != 1:
        return None
    element = _only(call.args[0])
    if name in _DTYPES and not call.keywords and (path == "torch" or name != "Tensor"):
        return name if element is not None and _number(element) is not None else None
    if path != "torch" or any(k.arg in (None, "requires_grad", "out") for k in call.keywords):
        return None
    if name == "tensor":
        return name if element is not None and _number(element) is not None else None
    return name if name == "ones" and ast.unparse(element or call.args[0]) == "1" else None


def _imports_torch(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Import) and any(a.name.partition(".")[0] == "torch" and not a.asname for a in node.names)
        for node in walking.walk(tree)
    )


def _dimensionless(file: ParsedFile, call: ast.Call) -> tuple[Span, str]:
    """The part of a call to replace, and the code, so that it makes a tensor without dimensions."""
    name = _made(file, call)
    element = _only(call.args[0])
    if name == "ones":
        return file.span(call.args[0]), "()"
    number = _number(element) if element is not None else None
    assert name is not None
    assert number is not None
    if name == "tensor":
        return file.span(call.args[0]), number
    text = number if "." in number or "e" in number else f"{number}.0"
    more = f", dtype={{torch}}.{_DTYPES[name]}" if _DTYPES[name] else ""
    if ast.unparse(call.func).startswith("torch.cuda."):
        more += ', device="cuda"'
    return file.span(call), f"{{torch}}.tensor({text}{more})"
