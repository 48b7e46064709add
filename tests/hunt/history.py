"""What people fixed: the commit before a fix is checked out, and ``check`` has to ask for that fix.

    python -m tests.hunt.history --mirror FOLDER [--cases FILE] [--repos NAMES] [--jobs 1] [--json FILE]

``history.tsv`` names commits of public repositories by facts alone: repository, commit, file, the line in the commit's
parent where the fix was made, its kind, and in which words a person judged it. FOLDER holds a git directory of each
repository, as FOLDER/owner+name, FOLDER/owner+name/repo, or FOLDER/owner/name; what is not there is counted as absent.
The code itself is never kept.

A case is *found* if a fixable finding of the kind's rules stands where the fix was made, *advised* if such a finding is
advice, *something else* if only other rules speak there, and *missed* otherwise. What only evaluates may be wrapped in
the function, around it, or where it is called: a finding whose lines reach there or call that function, whose trail
leads there, or that decorates what is called on the line, counts as well. A case of the kind ``leave`` shows what a
later commit proved right as it was: any fixable finding of the rules that its note names is *wrong* there.
"""

from __future__ import annotations

import argparse
import ast
import collections
import csv
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("history.tsv")

RULES: dict[str, frozenset[str]] = {
    "evaluation": frozenset({"grad-in-evaluation"}),
    "retain": frozenset({"surplus-retain-graph"}),
    "total": frozenset({"attached-loss-total"}),
    "history": frozenset({"attached-loss-history", "stored-graph"}),
    "generator": frozenset({"undetached-generator-output"}),
    "state": frozenset({"carried-hidden-state", "stored-graph", "unreset-loss"}),
    "order": frozenset({"step-between-backwards"}),
    "zero": frozenset({"missing-zero-grad"}),
    "invariant": frozenset({"loop-invariant-graph"}),
}
"""The rules that may ask for a fix of each kind."""

AT_THE_LINE = frozenset(("retain", "total", "history"))
"""Kinds whose fix is the line itself; the others may be asked for anywhere in the function."""

STATES = ("found", "advised", "something else", "missed", "wrong", "right", "absent", "failed")

# git may know the committer's configuration, and must not ask for anything
_GIT = ("git", "-c", "core.quotepath=off")


@dataclass(frozen=True)
class Case:
    """A fix: the commit that made it, and the line of its parent where it was made."""

    repo: str
    commit: str
    path: str
    line: int
    kind: str
    note: str


def cases(file: Path) -> list[Case]:
    """The cases of a table; raises ``ValueError`` for a row that says no known kind."""
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = [Case(r["repo"], r["commit"], r["path"], int(r["line"]), r["kind"], r["note"] or "") for r in rows]
    for case in found:
        if case.kind not in RULES and case.kind != "leave":
            raise ValueError(f"{file.name}: {case.repo} {case.commit}: no such kind: {case.kind}")
    return found


def repository(mirror: Path, name: str) -> Path | None:
    """The git directory of ``owner/name`` under a mirror folder."""
    flat = mirror / name.replace("/", "+")
    for base in (flat / "repo", flat, mirror / name):
        for folder in (base / ".git", base):
            if (folder / "HEAD").exists():
                return folder
    return None


def export(repo: Path, commit: str, folder: Path) -> bool:
    """Write the Python files of a commit into a folder; whether there are any."""
    named = subprocess.run(
        [*_GIT, "--git-dir", str(repo), "archive", commit, "--", ":(glob)**/*.py"], capture_output=True, check=False
    )
    if named.returncode:
        return False
    return not subprocess.run(["tar", "-x", "-C", str(folder)], input=named.stdout, check=False).returncode


def findings(folder: Path, limit: float) -> list[dict[str, Any]] | None:
    """What ``check --unsafe`` finds in a folder; None if it does not come to an end."""
    command = [sys.executable, "-m", "codemods", "check", ".", "--format", "json", "--unsafe", "--no-cache"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit, check=False)
        found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, KeyError):
        return None
    return found


def reach(text: str, line: int) -> tuple[int, int]:
    """The first and last line of the innermost function around a line, its decorators among them.

    Outside of functions twenty lines on both sides, and the innermost loop around it; by the indentation where the text
    is no Python of today.
    """
    around = (max(line - 20, 1), line + 20)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return _indented(text.split("\n"), line) or around
    best: tuple[int, int] | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.While)) and node.lineno <= line <= (node.end_lineno or 0):
            # they come from the outside in
            around = (min(max(line - 20, 1), node.lineno), max(line + 20, node.end_lineno or 0))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            # what a fix puts before a function is counted to the line above it
            if first - 1 <= line <= (node.end_lineno or first) and (best is None or first >= best[0]):
                best = (first, node.end_lineno or first)
    return best or around


