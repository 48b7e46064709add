"""The page holds together, needs nothing from outside, and shows what it was given as text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from codemods.source.diffs import unified, unified_text
from codemods.source.files import source_from_bytes
from codemods.terms.findings import TrailStep
from tests.notebooks import SETUP, STEP, notebook
from tests.verify.reports import tools
from verify.measured.results import Rewrite, Verdict, Verification
from verify.reports import FORMATS, render
from verify.reports.html import fragment
from verify.running.settings import Settings

#: Elements that have no end.
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that is shown, blanks as one."""
        return " ".join("".join(self.texts).split())


@pytest.mark.parametrize("shape", tools.ALL)
def test_every_shape_is_one_closed_page(shape: Callable[[], Verification]) -> None:
    page = render(shape(), "html")
    read = Reader(page)
    tags = {tag for tag, _ in read.seen}
    assert {"html", "head", "body", "h1", "main"} <= tags
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "foreignobject"}
    for tag, attributes in read.seen:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "xlink:href", "src", "action", "data"):
                assert (value or "").startswith("#"), (tag, name, value)
    assert "url(" not in page.replace("url(#", "")
    assert "@import" not in page
    identifiers = [attributes["id"] for _, attributes in read.seen if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    wanted = set(re.findall(r'(?:href="|url\()#([^")]+)', page))
    assert wanted <= set(identifiers)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", page)


def test_pages_are_the_same_each_time() -> None:
    assert render(tools.many(), "html") == render(tools.many(), "html")


def test_verdict_rewrites_and_diff() -> None:
    page = render(tools.repaired(), "html")
    text = Reader(page).text
    assert text.index("Every promise that was put to the test held") < text.index("carried-hidden-state")
    assert text.index("carried-hidden-state") < text.index("raised RuntimeError") < text.index("Diff")
    assert "model.py:20 the graph is produced here" in text
    assert "<mark>retain_graph=True</mark>" in page
    assert "lines 88 to 97 did not run" in text
    assert page.count("<svg") == 3
    assert "codemod verify train.py -- --epochs 1" in text


def test_of_notebooks_the_cells_are_shown() -> None:
    source = source_from_bytes(notebook(SETUP, STEP, "print('z')"), "Early Stopping.ipynb")
    new = source.text.replace("retain_graph=True", "")
    trail = (TrailStep(source.path, 3, "the model is made here"), TrailStep(source.path, 13, "the graph is kept here"))
    found = tools.finding("surplus-retain-graph", 13, path=source.path, trail=trail)
    run = tools.run("original", tools.record())
    made = tools.verification(
        tools.entry(run, run, (Rewrite((found,), Verdict.KEPT, "why"),)),
        diff=unified(source.path, source.encode(source.text), source.encode(new)).decode(),
        readable=unified_text(source.shown(source.text, new)),
        notebooks={source.path: source},
    )
    page = render(made, "html")
    text = Reader(page).text
    assert "Early Stopping.ipynb:cell 2 +1 −1" in text
    assert "5- loss.backward(retain_graph=True)5+ loss.backward()" in text
    assert "<mark>retain_graph=True</mark>" in page
    assert "\\n" not in text
    assert "Early Stopping.ipynb:cell 1:1 the model is made here" in text
    assert "Early Stopping.ipynb:cell 2:5 the graph is kept here" in text
    assert "Early Stopping.ipynb:cell 2:5" in Reader(fragment(made)).text
    assert "-    loss.backward(retain_graph=True)\n" in render(made, "markdown")
    assert made.diff == json.loads(render(made, "json"))["diff"]


def test_expected_error_is_folded_and_others_are_open() -> None:
    assert '<details class="breakdown">' in render(tools.repaired(), "html")
    assert '<details class="breakdown" open>' in render(tools.crashed(), "html")
    page = render(tools.unjudged(), "html")
    assert '<details class="breakdown" open>' in page
    assert "--stand-in data/train.bin=float32:100,3,32,32" in Reader(page).text
    assert "<svg" not in page


def test_limits_are_told_before_the_verdicts() -> None:
    text = Reader(render(tools.stand_ins(), "html")).text
    assert text.index("nothing about accuracy") < text.index("Rewrites")
    assert "What limits this" not in Reader(render(tools.exact(), "html")).text


def test_injected_markup_is_text() -> None:
    page = render(tools.hostile(), "html")
    assert page.count("</style>") == 1
    assert "<script" not in page
    assert "<img" not in page
    assert "{{ 7*7 }}" in page, "templates are not read twice"
    assert "</style></pre><script>alert('x')</script>" in Reader(page).text


def test_command_line_has_what_differs_from_the_defaults() -> None:
    text = Reader(render(tools.stand_ins(), "html")).text
    assert (
        "codemod verify --steps 7 --device cpu --stand-in 'y.npz[labels]=int64:1000<10' train.py -- --epochs 1" in text
    )
    assert (
        "--entry 'torchrun --nproc-per-node 2 gan.py' --entry 'train.py --epochs 1'"
        in Reader(render(tools.many(), "html")).text
    )
    made = tools.verification(settings={"command_line": ["codemod", "verify", "a b.py"], "folder": "/home/ada/b c"})
    assert "cd '/home/ada/b c' codemod verify 'a b.py'" in Reader(render(made, "html")).text
    made = tools.verification(tools.exact().entries[0], settings=Settings(python="/opt/python").told())
    assert "codemod verify --python /opt/python train.py -- --epochs 1" in Reader(render(made, "html")).text


def test_code_in_sentences() -> None:
    one = tools.finding(message="the state `self.<b>h` is kept", remedy="a lone ` is one")
    run = tools.run("original", tools.record())
    made = tools.verification(tools.entry(run, run, (Rewrite((one,), Verdict.KEPT, "why"),)))
    assert "the state <code>self.&lt;b&gt;h</code> is kept; remedy: a lone ` is one" in render(made, "html")


@pytest.mark.parametrize("form", FORMATS)
def test_values_of_the_environment_are_not_shown(form: str) -> None:
    run = tools.run("original", tools.record())
    settings = Settings(environment={"NAMED_ONE": "hunter2"}, expose=("/home/me/data",))
    page = render(tools.verification(tools.entry(run, run, ()), settings=settings.told()), form)
    assert "NAMED_ONE" in page or form in ("text", "markdown")
    assert "hunter2" not in page
    if form == "html":
        assert "--env NAMED_ONE --expose /home/me/data" in Reader(page).text


def test_without_matplotlib_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = render(tools.exact(), "html")
    Reader(page)
    assert "plots need matplotlib, which is not installed" in page
    assert "<svg" not in page
