"""A screen that answers from a list, and a tree of files with the words of :mod:`tests.fakes` to ask about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codemods.interactive.dialogue import Decisions, Dialogue, EditorError
from codemods.interactive.finishing import Outcome, finish
from codemods.interactive.items import Item, Texts, items_of
from codemods.rewriting.apply import apply
from codemods.rewriting.changes import Hunk, Key, Proof
from codemods.rewriting.result import ApplyResult
from codemods.source.files import SourceFile
from codemods.source.options import Options
from tests.fakes import Analyser, source

Editing = Callable[[Mapping[Hunk, str]], Mapping[Hunk, str]]


class Script:
    """A :class:`~codemods.interactive.dialogue.Screen`: keys and lines in the order in which they are asked for."""

    def __init__(self, *answers: str | None, editing: Sequence[Editing] = ()) -> None:
        self.answers = list(answers)
        self.shown: list[str] = []
        self.said: list[str] = []
        self.pages: list[str] = []
        self.questions: list[str] = []
        self._editing = list(editing)

    def show(self, item: Item, number: int, total: int) -> None:
        self.shown.append(f"{number}/{total} {item.change.rule} {item.place}")

    def key(self, question: str, keys: str) -> str:
        self.questions.append(question)
        return (self.answers.pop(0) if self.answers else "") or ""

    def line(self, question: str) -> str | None:
        self.questions.append(question)
        return self.answers.pop(0)

    def say(self, text: str) -> None:
        self.said.append(text)

    def page(self, text: str) -> None:
        self.pages.append(text)

    def edit(self, item: Item, proposed: Mapping[Hunk, str]) -> Mapping[Hunk, str]:
        if not self._editing:
            raise EditorError("no editor")
        return self._editing.pop(0)(proposed)


class Tree:
    """Files, what would be done with them, and what becomes of answers."""

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str | bytes],
        proofs: Mapping[str, Proof] | None = None,
        analyse: Analyser | None = None,
    ) -> None:
        self.folder = folder
        self.targets: list[SourceFile] = [source(path, text, folder) for path, text in files.items()]
        self.analyse = analyse or Analyser()
        self.before: ApplyResult = apply(self.targets, options=Options(), dry_run=True, analyse=self.analyse)
        self.texts = Texts(self.before, self.targets)
        keys: dict[Key, Proof] = {}
        for mended in self.before.mended:
            name = f"{mended.findings[0].path}:{mended.findings[0].span.line}"
            if proofs and name in proofs:
                keys[mended.key] = proofs[name]
        self.items = items_of(self.before, keys)

    def ask(self, screen: Script) -> Decisions:
        return Dialogue(self.items, screen, self.texts, lambda rule: f"page of {rule}").run()

    def finish(self, decisions: Decisions) -> Outcome:
        return finish(decisions, self.texts, self.targets, options=Options(), analyse=self.analyse, before=self.before)

    def made(self, screen: Script) -> tuple[dict[str, str], Outcome]:
        """Ask, finish, and return the new texts by path."""
        outcome = self.finish(self.ask(screen))
        return {one.source.path: one.new for one in outcome.result.rewrites}, outcome
