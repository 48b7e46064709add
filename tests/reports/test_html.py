"""The review page: every hunk once, nothing from outside, and source text that stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from codemods.checking.check import check
from codemods.checking.reported import Reported
from codemods.reports import Detail, Report, renderer, shows_edits
from codemods.reports._markup import coded, prose
from codemods.reports._syntax import colours, divided
from codemods.reports._trails import arcs, kind_of, stations
from codemods.rewriting.apply import apply
from codemods.rewriting.changes import Evidence, Hunk, Proof, patched
from codemods.rewriting.result import Dropped, Failure
from codemods.source.diffs import Piece, printable
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.findings import Finding, Promise, Skipped, TrailStep
from codemods.terms.spans import Span
from tests.commands import codemod
from tests.notebooks import code, notebook

VOID = {"meta", "br"}
HEAD = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = (
    HEAD
    + """
total = 0
for _ in range(3):
    loss = model(torch.randn(2, 4)).sum()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss
print(total)
"""
)


class Page(HTMLParser):
    """A page read strictly: every element is closed in its turn, every identifier stands once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.cells: list[tuple[str, dict[str, str | None], str]] = []
        """Of the code of each card: the card's identifier, the attributes of the line and its text."""
        self.feed(text)
        self.close()
        assert not self.open, self.open
        names = [attributes["id"] for _, attributes in self.seen if "id" in attributes]
        assert len(names) == len(set(names))
        wanted = {value for _, attributes in self.seen for value in [attributes.get("href") or ""] if value[:1] == "#"}
        assert {value[1:] for value in wanted} <= set(names)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.seen.append((tag, attributes))
        if tag in VOID:
            return
        self.open.append((tag, attributes))
        if tag == "code" and {"data-o", "data-n"} & attributes.keys() and not self._inside("ol"):
            card = next((a["id"] for t, a in self.open if t == "article"), None)
            self.cells.append((card or "", attributes, ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self._inside("style") or self._inside("script"):
            return
        self.words.append(data)
        if self.open and any("data-o" in a or "data-n" in a for _, a in self.open) and not self._inside("ol"):
            card, attributes, text = self.cells[-1]
            if not any(a.get("class") == "aside" for _, a in self.open):
                self.cells[-1] = (card, attributes, text + data)

    def _inside(self, tag: str) -> bool:
        return any(name == tag for name, _ in self.open)

    @property
    def shown(self) -> str:
        return " ".join("".join(self.words).split())

    def cards(self) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.seen if tag == "article"]

    def side(self, name: str) -> list[str]:
        """The changed lines of one side: ``del`` or ``ins``."""
        return [text for _, attributes, text in self.cells if attributes.get("class") == name]


def page(report: Report) -> Page:
    return Page(renderer("html")(report, Detail.NORMAL))


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def applied(dry_run: bool = True, evidence: Evidence | None = None, **files: str) -> Report:
    for name, text in files.items():
        Path(f"{name}.py").write_text(text, newline="")
    return Report.of_apply(apply(read_targets(["."]).sources, options=Options(), dry_run=dry_run), evidence)


def signed(diff: bytes, sign: str) -> list[str]:
    lines = diff.decode().split("\n")
    return [printable(line[1:].rstrip("\r")) for line in lines if line[:1] == sign and line[:3] != sign * 3]


def test_both_sides_are_those_of_the_diff() -> None:
    indented = LOOP.replace("\n    ", "\n\t").replace("total = 0", "total = 0  # <b>&amp;")
    report = applied(a=LOOP, b=LOOP.replace("\n", "\r\n"), c=indented, d=LOOP.rstrip("\n"))
    assert len(report.fixed) == 8
    read = page(report)
    assert read.side("del") == signed(report.diff, "-")
    assert read.side("ins") == signed(report.diff, "+")


def test_every_hunk_is_on_one_card_with_the_lines_around_it() -> None:
    report = applied(a=LOOP + "\n" * 30 + LOOP.replace(HEAD, ""), b=LOOP)
    assert report.review is not None
    read = page(report)
    for hunk in report.review.hunks:
        card = [
            card
            for card in read.cards()
            if card["data-path"] == hunk.path
            and any(
                name == card["id"] and attributes.get("class") == "del" and attributes["data-o"] == str(hunk.old_start)
                for name, attributes, _ in read.cells
            )
        ]
        assert len(card) == 1, hunk
    text = Path("a.py").read_text().split("\n")
    for card, attributes, line in read.cells:
        if "data-o" in attributes and "/a.py/" in card:
            assert line == text[int(attributes["data-o"] or 0) - 1]


def test_a_page_needs_nothing_and_lets_nothing_in() -> None:
    text = page(applied(a=LOOP)).text
    read = Page(text)
    tags = {tag for tag, _ in read.seen}
    assert {"html", "main", "header", "h1", "article"} <= tags
    assert not tags & {"link", "img", "iframe", "object", "embed", "base"}
    for tag, attributes in read.seen:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "action", "data", "srcset") or (name == "href" and tag != "a"):
                raise AssertionError((tag, name, value))
    assert "url(" not in text
    assert "@import" not in text
    (policy,) = (a["content"] or "" for _, a in read.seen if a.get("http-equiv") == "Content-Security-Policy")
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert len(script) == 1
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy


