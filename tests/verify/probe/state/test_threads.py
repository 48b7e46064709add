"""Outputs of modules that threads call."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import nn

from verify.probe.state.state import State


class Deaf:
    """Stands for what only backwards and steps ask of."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self


def test_threads_do_not_count_among_the_calls_of_the_main_one() -> None:
    from verify.probe.values.copies import Copies
    from verify.probe.values.digests import Parameters

    reader, net = Parameters(), nn.Linear(2, 1).eval()
    quiet: Any = Deaf()
    state = State(reader, Copies(reader), quiet, quiet, lambda _: None, quiet)
    site, seen = ["a.py", 3, "f"], []

    def call() -> None:
        with torch.no_grad():
            seen.append(state.returned(net, net(torch.ones(1, 2)), site, 0))

    call()
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    call()
    assert [(each["call"], each["thread"]) for each in seen] == [(1, False), (1, True), (2, False)]
    assert seen[0]["line"] == seen[2]["line"] != seen[1]["line"]
