"""Options of command lines, found where a program declares them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from verify.syntax import last_name

_BOTH = "BooleanOptionalAction"
#: Actions that take no value, with what the option is then.
_FLAGS = {"store_true": True, "store_false": False, _BOTH: True}
#: A larger batch than this is none for a trial.
_LARGEST = 256


class Option(NamedTuple):
    """An option as one types it, the attribute that it ends up in, what its ``action`` makes of it, and what is made
    of its value (the ``type`` as it is written)."""

    name: str
    target: str
    action: str = ""
    kind: str = ""

    @property
    def flag(self) -> bool:
        """Whether it takes no value."""
        return self.action in _FLAGS

    def words(self, truth: bool) -> tuple[str, ...]:
        """What to type so that it counts as ``truth``; empty where that is not known."""
        if self.action == _BOTH:
            return (self.name if truth else f"--no-{self.name.lstrip('-')}",)
        if self.flag:
            return (self.name,) if _FLAGS[self.action] is truth else ()
        if self.kind == "bool":
            # What is made of any text but the empty one is true.
            return self.name, "1" if truth else ""
        if self.kind in ("int", "float"):
            return self.name, str(int(truth))
        # A function of somebody's own, which reads such words.
        return () if self.kind in ("", "str") else (self.name, str(truth))


def arguments(trees: Mapping[str, ast.AST], test: ast.expr, wanted: bool) -> tuple[str, ...]:
    """The arguments that make ``test`` come out as ``wanted``: a flag, or the value that an option is compared with.

    Empty where they are not known. What is compared need not come from the option: a run has to show it.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return arguments(trees, test.operand, not wanted)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if wanted else ast.Or):
        return tuple(word for value in test.values for word in arguments(trees, value, wanted))
    if isinstance(test, ast.BoolOp):
        return next(filter(None, (arguments(trees, value, wanted) for value in test.values)), ())
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        value = test.comparators[0]
        same = isinstance(test.ops[0], ast.Eq) if wanted else isinstance(test.ops[0], ast.NotEq)
        if isinstance(test.left, ast.BinOp):
            return _each_time(trees, test.left, value) if same else ()
        found = option(trees, test.left)
        if found is not None and same and isinstance(value, ast.Constant) and isinstance(value.value, (str, int)):
            return () if found.flag else (found.name, str(value.value))
        return ()
    found = option(trees, test) if isinstance(test, (ast.Name, ast.Attribute)) else None
    return () if found is None else found.words(wanted)


def together(sets: Iterable[tuple[str, ...]], given: Sequence[str]) -> tuple[str, ...]:
    """All ``sets`` of arguments in one, each option once: of two that want it with other values the first one's.

    Sets with an option that is ``given`` already are left out.
    """
    taken = {word.partition("=")[0] for word in given}
    found: list[str] = []
    for words in sets:
        names = {word for word in words if word.startswith("-")}
        if not names & taken:
            taken |= names
            found += words
    return tuple(found)


def _each_time(trees: Mapping[str, ast.AST], count: ast.BinOp, value: ast.expr) -> tuple[str, ...]:
    """``--every 1`` for ``epoch % args.every == 0``; of other sums nothing is known."""
    found = option(trees, count.right) if isinstance(count.op, ast.Mod) else None
    zero = isinstance(value, ast.Constant) and value.value == 0
    return (found.name, "1") if found is not None and not found.flag and zero else ()


def option(trees: Mapping[str, ast.AST], expression: ast.AST) -> Option | None:
    """The option that decides ``expression``: one that ``add_argument`` declares under a name which is read there."""
    read = {last_name(node) for node in ast.walk(expression)} - {""}
    known = (found for tree in trees.values() for found in declared(tree)) if read else ()
    return next((found for found in known if found.target in read), None)


def declared(tree: ast.AST) -> Iterator[Option]:
    """The option of each ``add_argument`` with a literal name."""
    for name, target, values in _added(tree):
        if name.startswith("-"):
            action, kind = values.get("action"), values.get("type")
            made = action.value if isinstance(action, ast.Constant) else "" if action is None else last_name(action)
            yield Option(name, target, str(made), "" if kind is None else ast.unparse(kind))


def _added(tree: ast.AST) -> Iterator[tuple[str, str, dict[str | None, ast.expr]]]:
    """The name of each argument that is added, the attribute that it ends up in, and all that is said of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            names = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            long = next((name for name in names if name.startswith("--")), next(iter(names), ""))
            values = {each.arg: each.value for each in node.keywords}
            given = getattr(values.get("dest"), "value", None)
            yield long, given if isinstance(given, str) else long.lstrip("-").replace("-", "_"), values


def batch_sizes(trees: Mapping[str, ast.AST], given: Sequence[str] = ()) -> list[int]:
    """What the loaders of ``trees`` are told to be the size of a batch: numbers that stand there, and defaults of the
    options that do, or what is ``given`` for these on the command line."""
    known = {target: value for target, value in defaults(trees) if _is_size(value)}
    names = {option.name: option.target for tree in trees.values() for option in declared(tree)}
    for place, word in enumerate(given):
        name, _, value = word.partition("=")
        value = value or "".join(given[place + 1 : place + 2])
        if name in names and value.isdigit():
            known[names[name]] = int(value)
    sizes = list(_sizes(trees))
    found: list[Any] = [each.value if isinstance(each, ast.Constant) else known.get(last_name(each)) for each in sizes]
    return list(dict.fromkeys(each for each in found if _is_size(each)))


def smaller(trees: Mapping[str, ast.AST], given: Sequence[str], size: int) -> tuple[str, ...]:
    """The words that have the loaders of ``trees`` take batches of ``size``: the option that they are told theirs by.

    Empty where no option tells them, or where it is ``given`` already: whoever gave it knows why.
    """
    told = {last_name(each) for each in _sizes(trees)} - {""}
    found = next((each for tree in trees.values() for each in declared(tree) if each.target in told), None)
    if found is None or found.flag or any(word.partition("=")[0] == found.name for word in given):
        return ()
    return found.name, str(size)


def _sizes(trees: Mapping[str, ast.AST]) -> Iterator[ast.expr]:
    """What stands for the size of a batch wherever a loader is made."""
    for node in (each for tree in trees.values() for each in ast.walk(tree)):
        if isinstance(node, ast.Call) and last_name(node.func) == "DataLoader":
            yield from [each.value for each in node.keywords if each.arg == "batch_size"] or node.args[1:2]


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 < value <= _LARGEST


def defaults(trees: Mapping[str, ast.AST]) -> Iterator[tuple[str, Any]]:
    """The attribute and the default of each option whose default is a literal; of one without, what stands for none."""
    for tree in trees.values():
        for _, target, given in _added(tree):
            yes = getattr(given.get("action"), "value", "") == "store_false"
            try:
                value = ast.literal_eval(given["default"]) if "default" in given else yes if "action" in given else None
            except (ValueError, TypeError, SyntaxError):
                continue
            if target and (value is None or isinstance(value, (bool, int, float, str))):
                yield target, value
