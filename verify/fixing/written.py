"""Changes for tensors that are written over while a backward needs them: the result goes to a new tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, place_of
from verify.fixing.texts import Text, Texts

_MEANING = "the graph keeps the values that it saved; one more tensor is made"


def out_of_place(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The change in place written to a new tensor."""
    place = place_of(fault.clue("cause"), texts)
    if place is None:
        return
    file, statement = place
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        owner = file.segment(statement.targets[0].value)
        clone = file.inserted(statement, f"{owner} = {owner}.clone()", before=True)
        yield Candidate(f"change a clone of {owner}", _MEANING, clone)
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, (ast.Name, ast.Attribute)):
        target = file.segment(statement.target)
        operator = file.segment(statement)[len(target) :].lstrip().partition("=")[0]
        code = f"{target} = {target} {operator} ({file.segment(statement.value)})"
        yield Candidate(f"write the result to a new {target}", _MEANING, file.replaced(statement, code))
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and _in_place(call):
            owner = file.segment(call.func.value)
            rest = file.segment(statement)[len(file.segment(call.func)) :]
            code = f"{owner} = {owner}.{call.func.attr[:-1]}{rest}"
            yield Candidate(f"write the result to a new {owner}", _MEANING, file.replaced(statement, code))
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _in_place(node)]
    if calls and not isinstance(statement, ast.Expr):
        title = f"write the result of {file.at(statement.lineno)} to a new tensor"
        yield Candidate(title, _MEANING, {file.path: _unmarked([call.func for call in calls], file)})


def without_inplace(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """``inplace=True`` taken back: at the line that changed the tensor, or where the file makes such layers."""
    place = place_of(fault.clue("cause"), texts)
    if place is None:
        return
    file, statement = place
    found = [
        keyword.value
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "inplace" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    ]
    here = [value for value in found if statement.lineno <= value.lineno <= (statement.end_lineno or 0)]
    chosen = here or found
    if not chosen or (here and isinstance(statement, ast.Expr)):
        # Without a target the result would go nowhere.
        return
    lines = ", ".join(dict.fromkeys(file.at(value.lineno) for value in chosen))
    changes = [(value, "False") for value in chosen]
    yield Candidate(f"take inplace=False at {lines}", _MEANING, file.replaced_all(changes))


def _in_place(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name.endswith("_") and not name.endswith("__") and name != "requires_grad_"


def _unmarked(functions: list[ast.expr], file: Text) -> str:
    """The file with the names of these methods less the underscore at their end."""
    lines = [line.encode() for line in file.lines]
    for function in sorted(functions, key=lambda each: -(each.end_col_offset or 0)):
        row, end = (function.end_lineno or 1) - 1, function.end_col_offset or 0
        lines[row] = lines[row][: end - 1] + lines[row][end:]
    return b"".join(lines).decode()
