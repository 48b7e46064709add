"""The run's own knobs: loops that end after some turns, bounds that count as met, functions that are called at the end.

They are written into the texts that run, into the original and the rewritten ones alike, within their lines, so that
every line keeps its number; :mod:`verify.probe.lines.knobs` and :mod:`verify.probe.calls.drive` are what they call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codemods.rewriting.touched import standing
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source, source_from_bytes
from codemods.source.syntax import FAILURES
from verify.measured.results import Run
from verify.probe.lines.knobs import BOUND, TURN, TURNS
from verify.reaching.drives import Drive
from verify.reaching.leaving import Left, Unfound, edits
from verify.reaching.texts import Edit, Text
from verify.running.rewriting import Rewriter, Version
from verify.syntax import paths

#: Steps of a run that had no time for more.
_LEAST = 2
#: Comparisons of numbers; what is looked up in a container, or is None, is no bound.
_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Unfit(Exception):
    """A knob has no place in the rewritten text, so that the two programs could not be driven alike."""


@dataclass(frozen=True)
class Cap:
    """The loop at ``line`` of ``path`` (below the root, as it was read) ends after ``turns``."""

    path: str
    line: int
    turns: int


@dataclass(frozen=True)
class Bound:
    """The bounds in the condition at ``line`` of ``path`` count as met, or (``wanted`` is False) as not met."""

    path: str
    line: int
    wanted: bool = True


@dataclass(frozen=True)
class Knobs:
    """All that a run changes of its own accord, the same in the original and in the rewritten program."""

    caps: tuple[Cap, ...] = ()
    bounds: tuple[Bound, ...] = ()
    drives: tuple[Drive, ...] = ()
    left: tuple[Left, ...] = ()
    steps: int = 0
    """After so many steps the run ends, where it is not after those of the settings."""
    batch: int = 0
    """Loaders take batches of so many items at most; 0 for what they are told."""

    def __bool__(self) -> bool:
        return bool(self.caps or self.bounds or self.drives or self.left)

    def beside(self, other: Knobs) -> Knobs:
        """These with the caps and bounds of ``other``; where both turn the same, as these do."""
        caps = {(cap.path, cap.line): cap for cap in (*other.caps, *self.caps)}
        bounds = {(bound.path, bound.line): bound for bound in (*other.bounds, *self.bounds)}
        return replace(self, caps=tuple(caps.values()), bounds=tuple(bounds.values()))

    def shorter(self, plain: Run) -> Knobs:
        """These for a program that had no time for its steps in the run ``plain``: as many as it made there."""
        late = plain.record.end == "watchdog"
        return replace(self, steps=max(_LEAST, len(plain.record.steps))) if late else self

    def configuration(self) -> dict[str, Any]:
        """What the probe has to know of them."""
        drives = [drive.configuration() for drive in self.drives]
        left = [left.configuration() for left in self.left]
        found: dict[str, Any] = {"knobs": bool(self.caps or self.bounds), "drive": drives, "left": left}
        found.update({"arguments": True} if left else {}, **({"steps": self.steps} if self.steps else {}))
        found.update({"batch": self.batch} if self.batch else {})
        return found

    def over_tree(self, root: Path) -> dict[str, bytes]:
        """The files of the tree at ``root``, as it is, with what is left out. Raises :class:`Unfit`."""
        files = {}
        for path in dict.fromkeys(left.path for left in self.left):
            source = _source(root / path)
            files[path] = source.encode(self._within(path, source.text, source.text))
        return files

    def over(self, rewriter: Rewriter, root: Path, version: Version | None) -> dict[str, bytes]:
        """The files of ``version`` (None: of the tree at ``root`` as it is) with the knobs in them, by path below the
        root. Raises :class:`Unfit` where a knob has no one place there."""
        files = {} if version is None else dict(version.files)
        shown = {} if version is None else {rewriter.relative(path): path for path in version.new}
        paths = [cap.path for cap in self.caps] + [bound.path for bound in self.bounds]
        paths += [left.path for left in self.left]
        for path in dict.fromkeys(paths):
            source = _source(root / path) if version is None or path not in shown else version.sources[shown[path]]
            old = source.text
            new = old if version is None or path not in shown else version.new[shown[path]]
            files[path] = source.encode(self._within(path, old, new))
        return files

    def _within(self, path: str, old: str, new: str) -> str:
        tree = _parsed(new)
        before = tree if new == old else _parsed(old)
        wraps: list[tuple[ast.expr, str, str]] = []
        outs = [(number, left) for number, left in enumerate(self.left) if left.path == path]
        found = [edit for number, left in outs for edit in _out(number, left, old, new)]
        for cap in self.caps:
            if cap.path == path:
                loop = _same(cap.line, before, tree, old, new, (ast.For, ast.While))
                place = f"{f'{path}:{cap.line}'!r}, {cap.turns})"
                if isinstance(loop, ast.For):
                    wraps.append((loop.iter, f"{TURNS}((", f"), {place}"))
                else:
                    wraps.append((loop.test, f"{TURN}((", f"), {place}"))
        for bound in self.bounds:
            if bound.path == path:
                condition = _same(bound.line, before, tree, old, new, (ast.If,))
                bounds = list(comparisons(condition.test, bound.wanted, counters(tree)))
                if not bounds:
                    raise Unfit(f"{path}:{bound.line} has no bound")
                for expression, wanted in bounds:
                    wraps.append((expression, f"{BOUND}((", f"), {f'{path}:{bound.line}'!r}, {wanted})"))
        text = Text(new)
        for order, (expression, start, stop) in enumerate(wraps):
            begin, end = text.span(expression)
            # Around all that is left out there.
            found += [Edit(begin, begin, start.encode(), order - len(new)), Edit(end, end, stop.encode())]
        return text.edited(found)


NONE = Knobs()


@dataclass(frozen=True)
class Leaving:
    """What each run of a tree at ``root`` leaves out; see :class:`verify.running.runner.Leaving`."""

    root: Path
    left: tuple[Left, ...]

    def over(self, files: Mapping[str, bytes]) -> Mapping[str, bytes] | str:
        """``files`` and those of the tree without what is left out; or why that has no one place in them."""
        found, knobs = dict(files), Knobs(left=self.left)
        try:
            for path in dict.fromkeys(left.path for left in self.left):
                source = _source(self.root / path)
                new = source_from_bytes(files[path], path) if path in files else source
                found[path] = new.encode(knobs._within(path, source.text, new.text))
        except (Unfit, SourceError) as error:
            return str(error)
        return found

    def configuration(self) -> dict[str, Any]:
        """What the probe has to know of it."""
        return Knobs(left=self.left).configuration()


def comparisons(test: ast.expr, wanted: bool, known: frozenset[str]) -> Iterator[tuple[ast.expr, bool]]:
    """The comparisons of counters in ``test``, each with the truth value that makes ``test`` come out as ``wanted``."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from comparisons(value, wanted, known)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        if _remainder(test.operand):
            yield test, wanted
        else:
            yield from comparisons(test.operand, not wanted, known)
    elif isinstance(test, ast.Compare) and all(isinstance(op, _ORDERS) for op in test.ops):
        sides = [test.left, *test.comparators]
        plain = not any((isinstance(side, ast.Constant) and not _number(side.value)) or _text(side) for side in sides)
        if plain and any(_remainder(side) or paths(side) & known for side in sides):
            yield test, wanted


