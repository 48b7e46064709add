"""What the tests of the engine share: a tree of source texts, run in memory, and questions about what came out."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.graph.model.files import Files
from codemods.graph.model.nodes import Node, Unseen, Value, Walk
from codemods.graph.model.program import ParsedFile, Tree
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Join
from codemods.graph.python.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

PRELUDE = textwrap.dedent(
    """\
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch.autograd import Variable
    w = nn.Parameter(torch.zeros(3))
    x = torch.ones(3)
    net = nn.Linear(3, 1)
    """
)
"""What most snippets begin with: a parameter ``w``, plain data ``x`` and a module ``net``."""

REGISTRY = """
MODELS = {}

def register(name):
    def put(cls):
        MODELS[name] = cls
        return cls
    return put

class Registry:
    def __init__(self):
        self.classes = {}

    def register(self, cls):
        self.classes[cls.__name__] = cls
        return cls

    def build(self, name, *args):
        return self.classes[name](*args)

NETS = Registry()
"""
"""Tables that models are put into when their files are imported: by a function, and by an object's method."""


@dataclass
class Run:
    """One simulated run: the machine as it stands at the end, and the trace that it left."""

    machine: Machine
    file: ParsedFile
    trace: Trace

    def value(self, name: str) -> Value | None:
        """What a global variable of the script holds at the end."""
        found = self.machine.run.s.get((self.trace.frames[0].module_globals, name))
        return found if isinstance(found, Value) else None

    def nodes(self, name: str) -> list[Node]:
        """The graph nodes in a global variable."""
        return self.machine.run.nodes_of(self.value(name))

    def graph(self, name: str) -> str:
        """Whether a global is ``attached`` surely, ``free`` of history, or ``perhaps`` attached."""
        value = self.value(name)
        assert value is not None, f"{name} holds nothing"
        nodes = self.machine.run.nodes_of(value)
        if not nodes:
            return "free"
        options = value.options if isinstance(value, Join) else (value,)
        everywhere = all(self.machine.run.nodes_of(option) for option in options)
        return "attached" if everywhere and all(node.certain for node in nodes) else "perhaps"

    def again(self) -> list[int]:
        """The lines of the backwards that walked what an earlier one had walked and freed, once each."""
        return sorted({w.place.line for w in self.trace.walks if any(not by.retains for _, by in w.again)})

    def retained(self) -> list[int]:
        """The lines of the backwards that walked again what an earlier one had walked and retained, once each."""
        return sorted({w.place.line for w in self.trace.walks if any(by.retains for _, by in w.again)})

    def walks(self) -> list[Walk]:
        """All backwards, in order."""
        return self.trace.walks

    def marks(self) -> list[str]:
        """The kinds of all marks, in order."""
        return [mark.kind.value for mark in self.trace.marks]


def files_of(texts: Mapping[str, str]) -> Files:
    """A tree of source texts in memory."""
    dedented = {path: textwrap.dedent(text) for path, text in texts.items()}
    tree = Tree({path: Path("/nowhere") / path for path in dedented}, {path: path for path in dedented})

    def read(relative: str) -> tuple[str, ast.Module] | None:
        try:
            return dedented[relative], ast.parse(dedented[relative])
        except SyntaxError:
            return None

    return Files(tree, read, dedented.__getitem__)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """The recursion limit that :func:`codemods.analysis.job.run_job` runs the engine with."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 12_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def run(code: str, *, budget: int = 150_000, memo: bool = True, **others: str) -> Run:
    """Run ``code`` behind the prelude as a script; ``others`` are modules beside it, by their names."""
    texts = {"main.py": PRELUDE + textwrap.dedent(code), **{f"{name}.py": text for name, text in others.items()}}
    return run_tree(texts, budget=budget, memo=memo)


def run_tree(texts: Mapping[str, str], script: str = "main.py", *, budget: int = 150_000, memo: bool = True) -> Run:
    """Run the file ``script`` of a tree as ``python script`` would."""
    files = files_of(texts)
    file = files.file(script)
    assert file is not None, f"{script} does not parse"
    machine = Machine(files, budget)
    if not memo:
        machine.remembered.asked_for = lambda *_: None  # type: ignore[method-assign]
    with deep_recursion():
        trace = machine.run_script(file)
    return Run(machine, file, trace)


def run_functions(code: str, *names: str, budget: int = 150_000) -> list[Trace]:
    """Run functions of a module for themselves, with arguments that cannot be seen; all of them without ``names``."""
    files = files_of({"module.py": PRELUDE + textwrap.dedent(code)})
    file = files.file("module.py")
    assert file is not None
    wanted: set[ast.AST] = {
        node
        for node in ast.walk(file.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (not names or node.name in names)
    }
    with deep_recursion():
        return Machine(files, budget).run_functions(file, wanted)


def unseen(found: Run, name: str) -> bool:
    """Whether a global may carry something that cannot be seen."""
    value = found.value(name)
    assert value is not None
    return any(isinstance(origin, Unseen) for origin in found.machine.run.shadow_of([value]))


def line(run: Run, text: str, number: int = 0) -> int:
    """The line of the script on which ``text`` stands, after ``number`` others."""
    return [i for i, content in enumerate(run.file.text.split("\n"), 1) if text in content][number]


__all__ = ["PRELUDE", "Run", "deep_recursion", "files_of", "line", "run", "run_functions", "run_tree"]
