"""What happens in a session is told to the doctor, where one is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .guarding.guard import Part


class Diagnosis:
    """The doctor of a session: ``plan`` says what it records; without one, nothing is."""

    def __init__(self, plan: dict[str, Any] | None, part: Callable[[str], Part]) -> None:
        self._plan = plan
        self._part = part
        self._doctor: Any = None

    def install(self, *session: Any) -> None:
        """Begin to record, with what the session has: tree, writer, clock, optimizers and growth."""
        if self._plan is not None:
            with self._part("the diagnosis"):
                from .doctor import Doctor

                self._doctor = Doctor(self._plan, *session)
                self._doctor.install()

    def tell(self, what: str, *args: Any) -> None:
        """Tell the doctor, if there is one, what happens in this process."""
        if self._doctor is None or self._doctor.pid != os.getpid():
            return
        self._part(f"the diagnosis ({what})").attempt(lambda: getattr(self._doctor, what)(*args))
