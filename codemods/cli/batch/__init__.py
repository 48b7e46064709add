"""``codemod batch``: many repositories, planned, rewritten, proven, reported on and published."""

from __future__ import annotations

from codemods.cli.batch import campaigns, requests
from codemods.cli.batch._options import app

__all__ = ["app", "campaigns", "requests"]
