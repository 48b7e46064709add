"""Runs a script as it is and says what is wrong with it: the process behind ``codemod doctor --attach``.

``python attaching.py FOLDER FORMAT REPORT [-m] NAME ARGUMENTS``: FOLDER is where these packages lie; the diagnosis goes
to REPORT (where that is empty to standard error) in FORMAT: text, json or html.
"""

from __future__ import annotations

import importlib.util
import io
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType


def main() -> int:
    """Run what the command line names: 1 where a fault was named, 3 where the script failed otherwise, else 0."""
    folder, form, report, *words = sys.argv[1:]
    # The interpreter may be one in which nobody installed these packages; the script sees its own path.
    sys.path.append(folder)
    try:
        from verify.diagnosis import attached
    except ImportError as error:
        print(f"codemod doctor --attach: {sys.executable} lacks {error.name}, which it needs", file=sys.stderr)
        return 3
    sys.path.remove(folder)
    module = words[0] == "-m"
    name, *arguments = words[1:] if module else words
    # As `python NAME` and `python -m NAME` leave them. What the script defines stays until the watch is over.
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(name))
    program = ModuleType("__main__")
    sys.modules["__main__"] = program
    try:
        code = _module(program, name) if module else _script(program, name)
    except (ImportError, OSError, SyntaxError) as error:
        print(f"codemod doctor --attach: {name}: {error}", file=sys.stderr)
        return 3
    sys.argv = [str(program.__file__), *arguments]
    watch = attached.AttachedWatch(None, Path(report) if report else None, form)
    watch.command = shlex.join(words)
    status = _run(watch, lambda: exec(code, program.__dict__))
    return 1 if watch.told else status


def _run(watch: object, program: Callable[[], None]) -> int:
    """Run ``program`` under ``watch``; an error ends it as it would end a script."""
    try:
        with watch:  # type: ignore[attr-defined]
            program()
    except SystemExit as end:
        if end.code not in (None, 0) and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        return 3 if end.code else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_frame.f_code.co_filename == __file__:
            place = place.tb_next
        sys.excepthook(type(error), error.with_traceback(place), place)
        return 3
    return 0


def _script(program: ModuleType, name: str) -> CodeType:
    program.__file__ = name
    with io.open_code(os.path.abspath(name)) as file:
        return compile(file.read(), name, "exec", dont_inherit=True)


def _module(program: ModuleType, name: str) -> CodeType:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    code = getattr(spec.loader, "get_code", lambda _: None)(spec.name) if spec is not None else None
    if spec is None or code is None:
        raise ImportError("no such module, or it cannot be run")
    program.__spec__, program.__file__, program.__package__ = spec, spec.origin, spec.parent
    return code  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
