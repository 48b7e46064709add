"""Questions about syntax that several rules ask: kinds of statements, methods that are called, names that are read."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator

from codemods.graph.model.facts.python import SUPPRESSING
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.source.walking import called, last_name, walk

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (*DEFINITIONS, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
RETURNING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
"""What hands on to whoever called a function."""
LEAVING = (*RETURNING, ast.Break, ast.Continue, ast.Raise)
"""What goes on elsewhere than behind it."""
MAKING_TENSORS = frozenset({"tensor", "as_tensor", "from_numpy"})
"""Functions of torch that make a tensor of what has no graph."""
_LEAVING = frozenset({"detach", "item", "numpy", "tolist"})
_SUPPRESSING = frozenset(path.rpartition(".")[2] for path in SUPPRESSING)


def method(node: ast.AST | None) -> str:
    """The name of the method that a call calls; empty for anything else."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def bare_method(node: ast.AST | None) -> str:
    """The same for a call without arguments."""
    return method(node) if isinstance(node, ast.Call) and not (node.args or node.keywords) else ""


def argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    """The argument at position ``index`` or of that name; None where it is not given."""
    keyword = next((k.value for k in call.keywords if k.arg == name), None)
    if keyword is not None:
        return keyword
    return call.args[index] if index < len(call.args) else None


def scope(file: ParsedFile, node: ast.AST) -> ast.AST:
    """The function in which a node stands, or the whole file."""
    return file.enclosing(node, *FUNCTIONS) or file.tree


def everywhere(trace: Trace) -> Iterator[tuple[ParsedFile, ast.AST]]:
    """All nodes of the files that ran, each with its file."""
    for file in {frame.file.path: frame.file for frame in trace.frames}.values():
        for node in walk(file.tree):
            yield file, node


def ends_errors(node: ast.AST) -> bool:
    """Whether a statement may end the errors of what stands in it: a ``try``, or a ``with`` that suppresses them."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return any(suppresses(item.context_expr) for item in node.items)
    return isinstance(node, ast.Try) or type(node).__name__ == "TryStar"


def answered(file: ParsedFile, node: ast.AST, *errors: str) -> bool:
    """Whether code around it lives with one of some ``errors`` that it raises: another branch runs then, which a repair
    would end."""
    inner: ast.AST | None = node
    while inner is not None and not isinstance(inner, FUNCTIONS):
        outer = file.parent(inner)
        if isinstance(outer, ast.Try) and inner in outer.body and any(_catches(one, errors) for one in outer.handlers):
            return True
        if isinstance(outer, ast.With) and ends_errors(outer):
            return True
        inner = outer
    return False


def _catches(handler: ast.ExceptHandler, errors: Iterable[str]) -> bool:
    named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = {last_name(name) for name in named if name is not None}
    return handler.type is None or not caught.isdisjoint((*errors, "Exception", "BaseException"))


def suppresses(context: ast.expr) -> bool:
    """Whether what a ``with`` enters ends errors, by the name that it is called by."""
    return isinstance(context, ast.Call) and called(context) in _SUPPRESSING


def names(code: ast.AST, context: type[ast.expr_context] = ast.Load) -> set[str]:
    """The variables that code reads, or gives (``ast.Store``), or deletes (``ast.Del``)."""
    return {n.id for n in walk(code) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def reads(code: ast.AST, name: str) -> list[ast.Name]:
    """Where code reads a variable."""
    return [n for n in walk(code) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]


def bindings(code: ast.AST, name: str) -> list[ast.Name]:
    """Where code gives or deletes a variable."""
    return [n for n in walk(code) if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)]


def defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that need not be given, with what they are then."""
    plain = [*arguments.posonlyargs, *arguments.args]
    named = [*plain[len(plain) - len(arguments.defaults) :], *arguments.kwonlyargs]
    for argument, default in zip(named, [*arguments.defaults, *arguments.kw_defaults], strict=True):
        if default is not None:
            yield argument.arg, default


def true(node: ast.AST | None) -> bool:
    """Whether it is the literal ``True``."""
    return isinstance(node, ast.Constant) and node.value is True


def is_own(node: ast.expr, own: str) -> bool:
    """Whether it is an attribute of the method's own object, which the method calls ``own``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own


def renamed(node: ast.AST, old: str, new: str) -> str:
    """The text of a syntax node with one variable called differently."""
    copied = copy.deepcopy(node)
    for inner in ast.walk(copied):
        if isinstance(inner, ast.Name) and inner.id == old:
            inner.id = new
    return ast.unparse(copied)


def suspends(node: ast.AST) -> bool:
    """Whether it yields or awaits: a ``with`` around that leaks into the consumer."""
    kinds = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
    return any(isinstance(inner, kinds) for inner in own_nodes(ast.iter_child_nodes(node)))


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """``nodes`` and all below them, but for what stands in functions and classes among them."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def free_name(scope: ast.AST, names: Iterable[str]) -> str:
    """The first of ``names`` that no variable or parameter in ``scope`` has, else the very first with a number."""
    taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)}
    taken |= {n.arg for n in ast.walk(scope) if isinstance(n, ast.arg)}
    first, *_ = names = list(names)
    return next(name for name in (*names, *(f"{first}_{i}" for i in range(2, 100))) if name not in taken)


def cut_of(node: ast.AST, *more: str) -> tuple[ast.expr, str] | None:
    """The value that an expression gives without its graph, and what users call that; ``more`` are methods that count
    as well."""
    if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
        return node.value, ".data"
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if last_name(function) == "Variable" and len(node.args) == 1:
        return node.args[0], "Variable()"
    if isinstance(function, ast.Attribute) and not node.args and not node.keywords:
        return (function.value, f".{function.attr}()") if function.attr in (*_LEAVING, *more) else None
    if len(node.args) != 1 or isinstance(node.args[0], ast.Starred) or _of_numbers(node.args[0]):
        return None
    if isinstance(function, ast.Name) and function.id == "float":
        return node.args[0], "float()"
    owned = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    if owned and isinstance(function, ast.Attribute) and function.attr in MAKING_TENSORS:
        told = {keyword.arg for keyword in node.keywords}
        if ast.unparse(function.value) == "torch" and told <= {"requires_grad"}:
            return node.args[0], f"torch.{function.attr}()"
    return None


def _of_numbers(value: ast.expr) -> bool:
    """Whether it is a list or tuple in which numbers stand, and so no tensors that could be stacked."""
    return isinstance(value, (ast.List, ast.Tuple)) and any(isinstance(one, ast.Constant) for one in value.elts)
