"""Which line of the user's made a graph node.

While torch's anomaly mode is on, its engine asks ``torch.fx.traceback.format_stack`` for each node that is made, and
keeps the answer in ``node.metadata``. A stack of one line, kept and handed out again, makes this nearly free; the rest
of anomaly mode (it looks for NaN in every gradient) stays off.
"""

from __future__ import annotations

import os
import sys
import typing
from types import FrameType
from typing import Any

from ..graph.origins import DEPTHS, SITES
from ..lines.sites import Tree

_NOWHERE = [""]
#: The folder of the probe.
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MODE = ("set_anomaly_enabled", "is_anomaly_enabled", "is_anomaly_check_nan_enabled")


class Lines:
    """Has nodes told their lines until ``remove``; ``made`` is called before each node of the script's."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._stacks: dict[tuple[str, int], list[str]] = {}
        self._undo: typing.Callable[[], None] | None = None
        self.made: typing.Callable[[Any], None] | None = None

    def install(self) -> None:
        """Needs an imported torch."""
        import torch
        import torch.fx.traceback as module

        formatted = module.format_stack
        switch, on, looks_for_nan = (getattr(torch, name) for name in _MODE)
        wanted = on(), looks_for_nan()

        def asked(enabled: bool, check_nan: bool = True) -> None:
            # Lightning switches the mode off as a matter of course: what is asked for comes once we are done.
            nonlocal wanted
            wanted = enabled, check_nan
            switch(True, enabled and check_nan)

        def undo() -> None:
            module.format_stack = formatted
            for name, original in zip(_MODE, (switch, on, looks_for_nan)):  # noqa: B905 - Python 3.8 has no strict
                setattr(torch, name, original)
            switch(*wanted)

        module.format_stack = self._stack
        for name, own in zip(_MODE, (asked, lambda: wanted[0], lambda: wanted[1])):  # noqa: B905
            setattr(torch, name, own)
        switch(True, False)
        self._undo = undo

    def remove(self) -> None:
        """Leave torch as it was."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _stack(self) -> list[str]:
        frame: FrameType | None = sys._getframe(1)
        relative = self._tree.relative
        while frame is not None and relative(frame.f_code.co_filename) is None:
            frame = frame.f_back
        if frame is None:
            return _NOWHERE
        # A look of ours at a view makes its node anew under the lock of that tensor: another look would wait for ever.
        if self.made is not None and not sys._getframe(1).f_code.co_filename.startswith(_OURS):
            self.made(frame)
        code = frame.f_code
        place = (code.co_filename, frame.f_lineno)
        stack = self._stacks.get(place)
        if stack is None:
            text = f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}\n'
            stack = self._stacks[place] = [text]
            SITES[text] = [relative(code.co_filename), frame.f_lineno, code.co_name]
            DEPTHS[text] = len(self._tree.frames(frame)), _by_library(sys._getframe(1), frame)
        return stack


def _by_library(frame: FrameType | None, user: FrameType) -> bool:
    """Whether code of others than torch runs between ``frame`` and ``user``."""
    while frame is not None and frame is not user:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != "torch":
            return True
        frame = frame.f_back
    return False
