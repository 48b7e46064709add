"""Changes for tensors that stayed behind on another device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, at, place_of, printed, variable
from verify.fixing.texts import Text, Texts
from verify.syntax import covers

#: Functions of torch that make a tensor of no tensor, where it is told.
_MAKING = frozenset({"zeros", "ones", "empty", "full", "eye", "rand", "randn", "randint", "randperm"})
_MAKING |= {"arange", "linspace", "logspace", "tensor"}
#: The device of an operand, as its clue tells it.
_ON = re.compile(r"is on (\S+)")


def moved(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Move the tensor that is on another device: with its module, or just before its use."""
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
        copied = use[0].inserted(use[1], f"{name} = {name}.to({other}.device)", before=True)
        if wrong.function == right.function == fault.figures.get("function"):
            yield Candidate(title, "it is copied there in every step", copied)


def _buffer(file: Text, statement: ast.stmt, name: str) -> str | None:
    """Register a buffer where a module's ``__init__`` assigns a plain attribute."""
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


@at("cause")
def made_there(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Make tensors on the device where they are used: that of the other operand, or of the module's parameters."""
    right = fault.clue("other")
    if statement.lineno != statement.end_lineno:
        return
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _makes(node)]
    if not calls or any(call is not other and call in ast.walk(other) for call in calls for other in calls):
        return
    for device, whose in _devices(right.name if right is not None else "", statement, file):
        changes = [(call, file.with_argument(call, f"device={device}")) for call in calls]
        title = f"make it on the device of {whose} at {file.at(statement.lineno)}"
        yield Candidate(title, "nothing is copied; it goes where the rest is", file.replaced_all(changes))


@at("cause")
def given_values(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Make a tensor that is on meta, and so has no values, where the other operand is: by the word that says meta, in
    the statement or at the head of a block around it."""
    places = [_ON.match("" if clue is None else clue.text) for clue in map(fault.clue, ("carrier", "other"))]
    wrong, right = ("" if place is None else place[1] for place in places)
    if wrong != "meta" or not right:
        return
    around = [node for node in ast.walk(file.tree) if isinstance(node, ast.With) and covers(node, statement.lineno)]
    heads = [item.context_expr for block in around for item in block.items]
    said = [
        node
        for part in (statement, *heads)
        for node in ast.walk(part)
        if isinstance(node, ast.Constant) and node.value == "meta"
    ]
    if said:
        title = f"make it on {right}, not on meta, at {file.at(said[0].lineno)}"
        changes = [(node, f'"{right}"') for node in said]
        yield Candidate(title, "it has values, and takes memory", file.replaced_all(changes))


def _makes(call: ast.Call) -> bool:
    """Whether ``call`` makes a tensor and is not told where."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _MAKING:
        return False
    told = any(keyword.arg in ("device", "out", None) for keyword in call.keywords)
    return isinstance(call.func.value, ast.Name) and call.func.value.id == "torch" and not told


def _devices(other: str, statement: ast.stmt, file: Text) -> Iterator[tuple[str, str]]:
    """Expressions for the device, and whose it is: of what the function of ``statement`` knows."""
    function = file.function(statement)
    if function is None:
        return
    arguments = [arg.arg for arg in function.args.args]
    code = printed(other)
    if code and code.partition(".")[0].partition("[")[0] in arguments and code != "self":
        yield f"{code}.device", code
    if arguments and function.name != "__init__" and _is_module(function, file):
        own = arguments[0]
        yield f"next({own}.parameters()).device", f"the parameters of {own}"


def _is_module(function: ast.AST, file: Text) -> bool:
    """Whether ``function`` is a method of a class that says it is a module."""
    owners = [node for node in ast.walk(file.tree) if isinstance(node, ast.ClassDef) and function in node.body]
    return any(ast.unparse(base).rpartition(".")[2] == "Module" for owner in owners for base in owner.bases)
