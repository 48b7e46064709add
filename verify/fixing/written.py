"""Changes for tensors that are written over while a backward needs them: the result goes to a new tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, at, named
from verify.fixing.texts import Text, Texts
from verify.syntax import covers, names, parameters, read

#: Methods that give another name to the same memory.
_VIEWS = frozenset(
    {"view", "reshape", "squeeze", "unsqueeze", "t", "transpose", "permute", "flatten", "narrow", "select"}
)
_VIEWS |= {"view_as", "expand", "expand_as", "diagonal", "detach", "chunk", "split", "unbind", "swapaxes", "movedim"}
_MEANING = "the graph keeps the values that it saved; one more tensor is made"


@at("cause")
def out_of_place(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """The change in place written to a new tensor, where all who read it later do so by the name that it gets."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        owner = statement.targets[0].value
        if _owned(owner, statement, file):
            code = file.segment(owner)
            clone = file.inserted(statement, f"{code} = {code}.clone()", before=True)
            yield Candidate(f"change a clone of {code}", _MEANING, clone)
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, (ast.Name, ast.Attribute)):
        if _owned(statement.target, statement, file):
            target = file.segment(statement.target)
            operator = file.segment(statement)[len(target) :].lstrip().partition("=")[0]
            code = f"{target} = {target} {operator} {file.bare(statement.value)}"
            yield Candidate(f"write the result to a new {target}", _MEANING, file.replaced(statement, code))
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        yield from _chain(statement, statement.value, file)
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _in_place(node)]
    if calls and not isinstance(statement, ast.Expr):
        title = f"write the result of {file.at(statement.lineno)} to a new tensor"
        yield Candidate(title, _MEANING, {file.path: _unmarked([call.func for call in calls], file)})


def _chain(statement: ast.Expr, call: ast.Call, file: Text) -> Iterator[Candidate]:
    """``h.mul_(2).add_(1)`` as ``h = h.mul(2).add(1)``."""
    calls: list[ast.Call] = []
    owner: ast.expr = call
    while isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute):
        calls.append(owner)
        owner = owner.func.value
    if not all(map(_in_place, calls)) or not isinstance(owner, (ast.Name, ast.Attribute)):
        return
    if _owned(owner, statement, file) and statement.lineno == statement.end_lineno:
        code = file.segment(owner)
        lines = _unmarked([each.func for each in calls], file).splitlines(keepends=True)
        row, indent = statement.lineno - 1, statement.col_offset
        lines[row] = f"{lines[row][:indent]}{code} = {lines[row][indent:]}"
        yield Candidate(f"write the result to a new {code}", _MEANING, {file.path: "".join(lines)})


def _owned(target: ast.expr, statement: ast.stmt, file: Text) -> bool:
    """Whether a new value of ``target`` reaches all who read what is changed now: an attribute, or a variable that a
    call gave its tensor. One that was given by a loop, an argument, an attribute or an element is another name of what
    somebody else reads, and a function has to return it."""
    if isinstance(target, ast.Attribute):
        return True
    if not isinstance(target, ast.Name):
        return False
    function = file.function(statement)
    around = [node for node in ast.walk(file.scope(statement)) if getattr(node, "lineno", 0) <= statement.lineno]
    if function is not None and target.id in parameters(function):
        returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        return bool(returns) and all(value is not None and target.id in names(value) for value in returns)
    made = [node for node in around if isinstance(node, ast.Assign) and target.id in named(node)]
    loops = [node.target for node in around if isinstance(node, (ast.For, ast.comprehension))]
    if any(target.id in names(loop) for loop in loops):
        return False
    return bool(made) and all(_fresh(node.value, statement, file) for node in made)


def _fresh(value: ast.expr, statement: ast.stmt, file: Text) -> bool:
    """Whether ``value`` is a tensor that nobody else reads after ``statement``: what a call gave, or another name of
    that which is not read any more."""
    if isinstance(value, ast.Name):
        function = file.function(statement)
        if function is None or file.loops(statement):
            return False
        later = (n for n in ast.walk(function) if isinstance(n, ast.Name) and n.lineno > (statement.end_lineno or 0))
        used = any(value.id in read(node) for node in later)
        return not used and value.id not in parameters(function) and _owned(value, statement, file)
    return isinstance(value, (ast.Call, ast.BinOp, ast.UnaryOp)) and not _view(value)


def _view(value: ast.expr) -> bool:
    """Whether a call is known to give what shares the memory of its tensor."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _VIEWS


@at("cause")
def without_inplace(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """``inplace=True`` taken back: at the line that changed the tensor, or where the file makes such layers."""
    found = [
        keyword.value
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "inplace" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    ]
    here = [value for value in found if covers(statement, value.lineno)]
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