def test_source_text_stays_text() -> None:
    markup = "</code></script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} \u202e\x1b"
    evil = LOOP.replace("    total += loss\n", f"    total += loss  # {markup}\n")
    report = applied(a=evil)
    text = page(report).text
    assert text.count("<script") == 1
    assert "<img" not in text
    assert "{{ 7*7 }}" in text
    assert "\u202e" not in text
    assert r"\u202e" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)
    assert page(report).side("del") == signed(report.diff, "-")


def test_names_of_files_stay_text() -> None:
    folder = Path("a <b> & \"c\" 'd'")
    folder.mkdir()
    (folder / "x y.py").write_text(LOOP)
    report = Report.of_apply(apply(read_targets(["."]).sources, options=Options(), dry_run=True))
    read = page(report)
    assert "<b> &" not in read.text
    assert [card["data-path"] for card in read.cards()] == [f"{folder}/x y.py"] * len(read.cards())
    assert all(" " not in (card["id"] or "") for card in read.cards())


def test_filters_have_what_the_cards_say() -> None:
    evidence = Evidence({}, "", '<div id="from-verify">the table</div>')
    report = applied(a=LOOP)
    assert report.review is not None
    proofs = {report.review.changes[0].key: Proof("kept", "the same over 20 steps"),
              report.review.changes[1].key: Proof("not judged", "it <does> not run")}  # fmt: skip
    read = page(applied(evidence=evidence._replace(proofs=proofs), a=LOOP, b=LOOP))
    offered: dict[str, set[str]] = {}
    for tag, attributes in read.seen:
        if tag == "select":
            offered[(attributes["id"] or "").removeprefix("by-")] = set()
        elif tag == "option" and attributes["value"]:
            offered[list(offered)[-1]].add(attributes["value"])
    for name in ("rule", "verdict", "file"):
        had = {value for card in read.cards() for value in (card[f"data-{name}"] or "").split()}
        assert offered[name] == had
    assert offered["verdict"] == {"kept", "not-judged"}
    assert "promise" not in offered, "there is nothing to choose from"
    assert "kept" in read.shown
    assert "the same over 20 steps" in read.shown
    assert "it <does> not run" in read.shown
    assert '<div id="from-verify">the table</div>' in read.text


def test_trail_is_drawn_where_its_stations_are_in_sight() -> None:
    read = page(applied(a=LOOP))
    drawn = [attributes for _, attributes in read.seen if attributes.get("class") == "arc"]
    assert drawn
    assert "produced a1" in read.shown
    assert "line 9" in read.shown


def test_stations_elsewhere_come_with_their_lines() -> None:
    Path("net.py").write_text("def forward(net, x):\n    # one\n    return net(x)\n")
    Path("train.py").write_text("\n" * 40 + "total += loss\n")
    finding = Finding(
        "attached-loss-total", "train.py", Span(41, 0, 41, 13), Promise.ADVICE, "it `grows`",
        trail=(TrailStep("net.py", 3, "graph produced here"), TrailStep("gone.py", 7, "carried here"),
               TrailStep("train.py", 41, "carried by total from here on")),
    )  # fmt: skip
    sources = {source.path: source for source in read_targets(["."]).sources}
    read = page(Report(2, (Reported(finding, "it is advice"),), (), sources=sources))
    assert "net.py:3" in read.shown
    assert "return net(x)" in read.shown
    assert "gone.py:7" in read.shown
    assert "Left: it is advice, for a person to decide" in read.shown
    assert [text for _, attributes, text in read.cells if attributes.get("class") == "at"] == ["total += loss"]


