"""Data where there is none: files that were declared, torchvision's data sets, and states that nobody has.

Everything that is made up is recorded as a ``standin`` event and said on standard error. The values come from a
random stream of their own, the same in every run, and the script's generators stay as they were. Nothing is ever
downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..guarding.guard import Write
from ..guarding.hooks import when_imported


def install(config: dict[str, Any], write: Write, see: Callable[..., None] | None = None) -> None:
    """Write the declared files and wait for torchvision; call it at start, before the script imports anything.

    Of ``config`` it reads ``stand_ins`` (declarations as ``verify.running.standins.parse`` returns them), ``root``
    (where their paths begin), ``data`` (whether torchvision's data sets may be made up) and ``records`` (a folder to
    keep images in), ``states`` (whether state dictionaries may be missing), ``modules`` that are not installed and
    ``folders`` of the tree in which modules stand, ``arguments``: whether parsers do without what they require,
    ``compared``: the texts that options get then, by the name that the program reads them by,
    ``transforms``: whether those that fit no image are left out. ``see`` is shown what such modules are given, what
    loads states that are not there, and what such transforms hold. Writes ``standin`` and ``note`` events.
    """
    # Imported when needed: most processes that a script starts need neither, and should not load more than their own.
    if config.get("stand_ins"):
        from . import files

        files.install(config, write)

    def define_operators() -> None:
        from . import vision

        vision.define_operators(write)

    def patch() -> None:
        from . import vision

        vision.patch(config["records"], write)

    def pass_over() -> None:
        from . import transforms

        transforms.patch(write, see)

    def keep_states() -> None:
        from . import states

        states.patch(write, see)

    if config.get("arguments"):
        from . import arguments

        arguments.install(config.get("compared") or {}, write)
    if config.get("modules") or config.get("folders"):
        from . import modules

        modules.install(
            config.get("modules") or [], config.get("folders") or [], write, see, config.get("people") or []
        )
    if config.get("states"):
        when_imported("torch", keep_states)
    when_imported("torchvision.extension", define_operators)
    if config.get("transforms"):
        when_imported("torchvision.transforms", pass_over)
    if config.get("data", True):
        when_imported("torchvision.datasets", patch)
