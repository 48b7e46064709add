"""A page for each rule, written from the rule itself: ``python -m codemods.manual.pages docs/rules``.

Nothing on a page is written by hand: texts come from docstrings, examples and exceptions from the fixtures, figures
from what was measured. The examples are also kept for installations, which have no fixtures.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codemods.manual.explain import (
    CHECKS,
    EXAMPLES,
    PROMISES,
    Explanation,
    catalogue,
    example,
    example_diff,
    explain,
    measured,
)
from codemods.manual.measured import Measured
from codemods.source.toml import parse_toml
from codemods.terms.counting import bytes_text
from codemods.terms.findings import Promise, capitalised

_ROOT = Path(__file__).resolve().parents[2]
FIXTURES = _ROOT / "fixtures"
DATA = _ROOT / "codemods" / "rules" / EXAMPLES

_ABOUT = """\
Training in PyTorch records an *autograd graph*: every operation on a tensor that leads back to a parameter adds a node,
which remembers what it needs to compute gradients. `loss.backward()` walks that graph from the loss to the parameters,
adds up their gradients in `.grad`, and frees what the nodes had saved. A graph lives as long as something refers to a
tensor that it made. ([Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html), [a gentle
introduction](https://docs.pytorch.org/tutorials/beginner/blitz/autograd_tutorial.html))"""

_WRITTEN = "<!-- Written by `python -m codemods.manual.pages docs/rules` from the rule and its fixtures. -->"


_APPLIED = {
    Promise.BEHAVIOUR: "applied only with `--unsafe`",
    Promise.ADVICE: "never applied: it is told, with what to do",
}


class Kept(NamedTuple):
    """A fixture that a rule leaves as it is: what it is, and why it stays."""

    title: str
    why: str


def pages(fixtures: Path = FIXTURES) -> dict[str, str]:
    """Return the pages by file name: one a rule, and ``README.md``, which lists them."""
    told = [explain(entry.name, fixtures=fixtures) for entry in catalogue()]
    met = {entry.name: _met(entry.name, fixtures) for entry in told}
    written = {f"{one.name}.md": page(one, _kept(fixtures / one.name), met[one.name]) for one in told}
    return {"README.md": index(told), **written}


def examples(fixtures: Path = FIXTURES) -> str:
    """Return what installations know of the fixtures: the example of each rule, as JSON."""
    found = {entry.name: example(fixtures / entry.name) for entry in catalogue()}
    return json.dumps({name: one._asdict() for name, one in found.items() if one}, indent=1) + "\n"


def index(told: Sequence[Explanation]) -> str:
    """Return the page that lists the rules."""
    rows = [f"| [{one.name}]({one.name}.md) | {one.promise.value} | {_sentence(one)} |" for one in told]
    promises = [f"| `{promise.value}` | {words} | {CHECKS.get(promise, '')} |" for promise, words in PROMISES.items()]
    return "\n".join(
        [
            _WRITTEN,
            "# The rules",
            "",
            _ABOUT,
            "",
            "Every rule is about one of three mistakes with it: the graph is used after it was freed, it is kept when",
            "nobody needs it, or it is changed under its own feet. `codemod explain RULE` prints a page in short.",
            "",
            "| rule | promise | what it finds |",
            "| --- | --- | --- |",
            *rows,
            "",
            "A finding may promise something else than its rule usually does: its page says when. What is promised,",
            "and what [verify](../verify.md) asks of it:",
            "",
            "| promise | the rewritten program ... | what verify asks |",
            "| --- | --- | --- |",
            *promises,
            "",
        ]
    )


def page(told: Explanation, kept: Sequence[Kept], met: Sequence[str]) -> str:
    """Return the page of a rule; ``kept`` are the fixtures that it leaves alone, ``met`` the rules it is found with."""
    return "\n".join(_lines(told, kept, met)).rstrip("\n") + "\n"


def _lines(told: Explanation, kept: Sequence[Kept], met: Sequence[str]) -> Iterator[str]:
    said = told.sections
    yield from (_WRITTEN, f"# {told.name}", "", _markdown(said["what"]), "")
    applied = _APPLIED.get(told.promise, "applied by default")
    yield f"**Promise:** [{told.promise.value}](README.md), {applied}{', and only if selected by name' * told.opt_in}."
    yield from ("", "<details><summary>New to autograd?</summary>", "", _ABOUT, "", "</details>", "")
    if "why" in said:
        yield from ("## Why it hurts", "", _markdown(said["why"]), "")
    if told.measured or told.opt_in:
        yield from _table(told)
    if told.before is not None and told.after is not None:
        yield from ("## Example", "", f"From the fixture `{told.name}/{told.case}`:", "")
        yield from ("```diff", example_diff(told.before, told.after).rstrip("\n"), "```", "")
    elif told.before is not None:
        yield from ("## Example", "", f"What it finds in the fixture `{told.name}/{told.case}`:", "")
        yield from ("```python", told.before.rstrip("\n"), "```", "")
    if "rewrite" in said:
        yield from ("## What it writes", "", _markdown(said["rewrite"]), "")
    yield from ("## What it leaves alone", "", _markdown(said.get("left", "")), "")
    if "advice" in said:
        if told.promise is Promise.ADVICE:
            yield from ("## What to do", "", _markdown(said["advice"]), "")
        else:
            yield from ("Reported as advice and never changed:", "", _markdown(said["advice"]), "")
    if kept:
        yield from ("Fixtures that stay as they are, and why:", "")
        yield from (f"* *{_plain(one.title)}*: {_plain(one.why)}" for one in kept)
        yield ""
    if told.promise is Promise.ADVICE:
        yield from ("## Why it is only advice", "", _markdown(said.get("promise", "")), "")
    else:
        yield from ("## What is promised, and how it is verified", "", _markdown(said.get("promise", "")), "")
        yield from _verified(told)
    yield from _options(told)
    company = sorted({*told.company, *met})
    if company:
        yield from ("## Goes with", "", ", ".join(f"[{name}]({name}.md)" for name in company) + ".", "")
    if "sources" in said:
        yield from ("## Sources", "", _markdown(said["sources"]), "")


def _table(told: Explanation) -> Iterator[str]:
    yield from ("### Measured", "", measured(told), "")
    if not told.measured:
        return
    yield "The fixtures are small, so that they run in a second; what is kept grows with the model and the batch."
    yield from ("", "<details><summary>All its fixtures</summary>")
    yield from (
        "",
        "Before → after; graph nodes are counted at the end of each optimizer step.",
        "",
    )
    yield "| fixture | steps | nodes, last step | nodes, at most | nodes a step | heap a step | wasted forwards |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    yield from map(_row, told.measured)
    yield from ("", "</details>", "")


def _row(one: Measured) -> str:
    old, new = one.before, one.after
    steps = f"raises at backward {old.backwards} → {new.steps}" if old.error else f"{old.steps} → {new.steps}"
    added = f"{old.added:,.1f} → {new.added:,.1f}" if old.steps >= 6 else f"– → {new.added:,.1f}"
    # Where no nodes stay, what the heap does from step to step is chance.
    heap = f"{bytes_text(old.bytes_added)} → {bytes_text(new.bytes_added)}" if old.added >= 1 else "–"
    cells = (one.case, steps, f"{old.nodes:,} → {new.nodes:,}", f"{old.most:,} → {new.most:,}", added, heap)
    return f"| {' | '.join(cells)} | {old.wasted:,} → {new.wasted:,} |"


def _verified(told: Explanation) -> Iterator[str]:
    words = re.findall(r"\b(?:exact|equivalent|repair|behaviour)\b", told.sections.get("promise", ""), re.IGNORECASE)
    named = {told.promise, *(Promise(word.lower()) for word in words)}
    yield from ("[verify](../verify.md) runs original and rewritten, and asks:", "")
    yield from (f"* `{promise.value}`: {CHECKS[promise]}." for promise in CHECKS if promise in named)
    yield from ("", "What it saw of each fixture stands in [verified-fixtures.md](../verified-fixtures.md).", "")


def _options(told: Explanation) -> Iterator[str]:
    yield from ("## Options", "")
    if "options" in told.sections:
        yield from (_markdown(told.sections["options"]), "")
    if told.opt_in:
        yield f"* It is looked for only with `--select {told.name}`."
    if told.promise is Promise.BEHAVIOUR:
        yield "* It is applied only with `--unsafe`."
    elif "behaviour" in told.sections.get("promise", "").lower():
        yield "* What it promises as `behaviour` is applied only with `--unsafe`."
    if told.since:
        yield f"* It writes what PyTorch has since {told.since}: with an older `--target-torch` it changes nothing."
    yield f"* `# codemod: ignore[{told.name}]` on the line leaves that line alone, `--ignore {told.name}` all of them."
    yield ""


def _kept(folder: Path) -> list[Kept]:
    read = [_about(file) for file in sorted(folder.glob("*/case.toml")) if _keeps(file.parent)]
    return [Kept(about["title"], about["why"]) for about in read if "advice" not in about]


def _met(name: str, fixtures: Path) -> list[str]:
    """The rules whose findings stand beside those of ``name`` in its fixtures."""
    found = {
        finding["rule"] for file in (fixtures / name).glob("*/case.toml") for finding in _about(file).get("finding", [])
    }
    return sorted(found - {name})


def _keeps(folder: Path) -> bool:
    return (folder / "keep").exists() or (folder / "keep.py").exists()


def _about(file: Path) -> dict[str, Any]:
    return parse_toml(file.read_text(encoding="utf-8"))


def _sentence(one: Explanation) -> str:
    return _plain(one.summary) + (" (only if selected by name)" if one.opt_in else "")


def _markdown(text: str) -> str:
    """Return part of a docstring as Markdown: code in single backquotes, addresses as links, a capital first."""
    text = re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)
    text = re.sub(r"(?<![<(])(https?://[^\s<>]+[^\s<>.,;)])", r"<\1>", text)
    return "\n\n".join(map(_filled, capitalised(text).split("\n\n")))


def _filled(paragraph: str) -> str:
    if re.match(r"\*|\d+\.", paragraph):
        return paragraph
    return textwrap.fill(paragraph, width=120, break_long_words=False, break_on_hyphens=False)


def _plain(text: str) -> str:
    """Return a sentence of a fixture without what Markdown would read as its own."""
    return re.sub(r"([*_<>|])", r"\\\1", text)


def place_of(arguments: Sequence[str], usage: str) -> Path | None:
    """Return the one path that ``arguments`` name; None, after a word on why, where nothing can be written there."""
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        if FIXTURES.is_dir():
            return Path(arguments[0])
        usage = "this is written from a clone of the repository: there are no fixtures here"
    print(usage, file=sys.stderr)
    return None


def main(arguments: Sequence[str]) -> int:
    """Write the pages into the folder that ``arguments`` name, and the examples beside the rules."""
    folder = place_of(arguments, "usage: python -m codemods.manual.pages FOLDER")
    if folder is None:
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    written = pages()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    for old in folder.glob("*.md"):
        if old.name not in written:
            old.unlink()
    DATA.write_text(examples(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
