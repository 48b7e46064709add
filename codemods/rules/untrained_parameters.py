"""The rule ``untrained-parameters``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Instance
from codemods.proofs.observations import Observation
from codemods.proofs.syntax import DEFINITIONS
from codemods.rules._advice import AdvisingRule
from codemods.source.gates import form
from codemods.source.walking import walk

_MOVING = ("to", "cuda", "half", "double", "bfloat16")
"""What gives another tensor where it moves one or changes its type, and otherwise the same."""


class UntrainedParameters(AdvisingRule):
    """A parameter of a module that is moved where it is made, so that the module holds a tensor instead.

    Why it hurts: ``self.weight = nn.Parameter(...).to(device)`` keeps what ``to`` returns. On the CPU that is the
    parameter itself; where it moves, it is a result computed from it, and no ``nn.Parameter``: ``parameters()`` and
    ``state_dict()`` do not have it, no optimizer gets it, it is never trained or saved, and a later ``model.to`` leaves
    it behind. The script runs on the CPU as it should, and on a GPU it trains less than it looks.

    Left alone: parameters that ask for no gradients; such as are made on their device or moved inside
    (``nn.Parameter(x.to(device))``); attributes that are given anything else in their class; objects that are no
    modules; whatever only may be ``torch.nn.Parameter``.

    Advice: move the data, ``nn.Parameter(torch.empty(n, device=device))``, or the whole module once it is made.

    Promise: advice. Mended, the optimizer trains more than it did.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html
    """

    name = "untrained-parameters"
    summary = "a parameter is moved where it is made, and the module holds a plain tensor"
    gate = (
        form(r"Parameter\(.*\)\s*\.(?:to|cuda|half|double|bfloat16)\(", word="Parameter("),
        b".backward(",
        b"autograd.backward(",
    )

    def observe(self, trace: Trace) -> Iterable[Observation]:
        for file, statement, made, module in _made(trace):
            proven = module and trace.called.get(made) == "torch.nn.Parameter"
            if not (proven and _trainable(made) and _given_once(file, statement)):
                yield self.fine(file, statement)
                continue
            name = ast.unparse(statement.targets[0])
            yield self.fault(
                file,
                statement,
                f"where this moves it, `{name}` is a plain tensor and no parameter: nothing trains or saves it",
                "move what is in it: `nn.Parameter(data.to(device))`",
            )


def _made(trace: Trace) -> Iterator[tuple[ParsedFile, ast.Assign, ast.Call, bool]]:
    """The statements of constructors that move what they make, each once, with the call that makes it; whether the
    object is a module."""
    seen: set[ast.AST] = set()
    for frame in trace.frames:
        definition = frame.definition
        if not isinstance(definition, DEFINITIONS) or definition.name != "__init__" or definition in seen:
            continue
        seen.add(definition)
        module = isinstance(frame.receiver, Instance) and frame.receiver.cls.is_module
        for statement in walk(definition):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                made = _moved(statement)
                if made is not None:
                    yield frame.file, statement, made, module


def _moved(statement: ast.Assign) -> ast.Call | None:
    """The call that makes a parameter in ``self.name = made.to(...)``."""
    target, outer = statement.targets[0], statement.value
    if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return None
    if not isinstance(outer, ast.Call) or not isinstance(outer.func, ast.Attribute) or outer.func.attr not in _MOVING:
        return None
    made = outer.func.value
    return made if isinstance(made, ast.Call) and made.args else None


def _trainable(made: ast.Call) -> bool:
    """Whether it asks for gradients, and its data is not where it shall be before it is moved."""
    asked = [*made.args[1:2], *(k.value for k in made.keywords if k.arg == "requires_grad")]
    if any(not isinstance(flag, ast.Constant) or flag.value is not True for flag in asked):
        return False
    for node in walk(made.args[0]):
        if isinstance(node, ast.keyword) and node.arg in ("device", "dtype"):
            return False
        if isinstance(node, ast.Attribute) and node.attr in _MOVING:
            return False
    return True


def _given_once(file: ParsedFile, statement: ast.Assign) -> bool:
    """Whether nothing else in the class gives the attribute a value, or registers it."""
    name = statement.targets[0].attr if isinstance(statement.targets[0], ast.Attribute) else ""
    inner: ast.AST | None = statement
    while inner is not None and not isinstance(inner, ast.ClassDef):
        inner = file.parent(inner)
    if inner is None:
        return False
    within = file.parent(statement)
    while within is not None and not isinstance(within, DEFINITIONS):
        within = file.parent(within)
    if within is None or within.name != "__init__":
        return False
    given = 0
    for node in walk(inner):
        given += isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
        if isinstance(node, ast.Constant) and node.value == name:
            return False
    return given == 1


RULE = UntrainedParameters
