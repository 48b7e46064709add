"""Changes that may mend a fault, made at the lines that the doctor names. Nothing here is believed: each one is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from verify.diagnosis.model import Clue, Fault, Kind

Texts = Callable[[str], str]


@dataclass(frozen=True)
class Candidate:
    """A change: what it does in a sentence, what else it means for the program, and the new texts by path."""

    title: str
    meaning: str
    files: Mapping[str, str]


def candidates(fault: Fault, texts: Texts) -> list[Candidate]:
    """Return changes that may mend ``fault``, the one that keeps most learning first.

    ``texts`` returns the source of a path below the root; it may raise OSError, and such files are left alone.
    """
    makers = {
        Kind.SECOND_BACKWARD: (_rebuilt, _detached_after_backward, _kept_detached, _retained),
        Kind.CHANGED_IN_PLACE: (_stepped_later, _out_of_place, _kept_detached),
        Kind.GROWING_GRAPH: (_stored_detached, _kept_detached),
    }.get(fault.kind, ())
    found: list[Candidate] = []
    for make in makers:
        try:
            found += [each for each in make(fault, texts) if each not in found]
        except (OSError, SyntaxError, ValueError):
            # Not Python that we can read: nothing is offered there.
            continue
    return found


class _Text:
    """A file, its statements, and copies of it with lines more or changed."""

    def __init__(self, path: str, texts: Texts) -> None:
        self.path = path
        self.text = texts(path)
        self.lines = self.text.splitlines(keepends=True)
        self.tree = ast.parse(self.text)

    def statement(self, line: int) -> ast.stmt | None:
        """The innermost statement at ``line`` that has its lines for itself."""
        found = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
                found = node
        if found is None or hasattr(found, "body"):
            return None
        before = self.lines[found.lineno - 1].encode()[: found.col_offset]
        after = self.lines[(found.end_lineno or 1) - 1].encode()[found.end_col_offset or 0 :].strip()
        return found if not before.strip() and (not after or after.startswith(b"#")) else None

    def segment(self, node: ast.AST) -> str:
        """The source of ``node``."""
        return ast.get_source_segment(self.text, node) or ""

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements beside ``statement``, with it."""
        for node in ast.walk(self.tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and statement in block:
                    return block
        return []

    def inserted(self, after: ast.stmt, code: str, *, before: bool = False) -> dict[str, str]:
        """The file with ``code`` as a statement of its own behind ``after``, or in front of it."""
        first = self.lines[after.lineno - 1]
        indent = first[: len(first) - len(first.lstrip())]
        at = after.lineno - 1 if before else after.end_lineno or after.lineno
        lines = list(self.lines)
        if at and not lines[at - 1].endswith("\n"):
            lines[at - 1] += "\n"
        lines.insert(at, f"{indent}{code}\n")
        return {self.path: "".join(lines)}

    def replaced(self, node: ast.AST, code: str) -> dict[str, str]:
        """The file with ``code`` in place of ``node``, which begins and ends on one line."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if first != last:
            raise ValueError("spans lines")
        raw = self.lines[first - 1].encode()
        lines = list(self.lines)
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        lines[first - 1] = (raw[:start] + code.encode() + raw[end:]).decode()
        return {self.path: "".join(lines)}


def _at(clue: Clue | None, texts: Texts) -> tuple[_Text, ast.stmt] | None:
    """The file and the statement of a clue."""
    if clue is None or clue.site is None or clue.site.cell is not None or not clue.site.path.endswith(".py"):
        return None
    file = _Text(clue.site.path, texts)
    statement = file.statement(clue.site.line)
    return None if statement is None else (file, statement)


def _variable(clue: Clue | None) -> str:
    """The name of a carrier less the place of an element: what a statement assigns."""
    if clue is None or not clue.name:
        return ""
    name = clue.name
    while name.endswith("]") and name[name.rfind("[") + 1 : -1].replace("*", "0").isdigit():
        name = name[: name.rfind("[")]
    return name


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return []
    return [
        element
        for target in targets
        for element in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
    ]


def _rebuilt(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The statement that made the graph, made again in front of the one that uses it."""
    place, consumer = _at(fault.clue("cause"), texts), fault.clue("consumer")
    name = _variable(fault.clue("carrier"))
    cause = fault.clue("cause")
    if place is None or consumer is None or consumer.site is None or cause is None or cause.site is None or not name:
        return
    file, made = place
    used = file.statement(consumer.site.line)
    if (cause.site.path, cause.site.function) != (consumer.site.path, consumer.site.function) or used is None:
        return
    # Beside each other they run equally often: then it is made anew already.
    if made.lineno >= used.lineno or used in file.block(made):
        return
    if [file.segment(target) for target in _targets(made)] != [name]:
        return
    code = file.segment(made)
    if "\n" not in code:
        moved = file.inserted(used, code, before=True)
        title = f"build {name} again before it is used, at line {used.lineno}"
        yield Candidate(title, "everything behind it goes on learning; it is computed in every step", moved)


def _detached_after_backward(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The carrier cut off behind the backward that freed its graph."""
    freed, carrier = fault.clue("freed by"), fault.clue("carrier")
    place = _at(freed, texts)
    name = _variable(carrier)
    if place is None or carrier is None or freed is None or freed.site is None or name != carrier.name:
        return
    if name.isidentifier() and carrier.function == freed.site.function:
        file, statement = place
        title = f"detach {name} behind the backward at line {statement.lineno}"
        yield Candidate(
            title, "each step learns from its own graph", file.inserted(statement, f"{name} = {name}.detach()")
        )


def _kept_detached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """A state cut off behind the statement that makes it, with the flags that dragged its graph along taken away."""
    carriers = [clue for clue in fault.clues if clue.role == "carrier"]
    for cause in (clue for clue in fault.clues if clue.role in ("cause", "saved by")):
        place = _at(cause, texts)
        if place is None:
            continue
        file, statement = place
        made = [file.segment(target) for target in _targets(statement)]
        for carrier in carriers:
            last = _variable(carrier).rpartition(".")[2]
            for target in made:
                if not last or target.rpartition(".")[2] != last or not last.isidentifier():
                    continue
                one = f"{target} = {target}.detach()"
                several = f"{target} = tuple(part.detach() for part in {target})"
                for code in (several, one) if carrier.name != _variable(carrier) else (one, several):
                    files = file.inserted(statement, code)
                    title = f"detach {target} where it is kept, behind line {statement.lineno}"
                    yield Candidate(title, "each step learns from its own graph; the value is carried on", files)


def _retained(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The graph kept by the backward that freed it, where nothing was built on it since."""
    if fault.clue("carrier") is not None and "both losses" not in fault.remedy:
        return
    place = _at(fault.clue("freed by"), texts)
    if place is None:
        return
    file, statement = place
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
        if any(keyword.arg in ("retain_graph", None) for keyword in call.keywords):
            return
        code = file.segment(call)
        inside = "retain_graph=True" if code.endswith("()") else ", retain_graph=True"
        files = file.replaced(call, f"{code[:-1]}{inside})")
        title = f"keep the graph in the backward at line {statement.lineno}"
        yield Candidate(title, "both losses are learned from; the graph lives until the second backward", files)


def _stepped_later(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """An optimizer's step behind the backward that needs the parameters as they were."""
    cause = _at(fault.clue("cause"), texts)
    failing = _at(Clue("site", fault.site), texts)
    if cause is None or failing is None or cause[0].path != failing[0].path:
        return
    file, step = cause
    later = next((s for s in file.block(step) if s.lineno == failing[1].lineno), None)
    call = step.value if isinstance(step, ast.Expr) else None
    if later is None or later.lineno <= step.lineno or step.lineno != step.end_lineno:
        return
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "step":
        lines = list(file.lines)
        end = later.end_lineno or later.lineno
        lines.insert(end, lines[step.lineno - 1])
        del lines[step.lineno - 1]
        title = f"make the step of line {step.lineno} behind the backward at line {later.lineno}"
        yield Candidate(title, "both backwards see the same parameters", {file.path: "".join(lines)})


def _out_of_place(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """The change in place written to a new tensor."""
    place = _at(fault.clue("cause"), texts)
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
        last = _variable(carrier).rpartition(".")[2]
        for path in paths:
            file = _Text(path, texts)
            for node in ast.walk(file.tree):
                value = _stored(node, last, file)
                if value is None:
                    continue
                code = file.segment(value)
                code = code if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({code})"
                title = f"keep {code}.detach() at line {value.lineno}"
                yield Candidate(
                    title, "the values that are kept are the same", file.replaced(value, f"{code}.detach()")
                )


def _stored(node: ast.AST, name: str, file: _Text) -> ast.expr | None:
    """What ``node`` puts into the variable or container ``name``."""
    if isinstance(node, ast.AugAssign) and file.segment(node.target).rpartition(".")[2] == name:
        return node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
        return None
    holder = file.segment(node.func.value).rpartition(".")[2]
    return node.args[0] if holder == name and node.func.attr in ("append", "add", "appendleft") else None