def test_kinds_of_stations() -> None:
    assert kind_of("graph produced here, and dropped unused") == "produced"
    assert kind_of("carried by `h`") == "carried"
    assert kind_of("freed here; its nodes stay in memory") == "freed"
    assert kind_of("used again here, one step later") == "used again"
    assert kind_of("used again here") == "used again"
    assert kind_of("retained here") == "kept"
    assert kind_of("written for an older PyTorch") == "here"


def test_arrows_have_lanes_of_their_own() -> None:
    notes = {3: "graph produced here", 5: "carried", 9: "freed here", 4: "used again here"}
    trail = stations([TrailStep("a.py", line, note) for line, note in notes.items()])
    drawn = arcs([trail], "a.py", range(1, 12))
    assert [(arc.start, arc.end, arc.upward) for arc in drawn] == [(3, 5, False), (5, 9, False), (9, 4, True)]
    assert drawn[0].lane == drawn[1].lane == 0
    assert drawn[2].lane == 1
    assert arcs([trail], "a.py", range(1, 4)) == []
    assert arcs([trail], "b.py", range(1, 12)) == []


def test_what_was_not_done_is_told() -> None:
    report = Report(
        files=3, findings=(), skipped=(Skipped("old.py", 3, "Python 2 print"),), applied=True,
        failures=(Failure("stored-graph", "a.py", 9, "still there"),), unwritten=(Skipped("b.py", 0, "read-only"),),
        notes=("gave up on <it>",),
    )  # fmt: skip
    shown = page(report).shown
    for words in ("old.py:3 Python 2 print", "stored-graph: still there", "b.py read-only", "gave up on <it>"):
        assert words in shown
    assert "Nothing fixed" in shown
    assert "no finding in 3 files" in shown


def test_what_verify_refused_is_told_on_its_card() -> None:
    report = applied(a=LOOP)
    total = next(finding for finding in report.fixed if finding.rule == "attached-loss-total")
    dropped = Dropped(total.rule, total.path, total.span.line, "broken", "parameters differ")
    read = page(Report(1, (Reported(total, None),), (), applied=True, dropped=(dropped,), sources=report.sources))
    assert "✗ broken" in read.shown
    assert "parameters differ" in read.shown
    assert [card["data-verdict"] for card in read.cards()] == ["broken "]


def test_check_shows_fixes_and_what_is_left() -> None:
    Path("a.py").write_text(LOOP)
    targets = read_targets(["."]).sources
    fixes = apply(targets, options=Options(), dry_run=True)
    read = page(Report.of_check(check(targets, options=Options()), fixes))
    assert "What apply would change" in read.shown
    assert read.side("ins") == ["    loss.backward()", "    total += loss.item()"]
    alone = page(Report.of_check(check(targets, options=Options())))
    assert alone.side("ins") == []
    assert "`" not in alone.shown
    assert "codemod apply would change it" in alone.shown


def test_lines_after_writing_are_those_of_the_file() -> None:
    Path("a.py").write_text("def f(x):\n    return x\n" + LOOP)
    report = Report.of_apply(apply(read_targets(["."]).sources, options=Options()))
    read = page(report)
    now = Path("a.py").read_text().split("\n")
    for _, attributes, text in read.cells:
        if "data-n" in attributes:
            assert text == now[int(attributes["data-n"] or 0) - 1]


def test_translations_have_cards_of_their_own() -> None:
    pytest.importorskip("fissix")
    Path("a.py").write_text(LOOP.replace("print(total)", "print total"))
    report = Report.of_apply(apply(read_targets(["."]).sources, options=Options(python2=True), dry_run=True))
    read = page(report)
    assert read.side("del") == signed(report.diff, "-")
    assert read.side("ins") == signed(report.diff, "+")
    assert read.cards()[0]["data-rule"] == "python2"


