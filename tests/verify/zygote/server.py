"""Has torch loaded and forks a process for each script: most of a short run is the import of torch.

Reads a request a line on standard input (JSON: argv, cwd, environment, streams, seconds), answers with the status. The
child becomes what `python SCRIPT` would be after the import of torch: it gets its own environment, runs the same
sitecustomize, and its `__main__` is the script.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import json
import os
import runpy
import signal
import sys
import threading
import types

import numpy  # noqa: F401
import torch
import torch._dynamo
import torch.optim  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
LEAVE = os._exit


def become(request: dict) -> str:  # type: ignore[type-arg]
    """Turn this process into the one that ``request`` asks for; returns the script to run, ``-m`` and the module, or
    ``-c`` and the text."""
    signal.alarm(request["seconds"])
    output, errors = request["streams"]
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1 if errors == output else os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    _, script, *arguments = request["argv"]
    boot = request["environment"]["PYTHONPATH"].split(os.pathsep)[0]
    sys.argv = [script, *arguments]
    if device := os.environ.pop("FIXTURES_DEVICE", ""):
        runpy.run_path(os.path.join(HERE, "placement.py"))["place"](device)
    module = arguments[0] if script in ("-m", "-c") else ""
    folder = os.getcwd() if module else os.path.dirname(os.path.abspath(script))
    sys.argv = [script, *arguments[1:]] if script == "-c" else sys.argv[1:] if module else sys.argv
    sys.path[:] = [folder, *(path for path in sys.path[1:] if path != os.getcwd())]
    runpy.run_path(os.path.join(boot, "sitecustomize.py"))
    return script + module


def main() -> str:
    """Serve until standard input ends; in a child, return what it has to run."""
    # What was loaded here is no garbage, and pages that no collection touches stay shared.
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            return become(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return ""


def end(error: BaseException | None) -> int:
    """Do what Python does when a script is over, by ``error`` or without one, up to its exit functions."""
    status: object = 0
    if isinstance(error, SystemExit):
        status = error.code
    elif error is not None:
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.excepthook(sys.last_type, sys.last_value, sys.last_traceback)
        status = 1
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return (status or 0) & 0xFF


def run(script: str) -> None:
    """Run ``script`` as the main module. Not by runpy, which empties the module when the script is over."""
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    if script.startswith("-c"):
        code = compile(script[2:], "<string>", "exec")
    else:
        module.__file__ = script
        with open(script, "rb") as file:
            code = compile(file.read(), script, "exec")
    exec(code, module.__dict__)


SCRIPT = main()
if SCRIPT:
    ERROR = None
    try:
        if SCRIPT.startswith("-m"):
            runpy.run_module(SCRIPT[2:], run_name="__main__", alter_sys=True)
        else:
            run(SCRIPT)
    except BaseException as error:
        ERROR = error
    # Not by returning: to take torch apart again costs more than most of these scripts.
    LEAVE(end(ERROR))
