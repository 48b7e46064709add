"""A verification as :class:`codemods.review.Evidence`: what reports of the static half pass on without knowing it."""

from __future__ import annotations

import importlib
import importlib.util

from codemods.review import Evidence, Key, Proof
from verify.errors import VerifyError
from verify.reports import markdown, plots, remarks
from verify.results import Verification


def evidence_of(verification: Verification, *, plot: str = "") -> Evidence:
    """Return verdicts and renderings of ``verification``; ``plot`` is the name of the file that has the plot, if one.

    Where there is nothing to draw, or nothing to draw with, the evidence has no plot.
    """
    proofs: dict[Key, Proof] = {}
    for rewrite in verification.rewrites:
        key = frozenset(finding.key for finding in rewrite.findings)
        proofs[key] = Proof(rewrite.verdict.value, remarks.reason_text(rewrite, judged=verification.judged))
    return Evidence(proofs, markdown.section(verification, plot=plot), _html(verification), _plot(verification))


def _plot(verification: Verification) -> bytes:
    try:
        return plots.svg(verification).encode()
    except VerifyError:
        return b""


def _html(verification: Verification) -> str:
    """Return the fragment of :mod:`verify.reports.fragment`."""
    if importlib.util.find_spec("verify.reports.fragment") is None:
        return ""
    return str(importlib.import_module("verify.reports.fragment").fragment(verification))
