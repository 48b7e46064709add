"""Changes for state that a step takes over from an earlier one: rebuilt, detached where it enters, or reset."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from verify.diagnosis.model import Clue, Fault, Kind
from verify.fixing.clues import Candidate, at, base, keys, named, place_of, printed, variable, within_a_step
from verify.fixing.texts import Text, Texts
from verify.syntax import Function, bound, last_name, method_call, names, pairs, targets

EACH_STEP = (
    "what it is computed from goes on learning: it is computed in every step, from the parameters as they are then"
)
_IN_A_CLOSURE = re.compile(r"<closure (\w+)>$")
_ALIKE = frozenset({"shape", "device", "dtype", "ndim"})
_CACHES = frozenset({"lru_cache", "cache"})


def always(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Make the statement that built the graph once, under a condition, unconditional; or the one that keeps it, where
    a function that it calls built it."""
    place, carrier = place_of(fault.clue("cause"), texts), fault.clue("carrier")
    if place is None or carrier is None:
        return
    file, made = place
    yield from _always(carrier, file, made)
    if isinstance(made, ast.Return):
        for node in ast.walk(file.tree):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or not file.alone(node):
                continue
            if any(is_target(target, carrier, file) for target in targets(node)):
                yield from _always(carrier, file, node)


def _always(carrier: Clue, file: Text, made: ast.stmt) -> Iterator[Candidate]:
    name = next((file.segment(each) for each in targets(made) if is_target(each, carrier, file)), "")
    title = f"build {name or carrier.name} each time, without the condition at"
    if name and (choice := _chosen(made, file)) is not None and not _of_the_turn([made], file, arguments=True):
        yield Candidate(f"{title} {file.at(made.lineno)}", EACH_STEP, file.replaced(*choice), "rebuild", fresh=True)
    test = next((n for n in ast.walk(file.tree) if isinstance(n, ast.If) and made in n.body and not n.orelse), None)
    asked: ast.If | None
    if test is not None and name:
        # the rest of the body makes what the statement reads
        asked, built = test, test.body
    else:
        before = [each for each in file.block(made) if each.lineno < made.lineno]
        asked, built = next((each for each in before if _gives_back(each, carrier, file)), None), [made]
    if asked is None or made.lineno == asked.lineno or any(hasattr(each, "body") for each in built):
        return
    elif_ = file.lines[asked.lineno - 1].lstrip().startswith("elif")
    if elif_ or _of_the_turn(built, file, arguments=True):
        return
    text = file.without(asked) if built == [made] and asked is not test else file.dissolved(asked, built)
    if text is not None:
        yield Candidate(f"{title} {file.at(asked.lineno)}", EACH_STEP, {file.path: text}, "rebuild", fresh=True)


def _gives_back(statement: ast.stmt, carrier: Clue, file: Text) -> TypeGuard[ast.If]:
    """Whether ``statement`` returns the carrier, if it is there: ``if x is not None: return x``."""
    if not isinstance(statement, ast.If) or statement.orelse or len(statement.body) != 1:
        return False
    given = statement.body[0]
    return isinstance(given, ast.Return) and given.value is not None and is_target(given.value, carrier, file)


def _chosen(statement: ast.stmt, file: Text) -> tuple[ast.expr, str] | None:
    """The value of ``x = made() if x is None else x``, in either order, and the code of what is made."""
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.IfExp) or not isinstance(statement, ast.Assign):
        return None
    ways = [each for each in (value.body, value.orelse) if ast.unparse(each) not in named(statement)]
    return (value, file.segment(ways[0])) if len(ways) == 1 else None


def _of_the_turn(statements: list[ast.stmt], file: Text, *, arguments: bool) -> bool:
    """Whether values in ``statements`` are of what loops around them bind, or with ``arguments`` of the arguments of
    their function: then they are what the first batch made of them."""
    function = file.function(statements[0])
    given = {arg.arg for arg in function.args.args[1:]} if function is not None and arguments else set()
    given = given.union(*map(bound, file.loops(statements[0])))
    parts = [node for each in statements for node in ast.walk(each)]
    own = {name for each in statements for name in named(each)}
    own = own.union(*(bound(node.target) for node in parts if isinstance(node, ast.comprehension)))
    # What is kept by a key is made of that key whoever asks for it.
    kept = [target for each in statements for target in targets(each) if isinstance(target, ast.Subscript)]
    own = own.union(*(names(target.slice) for target in kept))
    used = {name for each in statements for name in _valued(getattr(each, "value", None) or each)}
    return bool(used & (given - own))


