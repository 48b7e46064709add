"""The files that one command enters: how many, and how often its way changes from one to another.

``python -m tests.benchmarks.files [--by-file] [--] ARGUMENT...`` runs ``codemod ARGUMENT...`` in this process, by
default ``check`` of a script of twelve lines, and counts calls of Python functions of the package. What an import runs
(the body of a module, and what that calls) does not count: a table that is filled when a file is loaded is no way.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import codemods
from codemods.cli import main

SCRIPT = """\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
total = 0
for x, y in [(torch.ones(1, 2), torch.ones(1, 1))] * 3:
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(total)
"""

PACKAGE = Path(codemods.__file__).parent


class Way:
    """Which files of the package functions were called in, and the way from one to the next."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.changes: Counter[tuple[str, str]] = Counter()
        """From one file to another: a call into it, or a return."""
        self._files: dict[CodeType, str] = {}
        self._importing = 0
        self._stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """What ``sys.setprofile`` calls at each call and return of Python code."""
        if event not in ("call", "return"):
            return
        code = frame.f_code
        change = 1 if event == "call" else -1
        if code.co_name == "<module>":
            self._importing += change
            return
        path = self._files.get(code)
        if path is None:
            path = self._files[code] = self._within(code.co_filename)
        if not path or self._importing:
            return
        if event == "call":
            self.calls[path] += 1
            if self._stack and self._stack[-1] != path:
                self.changes[self._stack[-1], path] += 1
            self._stack.append(path)
        elif self._stack:
            left = self._stack.pop()
            if self._stack and self._stack[-1] != left:
                self.changes[left, self._stack[-1]] += 1

    @staticmethod
    def _within(name: str) -> str:
        path = Path(name)
        return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else ""


def way_of(arguments: list[str]) -> Way:
    """The way of ``codemod`` with these arguments through its files, once they are loaded."""
    way = Way()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        sys.setprofile(way)
        try:
            main(arguments)
        except SystemExit:
            pass
        finally:
            sys.setprofile(None)
    return way


def run() -> None:
    """Print the figures, and with ``--by-file`` the calls of each file and the commonest changes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--by-file", action="store_true", help="also the calls of each file, and the commonest changes")
    parser.add_argument("arguments", nargs="*", help="of codemod")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(SCRIPT)
        way = way_of(options.arguments or ["check", "--no-cache", "-j", "1", str(script)])
    loaded = sum(name.startswith("codemods.") for name in sys.modules)
    print(f"{loaded} files loaded, {len(way.calls)} called, {sum(way.changes.values())} changes of file")
    if options.by_file:
        for path, calls in sorted(way.calls.items(), key=lambda entry: (entry[1], entry[0])):
            print(f"{calls:8} {path}")
        for (old, new), times in way.changes.most_common(40):
            print(f"{times:8} {old} -> {new}")


if __name__ == "__main__":
    run()