def test_command_line() -> None:
    Path("a.py").write_text(LOOP)
    assert shows_edits("html")
    assert not shows_edits("text")
    ran = codemod("apply", ".", "--dry-run", "--exit-code", "--format", "html")
    assert ran.status == 1
    assert Page(ran.stdout).side("ins")
    assert Path("a.py").read_text() == LOOP
    ran = codemod("check", ".", "--format", "html", "--output", "page.html")
    assert (ran.status, ran.stdout) == (1, "")
    assert Page(Path("page.html").read_text(encoding="utf-8")).side("ins")
    ran = codemod("apply", ".", "--format", "html")
    assert ran.status == 0
    assert "2 findings fixed in 1 file" in Page(ran.stdout).shown


def test_the_same_report_makes_the_same_page() -> None:
    report = applied(a=LOOP)
    assert page(report).text == page(report).text


BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no browser to look at it with")
def test_in_a_browser(tmp_path: Path) -> None:
    read = page(applied(a=LOOP, b=LOOP))
    (tmp_path / "page.html").write_text(read.text, encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile",
               "--virtual-time-budget=2000", "--dump-dom", f"file://{tmp_path}/page.html"]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": str(tmp_path)}
    )
    # Only script writes the count; the policy lets no other script run.
    assert f"{len(read.cards())} of {len(read.cards())} shown" in done.stdout, done.stderr
    assert "Refused to" not in done.stderr
    # What is gone to stands below the bar, which has as many rows as its filters take.
    (height,) = re.findall(r'<html[^>]* style="--bar: (\d+)px', done.stdout)
    assert int(height) > 30


def test_prose() -> None:
    made = prose("a ``x < y`` *b* of 2 * 3 * 4: https://pytorch.org/a_b.\n\n* one\n  more\n* <two>")
    assert made == (
        '<p>A <code>x &lt; y</code> <em>b</em> of 2 * 3 * 4: <a href="https://pytorch.org/a_b">'
        "https://pytorch.org/a_b</a>.</p>\n<ul><li>one\nmore</li><li>&lt;two&gt;</li></ul>"
    )
    assert prose("https://pytorch.org") == '<p><a href="https://pytorch.org">https://pytorch.org</a></p>'
    assert coded("a lone ` stays, `x` too") == "a lone ` stays, `x` too"
    assert coded("`x` is <code>") == "<code>x</code> is &lt;code&gt;"


# accepting


def edits(read: Page) -> dict[str, Any]:
    (told,) = (attributes["data-edits"] for _, attributes in read.seen if "data-edits" in attributes)
    found: dict[str, Any] = json.loads(told or "")
    return found


def test_what_can_be_accepted_is_what_apply_would_make() -> None:
    Path("sub").mkdir()
    Path("sub/c d.py").write_text(LOOP)
    report = replace(applied(a=LOOP, b=LOOP), command=("codemod", "apply", ".", "--dry-run", "--unsafe", "-o", "x"))
    read = page(report)
    told = edits(read)
    assert report.review is not None
    assert told["command"] == "codemod apply . --unsafe"
    assert len(told["fixes"]) == len(report.review.changes) == 6
    assert {place for fix in told["fixes"] for place in fix["at"]} == {
        f"{finding.path}:{finding.span.line}" for finding in report.fixed
    }
    cards = {card["id"] for card in read.cards()}
    for fix in told["fixes"]:
        assert set(fix["cards"]) <= cards
        assert fix["hunks"]
    named = {attributes["data-change"] for _, attributes in read.seen if "data-change" in attributes}
    assert {change for fix in told["fixes"] for change in fix["changes"]} <= named
    assert ["a/sub/c d.py\t", "b/sub/c d.py\t"] in told["files"]


def test_after_writing_nothing_is_left_to_accept() -> None:
    assert "data-edits" not in page(applied(dry_run=False, a=LOOP)).text
    assert "data-edits" not in page(Report(1, (), (), applied=True)).text.split("<body>")[1].split("<script>")[0]


