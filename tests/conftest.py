"""What the whole run has to tell at its end."""

from __future__ import annotations

import signal
from typing import Any

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever runs in the background is deaf to Ctrl-C, and so would be all that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

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
