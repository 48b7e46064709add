"""Classes that derive from layers and containers of torch, and from nothing else that is known."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections import defaultdict

import pytest
import torch

from codemods.graph.model.facts.layers import CHECKS_OF_LAYERS
from codemods.graph.model.kinds import Marked
from tests.graph.tools import run

CONV = """
class Same(nn.Conv2d):
    def __init__(self, width):
        super().__init__(width, width, 3, padding=1)
m = Same(3)
out = m(x)
"""

ATTACHED = {
    "a layer without a forward of its own": CONV,
    "a class with nothing in it": "class Same(nn.Linear): pass\nout = Same(3, 3)(x)",
    "the weight is taken": """
class Scaled(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight * 0.5)
out = Scaled(3, 3)(x)
""",
    "the base is called": """
class Loud(nn.Linear):
    def forward(self, x):
        return super().forward(x)
out = Loud(3, 3)(x)
""",
    "the base is called by its name": """
class Loud(nn.Linear):
    def __init__(self, width):
        nn.Linear.__init__(self, width, width)
    def forward(self, x):
        return self.activate(super(Loud, self).forward(x))
    def activate(self, x):
        return x.relu()
out = Loud(3)(x)
""",
    "a class of a class": """
class Same(nn.Linear): pass
class Again(Same): pass
out = Again(3, 3)(x)
""",
    "a recurrent layer": "class R(nn.LSTM): pass\nout, state = R(3, 3)(x)",
    "layers handed to the base": """
class Block(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, width), nn.ReLU())
out = Block(3)(x)
""",
    "a list of layers handed to the base": """
class Block(nn.Sequential):
    def __init__(self, width):
        layers = [nn.Linear(width, width), nn.ReLU()]
        super(Block, self).__init__(*layers)
out = Block(3)(x)
""",
    "layers given one by one": """
class Block(nn.Sequential):
    def __init__(self, width):
        super().__init__()
        self.add_module("line", nn.Linear(width, width))
        self.bend = nn.ReLU()
out = Block(3)(x)
""",
    "its own parts": """
class Stack(nn.ModuleList):
    def forward(self, x):
        for part in self:
            x = part(x)
        return x
out = Stack([nn.Linear(3, 3), nn.ReLU()])(x)
""",
    "a part by its place": """
class Stack(nn.Sequential):
    def forward(self, x):
        return self[0](x)
out = Stack(nn.Linear(3, 3), nn.Linear(3, 3))(x)
""",
    "parts by names": """
class Stack(nn.ModuleDict):
    def forward(self, x):
        for part in self.values():
            x = part(x)
        return x
out = Stack({"line": nn.Linear(3, 3), "bend": nn.ReLU()})(x)
""",
    "a dict of modules": """
parts = nn.ModuleDict({"line": nn.Linear(3, 3), "more": nn.Linear(3, 3)})
for name, part in parts.items():
    out = part(x)
""",
    "a slice of its parts": """
class Stack(nn.Sequential):
    def forward(self, x):
        for part in self[1:]:
            x = part(x)
        return x
out = Stack(nn.Linear(3, 3), nn.Linear(3, 3))(x)
""",
}

FREE = {
    "no parameters": "class Nothing(nn.Identity): pass\nout = Nothing()(x)",
    "none of the base is used": """
class Odd(nn.Linear):
    def forward(self, x):
        return x * 2
out = Odd(3, 3)(x)
""",
    "layers without parameters": """
class Block(nn.Sequential):
    def __init__(self):
        super().__init__(nn.ReLU(), nn.Dropout())
out = Block()(x)
""",
    "all frozen": CONV.replace("out =", "m.requires_grad_(False)\nout ="),
    "each frozen": CONV.replace("out =", "for p in m.parameters():\n    p.requires_grad = False\nout ="),
    "its weight frozen": """
class Fixed(nn.Linear):
    def __init__(self):
        super().__init__(3, 3, bias=False)
        self.weight.requires_grad = False
