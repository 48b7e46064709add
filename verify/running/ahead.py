"""Which runs may begin with torch imported ahead, so that it is imported once and not by each of them."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from codemods.source.files import SourceFile
from verify.isolation import Start
from verify.running.settings import Command

_MODULES = ("torch",)
#: What is told to a process of what it has to import, at most (characters): its environment has no room for more.
_MOST_TOLD = 60_000
#: A variable that libraries may read is set; which cards there are torch asks later.
_SETS = re.compile(
    r"""environ\s*\[(?!\s*['"]CUDA_(?:VISIBLE_DEVICES|DEVICE_ORDER)['"])[^\]]*\]\s*=(?!=)|environ\.(?:setdefault|update)|putenv"""
)
#: Variables that libraries read when they are imported: a program that names one may set it before.
_READ_EARLY = re.compile(
    r"""['"](?:OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|VECLIB|NUMEXPR|NPY|TORCH|PYTORCH|ATEN|DNNL|ONEDNN|MALLOC|LD|PYTHON)_\w+"""
)
#: What changes how modules are imported, or what an import says.
_CHANGES_IMPORTS = re.compile(
    r"\bsys\.(?:meta_path|path_hooks|modules\s*\[[^\]]*\]\s*=(?!=)|modules\.(?:pop|update)|setdlopenflags)|\bwarnings\.simplefilter\(['\"]error"
)
_CARDS = ("/dev/nvidia*", "/dev/kfd", "/dev/dri/render*", "/dev/dxg")
#: Interpreters whose way to begin is known.
_FIRST_PYTHON = (3, 10)


def start_of(
    command: Command,
    python: str,
    root: Path,
    sources: Iterable[SourceFile],
    device: str,
    own: str,
    libraries: Sequence[str] = (),
) -> Start | None:
    """What can be done ahead of ``command`` on the tree ``root`` with ``sources``; None where it has to begin anew.

    ``libraries`` are the modules that a run of it imported, in order.
    ``own`` is the variable that differs from run to run. A card may be in use as soon as torch is there; ranks are
    started by their launcher.
    """
    words = command.argv
    if command.notebook:
        # What runs is a program made of it.
        return None
    if sys.platform != "linux" or not hasattr(os, "pidfd_open") or words[0] != python or len(words) < 2:
        return None
    if device != "cpu" and any(map(glob.glob, _CARDS)):
        return None
    module = words[1] == "-m" and len(words) > 2
    if (words[2].partition(".")[0] in _MODULES) if module else words[1].startswith("-"):
        return None
    names = set()
    modules = libraries if sum(map(len, libraries)) < _MOST_TOLD else ()
    for source in sources:
        if _SETS.search(source.text):
            modules = ()
        if _READ_EARLY.search(source.text) or _CHANGES_IMPORTS.search(source.text):
            return None
        names.add(_module(source.absolute))
    folder = command.cwd if module else (command.cwd / words[1]).parent
    names.update(_module(path) for path in folder.glob("*") if path.suffix in (".py", ".pyc", ".so", ".zip"))
    start = Start(words[: 3 if module else 2], _MODULES, _MODULES, str(root), own, frozenset(names))
    return start.with_modules(modules)


def _module(path: Path) -> str:
    return path.parent.name if path.stem == "__init__" else path.name.partition(".")[0]
