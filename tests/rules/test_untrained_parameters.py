"""What untrained-parameters finds and leaves alone."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.rules.tools import LEARNING, Told, told_of

RULE = "untrained-parameters"
HEAD = (
    LEARNING
    + """
device = torch.device("cuda")
"""
)

MODULE = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        {line}

    def forward(self, x):
        return self.layer(x) * self.scale

own = Scaled()
sgd = torch.optim.SGD(own.parameters(), lr=0.1)
for x, y in batches():
    sgd.zero_grad()
    criterion(own(x), y).backward()
    sgd.step()
"""

FOUND = {
    "self.scale = nn.Parameter(torch.ones(2)).to(device)": "self.scale = nn.Parameter(torch.ones(2).to(device))",
    "self.scale = torch.nn.Parameter(torch.ones(2)).cuda()": "self.scale = torch.nn.Parameter(torch.ones(2).cuda())",
    "self.scale = torch.nn.parameter.Parameter(torch.ones(2), requires_grad=True).double()": (
        "self.scale = torch.nn.parameter.Parameter(torch.ones(2).double(), requires_grad=True)"
    ),
    "self.scale = nn.Parameter(data=torch.ones(2), requires_grad=True).to(device)": (
        "self.scale = nn.Parameter(data=torch.ones(2).to(device), requires_grad=True)"
    ),
}

LEFT = (
    "self.scale = nn.Parameter(torch.ones(2).to(device))",
    "self.scale = nn.Parameter(torch.ones(2))",
    "self.scale = nn.Parameter(torch.ones(2), requires_grad=False).to(device)",
    "self.scale = nn.Parameter(torch.ones(2), True if device else False).to(device)",
    "self.scale = nn.Parameter(torch.ones(2, device='cuda')).cuda()",
    "self.scale = nn.Parameter(nn.Parameter(torch.ones(2)).to(device))",
    "self.scale = nn.Parameter(torch.ones(2)).to(device); self.scale = nn.Parameter(self.scale)",
    "self.scale = nn.Parameter(data=torch.ones(2, dtype=torch.float16)).double()",
    "self.scale = nn.Parameter(**{'data': torch.ones(2)}).to(device)",
    "self.scale = torch.ones(2).to(device)",
    "scale = nn.Parameter(torch.ones(2)).to(device); self.register_buffer('scale', scale)",
)

LAYERS = """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        {line}
        self.out = nn.Linear(4, 2)
    def forward(self, x):
        {uses}
        return self.out(x)
    {more}
own = Deep()
sgd = torch.optim.SGD(own.parameters(), lr=0.1)
{after}
for x, y in batches():
    sgd.zero_grad()
    criterion(own(x), y).backward()
    sgd.step()
"""


def layers(line: str, uses: str = "for layer in self.layers: x = layer(x)", more: str = "", after: str = "") -> str:
    return LAYERS.format(line=line, uses=uses, more=more, after=after)


