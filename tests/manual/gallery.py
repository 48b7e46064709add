"""One page with what each rule does, before and after: ``python -m tests.manual.gallery docs/gallery.md``.

Everything on it comes from the rules, their fixtures and what was measured of them, as on the pages of the rules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from codemods.manual.explain import Explanation, catalogue, example_diff, explain, measured
from codemods.manual.pages import FIXTURES, place_of
from codemods.terms.findings import Promise, capitalised

_HEAD = """\
<!-- Written by `python -m tests.manual.gallery docs/gallery.md` from the rules and their fixtures. -->
# Before and after

What each rule finds and writes, in one small script each (the same scripts are the project's tests), with what a run
of it measured. The name of a rule leads to its page: when it fires, when it stays silent, what its rewrite promises."""

_GROUPS = (
    ("Rewritten", "Applied by `codemod apply`.", (Promise.EXACT, Promise.EQUIVALENT, Promise.REPAIR)),
    (
        "Rewritten when you say so",
        "They change what is learned, or time and memory: applied with `--unsafe`.",
        (Promise.BEHAVIOUR,),
    ),
    ("Told", "Shown by `codemod check` with what to do, and never applied.", (Promise.ADVICE,)),
)


def gallery(fixtures: Path = FIXTURES) -> str:
    """Return the page as Markdown."""
    told = [explain(entry.name, fixtures=fixtures) for entry in catalogue()]
    return "\n".join(_lines(told)).rstrip("\n") + "\n"


def _lines(told: Sequence[Explanation]) -> Iterator[str]:
    yield from (_HEAD, "")
    for title, words, promises in _GROUPS:
        yield from (f"## {title}", "", words, "")
        for one in told:
            if one.promise in promises and one.before is not None:
                yield from _entry(one, one.before)


def _entry(one: Explanation, before: str) -> Iterator[str]:
    yield from (f"### [{one.name}](rules/{one.name}.md)", "")
    summary = f"{capitalised(one.summary)}."
    yield from (f"{summary} Promise: {one.promise.value}{', only if selected by name' * one.opt_in}.", "")
    if one.after is not None:
        yield from ("```diff", example_diff(before, one.after).rstrip("\n"), "```", "")
    else:
        yield from ("```python", before.rstrip("\n"), "```", "")
    if one.measured:
        yield from (measured(one), "")


def main(arguments: Sequence[str]) -> int:
    """Write the page to the file that is given; 2 where none is, or where the fixtures are not at hand."""
    file = place_of(arguments, "usage: python -m tests.manual.gallery FILE")
    if file is None:
        return 2
    file.write_text(gallery(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
