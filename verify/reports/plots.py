"""Graph nodes, memory and loss over the steps, drawn by matplotlib: a picture to attach, or panels for the page.

The same verification gives the same bytes. Grounds are transparent and the colours lie between light and dark, so that
a picture can be read on either; the page puts its own colours in their place. Vermilion and blue are told apart with
any colour vision (Okabe and Ito, 2008), and every line bears its name.
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from codemods.source.diffs import printable
from codemods.source.writing import replace_file
from verify.errors import VerifyError
from verify.measured.results import Entry, Verification
from verify.reports.curves import Chart, Curve, Quantity, charts
from verify.reports.remarks import command_text, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")

#: What the page writes instead of each colour.
COLOURS = {
    "#d55e00": "var(--original)",
    "#2a87c8": "var(--rewritten)",
    "#767c85": "var(--muted)",
}
_ORIGINAL, _REWRITTEN, _INK = COLOURS
_COLOUR = {"original": _ORIGINAL, "rewritten": _REWRITTEN}

_PANEL = (3.9, 2.35)  # inches
_LABEL_GAP = 11.0  # points between the middles of two labels
_TITLE = 90  # characters
_MISSING = "plots need matplotlib, which is not installed: pip install 'torch-codemod[plots]'"


class Panel(NamedTuple):
    """One chart for the page: what it shows, in words, and the ``<svg>`` element."""

    title: str
    svg: str


class NothingToDraw(VerifyError):
    """No run came as far as to a call of backward."""


def check(path: Path) -> None:
    """Raise :class:`VerifyError` where :func:`save` could not draw to ``path``: another suffix, no matplotlib."""
    if path.suffix.lower() not in FORMATS:
        raise VerifyError(f"{path}: plots are written as {' or '.join(FORMATS)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise VerifyError(_MISSING)


def save(verification: Verification, path: Path) -> None:
    """Write the plots to ``path``, as PNG or SVG by its suffix: a row an entry.

    Raises :class:`VerifyError` for what :func:`check` raises it and where the file cannot be written, and
    :class:`NothingToDraw`.
    """
    check(path)
    content = svg(verification).encode() if path.suffix.lower() == ".svg" else _png(verification)
    try:
        replace_file(path, content)
    except OSError as error:
        raise VerifyError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


def svg(verification: Verification) -> str:
    """Return the plots as one SVG document; raises :class:`VerifyError` as :func:`save` does."""
    with _style("codemod"):
        return _written(_whole(verification), "svg").decode()


def panels(entry: Entry, salt: str) -> list[Panel]:
    """Return the charts of ``entry``, each for itself, coloured by the custom properties of the page around them.

    ``salt`` must differ between entries of one page: identifiers are made of it. Raises :class:`VerifyError` where
    matplotlib is missing.
    """
    found = []
    for chart in charts(entry):
        with _style(f"codemod {salt} {chart.quantity.value}"):
            from matplotlib.figure import Figure

            figure = Figure(figsize=_PANEL, layout="constrained")
            _draw(figure.add_subplot(), chart)
            found.append(Panel(chart.title, _inline(_written(figure, "svg").decode())))
    return found


def _png(verification: Verification) -> bytes:
    with _style("codemod"):
        return _written(_whole(verification), "png")


@contextmanager
def _style(salt: str) -> Iterator[None]:
    try:
        import matplotlib
    except ImportError:
        raise VerifyError(_MISSING) from None

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A character that the font lacks is drawn as a box; nobody can do anything about it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        # Not what somebody's matplotlibrc says.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.hashsalt": salt,
                "svg.fonttype": "none",
                "font.size": 8.5,
                "text.parse_math": False,
                "text.color": _INK,
                "axes.labelcolor": _INK,
                "axes.edgecolor": _INK,
                "xtick.color": _INK,
                "ytick.color": _INK,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.spines.left": False,
                "axes.linewidth": 0.7,
                "xtick.major.width": 0.7,
                "xtick.major.size": 3,
                "ytick.major.size": 0,
                "axes.titlelocation": "left",
                "axes.titlesize": 9.5,
                "axes.titleweight": "bold",
                "axes.titlepad": 10,
                "axes.formatter.useoffset": False,
                "lines.solid_capstyle": "round",
            }
        )
        yield


def _whole(verification: Verification) -> Figure:
    from matplotlib.figure import Figure

    rows = [(entry, found) for entry in verification.entries if (found := charts(entry))]
    if not rows:
        raise NothingToDraw("there is nothing to draw: no run called backward")
    columns = max(len(found) for _, found in rows)
    figure = Figure(figsize=(_PANEL[0] * columns, (_PANEL[1] + 0.3) * len(rows)), layout="constrained")
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for (entry, found), part in zip(rows, parts, strict=True):
        part.suptitle(shortened(printable(command_text(entry.command)), _TITLE), x=0.01, ha="left", size=9)
        for axes, chart in zip(part.subplots(1, columns, squeeze=False)[0], found, strict=False):
            _draw(axes, chart)
        for axes in part.axes[len(found) :]:
            axes.set_axis_off()
    return figure


def _draw(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    title, shown = chart.title, [c for c in chart.curves if any(math.isfinite(value) for value in c.values)]
    if chart.quantity is Quantity.BYTES:
        shown, unit = _in_units(shown)
        title += f", {unit}"
    axes.set_title(shortened(printable(title), _TITLE // 2))
    axes.set_xlabel(chart.axis)
    for curve in shown:
        # The original is the broader one: where both are the same, both are seen.
        width = 4.6 if curve.name == "original" else 1.7
        finite = [value if math.isfinite(value) else math.nan for value in curve.values]
        alone = sum(math.isfinite(value) for value in curve.values) == 1
        axes.plot(
            curve.places,
            finite,
            color=_COLOUR[curve.name],
            linewidth=width,
            marker="o" if alone else "",
            markersize=4,
        )
    last = max((place for curve in chart.curves for place in curve.places), default=1)
    # Room at the right for the names of the lines.
    axes.set_xlim(0.5, last + max(1.0, 0.34 * last))
    axes.spines["bottom"].set_bounds(1, last)
    ticks = MaxNLocator(nbins=5, integer=True, min_n_ticks=1).tick_values(1, last)
    axes.set_xticks(sorted({1, *(int(tick) for tick in ticks if 1 < tick <= last)}))
    _scale(axes, chart.quantity, [value for curve in shown for value in curve.values if math.isfinite(value)])
    low, high = axes.get_ylim()
    heights = [float(tick) for tick in axes.get_yticks() if low <= tick <= high]
    axes.hlines(heights, 1, max(last, 1.5), color=_INK, linewidth=0.5, alpha=0.35, zorder=0)
    _name(axes, shown)
    hidden = [curve for curve in chart.curves if curve.values and curve.name not in {c.name for c in shown}]
    text = "\n".join(f"{curve.name}: {curve.values[-1]}" for curve in hidden)
    axes.text(0.98, 0.98, text, transform=axes.transAxes, ha="right", va="top")


def _in_units(curves: Sequence[Curve]) -> tuple[list[Curve], str]:
    """Return the curves in MiB, or in GiB where they reach several of them, and the name of the unit."""
    highest = max((value for curve in curves for value in curve.values), default=0.0)
    size, unit = (1 << 30, "GiB") if highest >= 4 << 30 else (1 << 20, "MiB")
    return [replace(curve, values=tuple(value / size for value in curve.values)) for curve in curves], unit


def _scale(axes: Axes, quantity: Quantity, values: Sequence[float]) -> None:
    """Choose the range of the y axis: noise must not fill it, and growth must be seen."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if quantity is Quantity.LOSS and low > 0 and high / low > 1000:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
        return
    if quantity is Quantity.NODES:
        # The line of a graph that is empty is to lie on the ground, and be seen.
        axes.set_ylim(-0.04 * max(high, 10), 1.12 * max(high, 10))
    elif quantity is Quantity.BYTES:
        least = max(1.0, 0.02 * high)
        room = max(least - (high - low), 0) / 2 + 0.1 * (high - low)
        axes.set_ylim(max(low - room, 0.0), high + room)
    else:
        room = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
        axes.set_ylim(low - room, high + room)
    whole = quantity is Quantity.NODES
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    if whole:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _name(axes: Axes, curves: Sequence[Curve]) -> None:
    """Write its name at the end of each line, and a cross where a run broke off."""
    ends = []
    for curve in curves:
        place, value = [pair for pair in zip(curve.places, curve.values, strict=True) if math.isfinite(pair[1])][-1]
        text = f"{curve.name} {curve.end}".strip()
        if not math.isfinite(curve.values[-1]):
            text += f" ({curve.values[-1]})"
        if curve.end:
            axes.plot(
                [place], [value], color=_COLOUR[curve.name], marker="X", markersize=8, markeredgewidth=0, zorder=5
            )
        ends.append((place, value, text, _COLOUR[curve.name]))
    last = max((place for place, *_ in ends), default=0)
    points = 72 / axes.figure.dpi
    heights = [axes.transData.transform((place, value))[1] * points for place, value, *_ in ends]
    for (place, value, text, colour), shift in zip(ends, _shifts(heights, [end[0] for end in ends]), strict=True):
        # A run that ended early has its name above the cross, out of the way of the line that goes on.
        early = place < 0.7 * last
        axes.annotate(
            text,
            (place, value),
            (0 if early else 7, 11 if early else shift),
            textcoords="offset points",
            va="center",
            color=colour,
            annotation_clip=False,
        )


