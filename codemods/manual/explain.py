"""What a rule is about, from where that is written down: its docstring, its fixtures, what was measured of them."""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from codemods.manual.measured import Measured, figures, sentence
from codemods.rules import UnknownRule, all_rules, rule, rule_names
from codemods.source.diffs import unified
from codemods.source.home import home
from codemods.terms.findings import Promise

PROMISES = {
    Promise.EXACT: "makes the same parameter updates, bit for bit; only memory, time and the digits of totals change",
    Promise.EQUIVALENT: "does the same mathematics; floating-point rounding may differ",
    Promise.REPAIR: "does what was meant, where the original raises or grows without bound; the same up to that point",
    Promise.BEHAVIOUR: "may learn something else than the original; applied only with --unsafe",
    Promise.ADVICE: "does not exist: the finding is reported and never applied",
}
#: What ``verify`` asks of each promise, in the words of docs/verify.md.
CHECKS = {
    Promise.EXACT: "every loss, all parameters after each step and all else that is compared are the same, bit for bit",
    Promise.EQUIVALENT: "losses and parameters differ by rounding at most",
    Promise.REPAIR: (
        "the error or the growth of the original is gone, the graph stays flat, and up to the error both computed "
        "the same; where it was growth and the updates are the same, all else that is compared is the same too, else "
        "the report says that they differ"
    ),
    Promise.BEHAVIOUR: (
        "the rewritten program runs and its graph stays flat; how it differs from the original is reported, not judged"
    ),
}

#: The words that begin a section of a rule's docstring, and what the section is called.
SECTIONS = {
    "Why it hurts": "why",
    "The rewrite": "rewrite",
    "Left alone": "left",
    "Advice": "advice",
    "Promise": "promise",
    "Options": "options",
    "Source": "sources",
    "Sources": "sources",
}
TITLES = {name: label for label, name in SECTIONS.items()}
_BY_NAME = " (only if selected by name)"
_FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
#: The examples of the rules, for where there are no fixtures; written by ``python -m codemods.manual.pages``.
EXAMPLES = "examples.json"


class Explanation(NamedTuple):
    """One rule, told: its documentation, an example ``before`` and ``after`` (the fixture ``case``), what its fixtures
    were ``measured`` to do, and the rules that it speaks of or is found with (``company``)."""

    name: str
    promise: Promise
    summary: str
    opt_in: bool
    documentation: str
    before: str | None = None
    after: str | None = None
    since: str = ""
    case: str = ""
    measured: tuple[Measured, ...] = ()
    company: tuple[str, ...] = ()

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
        return {name: "\n\n".join(part for part in parts if part) for name, parts in found.items()}

    @property
    def figure(self) -> Measured | None:
        """The figures to show: of the example if it was measured, else of the first fixture."""
        return next((one for one in self.measured if one.case == self.case), next(iter(self.measured), None))


class Example(NamedTuple):
    """A fixture of one file that shows what a rule does: its name, and its text before and after."""

    case: str
    before: str
    after: str | None
    """None where the rule only advises: what it finds stays as it is."""


def explain(name: str, *, fixtures: Path = _FIXTURES) -> Explanation:
    """Return what is to be known of the rule ``name``; raises :class:`~codemods.rules.UnknownRule`.

    The example comes from ``fixtures``, or where they are not at hand from what an installation brings along.
    """
    told = _told(name)
    found = example(fixtures / name) or _brought().get(name)
    return told if found is None else told._replace(case=found.case, before=found.before, after=found.after)


def explanation(name: str) -> Explanation | None:
    """Return the same; None for what is no rule, as the translation from Python 2."""
    try:
        return explain(name)
    except UnknownRule:
        return None


def reason(told: Explanation) -> list[str]:
    """Return what is wrong and why, in paragraphs without line ends: the first two of the documentation."""
    return [" ".join(part.split()).replace("``", "`") for part in told.documentation.split("\n\n")[:2]]


def source_of_fact(told: Explanation) -> str:
    """Return the address of the page that the documentation names as its source, empty where it names none."""
    found = re.search(r"^Sources?: (https://\S+)", told.documentation, re.MULTILINE)
    return found[1].rstrip(".,;") if found else ""


