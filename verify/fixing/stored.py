"""Changes for graphs that accumulate: values are stored without their graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, base, place_of
from verify.fixing.losses import walked
from verify.fixing.texts import Text, Texts
from verify.syntax import last_name, targets

_SAME = "the values that are kept are the same"
_NO_TENSOR = (ast.Constant, ast.Lambda)
_NUMBERS = frozenset({"item", "tolist", "detach", "numpy", "float", "int", "len"})
#: Behind the name of a container: an entry, and keys within it that are text.
_KEYED = re.compile(r"\[[^][]*\]((?:\['[^'\\]*'\])+)")
_STORING = frozenset({"append", "add", "appendleft", "insert", "put", "extend", "update"})


def stored_detached(fault: Fault, texts: Texts, loaded: Iterable[str] = ()) -> Iterator[Candidate]:
    """Store what accumulates detached, in the statements of the same files that store it under that name: in all,
    then in each. Where there is none, and it is an attribute, those of the files in ``loaded``."""
    paths = dict.fromkeys(clue.site.path for clue in fault.clues if clue.site is not None)
    yield from (found := list(_stores(fault, texts, paths)))
    if not found and any("." in clue.name for clue in fault.clues if clue.role == "carrier"):
        yield from _stores(fault, texts, [path for path in loaded if path not in paths])


def _stores(fault: Fault, texts: Texts, paths: Iterable[str]) -> Iterator[Candidate]:
    causes = [place_of(clue, texts) for clue in fault.clues if clue.role == "cause"]
    made = {ast.unparse(target) for found in causes if found is not None for target in targets(found[1])}
    for carrier in (clue for clue in fault.clues if clue.role == "carrier"):
        name = base(carrier.name).rpartition(".")[2]
        for path in paths:
            file = Text(path, texts)
            values = [each for node in ast.walk(file.tree) for each in _stored(node, name, made, file)]
            if len(values) > 1:
                lines = ", ".join(dict.fromkeys(file.at(value.lineno) for value in values))
                title = f"keep what {name} takes without its graph, at {lines}"
                yield Candidate(title, _SAME, _cut(values, file), "values")
            for value in values:
                title = f"keep {file.bare(value)}.detach() at {file.at(value.lineno)}"
                yield Candidate(title, _SAME, _cut([value], file), "values")


def keys_detached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach the tensors in a dictionary of the user's before it is stored as a whole: those that accumulate."""
    carriers = [clue.name for clue in fault.clues if clue.role == "carrier"]
    for container in dict.fromkeys(map(base, carriers)):
        paths = [name[len(container) :] for name in carriers if base(name) == container]
        keys = [found[1] for path in paths if (found := _KEYED.fullmatch(path)) is not None]
        name = container.rpartition(".")[2]
        for path in dict.fromkeys(clue.site.path for clue in fault.clues if clue.site is not None) if keys else ():
            file = Text(path, texts)
            for statement, value in _kept_whole(file, name):
                code = "\n".join(f"{value}{key} = {value}{key}.detach()" for key in dict.fromkeys(keys))
                title = f"detach what {value} holds before it is kept, at {file.at(statement.lineno)}"
                meaning = "whoever else has that dictionary then finds values in it, not graphs"
                yield Candidate(title, meaning, file.inserted(statement, code, before=True), "values")


def _kept_whole(file: Text, name: str) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that put a variable as it is into the container ``name``, each with the variable."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and file.alone(node):
            for value in _stored(node.value, name, set(), file):
                if isinstance(value, (ast.Name, ast.Attribute)):
                    yield node, ast.unparse(value)


def detached_after_backward(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach what accumulates after the last backward that may need it: later readers get a value."""
    for clue in (clue for clue in fault.clues if clue.role == "cause"):
        place = place_of(clue, texts)
        if place is None:
            continue
        file, made = place
        for target in (target for target in targets(made) if isinstance(target, ast.Name)):
            later = (n for n in ast.walk(file.scope(made)) if isinstance(n, ast.stmt) and n.lineno > made.lineno)
            calls = [node for node in later if walked(node) is not None]
            if calls:
                last = max(calls, key=lambda node: node.lineno)
                title = f"detach {target.id} after the backward at {file.at(last.lineno)}"
                meaning = "whoever is given it afterwards keeps its value, not its graph"
                code = f"{target.id} = {target.id}.detach()"
                yield Candidate(title, meaning, file.inserted(last, code), "values")


def _cut(values: list[ast.expr], file: Text) -> dict[str, str]:
    return file.replaced_all([(value, f"{file.bare(value)}.detach()") for value in values])


def _stored(node: ast.AST, name: str, made: set[str], file: Text) -> list[ast.expr]:
    """What ``node`` puts into the variable or container ``name``; of a value assembled before, the parts in
    ``made``, the names of what accumulates."""

    def holds(place: ast.expr) -> bool:
        return base(file.segment(place)).rpartition(".")[2] == name

    if isinstance(node, ast.AugAssign) and holds(node.target):
        return _parts(node.value, made)
    if isinstance(node, ast.Assign) and any(holds(target) for target in targets(node)):
        return _taken(node.value, holds, made, display=isinstance(node.targets[0], ast.Subscript))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not holds(node.func.value):
        return []
    storing = node.func.attr in _STORING and node.args and not node.keywords
    return _parts(node.args[-1], made) if storing else []


def _taken(value: ast.expr, holds: Callable[[ast.expr], bool], made: set[str], *, display: bool) -> list[ast.expr]:
    """What an assignment to ``name`` adds to its old value; all of it for an element of a container."""
    if not _mentions(value, holds):
        return _parts(value, made) if display else []
    if isinstance(value, (ast.List, ast.Tuple)):
        return [part for each in value.elts if not isinstance(each, ast.Starred) for part in _parts(each, made)]
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        found = []
        for side in (value.left, value.right):
            if not _mentions(side, holds):
                found += _parts(side, made)
            elif isinstance(side, ast.BinOp):
                found += _taken(side, holds, made, display=False)
        return found
    return []


def _mentions(value: ast.expr, holds: Callable[[ast.expr], bool]) -> bool:
    return any(holds(part) for part in ast.walk(value) if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)))


def _parts(value: ast.expr, made: set[str]) -> list[ast.expr]:
    """``value``; of a list, tuple or dictionary display the parts that are in ``made``, or else all of them; of a
    comprehension its elements."""
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        elements = value.elts
    elif isinstance(value, ast.Dict):
        elements = value.values
    elif isinstance(value, ast.DictComp):
        return _parts(value.value, made)
    elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return _parts(value.elt, made)
    elif isinstance(value, _NO_TENSOR) or any(_leaves(node) for node in ast.walk(value)):
        return []
    else:
        return [value]
    mine = [each for each in elements if ast.unparse(each) in made]
    # Under other names than they were made with: which of them are tensors a run tells.
    return mine or [part for each in elements for part in _parts(each, made)]


def _leaves(node: ast.AST) -> bool:
    """Whether ``node`` is a call that drops the graph of a value, so that its result has none."""
    return isinstance(node, ast.Call) and last_name(node.func) in _NUMBERS
