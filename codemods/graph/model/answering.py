"""Which modules of libraries may hand what they get to code of the tree, by the look of that."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.graph.model.facts.python import CARRYING_LIBRARIES
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.walks import keeps, may_walk
from codemods.source.walking import walk
from codemods.terms.words import words

TOLD_APART = CARRYING_LIBRARIES | {"", "builtins", "torch"}
"""Libraries of which is followed what they do with classes and functions of the tree, and what is none."""

_RECORDING = words("warnings.catch_warnings logging.setLogRecordFactory logging.setLoggerClass")
"""Functions after which a library lets code of the tree have what it gets (docs)."""


def answering(file: ParsedFile) -> frozenset[str]:
    """The modules from whose classes a file derives one that may keep or walk what it gets, of which it replaces
    something, or that it asks to record what they get."""
    asked = (path.rpartition(".")[0] for node in walk(file.tree) for path in _answered(file, node))
    return frozenset(module for module in asked if module.partition(".")[0] not in TOLD_APART)


def _answered(file: ParsedFile, node: ast.AST) -> Iterator[str]:
    """The public names of what code at a node derives from, replaces, or lets record."""
    if isinstance(node, ast.ClassDef):
        methods = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name != "__init__"]
        if any(file.once(keeps, m) or may_walk(file, m) for m in methods):
            yield from map(file.named, node.bases)
    elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant):
        yield from (file.named(target) for target in node.targets if isinstance(target, ast.Attribute))
    elif isinstance(node, ast.Call) and (node.args or node.keywords):
        path = file.named(node.func)
        if path in _RECORDING:
            yield path
