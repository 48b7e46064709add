"""What commands say: one :class:`Report`, and a file for each form that it can take.

A module of this package is a format, named after it: ``render(report, detail) -> str``. A new file is a new format;
modules with a leading underscore are none.
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from codemods.findings import Finding, Skipped

if TYPE_CHECKING:
    from codemods.apply import ApplyResult, Dropped, Failure
    from codemods.baseline import Fingerprint
    from codemods.check import CheckResult, Reported
    from codemods.ignores import UnusedIgnore


class Detail(enum.IntEnum):
    """How much to tell people; programs are always told all."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


@dataclass(frozen=True)
class Report:
    """What there is to say after a command, for any format.

    ``findings`` are those that stand; ``fixed``, ``failures``, ``unwritten``, ``dropped`` and ``changed`` (paths) are
    of ``apply`` alone.
    """

    files: int
    findings: tuple[Reported, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...] = ()
    fixed: tuple[Finding, ...] = ()
    failures: tuple[Failure, ...] = ()
    unwritten: tuple[Skipped, ...] = ()
    changed: tuple[str, ...] = ()
    applied: bool = False
    dry_run: bool = False
    dropped: tuple[Dropped, ...] = ()
    unused: tuple[UnusedIgnore, ...] = ()
    """Suppression comments that do nothing, where they were asked for."""
    elsewhere: int = 0
    """Findings left out because they are on lines that did not change."""
    frozen: int = 0
    """Findings left out because a baseline knows them."""
    gone: tuple[Fingerprint, ...] = ()
    """What the baseline knows and is there no more."""

    @classmethod
    def of_check(cls, result: CheckResult) -> Report:
        """Return what ``check`` has to say."""
        return cls(
            result.files,
            result.findings,
            result.skipped,
            result.notes,
            unused=result.unused,
            elsewhere=result.elsewhere,
            frozen=result.frozen,
            gone=result.gone,
        )

    @classmethod
    def of_apply(cls, result: ApplyResult) -> Report:
        """Return what ``apply`` has to say."""
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
        )

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
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")))


def renderer(name: str) -> Renderer:
    """Return the ``render`` of the format called ``name``; raises :class:`KeyError` if there is none."""
    if name not in formats():
        raise KeyError(name)
    return cast(Renderer, importlib.import_module(f"{__name__}.{name}").render)
