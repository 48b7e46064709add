"""Roots: functions that nothing in the tree calls, and what one run of them leaves for the next."""

from __future__ import annotations

from codemods.graph.model.kinds import WalkKind
from tests.graph.tools import run_functions


def test_methods_of_a_class_share_their_object() -> None:
    (trace,) = run_functions(
        """
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.h = torch.zeros(3)
            def step(self, batch):
                self.h = self.model(batch, self.h) * w
                self.h.sum().backward()
        """
    )
    assert [bool(walk.again) for walk in trace.walks] == [False, True]


def test_functions_are_run_twice_with_what_they_left() -> None:
    (trace,) = run_functions(
        """
        kept = [torch.zeros(3)]
        def step(batch):
            h = kept[0] * w
            h.sum().backward()
            kept[0] = h
        """
    )
    assert [bool(walk.again) for walk in trace.walks] == [False, True]


def test_arguments_of_a_root_may_carry_anything() -> None:
    (trace,) = run_functions("def step(loss, model):\n    model.train()\n    loss.backward()", "step")
    assert [walk.kind for walk in trace.walks] == [WalkKind.BACKWARD] * 2
    assert all(root.certain for walk in trace.walks for root in walk.roots)
