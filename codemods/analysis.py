"""From files to findings: which programs to simulate, and what the rules make of their traces."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from codemods.findings import Finding, Skipped
from codemods.graph.files import Files
from codemods.graph.machine import Machine
from codemods.graph.program import ParsedFile, Tree
from codemods.options import Options
from codemods.rules import all_rules
from codemods.rules.base import Decision, Observation, Rule
from codemods.source.discovery import discover
from codemods.source.errors import Unparsable, Unreadable
from codemods.source.files import SourceFile, read_source
from codemods.source.project import project_root
from codemods.source.syntax import parse

SCRIPT_BUDGET = 400_000
FUNCTIONS_BUDGET = 100_000
TORCH = b"torch"


class Analysis(NamedTuple):
    """What was found: ``findings`` in order of path and line, ``skipped`` files, and ``notes`` on where a budget ended."""

    findings: list[Finding]
    skipped: list[Skipped]
    notes: list[str]


def analyse(
    targets: Sequence[SourceFile],
    *,
    options: Options,
    jobs: int | None = None,
    overlay: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Analysis:
    """Find what the selected rules find in ``targets``.

    ``overlay`` gives the text of files (by display path) that are not written yet. ``progress`` is called with the number
    of runs done and of all runs.
    """
    rules = selected_rules(options)
    sources = _Sources(targets, overlay or {})
    runs = _Runs(sources, rules)
    observations, notes = runs.all(progress)
    decision = Decision(sources.parsed_by_display, options)
    wanted = {t.path for t in targets}
    findings: list[Finding] = []
    for rule in rules:
        mine = [o for o in observations if o.rule == rule.name]
        findings += [f for f in rule.decide(mine, decision) if f.path in wanted]
    findings.sort(key=lambda f: (f.path, f.span, f.rule))
    return Analysis(findings, sources.skipped, notes)


def selected_rules(options: Options) -> list[Rule]:
    """The rules that ``options`` select, in the order of their names."""
    chosen = []
    for name, rule in sorted(all_rules().items()):
        if name in options.ignore or (options.select and name not in options.select):
            continue
        if rule.opt_in and name not in options.select:
            continue
        chosen.append(rule)
    return chosen


class _Sources:
    """The files of the projects around the targets, read and parsed when they are needed."""

    def __init__(self, targets: Sequence[SourceFile], overlay: Mapping[str, str]) -> None:
        self.overlay = overlay
        self.targets = {t.path: t for t in targets}
        self.skipped: list[Skipped] = []
        self.trees: list[tuple[Files, list[str]]] = []
        self._displays: dict[str, tuple[Files, str]] = {}
        for root, members in _by_root(targets):
            self._add_tree(root, members)

    def _add_tree(self, root: Path, members: list[SourceFile]) -> None:
        paths: dict[str, Path] = {}
        display: dict[str, str] = {}
        known = {m.absolute: m for m in members}
        for path in {*discover([root], cwd=root).files, *known}:
            try:
                relative = path.relative_to(root).as_posix()
            except ValueError:
                relative = path.name
            paths[relative] = path
            display[relative] = known[path].path if path in known else _display(path)
        tree = Tree(paths, display)

        def read(relative: str) -> tuple[str, ast.Module] | None:
            return self._read(paths[relative], display[relative])

        files = Files(tree, read)
        roots = sorted(paths)
        self.trees.append((files, roots))
        for relative in roots:
            self._displays[display[relative]] = (files, relative)

    def raw(self, files: Files, relative: str) -> bytes:
        """The bytes of a file, for the gate; empty where it cannot be read."""
        shown = files.tree.display[relative]
        if shown in self.overlay:
            return self.overlay[shown].encode("utf-8", "surrogatepass")
        if shown in self.targets:
            return self.targets[shown].text.encode("utf-8", "surrogatepass")
        try:
            return files.tree.relative_paths[relative].read_bytes()
        except OSError:
            return b""

    def _read(self, path: Path, shown: str) -> tuple[str, ast.Module] | None:
        target = self.targets.get(shown)
        try:
            if shown in self.overlay:
                text = self.overlay[shown]
            else:
                text = target.text if target is not None else read_source(path, shown).text
            return text, parse(text, shown)
        except (Unparsable, Unreadable) as problem:
            if target is not None:
                self.skipped.append(Skipped(shown, problem.line, problem.reason))
            return None

    def parsed_by_display(self, shown: str) -> ParsedFile | None:
        """The parsed file that is shown as ``shown``."""
        found = self._displays.get(shown)
        return found[0].file(found[1]) if found is not None else None


class _Runs:
    """Simulates every script of the trees, then every function that no script reached."""

    def __init__(self, sources: _Sources, rules: list[Rule]) -> None:
        self.sources = sources
        self.rules = rules
        self.words = tuple({word for rule in rules for word in rule.gate})

    def all(self, progress: Callable[[int, int], None] | None) -> tuple[list[Observation], list[str]]:
        """All observations and notes."""
        observations: list[Observation] = []
        notes: list[str] = []
        previous = sys.getrecursionlimit()
        sys.setrecursionlimit(max(previous, 8000))
        try:
            for files, relatives in self.sources.trees:
                concerned = [r for r in relatives if self._concerns(self.sources.raw(files, r))]
                for shown in self.sources.targets:
                    found = self.sources._displays.get(shown)
                    if found is not None and found[0] is files and found[1] not in concerned:
                        pass
                entered: set[tuple[str, int, int]] = set()
                done = 0
                total = 2 * len(concerned)
                for relative in concerned:
                    file = files.file(relative)
                    if file is not None:
                        machine = Machine(files, SCRIPT_BUDGET)
                        trace = machine.run_script(file)
                        self._collect(trace, observations, notes)
                        entered |= {(d.lineno, d.col_offset, id(d)) for d in machine.entered}  # type: ignore[attr-defined]
                    done += 1
                    if progress is not None:
                        progress(done, total)
                reached = {ident for _, _, ident in entered}
                called: set[int] = set()
                first_pass = []
                for relative in concerned:
                    file = files.file(relative)
                    if file is not None:
                        wanted = {
                            node
                            for node in ast.walk(file.tree)
                            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and id(node) not in reached
                        }
                        if wanted:
                            machine = Machine(files, FUNCTIONS_BUDGET)
                            traces = machine.run_functions(file, wanted)
                            called |= {id(d) for d in machine.called}
                            first_pass.append((file, wanted, traces))
                    done += 1
                    if progress is not None:
                        progress(done, total)
                for file, wanted, traces in first_pass:
                    # what another function calls is no root: it runs as its caller runs it
                    roots = {node for node in wanted if id(node) not in called}
                    if roots and roots != wanted:
                        traces = Machine(files, FUNCTIONS_BUDGET).run_functions(file, roots)
                    for trace in traces if roots else []:
                        self._collect(trace, observations, notes)
        finally:
            sys.setrecursionlimit(previous)
        return observations, notes

    def _concerns(self, raw: bytes) -> bool:
        return TORCH in raw

    def _collect(self, trace: object, observations: list[Observation], notes: list[str]) -> None:
        notes += trace.notes  # type: ignore[attr-defined]
        for rule in self.rules:
            observations += rule.observe(trace)  # type: ignore[arg-type]


def _by_root(targets: Sequence[SourceFile]) -> list[tuple[Path, list[SourceFile]]]:
    """The tree around the targets: the project that holds all of them, else each one's own."""
    if not targets:
        return []
    common = Path(os.path.commonpath([t.absolute.parent for t in targets]))
    root = project_root(common)
    if len(root.parts) > 2 or len(targets) == 1:
        return [(root, list(targets))]
    by_root: dict[Path, list[SourceFile]] = {}
    for target in targets:
        by_root.setdefault(project_root(target.absolute), []).append(target)
    return list(by_root.items())


def _display(path: Path) -> str:
    try:
        return PurePosixPath(path.relative_to(Path.cwd())).as_posix()
    except ValueError:
        return path.as_posix()


__all__: Iterable[str] = ["Analysis", "analyse", "selected_rules"]
