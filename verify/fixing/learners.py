"""Changes for parameters of an optimizer that receive no gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from verify.diagnosis.model import Fault
from verify.fixing.attaching import unmarked
from verify.fixing.clues import Candidate, at, place_of
from verify.fixing.texts import Text, Texts
from verify.syntax import covers, last_name, method_call, pairs

#: What switches gradients off.
_OFF = frozenset({"no_grad", "inference_mode"})
_LISTED = re.compile(r"\.(\w+)\[[^]]*\]")


def recording(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Let the line that runs without gradients run with them: outside the block, or in a function without the
    decorator; the block may stand around a call that leads to it."""
    cause = fault.clue("cause")
    if cause is None or "no_grad" not in cause.text:
        return
    for site in dict.fromkeys(clue.site for clue in (cause, fault.clue("off")) if clue is not None):
        if site is None:
            continue
        file = Text(site.path, texts)
        for candidate in _recorded(file, file.line(site)):
            # What has a graph refuses to be marked.
            yield replace(
                candidate, files={path: unmarked(fault, texts, path, candidate.files[path]) for path in candidate.files}
            )


def _recorded(file: Text, line: int) -> Iterator[Candidate]:
    meaning = "gradients are recorded there, and the parameters of the optimizer learn from it"
    for block in (node for node in ast.walk(file.tree) if isinstance(node, ast.With)):
        if covers(block, line) and all(_off(item.context_expr) for item in block.items):
            text = file.dissolved(block, block.body) if block.body[0].lineno > block.lineno else None
            if text is not None:
                yield Candidate(f"record gradients, without {file.at(block.lineno)}", meaning, {file.path: text})
    statement = file.statement(line)
    function = None if statement is None else file.function(statement)
    for decorator in [] if function is None else function.decorator_list:
        if _off(decorator) and decorator.lineno == decorator.end_lineno:
            lines = list(file.lines)
            del lines[decorator.lineno - 1]
            title = f"record gradients, without {file.at(decorator.lineno)}"
            yield Candidate(title, meaning, {file.path: "".join(lines)})


@at("off")
def switched_on(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Switch gradients off for the function alone that does so for ever, or on again where they are needed."""
    cause, switched = place_of(fault.clue("cause"), texts), method_call(statement, "set_grad_enabled")
    value = switched[1].args[0] if switched is not None and len(switched[1].args) == 1 else None
    if switched is None or not isinstance(value, ast.Constant) or value.value is not False:
        return
    torch, function = file.segment(switched[0]), file.function(statement)
    if function is not None and statement in function.body and len(function.body) > 1:
        lines = file.without(statement).splitlines(keepends=True)
        first = min(node.lineno for node in (function, *function.decorator_list))
        lines.insert(first - 1, f"{file.indent(first)}@{torch}.no_grad()\n")
        title = f"switch gradients off in {function.name} alone, not from {file.at(statement.lineno)} on"
        yield Candidate(title, "what runs after it records gradients again", {file.path: "".join(lines)})
    if cause is not None and cause[0].path == file.path and file.function(cause[1]) is function:
        title = f"switch gradients on again before {cause[0].at(cause[1].lineno)}"
        code = f"{torch}.set_grad_enabled(True)"
        yield Candidate(title, "they are recorded from there on", file.inserted(cause[1], code, before=True))


@at("step")
def cleared(fault: Fault, texts: Texts, file: Text, step: ast.stmt) -> Iterator[Candidate]:
    """Clear the gradients before the first backward of a step, or after the step."""
    stepped = method_call(step, "step")
    if stepped is None:
        return
    owner = file.segment(stepped[0])
    earlier = [each for each in file.block(step) if each.lineno < step.lineno]
    first = next((each for each in reversed(earlier) if _walks(each)), None)
    while first is not None and (before := [e for e in earlier if e.lineno < first.lineno]) and _walks(before[-1]):
        first = before[-1]
    meaning = "each step takes the gradients of its own backwards, not those of all steps before it as well"
    code = f"{owner}.zero_grad()"
    if first is not None:
        title = f"clear the gradients of {owner} before {file.at(first.lineno)}"
        yield Candidate(title, meaning, file.inserted(first, code, before=True), "clear")
    title = f"clear the gradients of {owner} after {file.at(step.lineno)}"
    yield Candidate(title, meaning, file.inserted(step, code), "clear")


def _walks(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in ast.walk(statement))


@at("cause")
def spared(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Run the forward that nobody learns from without a graph."""
    simple = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return))
    torch = _torch(file)
    if torch and simple and statement.lineno == statement.end_lineno:
        line = file.lines[statement.lineno - 1].strip()
        indent, lines = file.indent(statement.lineno), list(file.lines)
        lines[statement.lineno - 1] = f"{indent}with {torch}.no_grad():\n{indent}    {line}\n"
        title = f"make no graph at {file.at(statement.lineno)}"
        meaning = "nobody learns from this forward; it takes less memory and time, and gives the same values"
        yield Candidate(title, meaning, {file.path: "".join(lines)}, "spare")


