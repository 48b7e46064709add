"""Changes of where backward is called and where optimizers step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from verify.diagnosis.model import Clue, Fault
from verify.fixing.clues import Candidate, named, place_of, same_loss, within_a_step
from verify.fixing.texts import Text, Texts


def walked_once(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Remove the second backward of one loss."""
    place = place_of(Clue("site", fault.site), texts)
    if place is not None and same_loss(fault) and walked(place[1]) is not None and len(place[0].block(place[1])) > 1:
        file, statement = place
        title = f"walk the loss once, without the backward at {file.at(statement.lineno)}"
        yield Candidate(title, "the gradients are those of one walk", {file.path: file.without(statement)}, "once")


def retained(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Retain the graph in the backward that freed it, where nothing was built on it since."""
    if fault.clue("carrier") is not None and not within_a_step(fault) and not same_loss(fault):
        return
    place = place_of(fault.clue("freed by"), texts)
    if place is None:
        return
    file, statement = place
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
        if any(keyword.arg in ("retain_graph", None) for keyword in call.keywords):
            return
        files = file.given(call, "retain_graph=True")
        title = f"keep the graph in the backward at {file.at(statement.lineno)}"
        what = "its gradients count twice" if same_loss(fault) else "both losses are learned from"
        yield Candidate(title, f"{what}; the graph lives until the second backward", files)
    elif isinstance(statement, ast.Assign):
        yield from _kept_by_grad(statement, file)


def _kept_by_grad(statement: ast.Assign, file: Text) -> Iterator[Candidate]:
    """Retain the graph in ``autograd.grad``; with ``create_graph`` where the gradients are used."""
    for call in (node for node in ast.walk(statement.value) if isinstance(node, ast.Call)):
        told = {keyword.arg for keyword in call.keywords}
        if ast.unparse(call.func).rpartition(".")[2] != "grad" or told & {"retain_graph", "create_graph", None}:
            continue
        gradients = set(named(file, statement))
        around = ast.walk(file.function(statement) or file.tree)
        later = (node for node in around if isinstance(node, ast.Name) and node.lineno > statement.lineno)
        if any(node.id in gradients for node in later):
            title = f"record the gradients at {file.at(call.lineno)}"
            meaning = "the graph stays, and what is made of the gradients is learned from too"
            yield Candidate(title, meaning, file.given(call, "create_graph=True"), "record")
        title = f"keep the graph in the call of grad at {file.at(call.lineno)}"
        meaning = "the graph lives until the backward; the gradients are values, which nothing is learned from"
        yield Candidate(title, meaning, file.given(call, "retain_graph=True"), "keep")


def summed(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """One backward of the sum of two losses, in place of the later one, with the steps between them moved after it."""
    found = place_of(Clue("site", fault.site), texts)
    if found is None:
        return
    file, later = found
    first = _earlier(fault, texts, file, later)
    block = file.block(later)
    if first is None or first not in block or block.index(first) >= block.index(later):
        return
    one, other = walked(first), walked(later)
    if one is None or other is None or ast.unparse(one) == ast.unparse(other):
        return
    between = block[block.index(first) + 1 : block.index(later)]
    steps = [statement for statement in between if _is_call(statement, "step")]
    if any(_is_call(s, "zero_grad") or _assigns(s, one) or (s.lineno != s.end_lineno and s in steps) for s in between):
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
    if step is None or step[0].path != file.path or not _is_call(step[1], "step"):
        return None
    before = [s for s in file.block(later) if s.lineno < step[1].lineno and walked(s) is not None]
    return before[-1] if before else None


def walked(statement: ast.stmt) -> ast.expr | None:
    """The loss of a backward that is a statement and has no argument but ``retain_graph``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
        return None
    plain = not call.args and all(keyword.arg == "retain_graph" for keyword in call.keywords)
    return call.func.value if plain else None


def _is_call(statement: ast.stmt, method: str) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == method


def _assigns(statement: ast.stmt, value: ast.expr) -> bool:
    """Whether ``statement`` assigns a name that occurs in ``value``."""
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in names
        for node in ast.walk(statement)
    )
