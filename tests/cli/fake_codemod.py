"""``codemod`` with the fake engine, as a process of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import codemods.checking.check
from codemods.analysis.analyse import Analysis
from codemods.cli import main
from codemods.source.files import SourceFile
from tests import fakes


class Analyser(fakes.Analyser):
    """Takes its time over a file that says SLEEPY, and tells when it has begun to."""

    def __call__(self, targets: Sequence[SourceFile], **options: Any) -> Analysis:
        if any("SLEEPY" in target.text for target in targets):
            print("asleep", file=sys.stderr, flush=True)
            time.sleep(60)
        return super().__call__(targets, **options)


if __name__ == "__main__":
    codemods.checking.check.check.__kwdefaults__["analyse"] = Analyser()
    sys.exit(main())