def _shifts(heights: Sequence[float], places: Sequence[int]) -> list[float]:
    """Return by how many points each label must move so that two at the same place do not touch."""
    if len(heights) < 2 or abs(heights[0] - heights[1]) >= _LABEL_GAP or min(places) < 0.7 * max(places):
        return [0.0] * len(heights)
    missing = (_LABEL_GAP - abs(heights[0] - heights[1])) / 2
    return [missing, -missing] if heights[0] >= heights[1] else [-missing, missing]


def _written(figure: Figure, format: str) -> bytes:
    buffer = io.BytesIO()
    # Without what would change from day to day, or from one release of matplotlib to the next; by its sign it is ours.
    if format == "svg":
        metadata = {"Date": None, "Creator": "codemod", "Format": None, "Type": None}
        figure.savefig(buffer, format=format, transparent=True, metadata=metadata)
    else:
        figure.savefig(buffer, format=format, transparent=True, dpi=160, metadata={"Software": "codemod"})
    return buffer.getvalue()


def _inline(document: str) -> str:
    """Return the ``<svg>`` element alone, as wide as its surroundings, coloured by the page."""
    element = document[document.index("<svg") :]
    # A style sheet would hold for the whole page; the page says the same of its plots alone.
    element = re.sub(r"<(metadata|style)\b.*?</\1>", "", element, flags=re.DOTALL)
    head, rest = element.split(">", 1)
    head = re.sub(r' (?:width|height|version|xmlns)="[^"]*"', "", head)
    # Groups are numbered the same in every figure, and nothing refers to them.
    rest = re.sub(r' id="[A-Za-z0-9]+(?:\.[a-z]+)?_\d+"', "", rest)
    rest = re.sub(r"font: (?:bold )?[\d.]+px [^;\"]+", lambda match: match[0].split("px")[0] + "px inherit", rest)
    for colour, value in COLOURS.items():
        rest = rest.replace(colour, value)
    return f'{head} role="img">{rest}'.strip()
