"""Why lines did not run: from the run (which blocks ran, where it ended) and from the syntax around them.

A cause is a sentence for people with what would bring a run there, and what the run itself can turn on the way: loops
that stand in front of the lines, bounds that were not met, functions that nobody called.
"""

from __future__ import annotations

import ast
import functools
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from verify.measured.results import STOPPED, Outcome, Run
from verify.measured.values import Site
from verify.reaching.drives import calls, enclosing, imported, module_name
from verify.reaching.knobs import Bound, Cap, Knobs, comparisons, counters
from verify.reaching.options import arguments, option
from verify.syntax import FUNCTIONS, LOOPS, functions

Line = tuple[str, int]
#: How many calls up the way is followed.
_DEEPEST = 4
#: Turns of the loop that was running when the run ended, and of those around it.
INNER, OUTER = 5, 2


@dataclass(frozen=True)
class Cause:
    """Why lines did not run (``text``), what would reach them (``advice``, may be empty), and the knobs for it.

    ``arguments`` of the command would open what is closed.
    """

    text: str
    advice: str = ""
    caps: tuple[Cap, ...] = ()
    bounds: tuple[Bound, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """Whether there is something to turn."""
        return bool(self.caps or self.bounds or self.arguments)


class Causes:
    """Of one run: ``trees`` are the files of the tree by path below the root."""

    def __init__(self, run: Run, trees: Mapping[str, ast.AST]) -> None:
        self._run = run
        self._trees = trees
        self._loaded = {path for record in run.records for path in record.loaded}
        self._asked: set[tuple[str, str]] = set()
        self._seen = run.reached
        self._stack: list[Site] = [site for record in run.records for site in record.stack]
        if not self._stack:
            self._stack = [record.error_site for record in run.records if record.error_site is not None]
        #: What the run went without, and why.
        self._left = {
            (each["span"][0], each["span"][1]): each["why"].partition(":")[0]
            for record in run.records
            for each in record.left
        }
        # Before torch is there, nobody notes which file is the script.
        self._loaded |= {site.path for site in self._stack} | {path for path, _ in self._seen}

    def of(self, path: str, line: int, depth: int = 0) -> Cause:
        """Why ``line`` of ``path`` did not run."""
        tree = self._trees.get(path)
        place = f"{path}:{line}"
        if tree is None:
            return Cause(f"{place} did not run")
        if path not in self._loaded:
            return self._not_loaded(path)
        if (path, line) in self._left:
            return Cause(f"{place} is left out, because the program stops there ({self._left[path, line]})")
        around = list(blocks(tree, line))
        inside = [block for block in around if isinstance(block.owner, FUNCTIONS)]
        function = inside[-1] if inside else None
        if function is not None and (path, function.head) not in self._seen:
            return self._not_called(path, function.owner, depth)
        own = around[around.index(function) + 1 :] if function is not None else around
        front = self._in_front(path, line, function, own)
        for block in (block for block in own if (path, block.head) not in self._seen):
            come = self._come_to(path, block.owner)
            if front is None and not come:
                # Its condition was not asked, its loop not begun: what kept control from it stands before it.
                break
            cause = self._closed(path, _chained(block, own))
            if cause is not None:
                if front is None:
                    return cause
                turned = any(isinstance(each.owner, LOOPS) for each in own[: own.index(block)])
                # Outside of loops, what comes after the place where the run ended was not even asked.
                told = cause if turned and come else front
                return replace(cause, text=told.text, advice=told.advice, caps=(*front.caps, *cause.caps))
        if front is not None:
            return front
        return Cause(f"{place} did not run: control left before it")

    def _come_to(self, path: str, owner: ast.AST) -> bool:
        """Whether the condition was asked, or the loop begun."""
        return not isinstance(owner, (ast.If, *LOOPS)) or any((path, line) in self._seen for line in _header(owner))

    def _not_loaded(self, path: str) -> Cause:
        acts = any(not isinstance(node, _DEFINING) for node in getattr(self._trees[path], "body", ()))
        if self._run.outcome is Outcome.NOT_STARTED:
            return Cause(f"{path} was not loaded: the program could not be started")
        if self._run.outcome is not Outcome.OK and self._led_to(path):
            return Cause(f"{path} was not loaded: {self._ended()}")
        advice = f"--entry {path!r} would run it" if acts else ""
        return Cause(f"{path} was not loaded: nothing that ran imports it", advice)

    def _led_to(self, path: str) -> bool:
        """Whether what was loaded imports ``path``, by way of others too; where nothing was, anything may."""
        found, waiting = set(self._loaded), [each for each in self._loaded if each in self._trees]
        while waiting:
            names = imported(self._trees[waiting.pop()])
            more = [each for each in self._trees if each not in found and module_name(each) in names]
            found.update(more)
            waiting += more
        return path in found or not self._loaded

    def _not_called(self, path: str, function: ast.AST, depth: int) -> Cause:
        name = getattr(function, "name", "")
        found = enclosing(self._trees[path], getattr(function, "lineno", 0))
        whole = found[0] if found else name
        sites = list(calls(whole, self._trees, path))
        owner, _, last = whole.rpartition(".")
        start = f"{name} (line {getattr(function, 'lineno', 0)} of {path}) was never called"
        made = list(calls(f"{owner}.__init__", self._trees, path)) if owner and last != "__init__" else []
        if made and self._never_made(path, owner):
            # Objects are called by names of their own; where none was made, that is why.
            start, sites = f"{start}, because no {owner} was made", made
        elif not sites and last in ("forward", "__call__"):
            sites = made
        if not sites:
            return Cause(f"{start}: nothing in sight calls it" if name != "forward" else start)
        # A function that calls what is called like it, as ``train`` does ``model.train``, is no reason for itself.
        self._asked.add((path, name))
        causes = [
            self.of(at, call.lineno, depth + 1)
            for at, inside, call in sites[:_DEEPEST]
            if depth < _DEEPEST and (at, call.lineno) not in self._seen and (at, inside) not in self._asked
        ]
        self._asked.discard((path, name))
        if not causes:
            return Cause(start)
        cause = max(causes, key=lambda cause: (cause.open, bool(cause.advice)))
        return replace(cause, text=f"{start}: {cause.text}")

    def _never_made(self, path: str, owner: str) -> bool:
        """Whether the constructor of the class ``owner`` of ``path`` did not run; False where it has none."""
        constructor = next((each for name, each in functions(self._trees[path]) if name == f"{owner}.__init__"), None)
        return constructor is not None and (path, head(constructor.body)) not in self._seen

    def _in_front(self, path: str, line: int, function: Block | None, own: list[Block]) -> Cause | None:
        """The end of the run in front of ``line``, in the same call or in what that called."""
        name = getattr(function.owner, "name", "") if function is not None else "<module>"
        at = next((site for site in self._stack if site.path == path and site.function == name), None)
        if at is None or (at.line >= line and not any(isinstance(block.owner, LOOPS) for block in own)):
            return None
        around = [block.owner for block in own]
        standing = list(blocks(self._trees[path], at.line))
        if any(isinstance(each.owner, ast.If) and each.owner in around and each not in own for each in standing):
            # Of a condition it took the other way.
            return None
        running = [(path, block.owner) for block in standing if isinstance(block.owner, LOOPS)]
        loops = [(at_path, loop) for at_path, loop in running if loop not in around]
        loops += self._below(at)
        if self._run.error is not None:
            return Cause(f"{self._ended()}, before {path}:{line}")
        text = f"{path}:{line} comes after {path}:{at.line}, where {self._ended()}"
        if self._run.record.end not in {*STOPPED, "watchdog"}:
            return Cause(text)
        inner, outer = self._turns()
        caps = tuple(Cap(each[0], each[1].lineno, inner if each is loops[-1] else outer) for each in loops)
        if running and not caps:
            # It stands in the very loop: a turn more may come to it.
            return None
        advice = next(filter(None, (self._fewer(loop) for _, loop in loops)), "") or self._longer()
        return Cause(text, advice, caps)

    def _below(self, at: Site) -> list[tuple[str, Any]]:
        """The loops that were running in what was called at ``at``, the outermost first, each with its path."""
        found = []
        for site in reversed(self._stack[: self._stack.index(at)]):
            around = list(blocks(self._trees.get(site.path, _NOTHING), site.line))
            inside = [n for n, each in enumerate(around) if isinstance(each.owner, FUNCTIONS)]
            own = around[inside[-1] + 1 :] if inside else around
            found += [(site.path, each.owner) for each in own if isinstance(each.owner, LOOPS)]
        return found

    def _turns(self) -> tuple[int, int]:
        """The turns of the loop that was running, and of those around it: fewer where there was no time for more."""
        record = self._run.record
        if record.end != "watchdog":
            return INNER, OUTER
        return max(1, min(INNER, len(record.steps) // 3)), 1

    def _fewer(self, loop: ast.AST) -> str:
        wanted = loop.iter if isinstance(loop, ast.For) else getattr(loop, "test", loop)
        name = option(self._trees, wanted)
        return f"-- {name.name} 1 would end that loop" if name is not None else ""

    def _closed(self, path: str, block: Block) -> Cause | None:
        owner, line = block.owner, getattr(block.owner, "lineno", 0)
        place = f"{path}:{line}"
        if isinstance(owner, ast.If):
            wanted = block.field == "body"
            if any(getattr(node, "id", "") == "__name__" for node in ast.walk(owner.test)):
                return Cause(f"{path} was imported and not run", f"--entry {path!r} would run it")
            test = ast.unparse(owner.test)
            test = test if len(test) <= 60 else test[:59] + "…"
            text = f"the condition `{test}` at {place} was never {'true' if wanted else 'false'}"
            bound = any(True for _ in comparisons(owner.test, wanted, counters(self._trees[path])))
            name = option(self._trees, owner.test)
            words = arguments(self._trees, owner.test, wanted)
            said = shlex.join(words) or (f"{name.name} VALUE" if name is not None and not name.flag else "")
            advice = f"-- {said} may make it so" if said else "more --steps may make it so" if bound else ""
            return Cause(text, advice, (), (Bound(path, line, wanted),) if bound else (), words)
        if isinstance(owner, ast.ExceptHandler):
            return Cause(f"the error that {place} waits for did not come")
        if isinstance(owner, LOOPS):
            return Cause(f"the loop at {place} made no turn" if block.field == "body" else f"the loop at {place} broke")
        return None

    def _ended(self) -> str:
        error, record = self._run.error, self._run.record
        if error is not None:
            site = next((each.error_site for each in self._run.records if each.error_site is not None), None)
            where = f" at {site.path}:{site.line}" if site is not None else ""
            return f"the run stops{where} ({error.type})"
        if record.end in STOPPED:
            count = len(record.steps) or len(record.backwards)
            return f"the run was ended after {count} {'steps' if record.steps else 'backwards'}"
        if self._run.outcome is Outcome.OK and record.end != "watchdog":
            return "the run came to its end"
        if self._run.outcome is Outcome.TIMEOUT:
            return "the run was out of time"
        return f"the run ended ({f'status {self._run.status}' if self._run.status else self._run.outcome.value})"

    def _longer(self) -> str:
        return "a longer --timeout may reach it" if self._run.record.end == "watchdog" else "more --steps may reach it"


def knobs_of(causes: Iterable[Cause]) -> Knobs:
    """All that ``causes`` have to turn, each once."""
    known = list(causes)
    return Knobs(
        tuple(dict.fromkeys(cap for cause in known for cap in cause.caps)),
        tuple(dict.fromkeys(bound for cause in known for bound in cause.bounds)),
    )


@dataclass(frozen=True)
class Block:
    """A list of statements: what it belongs to, as which part of it, and its first line that does something."""

    owner: ast.AST
    field: str
    head: int


def _chained(block: Block, own: list[Block]) -> Block:
    """Of an ``else`` that is an ``elif`` the block behind that: its own condition decides."""
    while block.field == "orelse" and isinstance(block.owner, ast.If) and len(block.owner.orelse) == 1:
        following = next((each for each in own if each.owner is block.owner.orelse[0]), None)
        if following is None or not isinstance(following.owner, ast.If):
            break
        block = following
    return block


_NOTHING = ast.Module([], [])
_DEFINING = (ast.Import, ast.ImportFrom, *FUNCTIONS, ast.ClassDef, ast.Assign, ast.AnnAssign)


def blocks(tree: ast.AST, line: int) -> Iterator[Block]:
    """The blocks around ``line``, from the outside in, without that of the module."""
    for owner, field, body in suites(tree):
        if body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno):
            yield Block(owner, field, head(body))


def suites(tree: ast.AST) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
    """All blocks of ``tree`` but those of modules and classes, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, None)
                if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                    yield node, field, body
        yield from suites(node)


def head(body: list[ast.stmt]) -> int:
    """The first line of a block that does something: no docstring, and no declaration."""
    for statement in body:
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not text and not isinstance(statement, (ast.Global, ast.Nonlocal)):
            lines = [each.lineno for each in getattr(statement, "decorator_list", ())]
            return min(statement.lineno, *lines) if lines else statement.lineno
    return body[0].lineno


@functools.lru_cache(maxsize=4096)
def heads(tree: ast.AST) -> frozenset[int]:
    """The first lines of the blocks of ``tree``."""
    return frozenset(head(body) for _, _, body in suites(tree))


@functools.lru_cache(maxsize=4096)
def asked(tree: ast.AST) -> frozenset[int]:
    """The lines to watch so that it is known which blocks of ``tree`` ran, and to which conditions control came."""
    return heads(tree).union(*(_header(owner) for owner, _, _ in suites(tree) if isinstance(owner, (ast.If, *LOOPS))))


def _header(owner: ast.AST) -> range:
    """The lines of a condition or a loop in front of its body."""
    first = getattr(owner, "lineno", 0)
    return range(first, max(first + 1, owner.body[0].lineno))  # type: ignore[attr-defined]
