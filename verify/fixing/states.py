"""Changes for state that a step takes over from an earlier one: rebuilt, detached where it enters, or reset."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from verify.diagnosis.model import Clue, Fault
from verify.fixing.clues import Candidate, base, keys, named, named_in, place_of, printed, targets, variable
from verify.fixing.texts import Text, Texts

EACH_STEP = (
    "what it is computed from goes on learning: it is computed in every step, from the parameters as they are then"
)
_IN_A_CLOSURE = re.compile(r"<closure (\w+)>$")
_CACHES = frozenset({"lru_cache", "cache"})


def always(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Make the statement that built the graph once, under a condition, unconditional."""
    place, carrier = place_of(fault.clue("cause"), texts), fault.clue("carrier")
    if place is None or carrier is None:
        return
    file, made = place
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
    names = named(file, statement)
    ways = [each for each in (value.body, value.orelse) if ast.unparse(each) not in names]
    return (value, file.segment(ways[0])) if len(ways) == 1 else None


def _of_the_turn(statements: list[ast.stmt], file: Text, *, arguments: bool) -> bool:
    """Whether values in ``statements`` are of what loops around them bind, or with ``arguments`` of the arguments of
    their function: then they are what the first batch made of them."""
    function = file.function(statements[0])
    given = {arg.arg for arg in function.args.args[1:]} if function is not None and arguments else set()
    for loop in file.around(statements[0], (ast.For, ast.While)):
        given |= {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own = {name for each in statements for name in named(file, each)}
    read = {name for each in statements for name in named_in(getattr(each, "value", None) or each)}
    return bool(read & (given - own))


def uncached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Remove the cache from the function that built the graph."""
    place = place_of(fault.clue("cause"), texts)
    function = None if place is None else place[0].function(place[1])
    if place is None or function is None:
        return
    file = place[0]
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if decorator.lineno != decorator.end_lineno:
            continue
        lines = list(file.lines)
        if name in _CACHES:
            del lines[decorator.lineno - 1]
        elif name == "cached_property":
            lines[decorator.lineno - 1] = file.indent(decorator.lineno) + "@property\n"
        else:
            continue
        title = f"compute {function.name} anew in each call, without its cache at {file.at(decorator.lineno)}"
        yield Candidate(title, EACH_STEP, {file.path: "".join(lines)}, "rebuild", fresh=True)


def rebuilt(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Repeat the statement that built the graph before the one that uses it."""
    place, consumer, carrier = place_of(fault.clue("cause"), texts), fault.clue("consumer"), fault.clue("carrier")
    if place is None or consumer is None or consumer.site is None or carrier is None or not carrier.name:
        return
    file, made = place
    used = file.statement(file.line(consumer.site)) if consumer.site.path == file.path else None
    if used is None or not file.means_the_same(made, used) or _of_the_turn([made], file, arguments=False):
        return
    code = file.segment(made)
    if (buffer := _buffer(made, file)) is not None:
        target, value = buffer
        code = f"{target} = {file.segment(value)}"
    else:
        target = next(iter(named(file, made)), "")
    ways = [variable(replace(carrier, name=name)) for name in (carrier.name, *carrier.also)]
    name = next((way for way in ways if printed(way) == target), "")
    used = next((loop for loop in file.around(used) if target in map(ast.unparse, ast.walk(loop.iter))), used)
    # Beside each other they run equally often: then it is made anew already.
    if not name or (buffer is None and len(targets(made)) != 1) or used in file.block(made):
        return
    if "\n" not in code:
        moved = file.inserted(used, code, before=True)
        title = f"build {name} again before it is used, at {file.at(used.lineno)}"
        yield Candidate(title, EACH_STEP, moved, "rebuild", fresh=True)


def _buffer(statement: ast.stmt, file: Text) -> tuple[str, ast.expr] | None:
    """The attribute and the value of a buffer that ``statement`` registers."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(call.args) < 2:
        return None
    name = call.args[0]
    if call.func.attr != "register_buffer" or not isinstance(name, ast.Constant):
        return None
    if not isinstance(name.value, str) or not name.value.isidentifier():
        return None
    return f"{file.segment(call.func.value)}.{name.value}", call.args[1]


def cut_where_it_enters(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach a state that feeds itself before the line that reads it, where its new value is used in the same step:
    detached after that line, the step would lose its own graph."""
    place, carrier = place_of(fault.clue("cause"), texts), fault.clue("carrier")
    if place is None or carrier is None or not feeds_itself(fault):
        return
    file, statement = place
    for target in targets(statement):
        if not is_target(target, carrier, file) or not _used_beside(target, statement, file):
            continue
        code = file.segment(target)
        several = keys(carrier.name) > isinstance(target, ast.Subscript)
        for way, line, title, meaning in anew(code, file, several=several):
            if way == "cut":
                if guard := _guard(target, statement, file):
                    line = f"if {guard}:\n    {line}"
                title = f"{title} before it is taken up, at {file.at(statement.lineno)}"
                yield Candidate(title, meaning, file.inserted(statement, line, before=True), way)


def grown_from_values(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach what a line adds to where it takes it up, if a backward meets the weights of an earlier step there."""
    place = place_of(fault.clue("saved by"), texts)
    if place is None or "an earlier step" not in fault.remedy:
        return
    file, statement = place
    for target in targets(statement):
        old = [each for each in ast.walk(statement) if isinstance(each, type(target)) and _reads_it(each, target)]
        if old:
            title = f"take up {file.segment(target)} without its graph at {file.at(statement.lineno)}"
            files = file.replaced_all([(each, f"{file.segment(each)}.detach()") for each in old])
            yield Candidate(title, "each step learns from what is new in it; the value is carried on", files, "cut")


def detached_after_backward(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach the carrier after the backward that freed its graph; where it feeds itself, it may also be reset."""
    freed, carrier = fault.clue("freed by"), fault.clue("carrier")
    place = place_of(freed, texts)
    name = variable(carrier)
    if place is None or carrier is None or freed is None or freed.site is None or name != carrier.name:
        return
    if name.isidentifier() and carrier.function == freed.site.function:
        file, statement = place
        for way, code, title, meaning in anew(name, file, several=False):
            if way == "cut" or feeds_itself(fault):
                title = f"{title} after the backward at {file.at(statement.lineno)}"
                yield Candidate(title, meaning, file.inserted(statement, code), way, fresh=way != "cut")


def kept_detached(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach a state after the statement that makes it; where it feeds itself, it may also be reset."""
    carriers = [clue for clue in fault.clues if clue.role == "carrier"]
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
                for way, code, title, meaning in anew(file.segment(target), file, several=several):
                    if way == "cut" or feeds_itself(fault):
                        files = file.inserted(statement, code)
                        title = f"{title} where it is kept, after {file.at(statement.lineno)}"
                        yield Candidate(title, meaning, files, way, fresh=way != "cut")


def handed_back(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Detach after the backward what a call gave that gets it again in the next turn: there it has another name."""
    place, carrier = place_of(fault.clue("freed by"), texts), fault.clue("carrier")
    if place is None or carrier is None:
        return
    file, statement = place
    taken = {
        file.segment(target): None
        for loop in file.around(statement, (ast.For, ast.While))[:1]
        for call in ast.walk(loop)
        if isinstance(call, ast.Assign) and isinstance(call.value, ast.Call)
        for target in targets(call)
        if isinstance(target, (ast.Name, ast.Attribute)) and _reads(target, call)
    }
    for name in taken:
        for way, code, title, meaning in anew(name, file, several=keys(carrier.name) > 0):
            if way == "cut":
                title = f"{title} after the backward at {file.at(statement.lineno)}"
                yield Candidate(title, meaning, file.inserted(statement, code), way)


def anew(name: str, file: Text, *, several: bool) -> Iterator[tuple[str, str, str, str]]:
    """The ways to drop the graph of a state: (way, code, title, meaning). ``several``: it is a tuple of tensors."""
    carried = "each step learns from its own graph; the value is carried on"
    nothing = "each step learns from its own graph and begins with zeros; nothing is remembered"
    zeros = "{0}.new_zeros({0}.shape)"
    for way, form, title, meaning in (
        ("cut", "{0}.detach()", f"detach {name}", carried),
        ("afresh", zeros, f"start {name} afresh", nothing),
    ):
        parts = f"({form.format('part')} for part in {name})"
        if several and file.has_records:
            yield way, f"{name} = {name}._make{parts}", title, meaning
        yield way, f"{name} = {f'tuple{parts}' if several else form.format(name)}", title, meaning


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
        for node in ast.walk(file.function(statement) or file.tree)
        if isinstance(node, ast.If) and node.lineno < statement.lineno and ast.unparse(node.test) == f"{code} is None"
    ]
    return any(code in named(file, each) for test in tests for each in test.body)


def _reads(target: ast.expr, statement: ast.stmt) -> bool:
    """Whether ``statement`` reads ``target``, written in the same way."""
    return any(_reads_it(node, target) for node in ast.walk(statement))


def _reads_it(node: ast.AST, target: ast.expr) -> bool:
    path = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
    return path and ast.unparse(node) == ast.unparse(target)


def _used_beside(target: ast.expr, statement: ast.stmt, file: Text) -> bool:
    """Whether another statement of the function reads ``target``."""
    around = ast.walk(file.function(statement) or file.tree)
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
        if not isinstance(node, ast.Assign):
            continue
        for each in node.targets:
            pairs = (
                zip(each.elts, node.value.elts, strict=False)
                if isinstance(each, ast.Tuple) and isinstance(node.value, ast.Tuple)
                else [(each, node.value)]
            )
            for name, value in pairs:
                if _is_none(value) and file.segment(name).rpartition(".")[2] == last:
                    return True
    return False


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
