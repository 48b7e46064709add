"""What an editor shows of one open file, and what its quick fixes make of it."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from codemods.analysis.analyse import Analysis, analyse
from codemods.checking.groups import Group, group_findings
from codemods.checking.reported import placed
from codemods.checking.selecting import visible
from codemods.editor.cells import Cell, source_of
from codemods.editor.recent import Recent, Stopped, program_of
from codemods.rewriting.apply import apply
from codemods.rules import UnknownRule, require_known
from codemods.source.config import ConfigError, find_config, load_config
from codemods.source.diffs import blocks
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, digest_of, display_path, read_source
from codemods.source.options import Options, PerFileIgnores, fits
from codemods.source.suppressing import ToSuppress, with_comments
from codemods.terms.findings import Finding, Promise, Skipped

Key = tuple[str, str, int]
_LINE = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


class Diagnosis(NamedTuple):
    """What is known of a text: ``findings`` in it, each with the group that it is mended in, and what is ``broken``:
    the text, or some cells of a notebook. ``source`` is what was looked at, None for what is left alone.

    A group's obstacle says why no quick fix can be offered; one that only ``--unsafe`` would let pass is none here,
    because who asks for a fix has seen what it promises.
    """

    findings: tuple[Finding, ...] = ()
    groups: tuple[Group, ...] = ()
    broken: tuple[Skipped, ...] = ()
    source: SourceFile | None = None

    def group(self, finding: Finding) -> Group:
        """The group that ``finding`` is in."""
        return next(group for group in self.groups if finding in group.findings)


class LineEdit(NamedTuple):
    """Lines ``start`` to ``end`` (from 0, the end exclusive) become ``text``, which ends as the last of them does."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Documents:
    """The texts that are open in an editor, by absolute path; they count instead of what is on disk.

    ``notebooks`` are the cells of those that are open as notebooks; one that is open as text is JSON, and left alone.
    """

    texts: Mapping[str, str]
    notebooks: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    recent: Recent = field(default_factory=Recent)
    """What was seen last, for as long as nothing was saved."""
    stopped: Callable[[], bool] = bool
    """Whether nobody waits for what is being done any more."""

    def diagnose(self, path: str) -> Diagnosis:
        """Return what is to be shown of the open file ``path``.

        The options are those of the project; a file that it excludes has no findings. Raises
        :class:`~codemods.source.config.ConfigError` where its configuration cannot be used.
        """
        options = self._options(path)
        if options is None:
            return Diagnosis()
        return self._diagnose(path, options)[0]

    def mended(self, path: str, keys: Collection[Key] | None = None) -> dict[str, str]:
        """Return the new texts, by absolute path, once the group of findings with one of ``keys`` is mended.

        Without ``keys`` all is mended in ``path`` that ``codemod apply`` would. Empty if nothing can be; raises as
        :meth:`diagnose` does.
        """
        options = self._options(path)
        if options is None:
            return {}
        options = options if keys is None else replace(options, unsafe=True)
        diagnosis, sources = self._diagnose(path, options)
        shown = display_path(path)

        def wanted(findings: tuple[Finding, ...]) -> bool:
            if keys is None:
                return any(finding.path == shown for finding in findings)
            return any(finding.key in keys for finding in findings)

        if any(entry.cell is None for entry in diagnosis.broken):
            return {}
        result = apply(sources, options=options, dry_run=True, jobs=1, analyse=self._analyser(sources), wanted=wanted)
        return {str(rewrite.source.absolute): rewrite.new for rewrite in result.rewrites}

    def ignored(self, path: str, finding: Finding) -> str | None:
        """Return the text of ``path`` with a comment that suppresses ``finding``; None where none can stand."""
        place = ToSuppress(finding.rule, finding.span.line, finding.span.end_line)
        source = self._source(path)
        new, unplaced = with_comments(source.text, [place])
        try:
            source.encode(new)
        except SourceError:
            return None
        return None if unplaced else new

    def changes(self, path: str, new: str) -> list[tuple[int | None, str, str]]:
        """Return what changes once the text of ``path`` is ``new``: the text before and after, and in a notebook of
        which cell; raises :class:`~codemods.source.errors.SourceError`."""
        source = self._source(path)
        if path in self.notebooks and source.notebook is not None:
            return [*source.notebook.changes(source.text, new)]
        return [(None, source.text, new)]

    def _diagnose(self, path: str, options: Options) -> tuple[Diagnosis, list[SourceFile]]:
        sources = [self._source(path)]
        shown = sources[0].path
        analysis = self._analysis(sources, options)
        broken = [entry for entry in analysis.skipped if entry.path == shown]
        if sources[0].notebook is not None:
            broken += sources[0].notebook.skipped
        found = visible(analysis.findings, {shown: sources[0].text}, options)
        others = {other for one in found for other, _ in one.edits} | {p for one in found for _, p, _ in one.partners}
        if others - {shown}:
            # What is mended here is mended together with something in other files.
            for other in sorted(others - {shown}):
                try:
                    source = self._source(os.path.abspath(other))
                except SourceError:
                    continue
                if source.notebook is None:
                    sources.append(source)
            analysis = self._analysis(sources, options)
            found = visible(analysis.findings, {source.path: source.text for source in sources}, options)
        files = {source.path: source for source in sources}
        found = [placed(finding, files) for finding in found]
        groups = group_findings(found, replace(options, unsafe=True), files)
        here = tuple(group for group in groups if any(finding.path == shown for finding in group.findings))
        own = tuple(finding for finding in found if finding.path == shown)
        return Diagnosis(own, here, tuple(broken), sources[0]), sources

    def _analysis(self, sources: Sequence[SourceFile], options: Options) -> Analysis:
        """What is found in ``sources``; the same as before where only comments have changed in the first of them."""
        analyser = self._analyser(sources)
        program = program_of(sources[0].text) if sources[0].notebook is None else None
        beside = (options, analyser.others, [(source.path, source.digest) for source in sources[1:]])
        known = self.recent.find(sources[0].path, program, beside)
        if known is not None:
            return known
        analysis = analyser(sources, options=options)
        self.recent.keep(sources[0].path, program, beside, analysis)
        return analysis

    def _analyser(self, sources: Sequence[SourceFile]) -> _Analyse:
        targets = {source.path for source in sources}
        overlay = {display_path(path): text for path, text in self.texts.items() if not _is_notebook(path)}
        return _Analyse({path: text for path, text in overlay.items() if path not in targets}, self.stopped)

    def _source(self, path: str) -> SourceFile:
        if path in self.notebooks:
            return source_of(path, self.notebooks[path])
        if path not in self.texts or _is_notebook(path):
            return read_source(path)
        text = self.texts[path]
        data = text.encode("utf-8", "surrogatepass")
        return SourceFile(display_path(path), Path(path), text, "utf-8", False, digest_of(data))

    def _options(self, path: str) -> Options | None:
        """The options for ``path``; None if its project excludes it, and for a notebook that is open as JSON."""
        if _is_notebook(path) and path not in self.notebooks:
            return None
        settings = load_config(path)
        file = find_config(path)
        if file is None:
            return Options()
        known = {one.name for one in dataclasses.fields(Options)}
        chosen: dict[str, Any] = {name: value for name, value in settings.items() if name in known}
        folder = str(file.parent)
        if "per_file_ignores" in chosen:
            chosen["per_file_ignores"] = PerFileIgnores(folder, chosen["per_file_ignores"])
        # Translating is nothing that happens while somebody types.
        options = Options(**chosen | {"python2": False})
        try:
            named = [rule for _, rules in options.per_file_ignores.entries for rule in rules]
            require_known([*options.select, *options.ignore, *named])
        except UnknownRule as error:
            raise ConfigError(f"{file}: {error}") from None
        exclude = settings.get("exclude", ())
        assert isinstance(exclude, tuple)
        return None if fits(exclude, folder, path) else options


