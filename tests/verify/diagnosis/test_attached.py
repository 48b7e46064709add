"""``verify.watch(report=...)``: the doctor in this process."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

torch = pytest.importorskip("torch")

import verify  # noqa: E402
from verify.diagnosis.reports import json as as_json  # noqa: E402
from verify.probe.graph import holders  # noqa: E402

pytestmark = pytest.mark.usefixtures("few_objects")


def train(steps: int, kept: list[object] | None) -> None:
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        loss = net(torch.randn(3, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if kept is not None:
            kept.append(loss)


@pytest.mark.slow
def test_growth_is_written_down_while_it_goes_on(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    kept: list[object] = []
    with verify.watch(report=report):
        train(8, kept)
        early = json.loads(report.read_text())
        train(8, kept)
    jsonschema.validate(early, as_json.schema())
    (fault,) = [fault for fault in early["faults"] if fault["kind"] == "growing-graph"]
    assert fault["clues"][0]["name"] == "kept[*]"
    assert fault["clues"][1]["source"] == "loss = net(torch.randn(3, 4)).square().mean()"
    assert fault["graph"]["boxes"]
    assert json.loads(report.read_text())["steps"] == 16


def test_growth_has_a_name_however_long_the_walk_to_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = types.SimpleNamespace(now=0.0)
    clock.perf_counter = lambda: clock.now
    walk = holders.variables

    def slow(*args: Any) -> Iterator[Any]:
        yield from walk(*args)
        clock.now += 1e6

    monkeypatch.setattr(holders, "time", clock)
    monkeypatch.setattr(holders, "variables", slow)
    kept: list[object] = []
    with verify.watch() as run:
        train(9, kept)
        assert [holder.name for holder in run.holders] == ["kept[*]"]
    assert clock.now


def test_the_error_is_explained_and_passed_on_and_torch_is_as_it_was(tmp_path: Path) -> None:
    report = tmp_path / "report.txt"
    before = torch.is_anomaly_enabled(), torch.fx.traceback.format_stack
    weight = torch.nn.Parameter(torch.randn(3))

    def walk_twice() -> None:
        with verify.watch(report=report):
            product = weight * weight
            for _ in range(2):
                loss = product.exp().sum()
                loss.backward()

    with pytest.raises(RuntimeError, match="second time"):
        walk_twice()
    text = report.read_text()
    assert "product = weight * weight" in text
    assert "carrier     product" in text
    assert "loss = product.exp().sum()" in text
    assert (torch.is_anomaly_enabled(), torch.fx.traceback.format_stack) == before


def test_nothing_is_written_where_nothing_is_wrong(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    with verify.watch(report=report) as run:
        train(16, None)
    run.assert_flat()
    assert not report.exists()
