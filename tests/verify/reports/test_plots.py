"""Plots are drawn from every shape, the same each time, and fail in one sentence."""

from __future__ import annotations

import sys
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from codemods.cli._ours import PICTURE, is_ours
from tests.verify.reports import tools
from verify.errors import VerifyError
from verify.measured.results import Verification
from verify.reports import plots
from verify.reports.curves import Quantity, charts

EMPTY = (tools.unjudged, tools.no_torch)
DRAWN = [shape for shape in tools.ALL if shape not in EMPTY]


def words(document: str) -> list[str]:
    """The texts of an SVG."""
    return ["".join(element.itertext()) for element in ElementTree.fromstring(document).iter() if "text" in element.tag]


@pytest.mark.parametrize("shape", DRAWN)
def test_every_shape_is_drawn_the_same_each_time(shape: Callable[[], Verification], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("one.svg", "two.svg"):
            plots.save(shape(), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "live graph nodes" in words((tmp_path / "one.svg").read_text())


def test_png_is_the_same_each_time(tmp_path: Path) -> None:
    plots.save(tools.repaired(), tmp_path / "one.png")
    plots.save(tools.repaired(), tmp_path / "TWO.PNG")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "TWO.PNG").read_bytes()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert b"matplotlib" not in (tmp_path / "one.png").read_bytes()


@pytest.mark.parametrize("suffix", plots.FORMATS)
def test_a_plot_gives_way_to_a_newer_one_and_one_of_the_users_does_not(tmp_path: Path, suffix: str) -> None:
    ours, theirs = tmp_path / f"ours{suffix}", tmp_path / f"theirs{suffix}"
    plots.save(tools.repaired(), ours)
    figure = Figure()
    figure.add_subplot(title="codemod").plot([1, 2])
    figure.savefig(theirs)
    assert is_ours(ours.read_bytes(), [PICTURE])
    assert not is_ours(theirs.read_bytes(), [PICTURE])


def test_users_own_style_changes_nothing() -> None:
    plain = plots.svg(tools.exact())
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "text.usetex": True}):
        assert plots.svg(tools.exact()) == plain
        assert matplotlib.rcParams["font.size"] == 30, "and it is left as it was"


def test_lines_bear_their_names_and_breaks_are_marked() -> None:
    texts = words(plots.svg(tools.repaired()))
    assert texts.count("original raised") == 3
    assert texts.count("rewritten") == 3
    texts = words(plots.svg(tools.many()))
    assert "original out of memory" in texts
    assert "original timed out" in texts
    assert "memory on the card, GiB" in texts
    assert "torchrun --nproc-per-node 2 gan.py" in texts
    assert "original raised" not in texts


def test_losses_that_are_no_numbers() -> None:
    texts = words(plots.svg(tools.not_a_number()))
    assert "original (inf)" in texts
    assert "rewritten: -inf" in texts


def test_charts() -> None:
    nodes, memory, loss = charts(tools.repaired().entries[0])
    assert [chart.quantity for chart in (nodes, memory, loss)] == list(Quantity)
    assert nodes.axis == "optimizer step"
    assert [curve.values for curve in nodes.curves] == [(0.0,), (0.0,) * 20]
    # The loss whose backward raised was computed, and belongs to the picture.
    assert [len(curve.values) for curve in loss.curves] == [2, 20]
    assert [curve.end for curve in loss.curves] == ["raised", ""]


def test_steps_and_backwards_share_no_axis() -> None:
    first = tools.run("original", tools.record(1, optimizers=(), raised=tools.FREED), outcome=tools.Outcome.RAISED)
    nodes, _, loss = charts(tools.entry(first, tools.run("rewritten", tools.record())))
    assert [curve.name for curve in nodes.curves] == ["rewritten"]
    assert [curve.name for curve in loss.curves] == ["original", "rewritten"]
    nodes, _, _ = charts(tools.entry(first, tools.run("rewritten", tools.record(optimizers=()))))
    assert nodes.axis == "call of backward"
    assert [curve.name for curve in nodes.curves] == ["original", "rewritten"]


def test_one_point_is_no_plot() -> None:
    one = tools.run("original", tools.record(1))
    other = tools.run("rewritten", tools.record(1))
    assert charts(tools.entry(one, other)) == ()
    assert charts(tools.entry(one, None)) == ()
    # Beside a line it can be seen where it ended.
    drawn = charts(tools.entry(one, tools.run("rewritten", tools.record(2))))
    assert [len(curve.values) for chart in drawn for curve in chart.curves] == [1, 2] * len(drawn)
    assert drawn


def test_memory_that_was_not_measured_has_no_chart() -> None:
    flat = tools.run("original", tools.record(memory=lambda index: 0))
    assert [chart.quantity for chart in charts(tools.entry(flat, None))] == [Quantity.NODES, Quantity.LOSS]


def test_panels_take_the_colours_of_the_page() -> None:
    entry = tools.exact().entries[0]
    drawn = plots.panels(entry, "0")
    assert len(drawn) == 3
    for panel in drawn:
        assert panel.svg.startswith("<svg")
        assert panel.svg.endswith("</svg>")
        assert "var(--original)" in panel.svg
        assert "var(--rewritten)" in panel.svg
        assert not any(colour in panel.svg for colour in plots.COLOURS)
        assert "<style" not in panel.svg
        assert "http" not in panel.svg.replace('xmlns:xlink="http://www.w3.org/1999/xlink"', "")


@pytest.mark.parametrize("shape", EMPTY)
def test_nothing_to_draw(shape: Callable[[], Verification], tmp_path: Path) -> None:
    with pytest.raises(plots.NothingToDraw, match="nothing to draw"):
        plots.save(shape(), tmp_path / "plot.svg")
    assert not list(tmp_path.iterdir())


def test_bad_paths(tmp_path: Path) -> None:
    with pytest.raises(VerifyError, match=r"plots are written as \.png or \.svg"):
        plots.save(tools.exact(), tmp_path / "plot.pdf")
    with pytest.raises(VerifyError, match=r"cannot write .*: no such file or directory"):
        plots.save(tools.exact(), tmp_path / "missing" / "plot.svg")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(VerifyError, match=r"plots need matplotlib, .*pip install"):
        plots.save(tools.exact(), tmp_path / "plot.png")


def test_what_cannot_be_drawn_is_known_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.png", "a.svg", "A.PNG"):
        plots.check(Path(name))
    for name in ("a.gif", "png", "a"):
        with pytest.raises(VerifyError, match=r"plots are written as \.png or \.svg"):
            plots.check(Path(name))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(VerifyError, match=r"plots need matplotlib, .*pip install"):
        plots.check(Path("a.png"))
