"""Changes tried side by side: while the outcome of one is awaited, the next one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Trial = TypeVar("Trial")
Outcome = TypeVar("Outcome")


class Beside(Generic[Trial, Outcome]):
    """Calls ``attempt`` for trials, ``jobs`` of them at a time; what is raised comes out where the outcome is asked
    for.

    As a context manager it ends with all that it began. ``cancel`` makes attempts end at once; it is called where the
    wait for one is interrupted.
    """

    def __init__(self, attempt: Callable[[Trial], Outcome], jobs: int, cancel: Callable[[], None]) -> None:
        self._attempt = attempt
        self._cancel = cancel
        self._pool = ThreadPoolExecutor(jobs) if jobs > 1 else None
        #: By the identity of the trial, which is kept so that no other gets it.
        self._begun: dict[int, tuple[Trial, Future[Outcome]]] = {}

    def __enter__(self) -> Beside[Trial, Outcome]:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._pool is not None:
            if kind is not None:
                self._cancel()
            self._pool.shutdown(cancel_futures=True)

    def outcome(self, trial: Trial, soon: Iterable[Trial] = ()) -> Outcome:
        """The outcome of ``trial``; those of ``soon`` are begun too, as they will be asked for."""
        if self._pool is None:
            return self._attempt(trial)
        for each in (trial, *soon):
            if id(each) not in self._begun:
                self._begun[id(each)] = each, self._pool.submit(self._attempt, each)
        return self._begun[id(trial)][1].result()
