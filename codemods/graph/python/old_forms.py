"""Calls and expressions that today's PyTorch wants in another form, recorded where they are evaluated."""

from __future__ import annotations

import ast

from codemods.graph.model.facts.outdated import (
    BEFORE_FIRST_ELEMENT,
    GONE_CALLS,
    OLD_METHODS,
    REMOVED_CALLS,
    RENAMED_CALLS,
    SIZE_AVERAGE_AT,
)
from codemods.graph.model.kinds import OldKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.trace import OldForm
from codemods.graph.model.values import Class, Instance, Library, TreeModule
from codemods.graph.run.run import Run


def note_old_call(run: Run, e: ast.Call, target: Value, method: str) -> None:
    """Record calls that today's PyTorch wants in another form; ``method`` is empty where ``target`` is called."""
    if isinstance(target, Library):
        path = canonical(f"{target.path}.{method}" if method else target.path)
        head, _, last = path.rpartition(".")
        if path in RENAMED_CALLS or path in REMOVED_CALLS:
            _note(run, OldKind.CALL, e, e.func, Library(path))
        elif head in ("torch.nn", "torch.nn.functional") and (
            last in SIZE_AVERAGE_AT or any(k.arg in ("size_average", "reduce") for k in e.keywords)
        ):
            _note(run, OldKind.LOSS, e, e.func, Library(path))
        elif head == "torch.optim.lr_scheduler" and any(k.arg == "verbose" for k in e.keywords):
            _note(run, OldKind.VERBOSE, e, e.func, Library(path))
    elif method in OLD_METHODS and not isinstance(target, (Instance, Class, TreeModule)):
        _note(run, OldKind.METHOD, e, e.func, target)


def note_old_base(run: Run, base: ast.expr, value: Value) -> None:
    """Record a class that is derived from one which has another name today."""
    path = canonical(value.path) if isinstance(value, Library) else ""
    if path in GONE_CALLS:
        _note(run, OldKind.BASE, base, base, Library(path))


def note_first_element(run: Run, e: ast.Subscript) -> None:
    """Record ``loss.data[0]`` and its like."""
    subject = first_element(e)
    value = run.values.get(subject) if subject is not None else None
    if subject is not None and value is not None:
        _note(run, OldKind.FIRST_ELEMENT, e, subject, value)


def _note(run: Run, kind: OldKind, at: ast.expr, subject: ast.expr, value: Value) -> None:
    run.trace.old.append(OldForm(kind, run.place(at), subject, value))


def first_element(e: ast.expr) -> ast.expr | None:
    """The tensor of ``loss.data[0]`` and its like: how PyTorch before 0.4 took the one number of a tensor."""
    if not (isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Constant) and type(e.slice.value) is int):
        return None
    subject = e.value
    while e.slice.value == 0:
        if isinstance(subject, ast.Attribute) and subject.attr == "data":
            subject = subject.value
        elif (
            isinstance(subject, ast.Call)
            and isinstance(subject.func, ast.Attribute)
            and subject.func.attr in BEFORE_FIRST_ELEMENT
            and not subject.args
        ):
            subject = subject.func.value
        else:
            break
    return None if subject is e.value else subject
