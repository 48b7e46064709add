"""Verify's results as a part of another page."""

from __future__ import annotations

from verify.measured.results import Verification
from verify.reports import html


def fragment(verification: Verification) -> str:
    """Return ``verification`` as one HTML element, for :attr:`codemods.rewriting.changes.Evidence.html`:
    the verdict over all, the
    verdict on each rewrite, and for each command the table and the plots (inline SVG, where matplotlib is installed).

    It brings its own style, which holds for it alone and follows the colour scheme around it. Its headings begin at
    ``h3``; its identifiers are those of the plots.
    """
    return html.fragment(verification)
