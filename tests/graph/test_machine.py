"""Roots: functions that nothing in the tree calls, and what one run of them leaves for the next."""

from __future__ import annotations

import ast

from codemods.graph.model.kinds import WalkKind
from codemods.graph.python.machine import Machine
from tests.graph.tools import PRELUDE, deep_recursion, files_of, run_functions


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


def test_what_a_module_made_keeps_its_identities_where_no_function_is_left_to_run() -> None:
    # loading the first file enters all of its functions, so that nothing of its own runs afterwards
    first = """
class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

class Agent:
    def __init__(self):
        self.actor = Actor()

    def update(self, x):
        self.actor.inner(x).sum().backward()

agents = [Agent() for _ in range(2)]
agents[0].update(torch.rand(4))
"""
    second = """
class Value(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)

class Learner:
    def __init__(self):
        self.value, self.other = Value(), Value()
        self.optimizer = torch.optim.Adam(self.value.parameters())

    def update(self, x):
        self.value.first(x).sum().backward()
        self.optimizer.step()
"""
    files = files_of({"first.py": PRELUDE + first, "second.py": PRELUDE + second})
    owned = []
    for name in ("first.py", "second.py"):
        file = files.file(name)
        assert file is not None
        wanted: set[ast.AST] = {n for n in ast.walk(file.tree) if isinstance(n, ast.FunctionDef) and n.name == "update"}
        with deep_recursion():
            traces = Machine(files, 150_000).run_functions(file, wanted)
        owned.append([len(step.leaves or ()) for trace in traces for step in trace.steps])
    assert owned[0] == []
    assert set(owned[1]) == {3}
