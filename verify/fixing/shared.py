"""Changes for tensors that two lines share, where one frees or changes what the other needs: the reader takes a
copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from verify.diagnosis.model import Clue, Fault
from verify.fixing.clues import Candidate, apart_in_a_step, at, base, keys, named, place_of, same_place, within_a_step
from verify.fixing.texts import Text, Texts
from verify.syntax import bound, names, targets

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


@at("freed by")
def given_to_the_first(fault: Fault, texts: Texts, file: Text, backward: ast.stmt) -> Iterator[Candidate]:
    """Detach what two losses of one step are built on where the first is built, if what its backward would leave to the
    other's optimizer is cleared: a discriminator's loss, before that of a generator."""
    made = place_of(fault.clue("cause"), texts)
    if not apart_in_a_step(fault) or made is None or made[0].path != file.path:
        return
    # Where it is used again it may have another name.
    carriers = [Clue("carrier", name=name) for name in named(made[1])]
    block, later = file.block(backward), place_of(Clue("site", fault.site), texts)
    here = next((each for each in block if each.lineno == made[1].lineno), None)
    if here is None or later is None or later[0].path != file.path:
        return
    behind = block[block.index(backward) + 1 :]
    second = next((each for each in behind if each.lineno == later[1].lineno), None)
    if second is None or not _cleared(behind[: behind.index(second)], behind[behind.index(second) :]):
        return
    reads: list[tuple[ast.stmt, ast.expr]] = []
    wanted = names(backward)
    for each in reversed(block[block.index(here) + 1 : block.index(backward) + 1]):
        # What leads to the second loss alone keeps its graph.
        if each is backward or bound(each) & wanted:
            wanted |= names(each)
            reads[:0] = [(each, node) for one in carriers for node in _reads(each, one, file)]
    if reads:
        title = f"detach {file.segment(reads[0][1])} at {', '.join(dict.fromkeys(file.at(s.lineno) for s, _ in reads))}"
        files = file.replaced_all([(node, _detached(node, file, several=False)) for _, node in reads])
        yield Candidate(title, "the first loss leaves alone what made it; the second is learned from", files, "first")


def _cleared(between: list[ast.stmt], behind: list[ast.stmt]) -> bool:
    """Whether all optimizers that step ``behind`` a second backward were cleared since the first one, or took its
    gradients ``between`` the two."""

    def calls(block: list[ast.stmt], name: str) -> set[str]:
        found = [node.func for each in block for node in ast.walk(each) if isinstance(node, ast.Call)]
        return {ast.unparse(each.value) for each in found if isinstance(each, ast.Attribute) and each.attr == name}

    settled, stepping = calls(between, "step") | calls(between, "zero_grad"), calls(behind, "step")
    return bool(stepping) and stepping <= settled


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
