"""One page for reviewers that needs nothing else: no network, nothing from elsewhere, readable without script.

Every hunk of the diff is in it once, side by side, with the trail of the graph in the margin; beside it why it was
changed, what is promised and what ``verify`` saw. What was left follows with its reasons. After a dry run a script lets
the reader accept changes, and makes a patch and a command line of those. The page is made of the
report alone, and the same report makes the same page.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from markupsafe import Markup

from codemods.manual.explain import PROMISES, TITLES, Explanation, catalogue
from codemods.reports import Detail, Report
from codemods.reports._cards import Card, cards_of
from codemods.reports._lines import Lines
from codemods.reports._markup import environment
from codemods.reports._next import apply_again
from codemods.rewriting.changes import Hunk
from codemods.rewriting.single_fixes import fixes
from codemods.source.diffs import header_name
from codemods.source.python2 import RULE as PYTHON2
from codemods.terms.counting import count_text
from codemods.terms.findings import Promise

#: Lines of context on either side of a change, as in any diff.
CONTEXT = 3


def edits_of(report: Report, cards: Sequence[Card]) -> str:
    """Return for the page's script, as JSON, what can be accepted: ``files``, ``hunks`` and ``fixes``, and the
    ``command`` that would make all of it.

    A fix is made as a whole or not at all; it names its hunks, the places of its findings and the ``cards`` that show
    it. A hunk names its file, its first line, the lines that go and come, and those around it. Of a notebook, of a file
    that was translated first and of one that is not UTF-8 there are no hunks: no diff of text fits it. After files were
    written there is nothing left to accept.
    """
    if report.review is None or (report.applied and not report.dry_run):
        return ""
    lines = Lines(report)
    shown = {hunk: card.id for card in cards for hunk in card.hunks}
    numbers: dict[Hunk, int] = {}
    paths: dict[str, int] = {}
    made = []
    for fix in fixes(report.review):
        plain = all(_has_diff(report, hunk.path) for hunk in fix.hunks)
        for hunk in fix.hunks if plain else ():
            numbers.setdefault(hunk, len(numbers))
            paths.setdefault(hunk.path, len(paths))
        findings = [finding for change in fix.changes for finding in change.findings]
        made.append(
            {
                "hunks": [numbers[hunk] for hunk in fix.hunks] if plain else None,
                "changes": [
                    f"{change.rule} {lines.place(change.finding.path, change.finding.span.line)}"
                    for change in fix.changes
                ],
                "at": list(dict.fromkeys(lines.place(one.path, one.span.line) for one in findings)),
                "cards": list(dict.fromkeys(shown[hunk] for hunk in fix.hunks if hunk in shown)),
            }
        )
    hunks = [_told(hunk, paths[hunk.path], lines.old(hunk.path)) for hunk in numbers]
    files = [[header_name(side, path).decode("utf-8", "replace") for side in "ab"] for path in paths]
    content = {"command": apply_again(report), "files": files, "hunks": hunks, "fixes": made}
    return json.dumps(content, separators=(",", ":"))


def _has_diff(report: Report, path: str) -> bool:
    source = report.sources.get(path)
    utf8 = source is not None and source.notebook is None and source.encoding.lower().replace("_", "-") == "utf-8"
    return utf8 and path not in report.translated


def _told(hunk: Hunk, file: int, old: Sequence[str]) -> dict[str, Any]:
    start, end = hunk.old_start - 1, hunk.old_start - 1 + len(hunk.removed)
    return {
        "file": file,
        "line": hunk.old_start,
        "above": list(old[max(0, start - CONTEXT) : start]),
        "gone": list(hunk.removed),
        "come": list(hunk.added),
        "below": list(old[end : end + CONTEXT]),
    }


#: ``check`` works out what ``apply`` would do, for the page to show it.
EDITS = True

#: What stands before a verdict, so that it is not told by colour alone.
MARKS = {"kept": "✓", "broken": "✗", "partly reached": "◐", "not reached": "○", "not judged": "?"}
TONES = {"kept": "good", "broken": "bad"}


class _Told(NamedTuple):
    """A rule as the page tells it: how many of its findings are changed and left, and what it says of itself."""

    name: str
    changed: int
    left: int
    promises: tuple[Promise, ...]
    explanation: Explanation | None


class _Filter(NamedTuple):
    """Something to filter by: its choices, each a value and what people read."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...]


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the page; ``detail`` and ``colour`` change nothing."""
    cards = cards_of(report)
    templates = resources.files(__package__).joinpath("templates")
    script = "".join(templates.joinpath(name).read_text(encoding="utf-8") for name in ("patch.js", "review.js")).strip()
    changed = [card for card in cards if not card.left]
    left = [card for card in cards if card.left]
    paths = list(dict.fromkeys(card.path for card in cards))
    numbers = _folders(paths)
    text = (
        environment()
        .get_template("review.html")
        .render(
            report=report,
            headline=_headline(report),
            facts=_facts(report),
            changed=changed,
            left=left,
            filters=_filters(cards, paths),
            files={path: f"f{index}" for index, path in enumerate(paths)},
            folders={path: " ".join(f"d{numbers[folder]}" for folder in _above(path)) for path in paths},
            rules=_rules(report),
            titles=TITLES,
            promises=PROMISES,
            promises_by_name={promise.value: words for promise, words in PROMISES.items()},
            failures=[(report.told(one.path, one.line), f"{one.rule}: {one.reason}") for one in report.failures],
            unwritten=[(one.place, one.reason) for one in report.unwritten],
            skipped=[(one.place, one.reason) for one in report.skipped],
            evidence=Markup(report.evidence.html) if report.evidence else "",
            marks=MARKS,
            tones=TONES,
            edits=edits_of(report, changed),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )
    return text.rstrip("\n") + "\n"


def _headline(report: Report) -> str:
    if not report.applied:
        files = len({reported.finding.path for reported in report.findings})
        return f"{count_text(len(report.findings), 'finding')}" + (f" in {count_text(files, 'file')}" if files else "")
    verb = "would be fixed" if report.dry_run else "fixed"
    if not report.fixed:
        return f"nothing {verb}"
    return f"{count_text(len(report.fixed), 'finding')} {verb} in {count_text(len(report.changed), 'file')}"


def _facts(report: Report) -> list[str]:
    """What the summary of the text report says besides."""
    parts = [f"{count_text(report.files, 'file')} read"]
    parts += [f"{len(report.findings):,} left"] if report.applied else [f"{report.fixable:,} fixable"]
    for entries, what in (
        (report.skipped, "skipped"),
        (report.failures, "taken back"),
        (report.dropped, "not made"),
        (report.unwritten, "not saved"),
    ):
        if entries:
            parts.append(f"{len(entries):,} {what}")
    return parts


def _filters(cards: list[Card], paths: list[str]) -> list[_Filter]:
    """Return what the cards can be filtered by: only where there is a choice."""
    promises = [promise for promise in Promise if any(promise.value in card.promises for card in cards)]
    verdicts = sorted({verdict for card in cards for verdict in card.verdicts}, key=list(MARKS).index)
    found = (
        _Filter(
            "rule", "rule", tuple((name, name) for name in sorted({rule for card in cards for rule in card.rules}))
        ),
        _Filter("promise", "promise", tuple((promise.value, promise.value) for promise in promises)),
        _Filter("verdict", "verdict", tuple((verdict.replace(" ", "-"), verdict) for verdict in verdicts)),
        _Filter("folder", "folder", tuple((f"d{number}", folder) for folder, number in _folders(paths).items())),
        _Filter("file", "file", tuple((f"f{index}", path) for index, path in enumerate(paths))),
    )
    return [one for one in found if len(one.choices) > 1]


def _folders(paths: list[str]) -> dict[str, int]:
    """Return the folders above ``paths``, numbered in their order."""
    return {folder: number for number, folder in enumerate(sorted({f for path in paths for f in _above(path)}))}


def _above(path: str) -> list[str]:
    return [str(folder) for folder in PurePosixPath(path).parents if str(folder) not in (".", "/")]


def _rules(report: Report) -> list[_Told]:
    made = [*report.fixed] if report.applied else []
    if not report.applied and report.review is not None:
        made = [finding for change in report.review.changes for finding in change.findings]
    changed = Counter(finding.rule for finding in made)
    keys = {finding.key for finding in made}
    stay = [one.finding for one in report.findings if report.applied or one.finding.key not in keys]
    left = Counter(finding.rule for finding in stay)
    known = {told.name: told for told in catalogue()}
    promises: dict[str, set[Promise]] = {}
    for finding in (*made, *stay):
        promises.setdefault(finding.rule, set()).add(finding.promise)
    return [
        _Told(name, changed[name], left[name], tuple(sorted(promises[name], key=lambda p: p.rank)), known.get(name))
        for name in sorted(promises, key=lambda name: (name == PYTHON2, name))
    ]
