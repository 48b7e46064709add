"""Measures what each rule's fixtures keep alive before and after: ``python -m tests.verify.measure [RULE ...]``.

Writes ``codemods/rules/figures.toml``, from which ``codemod explain`` and ``docs/rules/`` take their figures. It takes
a quarter of an hour; with names of rules only theirs are measured, and the other figures stay. After it,
``python -m codemods.manual.pages docs/rules`` writes the pages anew.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from codemods.cli._choices import settle_choices
from codemods.source.toml import parse_toml
from fixtures import Case, cases
from tests.verify.test_fixtures import _options
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Run
from verify.reports.figures import figures
from verify.running.settings import STEPS, Settings, script_command
from verify.verification import verify

HERE = Path(__file__).resolve().parents[2]
FIGURES = HERE / "codemods" / "rules" / "figures.toml"
#: What it changes is the memory of a CUDA device, which the machine need not have.
ON_A_DEVICE = ("empty-cache",)


def measured(case: Case, folder: Path) -> dict[str, Any]:
    """Return the figures of a pair: those of the original and the rewritten run, and what verify says."""
    for path, text in case.before.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    settings = Settings(steps=case.about.get("steps", STEPS))
    with chdir(folder):
        found = verify(
            [script_command(case.entry, case.about.get("args", []), settings.python)],
            options=settle_choices(".", **_options(case)).options,
            settings=settings,
            jobs=1,
            place=ForkedPlace,
        )
    entry = found.entries[0]
    assert entry.rewritten is not None, case
    return {
        "rule": case.rule,
        "case": case.name,
        "fault": case.about["fault"]["kind"],
        "verdict": ", ".join(sorted({rewrite.verdict.value for rewrite in found.rewrites})),
        "before": of_run(entry.original),
        "after": of_run(entry.rewritten),
    }


@contextmanager
def chdir(folder: Path) -> Iterator[None]:
    """Work in ``folder`` for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def of_run(run: Run) -> dict[str, Any]:
    """Return what a run kept alive.

    ``steps`` of all optimizers (or backwards, where nothing stepped), ``nodes`` of the graph alive at the last of them
    and ``most`` at any, ``added`` nodes and ``bytes_added`` a step over the last two thirds, ``bytes`` of the heap in
    the median; ``wasted`` forwards built a graph that nothing walked.
    """
    numbers = figures(run)
    error = run.error
    return {
        "steps": len(numbers.live),
        "nodes": numbers.live[-1] if numbers.live else 0,
        "most": max(numbers.live, default=0),
        "added": round(numbers.slope, 1) if len(numbers.live) >= 6 else 0.0,
        "bytes": round(statistics.median(numbers.bytes)) if numbers.bytes else 0,
        "bytes_added": round(numbers.growth) if numbers.growth is not None else 0,
        "wasted": sum(site.calls for site in numbers.wasted),
        "backwards": numbers.backwards,
        "error": "" if error is None else f"{error.type}: {error.message.strip().splitlines()[0][:160]}",
    }


def as_toml(found: list[dict[str, Any]], cards: dict[str, str]) -> str:
    """Return the file: when and where it was measured, what ``cards`` showed, then a table a case."""
    about = {
        "date": datetime.date.today().isoformat(),
        "torch": metadata.version("torch"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": "cpu",
        "threads": Settings().threads,
    }
    lines = ["# Measured by `python -m tests.verify.measure`; not to be edited by hand."]
    lines += [f"{name} = {_value(value)}" for name, value in about.items()]
    lines += ["", "[cards]", *(f"{name} = {_value(value)}" for name, value in cards.items())]
    for one in found:
        lines += ["", "[[case]]", *(f"{name} = {_value(value)}" for name, value in one.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def main() -> int:
    """Measure every pair, or those of the rules named, and write the file; 1 if verify said else of one of them."""
    named = sys.argv[1:]
    known = parse_toml(FIGURES.read_text(encoding="utf-8"))
    found = [one for one in known["case"] if named and one["rule"] not in named]
    for case in cases():
        if case.keep or case.rule in ON_A_DEVICE or (named and case.rule not in named):
            continue
        with tempfile.TemporaryDirectory() as folder:
            found.append(measured(case, Path(folder)))
        print(case, found[-1]["verdict"], file=sys.stderr)
    found.sort(key=lambda one: (one["rule"], one["case"]))
    FIGURES.write_text(as_toml(found, known["cards"]), encoding="utf-8")
    wanted = {(case.rule, case.name): case.about.get("verdict", "kept") for case in cases()}
    return int(any(one["verdict"] != wanted[one["rule"], one["case"]] for one in found))


if __name__ == "__main__":
    sys.exit(main())
