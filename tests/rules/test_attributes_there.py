"""``hasattr`` of objects of the tree: what they surely have, what they surely lack, and what they may have."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from codemods.graph.model.facts.layers import MODULE_NAMES
from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "surplus-retain-graph"

PROGRAM = """
import sys
import engine
import torch
from torch import nn

class Base:
    rate = 2.0

{decorated}class Step({base}):
    {body}

    def __init__(self, net, wide):
        {begin}
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        {make}

    def run(self, x):
        loss = self.net(x).exp().mean()
        self.opt.zero_grad()
        loss.backward(retain_graph=True)
        if {test}:
            loss.backward()
        self.opt.step()
        {end}

wide = len(sys.argv) > 1
step = Step(nn.Linear(4, 2), wide)
{after}
for _ in range(9):
    step.run(torch.randn(3, 4))
"""

HERE, GONE = "hasattr(self, 'scale')", "not hasattr(self, 'scale')"


def asked(tmp_path: Path, test: str, **given: str) -> list[Promise | None]:
    slots = {"decorated": "", "base": "Base", "body": "pass", "begin": "pass", "make": "pass", "end": "pass"}
    code = PROGRAM.format(**{**slots, "after": "pass", "test": test, **given})
    return [f.promise for f in found(tmp_path, RULE, code)]


SURE = {
    "nobody sets it": (HERE, {}),
    "nobody sets it on a module": (HERE, {"base": "nn.Module", "begin": "super().__init__()"}),
    "another name is computed": (HERE, {"make": "setattr(self, 'net_%d' % wide, 1)"}),
    "it is taken away": (HERE, {"make": "self.scale = 1; del self.scale"}),
    "another object has it": (HERE, {"after": "other = Step(nn.Linear(4, 2), wide); other.scale = 1"}),
    "the constructor sets it": (GONE, {"make": "self.scale = 1"}),
    "both branches set it": (GONE, {"make": "if wide: self.scale = 1\n        else: self.scale = 2"}),
    "it is set again": (GONE, {"make": "if wide: self.scale = 1\n        self.scale = 2"}),
    "a base has it": ("not hasattr(self, 'rate')", {}),
    "an object made in one branch has it": (
        "not hasattr(self.inner, 'scale')",
        {
            "body": "class Inner:\n        def __init__(self): self.scale = 1",
            "make": "if wide: self.inner = Step.Inner()\n        else: self.inner = Step.Inner()",
        },
    ),
}


@pytest.mark.parametrize("name", SURE)
def test_what_an_object_surely_has_or_lacks_decides(tmp_path: Path, name: str) -> None:
    test, given = SURE[name]
    assert asked(tmp_path, test, **given) == [Promise.EXACT]


MAYBE = {
    "under a condition": {"make": "if wide: self.scale = 1"},
    "after an early return": {"make": "if wide: return\n        self.scale = 1"},
    "where an error may come": {
        "make": "try: engine.read(); self.scale = 1\n        except OSError: pass",
    },
    "taken away under a condition": {"make": "self.scale = 1\n        if wide: del self.scale"},
    "outside, under a condition": {"after": "if wide: step.scale = 1"},
    "by a computed name": {"after": "setattr(step, sys.argv[1], 1)"},
    "by its dict": {"after": "step.__dict__.update(engine.settings())"},
    "by its dict, under a condition": {"after": "if wide: vars(step)['scale'] = 1"},
    "on its class, under a condition": {"after": "if wide: Step.scale = 1"},
    "in the body of its class, under a condition": {"body": "if len(sys.argv) > 2: scale = 1"},
    "by code that cannot be seen": {"after": "engine.prepare(step)"},
    "by a base that cannot be seen": {"base": "engine.Base"},
    "by a decorator that cannot be seen": {"decorated": "@engine.scaled\n"},
    "by __getattr__": {"body": "def __getattr__(self, name): return engine.find(name)"},
    "by a text that is run": {"after": "exec('step.' + 'scale = 1')"},
    "by a method that a text names": {"after": "getattr(step, '__setattr__')('scale', 1)"},
    "by a bound method": {"after": "put = step.__setattr__\nput('scale', 1)"},
    "by a function of dicts": {"after": "dict.update(step.__dict__, scale=1)"},
    "by an operator on its dict": {"after": "held = vars(step)\nheld |= {'scale': 1}"},
    "by a state": {
        "base": "nn.Module",
        "begin": "super().__init__()",
        "after": "step.__setstate__(dict(step.__dict__, scale=1))",
    },
    "as a module by its name": {
        "base": "nn.Module",
        "begin": "super().__init__()",
        "after": "step.set_submodule('scale', nn.ReLU())",
    },
    "by the script's name": {"after": "import __main__\n__main__.step.scale = 1"},
    "taken out of its dict": {"make": "self.scale = 1", "after": "step.__dict__.pop('scale')"},
    "taken away by a text": {"make": "self.scale = 1", "after": "exec('del step.' + 'scale')"},
    "taken away by a method": {"make": "self.scale = 1", "after": "step.__delattr__('scale')"},
    "left out of a copy": {
        "body": "def __getstate__(self):\n        return {k: v for k, v in vars(self).items() if k != 'scale'}",
        "make": "self.scale = 1",
        "after": "import copy\nstep = copy.copy(step)",
    },
    "taken out with all buffers": {
        "base": "nn.Module",
        "begin": "super().__init__()",
        "make": "self.register_buffer('scale', torch.ones(1))",
        "after": "step._buffers.clear()",
    },
    "a property that may have none": {"body": "@property\n    def scale(self): return self.missing"},
    "as __getattribute__ says": {
        "body": "def __getattribute__(self, name): return object.__getattribute__(self, name)",
        "make": "self.scale = 1",
    },
    "in the first step, under a condition": {"end": "if wide: self.scale = 1"},
    "in a helper, under a condition": {
        "body": "def widen(self, wide):\n        if wide: self.scale = 1",
        "make": "self.widen(wide)",
    },
}


@pytest.mark.parametrize("name", MAYBE)
@pytest.mark.parametrize("test", [HERE, GONE])
def test_what_an_object_may_have_decides_nothing(tmp_path: Path, name: str, test: str) -> None:
    assert Promise.EXACT not in asked(tmp_path, test, **MAYBE[name])


def test_what_every_module_has_is_never_lacking(tmp_path: Path) -> None:
    given = {"base": "nn.Module", "begin": "super().__init__()"}
    assert asked(tmp_path, "hasattr(self, 'training')", **given) == []


def test_the_names_that_every_module_has_are_those_of_the_installed_torch() -> None:
    made = nn.Module()
    public = {name for name in (*dir(made), *vars(made)) if not name.startswith("_")}
    assert public <= MODULE_NAMES, torch.__version__


def test_parts_of_a_public_model_are_put_into_a_model_one_by_one(tmp_path: Path) -> None:
    code = """
    import torch
    from torch import nn
    from torchvision import models

    def first(depth):
        look = nn.Sequential()
        for i, layer in enumerate({listed}):
            look.add_module(str(i), layer)
            if i == depth:
                break
        return look

    look = first(4)
    net = nn.Conv2d(3, 3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in [torch.randn(2, 3, 9, 9) for _ in range(9)]:
        loss = (look(net(x)) - look(x).detach()).pow(2).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
    """
    for listed in ("list(models.vgg19().features)", "tuple(models.vgg19().features.eval())", "models.vgg19().features"):
        assert [f.promise for f in found(tmp_path, RULE, code.format(listed=listed))] == [Promise.EXACT]
    unseen = ("mylib.vgg19().features", "mylib.parts(models.vgg19())")
    for listed in (*unseen, *(f"list({parts})" for parts in unseen)):
        text = code.format(listed=listed).replace("import torch\n", "import torch\n    import mylib\n", 1)
        assert Promise.EXACT not in [f.promise for f in found(tmp_path, RULE, text)]


MODULE = {"base": "nn.Module", "begin": "super().__init__()"}


@pytest.mark.parametrize(
    "after",
    [
        "step.apply(lambda part: setattr(part, 'scale', True))",
        "def mark(part):\n    setattr(part, 'scale', True)\nstep.apply(mark)",
    ],
)
def test_a_flag_that_apply_sets_is_not_known(tmp_path: Path, after: str) -> None:
    given = {**MODULE, "make": "self.scale = False", "after": after}
    assert Promise.EXACT not in asked(tmp_path, "self.scale", **given)


@pytest.mark.parametrize("given", [{}, MODULE, {**MODULE, "after": "step.apply(lambda part: part.train())"}])
def test_a_flag_that_nobody_sets_is_known(tmp_path: Path, given: dict[str, str]) -> None:
    assert asked(tmp_path, "self.scale", **{"make": "self.scale = False", **given}) == [Promise.EXACT]
