"""The lines of a rewrite in the original tree, the functions that hold them, and why they did not run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from codemods.rewriting.result import Mended
from verify.judging.bench import lines_below
from verify.measured.results import Rewrite, Run, Verdict
from verify.reaching.causes import Cause, Causes, heads
from verify.reaching.drives import calls, enclosing
from verify.running.rewriting import Rewriter

Line = tuple[str, int]
EMPTY = ast.Module([], [])


def _called(name: str) -> list[str]:
    """What has to be called so that the function ``name`` is: itself, and for a method the constructor of its class."""
    owner = name.rpartition(".")[0]
    return [name, f"{owner}.__init__"] if owner else [name]


class Places:
    """Of the rewrites of ``rewriter``; ``trees`` are the files of the tree by path below the root."""

    def __init__(self, rewriter: Rewriter, trees: Mapping[str, ast.AST]) -> None:
        self._rewriter = rewriter
        self._trees = trees

    def lines(self, group: Mended) -> list[Line]:
        """The lines of ``group``, with paths below the root."""
        return sorted(line for lines in lines_below(self._rewriter, [group.touched.before()]) for line in lines)

    def causes(self, group: Mended, run: Run) -> list[Cause]:
        """Why each block of the lines of ``group`` did not run in ``run``."""
        causes = Causes(run, self._trees)
        seen = run.reached
        missed = [line for line in self.lines(group) if line not in seen and line[0] in self._trees]
        starts = [line for line in missed if line[1] in heads(self._trees[line[0]])]
        return [causes.of(*line) for line in dict.fromkeys([*missed[:1], *starts])]

    def reasons(self, group: Mended, runs: Sequence[Run], unmade: Mapping[tuple[str, str], str]) -> list[str]:
        """Why ``group`` was not reached in ``runs``, and what would reach it; ``unmade`` says why nothing could be said
        of functions by themselves. Empty where nothing is known."""
        paths = {path for path, _ in self.lines(group)}
        # Of a file that another run has loaded, that run tells more.
        telling = (run for run in runs if any(paths.intersection(each.loaded) for each in run.records))
        causes = self.causes(group, next(telling, runs[0]))
        if not causes:
            return []
        alone = [
            f"by itself {place[1]} could not be judged: {unmade[place]}"
            for place in sorted(self.functions(group))
            if place in unmade
        ]
        return [part for part in (causes[0].text, causes[0].advice, *alone[:1]) if part]

    def functions(self, group: Mended) -> set[tuple[str, str]]:
        """The functions that hold them, by path and name."""
        found = set()
        for path, line in self.lines(group):
            function = enclosing(self._trees.get(path, EMPTY), line)
            if function is not None:
                found.add((path, function[0]))
        return found

    def callers(self, path: str, line: int) -> set[str]:
        """The files that call the function around ``line``, and those that call these."""
        found: set[str] = set()
        ways = [(path, line)]
        for _ in range(2):
            following: list[Line] = []
            for at, number in ways:
                function = enclosing(self._trees.get(at, EMPTY), number)
                for name in _called(function[0]) if function is not None else ():
                    following += [(where, call.lineno) for where, _, call in calls(name, self._trees, at)][:8]
            found |= {where for where, _ in following}
            ways = following
        return found

    def marked(self, rewrite: Rewrite, group: Mended, trial: Run) -> Rewrite:
        """``rewrite`` with whether only calls at the end of ``trial`` came to its lines."""
        if rewrite.verdict is Verdict.NOT_REACHED:
            return rewrite
        lines = set(self.lines(group))
        seen = trial.reached & lines
        alone = {line for record in trial.records for line in record.alone} & lines
        if not alone or seen != alone:
            return rewrite
        functions = self.functions(group)
        how = next((each.how for record in trial.records for each in record.driven if each.place in functions), "")
        return replace(rewrite, alone=True, why=f"called {how}: {rewrite.why}" if how else rewrite.why)
