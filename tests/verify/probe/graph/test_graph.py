"""Counting graph nodes, their births and their holders, without a record."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from verify.probe.graph.backward import Backwards, Call  # noqa: E402
from verify.probe.graph.forwards import Forwards  # noqa: E402
from verify.probe.graph.holders import holders  # noqa: E402
from verify.probe.graph.nodes import Graph, leaks, live_tensors, reached, roots  # noqa: E402
from verify.probe.lines.sites import Tree  # noqa: E402


def test_nodes_live_as_long_as_their_graph() -> None:
    graph = Graph()
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * 2).exp().sum()
    assert graph.walk([loss]) == 3
    assert graph.live() == 3
    assert graph.walk([loss]) == 0
    other = loss * weight.sum()
    assert graph.walk([other]) == 2
    del loss
    assert graph.live() == 5
    del other
    assert graph.live() == 0


def test_a_second_graph_over_walked_nodes_counts_only_what_is_new() -> None:
    graph = Graph()
    weight = torch.ones(3, requires_grad=True)
    features = weight.exp()
    first, second = features.sum(), features.mean()
    assert graph.walk([first]) == 2
    assert graph.walk([second, first]) == 1


def test_births() -> None:
    graph = Graph()
    weight = torch.ones(3, requires_grad=True)
    kept = []
    for _ in range(12):
        loss = weight.exp().sum()
        graph.walk([loss])
        kept.append(loss)
        graph.cut()
    assert graph.ages() == dict.fromkeys(range(12), 2)
    assert graph.ages_of(reached(roots(kept))) == dict.fromkeys(range(12), 2)
    assert leaks(graph.ages(), graph.cuts)
    del kept[1:]
    assert graph.ages() == {0: 2, 11: 2}
    assert not leaks(graph.ages(), graph.cuts)
    graph.restart()
    assert graph.ages() == {0: 4}
    assert graph.cuts == 0


def test_births_without_sequence_numbers() -> None:
    # Releases before torch 2.1 do not tell them.
    graph = Graph()
    graph._sequence = None
    weight = torch.ones(3, requires_grad=True)
    kept = []
    for _ in range(3):
        kept.append(weight.exp().sum())
        graph.walk(kept[-1:])
        graph.cut()
    unwalked = weight.exp()
    assert graph.ages_of(reached(roots([*kept, unwalked]))) == {0: 2, 1: 2, 2: 2}


@pytest.mark.parametrize(
    ("ages", "boundaries", "leak"),
    [
        ([3, 4, 5], 8, True),
        ([3, 4], 8, False),
        ([0, 1, 2, 6, 7, 8], 8, False),
        (range(3, 10), 20, True),
        (range(3, 9), 20, False),
        ([], 0, False),
        ([0], 1, False),
    ],
)
def test_what_counts_as_a_leak(ages: list[int], boundaries: int, leak: bool) -> None:
    assert leaks(ages, boundaries) is leak


def test_gradients_with_a_graph_are_found() -> None:
    weight = torch.ones(3, requires_grad=True)
    weight.exp().sum().backward(create_graph=True)
    assert any(tensor is weight.grad for tensor in live_tensors())


class Meter:
    total: object = 0


def test_holders_are_named_from_frames_and_modules() -> None:
    graph = Graph()
    weight = torch.ones(3, requires_grad=True)
    losses, current = [], weight.exp().sum()
    for _ in range(12):
        losses.append(weight.exp().sum())
        Meter.total = Meter.total + weight.sum()  # type: ignore[operator]
        graph.cut()
    tree = Tree(str(Path(__file__).resolve().parent))
    found = {holder["name"]: holder for holder in holders(graph, 12, tree, tree.frames(sys._getframe()))}
    Meter.total = 0
    assert found["losses[*]"]["function"] == "test_holders_are_named_from_frames_and_modules"
    assert (found["losses[*]"]["nodes"], found["losses[*]"]["births"]) == (24, 7)
    (total,) = [holder for name, holder in found.items() if name.endswith("Meter.total")]
    assert (total["function"], total["births"]) == ("<module>", 7)
    assert "current" not in found
    assert current.grad_fn is not None


def backwards(calls: list[Call]) -> Backwards:
    return Backwards(lambda call: None, calls.append)


def test_every_way_to_a_backward_is_seen_once() -> None:
    calls: list[Call] = []
    watch = backwards(calls)
    original = torch.autograd.graph._engine_run_backward
    weight = torch.ones(3, requires_grad=True)
    watch.install()
    try:
        weight.sum().backward()
        torch.autograd.backward([weight.sum(), weight.exp().sum()], retain_graph=True)
        torch.autograd.grad(weight.sum(), weight, create_graph=True)
        checkpointed = torch.utils.checkpoint.checkpoint(torch.exp, weight, use_reentrant=True)
        checkpointed.sum().backward()
        torch.func.grad(lambda point: point.sum())(weight.detach())
        with pytest.raises(RuntimeError):
            torch.ones(1).backward()
    finally:
        watch.remove()
    weight.sum().backward()
    assert [(call.grad, call.retain, call.create, len(call.outputs)) for call in calls] == [
        (False, False, False, 1),
        (False, True, False, 2),
        (True, True, True, 1),
        (False, False, False, 1),
        (False, False, False, 1),
    ]
    assert [type(call.error) for call in calls] == [type(None)] * 4 + [RuntimeError]
    assert torch.autograd.graph._engine_run_backward is original
    assert torch.autograd._engine_run_backward is original


def test_the_engine_of_older_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    # Up to torch 2.2 nothing stands between autograd and the engine object.
    engine = torch.autograd.Variable._execution_engine
    monkeypatch.delattr(torch.autograd.graph, "_engine_run_backward")
    monkeypatch.setattr(
        torch.autograd,
        "_engine_run_backward",
        lambda *args, **kwargs: torch.autograd.Variable._execution_engine.run_backward(*args, **kwargs),
    )
    calls: list[Call] = []
    watch = backwards(calls)
    weight = torch.ones(3, requires_grad=True)
    watch.install()
    try:
        weight.exp().sum().backward()
        (grad,) = torch.autograd.grad(weight.exp().sum(), weight)
        checkpointed = torch.utils.checkpoint.checkpoint(torch.exp, weight, use_reentrant=True)
        checkpointed.sum().backward()
    finally:
        watch.remove()
    assert [call.grad for call in calls] == [False, True, False]
    assert torch.equal(grad, weight.exp().detach())
    assert torch.autograd.Variable._execution_engine is engine


def forwards() -> Forwards:
    return Forwards(lambda frame: [Path(frame.f_code.co_filename).name, 1, frame.f_code.co_name], lambda: False, print)


def test_used_and_wasted_forwards() -> None:
    graph, watch = Graph(), forwards()
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Identity(), torch.nn.Dropout(0.0))
    net.eval()
    watch.install()
    try:
        outputs = [net(torch.ones(1, 2)) for _ in range(3)]
        # Returns its input: one node is the output of two calls.
        again = net[1](outputs[0])
        with torch.no_grad():
            net(torch.ones(1, 2))
        net.requires_grad_(False)
        net(torch.ones(1, 2))
        with pytest.raises(RuntimeError):
            net(torch.ones(1, 5))
        net.requires_grad_(True)
        nested = torch.nn.LSTM(2, 2)(torch.ones(1, 1, 2))
    finally:
        watch.remove()
    net(torch.ones(1, 2))
    graph.walk([again])
    (row,) = watch.sites()
    assert (row["calls"], row["used"], row["peak"]) == (5, 2, 5)
    graph.walk([nested[1][0]])
    del outputs[1:]
    assert watch.sites()[0]["used"] == 3
    assert watch._rows[tuple(row["site"])].unused == 0


@pytest.mark.parametrize("used", [True, False])
def test_what_a_hook_takes_from_the_middle_is_a_use(used: bool) -> None:
    graph, watch, taken = Graph(), forwards(), []
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    net[0].register_forward_hook(lambda module, inputs, output: taken.append(output))
    scale = torch.ones(1, requires_grad=True)
    watch.install()
    try:
        # What was there before the call is none of its nodes.
        before = scale.exp()
        for _ in range(3):
            net(before * torch.ones(1, 2))
    finally:
        watch.remove()
    graph.walk([each.sum() for each in taken] if used else [before.sum()])
    (row,) = watch.sites()
    assert (row["calls"], row["used"]) == (3, 3 if used else 0)


def test_removed_hooks_leave_nothing() -> None:
    from torch.nn.modules import module

    hidden = getattr(module, "_has_any_global_hook", None)
    watch = forwards()
    watch.install()
    if hidden is not None:
        assert not module._has_any_global_hook()
        handle = module.register_module_forward_hook(lambda *args: None)
        assert module._has_any_global_hook()
        handle.remove()
    watch.remove()
    assert not module._global_forward_hooks
    assert not module._global_forward_pre_hooks
    assert getattr(module, "_has_any_global_hook", None) is hidden
