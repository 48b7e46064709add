"""Calls that are left out because a program lacks what they need: a made-up value comes back, in every run the same.

What it is follows from the code behind it (:mod:`verify.reaching.values`); which of several, that is found by trial:
the process is forked, each copy goes on with one of them, and the one that comes furthest is written down.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..guarding.guard import Write
from ..lines.sites import Tree
from . import stops, trials, values
from .observing import Observer
from .recipes import Is

LEFT = "__codemod_left__"
#: How long a copy goes on, in seconds of the processor, and all of one place together, in seconds.
_SECONDS, _WALL = 5.0, 25.0
#: And where only a file is missing, which takes less to read than a program to train.
_FILE, _ASKED = 2.5, 1.0
#: And after it has trained, or come to a line that is wanted.
_MORE = 1.0
_MOST, _SKELETONS = 150, 8
#: As many where it trains already.
_FEW = 12
#: Where so many options, one of each kind, make no difference, the others are not tried.
_ALIKE = 16
#: And where what is in a file is looked for: lines have more forms.
_ALIKE_LINES = 48
#: So many steps, or backwards where nothing steps, show that a program trains.
_STEPS, _BACKWARDS = 2, 4
_MODULES = 4


def _nothing() -> None:
    """Nothing is to be removed."""


class _Copy(Exception):
    """Raised in a copy of the process, which goes on with ``recipes`` by their numbers."""

    def __init__(self, recipes: dict[int, Any]) -> None:
        self.recipes = recipes


class _Score(NamedTuple):
    """How far a copy came: lines that are wanted, whether it trains, other lines; whether it stopped for want of
    something else, of which no value here is to blame; and whether it came to its end without an error, or even went
    on until its time was over."""

    wanted: int = 0
    trains: int = 0
    lines: int = -1
    wants: bool = False
    goes_on: int = 0


class Leaving:
    """What stands for the calls ``left`` (as :meth:`verify.reaching.leaving.Left.configuration` has them).

    ``quiet(tell)`` has a copy write nothing and tell its events to ``tell``; ``modules()`` are those that are alive,
    ``wanted`` are the lines that a run is to reach, ``loaded()`` the files that it has come to, and
    ``path(file)`` is the path of a file of the tree. With ``again`` all
    are chosen anew, by their skeletons. Writes ``left`` events.
    """

    def __init__(
        self,
        left: list[dict[str, Any]],
        write: Write,
        observer: Observer,
        quiet: Callable[[Write], None],
        modules: Callable[[], Iterable[Any]],
        wanted: set[tuple[str, int]],
        loaded: Callable[[], Iterable[str]],
        path: Callable[[str], str | None],
        again: bool,
    ) -> None:
        self._left = left
        self._write = write
        self._observer = observer
        self._quiet = quiet
        self._modules = modules
        self._wanted = wanted
        self._again = again
        self._turns = [0] * len(left)
        self._pid = os.getpid()
        self._copy = False
        self._near = set(wanted)
        self._names: set[str] = set()
        self._tries = 0
        self._loaded = loaded
        self._path = path
        self._clean: Callable[[], None] = _nothing
        self._seconds = _SECONDS

    def install(self) -> None:
        """Make the function known to every module."""
        if self._left:
            setattr(builtins, LEFT, self._instead)

    def _instead(self, number: int, receiver: Any) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            one = self._left[number]
            self._turns[number] += 1
            turn = self._turns[number]
            self._observer.see(f"{number} {one['place']}", (receiver, arguments, named), deep=one["deep"])
            try:
                if self._again:
                    self._again = False
                    self._searched_again()
                if one["recipe"] is None and self._copy:
                    one["recipe"] = self._likely(one)
                elif one["recipe"] is None:
                    self._searched(number, one)
            except _Copy as copy:
                for each, recipe in copy.recipes.items():
                    self._left[each]["recipe"] = recipe
            if turn == 1 and os.getpid() == self._pid:
                self._write(self._event(one))
            made = values.make(one["recipe"], number, turn)
            if turn == 1:
                values.FIRST[number] = made
            return made

        return call

    def chosen(self, place: dict[str, Any], clean: Callable[[], None]) -> Any:
        """What the file at ``place`` (see :mod:`.files`) is made of; None where nobody can try it. ``clean`` removes
        what copies of this process have made."""
        from . import contents

        one = {"place": place["path"], "form": place["form"], "recipe": None, "skeletons": contents.skeletons}
        if not self._copy and os.getpid() != self._pid:
            return None
        if self._copy:
            # As a rule something fits; whether something is there decides about more than that.
            if place["kind"] == "exists":
                return None
            found = list(itertools.islice(contents.skeletons(place["form"]), 2))[-1]
            return _chosen({0: found}, self._begun(one, found))[0]
        number = len(self._left)
        self._left.append(one)
        self._clean, self._seconds = clean, _ASKED if place["kind"] == "exists" else _FILE
        try:
            self._searched(number, one)
        except _Copy as copy:
            for each, recipe in copy.recipes.items():
                self._left[each]["recipe"] = recipe
        finally:
            self._clean, self._seconds = _nothing, _SECONDS
        return one["recipe"]

    @staticmethod
    def _event(one: dict[str, Any]) -> dict[str, Any]:
        event = {"event": "left", "place": one["place"], "span": one["span"], "why": one["why"]}
        search = {key: one.get(key) for key in ("recipe", "skeleton", "picks")}
        return {**event, **search, "told": values.told(one["recipe"])}

    def _likely(self, one: dict[str, Any]) -> Any:
        skeleton = next(values.skeletons(one["form"], ()), {"options": [{"is": Is.HOLLOW}]})
        return _chosen({0: skeleton}, self._begun(one, skeleton))[0]

    # The trial.

    def _searched(self, number: int, one: dict[str, Any]) -> None:
        """Choose the recipe with which the program comes furthest."""
        until, best = time.monotonic() + _WALL, _Score()
        hollow: Any = None if "skeletons" in one else {"is": Is.HOLLOW}
        one.update(recipe=hollow, skeleton=None, picks=[])
        every = one["skeletons"](one["form"]) if "skeletons" in one else values.skeletons(one["form"], self._modules())
        for skeleton in itertools.islice(every, _SKELETONS):
            ways = {number: skeleton}
            picks, score = self._climbed(ways, self._begun(one, skeleton), until)
            if score > best:
                best = score
                one.update(recipe=_chosen(ways, picks)[number], skeleton=skeleton, picks=picks)
            if self._enough(best) or time.monotonic() > until:
                break

    def _begun(self, one: dict[str, Any], skeleton: Any) -> list[int]:
        """Where to begin: with what was found for another place that could be the same."""
        options = [leaf["options"] for leaf in values.leaves(skeleton)]
        for other in self._left:
            if other is one or not other.get("picks") or not other.get("skeleton"):
                continue
            if [leaf["options"] for leaf in values.leaves(other["skeleton"])] == options:
                return list(other["picks"])
        return [0] * len(options)

    def _searched_again(self) -> None:
        """Choose anew for all that is left out together: what fits the one may not fit the other."""
        ways = {number: one["skeleton"] for number, one in enumerate(self._left) if one.get("skeleton")}
        known = [pick for number in ways for pick in self._left[number]["picks"]]
        picks, _ = self._climbed(ways, known, time.monotonic() + _WALL)
        recipes = _chosen(ways, picks)
        for number, mine in _apart(ways, picks):
            self._left[number].update(recipe=recipes[number], picks=mine)

    def _climbed(self, ways: dict[int, Any], picks: list[int], until: float) -> tuple[list[int], _Score]:
        """The picks of options that come furthest, changed one by one from ``picks``, and how far that is.

        First those are changed whose names stand where a copy stopped.
        """
        loaded = set(self._loaded())
        self._near = {line for line in self._wanted if line[0] in loaded}
        found = [leaf for skeleton in ways.values() for leaf in values.leaves(skeleton)]
        self._tries = 0
        score = self._tried(ways, picks, until)
        while True:
            blamed = [place for place, leaf in enumerate(found) if leaf.get("name") in self._names]
            rest = [place for place in range(len(found)) if place not in blamed and not found[place].get("name")]
            # Of a file nothing else is to blame.
            others = range(0 if self._seconds != _SECONDS else len(found))
            for place in blamed or rest or others:
                better = self._changed(ways, picks, place, found[place]["options"], score, until)
                if better is not None:
                    picks, score = better
                    break
            else:
                return picks, score

    def _changed(
        self, ways: dict[int, Any], picks: list[int], place: int, options: list[Any], score: _Score, until: float
    ) -> tuple[list[int], _Score] | None:
        """The first other option at ``place`` with which a copy comes further than ``score``, and how far."""
        same, names = True, self._names
        most = _ALIKE if self._seconds == _SECONDS else _ALIKE_LINES
        for other in range(len(options)):
            done = self._enough(score) or self._tries > (_FEW if score.trains >= _STEPS else _MOST)
            if done or time.monotonic() > until or (same and other > most):
                break
            if other != picks[place]:
                self._tries += 1
                tried = [*picks[:place], other, *picks[place + 1 :]]
                came = self._tried(ways, tried, until)
                if came > score:
                    return tried, came
                same = same and came == score
        self._names = names
        return None

    def _enough(self, score: _Score) -> bool:
        if score.goes_on > 1 and self._seconds != _SECONDS:
            # Nothing in it is to blame so far.
            return True
        return score.wants or (score.trains >= _STEPS and score.wanted >= len(self._near))

    def _tried(self, ways: dict[int, Any], picks: list[int], until: float) -> _Score:
        """How far a copy of the process comes with the options that are picked."""
        left = until - time.monotonic()
        if left <= 0 or not hasattr(os, "fork"):
            return _Score()
        pid, pipe = trials.forked()
        if not pid:
            self._go_on(pipe)
            # What is like one of these is given the same.
            for number, mine in _apart(ways, picks):
                self._left[number].update(skeleton=ways[number], picks=mine)
            raise _Copy(_chosen(ways, picks))
        told = trials.heard(pid, pipe, time.monotonic() + min(left, 4 * self._seconds))
        self._clean()
        marks, ended, names = told.partition(b"\n")
        self._names = set(names.decode().split())
        trains = max(min(marks.count(b"S"), _STEPS), min(marks.count(b"B"), _BACKWARDS) * _STEPS // _BACKWARDS)
        # What does nothing is only put off by the next that does nothing.
        given = repr(_chosen(ways, picks))
        wants = b"M" in marks and Is.HOLLOW.value not in given and "absent" not in given
        goes_on = 0 if ended else 1 if b"X" in marks else 2
        return _Score(marks.count(b"W"), trains, marks.count(b"L"), wants, goes_on)

    def _go_on(self, writing: int) -> None:
        """Make this copy of the process one that only tells how far it comes."""
        trials.unheard()
        steps, wanted, file = [0], set(self._near), self._seconds != _SECONDS

        def tell(event: dict[str, Any]) -> None:
            kind, mark = event.get("event"), b""
            if kind == "reached":
                line = (event["path"], event["line"])
                mark = b"W" if line in wanted else b"L"
                wanted.discard(line)
            elif kind == "backward" and event["error"] is None:
                mark = b"B"
            elif kind == "step":
                mark = b"S"
                steps[0] += 1
            if mark:
                os.write(writing, mark)
            if steps[0] >= _STEPS and not wanted:
                os._exit(0)
            if (mark == b"S" and steps[0] == _STEPS) or (mark == b"W" and steps[0] >= _STEPS):
                signal.setitimer(signal.ITIMER_PROF, _MORE)

        def failed(kind: type[BaseException], error: BaseException, at: Any) -> None:
            names = " ".join(sorted(stops.names(at, self._path)))
            os.write(writing, b"M" * _wants(error, file) + b"\n" + names.encode())
            os._exit(0)

        def left() -> None:
            os.write(writing, b"X")
            os._exit(0)

        def exited(*_: Any) -> None:
            # As a rule a program says so that it lacks something.
            os.write(writing, b"\n")
            os._exit(0)

        self._quiet(tell)
        self._copy, sys.excepthook = True, failed
        for owner in (sys, builtins):
            for name in ("exit", "quit"):
                if hasattr(owner, name):
                    setattr(owner, name, exited)
        atexit.register(left)
        trials.limit(self._seconds)


def _apart(ways: dict[int, Any], picks: list[int]) -> Iterator[tuple[int, list[int]]]:
    """The picks of each of ``ways``, skeletons by their numbers."""
    rest = list(picks)
    for number, skeleton in ways.items():
        count = len(values.leaves(skeleton))
        yield number, rest[:count]
        rest = rest[count:]


def _chosen(ways: dict[int, Any], picks: list[int]) -> dict[int, Any]:
    """The recipe of each of ``ways``, skeletons by their numbers."""
    found = {}
    for number, mine in _apart(ways, picks):
        options = values.leaves(ways[number])
        found[number] = values.chosen(ways[number], iter([leaf["options"][pick] for leaf, pick in zip(options, mine)]))  # noqa: B905
    return found


def leaving_of(
    config: dict[str, Any], write: Write, observer: Observer, quiet: Callable[[Write], None], tree: Tree
) -> Leaving:
    """What ``config``, that of the session, has the program go without."""
    wanted = {(path, line) for group in config.get("watch") or [] for path, line in group}
    left, again = config.get("left") or [], bool(config.get("again"))
    return Leaving(left, write, observer, quiet, modules_alive, wanted, tree.loaded, tree.relative, again)


def modules_alive() -> list[Any]:
    """Some modules of torch's that are there, for the shapes of what they take; none where torch is not."""
    torch = sys.modules.get("torch")
    kind = getattr(getattr(torch, "nn", None), "Module", None)
    if kind is None:
        return []
    found = [each for each in gc.get_objects() if isinstance(each, kind)]
    inner = {id(child) for each in found for child in each.children()}
    return [each for each in found if id(each) not in inner][:_MODULES]


def _wants(error: BaseException, file: bool) -> bool:
    """Whether ``error`` tells of something that is missing, or that does nothing; of a ``file`` that is there only of
    another that is not."""
    if file:
        return isinstance(error, (FileNotFoundError, ModuleNotFoundError))
    return stops.missing(error) or "Nothing" in str(error) or "unpack (expected" in str(error)
