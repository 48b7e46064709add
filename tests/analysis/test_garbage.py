"""What is kept from the garbage collector during an analysis, and that what the host keeps from it stays so."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from codemods.analysis import garbage
from codemods.analysis.analyse import analyse
from codemods.graph.model.trace import Trace
from codemods.source.options import Options
from tests.fakes import source


@pytest.fixture
def thawed() -> Iterator[None]:
    """No object is frozen in the test, and as many as before behind it."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    gc.unfreeze()
    if frozen:
        gc.freeze()


@pytest.mark.usefixtures("thawed")
def test_what_was_frozen_is_looked_through_again() -> None:
    garbage.freeze()
    garbage.freeze()
    assert gc.get_freeze_count() > 10_000
    garbage.unfreeze()
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("thawed")
def test_what_the_host_froze_stays_frozen() -> None:
    gc.freeze()
    garbage.freeze()
    garbage.unfreeze()
    assert analyse([source("train.py", "import torch\n\ntorch.ones(1).sum().backward()\n")], options=Options())
    assert gc.get_freeze_count()


ADDED = """\
import torch

model = torch.nn.Linear(2, 1)
total = torch.zeros(1)
total.add_(model(torch.ones(1, 2)).sum())
total.backward()
"""


@pytest.mark.usefixtures("thawed")
def test_what_a_run_held_goes_with_it() -> None:
    # what is loaded once for all analyses stays
    analyse([source("first.py", ADDED)], options=Options(), jobs=1)
    gc.collect()
    gc.disable()
    try:
        before = _traces()
        analyse([source("train.py", ADDED)], options=Options(), jobs=1)
        assert _traces() == before
    finally:
        gc.enable()


def _traces() -> int:
    """How many traces of runs there are, whether or not anybody can come to them."""
    return sum(type(one) is Trace for one in gc.get_objects())
