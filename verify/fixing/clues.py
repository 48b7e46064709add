"""What a change is, and what the doctor's clues correspond to in the text of a program."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from verify.diagnosis.model import Clue, Fault
from verify.fixing.texts import Text, Texts
from verify.syntax import targets


@dataclass(frozen=True)
class Candidate:
    """A change: what it does in a sentence, what else it means for the program, and the new texts by path.

    ``fresh``: it computes again what was stale, so losses after a step must differ. ``summed``: it replaces two
    backwards by one, so each loss is the sum of two that another change computes. ``same``: by the very expression that
    made the stale value, so a cut would drop what the program learns by it. ``way``: the kind of repair; a second one
    of the same kind would show the user nothing new. ``parts``: the changes that it is made of. ``known``: rules have
    proved it by the text, and what of it does not run needs no run.
    """

    title: str
    meaning: str
    files: Mapping[str, str]
    way: str = ""
    fresh: bool = False
    summed: bool = False
    same: bool = False
    parts: int = 1
    known: bool = False


Maker = Callable[[Fault, Texts], Iterator[Candidate]]


def at(role: str) -> Callable[[Callable[[Fault, Texts, Text, ast.stmt], Iterator[Candidate]]], Maker]:
    """Give a maker of changes the file and the statement of the clue ``role`` (``site``: where the fault shows); where
    there is none, it has nothing to offer."""

    def placed(make: Callable[[Fault, Texts, Text, ast.stmt], Iterator[Candidate]]) -> Maker:
        @functools.wraps(make)
        def maker(fault: Fault, texts: Texts) -> Iterator[Candidate]:
            place = place_of(Clue("site", fault.site) if role == "site" else fault.clue(role), texts)
            return iter(()) if place is None else make(fault, texts, *place)

        return maker

    return placed


def place_of(clue: Clue | None, texts: Texts) -> tuple[Text, ast.stmt] | None:
    """The file and the statement of a clue."""
    if clue is None or clue.site is None:
        return None
    file = Text(clue.site.path, texts)
    statement = file.statement(file.line(clue.site))
    return None if statement is None else (file, statement)


def variable(clue: Clue | None) -> str:
    """The name of a carrier without the index of an element: what a statement assigns."""
    if clue is None or not clue.name:
        return ""
    name = clue.name
    while name.endswith("]") and name[name.rfind("[") + 1 : -1].replace("*", "0").isdigit():
        name = name[: name.rfind("[")]
    return name


def named(statement: ast.stmt) -> list[str]:
    """What ``statement`` assigns, as Python would print it."""
    return [ast.unparse(target) for target in targets(statement)]


def printed(name: str) -> str:
    """A path from a variable as Python code; empty where it is not an expression."""
    try:
        return ast.unparse(ast.parse(name, mode="eval").body)
    except SyntaxError:
        return ""


def within_a_step(fault: Fault) -> bool:
    """Whether two losses of one step share a graph, so that learning from both is right."""
    return "both losses" in fault.remedy


def apart_in_a_step(fault: Fault) -> bool:
    """Whether two losses of one step share a graph, and an optimizer steps between their backwards."""
    return "two losses of one step" in fault.remedy


def same_loss(fault: Fault) -> bool:
    """Whether one loss is walked twice."""
    return "if twice is meant" in fault.remedy


_KEY = re.compile(r"\[[^][]*\]$")


def base(name: str) -> str:
    """A path from a variable without the keys and indices at its end: the container."""
    while _KEY.search(name):
        name = _KEY.sub("", name)
    return name


def keys(name: str) -> int:
    """The number of keys and indices at the end of a path."""
    count = 0
    while _KEY.search(name):
        name, count = _KEY.sub("", name), count + 1
    return count


def same_place(code: str, name: str) -> bool:
    """Whether ``code``, a variable, attribute or element, may be what the path ``name`` leads to, or the tuple or list
    around it: objects and indices may be named differently elsewhere, but keys that are text may not."""
    if base(code).rpartition(".")[2] != base(name).rpartition(".")[2] or not 0 <= keys(name) - keys(code) <= 1:
        return False
    while keys(name) > keys(code):
        name = _KEY.sub("", name)
    pairs = zip(_KEY.findall(code), _KEY.findall(name), strict=False)
    return all(one == other for one, other in (map(_text, pair) for pair in pairs) if one and other)


def _text(key: str) -> str:
    """The text within a key; empty where it is no text."""
    return key[2:-1].strip("'\"") if key[1:2] in ("'", '"') else ""
