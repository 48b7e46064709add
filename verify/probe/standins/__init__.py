"""What there is not: files that were declared, torchvision's data sets, environments, states, modules, former names.

Everything that is made up is recorded as a ``standin`` event and said on standard error. The values come from a
random stream of their own, the same in every run, and the script's generators stay as they were. Nothing is ever
downloaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ..guarding.guard import Write
from ..guarding.hooks import when_imported


def install(config: dict[str, Any], write: Write, see: Callable[..., None] | None = None) -> None:
    """Write the declared files and wait for torchvision; call it at start, before the script imports anything.

    Of ``config`` it reads ``stand_ins`` (declarations as ``verify.running.standins.parse`` returns them), ``places``
    (folders that the script writes into), ``root`` (where their paths begin), ``data`` (whether torchvision's data sets
    may be made up) and ``records`` (a folder to keep images in), ``states`` (whether state dictionaries may be
    missing), ``modules`` that are not installed and ``folders`` of the tree in which modules stand, ``arguments``:
    whether parsers do without what they require, ``compared``: the texts that options get then, by the name that the
    program reads them by, ``transforms``: whether those that fit no image are left out, ``former``: whether names that
    newer releases of libraries lack are found. ``see`` is shown what such modules are given, what loads states that are
    not there, and what such transforms hold. Writes ``standin`` and ``note`` events.
    """
    # Imported when needed: most processes that a script starts need neither, and should not load more than their own.
    if config.get("stand_ins") or config.get("places"):
        from . import files

        files.install(config, write)

    if config.get("arguments"):
        from . import arguments

        arguments.install(config.get("compared") or {}, write)
    if config.get("former"):
        from . import former

        former.install(write)
    if config.get("modules") or config.get("folders"):
        from . import modules

        modules.install(
            config.get("modules") or [], config.get("folders") or [], write, see, config.get("people") or []
        )
    if config.get("states"):
        _once_imported("torch", "states", "patch", write, see)
    _once_imported("torchvision.extension", "vision", "define_operators", write)
    if config.get("transforms"):
        _once_imported("torchvision.transforms", "transforms", "patch", write, see)
    if config.get("data", True):
        _once_imported("torchvision.datasets", "vision", "patch", config["records"], write)


def _once_imported(library: str, module: str, function: str, *arguments: Any) -> None:
    """Call the ``function`` of our ``module`` when the program has imported ``library``."""

    def call() -> None:
        getattr(importlib.import_module(f"{__name__}.{module}"), function)(*arguments)

    when_imported(library, call)
