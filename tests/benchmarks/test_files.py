"""The way of a command through the files of the package, as the benchmark counts it."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.files import SCRIPT, way_of


def test_functions_count_and_imports_do_not(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    way = way_of(["check", "--no-cache", "-j", "1", str(script)])
    assert way.calls["graph/python/machine.py"]
    # tables only: loaded, never called
    assert "graph/model/facts/operations.py" not in way.calls
    # every call comes back
    assert all(way.changes[new, old] == times for (old, new), times in way.changes.items())
