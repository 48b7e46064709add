"""Changes for tensors that two lines share, where one frees or changes what the other needs: the reader takes a
copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from verify.diagnosis.model import Clue, Fault
from verify.fixing.clues import Candidate, at, base, keys, same_place, within_a_step
from verify.fixing.texts import Text, Texts
from verify.syntax import targets

_CARRIED = "the step uses the value of the earlier one, and learns from its own graph alone"


@at("consumer")
def read_detached(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Detach what an earlier step left where a line uses it again."""
    carrier = fault.clue("carrier")
    if carrier is None or within_a_step(fault):
        return
    found = list(_reads(statement, carrier, file))
    if found:
        changes = [
            (node, _detached(node, file, several=keys(carrier.name) > keys(file.segment(node)))) for node in found
        ]
        title = f"read {file.segment(found[0])} without its graph at {file.at(found[0].lineno)}"
        yield Candidate(title, _CARRIED, file.replaced_all(changes), "cut")


def _detached(node: ast.expr, file: Text, *, several: bool) -> str:
    code = file.segment(node)
    kind = f"{code}._make" if file.has_records else "tuple"
    return f"{kind}(part.detach() for part in {code})" if several else f"{code}.detach()"


@at("saved by")
def read_cloned(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Give the line that saves a tensor for the backward a clone, which nobody changes."""
    carrier = fault.clue("carrier")
    if carrier is None:
        return
    meaning = "the backward has the values that the forward saw; one more tensor is made"
    found = list(_reads(statement, carrier, file))
    if found:
        title = f"save a clone of {file.segment(found[0])} at {file.at(found[0].lineno)}"
        changes = file.replaced_all([(node, f"{file.segment(node)}.clone()") for node in found])
        yield Candidate(title, meaning, changes, "copy")
    for target in targets(statement):
        if isinstance(target, ast.Name) and target.id == carrier.name:
            title = f"go on with a clone of {target.id}, after {file.at(statement.lineno)}"
            code = f"{target.id} = {target.id}.clone()"
            yield Candidate(title, meaning, file.inserted(statement, code), "copy")


def _reads(statement: ast.stmt, carrier: Clue, file: Text) -> Iterator[ast.expr]:
    """The outermost expressions of ``statement`` that read the carrier, or the tuple or list around it."""
    value = getattr(statement, "value", None)
    stack: list[ast.AST] = [value] if isinstance(value, ast.expr) else list(ast.iter_child_nodes(statement))
    while stack:
        node = stack.pop(0)
        if isinstance(node, ast.Compare) and any(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
            # Whether it is there at all needs no graph, and None has no method.
            continue
        path = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
        if path and _is_carrier(file.segment(node), carrier):
            yield node  # type: ignore[misc]
        else:
            stack += ast.iter_child_nodes(node)


def kept_elsewhere(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach a state where a line keeps it under another name than that of the line which takes it up."""
    carrier = fault.clue("carrier")
    if carrier is None or within_a_step(fault):
        return
    for path in dict.fromkeys(clue.site.path for clue in fault.clues if clue.site is not None):
        file = Text(path, texts)
        for node in (node for node in ast.walk(file.tree) if isinstance(node, ast.Assign)):
            target, value = node.targets[0], node.value
            code = file.segment(target)
            name = next((each for each in carrier.also if same_place(code, each)), "")
            # What makes the state is another matter: there it has the name that it is taken up by.
            plain = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript))
            if name and plain and not isinstance(target, ast.Name):
                title = f"keep {code} without its graph at {file.at(node.lineno)}"
                whole = _detached(value, file, several=keys(name) > keys(code))
                yield Candidate(title, _CARRIED, file.replaced(value, whole), "cut")


def _is_carrier(code: str, carrier: Clue) -> bool:
    return base(code) != "" and same_place(code, carrier.name)
