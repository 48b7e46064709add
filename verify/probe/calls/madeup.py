"""Calls of functions with what is made up: an object of their class, arguments; told as a recipe.

Which fits is tried in a process of its own, so that calls that fail leave nothing behind.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import recipes, trials

if TYPE_CHECKING:
    from .drive import Drive

#: How long one choice may be tried, in seconds of the processor.
_SECONDS = 4.0
#: The best of those that did not raise is tried again by itself, because those before it may have helped; so often.
_AGAIN = 3
#: How long it is waited for, in proportion: the machine may be busy.
_WALL = 4


class Unmade(Exception):
    """Why a function could not be called."""


class Made:
    """The calls of the function ``one`` (see :class:`verify.reaching.drives.Drive`) that can be made up.

    A recipe has ``owner`` (``alive``, or how its constructor is called; None where there is none) and ``arguments``:
    ``site``, the number of a call of the program's whose arguments can be had, or ``made``, recipes by parameter.
    """

    def __init__(self, drive: Drive, one: dict[str, Any], silence: Callable[[], Callable[..., list[Any]]]) -> None:
        self._drive = drive
        self._one = one
        self._silence = silence
        self._watch: Callable[..., list[Any]] | None = None

    def found(self) -> dict[str, Any]:
        """Of the recipes that raise nothing the one that runs most of the wanted lines, the first of equals."""
        owner = self._owner()
        # An object like the owner, for the shapes of what it takes.
        with recipes.unmoved():
            kind = None if owner is None else self._object(owner)
        hints = {name: self._with_objects(name, hint) for name, hint in self._one["hints"].items()}
        with recipes.unmoved():
            known = [self._construct(each["maker"], each["arguments"]) for h in hints.values() for each in h["objects"]]
        known += [self._drive.alive(name) for name, hint in hints.items() if "alive" in hint["roles"]]
        kind = next((each for each in known if hasattr(each, "modules")), kind)
        among = [{"owner": owner, "arguments": each} for each in self._arguments(self._one, hints, kind)]
        number = self._best(among, self._score, len(self._one["lines"]) or 1)
        if number < 0:
            name = self._one["name"]
            raise Unmade(f"{len(among)} calls of {name} with made-up arguments were tried, and each raised")
        return among[number]

    def _owner(self) -> dict[str, Any] | None:
        maker = self._one["owner"]
        if maker is None:
            return None
        kind = self._drive.kind(self._one)
        try:
            self._drive.instance(kind)
            return {"alive": True}
        except Unmade:
            if not isinstance(kind, type):
                raise
        among = list(self._arguments(maker, maker["hints"], None))
        number = self._best(among, functools.partial(self._constructs, maker))
        if number < 0:
            raise Unmade(f"{len(among)} ways to make a {kind.__name__} were tried, and each raised")
        made: dict[str, Any] = among[number]
        return made

    def _with_objects(self, name: str, hint: dict[str, Any]) -> dict[str, Any]:
        """``hint`` with ``objects``: how one of its classes is made, where that can be found; what is alive and called
        ``name`` comes first."""
        try:
            self._drive.alive(name)
            return {**hint, "roles": ["alive", *hint["roles"]], "objects": []}
        except Unmade:
            pass
        found = []
        for maker in hint.get("makers", ()):
            among = list(self._arguments(maker, maker["hints"], None))
            number = self._best(among, functools.partial(self._constructs, maker))
            if number >= 0:
                found.append({"name": maker["name"].rpartition(".")[0], "maker": maker, "arguments": among[number]})
        roles = [role for role in hint["roles"] if role != "object" or found] or ["module", "tensor"]
        return {**hint, "roles": roles, "objects": found}

    def _constructs(self, maker: dict[str, Any], recipe: dict[str, Any]) -> int:
        self._construct(maker, recipe)
        return 1

    def _construct(self, maker: dict[str, Any], recipe: dict[str, Any]) -> Any:
        arguments, named = self._values(maker, recipe)
        return self._drive.kind(maker)(*arguments, **named)

    @staticmethod
    def _arguments(one: dict[str, Any], hints: dict[str, Any], owner: Any) -> Any:
        sites = [{"site": number} for number in range(len(one["sites"]))]
        return itertools.chain(sites, ({"made": each} for each in recipes.calls(hints, owner)))

    def _best(self, among: list[Any], score: Callable[[Any], int], enough: int = 1) -> int:
        return best(len(among), lambda number: score(among[number]), enough, self._silenced, _SECONDS)

    def _silenced(self) -> None:
        self._watch = self._silence()

    def _score(self, recipe: dict[str, Any]) -> int:
        lines = {(self._one["path"], line) for line in self._one["lines"]}
        seen = self._watch(lines) if self._watch is not None else []
        function, arguments, named = self.call(recipe)
        recipes.call(function, arguments, named)
        return len(lines.intersection(map(tuple, seen)))

    # What a recipe comes to.

    def call(self, recipe: dict[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """(function, arguments, named arguments)."""
        arguments, named = self._values(self._one, recipe["arguments"])
        owner = recipe["owner"]
        if owner is None:
            return self._drive.found(self._one), arguments, named
        return getattr(self._object(owner), self._one["name"].rpartition(".")[2]), arguments, named

    def _object(self, owner: dict[str, Any]) -> Any:
        kind = self._drive.kind(self._one)
        if "alive" in owner:
            return self._drive.instance(kind)
        return self._construct(self._one["owner"], owner)

    def _values(self, one: dict[str, Any], recipe: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if "site" in recipe:
            return self._drive.arguments(one["sites"][recipe["site"]])
        numbered = enumerate(recipe["made"].items(), 1)
        return (), {
            name: self._construct(each["how"]["maker"], each["how"]["arguments"])
            if each["is"] == recipes.Is.OBJECT
            else self._drive.alive(name)
            if each["is"] == recipes.Is.ALIVE
            else recipes.make(each, number)
            for number, (name, each) in numbered
        }

    def told(self, recipe: dict[str, Any]) -> str:
        """``recipe`` for people."""
        owner = recipe["owner"]
        parts = [self._told(self._one, recipe["arguments"])]
        if owner is not None and "alive" not in owner:
            kind = self._one["name"].rpartition(".")[0]
            parts.append(f"on a {kind} made {self._told(self._one['owner'], owner)}")
        return ", ".join(parts)

    @staticmethod
    def _told(one: dict[str, Any], recipe: dict[str, Any]) -> str:
        if "site" in recipe:
            site = one["sites"][recipe["site"]]
            return f"with the arguments of {site['path']}:{site['line']}"
        told = ", ".join(f"{name}: {recipes.told(each)}" for name, each in recipe["made"].items())
        return f"with made-up arguments ({told})" if told else "without arguments"


def best(count: int, attempt: Callable[[int], int], enough: int, silence: Callable[[], None], seconds: float) -> int:
    """The number, below ``count``, of the first call ``attempt(number)`` that scores most without an error; -1: none.

    A score of ``enough`` ends the search; it takes ``seconds`` of the processor at most. ``silence`` is called in the
    child process, which prints nothing.
    """
    until = time.monotonic() + _WALL * seconds
    failed: set[int] = set()
    for _ in range(_AGAIN):
        numbers = [number for number in range(count) if number not in failed]
        scores = _scores(numbers, attempt, enough, silence, seconds, until)
        if not scores:
            return -1
        found = max(scores, key=lambda number: (scores[number], -number))
        if found == numbers[0] or found in _scores([found], attempt, enough, silence, seconds, until):
            return found
        failed.add(found)
    return -1


def _scores(
    numbers: Sequence[int],
    attempt: Callable[[int], int],
    enough: int,
    silence: Callable[[], None],
    seconds: float,
    until: float,
) -> dict[int, int]:
    if until <= time.monotonic() or not hasattr(os, "fork"):
        return {}
    pid, pipe = trials.forked()
    if not pid:
        _child(numbers, attempt, enough, silence, pipe, seconds)
    lines = trials.heard(pid, pipe, until).decode().split("\n")[:-1]
    return {int(number): int(score) for number, score in (line.split() for line in lines)}


def _child(
    numbers: Sequence[int],
    attempt: Callable[[int], int],
    enough: int,
    silence: Callable[[], None],
    writing: int,
    seconds: float,
) -> None:
    try:
        silence()
        trials.unheard()
        trials.limit(seconds)
        for number in numbers:
            try:
                score = attempt(number)
            except BaseException:
                continue
            os.write(writing, f"{number} {score}\n".encode())
            if score >= enough:
                break
    finally:
        os._exit(0)
