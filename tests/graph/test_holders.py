"""What is put into things that cannot be seen, and what code that gets these things makes of it."""

from __future__ import annotations

import pytest

from codemods.graph.model.kinds import NodeKind, PlainKind
from tests.graph.tools import run

LOADED = "from mesh import batches, pooled, names\nmesh = next(iter(batches))\n"

PUT = {
    "an element of an attribute": ('mesh.fields["heat"] = net(x)', "pooled(mesh)"),
    "an attribute": ("mesh.heat = net(x)", "pooled(mesh)"),
    "an element": ('mesh["heat"] = net(x)', "pooled(mesh, 'heat')"),
    "by name": ("setattr(mesh, 'heat', net(x))", "pooled(mesh)"),
    "a method of it": ('mesh.fields["heat"] = net(x)', "mesh.readout()"),
    "an element that somebody else wrote": ('mesh.fields["heat"] = net(x)', 'mesh.fields["flux"]'),
    "an element that is taken out": ('mesh.fields["heat"] = net(x)', 'mesh.fields.pop("flux")'),
    "a copy of it": ("other = mesh.copy()\nother.heat = net(x)", "pooled(other)"),
    "a model that cannot be seen": ('mesh.fields["heat"] = net(x)', "nn.Remesh(3)(mesh)"),
}


@pytest.mark.parametrize("name", PUT)
def test_what_gets_the_thing_may_get_what_was_put_into_it(name: str) -> None:
    put, got = PUT[name]
    seen = run(f"{LOADED}{put}\nout = {got}\nloss = out.sum()\nloss.backward(retain_graph=True)")
    walked = {n.label for n in seen.walks()[0].seen}
    assert "Linear" in walked
    assert seen.graph("out") == ("attached" if "Remesh" in got else "perhaps")


DATA = {
    "nothing was put there": 'flux = mesh.fields["flux"]',
    "only data was put there": 'mesh.fields["heat"] = x\nflux = mesh.fields["flux"]',
    "something was put elsewhere": 'other = next(iter(batches))\nother.heat = net(x)\nflux = mesh.fields["flux"]',
    "it was read before": 'mesh.fields["flux"]\nmesh.fields["heat"] = net(x)\nflux = mesh.fields["flux"]',
    "it was taken back": 'mesh.heat = net(x)\nmesh.heat = x\nflux = pooled(mesh)',
    "gradients were off": 'with torch.no_grad():\n    mesh.heat = net(x)\nflux = pooled(mesh)',
    "a backward walked it": 'mesh.heat = net(x)\nmesh.heat.sum().backward()\nflux = pooled(mesh)',
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_data_stays_data(name: str) -> None:
    assert run(LOADED + DATA[name]).graph("flux") == "free"


def test_a_step_does_not_find_what_an_earlier_one_put_there() -> None:
    code = f"""{LOADED}
for step in range(3):
    mesh.fields["heat"] = net(x)
    loss = pooled(mesh).sum()
    loss.backward(retain_graph=True)
"""
    seen = run(code)
    # a loop that retains its graph is run for two turns more
    assert len(seen.walks()) == 4
    assert seen.again() == seen.retained() == []


# what is no tensor, and what is


@pytest.mark.parametrize("name", ["nan", "inf", "pi"])
def test_constants_of_libraries_are_numbers(name: str) -> None:
    for code in (f"import numpy as np\nvalue = np.{name}", f"from math import {name}\nvalue = {name}"):
        value = run(code).value("value")
        assert getattr(value, "kind", None) is PlainKind.NUMBER


def test_of_a_tensor_as_tensor_makes_nothing() -> None:
    seen = run("same = torch.as_tensor(w)\ndata = torch.as_tensor(x)\nmade = torch.as_tensor(w * 2)")
    assert [n.kind for n in seen.nodes("same")] == [NodeKind.LEAF]
    assert seen.graph("data") == "free"
    assert seen.graph("made") == "attached"


def test_samples_of_a_distribution_without_parameters_have_no_history() -> None:
    seen = run(
        """
        from torch.distributions import Normal
        noise = Normal(0.0, 1.0)
        drawn = noise.sample((3,)) + x
        learned = Normal(w, 1.0).rsample()
        """
    )
    assert seen.graph("drawn") == "free"
    assert not any(getattr(origin, "kind", "") == "call" for origin in getattr(seen.value("drawn"), "shadow", ()))
    assert seen.graph("learned") != "free"


def test_an_element_of_an_empty_list_is_nothing() -> None:
    code = """
        rows = []
        for turn in range(4):
            if turn == 0:
                rows = net(x)
            last = rows[0:2]
        """
    seen = run(code)
    assert seen.graph("last") == "attached"
    assert not any(getattr(origin, "kind", "") == "lost" for origin in getattr(seen.value("last"), "shadow", ()))


def test_a_method_that_only_subclasses_have_does_not_end_the_run() -> None:
    code = """
        class Frame(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = self.build()
                self.head = nn.Linear(3, 1)

            def build(self):
                \"\"\"The layers.\"\"\"
                raise NotImplementedError("of the subclass")

            def forward(self, x):
                return self.head(self.body(x))

        class Checked(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.refuse(size)
                self.head = nn.Linear(3, 1)

            def refuse(self, size):
                raise ValueError(size)

        out = Frame()(x)
        """
    assert run(code).graph("out") == "attached"
    assert run(f"{code}\n        Checked(3)\n        late = 1\n").value("late") is None


def test_emptying_one_of_several_lists_empties_each() -> None:
    code = """
        import sys
        class Store:
            def __init__(self):
                self.kept = []
        class Other:
            def __init__(self):
                self.kept = []
        store = Store() if len(sys.argv) > 1 else Other()
        store.kept.append(net(x))
        before = store.kept[0]
        del store.kept[:]
        after = len(store.kept) and store.kept
        """
    seen = run(code)
    assert seen.graph("before") == "attached"
    assert seen.graph("after") == "free"


def test_a_block_that_is_remembered_puts_its_values_into_each_thing() -> None:
    code = """
        from mesh import batches, pooled

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(3, 3)

            def forward(self, mesh):
                mesh.fields["heat"] = self.body(mesh.fields["flux"])
                return pooled(mesh)

        class Solver(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()

            def forward(self, mesh):
                return self.block(mesh) + self.block(mesh)

        solver = Solver()
        for mesh in batches:
            solver(mesh).sum().backward()
        """
    seen = run(code)
    assert len(seen.walks()) == 2
    assert all(any(n.label == "Linear" for n in walk.seen) for walk in seen.walks())
    assert seen.again() == []
