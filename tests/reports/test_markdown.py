"""The text of a pull request, read by a renderer: what is ours is markup, what is a user's is text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from codemods.checking.check import check
from codemods.checking.reported import Reported
from codemods.reports import Detail, Report, _gfm
from codemods.reports._fitting import LIMIT
from codemods.reports.markdown import render, title
from codemods.rewriting.apply import apply
from codemods.rewriting.changes import Change, Evidence, Hunk, Proof, Review
from codemods.rewriting.result import Dropped, Failure
from codemods.source.diffs import printable
from codemods.source.files import source_from_bytes
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.findings import Finding, Promise, Skipped
from codemods.terms.spans import Span

GFM = MarkdownIt("commonmark").enable("table")
# What we write ourselves.
OURS = re.compile(r"</?details>|<summary>(?:<code>[^<>]*</code>)?[\w ,.:]*</summary>|</?code>|<br>")
HOSTILE = [
    "`",
    "```",
    "a``b`",
    " x ",
    "|",
    "a\\|b",
    "<script>alert(1)</script>",
    "@everyone",
    "#1",
    "GH-12",
    "a_b_c__d__",
    "**bold**",
    "[x](http://evil)",
    "![x](y)",
    "\x1b[31m",
    "line\nbreak",
    "&lt;",
    "$x$",
    ":tada:",
    "https://example.org",
    "</details>",
    "0123456789abcdef0123456789abcdef01234567",
]
text = st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE), st.lists(st.sampled_from(HOSTILE)).map(" ".join))


def tokens(markdown: str) -> list[Token]:
    """All tokens, those inside of paragraphs and cells too."""
    return [each for token in GFM.parse(markdown) for each in (token, *(token.children or ()))]


def plain(markdown: str) -> str:
    """What stands in running text: where GitHub would look for names, numbers and addresses."""
    return " ".join(token.content for token in tokens(markdown) if token.type == "text")


def require_harmless(markdown: str) -> list[Token]:
    found = tokens(markdown)
    for token in found:
        if token.type in ("html_inline", "html_block"):
            assert not OURS.sub("", token.content).strip(), token.content
        assert token.type != "image"
        if token.type == "link_open":
            assert str(token.attrs["href"]).startswith(("https://docs.pytorch.org/", "https://pytorch.org/"))
    assert not re.search(r"[@#]\w|GH-\d|://|www\.", plain(markdown))
    return found


def finding(rule: str = "surplus-retain-graph", path: str = "train.py", line: int = 1, **more: Any) -> Finding:
    given = {"promise": Promise.EXACT, "message": "the graph is kept", **more}
    return Finding(rule, path, Span(line, 0, line, 5), **given)


def report_of(*fixed: Finding, old: str = "a\n", new: str = "b\n", proofs: bool = False, **more: Any) -> Report:
    """A report of ``apply`` that made one hunk a finding, by hand."""
    proof = Proof("kept", "the same bit for bit") if proofs else None
    changes = tuple(Change((each,), proof) for each in fixed)
    hunks = tuple(
        Hunk(each.path, each.span.line, (old,), each.span.line, (new,), (index,)) for index, each in enumerate(fixed)
    )
    lines = range(1, max((each.span.line for each in fixed), default=1) + 1)
    paths = dict.fromkeys(each.path for each in fixed)
    places = {(each.path, each.span.line) for each in fixed}
    # No two lines between them are alike: a file of equal lines takes difflib long.
    texts = {path: [old if (path, n) in places else f"{n:0{len(old) - 1}}\n" for n in lines] for path in paths}
    sources = {path: source_from_bytes("".join(text).encode(), path) for path, text in texts.items()}
    known = {"files": 3, "findings": (), "skipped": (), "review": Review(changes, hunks), "sources": sources}
    return Report(**{**known, "fixed": fixed, "changed": tuple(paths), "applied": True, **more})


def markdown(report: Report) -> str:
    return render(report, Detail.NORMAL)


# the pieces


@given(text)
def test_code_is_code_and_says_what_it_was(value: str) -> None:
    (inline,) = (token for token in GFM.parse(f"x {_gfm.code(value)} y") if token.type == "inline")
    assert [child.type for child in inline.children or ()] == ["text", "code_inline", "text"]
    shown = printable(re.sub(r"[\r\n]+", " ", value)) or " "
    assert (inline.children or [])[1].content in (shown, shown.strip(" "))


@given(text)
def test_a_code_cell_never_leaves_its_cell(value: str) -> None:
    lines = _gfm.table(["a", "b"], [[_gfm.code_cell(value), "end"]])
    found = tokens("\n".join(lines))
    assert [token.type for token in found].count("td_open") == 2
    assert next(t for t in reversed(found) if t.type == "text").content == "end"


@given(text)
def test_a_fence_is_closed_by_its_own_end_alone(value: str) -> None:
    found = GFM.parse("\n".join([*_gfm.fenced(value, "diff"), "", "after"]))
    assert [token.type for token in found] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert found[0].info == "diff"


@given(text)
def test_sentences_hold_no_markup_of_others(value: str) -> None:
    allowed = {"inline", "paragraph_open", "paragraph_close", "text", "code_inline", "softbreak"}
    line = f"Said: {_gfm.inline(value)} end"
    assert {token.type for token in tokens(line)} <= allowed
    require_harmless(line)


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("total adds up loss with its graph, which is freed", "total adds up loss with its graph, which is freed"),
        ("the backward of line 69 walks `fake`", "the backward of line 69 walks `fake`"),
        ("drop retain_graph=True, please", "drop `retain_graph=True`, please"),
        ("self.cost_his keeps loss: memory grows", "`self.cost_his` keeps loss: memory grows"),
        ("evaluate() only evaluates", "`evaluate()` only evaluates"),
        ("walks 1,024 nodes (2 + 3), 50% more", "walks 1,024 nodes (2 + 3), 50% more"),
        ("an odd ` stays", "an odd `` ` `` stays"),
    ],
)
def test_sentences(sentence: str, shown: str) -> None:
    assert _gfm.inline(sentence) == shown


# the pull request


def test_the_summary_comes_first() -> None:
    told = markdown(
        report_of(
            finding(),
            finding(line=2),
            finding("carried-hidden-state", "model.py", promise=Promise.REPAIR),
            findings=(Reported(finding("x", promise=Promise.ADVICE), "is advice"),),
            skipped=(Skipped("old.py", 3, "no Python"),),
        )
    )
    head = told[: told.index("###")]
    assert head.startswith("# Fix 3 autograd-graph mistakes in 2 files\n\n**3 places in 2 files**")
    assert len(head.split()) < 130, "ten seconds"
    assert "2 × **exact**" in head
    assert "weakest promise here is **repair**" in head
    assert "Left alone: 1 advice, 1 file skipped." in head
    assert "| `surplus-retain-graph` | exact | 2 | 1 |" in head


def test_a_section_a_rule_with_why_promise_sites_and_a_folded_diff() -> None:
    told = markdown(report_of(finding(line=4), finding("carried-hidden-state", "m.py", promise=Promise.REPAIR)))
    section = told[told.index("### `surplus-retain-graph`") : told.index("### `carried-hidden-state`")]
    assert "whose graph no later backward uses" in section
    assert "**Promise: exact.**" in section
    assert "- the graph is kept: `train.py:4`" in section
    assert "<details>" in section
    assert "-a\n+b\n" in section
    assert "m.py" not in section
    kinds = [token.type for token in require_harmless(told)]
    assert kinds.count("fence") == 2
    assert kinds.count("table_open") == 1


def test_what_was_proven_is_told_by_rule_and_place() -> None:
    evidence = Evidence({}, "the figures\n", "", b"")
    told = markdown(report_of(finding(), proofs=True, evidence=evidence))
    assert "Run before and after: 1 kept." in told
    assert "| `surplus-retain-graph` | exact | 1 | 1 | 1 kept |" in told
    assert "`train.py:1` (kept)" in told
    assert "### Verified\n\nthe figures\n" in told


def test_what_was_left_alone_is_told_and_why() -> None:
    told = markdown(
        report_of(
            finding(),
            findings=(
                Reported(finding("stored-graph", "a.py", promise=Promise.ADVICE, message="kept"), "is advice"),
                Reported(finding("unreset-loss", "b.py", promise=Promise.BEHAVIOUR, edits=(("b.py", None),)), "unsafe"),
                *(Reported(finding("x", f"{n}.py", promise=Promise.ADVICE), "is advice") for n in range(30)),
            ),
            dropped=(Dropped("unreset-loss", "c.py", 4, "not reached", "line 4 did not run"),),
            failures=(Failure("stored-graph", "d.py", 5, "it is still there"),),
            unwritten=(Skipped("e.py", 0, "read-only file"),),
            postponed=(finding("empty-cache"),),
        )
    )
    left = told[told.index("### Left alone") :]
    for words in (
        "`a.py:1` `stored-graph`: kept",
        "made with `--unsafe` only",
        "`c.py:4` `unreset-loss`: not reached: line 4 did not run",
        "`d.py:5` `stored-graph`: it is still there",
        "`e.py`: `read-only` file" if "`read-only`" in left else "`e.py`: read-only file",
        "1 × `empty-cache`",
        "- and 21 more",
    ):
        assert words in left


def test_what_a_run_did_not_show_is_left_alone_once() -> None:
    unseen, other = finding("x", "c.py"), finding("x", "d.py", edits=(("d.py", None),))
    dropped = Dropped("x", "c.py", unseen.span.line, "not reached", "it did not run")
    told = markdown(
        report_of(finding(), findings=(Reported(unseen, ""), Reported(other, "it shares a line")), dropped=(dropped,))
    )
    assert "- Left alone: 1 that cannot be changed alone, 1 not seen to keep its promise." in told
    assert (told.count("`c.py:"), told.count("`d.py:")) == (1, 1)


def test_how_to_do_it_again_is_quoted_for_a_shell() -> None:
    import shlex

    command = ("codemod", "apply", "a folder/`x`", "--verify", "train.py --epochs '1'\n```")
    told = markdown(report_of(finding(), command=command))
    fence = next(t for t in reversed(tokens(told)) if t.type == "fence")
    assert tuple(shlex.split(fence.content.split("\n", 1)[1])) == command


@pytest.mark.parametrize("nasty", HOSTILE)
def test_nothing_of_a_users_breaks_out(nasty: str) -> None:
    path = nasty.replace("/", "_").replace("\n", "_").replace("\x1b", "_") + ".py"
    report = report_of(
        finding(path=path, message=f"{nasty} keeps `{nasty}`"),
        old=f"x = 1  # {nasty}\n".replace("line\nbreak", "line"),
        new=f"{nasty}\n".replace("line\nbreak", "line"),
        findings=(Reported(finding(nasty, path, promise=Promise.ADVICE, message=nasty), nasty),),
        skipped=(Skipped(path, 3, nasty),),
        failures=(Failure("x", path, 1, nasty),),
        dropped=(Dropped("x", path, 1, "broken", nasty),),
        command=("codemod", "apply", nasty),
    )
    kinds = [token.type for token in require_harmless(markdown(report))]
    assert kinds.count("fence") == 2
    assert kinds.count("td_open") == 4
    require_harmless(render(Report(3, report.findings, report.skipped, sources=report.sources), Detail.NORMAL))


@pytest.mark.parametrize("many", [50, 700, 2000])
@pytest.mark.parametrize("word", ["x", "\U0001f600é"])
def test_it_fits_into_what_github_takes(many: int, word: str) -> None:
    names = ["surplus-retain-graph", "attached-loss-total", "grad-in-evaluation"]
    fixed = [
        finding(names[n % 3], f"folder/{word}{n % 40}.py", n // 40 + 1, message=f"message {n % 100}")
        for n in range(many)
    ]
    told = markdown(report_of(*fixed, old=f"{word * 30}\n", new=f"{word * 20}\n"))
    assert len(told) <= len(told.encode()) <= LIMIT
    for name in names:
        assert f"| `{name}` | exact | {sum(each.rule == name for each in fixed):,} |" in told
    require_harmless(told)
    comment = render(Report(many, tuple(Reported(each, None) for each in fixed), ()), Detail.NORMAL)
    assert len(comment.encode()) <= LIMIT


def test_nothing_to_change() -> None:
    assert markdown(report_of()).startswith(
        "# Fix autograd-graph mistakes: nothing to change\n\n**Nothing to change** in 3 files."
    )
    assert render(Report(1, (), ()), Detail.NORMAL) == "**No findings** in 1 file.\n"


def test_a_comment_for_check() -> None:
    found = (Reported(finding(), None), Reported(finding(line=9), None), Reported(finding("x", "b.py"), "why"))
    told = render(Report(4, found, (Skipped("old.py", 3, "no Python"),)), Detail.NORMAL)
    assert told.startswith("**3 findings in 2 files**; `codemod apply` would change 2 of them.")
    assert "| exact | 2 | 2 |" in told
    assert "`train.py:1`, `train.py:9`" in told
    assert "1 file could not be checked" in told


def test_titles_are_short() -> None:
    assert title(report_of(finding())) == "Fix surplus-retain-graph in `train.py`"
    assert title(report_of(finding(), finding("x", "b.py"))) == "Fix 2 autograd-graph mistakes in 2 files"
    assert title(report_of(finding(path="n" * 99))) == "Fix surplus-retain-graph in 1 file"


def test_real_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.rewriting.test_fixes import PROGRAM

    monkeypatch.chdir(tmp_path)
    odd = "we|ird `n@me #1.py"
    for name in ("train.py", odd):
        Path(name).write_text(PROGRAM.replace("total = 0", "total = 0  # ```` @user </details>"))
    sources = read_targets(["."]).sources
    told = markdown(Report.of_apply(apply(sources, options=Options(), dry_run=True)))
    found = require_harmless(told)
    assert told.startswith("# Fix 8 autograd-graph mistakes in 2 files\n\n**8 places in 2 files**")
    diffs = "".join(token.content for token in found if token.type == "fence")
    assert diffs.count("\n-from torch.autograd import Variable\n") == 2, "each hunk once"
    assert diffs.count("\n+    loss.backward()\n") == 2
    comment = render(Report.of_check(check(sources, options=Options())), Detail.NORMAL)
    assert "`codemod apply` would change 8 of them" in comment
    require_harmless(comment)


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("Early Stopping.ipynb:cell 1:36 never ran", "`Early Stopping.ipynb:cell 1:36` never ran"),
        (
            "together with a-rule my code/Early Stopping.ipynb:3",
            "together with a-rule `my code/Early Stopping.ipynb:3`",
        ),
        ("not run of Early Stopping.ipynb: cell 2 (!ls)", "not run of `Early Stopping.ipynb`: cell 2 (!ls)"),
        ("at Early  Stopping.ipynb.", "at `Early Stopping.ipynb`."),
        ("the state `Early Stopping.ipynb` is code already", "the state `Early Stopping.ipynb` is code already"),
        # These are no such paths.
        ("a/Early Stopping.ipynb2 ran", "a/Early `Stopping.ipynb2` ran"),
        ("early stopping is fine", "early stopping is fine"),
        ("train.py:3 ran", "`train.py:3` ran"),
    ],
)
def test_paths_of_several_words_stay_whole(sentence: str, shown: str) -> None:
    paths = ["train.py", "Early Stopping.ipynb", "my code/Early Stopping.ipynb", "a  b.py"]
    assert _gfm.inline(sentence, paths) == shown


def test_without_such_paths_sentences_are_as_they_were() -> None:
    assert _gfm.inline("a b.py ran", ["train.py"]) == _gfm.inline("a b.py ran") == "a `b.py` ran"


def test_a_part_of_every_diff_is_kept() -> None:
    names = ["surplus-retain-graph", "attached-loss-total", "grad-in-evaluation"]
    small = [finding(names[0], "small.py", n + 1) for n in range(5)]
    large = [finding(name, f"{name}/{n % 60}.py", n // 60 * 9 + 1) for name in names[1:] for n in range(1200)]
    told = markdown(report_of(*small, *large, old=f"{'x' * 60}\n", new=f"{'y' * 60}\n"))
    assert len(told.encode()) <= LIMIT
    sections = {name: told.split(f"### `{name}`")[1].split("\n### ")[0] for name in names}
    for name in names:
        assert sections[name].count("\n+yyy") > 4, name
    assert "left out for want of room" not in sections[names[0]].split("<details>")[1]
    for name in names[1:]:
        (block,) = re.findall(r"```diff\n(.*?)\n```", sections[name], re.DOTALL)
        assert "more lines, left out for want of room" in sections[name]
        # What is cut is cut between hunks.
        assert block.splitlines()[-1][0] != "@"
        assert 4_000 < len(block) < LIMIT // 2
    require_harmless(told)


def test_each_file_of_a_diff_is_folded_alone() -> None:
    odd = "a & <b>.py"
    told = markdown(report_of(*(finding(path=name, line=n) for name in ("m.py", odd, "z.py") for n in (1, 20))))
    require_harmless(told)
    folds = re.findall(r"<summary>(.*)</summary>\n\n```diff\n--- a/(.*)\n", told)
    assert [name.rstrip() for _, name in folds] == ["m.py", odd, "z.py"]
    names = ("m.py", "a &amp; &lt;b&gt;.py", "z.py")
    assert [shown for shown, _ in folds] == [f"<code>{name}</code>: 4 changed lines" for name in names]


def test_what_has_no_room_is_counted_and_files_before_it_are_whole() -> None:
    found = [finding(path=f"f{n:03}.py", line=1) for n in range(300)]
    told = markdown(report_of(*found, old=f"{'x' * 200}\n", new=f"{'y' * 200}\n"))
    assert len(told.encode()) <= LIMIT
    shown = told.count("\n+yyy")
    assert 80 < shown < 300
    assert told.count("</details>") == shown
    assert f"*The diff of {300 - shown} more files does not fit here.*" in told
    require_harmless(told)


def test_no_path_of_the_machine_is_told(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    file = tmp_path / "src" / "train.py"
    found = finding(path=str(file), message=f"{file} keeps it")
    command = ("codemod", "apply", str(file), f"--patch={tmp_path}/out.patch", "--select", "x")
    told = markdown(report_of(found, findings=(Reported(found, "why"),), command=command))
    assert str(tmp_path) not in told
    assert "`src/train.py:1`" in told
    assert "--- a/src/train.py" in told
    assert "codemod apply .../train.py --patch=.../out.patch --select x" in told


def test_what_installs_it_leads_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from codemods.source import home

    monkeypatch.delenv("GITHUB_ACTION_REPOSITORY", raising=False)
    report = report_of(finding(), command=("codemod", "apply", "."))
    assert "torch-codemod==" not in markdown(report)
    assert "python -m pip install .  # in a clone of codemod" in markdown(report)
    monkeypatch.setattr(home, "HOME", "https://host/owner/codemod")
    assert "pip install 'torch-codemod @ git+https://host/owner/codemod@v" in markdown(report)
