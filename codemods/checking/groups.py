"""Which findings are mended together, and what keeps a group from being mended."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.terms.clusters import connected_groups
from codemods.terms.findings import Finding, Promise

if TYPE_CHECKING:
    from codemods.terms.edits import Edit
from codemods.checking.reported import Reported

Files = Collection[str] | Mapping[str, SourceFile]
NEEDS_UNSAFE = "needs --unsafe"
"""The end of the obstacle of what only that option makes."""


@dataclass(frozen=True, eq=False)
class Group:
    """Findings that are mended together or not at all, with the files that this changes.

    ``indices`` are their places in the list that was grouped; ``obstacle`` says why they cannot be mended, if so.
    """

    indices: tuple[int, ...]
    findings: tuple[Finding, ...]
    obstacle: str | None

    @functools.cached_property
    def edits(self) -> dict[str, list[Edit]]:
        """The edits by path, each once, in order."""
        made: dict[str, list[Edit]] = defaultdict(list)
        for path, edit in dict.fromkeys(edit for finding in self.findings for edit in finding.edits):
            made[path].append(edit)
        return dict(made)


def judge(findings: Sequence[Finding], options: Options, files: Files) -> list[Reported]:
    """Return ``findings`` in their order, each with whether ``apply`` would change it; see :func:`group_findings`."""
    obstacles: dict[int, str | None] = {}
    for group in group_findings(findings, options, files):
        obstacles.update(dict.fromkeys(group.indices, group.obstacle))
    return [Reported(finding, obstacles[index]) for index, finding in enumerate(findings)]


def group_findings(findings: Sequence[Finding], options: Options, files: Files) -> list[Group]:
    """Return ``findings`` in groups of partners, in order of their first.

    A group has an obstacle if one of its findings cannot be mended with ``options``, names a partner that is not among
    ``findings`` (not selected, or suppressed), changes a file outside ``files``, or would move code from one cell of a
    notebook to another. ``files`` are paths, or by path the files with the texts in which the findings stand.
    """
    by_key: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for index, finding in enumerate(findings):
        by_key[finding.key].append(index)
    ties = ((index, *by_key.get(partner, ())) for index, finding in enumerate(findings) for partner in finding.partners)
    groups = []
    for indices in connected_groups(len(findings), ties):
        group = tuple(findings[index] for index in indices)
        obstacles = (_obstacle(finding, options, by_key, files) for finding in group)
        groups.append(Group(indices, group, next((o for o in obstacles if o is not None), None)))
    return groups


def older(version: str, other: str) -> bool:
    """Tell whether the release ``version`` comes before ``other``: ``0.3.1`` before ``0.4``."""
    return _release(version) < _release(other)


def _release(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3]]
    return (*numbers, 0, 0, 0)[:3]


def _obstacle(
    finding: Finding, options: Options, known: Mapping[tuple[str, str, int], Sequence[int]], files: Files
) -> str | None:
    place = _shown(finding.path, finding.span.line, files)
    if not finding.fixable(unsafe=options.unsafe):
        if finding.promise is Promise.BEHAVIOUR and finding.edits:
            return f"{finding.rule} at {place} changes what is learned and {NEEDS_UNSAFE}"
        if finding.likely is not None:
            return f"{finding.rule} at {place} is likely, and apply --verify shows whether it holds"
        return f"{finding.rule} at {place} is advice"
    if finding.since and options.target_torch != "current" and older(options.target_torch, finding.since):
        return f"{finding.rule} at {place} needs PyTorch {finding.since} or newer"
    for rule, path, line in finding.partners:
        if (rule, path, line) not in known:
            return f"only makes sense together with {rule} at {_shown(path, line, files)}, which is not selected"
    for path, edit in finding.edits:
        if path not in files:
            return f"would change {path} too, which is not among the files to change"
        source = files[path] if isinstance(files, Mapping) else None
        if source is not None and source.notebook is not None and (reason := _across_cells(edit, source)):
            return reason
    return None


def _shown(path: str, line: int, files: Files) -> str:
    source = files.get(path) if isinstance(files, Mapping) else None
    return f"{path}:{line if source is None else source.place(line)}"


def _across_cells(edit: Edit, source: SourceFile) -> str | None:
    """Return why ``edit`` cannot be made in a notebook: it would reach from one cell into another."""
    from codemods.terms.edits import MoveStatement, WrapBlock

    if isinstance(edit, WrapBlock):
        first, last = source.place(edit.first.line), source.place(edit.last.line)
        doing = "put code under one header"
    elif isinstance(edit, MoveStatement):
        anchor = edit.anchor.end_line if edit.where in ("after", "last-in") else edit.anchor.line
        first, last = source.place(edit.target.line), source.place(anchor)
        doing = "move a statement"
    else:
        return None
    if first.cell == last.cell:
        return None
    return f"would {doing} across cells {first.cell} and {last.cell} of {source.path}"
