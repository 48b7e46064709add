"""What steps of small models leave is copied and read later; a copy says what the tensors were."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from tests.verify.probe.tools import forked
from verify.probe.values.copies import Copies, Copy, now, settle
from verify.probe.values.digests import Parameters
from verify.probe.values.tensors import generators

LISTS = {
    "one": [(5,)],
    "two": [(64, 128), (128,)],
    "one number": [(1,)],
    "scalar": [()],
    "an odd number": [(3, 5), (16,), (2, 2)],
    "none": [(4,), None, (33,)],
    "empty": [(0,), (7,)],
}


def tensors(name: str) -> list[Any]:
    torch.manual_seed(3)
    return [None if shape is None else torch.randn(shape) for shape in LISTS[name]]


@pytest.mark.parametrize("name", LISTS)
def test_a_copy_has_the_sums_of_a_read(name: str) -> None:
    reader = Parameters()
    found, told = Copies(reader).take(tensors(name)), reader.read(tensors(name))
    assert isinstance(found, Copy)
    assert {key: now(found)[key] for key in ("count", "sums")} == {key: told[key] for key in ("count", "sums")}
    assert now(found)["missing"] == LISTS[name].count(None)


@pytest.mark.parametrize("name", LISTS)
def test_any_changed_bit_changes_the_digest(name: str) -> None:
    copies = Copies(Parameters())
    whole, changed = tensors(name), tensors(name)
    last = [each for each in changed if each is not None][-1].view(-1)
    last.view(torch.int32)[-1] ^= 1
    found = settle([{"params": copies.take(whole), "grads": copies.take(changed)} for _ in range(9)])
    assert (
        len({event["params"]["digest"] for event in found}) == len({event["grads"]["digest"] for event in found}) == 1
    )
    assert found[0]["params"]["digest"] != found[0]["grads"]["digest"]


def test_what_has_changed_since_does_not_count() -> None:
    copies = Copies(Parameters())
    for name in ("one", "two"):
        whole = tensors(name)
        found = copies.take(whole)
        for tensor in whole:
            tensor.zero_()
        assert now(found) == now(copies.take(tensors(name)))


@pytest.mark.parametrize(
    "whole",
    [
        [torch.zeros(3, dtype=torch.float64)],
        [torch.zeros(200, 200)],
        [torch.zeros(3, dtype=torch.float16), torch.zeros(2)],
        [torch.zeros(2, 2).to_sparse()],
        [torch.zeros(3, device="meta")],
        [None],
        [],
    ],
)
def test_all_else_is_read_at_once(whole: list[Any]) -> None:
    found = Copies(Parameters()).take(whole)
    assert not isinstance(found, Copy)
    assert found["missing"] == whole.count(None)


def test_gradients_and_views_are_copied_as_they_look() -> None:
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    copies = Copies(Parameters())
    turned = now(copies.take([weight.t()]))
    assert turned["digest"] == now(copies.take([weight.detach().t().contiguous()]))["digest"]
    assert turned["digest"] != now(copies.take([weight.detach().reshape(3, 2)]))["digest"]
    assert weight.grad_fn is None


def test_every_generator_moves_the_fingerprint() -> None:
    before = generators()()
    assert generators()() == before
    for draw in (random.random, lambda: random.gauss(0, 1), lambda: torch.rand(1)):
        draw()
        assert generators()() != before
        before = generators()()
    state = random.getstate()
    random.setstate(state)
    assert generators()() == before


STEPS = """
import os, torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(30):
    loss = model(torch.randn(4, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 13:
        {end}
"""


@pytest.mark.parametrize("end", ["pass", "os._exit(0)", "raise SystemExit", "raise ValueError"])
def test_what_is_held_back_is_written_at_every_end(end: str) -> None:
    record, _ = forked(STEPS.format(end=end), steps=None)
    assert len(record.steps) == len(record.backwards) == (30 if end == "pass" else 14)
    assert len({step.digest for step in record.steps}) == len(record.steps)
    assert all(step.grads is not None and step.rng for step in record.steps)


def test_events_keep_their_order() -> None:
    held, _ = forked(STEPS.format(end="print('loss', float(loss))"), steps=None)
    at_once, _ = forked(STEPS.format(end="print('loss', float(loss))"), steps=None, hold=False)
    assert held.held
    assert not at_once.held
    for one, other in ((held.steps, at_once.steps), (held.backwards, at_once.backwards)):
        assert [each.call for each in one] == [each.call for each in other]
    assert [each.steps_before for each in held.backwards] == [each.steps_before for each in at_once.backwards]


def test_a_kill_takes_what_was_held_back_and_that_is_told() -> None:
    kill = STEPS.format(end="os.kill(os.getpid(), 9)")
    record, _ = forked(kill, steps=None)
    assert record.held
    assert record.end is None
    assert len(record.steps) < 14
    record, _ = forked(kill, steps=None, hold=False)
    assert not record.held
    assert len(record.steps) == 14


def test_a_large_model_is_read_at_once() -> None:
    record, _ = forked(
        STEPS.replace("Linear(3, 2)", "Linear(3, 9000)").format(end="os.kill(os.getpid(), 9)"), steps=None
    )
    assert not record.held
    assert len(record.steps) == 14
