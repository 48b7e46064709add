"""A verification as :class:`codemods.rewriting.changes.Evidence`, which reports of the static half pass on."""

from __future__ import annotations

from codemods.rewriting.changes import Evidence, Key, Proof
from verify.errors import VerifyError
from verify.measured.results import Verification
from verify.reports import html, markdown, plots, remarks
from verify.reports.discreet import discreet


def evidence_of(verification: Verification, *, plot: str = "", quoted: bool = False) -> Evidence:
    """Return verdicts and renderings of ``verification``; ``plot`` is the name of the file that has the plot, if one.

    Where there is nothing to draw, or nothing to draw with, the evidence has no plot. As it goes into commits and
    requests, what the programs said is told only if it is to be ``quoted``.
    """
    if not quoted:
        verification = discreet(verification)
    proofs: dict[Key, Proof] = {}
    for rewrite in verification.rewrites:
        key = frozenset(finding.key for finding in rewrite.findings)
        proofs[key] = Proof(rewrite.verdict.value, remarks.reason_text(rewrite, verification))
    return Evidence(proofs, markdown.section(verification, plot=plot), html.fragment(verification), _plot(verification))


def _plot(verification: Verification) -> bytes:
    try:
        return plots.svg(verification).encode()
    except VerifyError:
        return b""
