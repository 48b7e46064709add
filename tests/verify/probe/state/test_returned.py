"""What a call by itself shows: values, what they are made of, graphs and gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")


class Thing:
    def __init__(self, value: Any) -> None:
        self.value = value


def shown(result: Any, given: Any = (), known: Any = None) -> Any:
    from verify.probe.state import returned
    from verify.probe.values.digests import Parameters

    return returned.after(result, given, returned.before(given) if known is None else known, Parameters())


def graph(cut: bool) -> Any:
    mean, spread = torch.ones(3).requires_grad_(), torch.full((3,), 2.0).requires_grad_()
    return mean * 3 + (spread.detach() if cut else spread)


def test_equal_values_with_other_gradients_differ() -> None:
    assert shown(graph(False))["digest"] == shown(graph(False))["digest"]
    assert shown(graph(False))["digest"] != shown(graph(True))["digest"]


def test_what_it_is_made_of() -> None:
    assert shown([1, torch.ones(2)])["form"][:3] == ["list of 2", "a number", "a tensor of 2 float32"]
    assert shown(None)["form"][0] == "None"
    # A total that becomes a number is the same value, and no longer carries a graph.
    total, number = torch.ones(2).requires_grad_().sum(), 2.0
    assert (shown(total)["form"][0], shown(total)["graphs"]) == ("a number (float32)", "1")
    assert shown(number)["form"][0] == "a number"
    assert shown(number)["graphs"] == "0"


def test_whether_it_shows_anything() -> None:
    from verify.probe.state import returned

    thing = Thing(torch.zeros(2))
    known = returned.before(thing)
    assert not shown(None, thing, known)["told"]
    thing.value.add_(1)
    assert shown(None, thing, known)["told"]
    assert shown(1.5)["told"]


def test_what_goes_back_into_a_made_up_argument_is_told_apart() -> None:
    from verify.probe.calls.recipes import make

    weight = torch.full((2,), 3.0).requires_grad_()

    def called(cut: bool) -> Any:
        given = make({"is": "tensor", "shape": [2], "type": "float32", "below": 0, "attached": True}, 1)
        return shown(weight * (given.detach() if cut else given))

    through, beside = called(False), called(True)
    assert through["digest"] == beside["digest"]
    assert through["graphs"].partition("|")[0] == beside["graphs"] == "1"
    assert through["graphs"] != "1"
    assert called(False)["graphs"] == through["graphs"]