COMPREHENSION = "self.layers = [nn.Linear(4, 4) for _ in range(3)]"
FOUND_LAYERS = {
    "a list": (
        layers(COMPREHENSION),
        COMPREHENSION,
        "self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])",
    ),
    "written out": (
        layers("self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]", "x = self.layers[1](self.layers[0](x))"),
        "self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]",
        "self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])",
    ),
    "of a module that saves what it knows": (
        layers(COMPREHENSION, more="def save(self):\n        torch.save(self.state_dict(), 'net.pt')"),
        COMPREHENSION,
        "self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])",
    ),
    "begun with one, and counted": (
        layers(
            "self.layers = [nn.Linear(4, 4)]\n        for i in range(3): self.layers.append(nn.Linear(4, 4))",
            "for i in range(len(self.layers)): x = self.layers[i](x)",
            more="def count(self):\n        return sum(p.numel() for p in self.parameters())",
        ),
        "self.layers = [nn.Linear(4, 4)]",
        "self.layers = nn.ModuleList([nn.Linear(4, 4)])",
    ),
    "a dict": (
        layers("self.layers = {'a': nn.Linear(4, 4)}", "x = self.layers['a'](x)"),
        "self.layers = {'a': nn.Linear(4, 4)}",
    ),
    "a dict of which one is named": (
        layers("self.layers = {'a': nn.Linear(4, 4)}", "layer = self.layers['a']; x = layer(x)"),
        "self.layers = {'a': nn.Linear(4, 4)}",
    ),
    "filled": (
        layers("self.layers = []\n        for _ in range(2): self.layers.append(nn.Linear(4, 4))"),
        "self.layers = []",
        "self.layers = nn.ModuleList()",
    ),
    "with something that is no layer": (
        layers("self.layers = [nn.Linear(4, 4), torch.tanh()]", "x = self.layers[0](x)"),
        "self.layers = [nn.Linear(4, 4), torch.tanh()]",
    ),
    "filled with what is not seen to be a layer": (
        "from elsewhere import make\n"
        + layers("self.layers = []\n        self.layers.append(nn.Linear(4, 4)); self.layers.append(make())"),
        "self.layers = []",
    ),
    "begun before the module": (
        layers(COMPREHENSION)
        .replace("        super().__init__()\n", "")
        .replace(COMPREHENSION, COMPREHENSION + "\n        super().__init__()"),
        COMPREHENSION,
    ),
    "of blocks": (
        "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.inner = nn.Linear(4, 4)\n    def forward(self, x):\n        return self.inner(x)\n"
        + layers("self.layers = [Block() for _ in range(2)]"),
        "self.layers = [Block() for _ in range(2)]",
        "self.layers = torch.nn.ModuleList([Block() for _ in range(2)])",
    ),
    "replaced behind the optimizer": (
        layers("pass", "pass", after="own.out = nn.Linear(4, 2)"),
        "own.out = nn.Linear(4, 2)",
    ),
    "an element replaced": (
        """
        tuned = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5))
        sgd = torch.optim.SGD(tuned.parameters(), lr=0.1)
        tuned[2] = nn.Linear(8, 2)
        for x, y in batches():
            sgd.zero_grad()
            criterion(tuned(x), y).backward()
            sgd.step()
        """,
        "tuned[2] = nn.Linear(8, 2)",
    ),
}
LEFT_LAYERS = {
    "one of a dict is a part, by way of a method": layers(
        "self.layers = {'a': nn.Linear(4, 4), 'b': nn.Linear(4, 4)}; self.one = self.chosen('a')",
        "x = self.one(x)",
        more="def chosen(self, name):\n        layer = self.layers[name]\n        return layer",
    ),
    "one of a dict is a part": layers(
        "self.layers = {'a': nn.Linear(4, 4), 'b': nn.Linear(4, 4)}; self.one = self.layers['a']", "x = self.one(x)"
    ),
    "one of a dict is handed to a function": layers(
        "self.layers = {'a': nn.Linear(4, 4)}; self.one = nn.Sequential(self.layers['a'])", "x = self.one(x)"
    ),
    "a ModuleList": layers("self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])"),
    "registered too": layers(COMPREHENSION + "; self.kept = nn.ModuleList(self.layers)"),
    "registered one by one": layers(
        COMPREHENSION + "\n        for i, layer in enumerate(self.layers): self.add_module(str(i), layer)"
    ),
    "in a Sequential": layers(COMPREHENSION + "; self.net = nn.Sequential(*self.layers)"),
    "an optimizer has them": layers(
        COMPREHENSION, after="sgd.add_param_group({'params': [p for l in own.layers for p in l.parameters()]})"
    ),
    "parameters of its own": layers(
        COMPREHENSION,
        more="def parameters(self):\n        return [p for l in self.layers for p in l.parameters()]",
    ),
    "saved one by one": layers(
        COMPREHENSION, more="def save(self):\n        return [layer.state_dict() for layer in self.layers]"
    ),
    "what it gives is replaced": layers(
        COMPREHENSION + "\n        self.parameters = lambda: [p for l in self.layers for p in l.weight]"
    ),
    "trained by hand": layers(
        COMPREHENSION, more="def learn(self):\n        for l in self.layers: l.weight.data -= 0.1 * l.weight.grad"
    ),
    "frozen": layers(
        COMPREHENSION + "\n        for layer in self.layers: layer.requires_grad_(False)",
    ),
    "no backward reaches them": layers(COMPREHENSION, "with torch.no_grad(): self.layers[0](x)"),
    "given from outside": layers("self.layers = [net]", "self.layers[0](x)"),
    "replaced before the optimizer": """
        tuned = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5))
        tuned[2] = nn.Linear(8, 2)
        sgd = torch.optim.SGD(tuned.parameters(), lr=0.1)
        for x, y in batches():
            sgd.zero_grad()
            criterion(tuned(x), y).backward()
            sgd.step()
        """,
    "replaced and added to the optimizer": layers(
        "pass", "pass", after="own.out = nn.Linear(4, 2)\nsgd.add_param_group({'params': own.out.parameters()})"
    ),
    "replaced, and the optimizer made anew": layers(
        "pass", "pass", after="own.out = nn.Linear(4, 2)\nsgd = torch.optim.SGD(own.parameters(), lr=0.1)"
    ),
    "replaced by what is frozen": layers(
        "pass",
        "pass",
        after="own.out = nn.Linear(4, 2).requires_grad_(False)\nown.more = nn.Linear(4, 4)",
    ),
}
ELSEWHERE = {
    "no module": MODULE.replace("(nn.Module)", "").format(line=next(iter(FOUND))),
    "of another library": "from elsewhere import nn\n" + MODULE.format(line=next(iter(FOUND))),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    programs = {line: dedent(MODULE).format(line=line) for line in (*FOUND, *LEFT)} | ELSEWHERE
    programs |= {name: dedent(text) for name, (text, *_) in FOUND_LAYERS.items()}
    programs |= {name: dedent(text) for name, text in LEFT_LAYERS.items()}
    return told_of(tmp_path_factory.mktemp(RULE), RULE, HEAD, programs)


@pytest.mark.parametrize("line", FOUND)
def test_found(told: dict[str, Told], line: str) -> None:
    assert told[line] == Told([line], [FOUND[line]])


@pytest.mark.parametrize("name", FOUND_LAYERS)
def test_layers_that_nothing_trains_are_found(told: dict[str, Told], name: str) -> None:
    _, line, *written = FOUND_LAYERS[name]
    assert told[name] == Told([line], written)


@pytest.mark.parametrize("name", [*LEFT, *ELSEWHERE, *LEFT_LAYERS])
def test_left(told: dict[str, Told], name: str) -> None:
    assert told[name] == Told([], [])


WRITTEN = len(FOUND) + sum(len(program) > 2 for program in FOUND_LAYERS.values())
