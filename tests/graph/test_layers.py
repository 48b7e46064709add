"""Modules of torch: their forwards are recorded, their parts are known."""

from __future__ import annotations

import pytest

from codemods.graph.model.kinds import ModuleMode
from tests.graph.tools import run, unseen


def test_a_forward_is_recorded_once_with_its_mode() -> None:
    code = """
        class N(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(3, 1)
            def forward(self, t):
                return self.l(t)
        n = N()
        n.eval()
        n(x)
        n.train()
        n(x)
        with torch.no_grad():
            n(x)
    """
    forwards = run(code).trace.forwards
    assert [(f.mode, f.grad) for f in forwards] == [
        (ModuleMode.EVAL, True),
        (ModuleMode.TRAIN, True),
        (ModuleMode.TRAIN, False),
    ]


def test_volatile_is_remembered() -> None:
    forward = run("y = net(Variable(x, volatile=True))").trace.forwards[0]
    assert [place.line for place in forward.volatile] == [8]


def test_a_sequential_of_a_long_list_keeps_its_layers() -> None:
    r = run(
        """
        layers = [nn.Linear(3, 3), nn.ReLU()]
        for _ in range(2):
            layers += [nn.Linear(3, 3), nn.ReLU(), nn.LayerNorm(3)]
        for _ in range(2):
            layers += [nn.Upsample(2), nn.Linear(3, 3), nn.ReLU(), nn.LayerNorm(3)]
        deep = nn.Sequential(*layers)
        out = deep(x)
        """
    )
    assert r.graph("out") == "attached"


def test_each_of_many_parts_takes_part() -> None:
    parts = ", ".join(["nn.Linear(3, 3)"] * 70)
    found = run(f"c = nn.Sequential({parts})\ny = c(x)\nm = nn.ModuleList()\n" + "m.append(nn.Linear(3, 3))\n" * 70)
    leaves = {n for node in found.nodes("y") for n in node.ancestors() if n.leaf}
    assert len(leaves) == 70
    assert len(found.machine.run.parameter_leaves(found.value("m"))) == 70  # type: ignore[arg-type]


def test_a_loop_over_many_parts_comes_to_each() -> None:
    parts = ", ".join(["nn.Linear(3, 3)"] * 40)
    found = run(f"c = nn.Sequential({parts})\nfor m in c.children():\n    y = m(x)\n")
    assert found.graph("y") != "free"


@pytest.mark.parametrize(
    ("code", "data"),
    [
        ("body = torchvision.models.resnet18()\nwith torch.no_grad():\n    out = body(x)", True),
        ("body = torchvision.models.resnet18().requires_grad_(False)\nout = body(x)", True),
        (
            "parts = list(torchvision.models.resnet18().children())[:-1]\nbody = nn.Sequential(*parts)\n"
            "with torch.no_grad():\n    out = body(x)",
            True,
        ),
        ("body = torchvision.models.resnet18()\nout = body(x)", False),
        # it may hand on what it gets, and a model of nobody knows whom may keep what it made before
        ("body = torchvision.models.resnet18()\na = net(x)\nwith torch.no_grad():\n    out = body(a)", False),
        ("body = mine.Model()\nbody.eval()\nwith torch.no_grad():\n    out = body(x)", False),
        ("body = torchvision.models.resnet18()\nwith torch.no_grad():\n    out = body(mine.Batch().draw())", False),
    ],
)
def test_what_a_known_model_makes_without_recording_is_data(code: str, data: bool) -> None:
    made = run(f"import torchvision, mine\n{code}\nout = out.reshape(9)")
    value = made.value("out")
    assert value is not None
    assert (made.graph("out") == "free" and not unseen(made, "out")) is data


def test_a_forward_hook_gets_what_each_forward_gives_and_nothing_before() -> None:
    found = run(
        """
        kept = []
        def hook(module, inputs, output):
            kept.append(output)
        net.register_forward_hook(hook)
        net(x)
        kept[0].sum().backward()
        """
    )
    (walk,) = found.trace.walks
    assert [node.operation for node in walk.seen if not node.leaf] == ["sum", "Linear"]
    assert len(found.trace.storings) == 1


@pytest.mark.parametrize(
    "call",
    [
        "c(h)",
        "c(input=h)",
        "c(**{'input': h})",
        "c(**dict(input=h))",
        "c.forward(input=h)",
        "functools.partial(c, input=h)()",
        "(lambda **named: c(**named))(input=h)",
    ],
)
def test_a_sequential_takes_its_input_by_whatever_name(call: str) -> None:
    found = run(f"import functools\nc = nn.Sequential(nn.Tanh(), nn.Linear(3, 1))\nh = torch.exp(w)\ny = {call}\n")
    [made] = [node for node in found.trace.nodes if node.label == "exp"]
    assert {node.label for node in made.descendants()} >= {"Tanh", "Linear"}


@pytest.mark.parametrize(
    "read",
    [
        "[b * 2 for b in m._buffers.values()]",
        "[b * 2 for _, b in m._buffers.items()]",
        "m._buffers['kept'] * 2",
        "m._buffers.get('kept') * 2",
        "[(lambda d: d['kept'])(m._buffers) * 2]",
    ],
)
def test_the_dict_of_buffers_holds_what_was_computed(read: str) -> None:
    code = f"""
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("kept", torch.zeros(3))
        m = M()
        m.kept = torch.exp(w)
        y = {read}
    """
    [made] = [node for node in run(code).trace.nodes if node.label == "exp"]
    assert any(node.operation == "Mult" for node in made.descendants())