def test_what_no_diff_of_text_fits_has_a_command_and_no_lines() -> None:
    Path("latin.py").write_bytes(b"# -*- coding: latin-1 -*-\n# \xe9\n" + LOOP.encode())
    Path("book.ipynb").write_bytes(notebook(code(LOOP)))
    told = edits(page(applied(a=LOOP)))
    by_place = {place: fix["hunks"] for fix in told["fixes"] for place in fix["at"]}
    assert {place for place, hunks in by_place.items() if hunks} == {"a.py:11", "a.py:13"}
    assert {place for place in by_place if "latin" in place or "book" in place} == {
        *("latin.py:13", "latin.py:15", "book.ipynb:cell 1:11", "book.ipynb:cell 1:13")
    }


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_patch_of_any_choice_is_what_git_applies() -> None:
    texts = {
        "a": LOOP + "\n" * 5 + LOOP.replace(HEAD, "") + LOOP.replace(HEAD, ""),
        "b": LOOP.replace("print(total)\n", "").rstrip("\n"),
        "c": LOOP.replace("\n", "\r\n"),
    }
    report = applied(a=texts["a"], b=texts["b"], c=texts["c"])
    told = edits(page(report))
    script = resources.files("codemods.reports").joinpath("templates/patch.js").read_text(encoding="utf-8")
    count = len(told["fixes"])
    choices = [list(range(count)), [0], [count - 1], list(range(0, count, 2)), list(range(1, count, 2)), [0, 3, 4]]
    asked = [[hunk for index in choice for hunk in told["fixes"][index]["hunks"]] for choice in choices]
    Path("run.js").write_text(
        f"{script}\nconst edits = {json.dumps(told)};\n"
        f"console.log(JSON.stringify({json.dumps(asked)}.map((numbers) => unified(edits, numbers))));"
    )
    made = json.loads(subprocess.run(["node", "run.js"], capture_output=True, check=True).stdout)
    assert report.review is not None
    hunks: dict[tuple[str, int], Hunk] = {(hunk.path, hunk.old_start): hunk for hunk in report.review.hunks}
    names = [before.removeprefix("a/") for before, _ in told["files"]]
    subprocess.run(["git", "init", "-q"], check=True)
    for numbers, patch in zip(asked, made, strict=True):
        for name, text in texts.items():
            Path(f"{name}.py").write_text(text, newline="")
        subprocess.run(["git", "apply"], input=patch.encode(), check=True)
        for name, text in texts.items():
            own = [told["hunks"][n] for n in dict.fromkeys(numbers) if names[told["hunks"][n]["file"]] == f"{name}.py"]
            wanted = patched(text, [hunks[f"{name}.py", one["line"]] for one in own])
            assert Path(f"{name}.py").read_bytes().decode() == wanted


def test_code_has_the_colours_of_its_syntax() -> None:
    text = page(applied(a='"""A text\nover lines."""\n' + LOOP.replace("opt.step()", "opt.step()  # for people"))).text
    for kind, word in (("k", "for"), ("k", "True"), ("n", "3"), ("c", "# for people")):
        assert f'<span class="{kind}">{word}</span>' in text
    assert '<span class="k">people' not in text


def test_colours_leave_the_text_as_it_is() -> None:
    for line in ("x = '\x1b' # \u202e", "\tif a: return 'b'", "", "x = '\x0c'", "é = 1", "\ud800"):
        text = [f"{line}\n", "y = 1\n"]
        runs = colours(text)
        for raw, own in zip(text, runs, strict=False):
            shown = printable(raw.rstrip("\n"))
            assert sum(length for length, _ in own) == len(shown)
            for pieces in ((Piece(shown, False),), tuple(Piece(one, bool(n % 2)) for n, one in enumerate(shown))):
                cut = divided(pieces, own)
                assert "".join(one for one, _, _ in cut) == shown
    assert colours(["x" * 300_000, "y" * 300_000]) == []
    assert divided((Piece("ab", True),), ()) == [("ab", True, "")]


def test_folders_can_be_chosen() -> None:
    for name in ("one/two", "three"):
        Path(name).mkdir(parents=True)
        Path(f"{name}/a.py").write_text(LOOP)
    read = page(applied(b=LOOP))
    had = {card["data-path"]: len((card["data-folder"] or "").split()) for card in read.cards()}
    assert had == {"b.py": 0, "one/two/a.py": 2, "three/a.py": 1}
    assert {"one", "one/two", "three"} <= set(read.words)
