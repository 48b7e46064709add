"""What a rule is about, from the only place where that is written down: the rule's docstring and its fixtures."""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.diffs import unified
from codemods.findings import Promise
from codemods.rules import all_rules, rule

PROMISES = {
    Promise.EXACT: "makes the same parameter updates, bit for bit; only memory, time and the digits of totals change",
    Promise.EQUIVALENT: "does the same mathematics; floating-point rounding may differ",
    Promise.REPAIR: "does what was meant, where the original raises or grows without bound; the same up to that point",
    Promise.BEHAVIOUR: "learns something else than the original; applied only with --unsafe",
    Promise.ADVICE: "does not exist: the finding is reported and never applied",
}

#: The words that begin a section of a rule's docstring, and what the section is called.
SECTIONS = {
    "Why it hurts": "why",
    "The rewrite": "rewrite",
    "Left alone": "left",
    "Advice": "advice",
    "Promise": "promise",
    "Options": "options",
    "Goes with": "company",
    "Source": "sources",
    "Sources": "sources",
}
TITLES = {name: label for label, name in SECTIONS.items()}
_BY_NAME = " (only if selected by name)"
_FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


class Explanation(NamedTuple):
    """One rule, told: its documentation and, where its fixtures are at hand, an example ``before`` and ``after``."""

    name: str
    promise: Promise
    summary: str
    opt_in: bool
    documentation: str
    before: str | None = None
    after: str | None = None

    @property
    def sections(self) -> dict[str, str]:
        """The documentation by what it speaks of: ``what`` first, then those of :data:`SECTIONS` that there are."""
        found: dict[str, list[str]] = {"what": []}
        name = "what"
        for paragraph in self.documentation.split("\n\n"):
            label, colon, rest = paragraph.partition(":")
            if colon and label in SECTIONS:
                name, paragraph = SECTIONS[label], rest.strip("\n ")
            found.setdefault(name, []).append(paragraph)
        return {name: "\n\n".join(parts) for name, parts in found.items()}


def explain(name: str, *, fixtures: Path = _FIXTURES) -> Explanation:
    """Return what is to be known of the rule ``name``; raises :class:`~codemods.rules.UnknownRule`."""
    before, after = _example(fixtures / name)
    if before is None:
        before, after = _example(fixtures / name.replace("-", "_"))
    return _told(name, before, after)


def catalogue() -> list[Explanation]:
    """Return every rule in alphabetical order, without examples."""
    return [_told(name) for name in all_rules()]


def _told(name: str, before: str | None = None, after: str | None = None) -> Explanation:
    found = rule(name)
    written = type(found).__doc__ or sys.modules[type(found).__module__].__doc__
    documentation = inspect.cleandoc(written or "")
    return Explanation(found.name, found.promise, found.summary, found.opt_in, documentation, before, after)


def _example(folder: Path) -> tuple[str | None, str | None]:
    # The shortest pair says it with the least around it.
    pairs = [(before, before.with_name("after.py")) for before in folder.rglob("before.py")]
    sizes = sorted((before.stat().st_size, before, after) for before, after in pairs if after.is_file())
    if not sizes:
        return None, None
    _, before, after = sizes[0]
    return before.read_text(encoding="utf-8"), after.read_text(encoding="utf-8")


def list_as_text(rules: Sequence[Explanation]) -> str:
    """Return a line for each of ``rules``: name, promise, summary."""
    names = max((len(told.name) for told in rules), default=0)
    promises = max((len(told.promise.value) for told in rules), default=0)
    return "".join(
        f"{told.name:<{names}}  {told.promise.value:<{promises}}  {told.summary}{_BY_NAME if told.opt_in else ''}\n"
        for told in rules
    )


def list_as_json(rules: Sequence[Explanation]) -> str:
    """Return ``rules`` as one JSON object, versioned like the reports."""
    listed = [
        {"name": told.name, "promise": told.promise.value, "summary": told.summary, "opt_in": told.opt_in}
        for told in rules
    ]
    return json.dumps({"version": 1, "rules": listed}, indent=1) + "\n"


def as_text(told: Explanation) -> str:
    """Return all there is to know of a rule, for people."""
    parts = [
        f"{told.name}: {told.summary}{_BY_NAME if told.opt_in else ''}",
        textwrap.fill(f"Promise: {told.promise.value}. The rewritten program {PROMISES[told.promise]}.", width=100),
        told.documentation,
    ]
    if told.before is not None and told.after is not None:
        parts.append("Example:\n\n" + textwrap.indent(_example_diff(told.before, told.after), "    ").rstrip())
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(told: Explanation) -> str:
    """Return all there is to know of a rule as one JSON object."""
    content = {"version": 1, **told._asdict(), "promise": told.promise.value}
    return json.dumps(content, indent=1) + "\n"


def _example_diff(before: str, after: str) -> str:
    diff = unified("before.py", before.encode(), after.encode()).decode()
    return "".join(diff.splitlines(keepends=True)[2:])
