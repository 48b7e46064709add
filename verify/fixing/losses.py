"""Changes of where backward is called and where optimizers step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, at, named, place_of, same_loss, within_a_step
from verify.fixing.texts import Text, Texts
from verify.syntax import bound, last_name, method_call, names


@at("site")
def walked_once(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Remove the second backward of one loss."""
    if same_loss(fault) and walked(statement) is not None and len(file.block(statement)) > 1:
        title = f"walk the loss once, without the backward at {file.at(statement.lineno)}"
        yield Candidate(title, "the gradients are those of one walk", {file.path: file.without(statement)}, "once")


@at("freed by")
def retained(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Retain the graph in the backward that freed it, where nothing was built on it since."""
    if fault.clue("carrier") is not None and not within_a_step(fault) and not same_loss(fault):
        return
    backward = method_call(statement, "backward")
    if backward is not None:
        call = backward[1]
        if any(keyword.arg in ("retain_graph", None) for keyword in call.keywords):
            return
        title = f"keep the graph in the backward at {file.at(statement.lineno)}"
        what = "its gradients count twice" if same_loss(fault) else "both losses are learned from"
        meaning = f"{what}; the graph lives until the second backward"
        yield Candidate(title, meaning, file.given(call, "retain_graph=True"))
    elif isinstance(statement, ast.Assign):
        yield from _kept_by_grad(statement, file)


def _kept_by_grad(statement: ast.Assign, file: Text) -> Iterator[Candidate]:
    """Retain the graph in ``autograd.grad``; with ``create_graph`` where the gradients are used."""
    for call in (node for node in ast.walk(statement.value) if isinstance(node, ast.Call)):
        told = {keyword.arg for keyword in call.keywords}
        if last_name(call.func) != "grad" or told & {"retain_graph", "create_graph", None}:
            continue
        gradients = set(named(statement))
        around = ast.walk(file.scope(statement))
        later = (node for node in around if isinstance(node, ast.Name) and node.lineno > statement.lineno)
        if any(node.id in gradients for node in later):
            title = f"record the gradients at {file.at(call.lineno)}"
            meaning = "the graph stays, and what is made of the gradients is learned from too"
            yield Candidate(title, meaning, file.given(call, "create_graph=True"), "record")
        title = f"keep the graph in the call of grad at {file.at(call.lineno)}"
        meaning = "the graph lives until the backward; the gradients are values, which nothing is learned from"
        yield Candidate(title, meaning, file.given(call, "retain_graph=True"), "keep")


@at("site")
def summed(fault: Fault, texts: Texts, file: Text, later: ast.stmt) -> Iterator[Candidate]:
    """One backward of the sum of two losses, in place of the later one, with the steps between them moved after it."""
    first = _earlier(fault, texts, file, later)
    block = file.block(later)
    if first is None or first not in block or block.index(first) >= block.index(later):
        return
    one, other = walked(first), walked(later)
    if one is None or other is None or ast.unparse(one) == ast.unparse(other):
        return
    between = block[block.index(first) + 1 : block.index(later)]
    steps = [statement for statement in between if method_call(statement, "step")]
    if any(method_call(each, "zero_grad") or bound(each) & names(one) for each in between):
        return
    if any(step.lineno != step.end_lineno for step in steps):
        return
    lines = list(file.lines)
    indent = lines[later.lineno - 1][: later.col_offset]
    end = later.end_lineno or later.lineno
    whole = f"{indent}({file.segment(one)} + {file.segment(other)}).backward()\n"
    lines[later.lineno - 1 : end] = [whole, *(lines[step.lineno - 1] for step in steps)]
    for statement in sorted([first, *steps], key=lambda each: -each.lineno):
        del lines[statement.lineno - 1 : statement.end_lineno]
    title = f"add {file.segment(one)} and {file.segment(other)} and walk them once, at {file.at(later.lineno)}"
    meaning = "both losses are learned from, by the same gradients; no graph is kept for a second walk"
    yield Candidate(title, meaning, {file.path: "".join(lines)}, "sum", fresh=True, summed=True)


def _earlier(fault: Fault, texts: Texts, file: Text, later: ast.stmt) -> ast.stmt | None:
    """The backward before ``later``: the one that freed its graph, or the last one before the step that changed it."""
    freed = place_of(fault.clue("freed by"), texts)
    if freed is not None:
        return file.statement(freed[1].lineno) if freed[0].path == file.path else None
    step = place_of(fault.clue("cause"), texts)
    if step is None or step[0].path != file.path or not method_call(step[1], "step"):
        return None
    before = [s for s in file.block(later) if s.lineno < step[1].lineno and walked(s) is not None]
    return before[-1] if before else None


def walked(statement: ast.stmt) -> ast.expr | None:
    """The loss of a backward that is a statement and has no argument but ``retain_graph``."""
    found = method_call(statement, "backward") if isinstance(statement, ast.Expr) else None
    if found is None:
        return None
    loss, call = found
    plain = not call.args and all(keyword.arg == "retain_graph" for keyword in call.keywords)
    return loss if plain else None
