"""Mistakes that raise nothing: what is kept without a copy, dropped, cleared too early, cut off, never registered."""

from __future__ import annotations

from tests.hunt.grammar.extras import extra
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn

STATES = (
    "{m}.state_dict()",
    "{m}.state_dict()",
    "{m}.state_dict().copy()",
    "copy.deepcopy({m}.state_dict())",
    "{{k: v.clone() for k, v in {m}.state_dict().items()}}",
)


@extra("state kept")
def state_kept(s: Sketch, t: Turn) -> None:
    """The state of the best epoch is kept, and loaded in the end."""
    if not s.model:
        return
    model, when = s.model, s.choices.one(("{v} < 1e9", "True", "not {b}", "{v} == {v}"))
    best = s.share("best", s.choices.one(("None", "{}", f"{model}.state_dict()")), held=True)
    taken = s.choices.one(STATES).format(m=model)
    if "copy." in taken or s.choices.chance(30):
        s.need(
            s.choices.one(("import copy", "import copy", "from copy import deepcopy"))
            if "." not in taken
            else "import copy"
        )
    s.add("turn_end", f"if {when.format(v=f'{t.loss}.item()', b=best)}:\n    {best} = {taken}")
    s.add("finish", f"{model}.load_state_dict({best})")
    s.add("finish", f"print(sum(p.sum().item() for p in {model}.parameters()) == 0)")


@extra("move dropped")
def move_dropped(s: Sketch, t: Turn) -> None:
    """What ``to`` returns is dropped, or kept."""
    name = s.fresh("noise")
    moved = s.choices.one(
        ("{n}.to('cpu')", "{n}.to(device='cpu')", "{n}.to(torch.device('cpu'))", "{n} = {n}.to('cpu')")
    )
    s.add("turn_end", f"{name} = torch.ones(2)\n{moved.format(n=name)}\nprint({name}.sum().item())")


@extra("anomalies")
def anomalies(s: Sketch, t: Turn) -> None:
    """Anomaly detection is left on."""
    s.prepare(
        s.choices.one(
            (
                "torch.autograd.set_detect_anomaly(True)",
                "torch.autograd.set_detect_anomaly(mode=True)",
                "torch.autograd.set_detect_anomaly(len('abc') > 2)",
                "from torch.autograd import set_detect_anomaly\nset_detect_anomaly(True)",
            )
        )
    )


MODELS = (
    "nn.Linear(2, 2)",
    "nn.Sequential(nn.Linear(2, 2), nn.Tanh())",
    "Stack([nn.Linear(2, 2), nn.Linear(2, 2)])",
    "Stacked()",
    "Filled()",
    "Scaled()",
)
HEAD = """
class Stack(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.last = nn.Linear(2, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2) for _ in range(2)]
        self.last = nn.Linear(2, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


class Filled(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(2, 2)
        self.layers = []
        for width in (2, 2):
            self.layers.append(nn.Linear(width, width))
        self.layers.append(nn.Tanh())

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) if i < len(self.layers) else x
        return self.last(x)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.ones(2)).to("cpu")

    def forward(self, x):
        return self.last(x) * self.scale
"""
"""A model whose list is given, and three whose layers or parameters are not registered, or only on the CPU."""

LOSSES = (
    "{l} = {m}(a).pow(2).mean()",
    "{l} = {m}(a).pow(2).mean()\n{l} = torch.tensor({l}, requires_grad=True)",
    "{l} = {m}(a).pow(2).mean()\n{l} = torch.tensor({l}.item(), requires_grad=True)",
    "{l} = torch.tensor({m}(a).pow(2).mean().tolist(), requires_grad=True)",
    "{l} = {m}(a).pow(2).mean().detach().requires_grad_()",
    "{v} = a[:, 0] + 0.9 * {m}(b).max(1)[0]\n{l} = nn.functional.mse_loss({m}(a).gather(1, c).squeeze(1), {v})",
    "{v} = a + 0.9 * {m}(b)\n{l} = ({m}(a) - {v}).pow(2).mean()",
    "{v} = a[:, 0] + 0.9 * (1 - a[:, 1]) * {m}(b).max(1)[0]\n{l} = ({m}(a).max(1)[0] - {v}).pow(2).sum()",
)
ORDERS = (
    "{o}.zero_grad()\n{l}.backward()\n{o}.step()",
    "{l}.backward()\n{o}.zero_grad()\n{o}.step()",
    "{l}.backward()\n{m}.zero_grad()\n{o}.step()",
    "{l}.backward()\n{o}.step()\n{o}.zero_grad()",
    "{l}.backward()\nif {k} % 2 == 1:\n    {o}.zero_grad()\n    {o}.step()\n{k} += 1",
    "{o}.zero_grad()\n{l}.backward()\nif ({k} + 1) % 2 == 0:\n    {o}.step()\n{k} += 1",
)


@extra("side model")
def side_model(s: Sketch, t: Turn) -> None:
    """Another small model learns beside the first, or only seems to."""
    s.define(HEAD)
    model = s.share("side", s.choices.one(MODELS), held=True)
    optimizer = s.share("side_opt", f"torch.optim.SGD({model}.parameters(), lr=0.1)")
    loss, value = s.fresh("side_loss"), s.fresh("side_value")
    count = s.share("turns", "0") if s.choices.chance(60) else ""
    order = s.choices.one(tuple(one for one in ORDERS if count or "{k}" not in one))
    lines = ["a, b, c = torch.rand(4, 2), torch.rand(4, 2), torch.zeros(4, 1, dtype=torch.long)"]
    lines += [
        s.choices.one(LOSSES).format(l=loss, m=model, v=value),
        order.format(l=loss, o=optimizer, m=model, k=count),
    ]
    s.add("turn_end", "\n".join(lines))
    s.add("finish", f"print(len(list({model}.parameters())) > 0)")
    s.features.append(f"side {order.splitlines()[0]}")
