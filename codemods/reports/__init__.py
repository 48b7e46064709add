"""What commands say: one :class:`Report`, and a file for each form that it can take.

A module of this package is a format, named after it: ``render(report, detail) -> str``. A new file is a new format;
modules with a leading underscore are none.
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from codemods.checking.reported import Found
from codemods.terms.findings import Finding, ShownLine, Skipped

if TYPE_CHECKING:
    from codemods.checking.check import CheckResult
    from codemods.rewriting.changes import Evidence, Review
    from codemods.rewriting.result import ApplyResult, Dropped, Failure
    from codemods.source.files import SourceFile


class Detail(enum.IntEnum):
    """How much to tell people; programs are always told all."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


@dataclass(frozen=True)
class Report(Found):
    """What there is to say after a command, for any format.

    ``findings`` are those that stand; ``fixed``, ``failures``, ``unwritten``, ``dropped`` and ``changed`` (paths) are
    of ``apply`` alone, and so are ``review``, what was changed piece by piece, ``diff``, all of it for programs, and
    ``evidence``, where ``verify`` was asked.
    """

    fixed: tuple[Finding, ...] = ()
    failures: tuple[Failure, ...] = ()
    unwritten: tuple[Skipped, ...] = ()
    changed: tuple[str, ...] = ()
    applied: bool = False
    dry_run: bool = False
    dropped: tuple[Dropped, ...] = ()
    review: Review | None = None
    diff: bytes = b""
    evidence: Evidence | None = None
    sources: Mapping[str, SourceFile] = field(default_factory=dict, repr=False)
    """The files by path, as they were read."""
    rewritten: Mapping[str, SourceFile] = field(default_factory=dict, repr=False)
    """The files that ``apply`` wrote, as they are now: at their lines the ``findings`` stand."""
    translated: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The texts of files that were translated from Python 2 first: in their lines the hunks of ``review`` count."""
    postponed: tuple[Finding, ...] = ()
    """What ``--max-hunks`` left for the next run."""
    command: tuple[str, ...] = ()
    """The words of the command line, for who wants to do it again; empty where there was none."""

    @classmethod
    def of_check(cls, result: CheckResult, fixes: ApplyResult | None = None) -> Report:
        """Return what ``check`` has to say; ``fixes`` is what an ``apply`` of the same files would do, for formats that
        show it."""
        shown: dict[str, Any] = {}
        if fixes is not None:
            from codemods.rewriting.changes import review

            translated = {source.path: new for source, new in fixes.translations}
            shown = {"review": review(fixes), "diff": fixes.diff(), "translated": translated}
        found = {each.name: getattr(result, each.name) for each in fields(Found)}
        return cls(**found, sources={source.path: source for source in result.sources}, **shown)

    @classmethod
    def of_apply(cls, result: ApplyResult, evidence: Evidence | None = None) -> Report:
        """Return what ``apply`` has to say, with what ``verify`` saw where it was asked."""
        from codemods.rewriting.changes import review

        return cls(
            files=result.files,
            findings=result.remaining,
            skipped=result.skipped,
            notes=result.notes,
            fixed=result.fixed,
            failures=result.failures,
            unwritten=result.unwritten,
            changed=tuple(rewrite.source.path for rewrite in result.rewrites),
            applied=True,
            dry_run=result.dry_run,
            dropped=result.dropped,
            review=review(result, evidence.proofs if evidence else None),
            diff=result.diff(),
            evidence=evidence,
            sources={source.path: source for source in result.sources},
            rewritten={}
            if result.dry_run
            else {one.source.path: one.source.rewritten(one.new) for one in result.rewrites},
            translated={one.source.path: one.new for one in result.translations},
            postponed=result.postponed,
        )

    def place(self, path: str, line: int, *, now: bool = False) -> ShownLine:
        """Return where ``line`` of the file ``path`` is for people: in a notebook the cell and the line in it.

        Lines of ``fixed``, ``failures`` and ``dropped`` are those of the files as they were read. Those of ``findings``
        are those of the files as they are ``now``, which is something else only where ``apply`` wrote them.
        """
        source = (self.rewritten.get(path) if now else None) or self.sources.get(path)
        return ShownLine(None, line) if source is None else source.place(line)

    def place_now(self, path: str, line: int) -> ShownLine:
        """Return the :meth:`place` of a line of the files as they are now."""
        return self.place(path, line, now=True)

    def told(self, path: str, line: int, *, now: bool = False) -> str:
        """Return the path and the :meth:`place`, as people read them."""
        return f"{path}:{self.place(path, line, now=now)}"

    def base(self, path: str) -> str:
        """Return the text of the file ``path`` in which the hunks of ``review`` count their lines."""
        if path in self.translated:
            return self.translated[path]
        return self.sources[path].text if path in self.sources else ""

    @property
    def by_rule(self) -> dict[str, int]:
        """How many findings stand, by rule, in alphabetical order."""
        return dict(sorted(Counter(reported.finding.rule for reported in self.findings).items()))

    @property
    def fixed_by_rule(self) -> dict[str, int]:
        """How many findings were fixed, by rule, in alphabetical order."""
        return dict(sorted(Counter(finding.rule for finding in self.fixed).items()))

    @property
    def fixable(self) -> int:
        """How many of the findings ``apply`` with the same options would change."""
        return sum(reported.fixable for reported in self.findings)


class Renderer(Protocol):
    """The ``render`` of a format: the text of a report, ended by a newline unless it is empty."""

    def __call__(self, report: Report, detail: Detail, *, colour: bool = False) -> str: ...


def formats() -> tuple[str, ...]:
    """Return the names of all formats, in alphabetical order, without importing any."""
    names = (m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return tuple(sorted(name.replace("_", "-") for name in names))


def shows_edits(name: str) -> bool:
    """Tell whether the format ``name`` shows for each finding of ``check`` what ``apply`` would make of it.

    A format says so by ``EDITS = True`` in its module. Raises :class:`KeyError` if there is no such format.
    """
    return bool(getattr(_module(name), "EDITS", False))


def renderer(name: str) -> Renderer:
    """Return the ``render`` of the format called ``name``; raises :class:`KeyError` if there is none."""
    return cast(Renderer, _module(name).render)


def _module(name: str) -> ModuleType:
    if name not in formats():
        raise KeyError(name)
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
