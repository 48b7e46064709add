"""The same program through ``codemod verify``: where the two checkers disagree, one of them is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.hunt.checking import Verdict, Violation

ROOT = Path(__file__).parents[2]


def disagreements(files: Mapping[str, str], verdict: Verdict) -> list[Violation]:
    """What ``verify`` says that ``verdict`` does not, or the other way round."""
    with tempfile.TemporaryDirectory(prefix="hunt-verify-") as folder:
        for path, text in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        Path(folder, "pyproject.toml").touch()
        command = [sys.executable, "-m", "codemods", "verify", "--format", "json", "main.py"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert verdict.after is not None
    try:
        report = json.loads(ran.stdout)
    except json.JSONDecodeError:
        return [Violation("verify", ("crash",), (ran.stderr or ran.stdout)[-2000:], verdict.after)]
    broken = [
        (rewrite["findings"][0]["rule"], rewrite["why"])
        for rewrite in report["rewrites"]
        if rewrite["verdict"] == "broken"
    ]
    ours = [v for v in verdict.violations if v.kind in ("exact", "equivalent", "repair")]
    if broken and not ours:
        rules = tuple(sorted({rule for rule, _ in broken}))
        return [Violation("verify", ("broken", *rules), "; ".join(why for _, why in broken), verdict.after)]
    judged = [rewrite for rewrite in report["rewrites"] if rewrite["verdict"] == "kept"]
    if ours and judged and not broken:
        return [Violation("verify", ("kept", *ours[0].rules), ours[0].why, verdict.after)]
    return []
