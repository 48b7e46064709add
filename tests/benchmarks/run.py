"""How fast ``codemod check`` is beside its peers: every tool on the same trees, in turns, in one run.

``python tests/benchmarks/run.py [--quick] [--tree torch|scripts|all]``; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from measuring import Run, adopt_orphans, measure, median
from trees import copy_torch, installed_torch, lines, make_scripts, sample

SLOW = 20.0
"""Seconds from which on a tool is not run again: what would have been its warm-up counts."""

OWN_LIMIT = 1800.0
"""Seconds after which codemod itself is stopped; peers may be given less, because a bound of theirs tells something."""

CODEMOD = "codemod check"
TORCHFIX = "torchfix"
PREFLIGHT = "torch-preflight check"
RUFF = "ruff check --select E9,F"
BARE = "python -c pass"
SAMPLED = (TORCHFIX, PREFLIGHT)
"""The tools that ``--sample`` gives only a part of the tree."""

START_UPS = 10


@dataclass(frozen=True)
class Tool:
    """A command that reads the tree in its working directory."""

    name: str
    command: tuple[str, ...]
    version: str


@dataclass(frozen=True)
class Figure:
    """What a tool took: medians over ``runs`` runs after a warm-up, or its only run; ``share`` is that of the tree's
    lines which it was given, where its times are worked out from a sample."""

    tool: Tool
    result: Run
    runs: int
    warm: bool
    share: float = 1.0


@dataclass(frozen=True)
class Aim:
    """What the project wants of a figure: ``value`` of the table ``at_least`` or at most ``bound``."""

    text: str
    bound: float
    at_least: bool
    value: Callable[[dict[str, Run]], Bounded | None]

    def verdict(self, results: dict[str, Run]) -> str:
        """A line of a list: the aim, what was measured, and whether that meets it."""
        value = self.value(results)
        if value is None:
            return f"- {self.text}: not measured"
        enough = value.number >= self.bound if self.at_least else value.number <= self.bound
        sure = value.sign == "" or value.sign == ("≥ " if enough == self.at_least else "≤ ")
        return f"- {self.text}: {value}, {('met' if enough else 'missed') if sure else 'open'}"


@dataclass(frozen=True)
class Bounded:
    """A number, or with a sign a bound of it."""

    number: float
    sign: str = ""
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.sign}{_short(self.number)}{self.unit}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments ask for, print the tables, and say whether codemod itself came through."""
    options = _options(arguments)
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops what runs and removes the trees
    tools, missing = find_tools(options.peers)
    sections: dict[str, str] = {}
    well = True
    with tempfile.TemporaryDirectory(prefix="codemod-benchmark-") as place:
        for name in ("scripts", "torch") if options.tree == "all" else (options.tree,):
            tree = Path(place) / name
            tree.mkdir()
            if name == "scripts":
                make_scripts(tree, options.files)
            else:
                source = options.torch or installed_torch()
                if source is None:
                    _say("torch is not installed here (name another with --torch): its tree is left out")
                    continue
                copy_torch(source, tree, quick=options.quick)
            sampled = [tool for tool in tools if options.sample and tool.name in SAMPLED]
            figures = compare([tool for tool in tools if tool not in sampled], tree, options.runs, options.limit)
            if sampled:
                part = Path(place) / f"{name}-sample"
                share = sample(tree, part, options.sample)
                figures[2:2] = [scaled(tool, part, share, options.limit) for tool in sampled]
            well &= all(f.result.failure is None for f in figures if f.tool.name.startswith(CODEMOD))
            sections[name] = report_tree(name, tree, figures, missing, quick=options.quick)
            print(sections[name], flush=True)
        starts = start_ups(tools, Path(place), 3 if options.quick else START_UPS)
        sections["start-up"] = report_start_ups(starts)
        print(sections["start-up"], flush=True)
    if options.markdown is not None:
        write_sections(options.markdown, sections)
    return 0 if well else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="parts of the trees, one run of each tool")
    parser.add_argument("--tree", choices=("torch", "scripts", "all"), default="all", help="which trees (default: all)")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each tool after its warm-up (default: 5)")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="when a peer is stopped (default: 1800)")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="give the slow peers N random files, and work out the rest by lines"
    )
    parser.add_argument("--files", type=int, metavar="N", help="size of the tree of scripts (default: 400)")
    parser.add_argument("--torch", type=Path, metavar="FOLDER", help="the torch package to copy")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="the bin folder in which the peers are looked for")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also put the tables between the marks of FILE")
    options = parser.parse_args(arguments)
    options.runs = options.runs or (1 if options.quick else 5)
    options.limit = options.limit or (120.0 if options.quick else 1800.0)
    options.files = options.files or (60 if options.quick else 400)
    if options.markdown is not None and not options.markdown.is_file():
        parser.error(f"no such file: {options.markdown}")
    return options