out = Fixed()(x)
""",
    "a setting": """
class Wide(nn.Linear):
    def forward(self, x):
        return x * self.in_features
out = Wide(3, 3)(x)
""",
    "without gradients": CONV.replace("out = m(x)", "with torch.no_grad():\n    out = m(x)"),
}


@pytest.mark.parametrize("name", ATTACHED)
def test_parameters_of_the_base_take_part(name: str) -> None:
    assert run(ATTACHED[name]).graph("out") == "attached"


@pytest.mark.parametrize("name", FREE)
def test_nothing_is_recorded_without_parameters(name: str) -> None:
    assert run(FREE[name]).graph("out") == "free"


def test_a_bias_may_be_missing() -> None:
    code = """
        class Shifted(nn.Linear):
            def forward(self, x):
                return x if self.bias is None else x + self.bias
        out = Shifted(3, 3)(x)
    """
    assert run(code).graph("out") == "perhaps"


def test_an_optimizer_owns_what_the_base_brings() -> None:
    r = run(
        """
        class Same(nn.Linear): pass
        m = Same(3, 1)
        opt = torch.optim.SGD(m.parameters(), lr=0.1)
        m(x).sum().backward()
        opt.step()
        """
    )
    owned = r.trace.steps[0].owned
    assert owned is not None
    assert not owned.more
    assert set(owned.leaves) <= set(r.walks()[0].seen)


def test_a_derived_loss_is_reduced_as_it_was_made() -> None:
    code = """
        class Mine(nn.MSELoss):
            def forward(self, a, b):
                return super().forward(a, b)
        class Each(nn.MSELoss):
            def __init__(self):
                super().__init__(reduction="none")
        one = Mine()(net(x), x)
        many = Each()(net(x), x)
    """
    r = run(code)
    assert [r.nodes(name)[0].scalar for name in ("one", "many")] == [True, False]


@pytest.mark.parametrize("frozen", ["net.requires_grad = False", "nn.DataParallel(net).requires_grad = False"])
def test_a_flag_on_a_module_freezes_nothing(frozen: str) -> None:
    assert run(f"{frozen}\nout = net(x)").graph("out") == "attached"


def test_a_flag_on_each_parameter_freezes() -> None:
    assert run("for p in net.parameters():\n    p.requires_grad = False\nout = net(x)").graph("out") == "free"


CHECKED = """
class Wide({base}):
    def _check_input_dim(self, x):
        super()._check_input_dim(x)
    def forward(self, x):
        self._check_input_dim(x)
        return F.batch_norm(x, None, None, self.weight, self.bias, True)
out = Wide(3)(x)
"""


@pytest.mark.parametrize("base", ["nn.BatchNorm1d", "nn.modules.batchnorm._BatchNorm"])
def test_checks_of_torch_keep_nothing(base: str) -> None:
    trace = run(CHECKED.format(base=base)).trace
    assert not any(mark.kind is Marked.UNSEEN_MODULE_METHOD for mark in trace.marks)
    assert not trace.handings


def test_a_check_of_a_base_that_cannot_be_seen_may_do_anything() -> None:
    trace = run("from elsewhere import Base" + CHECKED.format(base="Base")).trace
    assert any(len(handing.given) > 1 for handing in trace.handings)


def test_checks_of_torch_write_and_return_nothing() -> None:
    defined: dict[str, list[ast.AST]] = defaultdict(list)
    for part in pkgutil.iter_modules(torch.nn.modules.__path__, "torch.nn.modules."):
        tree = ast.parse(inspect.getsource(importlib.import_module(part.name)))
        for cls in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            for node in cls.body:
                if isinstance(node, ast.FunctionDef):
                    defined[node.name].append(node)
    for name in CHECKS_OF_LAYERS:
        assert defined[name], name
        for node in (node for method in defined[name] for node in ast.walk(method)):
            assert not isinstance(node, ast.Return) or node.value is None, name
            assert not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)), name
