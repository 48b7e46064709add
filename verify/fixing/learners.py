"""Changes for parameters of an optimizer that no gradient comes to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, place_of
from verify.fixing.texts import Texts


def attached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The cut left out that keeps parameters of an optimizer from their gradients."""
    place = place_of(fault.clue("cause"), texts)
    if place is None:
        return
    file, statement = place
    cuts = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "detach"
        and not node.args
        and not node.keywords
    ]
    if len(cuts) == 1 and isinstance(cuts[0].func, ast.Attribute):
        value = file.segment(cuts[0].func.value)
        title = f"leave out .detach() at {file.at(statement.lineno)}"
        yield Candidate(title, "what the optimizer holds behind it learns", file.replaced(cuts[0], value))


def frozen(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The parameters behind a cut that is meant told to stay as they are, where their model is made."""
    place, parameters = place_of(fault.clue("cause"), texts), fault.clue("parameters")
    if place is None or parameters is None:
        return
    names = parameters.name.split(", ")
    roots = {name.partition(".")[0] for name in names}
    root = next(iter(roots))
    if len(roots) != 1 or not all(part.isidentifier() for name in names for part in name.split(".")):
        # More of them than are told, or what no variable leads to.
        return
    file = place[0]
    made = [node for node in ast.walk(file.tree) if isinstance(node, ast.Assign) and _is_name(node.targets, root)]
    if len(made) != 1 or file.statement(made[0].lineno) is not made[0]:
        return
    code = "\n".join(f"{name}.requires_grad_(False)" for name in names)
    title = f"freeze {', '.join(names)} behind {file.at(made[0].lineno)}"
    meaning = "the cut is meant: they stay as they are, and nobody expects them to learn"
    yield Candidate(title, meaning, file.inserted(made[0], code), "freeze")


def _is_name(targets: list[ast.expr], name: str) -> bool:
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name
