"""What the syntax says of blocks that may go under ``no_grad``."""

from __future__ import annotations

import ast
from collections.abc import Collection

from codemods.graph.model.facts.gradients import GRAD_OFF
from codemods.graph.model.facts.operations import DATA_CALLS
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.walks import walks
from codemods.proofs.syntax import DEFINITIONS
from codemods.source.walking import called, walk
from codemods.terms.spans import Span

_TEST_FOLDERS = frozenset(("test", "tests", "testing", "unittests"))


def is_test(path: str, file: ParsedFile | None, *, script: bool) -> bool:
    """Whether a file holds unit tests, which evaluate a little of everything and never for long.

    Such a file is named and placed as tests are; it is none if a ``script`` leads there and it asserts nothing.
    """
    *folders, name = path.split("/")
    named = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    if not named or _TEST_FOLDERS.isdisjoint(folders):
        return False
    return not script or file is None or any(isinstance(n, ast.Assert) for n in walk(file.tree))


def is_inside(inner: tuple[Span, Span], outer: tuple[Span, Span]) -> bool:
    """Whether the statements from the first to the last of ``inner`` lie in those of ``outer``."""
    return inner[0].to(inner[1]).lies_in(outer[0].to(outer[1]))


def _enters(file: ParsedFile, item: ast.withitem, contexts: frozenset[str]) -> bool:
    """Whether a ``with`` enters one of the contexts of these public names."""
    context = item.context_expr
    return file.named(context.func if isinstance(context, ast.Call) else context) in contexts


def switches_off(file: ParsedFile, loop: ast.AST) -> bool:
    """Whether blocks of a loop are under ``no_grad`` already: its author switches gradients off by the statement."""
    return any(
        isinstance(n, ast.With) and any(_enters(file, i, GRAD_OFF) for i in n.items) and _computes(file, n)
        for n in walk(loop)
    )


def _computes(file: ParsedFile, block: ast.With) -> bool:
    """Whether there is more in a block than the inputs of a forward, which is made elsewhere."""
    calls = [n for statement in block.body for n in walk(statement) if isinstance(n, ast.Call)]
    return not all(_makes_data(file, call) for call in calls)


def _makes_data(file: ParsedFile, call: ast.Call) -> bool:
    path = file.named(call.func)
    if path == "torch.autograd.Variable":
        return True
    of_libraries = path.startswith(("torch.", "builtins."))
    return (of_libraries or (not path and isinstance(call.func, ast.Attribute))) and called(call) in DATA_CALLS


def is_forward(file: ParsedFile | None, function: Span | None) -> bool:
    """Whether it is the ``forward`` of a class: whoever trains the module runs it."""
    node = _definition(file, function)
    return (
        file is not None and node is not None and node.name == "forward" and isinstance(file.parent(node), ast.ClassDef)
    )


def trains(file: ParsedFile | None, function: Span) -> bool:
    """Whether the code of a function calls a backward, reached or not."""
    node = _definition(file, function)
    return file is not None and node is not None and file.once(walks, node)


def takes_decorator(file: ParsedFile | None, function: Span) -> bool:
    """Whether a decorator on a function can switch gradients off for all that it does, and for nothing else."""
    node = _definition(file, function)
    # that of a coroutine is left before it runs
    if not isinstance(node, ast.FunctionDef) or trains(file, function) or is_forward(file, function):
        return False
    return not (node.name.startswith("__") and node.name.endswith("__"))


def _definition(file: ParsedFile | None, function: Span | None) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    node = file.find(function, *DEFINITIONS) if file is not None and function is not None else None
    return node if isinstance(node, DEFINITIONS) else None


def returns_value(node: ast.AST) -> bool:
    """Whether a ``return`` in it hands something out."""
    return any(isinstance(n, ast.Return) and n.value is not None for n in walk(node))


def recording(
    file: ParsedFile, node: ast.FunctionDef | ast.AsyncFunctionDef, seen: Collection[Span]
) -> tuple[Span, Span]:
    """The first and the last statement in the body of a function that hold one of ``seen``; the whole body, but for its
    docstring, where none does."""
    body = node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
    spans = [file.span(statement) for statement in body]
    held = [around for around in spans if any(is_inside((one, one), (around, around)) for one in seen)]
    return (held[0], held[-1]) if held else (spans[0], spans[-1])
