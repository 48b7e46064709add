"""Which findings count: those on lines that changed since a revision, and those that no baseline knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.analysis.analyse import selected_rules
from codemods.checking.baseline import Baseline, Compared, compare, load_baseline, save_baseline
from codemods.checking.changed_lines import Changes, changes_since
from codemods.checking.check import CheckResult
from codemods.rules import rule_names
from codemods.source.files import SourceFile, is_there
from codemods.source.options import Options
from codemods.terms.findings import Finding


@dataclass(frozen=True)
class Scope:
    """What is asked for: the lines touched since ``changes``, and what is not in ``baseline``; None for no limit."""

    changes: Changes | None = None
    baseline: Baseline | None = None

    @classmethod
    def of(cls, targets: Sequence[SourceFile], *, since: str | None = None, baseline: Path | None = None) -> Scope:
        """The scope of a command on ``targets``.

        Raises :class:`~codemods.checking.changed_lines.SinceError` and
        :class:`~codemods.checking.baseline.BaselineError`.
        """
        return cls(
            changes_since(since, targets) if since is not None else None,
            load_baseline(baseline) if baseline is not None else None,
        )

    def of_check(self, result: CheckResult, targets: Sequence[SourceFile], options: Options) -> CheckResult:
        """Return ``result``, made of ``targets`` with ``options``, with what is within this scope only.

        It says how many findings were left out, and what of the baseline is gone.
        """
        if self.baseline is not None:
            result = self._held_against(self.baseline, result, targets, options)
        changes = self.changes
        if changes is None:
            return result
        kept = tuple(reported for reported in result.findings if changes.touch(reported.finding))
        unused = tuple(one for one in result.unused if changes.touches(one.path, one.comment.line, one.comment.line))
        return replace(
            result, findings=kept, unused=unused, elsewhere=result.elsewhere + len(result.findings) - len(kept)
        )

    def _held_against(
        self, baseline: Baseline, result: CheckResult, targets: Sequence[SourceFile], options: Options
    ) -> CheckResult:
        compared = _compared(baseline, result, targets, options)
        new = set(map(id, compared.new))
        kept = tuple(reported for reported in result.findings if id(reported.finding) in new)
        return replace(result, findings=kept, frozen=compared.known, gone=compared.gone)

    def wanted(
        self, result: CheckResult, targets: Sequence[SourceFile], options: Options
    ) -> Callable[[tuple[Finding, ...]], bool]:
        """What :func:`codemods.rewriting.apply.apply` is to ask: whether one of some findings is within this scope.

        ``result`` is that of ``check`` on the same ``targets`` with the same ``options``. What is mended together with
        such a finding is mended too.
        """
        known = {reported.finding.key for reported in result.findings}
        kept = {reported.finding.key for reported in self.of_check(result, targets, options).findings}

        def within(finding: Finding) -> bool:
            # What an edit brings to light was not there to be compared.
            return finding.key in kept or (
                finding.key not in known and (self.changes is None or self.changes.touch(finding))
            )

        return lambda findings: any(map(within, findings))


@dataclass(frozen=True)
class Updated:
    """What became of a baseline: how many findings it holds, how many were added and how many dropped."""

    count: int
    added: int
    dropped: int


def update_baseline(file: Path, result: CheckResult, targets: Sequence[SourceFile], options: Options) -> Updated:
    """Write all that ``result`` found in ``targets`` down in the baseline ``file``, and drop what is gone.

    What it holds of rules and files that were not looked for stays. Raises
    :class:`~codemods.checking.baseline.BaselineError` for a file that is none of ours or cannot be written.
    """
    before = load_baseline(file) if is_there(file) else Baseline(file, {})
    compared = _compared(before, result, targets, options)
    save_baseline(compared.after)
    return Updated(compared.after.count, len(compared.new), len(compared.gone))


def _compared(baseline: Baseline, result: CheckResult, targets: Sequence[SourceFile], options: Options) -> Compared:
    return compare(
        [reported.finding for reported in result.findings],
        {target.path: target.text for target in targets},
        baseline,
        left_out=set(rule_names()).difference(rule.name for rule in selected_rules(options)),
        unread={entry.path for entry in result.skipped},
    )