def page(told: Explanation) -> str:
    """Return the address of the page of a rule, empty as long as the project has none that everybody can reach."""
    return f"{home()}/blob/HEAD/{page_file(told)}" if home() else ""


def page_file(told: Explanation) -> str:
    """Return where the page of a rule stands in the repository of this project."""
    return f"docs/rules/{told.name}.md"


def catalogue() -> list[Explanation]:
    """Return every rule in alphabetical order, without examples."""
    return [_told(name) for name in all_rules()]


def _told(name: str) -> Explanation:
    found = rule(name)
    written = type(found).__doc__ or sys.modules[type(found).__module__].__doc__
    documentation = inspect.cleandoc(written or "")
    company = tuple(other for other in rule_names() if other != name and f"``{other}``" in documentation)
    return Explanation(
        found.name,
        found.promise,
        found.summary,
        found.opt_in,
        documentation,
        since=found.since,
        measured=figures().of(name),
        company=company,
    )


def example(folder: Path) -> Example | None:
    """Return the fixture in ``folder`` that says ``example = true``, else the shortest; None if there is none.

    Of a rule that only advises it is one that stays as it is.
    """
    pairs = [before for before in folder.rglob("before.py") if before.with_name("after.py").is_file()]
    if not pairs:
        kept = next((file for file in sorted(folder.rglob("keep.py")) if _chosen(file)), None)
        return None if kept is None else Example(kept.parent.name, kept.read_text(encoding="utf-8"), None)
    before = min(pairs, key=lambda path: (not _chosen(path), path.stat().st_size, path))
    old, new = (path.read_text(encoding="utf-8") for path in (before, before.with_name("after.py")))
    return Example(before.parent.name, old, new)


def _chosen(before: Path) -> bool:
    about = before.with_name("case.toml")
    return about.is_file() and "\nexample = true\n" in about.read_text(encoding="utf-8")


@functools.cache
def _brought() -> dict[str, Example]:
    file = resources.files("codemods.rules").joinpath(EXAMPLES)
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {name: Example(**fields) for name, fields in read.items()}


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
    promise = f"Promise: {told.promise.value}. The rewritten program {PROMISES[told.promise]}."
    if told.promise in CHECKS:
        promise += f" What verify asks of it: {CHECKS[told.promise]}."
    parts = [
        f"{told.name}: {told.summary}{_BY_NAME if told.opt_in else ''}",
        _filled(promise),
        told.documentation,
        _filled(measured(told)),
        f"To leave a line alone, write `# codemod: ignore[{told.name}]` on it; `--ignore {told.name}` leaves all.",
    ]
    if told.before is not None and told.after is not None:
        parts.append("Example:\n\n" + textwrap.indent(example_diff(told.before, told.after), "    ").rstrip())
    elif told.before is not None:
        parts.append("Example of what it finds:\n\n" + textwrap.indent(told.before, "    ").rstrip())
    return "\n\n".join(part for part in parts if part) + "\n"


def measured(told: Explanation) -> str:
    """Return the figure behind a rule in a sentence; empty for a rule without fixtures."""
    if told.figure is not None:
        return f"Measured ({told.figure.case}; {figures().setting}): {sentence(told.figure)}."
    card = figures().cards.get(told.name)
    return f"Measured ({card})." if card else ""


def as_json(told: Explanation) -> str:
    """Return all there is to know of a rule as one JSON object."""
    shown = [{**one._asdict(), "before": one.before._asdict(), "after": one.after._asdict()} for one in told.measured]
    content = {"version": 1, **told._asdict(), "promise": told.promise.value, "measured": shown}
    return json.dumps(content, indent=1) + "\n"


def example_diff(before: str, after: str) -> str:
    """Return the hunks between the texts of an example."""
    diff = unified("before.py", before.encode(), after.encode()).decode()
    return "".join(diff.splitlines(keepends=True)[2:])


def _filled(text: str) -> str:
    return textwrap.fill(text, width=100, break_long_words=False, break_on_hyphens=False)
