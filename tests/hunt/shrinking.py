"""A program that breaks a promise made as small as it goes: first its choices, then its statements."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Mapping, Sequence

from tests.hunt.programs import Make, program

Files = Mapping[str, str]
Fails = Callable[[Files], bool]


def shrunk(choices: Sequence[int], fails: Fails, seconds: float, make: Make = program) -> dict[str, str]:
    """A smaller program that still ``fails``, from the choices of one that does; tries for some ``seconds``."""
    until = time.monotonic() + seconds
    record = fewer_choices(tuple(choices), fails, time.monotonic() + seconds / 2, make)
    return fewer_statements(make(record=record).files, fails, until)


def fewer_choices(record: tuple[int, ...], fails: Fails, until: float, make: Make = program) -> tuple[int, ...]:
    """A shorter or smaller record whose program still fails."""

    def better(candidate: tuple[int, ...]) -> bool:
        if candidate == record or time.monotonic() > until:
            return False
        try:
            made = make(record=candidate)
        except Exception:
            return False
        return fails(made.files)

    size = max(1, len(record) // 2)
    while size and time.monotonic() < until:
        place = len(record)
        while place > 0:
            place -= size
            start = max(place, 0)
            for middle in ((), (0,) * (place + size - start)):
                candidate = record[:start] + middle + record[place + size :]
                if better(candidate):
                    record = candidate
                    break
        size //= 2
    return record


def fewer_statements(files: Files, fails: Fails, until: float) -> dict[str, str]:
    """The program with statements left out, the longest first, as long as it fails without them."""
    best = dict(files)
    progress = True
    while progress and time.monotonic() < until:
        progress = False
        for path in sorted(best):
            if path != "main.py" and fails({p: t for p, t in best.items() if p != path}):
                del best[path]
                progress = True
                continue
            for number in range(_count(best[path]) - 1, -1, -1):
                for candidate in _without(best[path], number):
                    if time.monotonic() > until:
                        return best
                    if candidate != best[path] and fails({**best, path: candidate}):
                        best[path] = candidate
                        progress = True
                        break
    return best


def _statements(tree: ast.Module) -> list[tuple[list[ast.stmt], int]]:
    """Every statement, as the body that it stands in and its place there."""
    found = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                found += [(body, place) for place in range(len(body))]
    return found


def _count(text: str) -> int:
    return len(_statements(ast.parse(text)))


def _without(text: str, number: int) -> list[str]:
    """``text`` without a statement, or with its body in its place."""
    found = []
    for unwrap in (False, True):
        tree = ast.parse(text)
        places = _statements(tree)
        if number >= len(places):
            return found
        body, place = places[number]
        inner = getattr(body[place], "body", None)
        if unwrap and not isinstance(inner, list):
            continue
        body[place : place + 1] = (
            inner if unwrap and isinstance(inner, list) else ([] if len(body) > 1 else [ast.Pass()])
        )
        made = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        try:
            ast.parse(made)
        except SyntaxError:
            continue
        found.append(made)
    return found
