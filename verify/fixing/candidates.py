"""Changes that may mend a fault, made at the lines that the doctor names. Nothing here is believed: each one is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.source.errors import SourceError
from codemods.source.syntax import FAILURES
from verify.diagnosis.model import Fault, Kind
from verify.fixing.clues import Candidate, named, place_of, printed, targets, variable
from verify.fixing.learners import attached, frozen
from verify.fixing.losses import retained, stepped_later, summed
from verify.fixing.texts import Text, Texts


def candidates(fault: Fault, texts: Texts) -> list[Candidate]:
    """Return changes that may mend ``fault``, the one that keeps most learning first.

    ``texts`` returns the file at a path below the root; it may raise SourceError, and such files are left alone.
    """
    makers = {
        Kind.SECOND_BACKWARD: (_always, _rebuilt, _detached_after_backward, _kept_detached, retained, summed),
        Kind.CHANGED_IN_PLACE: (stepped_later, summed, _out_of_place, _kept_detached),
        Kind.GROWING_GRAPH: (_stored_detached, _kept_detached),
        Kind.NO_GRADIENT: (attached, frozen),
        Kind.OTHER_DEVICE: (_moved,),
    }.get(fault.kind, ())
    found: list[Candidate] = []
    for make in makers:
        try:
            found += [each for each in make(fault, texts) if each not in found]
        except (SourceError, *FAILURES):
            # Not Python that we can read: nothing is offered there.
            continue
    return found


_EACH_STEP = "all behind it goes on learning; it is computed in every step, of the parameters as they are then"


def _always(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The statement that made the graph once, under a condition, without that condition."""
    place, name = place_of(fault.clue("cause"), texts), variable(fault.clue("carrier"))
    if place is None or not name:
        return
    file, made = place
    test = next((n for n in ast.walk(file.tree) if isinstance(n, ast.If) and n.body == [made] and not n.orelse), None)
    if test is None or named(file, made) != [printed(name)] or made.lineno == test.lineno:
        return
    elif_ = file.lines[test.lineno - 1].lstrip().startswith("elif")
    first, last = made.lineno - 1, made.end_lineno or made.lineno
    indent = file.lines[test.lineno - 1][: test.col_offset]
    inner = file.lines[first][: made.col_offset]
    if elif_ or not all(line.startswith(inner) or not line.strip() for line in file.lines[first:last]):
        return
    body = [indent + line[len(inner) :] if line.strip() else line for line in file.lines[first:last]]
    text = "".join([*file.lines[: test.lineno - 1], *body, *file.lines[last:]])
    title = f"build {name} each time, without the condition at {file.at(test.lineno)}"
    yield Candidate(title, _EACH_STEP, {file.path: text}, "rebuild", fresh=True)


