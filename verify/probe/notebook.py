"""Runs the cells of a notebook one after the other, as Jupyter's "run all" would, where no Jupyter need be installed.

Called as ``python notebook.py PROGRAM NOTEBOOK ARGUMENTS``; ``PROGRAM`` is JSON, see :mod:`verify.running.notebooks`:
``lines`` of the notebook's program as people see them, and ``cells``, each with its ``number``, ``code`` (as many empty
lines above it as it takes to have the program's line numbers) and ``magics``: ``stand_in``, ``name``, ``text``. A cell
with ``write`` is to be written to that file.

Python 3.8 and the standard library, like all of the probe. Code is compiled under the notebook's own name.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import functools
import inspect
import io
import json
import linecache
import os
import re
import runpy
import shlex
import sys
import tokenize
import traceback
import types
from types import TracebackType
from typing import Any

_FUTURE = 0
for _feature in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _feature).compiler_flag


class _Shell:
    """What ``get_ipython()`` gives."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.user_ns = space
        self.config: dict[str, Any] = {}

    def run_line_magic(self, name: str, line: str = "", *_: Any, **__: Any) -> Any:
        return magic(self.user_ns, name, "%" + name + " " + line)

    def run_cell_magic(self, name: str, line: str = "", cell: str = "") -> None:
        return None

    def magic(self, text: str) -> Any:
        return magic(self.user_ns, text.split(" ")[0], "%" + text)

    def system(self, text: str) -> None:
        return None

    def getoutput(self, text: str, *_: Any, **__: Any) -> list[str]:
        return []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def magic(space: dict[str, Any], name: str, text: str, *_: Any) -> Any:
    """Do what a line magic does where that is part of the program; all else does nothing."""
    words = text.lstrip("%").split(None, 1)
    rest = words[1].strip() if len(words) > 1 else ""
    if name == "run":
        _run(space, rest)
    elif name == "cd" and rest:
        folder = os.path.expanduser(rest.strip("'\""))
        if os.path.isdir(folder):
            os.chdir(folder)
    elif name in ("env", "set_env") and rest:
        key, _sign, value = rest.partition("=") if "=" in rest else rest.partition(" ")
        if value:
            os.environ[key.strip()] = value.strip()
    elif name == "pwd":
        return os.getcwd()
    return [] if name == "!" else None


def _run(space: dict[str, Any], rest: str) -> None:
    words = shlex.split(rest)
    while words and words[0].startswith("-"):
        words.pop(0)
    if not words:
        return
    script = words[0] if os.path.exists(words[0]) else words[0] + ".py"
    before, sys.argv = sys.argv, [script, *words[1:]]
    try:
        found = runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv = before
        sys.modules["__main__"] = space["__codemod_main__"]()
    space.update((key, value) for key, value in found.items() if not key.startswith("__"))


#: Where an object lies is another place in each run.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def display(*objects: Any, **_: Any) -> None:
    """Print, as a console would, without addresses."""
    for each in objects:
        print(_ADDRESS.sub("", repr(each)))


def _show(value: Any) -> None:
    """What a cell does with its last expression."""
    if value is None:
        return
    try:
        display(value)
    except Exception as error:
        # Jupyter tells of it beside the cell, and goes on.
        sys.stderr.write(f"{type(error).__name__}: {error}\n")


def _shown(tree: ast.Module, text: str, quiet: list[str]) -> ast.Expression | None:
    """The last expression of a cell, taken out of ``tree``, if its value is shown: not behind a semicolon, nor what the
    ``quiet`` stand-ins of magics give."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or _silenced(text):
        return None
    called = last.value.func if isinstance(last.value, ast.Call) else None
    if isinstance(called, ast.Name) and called.id in quiet:
        return None
    tree.body.pop()
    return ast.Expression(last.value)


def _silenced(text: str) -> bool:
    """Whether the last thing of ``text`` is a semicolon."""
    last = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.OP or token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING):
            last = token.string
    return last == ";"


def run(program: dict[str, Any], notebook: str) -> BaseException | None:
    """Run all cells; returns the error that ended it, or None."""
    main = types.ModuleType("__main__")
    space = main.__dict__
    space["__codemod_main__"] = lambda: main
    space["__codemod_file__"] = notebook
    space.update({"In": [""], "Out": {}, "_": "", "__": "", "___": ""})
    sys.modules["__main__"] = main
    shell = _Shell(space)
    for name, value in (("get_ipython", lambda: shell), ("display", display)):
        setattr(builtins, name, value)
    lines = program["lines"]
    # Python would read the lines for a traceback from the file, where they are JSON.
    linecache.cache[notebook] = (sum(map(len, lines)), None, lines, notebook)
    flags = 0
    for cell in program["cells"]:
        if cell.get("write"):
            _write(cell["write"], cell["code"])
            continue
        for each in cell["magics"]:
            space[each["stand_in"]] = functools.partial(magic, space, each["name"], each["text"])
        try:
            allowed = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | flags
            tree = compile(cell["code"], notebook, "exec", allowed | ast.PyCF_ONLY_AST, dont_inherit=True)
            last = _shown(tree, cell["code"], [each["stand_in"] for each in cell["magics"]])
            code = compile(tree, notebook, "exec", allowed, dont_inherit=True)
            flags |= code.co_flags & _FUTURE
            _value(code, space)
            if last is not None:
                _show(_value(compile(last, notebook, "eval", allowed | flags, dont_inherit=True), space))
        except Exception as error:
            return error
    return None


def _value(code: types.CodeType, space: dict[str, Any]) -> Any:
    found = eval(code, space)
    return _loop().run_until_complete(found) if code.co_flags & inspect.CO_COROUTINE else found


def _loop() -> Any:
    import asyncio

    global _event_loop
    if _event_loop is None:
        _event_loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_event_loop)
    return _event_loop


_event_loop: Any = None


def _write(words: list[str], text: str) -> None:
    append = words[0] in ("-a", "--append")
    try:
        with open(os.path.expanduser(words[-1]), "a" if append else "w") as file:
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"codemod verify: {words[-1]} could not be written: {error}\n")


def _inside(at: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins in the notebook."""
    own = os.path.realpath(__file__)
    while at is not None and os.path.realpath(at.tb_frame.f_code.co_filename) == own:
        at = at.tb_next
    return at


def main() -> None:
    """Run what the command line says."""
    with open(sys.argv[1], encoding="utf-8") as file:
        program = json.load(file)
    del sys.argv[:2]
    notebook = os.path.abspath(sys.argv[0])
    sys.path[0] = os.path.dirname(notebook)
    error = run(program, notebook)
    if error is not None:
        error.__traceback__ = _inside(error.__traceback__)
        # Where Python leaves what nobody caught.
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.last_exc = error  # type: ignore[attr-defined,unused-ignore]
        traceback.print_exception(type(error), error, error.__traceback__)
        sys.exit(1)


if __name__ == "__main__":
    main()