def _valued(node: ast.AST) -> set[str]:
    """The variables of ``node`` of which it reads more than sizes, devices and types: these all batches share."""
    asks = isinstance(node, ast.Attribute) and node.attr in _ALIKE
    if asks or (isinstance(node, ast.Call) and last_name(node.func) in ("len", "size", "dim")):
        return set()
    found = {node.id} if isinstance(node, ast.Name) else set()
    return found.union(*map(_valued, ast.iter_child_nodes(node)))


@at("cause")
def uncached(fault: Fault, texts: Texts, file: Text, made: ast.stmt) -> Iterator[Candidate]:
    """Remove the cache from the function that built the graph."""
    function = file.function(made)
    for decorator in [] if function is None else function.decorator_list:
        name = last_name(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if decorator.lineno != decorator.end_lineno:
            continue
        lines = list(file.lines)
        if name in _CACHES:
            del lines[decorator.lineno - 1]
        elif name == "cached_property":
            lines[decorator.lineno - 1] = file.indent(decorator.lineno) + "@property\n"
        else:
            continue
        title = f"compute {function.name} anew in each call, without its cache at {file.at(decorator.lineno)}"  # type: ignore[union-attr]
        yield Candidate(title, EACH_STEP, {file.path: "".join(lines)}, "rebuild", fresh=True)


@at("cause")
def rebuilt(fault: Fault, texts: Texts, file: Text, made: ast.stmt) -> Iterator[Candidate]:
    """Repeat the statement that built the graph before the one that uses it."""
    consumer, carrier = fault.clue("consumer"), fault.clue("carrier")
    if consumer is None or consumer.site is None or carrier is None or not carrier.name:
        return
    used = file.statement(file.line(consumer.site)) if consumer.site.path == file.path else None
    if used is None or not file.means_the_same(made, used) or _of_the_turn([made], file, arguments=False):
        return
    code = file.segment(made)
    if (buffer := _buffer(made, file)) is not None:
        target, value = buffer
        code = f"{target} = {file.segment(value)}"
    else:
        target = next(iter(named(made)), "")
    ways = [variable(replace(carrier, name=name)) for name in (carrier.name, *carrier.also)]
    name = next((way for way in ways if printed(way) == target), "")
    loops = (loop for loop in file.loops(used) if isinstance(loop, ast.For))
    used = next((loop for loop in loops if target in map(ast.unparse, ast.walk(loop.iter))), used)
    # Beside each other they run equally often: then it is made anew already.
    if not name or (buffer is None and len(targets(made)) != 1) or used in file.block(made):
        return
    if "\n" not in code:
        files, inner = file.inserted(used, code, before=True), file.function(used)
        if target.isidentifier() and inner is not file.function(made) and target not in _read_outside(inner, file):
            files = file.moved([made], used, before=True)
        title = f"build {name} again before it is used, at {file.at(used.lineno)}"
        yield Candidate(title, EACH_STEP, files, "rebuild", fresh=True)


def _read_outside(function: Function | None, file: Text) -> set[str]:
    """The variables that are read outside ``function``."""
    inside = set() if function is None else set(ast.walk(function))
    outside = (node for node in ast.walk(file.tree) if node not in inside and isinstance(node, ast.Name))
    return {node.id for node in outside if isinstance(node.ctx, ast.Load)}


def _buffer(statement: ast.stmt, file: Text) -> tuple[str, ast.expr] | None:
    """The attribute and the value of a buffer that ``statement`` registers."""
    found = method_call(statement, "register_buffer")
    if found is None or len(found[1].args) < 2:
        return None
    owner, call = found
    name = call.args[0]
    text = name.value if isinstance(name, ast.Constant) else None
    if not isinstance(text, str) or not text.isidentifier():
        return None
    return f"{file.segment(owner)}.{text}", call.args[1]


@at("cause")
def cut_where_it_enters(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Detach a state that feeds itself before the line that reads it, where its new value is used in the same step:
    detached after that line, the step would lose its own graph."""
    carrier = fault.clue("carrier")
    if carrier is None or not feeds_itself(fault):
        return
    for target in targets(statement):
        if not is_target(target, carrier, file) or not _used_beside(target, statement, file):
            continue
        code = file.segment(target)
        several = keys(carrier.name) > isinstance(target, ast.Subscript)
        for line, title, meaning in cuts(code, file, several=several):
            if guard := _guard(target, statement, file):
                line = f"if {guard}:\n    {line}"
            title = f"{title} before it is taken up, at {file.at(statement.lineno)}"
            yield Candidate(title, meaning, file.inserted(statement, line, before=True), "cut")


@at("saved by")
def grown_from_values(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Detach what a line adds to where it takes it up, if a backward meets the weights of an earlier step there."""
    for target in targets(statement) if "an earlier step" in fault.remedy else ():
        old = [each for each in ast.walk(statement) if isinstance(each, type(target)) and _reads_it(each, target)]
        if old:
            title = f"take up {file.segment(target)} without its graph at {file.at(statement.lineno)}"
            files = file.replaced_all([(each, f"{file.segment(each)}.detach()") for each in old])
            yield Candidate(title, "each step learns from what is new in it; the value is carried on", files, "cut")


@at("freed by")
def detached_after_backward(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Detach the carrier after the backward that freed its graph; where it feeds itself, it may also be reset."""
    freed, carrier, made = fault.clue("freed by"), fault.clue("carrier"), place_of(fault.clue("cause"), texts)
    where = f"after the backward at {file.at(statement.lineno)}"
    name = variable(carrier)
    if carrier is None or freed is None or freed.site is None:
        return
    if name == carrier.name and name.isidentifier() and carrier.function == freed.site.function:
        yield from _anew(fault, name, statement, where, file, several=False)
    elif made is not None and made[0].path == file.path and not within_a_step(fault):
        # Where it is used again it has another name.
        beside = (each for each in file.block(statement) if each.lineno < statement.lineno)
        here = next((each for each in beside if each.lineno == made[1].lineno), statement)
        for each in (target.id for target in targets(here) if isinstance(target, ast.Name)):
            for code, title, meaning in cuts(each, file, several=False):
                yield Candidate(f"{title} {where}", meaning, file.inserted(statement, code), "cut")


def kept_detached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach a state after the statement that makes it; where it feeds itself, it may also be reset."""
    carriers = [clue for clue in fault.clues if clue.role == "carrier"]
    if fault.kind is Kind.CHANGED_IN_PLACE and "an earlier step" not in fault.remedy:
        # What was changed belongs to the graph of the step itself.
        return
    for cause in (clue for clue in fault.clues if clue.role in ("cause", "saved by")):
        place = place_of(cause, texts)
        if place is None:
            continue
        file, statement = place
        for carrier in carriers:
            for target in targets(statement):
                taken = feeds_itself(fault) and _used_beside(target, statement, file)
                if taken or not is_target(target, carrier, file):
                    # See cut_where_it_enters.
                    continue
                several = keys(carrier.name) > isinstance(target, ast.Subscript)
                where = f"where it is kept, after {file.at(statement.lineno)}"
                yield from _anew(fault, file.segment(target), statement, where, file, several=several)


@at("freed by")
def handed_back(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Detach after the backward what a call gave that gets it again in the next turn: there it has another name."""
    carrier = fault.clue("carrier")
    if carrier is None:
        return
    taken = {
        file.segment(target): None
        for loop in file.loops(statement)[:1]
        for call in ast.walk(loop)
        if isinstance(call, ast.Assign) and isinstance(call.value, ast.Call)
        for target in targets(call)
        if isinstance(target, (ast.Name, ast.Attribute)) and _reads(target, call)
    }
    where = f"after the backward at {file.at(statement.lineno)}"
    for chosen in [list(taken)] * (len(taken) > 1) + [[name] for name in taken]:
        ways = [list(cuts(name, file, several=keys(carrier.name) > 0)) for name in chosen]
        for each in zip(*ways, strict=False):
            files = file.inserted(statement, "\n".join(code for code, _, _ in each))
            title = f"detach {', '.join(chosen)} {where}"
            yield Candidate(title, each[0][2], files, "cut", parts=len(chosen))


def _anew(
    fault: Fault, name: str, statement: ast.stmt, where: str, file: Text, *, several: bool
) -> Iterator[Candidate]:
    """Drop the graph of the state ``name`` after ``statement``, or, where it feeds itself, the state as well."""
    for code, title, meaning in cuts(name, file, several=several):
        yield Candidate(f"{title} {where}", meaning, file.inserted(statement, code), "cut")
    for code in _assigned("{0}.new_zeros({0}.shape)", name, file, several=several) if feeds_itself(fault) else ():
        meaning = "each step learns from its own graph and begins with zeros; nothing is remembered"
        files = file.inserted(statement, code)
        yield Candidate(f"start {name} afresh {where}", meaning, files, "afresh", fresh=True)


def cuts(name: str, file: Text, *, several: bool) -> Iterator[tuple[str, str, str]]:
    """The ways to drop the graph of a state and keep its value: (code, title, meaning). ``several``: it is a tuple of
    tensors."""
    for code in _assigned("{0}.detach()", name, file, several=several):
        yield code, f"detach {name}", "each step learns from its own graph; the value is carried on"


def _assigned(form: str, name: str, file: Text, *, several: bool) -> Iterator[str]:
    """The statements that assign ``form`` to ``name``, or to each of its ``several`` parts."""
    parts = f"({form.format('part')} for part in {name})"
    if several and file.has_records:
        yield f"{name} = {name}._make{parts}"
    yield f"{name} = {f'tuple{parts}' if several else form.format(name)}"


def feeds_itself(fault: Fault) -> bool:
    """Whether one line makes the graph and uses it again in the next turn."""
    made, used = fault.clue("cause"), fault.clue("consumer")
    return made is not None and used is not None and made.site is not None and made.site == used.site


def is_target(target: ast.expr, carrier: Clue, file: Text) -> bool:
    """Whether ``target`` is the carrier, by its last name: objects have other names elsewhere."""
    if isinstance(target, ast.Subscript):
        same = keys(carrier.name) > 0 and not isinstance(target.slice, ast.Slice)
        return same and base(file.segment(target)).rpartition(".")[2] == base(carrier.name).rpartition(".")[2]
    last = _IN_A_CLOSURE.sub(r"\1", variable(carrier)).rpartition(".")[2]
    return last.isidentifier() and file.segment(target).rpartition(".")[2] == last


def _guard(target: ast.expr, statement: ast.stmt, file: Text) -> str:
    """The condition under which the state exists; empty where it always does."""
    code = file.segment(target)
    if isinstance(target, ast.Subscript) and not _reads(target, statement):
        # It is asked for in another way than by its key: by get(), which has an answer to begin with.
        return f"{file.segment(target.slice)} in {file.segment(target.value)}"
    return f"{code} is not None" if _begins_with_none(target, file) and not _begun(code, statement, file) else ""


def _begun(code: str, statement: ast.stmt, file: Text) -> bool:
    """Whether the function assigns ``code`` before ``statement`` where it is None."""
    tests = [
        node
        for node in ast.walk(file.scope(statement))
        if isinstance(node, ast.If) and node.lineno < statement.lineno and ast.unparse(node.test) == f"{code} is None"
    ]
    return any(code in named(each) for test in tests for each in test.body)


def _reads(target: ast.expr, statement: ast.stmt) -> bool:
    """Whether ``statement`` reads ``target``, written in the same way."""
    return any(_reads_it(node, target) for node in ast.walk(statement))


def _reads_it(node: ast.AST, target: ast.expr) -> bool:
    path = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
    return path and ast.unparse(node) == ast.unparse(target)


def _used_beside(target: ast.expr, statement: ast.stmt, file: Text) -> bool:
    """Whether another statement of the function reads ``target``."""
    around = ast.walk(file.scope(statement))
    others = (each for each in around if isinstance(each, ast.stmt) and not hasattr(each, "body"))
    return any(_reads(target, each) for each in others if each is not statement)


def _begins_with_none(target: ast.expr, file: Text) -> bool:
    last = file.segment(target).rpartition(".")[2]
    for node in ast.walk(file.tree):
        if isinstance(node, ast.arguments) and isinstance(target, ast.Name):
            arguments = [*node.posonlyargs, *node.args]
            given = zip(
                [*reversed(arguments), *node.kwonlyargs],
                [*reversed(node.defaults), *[None] * (len(arguments) - len(node.defaults)), *node.kw_defaults],
                strict=True,
            )
            if any(argument.arg == last and _is_none(default) for argument, default in given):
                return True
        for name, value in pairs(node):
            if _is_none(value) and file.segment(name).rpartition(".")[2] == last:
                return True
    return False


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