def _rebuilt(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The statement that made the graph, made again in front of the one that uses it."""
    place, consumer = place_of(fault.clue("cause"), texts), fault.clue("consumer")
    name = variable(fault.clue("carrier"))
    if place is None or consumer is None or consumer.site is None or not name:
        return
    file, made = place
    used = file.statement(file.line(consumer.site)) if consumer.site.path == file.path else None
    if used is None or not file.means_the_same(made, used):
        return
    # Beside each other they run equally often: then it is made anew already.
    if used in file.block(made) or named(file, made) != [printed(name)]:
        return
    code = file.segment(made)
    if "\n" not in code:
        moved = file.inserted(used, code, before=True)
        title = f"build {name} again before it is used, at {file.at(used.lineno)}"
        yield Candidate(title, _EACH_STEP, moved, "rebuild", fresh=True)


def _detached_after_backward(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The carrier cut off behind the backward that freed its graph; where it feeds itself, it may also begin afresh."""
    freed, carrier = fault.clue("freed by"), fault.clue("carrier")
    place = place_of(freed, texts)
    name = variable(carrier)
    if place is None or carrier is None or freed is None or freed.site is None or name != carrier.name:
        return
    if name.isidentifier() and carrier.function == freed.site.function:
        file, statement = place
        for way, code, title, meaning in _anew(name, several=False):
            if way == "cut" or _feeds_itself(fault):
                title = f"{title} behind the backward at {file.at(statement.lineno)}"
                yield Candidate(title, meaning, file.inserted(statement, code), way, fresh=way != "cut")


def _kept_detached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """A state cut off behind the statement that makes it; where it feeds itself, it may also begin afresh."""
    carriers = [clue for clue in fault.clues if clue.role == "carrier"]
    for cause in (clue for clue in fault.clues if clue.role in ("cause", "saved by")):
        place = place_of(cause, texts)
        if place is None:
            continue
        file, statement = place
        made = [file.segment(target) for target in targets(statement)]
        for carrier in carriers:
            last = variable(carrier).rpartition(".")[2]
            for target in made:
                if not last or target.rpartition(".")[2] != last or not last.isidentifier():
                    continue
                several = carrier.name != variable(carrier)
                for way, code, title, meaning in _anew(target, several=several):
                    if way == "cut" or _feeds_itself(fault):
                        files = file.inserted(statement, code)
                        title = f"{title} where it is kept, behind {file.at(statement.lineno)}"
                        yield Candidate(title, meaning, files, way, fresh=way != "cut")


def _anew(name: str, *, several: bool) -> Iterator[tuple[str, str, str, str]]:
    """The ways to end what a state drags along: (way, code, title, meaning). ``several``: it is a tuple of tensors."""
    carried = "each step learns from its own graph; the value is carried on"
    nothing = "each step learns from its own graph and begins with zeros; nothing is remembered"
    zeros = "{0}.new_zeros({0}.shape)"
    for way, form, title, meaning in (
        ("cut", "{0}.detach()", f"detach {name}", carried),
        ("afresh", zeros, f"start {name} afresh", nothing),
    ):
        value = f"tuple({form.format('part')} for part in {name})" if several else form.format(name)
        yield way, f"{name} = {value}", title, meaning


def _feeds_itself(fault: Fault) -> bool:
    """Whether one line makes the graph and uses it again, a turn later."""
    made, used = fault.clue("cause"), fault.clue("consumer")
    return made is not None and used is not None and made.site is not None and made.site == used.site


def _out_of_place(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The change in place written to a new tensor."""
    place = place_of(fault.clue("cause"), texts)
    if place is None:
        return
    file, statement = place
    meaning = "the graph keeps the values that it saved; one more tensor is made"
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        owner = file.segment(statement.targets[0].value)
        yield Candidate(
            f"change a clone of {owner}", meaning, file.inserted(statement, f"{owner} = {owner}.clone()", before=True)
        )
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, (ast.Name, ast.Attribute)):
        target = file.segment(statement.target)
        operator = file.segment(statement)[len(target) :].lstrip().partition("=")[0]
        code = f"{target} = {target} {operator} ({file.segment(statement.value)})"
        yield Candidate(f"write the result to a new {target}", meaning, file.replaced(statement, code))
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr.endswith("_") and not function.attr.endswith("__"):
            owner = file.segment(function.value)
            rest = file.segment(statement)[len(file.segment(function)) :]
            code = f"{owner} = {owner}.{function.attr[:-1]}{rest}"
            yield Candidate(f"write the result to a new {owner}", meaning, file.replaced(statement, code))


def _stored_detached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """What piles up put away without its graph, wherever a statement of the same file puts it away under that name."""
    paths = dict.fromkeys(clue.site.path for clue in fault.clues if clue.site is not None)
    for carrier in (clue for clue in fault.clues if clue.role == "carrier"):
        last = variable(carrier).rpartition(".")[2]
        for path in paths:
            file = Text(path, texts)
            for node in ast.walk(file.tree):
                value = _stored(node, last, file)
                if value is None:
                    continue
                code = file.segment(value)
                code = code if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({code})"
                title = f"keep {code}.detach() at {file.at(value.lineno)}"
                yield Candidate(
                    title, "the values that are kept are the same", file.replaced(value, f"{code}.detach()")
                )


def _stored(node: ast.AST, name: str, file: Text) -> ast.expr | None:
    """What ``node`` puts into the variable or container ``name``."""
    if isinstance(node, ast.AugAssign) and file.segment(node.target).rpartition(".")[2] == name:
        return node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
        return None
    holder = file.segment(node.func.value).rpartition(".")[2]
    return node.args[0] if holder == name and node.func.attr in ("append", "add", "appendleft") else None


def _moved(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The tensor that lies elsewhere brought to the other one: with its module, or just before its use."""
    wrong, right, born = fault.clue("carrier"), fault.clue("other"), place_of(fault.clue("cause"), texts)
    use = place_of(fault.clue("consumer"), texts)
    name = printed(variable(wrong))
    if not name:
        return
    if born is not None and (code := _buffer(*born, name)) is not None:
        title = f"register {name} as a buffer at {born[0].at(born[1].lineno)}"
        yield Candidate(title, "it goes wherever its module goes", born[0].replaced(born[1], code))
    if use is not None and right is not None and (other := printed(right.name)) and wrong is not None:
        title = f"move {name} to the device of {other} before {use[0].at(use[1].lineno)}"
        moved = use[0].inserted(use[1], f"{name} = {name}.to({other}.device)", before=True)
        if wrong.function == right.function == fault.figures.get("function"):
            yield Candidate(title, "it is copied there in every step", moved)


def _buffer(file: Text, statement: ast.stmt, name: str) -> str | None:
    """The statement of a module's ``__init__`` that makes an attribute, as one that registers a buffer."""
    function = file.function(statement)
    if not isinstance(statement, ast.Assign) or function is None or function.name != "__init__":
        return None
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Attribute) or not function.args.args:
        return None
    owner = function.args.args[0].arg
    if not isinstance(target.value, ast.Name) or target.value.id != owner or name.rpartition(".")[2] != target.attr:
        return None
    return f'{owner}.register_buffer("{target.attr}", {file.segment(statement.value)}, persistent=False)'
