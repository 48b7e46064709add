"""What holds for the whole run: signals, garbage, and what is told at its end."""

from __future__ import annotations

import compileall
import gc
import signal
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever runs in the background is deaf to Ctrl-C, and so would be all that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Compile the packages once: where nobody keeps bytecode, every process that a test starts would do it anew."""
    if not hasattr(config, "workerinput"):
        for package in ("codemods", "verify"):
            compileall.compile_dir(config.rootpath / package, quiet=2)
    # How long an example takes says how busy the machine is.
    hypothesis.settings.register_profile("patient", deadline=None)
    hypothesis.settings.load_profile("patient")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep thousands of tests and their modules out of the garbage collector's sight.

    While they are collected there is little garbage and much to look through; afterwards, whoever counts graph nodes by
    looking at all objects, as ``verify.watch`` does, would see a million that no test made.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module")
def few_objects() -> None:
    """For modules that look at all objects again and again: what other tests have left behind is not looked at."""
    gc.collect()
    gc.freeze()


HEAD = ("fixture", "fault of the original", "promise", "verdict", "what was seen")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table of all fixtures that were verified; `docs/verified-fixtures.md` holds one such run."""
    rows = sorted(
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "fixture" and report.when == "call"
    )
    if rows:
        terminalreporter.section("verified fixtures")
        terminalreporter.write("\n".join(table(rows)) + "\n")


def table(rows: list[list[str]]) -> list[str]:
    """The lines of a table in markdown."""
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD), *cells)]
