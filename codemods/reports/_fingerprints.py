"""What tells a finding from others while lines above it come and go."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from codemods.terms.findings import Finding


class Fingerprints:
    """Fingerprints of the findings of one report, each asked for once, in their order."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def __call__(self, finding: Finding, lines: Sequence[str]) -> str:
        """Return the mark of ``finding`` among those of its file, of which ``lines`` are the text: rule and statement.

        Of equal statements in one file only their order tells them apart.
        """
        words = " ".join(" ".join(lines[finding.span.line - 1 : finding.span.end_line]).split())
        digest = hashlib.sha256(f"{finding.rule}\0{words}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._seen[finding.path, digest] += 1
        return f"{digest}:{self._seen[finding.path, digest]}"