def _torch(file: Text) -> str:
    """The name by which the file imports torch; empty where it does not."""
    names = [name for node in file.tree.body if isinstance(node, ast.Import) for name in node.names]
    return next((name.asname or "torch" for name in names if name.name.partition(".")[0] == "torch"), "")


def _off(node: ast.expr) -> bool:
    """Whether a context or a decorator turns gradients off."""
    return last_name(node.func if isinstance(node, ast.Call) else node) in _OFF


def registered(fault: Fault, texts: Texts, loaded: Iterable[str] = ()) -> Iterator[Candidate]:
    """Make a list of layers or of parameters one that its module registers."""
    parameters, paths = fault.clue("parameters"), dict.fromkeys(c.site.path for c in fault.clues if c.site is not None)
    if parameters is None:
        return
    paths |= dict.fromkeys(loaded)
    found = [(name, one) for name in parameters.name.split(", ") if (one := _LISTED.search(name))]
    attributes = {one[1]: "Parameter" if one.end() == len(name) else "Module" for name, one in found}
    for path in paths:
        file = Text(path, texts)
        for node in ast.walk(file.tree):
            for target, value in pairs(node):
                form = _registering(value, file)
                if not isinstance(target, ast.Attribute) or target.attr not in attributes or not form:
                    continue
                name = attributes[target.attr] + form
                title = f"hold {target.attr} in a {name} at {file.at(value.lineno)}"
                code = f"{_torch_nn(file)}.{name}({file.segment(value)})"
                yield Candidate(title, "parameters() finds what is in it", file.replaced(value, code))


def _registering(value: ast.expr, file: Text) -> str:
    """``List`` or ``Dict``, the form of container for a list, tuple or dictionary, or for a variable that holds one;
    empty for what is neither."""
    if isinstance(value, ast.Name):
        made = [other for node in ast.walk(file.tree) for target, other in pairs(node) if _is_name([target], value.id)]
        found = {_registering(other, file) for other in made if not isinstance(other, ast.Name)}
        return found.pop() if len(found) == 1 else ""
    called = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    if isinstance(value, (ast.Dict, ast.DictComp)) or called == "dict":
        return "Dict"
    listed = isinstance(value, (ast.List, ast.ListComp, ast.Tuple)) or called in ("list", "tuple")
    return "List" if listed else ""


def _torch_nn(file: Text) -> str:
    """The name by which the file imports torch.nn."""
    for node in ast.walk(file.tree):
        names = node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        for name in names:
            whole = f"{node.module}.{name.name}" if isinstance(node, ast.ImportFrom) else name.name
            if whole == "torch.nn" and (name.asname or isinstance(node, ast.ImportFrom)):
                return name.asname or name.name
    return "torch.nn"


def made_later(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Create the optimizer after the statement that replaced its parameters."""
    parameters, paths = fault.clue("parameters"), dict.fromkeys(c.site.path for c in fault.clues if c.site is not None)
    if parameters is None:
        return
    places = {name.strip() for name in parameters.name.split(",")}
    for path in paths:
        file = Text(path, texts)
        for made in ast.walk(file.tree):
            if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call) or not _takes_parameters(made):
                continue
            if made.lineno != made.end_lineno:
                continue
            replacing = [
                later
                for later in file.block(made)
                if later.lineno > made.lineno and isinstance(later, ast.Assign)
                for target in later.targets
                if any(name.startswith(ast.unparse(target)) for name in places)
            ]
            if replacing:
                last = replacing[-1]
                lines = list(file.lines)
                lines.insert(last.end_lineno or last.lineno, lines[made.lineno - 1])
                del lines[made.lineno - 1]
                title = f"make {ast.unparse(made.targets[0])} after {file.at(last.lineno)}"
                yield Candidate(title, "it holds the layers that the model has", {file.path: "".join(lines)})


def _takes_parameters(made: ast.Assign) -> bool:
    return any(method_call(node, "parameters") for node in ast.walk(made.value))


@at("cause")
def frozen(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Freeze the parameters that a cut deliberately keeps from learning, where their model is created."""
    parameters = fault.clue("parameters")
    if parameters is None:
        return
    names = parameters.name.split(", ")
    roots = {name.partition(".")[0] for name in names}
    root = next(iter(roots))
    if len(roots) != 1 or not all(part.isidentifier() for name in names for part in name.split(".")):
        # More of them than are told, or what no variable leads to.
        return
    made = [node for node in ast.walk(file.tree) if isinstance(node, ast.Assign) and _is_name(node.targets, root)]
    if len(made) != 1 or file.statement(made[0].lineno) is not made[0]:
        return
    code = "\n".join(f"{name}.requires_grad_(False)" for name in names)
    title = f"freeze {', '.join(names)} after {file.at(made[0].lineno)}"
    meaning = "the cut is meant: they stay as they are, and nobody expects them to learn"
    yield Candidate(title, meaning, file.inserted(made[0], code), "freeze")


def _is_name(targets: list[ast.expr], name: str) -> bool:
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name
