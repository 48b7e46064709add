"""Which lines of the engine, the rules and the edits the programs reach."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import codemods

ROOT = Path(codemods.__file__).parent
WATCHED = tuple(str(ROOT / part) for part in ("graph", "rules", "edits"))


@contextlib.contextmanager
def lines(seen: dict[str, set[int]], *, on: bool) -> Iterator[None]:
    """Add the lines that run to ``seen``, by path; nothing, and at no cost, where it is not ``on``."""
    if not on:
        yield
        return

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        seen[frame.f_code.co_filename].add(frame.f_lineno)
        return local

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(WATCHED):
            return None
        seen.setdefault(name, set()).add(frame.f_lineno)
        return local

    threading.settrace(entered)
    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]


def table(seen: dict[str, set[int]]) -> list[str]:
    """A line for each file: how much of what stands in functions was reached."""
    rows = []
    for path in sorted(p for part in WATCHED for p in Path(part).rglob("*.py")):
        code = compile(path.read_text(), str(path), "exec")
        executable = {line for inner in _functions(code) for _, _, line in inner.co_lines() if line}
        executable -= {inner.co_firstlineno for inner in _functions(code)}
        reached = len(executable & seen.get(str(path), set()))
        if executable:
            rows.append((reached / len(executable), reached, len(executable), path.relative_to(ROOT).as_posix()))
    total, count = sum(r[1] for r in rows), sum(r[2] for r in rows)
    return [f"{total / max(count, 1):8.0%} of {count} in all"] + [
        f"{share:8.0%} of {size:4} {name}" for share, _, size, name in sorted(rows)
    ]


def _functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name[:1] not in "<" or constant.co_name == "<lambda>":
                yield constant
            yield from _functions(constant)
