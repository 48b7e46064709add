"""What the rules' own fixtures were measured to keep alive, before and after: ``rules/figures.toml``.

The file is written by ``python -m tests.verify.measure``, which runs every fixture through ``verify``; its table
``cards`` has what was measured on a GPU, by rule, with where it comes from.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

from codemods.source.toml import parse_toml
from codemods.terms.counting import bytes_text, count_text


class Side(NamedTuple):
    """One run of a fixture, before or after the rewrite.

    ``steps`` of all optimizers (or backwards, where nothing stepped); graph ``nodes`` alive at the last of them,
    ``most`` at any, and how many are ``added`` a step; ``bytes`` of the heap in the median, and how many are
    ``bytes_added`` a step; ``wasted`` forwards built a graph that nothing walked; ``backwards`` were called; ``error``
    ended it, if any.
    """

    steps: int
    nodes: int
    most: int
    added: float
    bytes: int
    bytes_added: int
    wasted: int
    backwards: int
    error: str


class Measured(NamedTuple):
    """A fixture of a rule, run: what is wrong with the original (``fault``), what ``verify`` said, and both runs."""

    rule: str
    case: str
    fault: str
    verdict: str
    before: Side
    after: Side


class Figures(NamedTuple):
    """All that was measured, and the ``setting``: when, and with what; ``cards``: on a GPU, by rule."""

    setting: str
    cases: tuple[Measured, ...]
    cards: Mapping[str, str]

    def of(self, rule: str) -> tuple[Measured, ...]:
        """Return what was measured for ``rule``."""
        return tuple(case for case in self.cases if case.rule == rule)


@functools.cache
def figures() -> Figures:
    """Return what was measured; nothing where the file is missing."""
    file = resources.files("codemods.rules").joinpath("figures.toml")
    if not file.is_file():
        return Figures("", (), {})
    read = parse_toml(file.read_text(encoding="utf-8"))
    cases = tuple(
        Measured(one["rule"], one["case"], one["fault"], one["verdict"], Side(**one["before"]), Side(**one["after"]))
        for one in read["case"]
    )
    threads = "one thread" if read["threads"] == 1 else f"{read['threads']} threads"
    setting = f"torch {read['torch']}, {read['device'].upper()}, {threads}, {read['system']}, {read['date']}"
    return Figures(setting, cases, read.get("cards", {}))


def sentence(one: Measured) -> str:
    """Return what a fixture shows, in one sentence."""
    old, new = one.before, one.after
    flat = f"{_nodes(new.nodes)} alive at the last step"
    if old.error:
        place = f"at backward {old.backwards}" if old.backwards else "before its first backward"
        return f"the original ends {place} with {_first(old.error)}; rewritten it runs on, with {flat}"
    if old.wasted > new.wasted:
        forwards = count_text(old.wasted, "forward")
        return f"{forwards} built a graph for nothing before the rewrite, {new.wasted or 'none'} after it"
    if old.added >= 1 and new.added < 1:
        grown = old.bytes_added - new.bytes_added
        heap = f" and {bytes_text(grown)}" if grown > _NOISE else ""
        return (
            f"every step left {count_text(round(old.added), 'graph node')}{heap} behind, with {old.nodes:,} alive "
            f"after {count_text(old.steps, 'step')}; rewritten none, with {flat}"
        )
    if old.steps == new.steps and old.backwards > new.backwards:
        steps = count_text(old.steps, "step")
        return f"{old.backwards:,} calls of backward in {steps} before the rewrite, {new.backwards:,} after it"
    if old.most > new.most:
        return f"at most {_nodes(old.most)} alive at the end of a step before the rewrite, {new.most:,} after it"
    held = old.bytes - new.bytes
    if held >= (_NOISE if one.fault == "retains" else _MUCH):
        return f"the heap held {bytes_text(held)} more at the end of a step (in the median) than after the rewrite"
    return f"the graph is the same before and after: {flat}"


#: How far the heap of two runs that do the same may differ: a little where verify saw saved tensors kept, and without
#: that as much as was seen between runs that keep the same.
_NOISE, _MUCH = 1 << 10, 1 << 15


def _first(error: str) -> str:
    """Return the head of an error of torch, whose messages go on with shapes, versions and advice."""
    return re.split(r" \(|: \[|\. ", error, maxsplit=1)[0].rstrip(".; ")


def _nodes(number: int) -> str:
    return count_text(number, "graph node")
