"""Methods of parsers of command lines."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.python import COMMAND_LINES
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import NUMBER, Tuple, Unknown
from codemods.graph.python.builtin_calls import BuiltinCalls
from codemods.graph.python.unseen.methods import OF_UNSEEN
from codemods.graph.run.contents import ANY
from codemods.source.walking import walk


@OF_UNSEEN.of("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args")
def _parse(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    given = args.get(1, "namespace")
    if given is not None and receiver.path in COMMAND_LINES:
        # its options are set on that
        engine.set_attribute(given, ANY, engine.run.unknown("option", data=True, public=True), at)
        return Tuple((given, engine.run.unknown("list of words", data=True))) if "known" in name else given
    if receiver.path not in COMMAND_LINES or engine.run.s.get((receiver.oid, ANY)) is not None:
        # or something that may have a graph is among the defaults
        return None
    # plain data; the file says which of it are numbers
    options = engine.run.unknown("argparse.Namespace", data=True, public=True)
    for option in engine.run.frame.file.once(_numbers_asked_for, engine.run.frame.file.tree):
        engine.run.s.set((options.oid, option), NUMBER)
    if "known" in name or receiver.path == "optparse.OptionParser":
        return Tuple((options, engine.run.unknown("list of words", data=True, public=True)))
    return options


def _numbers_asked_for(tree: ast.Module) -> frozenset[str]:
    """The options of a command line that are numbers or flags, and never None, by the calls of ``add_argument`` (docs:
    argparse)."""
    numbers: set[str] = set()
    others: set[str] = set()
    for call in walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        given = {k.arg: k.value for k in call.keywords}
        if call.func.attr == "set_defaults":
            others.update(name or "" for name in given)
        elif call.func.attr == "add_argument":
            name = _destination(call.args, given)
            (numbers if _is_number_option(given) else others).add(name)
    return frozenset(numbers - others)


def _destination(flags: list[ast.expr], given: dict[str | None, ast.expr]) -> str:
    named = given.get("dest")
    texts = [f.value for f in ([named] if named else flags) if isinstance(f, ast.Constant) and isinstance(f.value, str)]
    long = next((text for text in texts if text.startswith("--")), texts[0] if texts else "")
    return long.lstrip("-").replace("-", "_")


def _is_number_option(given: dict[str | None, ast.expr]) -> bool:
    if None in given or "nargs" in given:
        return False
    action, kind, default = (given.get(name) for name in ("action", "type", "default"))
    if action is not None:
        return isinstance(action, ast.Constant) and action.value in ("store_true", "store_false") and default is None
    if kind is not None and not (isinstance(kind, ast.Name) and kind.id in ("int", "float")):
        return False
    if isinstance(default, ast.UnaryOp):
        default = default.operand
    return isinstance(default, ast.Constant) and type(default.value) in (int, float)
