"""Changes that keep a value in its graph, where a cut keeps gradients from parameters of an optimizer."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from codemods.proofs.syntax import MAKING_TENSORS, cut_of
from codemods.source.files import source_from_bytes
from verify.diagnosis.model import Clue, Fault
from verify.fixing.clues import Candidate, named, place_of
from verify.fixing.texts import PRIMARY, Text, Texts
from verify.syntax import method_call, targets

#: Methods after which a value is no tensor; calls of torch that make one of it.
_OUT_OF_TORCH = frozenset({".numpy()", ".tolist()", ".item()"})
_LEARNS = "the parameters of the optimizer that it is computed from learn"
#: A statement that goes.
_DROPPED = "pass"
#: An expression that drops the graph, the value with its graph, what users call such a cut.
_Cut = tuple[ast.expr, ast.expr, str]


def attached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Remove the cut that keeps gradients from parameters of an optimizer."""
    cuts: dict[str, list[_Cut]] = {}
    files: dict[str, Text] = {}
    lists: dict[str, list[tuple[ast.expr, str]]] = {}
    # One line may both cut the graph and make the tensor that takes its place.
    clues = [clue for clue in fault.clues if clue.role in ("cause", "made") and clue.site is not None]
    for clue in {str(clue.site): clue for clue in clues}.values():
        place = place_of(clue, texts)
        if place is not None:
            file, statement = place
            files[file.path] = file
            cuts.setdefault(file.path, []).extend(_cuts(statement))
            lists.setdefault(file.path, []).extend(_lists(statement, file))
    for path, found in cuts.items():
        file = files[path]
        for chosen in [found] * (len(found) > 1) + [[each] for each in found]:
            what = ", ".join(f"{call} at {file.at(node.lineno)}" for node, _, call in chosen)
            plain = [(node, file.bare(value)) for node, value, _ in chosen]
            stacked = [(node, _stacked(node, value, file)) for node, value, _ in chosen]
            here = {(node.lineno, node.col_offset) for node, _ in stacked}
            stacked += [(node, code) for node, code in lists[path] if (node.lineno, node.col_offset) not in here]
            deep = [(node, _uncut_inside(node)) for node, _, _ in chosen]
            listed = any(_listed(value) for _, value, _ in chosen)
            forms = [deep] if listed else [plain, stacked, deep]
            forms += [[*plain, *back] for back in _back_in_torch(chosen, file)]
            title = f"leave out {what}"
            marks = _marks(_assigned(chosen, file) | _losses(fault, texts), file)
            for number, changes in enumerate(forms):
                if changes in forms[:number]:
                    continue
                # What has a graph refuses to be marked.
                whole = _without_idle(file, file.replaced_all([*changes, *((mark, _DROPPED) for mark in marks)]))
                yield Candidate(title, _LEARNS, whole, title, parts=len(chosen))


def _cuts(statement: ast.stmt) -> list[_Cut]:
    """Outermost cuts: (expression that drops the graph, the value with its graph, what users call such a cut)."""
    found: list[_Cut] = []

    def look(node: ast.AST) -> None:
        cut = cut_of(node)
        if cut is not None:
            found.append((node, _uncut(cut[0]), cut[1]))  # type: ignore[arg-type]
            return
        for child in ast.iter_child_nodes(node):
            look(child)

    look(statement)
    return found


def _listed(value: ast.expr) -> bool:
    """Whether ``value`` is a list or a tuple as it stands in the code."""
    return isinstance(value, (ast.List, ast.Tuple, ast.ListComp))


def _back_in_torch(cuts: Sequence[_Cut], file: Text) -> Iterator[list[tuple[ast.expr, str]]]:
    """What becomes a tensor again after one of ``cuts`` took it out of torch, without the calls that make it one: those
    of the same class or function."""
    left = [node for node, _, call in cuts if call in _OUT_OF_TORCH]
    for top in file.tree.body if left else ():
        inside = list(ast.walk(top))
        if any(node in inside for node in left):
            made = [(node, cut[0]) for node in inside if method_call(node, *MAKING_TENSORS) and (cut := cut_of(node))]
            apart = [(node, value) for node, value in made if not any(each in ast.walk(node) for each in left)]
            if apart:
                yield [(node, file.bare(value)) for node, value in apart if isinstance(node, ast.expr)]