def counters(tree: ast.AST) -> frozenset[str]:
    """What counts turns somewhere in ``tree``: targets of loops, and what is added to."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AugAssign)):
            found |= {ast.unparse(each) for each in _targets(node.target)}
    return frozenset(found)


def _targets(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _targets(each)
    else:
        yield target


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _remainder(expression: ast.expr) -> bool:
    return isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Mod) and not _text(expression)


def _text(expression: ast.expr) -> bool:
    """Whether a text is made here, with ``%`` or without."""
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Mod):
        return _text(expression.left)
    return isinstance(expression, ast.JoinedStr) or (
        isinstance(expression, ast.Constant) and isinstance(expression.value, str)
    )


def _source(path: Path) -> SourceFile:
    try:
        source = read_source(path)
    except SourceError as error:
        raise Unfit(f"{error.skipped.path}: {error.skipped.reason}") from None
    if source.notebook is not None:
        raise Unfit(f"{path.name} is a notebook")
    return source


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except FAILURES:
        raise Unfit("a text that does not parse") from None


def _same(line: int, before: ast.AST, after: ast.AST, old: str, new: str, kinds: tuple[type, ...]) -> Any:
    """The one statement in ``after`` that stands for the one at ``line`` of ``before``."""
    first = [node for node in ast.walk(before) if isinstance(node, kinds) and node.lineno == line]  # type: ignore[attr-defined]
    lines = {number for _, number in standing([("", line)], {"": old}, {"": new})}
    found = [node for node in ast.walk(after) if isinstance(node, kinds) and node.lineno in lines]  # type: ignore[attr-defined]
    if len(first) != 1 or len(found) != 1 or type(first[0]) is not type(found[0]):
        raise Unfit(f"line {line} stands for no one loop or condition")
    if isinstance(first[0], ast.If) and ast.dump(first[0].test) != ast.dump(found[0].test):  # type: ignore[attr-defined]
        raise Unfit(f"the condition in line {line} is rewritten")
    return found[0]


def _out(number: int, left: Left, old: str, new: str) -> list[Edit]:
    try:
        return list(edits(number, left, old, new))
    except (Unfound, *FAILURES) as error:
        raise Unfit(f"{left.place} is rewritten: {error}") from None