def _indented(lines: list[str], line: int) -> tuple[int, int] | None:
    """The ``def`` above a line that is indented less, and the last line that is indented more than that."""

    def width(text: str) -> int:
        return len(text.expandtabs()) - len(text.expandtabs().lstrip())

    inner = next((width(text) for text in lines[line - 1 :] if text.strip()), 0)
    for first in range(min(line, len(lines)), 0, -1):
        head = lines[first - 1]
        if head.lstrip().startswith("def ") and width(head) < inner:
            last = first
            while last < len(lines) and (not lines[last].strip() or width(lines[last]) > width(head)):
                last += 1
            return first, last
    return None


def judge(case: Case, found: list[dict[str, Any]], text: str, texts: Callable[[str], str] | None = None) -> str:
    """What the findings of a tree come to for a case in a file of this ``text``; ``texts`` are those of the others."""
    first, last = (case.line - 1, case.line + 1) if case.kind in AT_THE_LINE else reach(text, case.line)
    there = [f for f in found if f["path"] == case.path and first <= f["line"] <= last]
    if case.kind == "leave":
        return "wrong" if any(f["fixable"] and f["rule"] in case.note for f in there) else "right"
    asking = [f for f in there if f["rule"] in RULES[case.kind] or (case.kind == "evaluation" and _volatile(f))]
    if case.kind == "evaluation":
        called, around = _called(text, case.line, case.line + 10), _named(text, first, last)
        for finding in found:
            if finding["rule"] in RULES[case.kind]:
                held = text if finding["path"] == case.path else texts(finding["path"]) if texts is not None else ""
                calls = _called(held, finding["line"], finding.get("end_line", 0))
                if around in calls or _leads(finding, case.path, (first, last), called):
                    asking.append(finding)
    if any(f["fixable"] for f in asking):
        return "found"
    if asking:
        return "advised"
    return "something else" if there else "missed"


def _leads(finding: dict[str, Any], path: str, lines: tuple[int, int], called: frozenset[str]) -> bool:
    """Whether a finding reaches into lines, saw graphs made there, or decorates a function that is called there."""
    first, last = lines
    spans = finding["path"] == path and finding["line"] <= last and finding.get("end_line", 0) >= first
    seen = any(step["path"] == path and first <= step["line"] <= last for step in finding.get("trail", ()))
    return spans or seen or finding["message"].partition("()")[0] in called


def _called(text: str, first: int, last: int) -> frozenset[str]:
    """The names of what is called from one line to another: a block may begin some lines above."""
    tree = _parsed(text)
    calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call) and first <= n.lineno <= last] if tree else []
    return frozenset(f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls) - {""}


def _named(text: str, first: int, last: int) -> str:
    """The name of the function that lies in these lines, its decorators among them; empty where none does, and of such
    as many classes have."""
    tree = _parsed(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))] if tree else []
    found = next((f.name for f in functions if first <= f.lineno <= last and f.end_lineno == last), "")
    return "" if found == "forward" or found.startswith("__") else found


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _volatile(finding: dict[str, Any]) -> bool:
    """Whether it is the advice on ``volatile=True``, which was the ``no_grad`` of its time."""
    return finding["rule"] == "legacy-variable" and not finding["fixable"] and "volatile" in finding["message"]


def compare(group: list[Case], mirror: Path, limit: float) -> list[str]:
    """The states of cases that share a commit."""
    repo = repository(mirror, group[0].repo)
    if repo is None:
        return ["absent"] * len(group)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not export(repo, f"{group[0].commit}^", folder):
            return ["absent"] * len(group)
        found = findings(folder, limit)
        if found is None:
            return ["failed"] * len(group)

        @functools.cache
        def texts(path: str) -> str:
            file = folder / path
            return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""

        states = []
        for case in group:
            text = texts(case.path)
            states.append(judge(case, found, text, texts) if text else "absent")
        return states


def table(results: Iterable[tuple[Case, str]]) -> str:
    """The states by kind, a line each."""
    tally: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for case, state in results:
        tally[case.kind][state] += 1
        tally["all"][state] += 1
    used = [s for s in STATES if tally["all"][s]]
    lines = ["| kind | " + " | ".join(used) + " | of |", "| --- |" + " --- |" * (len(used) + 1)]
    for kind in [*RULES, "leave", "all"]:
        count = tally[kind]
        if count:
            lines.append(f"| {kind} | " + " | ".join(str(count[s]) for s in used) + f" | {sum(count.values())} |")
    return "\n".join(lines)


def main() -> int:
    """Compare all cases, print each that was not found, and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirror", required=True, type=Path)
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--repos", nargs="*", help="only these")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=240)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases(options.cases):
        if not options.repos or case.repo in options.repos:
            groups.setdefault((case.repo, case.commit), []).append(case)
    results: list[tuple[Case, str]] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for group, states in zip(
            groups.values(),
            pool.map(lambda g: compare(g, options.mirror, options.timeout), groups.values()),
            strict=True,
        ):
            results += zip(group, states, strict=True)
            for case, state in zip(group, states, strict=True):
                if state not in ("found", "right"):
                    print(
                        f"{state:14} {case.kind:10} {case.repo} {case.commit[:10]} {case.path}:{case.line}", flush=True
                    )
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([{**asdict(c), "state": s} for c, s in results], indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