def _is_notebook(path: str) -> bool:
    return path.lower().endswith(".ipynb")


class _Analyse:
    """The call of :func:`codemods.analysis.analyse.analyse`, in this process, with the other open texts."""

    def __init__(self, others: Mapping[str, str], stopped: Callable[[], bool]) -> None:
        self.others = others
        self.stopped = stopped

    def __call__(
        self,
        targets: Sequence[SourceFile],
        *,
        options: Options,
        jobs: int | None = None,
        overlay: Mapping[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Analysis:
        texts = {**self.others, **(overlay or {})}

        def on_its_way(done: int, total: int) -> None:
            if self.stopped():
                raise Stopped
            if progress is not None:
                progress(done, total)

        return analyse(targets, options=options, jobs=1, overlay=texts or None, progress=on_its_way)


def line_edits(old: str, new: str) -> list[LineEdit]:
    """Return how ``old`` becomes ``new``, by whole lines, in order."""
    before, after = lines_of(old), lines_of(new)
    return [
        LineEdit(block.old_start, block.old_end, "".join(after[block.new_start : block.new_end]))
        for block in blocks(before, after)
        if not block.same
    ]


def lines_of(text: str) -> list[str]:
    """The lines of ``text`` with their ends, as Python and the Language Server Protocol count them."""
    return [line for line in _LINE.split(text) if line]


def title(group: Group) -> str:
    """What the quick fix for ``group`` is called."""
    finding = group.findings[0]
    remedy = finding.remedy or f"mend {finding.rule}"
    risk = ", changes what is learned" if any(one.promise is Promise.BEHAVIOUR for one in group.findings) else ""
    return f"codemod: {remedy} ({finding.rule}{risk})"


@functools.lru_cache(maxsize=64)
def explanation(rule: str) -> str:
    """What is to be known of ``rule``, in Markdown; empty for one that there is not."""
    from codemods.manual.explain import PROMISES
    from codemods.manual.explain import explanation as of_rule

    told = of_rule(rule)
    if told is None:
        return ""
    promise = f"Promise: *{told.promise.value}*. The rewritten program {PROMISES[told.promise]}."
    return "\n\n".join(part for part in (promise, told.documentation) if part)


def hover(finding: Finding) -> str:
    """The hover text of ``finding``, in Markdown."""
    parts = [f"**{finding.rule}**: {finding.message}", finding.remedy, explanation(finding.rule)]
    return "\n\n".join(part for part in parts if part)