# the tools


def find_tools(peers: Path | None) -> tuple[list[Tool], list[str]]:
    """codemod, the peers that are installed, and the names of those that are not."""
    folders = [str(peers)] if peers is not None else []
    search = os.pathsep.join([*folders, str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    own = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    wanted = [
        (CODEMOD, own, ("codemod",), ("check", "--no-cache", ".")),
        (f"{CODEMOD} --jobs 1", own, ("codemod",), ("check", "--no-cache", "--jobs", "1", ".")),
        (TORCHFIX, search, ("torchfix",), (".",)),
        (PREFLIGHT, search, ("torch-preflight",), ("check", ".")),
        (RUFF, search, ("ruff",), ("check", "--isolated", "--no-cache", "--select", "E9,F", ".")),
    ]
    tools, missing = [], []
    for name, path, (program,), arguments in wanted:
        found = shutil.which(program, path=path)
        if found is None and program == "codemod":
            raise SystemExit("codemod is not installed: pip install -e '.[bench]' first")
        if found is None:
            missing.append(program)
            _say(f"{program} is not installed (pip install -e '.[bench]'): goes on without it")
        else:
            tools.append(Tool(name, (found, *arguments), _version(found)))
    return tools, missing


def _version(program: str) -> str:
    ran = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    number = re.search(r"\d+(\.\w+)+", ran.stdout)
    return number.group() if number else "?"


# measuring


def compare(tools: Sequence[Tool], tree: Path, runs: int, limit: float) -> list[Figure]:
    """Each tool on ``tree``: a warm-up each, then ``runs`` rounds in turns; at ``limit`` seconds a peer is stopped."""
    first = {}
    for tool in tools:
        _say(f"{tree.name}: {tool.name} {tool.version}, warm-up")
        first[tool] = measure(tool.command, tree, _limit(tool, limit))
    again: dict[Tool, list[Run]] = {tool: [] for tool, run in first.items() if run.wall < SLOW and not run.failure}
    for i in range(runs):
        for tool, measured in again.items():
            _say(f"{tree.name}: {tool.name}, run {i + 1} of {runs}")
            measured.append(measure(tool.command, tree, _limit(tool, limit)))
    return [
        Figure(tool, median(again.get(tool, [run])), len(again.get(tool, [run])), tool in again)
        for tool, run in first.items()
    ]


def scaled(tool: Tool, part: Path, share: float, limit: float) -> Figure:
    """What a tool would take for a tree of whose lines ``part`` holds a ``share``: its start-up, and the rest by lines.

    One run after a start of the tool alone; its memory is that of the sample.
    """
    _say(f"{part.name}: {tool.name} {tool.version}")
    start = measure((tool.command[0], "--version"), part, 60.0)
    run = measure(tool.command, part, limit)
    wall, cpu = (a + max(b - a, 0.0) / share for a, b in ((start.wall, run.wall), (start.cpu, run.cpu)))
    return Figure(tool, replace(run, wall=wall, cpu=cpu), 1, False, share)


def _limit(tool: Tool, peers: float) -> float:
    return OWN_LIMIT if tool.name.startswith(CODEMOD) else peers


def start_ups(tools: Sequence[Tool], place: Path, runs: int) -> list[Figure]:
    """``--version`` of each tool, and beside it an interpreter that does nothing, in turns."""
    starts = [Tool(BARE, (sys.executable, "-c", "pass"), platform.python_version())]
    for tool in tools:
        if "--jobs" not in tool.command:
            starts.append(Tool(f"{Path(tool.command[0]).name} --version", (tool.command[0], "--version"), tool.version))
    _say("start-up of each tool")
    taken: dict[Tool, list[Run]] = {tool: [] for tool in starts}
    for _ in range(runs + 1):
        for tool, measured in taken.items():
            measured.append(measure(tool.command, place, 60.0))
    return [Figure(tool, median(measured[1:]), runs, True) for tool, measured in taken.items()]


# reporting


def _over(above: str, below: str) -> Callable[[dict[str, Run]], Bounded | None]:
    """How many times as much processor time ``above`` takes as ``below``."""
    return lambda results: ratio(results.get(above), results.get(below), lambda run: run.cpu)


def _peak(results: dict[str, Run]) -> Bounded | None:
    run = results.get(CODEMOD)
    return Bounded(run.peak, "≥ " if run.stopped else "", " MB") if run and not run.failure else None


def _start_up(results: dict[str, Run]) -> Bounded | None:
    run = results.get("codemod --version")
    return Bounded(run.cpu, "", " s") if run and not run.failure else None


PEAK = Aim("peak memory of a codemod process, at most 300 MB", 300, False, _peak)
RUFF_TIME = Aim("codemod takes at most 5 times the CPU time of ruff", 5, False, _over(CODEMOD, RUFF))
AIMS = {
    "scripts": [RUFF_TIME, PEAK],
    "torch": [
        Aim("TorchFix takes at least 100 times the CPU time of codemod", 100, True, _over(TORCHFIX, CODEMOD)),
        Aim("torch-preflight takes at least 100 times the CPU time of codemod", 100, True, _over(PREFLIGHT, CODEMOD)),
        RUFF_TIME,
        PEAK,
    ],
    "start-up": [Aim("start-up of codemod, at most 0.15 s of CPU", 0.15, False, _start_up)],
}


def ratio(above: Run | None, below: Run | None, of: Callable[[Run], float]) -> Bounded | None:
    """``above`` over ``below``; a bound where one of them was stopped, nothing where both were or one failed."""
    if above is None or below is None or above.failure or below.failure or (above.stopped and below.stopped):
        return None
    return Bounded(of(above) / max(of(below), 1e-9), "≥ " if above.stopped else "≤ " if below.stopped else "")


def report_tree(name: str, tree: Path, figures: Sequence[Figure], missing: Sequence[str], *, quick: bool) -> str:
    """The section of one tree: what it is, the table, the aims."""
    files = sorted(tree.rglob("*.py"))
    kind = {"torch": "The installed torch package", "scripts": "Training scripts"}[name]
    part = " (--quick: a part of it)" if quick else ""
    results = {figure.tool.name: figure.result for figure in figures}
    rows = [_row(figure, results[CODEMOD]) for figure in figures]
    rows += [[program, "not installed", "", "", "", "", ""] for program in missing]
    heads = ["tool", "wall s", "CPU s", "peak MB", "wall, codemod = 1", "CPU, codemod = 1", "runs"]
    aims = [] if quick else [aim.verdict(results) for aim in AIMS[name]]
    return _section(f"{kind}{part}: {len(files):,} files, {lines(files):,} lines.", heads, rows, aims)


def _row(figure: Figure, base: Run) -> list[str]:
    tool, run = figure.tool, figure.result
    name = f"{tool.name} ({tool.version})"
    if run.failure:
        return [name, f"failed: {run.failure}", "", "", "", "", ""]
    sign = "≥ " if run.stopped else ""
    wall = f"stopped after {_short(run.wall)}" if run.stopped and figure.share == 1.0 else sign + _short(run.wall)
    runs = f"{figure.runs}" if figure.warm else f"{figure.runs}, no warm-up"
    if figure.share < 1.0:
        runs += f", from {figure.share:.1%} of the lines"
    ratios = [str(ratio(run, base, of) or "?") for of in (lambda r: r.wall, lambda r: r.cpu)]
    return [name, wall, sign + _short(run.cpu), sign + _short(run.peak), *ratios, runs]


def report_start_ups(figures: Sequence[Figure]) -> str:
    """The section of the start-ups."""
    results = {figure.tool.name: figure.result for figure in figures}
    bare = results[BARE]
    rows = [
        [
            f"{f.tool.name} ({f.tool.version})",
            *map(_short, (f.result.cpu, f.result.wall, f.result.peak)),
            str(ratio(f.result, bare, lambda r: r.cpu) or "?"),
            f.result.failure or str(f.runs),
        ]
        for f in figures
    ]
    heads = ["command", "CPU s", "wall s", "peak MB", "CPU, python = 1", "runs"]
    return _section("Start-up.", heads, rows, [aim.verdict(results) for aim in AIMS["start-up"]])


def _section(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], aims: Sequence[str]) -> str:
    cores, load = os.cpu_count(), os.getloadavg()[0]
    machine = f"{date.today()}, {platform.system()} {platform.machine()}, {cores} cores, load {load:.1f} at the end."
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    cells = [heads, ["-" * width for width in widths], *rows]
    table = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    return "\n".join([f"{title} {machine}", "", *table, "", *aims, *([""] if aims else [])])


def _short(number: float) -> str:
    """Three digits, no more: the machine is noisy."""
    digits = 0 if number >= 100 else 1 if number >= 10 else 2 if number >= 0.1 else 3
    return f"{number:.{digits}f}"


def write_sections(file: Path, sections: dict[str, str]) -> None:
    """Put each section between its two marks in ``file``; the other sections stay as they were."""
    text = file.read_text(encoding="utf-8")
    for name, section in sections.items():
        begin, end = f"<!-- figures: {name} -->", f"<!-- end of figures: {name} -->"
        if begin not in text or end not in text:
            _say(f"{file} has no marks for {name}: {begin} and {end}")
            continue
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{section.rstrip()}\n{end}{rest.partition(end)[2]}"
    file.write_text(text, encoding="utf-8")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
