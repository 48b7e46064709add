"""Libraries are taught to the engine by one file: the example of docs/architecture.md is such a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.graph.libraries.table import CALLS, METHODS, handlers_of
from codemods.graph.model.facts.libraries import TORCH_LIBRARIES
from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.graph.tools import run
from tests.rules.tools import LEARNING, analysed

DOCS = Path(__file__).parents[2] / "docs" / "architecture.md"

PROGRAM = """
import acme
from acme import losses

trainer = acme.Trainer(net)
total = 0
for x, y in batches():
    loss = losses.weighted(criterion(net(x), y), criterion(net(x), x))
    trainer.minimize(loss)
    total += loss
print(total)
"""


@pytest.fixture
def taught() -> Iterator[None]:
    """The engine with the file of the example among the others."""
    chapter = DOCS.read_text(encoding="utf-8").partition("## A new library")[2].partition("## ")[0]
    [example] = re.findall(r"```python\n(.*?)```", chapter, re.DOTALL)
    before = set(CALLS), set(METHODS)
    exec(compile(example, "acme.py", "exec"), {"__name__": "acme"})
    handlers_of.cache_clear()
    yield
    for table, known in zip((CALLS, METHODS), before, strict=True):
        for name in table.keys() - known:
            del table[name]
    handlers_of.cache_clear()


def found(folder: Path) -> list[tuple[str, Promise | None]]:
    return [(f.rule, f.promise) for f in analysed(folder, Options(select=("attached-loss-total",)), LEARNING, PROGRAM)]


def test_what_no_file_tells_may_use_the_graph(tmp_path: Path) -> None:
    assert ("attached-loss-total", Promise.EXACT) not in found(tmp_path)


def test_the_example_of_the_documentation_teaches_a_library(tmp_path: Path, taught: None) -> None:
    assert found(tmp_path) == [("attached-loss-total", Promise.EXACT)]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("BackgroundGenerator(iter([w * 2]))", "attached"),
        ("BackgroundGenerator(generator=[w * 2])", "attached"),
        ("MpDeviceLoader([w * 2], 'cpu')", "attached"),
        ("BackgroundGenerator([x, x], max_prefetch=2)", "free"),
        ("BackgroundGenerator(generator=iter([x]))", "free"),
        ("MpDeviceLoader(loader=[x])", "free"),
    ],
)
def test_what_fetches_ahead_gives_what_it_is_given(made: str, expected: str) -> None:
    code = """
        from prefetch_generator import BackgroundGenerator
        from torch_xla.distributed.parallel_loader import MpDeviceLoader
        for y in {}:
            pass
    """
    assert run(code.format(made)).graph("y") == expected


def test_a_library_with_a_file_brings_torch() -> None:
    assert {"accelerate", "apex", "lightning"} <= TORCH_LIBRARIES


def test_a_name_has_one_handler() -> None:
    with pytest.raises(ValueError, match=r"apex\.amp\.initialize has a handler"):
        CALLS.of("apex.amp.initialize")(lambda engine, path, args, at: None)
