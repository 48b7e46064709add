"""One way to run a program in the search for runs that reach more."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from codemods.source.entries import find_entries, read_readme
from codemods.source.syntax import FAILURES
from verify.errors import VerifyError
from verify.measured.results import Run
from verify.measured.steered import Driven
from verify.reaching.knobs import NONE, Knobs
from verify.reaching.leaving import Left
from verify.running.missing import Instead
from verify.running.rewriting import Version
from verify.running.settings import Command, entry_command

#: Items of a batch, where a program has no time for those that it takes.
SMALL = 4


@dataclass(frozen=True)
class Way:
    """A command, the version of the tree that goes on where the original dies (None: the original does), and its run,
    with its lines as they are in the original. ``left`` is what is left out of it, ``batch`` the most items of a batch
    (0: as many as it takes), ``turned`` are the knobs that brought it there; ``lacks``: it was not run, because nobody
    has installed what it imports. ``instead`` stands in for what the command lacks."""

    command: Command
    base: Version | None = None
    run: Run | None = None
    left: tuple[Left, ...] = ()
    batch: int = 0
    turned: Knobs = NONE
    lacks: bool = False
    instead: Instead = field(default_factory=Instead)

    def knobs(self, more: Knobs) -> Knobs:
        """``more``, with all that this way has."""
        return replace(more.beside(self.turned), left=self.left, batch=self.batch)

    def told(self, words: Sequence[str]) -> Way:
        """The same with more ``words`` on its command line."""
        argv, text = (*self.command.argv, *words), f"{self.command.text} {shlex.join(words)}"
        return replace(self, command=replace(self.command, argv=argv, text=text))


def parsed(texts: Mapping[str, str]) -> Iterator[tuple[str, ast.AST]]:
    """The syntax trees of ``texts``, by path; those that do not parse are left out."""
    for path, text in texts.items():
        try:
            yield path, ast.parse(text)
        except FAILURES:
            continue


def unmade(driven: Driven) -> str:
    """Why nothing can be said of a function that was driven alone."""
    if driven.error is None:
        return driven.reason or "it shows nothing that could be compared"
    where = f" at {driven.site}" if driven.site is not None else ""
    return f"called {driven.how}, the original raises {driven.error.type}{where}"


def commands_leading_to(
    paths: Set[str], texts: Mapping[str, str], root: Path, python: str, *, most: int
) -> Iterator[Command]:
    """At most so many scripts and tests of ``texts`` that lead to the files at ``paths``, as ``batch`` finds them."""
    for entry in find_entries(texts, read_readme(root), paths, most=most):
        try:
            yield entry_command(entry.command, python, root / entry.folder)
        except VerifyError:
            continue