def _assigned(cuts: Sequence[_Cut], file: Text) -> set[str]:
    """What the statements of ``cuts`` assign."""
    statements = [file.statement(node.lineno) for node, _, _ in cuts]
    return {name for each in statements if each is not None for name in named(each)}


def _losses(fault: Fault, texts: Texts) -> set[str]:
    """The loss of the backward at which the fault shows."""
    place = place_of(Clue("site", fault.site), texts)
    walked = method_call(place[1], "backward") if place is not None else None
    return set() if walked is None else {ast.unparse(walked[0])}


def unmarked(fault: Fault, texts: Texts, path: str, text: str) -> str:
    """``text``, a new one of the file at ``path``, without the statements that mark the loss of ``fault`` as a leaf."""
    file = Text(path, lambda each: source_from_bytes(texts(each).encode(text), each))
    marks = _marks(_losses(fault, texts), file)
    return _without_idle(file, file.replaced_all((mark, _DROPPED) for mark in marks))[path] if marks else text


def _marks(names: set[str], file: Text) -> list[ast.Assign]:
    """The statements that mark one of ``names`` as a leaf: ``loss.requires_grad = True``."""
    return [
        node
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
        and all(isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in node.targets)
        and {ast.unparse(one.value) for one in node.targets if isinstance(one, ast.Attribute)} <= names
        and file.alone(node)
    ]


def _uncut(value: ast.expr) -> ast.expr:
    """``value`` without the cuts that make it: ``x.detach().cpu().numpy()`` becomes ``x``."""
    while True:
        if (cut := cut_of(value)) is not None:
            value = cut[0]
        elif (moved := method_call(value, "cpu")) is not None and not moved[1].args:
            value = moved[0]
        else:
            return value


def _lists(statement: ast.stmt, file: Text) -> list[tuple[ast.expr, str]]:
    """Replace the calls that make a tensor of the list which ``statement`` makes or extends by calls that stack
    tensors."""
    names = {target.id for target in targets(statement) if isinstance(target, ast.Name)}
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        owner = getattr(statement.value.func, "value", None)
        names |= {owner.id} if isinstance(owner, ast.Name) else set()
    found: list[tuple[ast.expr, str]] = []
    for node in ast.walk(file.scope(statement)):
        cut = cut_of(node)
        if cut is not None and isinstance(cut[0], ast.Name) and cut[0].id in names and isinstance(node, ast.Call):
            code = _stacked(node, cut[0], file)
            found += [(node, code)] if code.startswith("torch.stack(") else []
    return found


def _stacked(node: ast.expr, value: ast.expr, file: Text) -> str:
    """Code for ``value``, which ``node`` copies without a graph; stacked if it is a list of tensors, for which a
    call is needed."""
    listed = method_call(node, *MAKING_TENSORS) and isinstance(value, (ast.Name, ast.Attribute))
    return f"torch.stack({file.segment(value)})" if listed else file.bare(value)


class _Uncut(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> Any:
        cut = cut_of(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and cut is not None and _listed(cut[0]):
            # A list is no tensor: its tensors are stacked.
            node.func.attr, node.keywords = "stack", []
            return super().generic_visit(node)
        node = _uncut(node) if isinstance(node, ast.expr) else node
        return super().generic_visit(node)


def _uncut_inside(node: ast.expr) -> str:
    """``node`` without any cut in it: ``as_tensor(x.numpy().mean())`` becomes ``x.mean()``."""
    found = _Uncut().visit(copy.deepcopy(node))
    return ast.unparse(found) if isinstance(found, PRIMARY) else f"({ast.unparse(found)})"


def _without_idle(file: Text, changes: dict[str, str]) -> dict[str, str]:
    """``changes`` without statements like ``x = x``, which remain of ``x = float(x)``, and without those dropped."""
    lines = changes[file.path].splitlines(keepends=True)
    for block in (getattr(node, "body", ()) for node in ast.walk(ast.parse(changes[file.path]))):
        for node in block if isinstance(block, list) else ():
            span = slice(node.lineno - 1, node.end_lineno)
            # Others stand there on purpose, in a class for instance.
            if _is_idle(node) and lines[span] != file.lines[span]:
                left = "" if len(block) > 1 else f"{lines[span][0][: node.col_offset]}pass\n"
                lines[span] = [left] + [""] * (len(lines[span]) - 1)
    return {file.path: "".join(lines)}


def _is_idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets] == [ast.unparse(node.value)]
    return isinstance(node, ast.Pass)
