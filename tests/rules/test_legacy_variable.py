"""legacy-variable: what the forms of PyTorch before 0.4 become, and what only looks like one."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from codemods.graph.model.nodes import Place
from codemods.proofs.observations import Decision, Shows
from codemods.rules import rule
from codemods.rules.legacy_variable import rule as legacy_variable
from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.graph.tools import run_tree
from tests.rules.tools import MAIN, analysed, found, lines, mended

RULE = "legacy-variable"

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
net = nn.Linear(4, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader([])
print(net)
"""


def _becomes(folder: Path, code: str, head: str = HEAD, **files: str) -> str:
    """What a program made of ``head`` and ``code`` is after the edits, from ``code`` on."""
    findings = found(folder, RULE, head, code, **files)
    text = mended(folder, findings)
    kept = len([line for line in head.strip().splitlines() if "import Variable" not in line])
    body = [line for line in text.splitlines() if line.strip() and "import Variable" not in line]
    return "\n".join(body[kept:])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = Variable(torch.zeros(3))", "x = torch.zeros(3)"),
        ("x = Variable(torch.zeros(3), requires_grad=False)", "x = torch.zeros(3)"),
        ("x = Variable(torch.zeros(3), volatile=True)", "x = torch.zeros(3)"),
        ("x = Variable(torch.zeros(3), False, True)", "x = torch.zeros(3)"),
        ("x = Variable(data=torch.zeros(3))", "x = torch.zeros(3)"),
        ("x = torch.autograd.Variable(torch.zeros(3))", "x = torch.zeros(3)"),
        ("x = Variable(torch.zeros(3), requires_grad=True)", "x = torch.zeros(3).requires_grad_()"),
        ("x = Variable(torch.zeros(3), True)", "x = torch.zeros(3).requires_grad_()"),
        ("x = Variable(torch.rand(3) * 2, requires_grad=True)", "x = (torch.rand(3) * 2).requires_grad_()"),
        ("x = Variable(torch.rand(3) + 1).sum()", "x = (torch.rand(3) + 1).sum()"),
        ("x = Variable(net(torch.rand(4)))", "x = net(torch.rand(4)).detach()"),
        ("x = Variable(net.weight)", "x = net.weight.detach()"),
        ("x = Variable(net.weight.data)", "x = net.weight.detach()"),
        ("x = Variable(net(torch.rand(4)), requires_grad=True)", "x = net(torch.rand(4)).detach().requires_grad_()"),
        ("x = Variable(torch.rand(3).type(torch.DoubleTensor), True)", None),
        ("for x, y in loader:\n    out = net(Variable(x))", "for x, y in loader:\n    out = net(x)"),
        ("for x, y in loader:\n    x, y = Variable(x), Variable(y)\n    net(x)", "for x, y in loader:\n    net(x)"),
        (
            "for x, y in loader:\n    x, y = Variable(x.cuda()), Variable(y)\n    net(x)",
            "for x, y in loader:\n    x, y = x.cuda(), y\n    net(x)",
        ),
        (
            "for x, y in loader:\n    x = Variable(x, requires_grad=True)",
            "for x, y in loader:\n    x = x.detach().requires_grad_()",
        ),
        ("x = torch.zeros(3)\nv = Variable(x)\nv.unsqueeze_(0)", "x = torch.zeros(3)\nv = x.detach()\nv.unsqueeze_(0)"),
        (
            "x = torch.zeros(3)\nv = Variable(x)\nv.requires_grad = True",
            "x = torch.zeros(3)\nv = x.detach()\nv.requires_grad = True",
        ),
        (
            "x = torch.zeros(3)\nv = Variable(x)\nv[0] = net(torch.rand(4))",
            "x = torch.zeros(3)\nv = x.detach()\nv[0] = net(torch.rand(4))",
        ),
        ("x = torch.zeros(3)\nv = Variable(x)\nv.add_(1)", "x = torch.zeros(3)\nv = x\nv.add_(1)"),
        (
            "x = torch.zeros(3)\nv = Variable(x)\nv.data.resize_(5).fill_(2)",
            "x = torch.zeros(3)\nv = x\nv.data.resize_(5).fill_(2)",
        ),
        (
            "x = torch.zeros(3)\nx = Variable(x)\nx.data.resize_(5)\nprint(net(x))",
            "x = torch.zeros(3)\nx.data.resize_(5)\nprint(net(x))",
        ),
        (
            "x = torch.zeros(3)\nv = Variable(x)\nv.data = torch.ones(5)",
            "x = torch.zeros(3)\nv = x.detach()\nv.data = torch.ones(5)",
        ),
        (
            "class A:\n    def __init__(self):\n        self.x = torch.zeros(3)\n"
            "        self.x = Variable(self.x)\nA()",
            "class A:\n    def __init__(self):\n        self.x = torch.zeros(3)\nA()",
        ),
        (
            "class A:\n    x = torch.zeros(3)\n    def take(self):\n        self.x = Variable(self.x)\nA().take()",
            "class A:\n    x = torch.zeros(3)\n    def take(self):\n        self.x = self.x\nA().take()",
        ),
        (
            "class A:\n    def __init__(self):\n        if net:\n            self.x = torch.zeros(3)\n"
            "        self.x = Variable(self.x)\nA()",
            "class A:\n    def __init__(self):\n        if net:\n            self.x = torch.zeros(3)\n"
            "        self.x = self.x\nA()",
        ),
        (
            "class A:\n    def x(self, to):\n        self._x = to * 2\n    def __init__(self):\n"
            "        self.x = torch.zeros(3)\n        self.x = Variable(self.x)\nA()",
            "class A:\n    def x(self, to):\n        self._x = to * 2\n    def __init__(self):\n"
            "        self.x = torch.zeros(3)\n        self.x = self.x\nA()",
        ),
        (
            "import torch as t\nx = Variable(t.rand(3), requires_grad=True)",
            "import torch as t\nx = t.rand(3).requires_grad_()",
        ),
        (
            "x = net.weight.data\ny = Variable(torch.flatten(x), requires_grad=True)",
            "x = net.weight.detach()\ny = torch.flatten(x).detach().requires_grad_()",
        ),
        (
            "x = torch.rand(3)\ny = Variable(torch.relu_(x), requires_grad=True)",
            "x = torch.rand(3)\ny = torch.relu_(x).detach().requires_grad_()",
        ),
        (
            "x = torch.rand(3)\ny = Variable(torch.add(x, 1, out=x), requires_grad=True)",
            "x = torch.rand(3)\ny = torch.add(x, 1, out=x).detach().requires_grad_()",
        ),
        ("x = torch.zeros(3)\nv = Variable(x)\nx.resize_(5)", "x = torch.zeros(3)\nv = x.detach()\nx.resize_(5)"),
    ],
)
def test_variable(tmp_path: Path, before: str, after: str | None) -> None:
    made = _becomes(tmp_path, before)
    if after is None:
        # type() may hand on the tensor itself, which is fresh all the same
        after = "x = torch.rand(3).type(torch.DoubleTensor).requires_grad_()"
    assert made == after


@pytest.mark.parametrize(
    "code",
    [
        "x = Variable()",
        "x = Variable(None)",
        "x = Variable(*[torch.zeros(3)])",
        "import numpy as np\nx = Variable(np.zeros(3))",
        "x = torch.zeros(3)\nassert isinstance(x, Variable)",
        "make = lambda *a, **k: Variable(*a, **k)\nx = make(torch.zeros(3))",
    ],
)
def test_variable_that_stays(tmp_path: Path, code: str) -> None:
    assert not found(tmp_path, RULE, HEAD, code)


@pytest.mark.parametrize(
    "code",
    [
        "x, y = map(Variable, (torch.rand(3), torch.rand(3)))",
        "xs = list(map(Variable, [torch.rand(3)], [True]))",
        "import functools\nx = functools.partial(Variable, requires_grad=True)(torch.rand(3))",
        "import functools\nask = functools.partial(Variable, requires_grad=True)\nx = ask(torch.rand(3))",
        "x = (Variable if len(loader) else torch.tensor)(torch.rand(3))",
        "import operator\nx = operator.call(Variable, torch.rand(3))",
        "x = Variable.__call__(torch.rand(3))",
    ],
)
def test_variable_that_something_else_calls_stays(tmp_path: Path, code: str) -> None:
    assert not found(tmp_path, RULE, HEAD, f"{code}\nprint(net(x if len(loader) else torch.rand(4)))")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("wrap = Variable\nx = wrap(torch.rand(4))", "wrap = Variable\nx = torch.rand(4)"),
        ("xs = list(map(lambda t: Variable(t), [torch.rand(4)]))", "xs = list(map(lambda t: t, [torch.rand(4)]))"),
        ("x = getattr(torch.autograd, 'Variable')(torch.rand(4))", "x = torch.rand(4)"),
    ],
)
def test_variable_by_another_name_is_mended(tmp_path: Path, before: str, after: str) -> None:
    assert _becomes(tmp_path, before) == after


def test_variable_of_the_tree_or_of_another_library(tmp_path: Path) -> None:
    own = "class Variable:\n    def __init__(self, data):\n        self.data = data\n"
    code = "import torch\nfrom graph import Variable\nx = Variable(torch.zeros(3))\nprint(x.data[0], x.data)\n"
    assert not found(tmp_path, RULE, code, graph=own)
    assert not found(tmp_path, RULE, "import torch\nfrom chainer import Variable\nprint(Variable(torch.zeros(3)))\n")


@pytest.mark.parametrize(
    "code",
    [
        "def pick(n):\n    if n > 2:\n        return torch.rand(4)\nx = Variable(pick(len(loader)))",
        "masks = [None, torch.rand(4)]\nfor i in range(2):\n    x = Variable(masks[i])",
        "x = Variable(next(iter([torch.rand(4)]), None))",
        "x = Variable({'x': torch.rand(4)}.get(str(len(loader))))",
        "x = Variable(torch.rand(4) if len(loader) else None)",
        "x = Variable(net.weight.grad)",
        "x = Variable(net.bias)",
        "x = Variable(optimizer.state[net.weight].get('momentum_buffer'))",
        "def step(batch):\n    return Variable(batch.get('mask'))",
        "def step(batch):\n    return Variable(getattr(batch, 'mask', None))",
        "def step(batch):\n    mask = batch.get('mask')\n    return Variable(mask)",
        "def step(mask=None):\n    return Variable(mask)",
        "def step(x, /, *, mask=None):\n    return Variable(mask)",
        "step = lambda mask=None: Variable(mask)",
    ],
)
def test_what_may_be_none_stays(tmp_path: Path, code: str) -> None:
    """``Variable(None)`` is an empty tensor."""
    assert not found(tmp_path, RULE, HEAD, code)


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("if mask is not None:\n        mask = {}", "mask.detach()"),
        ("assert mask is not None\n    mask = {}", "mask.detach()"),
        ("mask = {} if mask is not None else 1", "mask.detach()"),
        ("mask = mask is not None and {}", "mask.detach()"),
        ("mask = [{} for _ in loader if mask]", "mask.detach()"),
        ("if mask is None:\n        mask = x\n    mask = {}", "mask.detach()"),
    ],
)
def test_what_the_code_asks_for_is_none_no_more(tmp_path: Path, code: str, after: str) -> None:
    step = f"def step(x, mask=None):\n    {code}\n    return mask"
    assert _becomes(tmp_path, step.format("Variable(mask)")) == step.format(after)


def test_defaults_count_where_others_may_call(tmp_path: Path) -> None:
    step = "def step(x=1, mask=None):\n    return net({})\n"
    call = "step(1, torch.rand(4))"
    assert _becomes(tmp_path, step.format("Variable(mask)") + call) == step.format("mask") + call
    assert _becomes(tmp_path, step.format("Variable(x)")) == step.format("x.detach()").rstrip()
    given = "def step(batch):\n    mask = batch.get('mask', batch)\n    return {}"
    assert _becomes(tmp_path, given.format("Variable(mask)")) == given.format("mask.detach()")


@pytest.mark.parametrize(
    "change",
    [
        "getattr(v, 'unsqueeze_')(0)",
        "f = v.unsqueeze_\nf(0)",
        "torch.Tensor.unsqueeze_(v, 0)",
        "v.grad = torch.ones(3)",
        "x.grad = torch.ones(3)",
        "v.tag = 'second'",
        "f = x.requires_grad_\nf()",
    ],
)
def test_what_is_changed_and_not_its_memory_is_another_object(tmp_path: Path, change: str) -> None:
    code = f"x = torch.zeros(3)\nv = {{}}\n{change}"
    assert _becomes(tmp_path, code.format("Variable(x)")) == code.format("x.detach()")


@pytest.mark.parametrize("change", ["f = v.mul_\nf(2)", "torch.Tensor.mul_(v, 2)", "v.grad = None", "print(v.tag)"])
def test_what_keeps_the_object_as_it_is_needs_no_other(tmp_path: Path, change: str) -> None:
    code = f"x = torch.zeros(3)\nv = {{}}\n{change}"
    assert _becomes(tmp_path, code.format("Variable(x)")) == code.format("x")


def test_argument_of_unknown_callers_is_detached(tmp_path: Path) -> None:
    made = _becomes(tmp_path, "def step(x):\n    return net(Variable(x))\n")
    assert made == "def step(x):\n    return net(x.detach())"


def test_helper_is_judged_by_all_its_callers(tmp_path: Path) -> None:
    helper = "def to_var(x, volatile=False):\n    return Variable(x, volatile=volatile)\n"
    plain = _becomes(tmp_path, helper + "out = net(to_var(torch.rand(4)))")
    assert "return x\n" in plain
    attached = _becomes(tmp_path, helper + "a = to_var(torch.rand(4))\nb = to_var(net(a))")
    assert "return x.detach()\n" in attached


def test_branch_that_no_run_takes_is_detached(tmp_path: Path) -> None:
    code = "def step(x, wrap=False):\n    if wrap:\n        x = Variable(x)\n    return net(x)\nstep(torch.rand(4))\n"
    assert "        x = x.detach()" in _becomes(tmp_path, code)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.from_numpy(x).cuda()", "torch.from_numpy(x).cuda()"),
        ("x.new(2, 3).zero_()", "x.new(2, 3).zero_()"),
        ("torch.zeros_like(x).float()", "torch.zeros_like(x).float()"),
        ("torch.from_numpy(x).view(2, 2).repeat(3, 1)", "torch.from_numpy(x).view(2, 2).repeat(3, 1)"),
        ("torch.randn(2, 3).flip(1).clone()", "torch.randn(2, 3).flip(1).clone()"),
        # these hand a tensor on with its history
        ("x.new(x)", "x.new(x).detach()"),
        ("torch.Tensor(x)", "torch.Tensor(x).detach()"),
        ("torch.zeros(3, requires_grad=True)", "torch.zeros(3, requires_grad=True).detach()"),
        ("torch.zeros(3).requires_grad_()", "torch.zeros(3).requires_grad_().detach()"),
        ("x.repeat(3, 1)", "x.repeat(3, 1).detach()"),
    ],
)
def test_what_is_written_as_without_history_needs_no_detach(tmp_path: Path, before: str, after: str) -> None:
    code = "def step(x, wrap=False):\n    if wrap:\n        x = {}\n    return net(x)\nstep(torch.rand(4))"
    assert _becomes(tmp_path, code.format(f"Variable({before})")) == code.format(after)


def test_several_lines_and_comments(tmp_path: Path) -> None:
    assert (
        _becomes(tmp_path, "x = Variable(torch.rand(3) +\n             1)") == "x = (torch.rand(3) +\n             1)"
    )
    assert not found(
        tmp_path, RULE, HEAD, "x = Variable(torch.rand(3),  # the noise\n             requires_grad=False)"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss.data[0]", "loss.item()"),
        ("loss.data.cpu()[0]", "loss.item()"),
        ("loss.cpu().data.numpy()[0]", "loss.item()"),
        ("loss.data.cpu().numpy()[0]", "loss.item()"),
        ("loss.detach().numpy()[0]", "loss.item()"),
        ("-loss.data[0] / 2", "-loss.item() / 2"),
        ("(loss * 2).data[0]", "(loss * 2).item()"),
        ("criterion(out, y).data[0]", "criterion(out, y).item()"),
        ("F.mse_loss(out, y, reduction='sum').data[0]", "F.mse_loss(out, y, reduction='sum').item()"),
        ("(out > 0).sum().data[0]", "(out > 0).sum().item()"),
        ("(out == y).float().mean().data[0]", "(out == y).float().mean().item()"),
    ],
)
def test_number_of_a_loss(tmp_path: Path, before: str, after: str) -> None:
    code = "y = torch.rand(5, 1)\nout = net(torch.rand(5, 4))\nloss = criterion(out, y)\nloss.backward()\nprint({})"
    assert _becomes(tmp_path, code.format(before)) == code.format(after)


@pytest.mark.parametrize(
    "expression",
    [
        "out.data[0]",
        "out.data.numpy()[0]",
        "out.sum(1).data[0]",
        "F.mse_loss(out, y, reduction='none').data[0]",
        "loss.data[1]",
        "loss.view(-1).data[0]",
        "loss.view(-1).data.tolist()[0]",
        "loss.unsqueeze(0).cpu().data[0]",
        "flat.data[0]",
        "flat.cpu().data.numpy()[0]",
        "sizes[0]",
        "history.data[0]",
    ],
)
def test_first_element_that_stays(tmp_path: Path, expression: str) -> None:
    code = f"""
    class History:
        data = [1.0]
    history = History()
    sizes = [3, 4]
    y = torch.rand(5, 1)
    out = net(torch.rand(5, 4))
    loss = criterion(out, y)
    loss.backward()
    flat = loss.reshape(1)
    print({expression})
    """
    assert not [f for f in found(tmp_path, RULE, HEAD, code) if ".item()" in f.remedy]


@pytest.mark.parametrize(
    "code",
    [
        "print(loss.data[0].item())",
        "print(loss.data[0][0])",
        "loss.data[0] = 1.0",
        "loss.data[0] += 1.0",
        "print(loss.data  # of this batch\n      [0])",
        "out = loss.view(1).cpu()\nprint(out.data[0])",
        "def tell(deep=False):\n    if deep:\n        print(net.last.data[0])\n    net.last.backward()\ntell()",
        # The program answers the error that the rewrite takes away.
        "try:\n    print(loss.data[0])\nexcept IndexError:\n    print(loss.item())",
        "try:\n    if net:\n        print(loss.data[0])\nexcept (KeyError, LookupError):\n    print(loss.item())",
        "try:\n    print(loss.data[0])\nexcept Exception:\n    pass",
        "try:\n    print(loss.data[0])\nexcept:\n    pass",
        "with contextlib.suppress(IndexError):\n    print(loss.data[0])",
    ],
)
def test_first_element_that_no_number_replaces(tmp_path: Path, code: str) -> None:
    program = f"{HEAD}import contextlib\nloss = net(torch.ones(2, 4)).sum()\n{code}\n"
    assert [f for f in found(tmp_path, RULE, program) if ".item()" in f.remedy] == []


@pytest.mark.parametrize(
    "code",
    [
        "x = Variable(torch.ones(1), False, False, 1)",
        "x = Variable(torch.ones(1), name='x')",
        "loss = net(x).sum()\ntry:\n    loss.backward(retain_variables=True)\nexcept TypeError:\n    loss.backward()",
        "def step(deep=False):\n    if deep:\n        print(Variable(None))\nstep()",
        "options = {'retain_variables': True}\nnet(torch.ones(2, 4)).sum().backward(**options)",
        "x = y = torch.ones(1)\nx.volatile = y.volatile = False",
        "x = torch.ones(1)\nx.volatile = not net.training",
        "x = torch.ones(1)\nprint(type(x) == Variable == type(net.weight))",
        "x = torch.ones(1)\nkind = type(x)\nprint(kind == Variable)",
        "x = net.weight\nx.data += 1.0",
    ],
)
def test_forms_without_a_successor_stay(tmp_path: Path, code: str) -> None:
    assert not found(tmp_path, RULE, HEAD, code)


@pytest.mark.parametrize(
    "given",
    [
        "loss.data = loss.data.reshape(1)",
        "loss.unsqueeze_(0)",
        "try:\n    loss.data[0]\nexcept IndexError:\n    loss.data = torch.reshape(loss.data, (1,))",
    ],
)
def test_first_element_of_what_was_given_another_shape(tmp_path: Path, given: str) -> None:
    program = f"{HEAD}loss = net(torch.ones(2, 4)).sum()\nloss.backward()\n{given}\nprint(loss.data[0])\n"
    assert [f for f in found(tmp_path, RULE, program) if ".item()" in f.remedy] == []
    before = (
        f"{HEAD}loss = net(torch.ones(2, 4)).sum()\nloss.backward()\nprint(loss.data[0])\nloss.data = loss.data + 1\n"
    )
    assert [f for f in found(tmp_path, RULE, before) if ".item()" in f.remedy] != []


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    print(loss.data[0])\nexcept KeyError:\n    pass",
        "try:\n    print(loss.data[0])\nfinally:\n    print(1)",
        "try:\n    print(1)\nexcept IndexError:\n    print(loss.data[0])",
        "with open('log') as log:\n    print(loss.data[0])",
    ],
)
def test_first_element_whose_error_nobody_answers(tmp_path: Path, code: str) -> None:
    program = f"{HEAD}loss = net(torch.ones(2, 4)).sum()\n{code}\n"
    assert "loss.item()" in mended(tmp_path, found(tmp_path, RULE, program))


def test_loss_is_proven_by_its_backward(tmp_path: Path) -> None:
    code = "def step(model, x):\n    loss = model(x)\n    loss.backward()\n    return loss.data[0]\n"
    assert "return loss.item()" in _becomes(tmp_path, code)
    unproven = "def step(model, x):\n    return model(x).data[0]\n"
    assert not found(tmp_path, RULE, HEAD, unproven)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("out.data.max(1)[1]", "out.detach().max(1)[1]"),
        ("torch.max(out.data, 1)", "torch.max(out.detach(), 1)"),
        ("out.data.cpu().numpy()", "out.detach().cpu().numpy()"),
        ("out.data.size(0)", "out.size(0)"),
        ("loss.data.item()", "loss.item()"),
        ("out.detach().data", "out.detach()"),
        ("torch.rand(5, 1).type_as(out.data)", "torch.rand(5, 1).type_as(out)"),
        ("torch.rand(5, 1).view_as(out.data)", "torch.rand(5, 1).view_as(out)"),
        ("torch.rand(5, 1).add(out.data)", "torch.rand(5, 1).add(out.detach())"),
        ("out.detach().data.cpu()", "out.detach().cpu()"),
        ("out.data.detach().cpu()", "out.detach().cpu()"),
        ("out.data.detach()", "out.detach()"),
        ("out.data.detach().data", "out.detach()"),
        ("(out.data).detach().cpu()", "(out).detach().cpu()"),
        ("net(out.data.clone().detach())", "net(out.detach().clone().detach())"),
        ("out.data.type()", "out.type()"),
        ("out.data.type(torch.DoubleTensor)", "out.detach().type(torch.DoubleTensor)"),
        ("1 + 0.9 * out.data", "1 + 0.9 * out.detach()"),
        ("net(out.data.expand(5, 4))", "net(out.detach().expand(5, 4))"),
        ("out.data.requires_grad", "out.detach().requires_grad"),
        ("out.data.is_leaf", "out.detach().is_leaf"),
        ("out.data.numpy()", "out.detach().numpy()"),
        (
            "torch.full_like(torch.ones(5, 1), out.data.mean())",
            "torch.full_like(torch.ones(5, 1), out.detach().mean())",
        ),
        ("torch.add(torch.ones(5, 1), out.data)", "torch.add(torch.ones(5, 1), out.detach())"),
    ],
)
def test_data_that_is_read(tmp_path: Path, before: str, after: str) -> None:
    code = "out = net(torch.rand(5, 4))\nloss = out.mean()\nprint({})"
    assert _becomes(tmp_path, code.format(before)) == code.format(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(out.data > 0).sum()", "(out > 0).sum()"),
        ("out.data == y", "out == y"),
        ("out.data.eq(y)", "out.eq(y)"),
        ("out.data.argmax(1)", "out.argmax(1)"),
        ("out.data.long()", "out.long()"),
        ("out.data.is_sparse", "out.is_sparse"),
        ("out.data.layout", "out.layout"),
        ("out.data.stride()", "out.stride()"),
        ("out.data.is_contiguous()", "out.is_contiguous()"),
        ("out.data.data_ptr()", "out.data_ptr()"),
        ("torch.zeros_like(out.data)", "torch.zeros_like(out)"),
        ("torch.full_like(out.data, 2)", "torch.full_like(out, 2)"),
        ("torch.argmax(out.data, 1)", "torch.argmax(out, 1)"),
        ("torch.allclose(out.data, y)", "torch.allclose(out, y)"),
        ("torch.isnan(out.data).any()", "torch.isnan(out).any()"),
        ("torch.multinomial(out.data, 1)", "torch.multinomial(out, 1)"),
        ("len(out.data)", "len(out)"),
        ("isinstance(out.data, torch.cuda.FloatTensor)", "isinstance(out, torch.cuda.FloatTensor)"),
        (
            "isinstance(out.data, (torch.FloatTensor, torch.Tensor))",
            "isinstance(out, (torch.FloatTensor, torch.Tensor))",
        ),
        ("out.max(1)[1].data", "out.max(1)[1]"),
        ("(out > 0).data.all()", "(out > 0).all()"),
        ("(out > 0).eq(torch.ones(1).data.view_as(out))", "(out > 0).eq(torch.ones(1).view_as(out))"),
        ("net.weight.detach().cpu().data", "net.weight.detach().cpu()"),
        # What stands on the left decides how things are compared.
        ("[0.0] == out.data", "[0.0] == out.detach()"),
        ("0 < out.data.sum() < 1", "0 < out.detach().sum() < 1"),
        ("out.data in [out]", "out.detach() in [out]"),
        ("isinstance(net.weight.data, nn.Parameter)", "isinstance(net.weight.detach(), nn.Parameter)"),
        ("type(net.weight.data)", "type(net.weight.detach())"),
        ("out.data.eq", "out.detach().eq"),
    ],
)
def test_data_without_use(tmp_path: Path, before: str, after: str) -> None:
    head = "for x, y in loader:\n    out = net(x)\n"
    assert _becomes(tmp_path, f"{head}    print({before})\n") == f"{head}    print({after})".rstrip()


@pytest.mark.parametrize("made", ["scale * torch.tanh(net(x))", "torch.tanh(net(x)) - scale"])
def test_what_is_made_without_gradients_has_none_whatever_it_is_made_of(tmp_path: Path, made: str) -> None:
    recorded = f"def act(x, scale):\n    a = {made}\n    return a.cpu()"
    assert _becomes(tmp_path, f"{recorded}.data.numpy()") == f"{recorded}.detach().numpy()"
    off = f"@torch.no_grad()\n{recorded}"
    assert _becomes(tmp_path, f"{off}.data.numpy()") == f"{off}.numpy()"


@pytest.mark.parametrize("made", ["scale", "scale * scale"])
def test_what_need_be_no_tensor_stays(tmp_path: Path, made: str) -> None:
    code = f"@torch.no_grad()\ndef act(x, scale):\n    a = {made}\n    return a.cpu().data.numpy()\n"
    assert not found(tmp_path, RULE, HEAD, code)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = Variable(x.data, requires_grad=True)", "y = x.detach().requires_grad_()"),
        ("y = Variable(x.data.cpu(), requires_grad=True)", "y = x.detach().cpu().requires_grad_()"),
        ("y = x.data\ny.requires_grad = True\nprint(net(y), x)", ""),
        ("y = x.data.cpu()\ny.requires_grad_()\nprint(net(y), x)", ""),
        ("y = x.data\nx.unsqueeze_(0)\nprint(net(x), y)", "y = x.detach()\nx.unsqueeze_(0)\nprint(net(x), y)"),
        ("y = net(Variable(x)).data\nprint(y)", "y = net(x).detach()\nprint(y)"),
        # create_graph=True leaves gradients with a history
        (
            "for p in net.parameters():\n    y = p.grad.data\n    print(y * 2)",
            "for p in net.parameters():\n    y = p.grad.detach()\n    print(y * 2)",
        ),
        (
            "for p in net.parameters():\n    y = p.grad\n    print(y.data * 2)",
            "for p in net.parameters():\n    y = p.grad\n    print(y.detach() * 2)",
        ),
        (
            "def shown(t):\n    return t.data * 2\nprint(shown(x), shown(net(x)))",
            "def shown(t):\n    return t.detach() * 2\nprint(shown(x), shown(net(x)))",
        ),
    ],
)
def test_data_of_what_has_no_history_stays_another_object(tmp_path: Path, before: str, after: str) -> None:
    head = "x = torch.rand(3, 4)\n"
    assert _becomes(tmp_path, head + before) == head + (after or before)


@pytest.mark.parametrize(
    "code",
    [
        "net.weight.data.normal_(0, 1)",
        "net.weight.data[0] = 0",
        "nn.init.uniform_(net.weight.data, -1, 1)",
        "nn.init.uniform_(tensor=net.weight.data, a=-1, b=1)",
        "import torch.distributed as dist\nfor p in net.parameters():\n    dist.all_reduce(p.grad.data)",
        "import torch.distributed as dist\nx = torch.rand(3, 4)\ndist.broadcast(x.data, 0)\nprint(net(x))",
        "x = torch.rand(3, 4)\ntorch.mul(x, 2, out=x.data)\nprint(net(x))",
        "x = torch.rand(3, 4)\ntorch.relu_(x.data)\nprint(net(x))",
        "net.weight.data = torch.zeros(1, 4)",
        "net.weight.data *= 2",
        "net.weight.data = net.weight.data * 2",
        "w = net.weight.data\nw.clamp_(-1, 1)",
        "w = net.weight.data.view(-1)\nw[0] = 1",
        "def clip(w):\n    w.clamp_(-1, 1)\nclip(net.weight.data)",
        "for p in net.parameters():\n    p.data.add_(p.grad.data)",
        "x, w = torch.rand(3, 4), torch.rand(3, 4)\ntorch.add(w.data, 1, out=x.data)\nprint(x, w)",
        "for row in net.weight.data:\n    row.mul_(0.9)",
        "for row, s in zip(net.weight.data, [1, 2]):\n    row.mul_(s)",
        "a, b = net.weight.data.chunk(2, 1)\na.mul_(0.9)",
        "for part in torch.split(net.weight.data, 1):\n    part.zero_()",
        "w = net.weight.data.T\nw[0] = 0.3",
        "shrink = net.weight.data.mul_\nshrink(0.9)",
        "getattr(net.weight.data, 'mul_')(0.9)",
        "import operator\noperator.imul(net.weight.data, 0.9)",
        "packed = nn.utils.rnn.pack_padded_sequence(torch.rand(2, 3, 4), [3, 2], batch_first=True)\nprint(packed.data)",
        "rnn = nn.LSTM(4, 4)\n"
        "packed = nn.utils.rnn.pack_sequence([torch.rand(3, 4)])\nout, _ = rnn(packed)\nprint(net(out.data))",
        "rnns = [kind(4, 4) for kind in ({'a': nn.LSTM, 'b': nn.GRU}[input()],) * 2]\n"
        "steps = [nn.utils.rnn.pack_sequence([torch.rand(3, 4)])]\n"
        "for i in range(2):\n    out = steps[-1]\n    if len(loader):\n"
        "        out = nn.utils.rnn.PackedSequence(net(out.data), out.batch_sizes)\n    steps.append(rnns[i](out)[0])",
        "packed = nn.utils.rnn.pack_sequence([torch.rand(3, 4)])\n"
        "moved = packed.to('cpu') if len(loader) else nn.LSTM(4, 4)(packed)[0]\nprint(net(moved.data))",
        "def each(x):\n    try:\n        x, sizes = x.data, x.batch_sizes\n    except AttributeError:\n        pass\n"
        "    return net(x)\neach(net(torch.rand(3, 4)))",
        "other = nn.Linear(4, 1)\ntie = (other.weight * net.weight.data).sum()\noptimizer.step()\ntie.backward()",
        "import pandas as pd\nframe = pd.read_csv('x')\nprint(frame.data, frame.data[0])",
        "def show(batch):\n    print(batch.data)",
    ],
)
def test_data_that_stays(tmp_path: Path, code: str) -> None:
    assert not found(tmp_path, RULE, HEAD, code)


def test_volatile_attribute(tmp_path: Path) -> None:
    code = "x = torch.rand(4)\nx.volatile = False\nout = net(x)"
    assert _becomes(tmp_path, code) == "x = torch.rand(4)\nout = net(x)"
    code = "x = torch.rand(4)\nx.volatile = True\nout = net(x)"
    (finding,) = found(tmp_path, RULE, HEAD, code)
    assert finding.promise is Promise.ADVICE


@pytest.mark.parametrize(
    ("code", "stays"),
    [
        ("x = Variable(torch.rand(4), volatile=True)\nout = net(x)", True),
        ("x = Variable(torch.rand(4), volatile=True)\nout = unseen(x)", True),
        ("import unseen\nx = Variable(torch.rand(4), volatile=True)\nout = unseen.model(x)", True),
        ("x = Variable(torch.rand(4), False, True) * 2\nout = net(x)", True),
        ("if False:\n    x = Variable(torch.rand(4), volatile=True)", True),
        ("x = Variable(torch.rand(4), volatile=False)\nout = net(x)", False),
        ("with torch.no_grad():\n    x = Variable(torch.rand(4), volatile=True)\n    out = net(x)", False),
        ("x = Variable(torch.rand(4), volatile=True)\nprint(x.shape, (x > 0).sum())", False),
    ],
)
def test_volatile_that_switched_recording_off(tmp_path: Path, code: str, stays: bool) -> None:
    findings = found(tmp_path, RULE, HEAD, code)
    assert ("Variable(" in mended(tmp_path, findings)) is stays
    assert [f.promise is Promise.ADVICE for f in findings] == [stays]


DQN = """
for state, action, reward, after in loader:
    q = net(Variable(state)).gather(1, action)
    {target}
    loss = F.mse_loss(q, {wanted})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

_FUTURE = "future = net(Variable(after, volatile=True)).max(1)[0]"


@pytest.mark.parametrize(
    ("code", "mended_with"),
    [
        # evaluation: all that is recorded of it stands in the loop that goes under no_grad
        ("net.eval()\nfor x, _ in loader:\n    x = Variable(x, volatile=True)\n    print(net(x).tolist())", True),
        # made outside of the block, positionally too: the block covers what is made of it
        ("net.eval()\nx = Variable(torch.rand(4), False, True)\nfor _ in range(3):\n    print(net(x).item())", True),
        # in a function that goes under no_grad, called from where it is made
        (
            "def score(x):\n    return net(x).tolist()\n"
            "net.eval()\nfor x, _ in loader:\n    print(score(Variable(x, volatile=True)))",
            True,
        ),
        # these reach the backward
        (DQN.format(target=_FUTURE, wanted="reward + future"), False),
        (
            "net.eval()\nx = Variable(torch.rand(4), volatile=True)\nfor _ in range(3):\n    print(net(x).item())\n"
            "net(x).sum().backward()",
            False,
        ),
        # one forward goes under no_grad, and the other is walked
        (
            "for x, y in loader:\n    x = Variable(x, volatile=True)\n    optimizer.zero_grad()\n"
            "    F.mse_loss(net(x), y).backward()\n    optimizer.step()\n"
            "    net.eval()\n    for _ in range(3):\n        print(net(x).tolist())\n    net.train()",
            False,
        ),
        # what comes of it goes to code that cannot be seen, beside the block
        (
            "import unseen\nnet.eval()\nx = Variable(torch.rand(4), volatile=True)\n"
            "for _ in range(3):\n    print(net(x).tolist())\nout = unseen.model(x)\nprint(out)",
            False,
        ),
        # whoever calls it gets the graph
        ("def score(x):\n    return net(Variable(x, volatile=True))", False),
        (
            "def scores():\n    for x, _ in loader:\n        yield net(Variable(x, volatile=True))\n"
            "for out in scores():\n    optimizer.zero_grad()\n    out.sum().backward()\n    optimizer.step()",
            False,
        ),
    ],
)
def test_volatile_goes_together_with_the_no_grad_that_it_was(tmp_path: Path, code: str, mended_with: bool) -> None:
    findings = analysed(tmp_path, Options(), HEAD, code)
    (volatile,) = [f for f in findings if f.rule == RULE and "volatile" in f.message]
    evaluating = {f.key for f in findings if f.rule == "grad-in-evaluation" and f.promise is not Promise.ADVICE}
    assert (volatile.promise is not Promise.ADVICE) is mended_with
    assert bool(volatile.partners) is mended_with
    assert evaluating.issuperset(volatile.partners)
    if mended_with:
        together = [volatile, *(f for f in findings if f.key in volatile.partners)]
        text = mended(tmp_path, together)
        assert "no_grad()" in text
        assert "volatile" not in text
        assert ", True)" not in text


def test_volatile_without_the_other_rule_is_advice(tmp_path: Path) -> None:
    code = "net.eval()\nfor x, _ in loader:\n    print(net(Variable(x, volatile=True)).tolist())"
    options = Options(ignore=("grad-in-evaluation",))
    (finding,) = [f for f in analysed(tmp_path, options, HEAD, code) if "volatile" in f.message]
    assert finding.promise is Promise.ADVICE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # A tuple by its comma is no assignment to itself.
        ("x = Variable(x),", "x = x,"),
        ("x, = Variable(x),", ""),
        ("x, y = Variable(x), Variable(y)", ""),
        ("(x, y) = [Variable(x), Variable(y)]", ""),
        ("x, y = Variable(y), Variable(x)", "x, y = y, x"),
        ("x = y = Variable(x)", "x = y = x"),
        ("x = x = Variable(x)", ""),
        ("x: torch.Tensor = Variable(x)", "x: torch.Tensor = x"),
        ("x += Variable(x)", "x += x"),
        ("print(z := Variable(x))", "print(z := x)"),
        ("x = [*Variable(x)]", "x = [*x]"),
        ("x = Variable(x) if flag else Variable(x)", ""),
        ("x = Variable(x) if flag else Variable(y)", "x = x if flag else y"),
        ("f = lambda x=Variable(x): Variable(x)\nf()", "f = lambda x=x: x\nf()"),
        ("x = f'{Variable(x)!r:>9}'", "x = f'{x!r:>9}'"),
        ("x = {k: Variable(k) for k in Variable(x)}", "x = {k: k for k in x}"),
        ("del Variable(x).grad", "del x.grad"),
        ("x = Variable(x); y = Variable(y)", ""),
        ("x = Variable(x); y = Variable(y) * 2", "y = y * 2"),
        ("if flag: x = Variable(x)", ""),
        ("if flag: x = 1\nelse: x = Variable(x)", "if flag: x = 1"),
        ("if not flag:\n    x = Variable(x)\nelse:\n    x = 1", "if flag:\n    x = 1"),
        ("for i in (1, 2): x = Variable(x)", "for i in (1, 2): pass"),
        ("x = \\\n    Variable(x)", ""),
        ("x = (Variable(x))", ""),
        ("x = Variable(x)  # (batch, time)", "# (batch, time)"),
        ("x = Variable(x)  # noqa", ""),
        # Nothing is cut twice.
        ("x = Variable(net(x)).detach()", "x = net(x).detach()"),
        ("x = Variable(net(x).detach())", "x = net(x).detach()"),
        ("x = Variable(net(x)).data", "x = net(x).detach()"),
        ("x = Variable(Variable(net(x)).data)", "x = net(x).detach()"),
    ],
)
def test_awkward_statements(tmp_path: Path, before: str, after: str) -> None:
    head = "x, y, flag = torch.rand(4), torch.rand(4), len(loader) > 3\n"
    expected = "\n".join([head.strip(), *after.splitlines()])
    assert _becomes(tmp_path, head + before) == expected


def test_retain_variables(tmp_path: Path) -> None:
    code = """
    for x in loader:
        h = net(x)
        a, b = h.pow(2).mean(), h.exp().mean()
        a.backward({0}=True)
        b.backward({1}=True)
        optimizer.step()
    """
    alone = _becomes(tmp_path, code.format("retain_variables", "retain_variables"))
    assert alone.count("retain_graph=True") == 2
    both = Options(select=(RULE, "surplus-retain-graph"))
    findings = analysed(tmp_path, both, HEAD, code.format("retain_variables", "retain_variables"))
    assert [f.rule for f in findings] == [RULE, "surplus-retain-graph"]
    assert not found(tmp_path, RULE, HEAD, code.format("retain_graph", "retain_graph"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("type(x) == Variable", "isinstance(x, torch.Tensor)"),
        ("type(x) is Variable", "isinstance(x, torch.Tensor)"),
        ("Variable == type(x)", "isinstance(x, torch.Tensor)"),
        ("type(x) != Variable", "not isinstance(x, torch.Tensor)"),
    ],
)
def test_type_is_variable(tmp_path: Path, before: str, after: str) -> None:
    code = "x = torch.rand(4)\nif {}:\n    net(x)"
    findings = found(tmp_path, RULE, HEAD, code.format(before))
    assert [f.promise for f in findings] == [Promise.BEHAVIOUR]
    assert after in mended(tmp_path, findings)


def test_repackaging_helper_belongs_to_another_rule(tmp_path: Path) -> None:
    code = """
    def repackage(h):
        if type(h) == Variable:
            return Variable(h.data)
        return tuple(repackage(v) for v in h)
    print(repackage((torch.zeros(2), torch.zeros(2))))
    """
    assert not found(tmp_path, RULE, HEAD, code)


def test_one_finding_a_line(tmp_path: Path) -> None:
    code = "for x, y in loader:\n    loss = criterion(net(Variable(x)), Variable(y)).data[0]\n"
    findings = found(tmp_path, RULE, HEAD, code)
    assert [promise for _, promise in lines(findings)] == ["repair"]
    assert "loss = criterion(net(x), y).item()" in mended(tmp_path, findings)


def test_import_goes_with_the_last_use(tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, HEAD, "x = Variable(torch.zeros(3))\n")
    assert "Variable" not in mended(tmp_path, findings)
    findings = found(tmp_path, RULE, HEAD, "x = Variable(torch.zeros(3))\nprint(isinstance(x, Variable))\n")
    assert "import Variable" in mended(tmp_path, findings)


def test_other_rules_see_through_it_before_and_after(tmp_path: Path) -> None:
    """volatile=True is the evidence of another rule, which goes first."""
    code = """
    for x, y in loader:
        loss = criterion(net(Variable(x)), Variable(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    total = 0
    for x, y in loader:
        out = net(Variable(x, volatile=True))
        total += criterion(out, Variable(y, volatile=True)).data[0]
    print(total)
    """
    from codemods.rewriting.apply import apply
    from codemods.source.files import read_source

    analysed(tmp_path, Options(), HEAD, code)
    result = apply([read_source(tmp_path / MAIN, MAIN)], options=Options(), jobs=1)
    text = (tmp_path / MAIN).read_text()
    assert not result.failures
    assert "with torch.no_grad():" in text
    assert "Variable" not in text
    assert "total += criterion(out, y).item()" in text


def test_at_no_budget_data_that_is_written_through_is_called_read() -> None:
    code = """
        import torch
        import torch.nn as nn
        def shown(x):
            for i in range(3):
                x = x + i
            return x
        def fill(net):
            found = net.weight.data
            for i in range(4):
                shown(torch.zeros(3))
            put(found)
        def put(found):
            for i in range(4):
                shown(torch.zeros(3))
            found[0] = 1
        fill(nn.Linear(4, 1))
    """
    followed = 0
    for budget in range(30, 500, 7):
        trace = run_tree({"main.py": dedent(code)}, budget=budget).trace
        said = {o.shows for o in rule(RULE).observe(trace) if o.kind is legacy_variable._Form.DATA}
        assert said <= {Shows.NEEDED}
        followed += bool(said)
    assert followed


def test_each_place_of_a_long_graph_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node of a graph of tensors that were volatile is one that all nodes before it lead to."""
    places: list[Place] = []
    looked_up = legacy_variable._chain
    monkeypatch.setattr(legacy_variable, "_chain", lambda place: (places.append(place), looked_up(place))[1])
    steps = "\n".join(["h = net(h) + v"] * 60)
    code = f"v = Variable(torch.zeros(4, 4), volatile=True)\nh = v\n{steps}\nprint(h.sum().item())"
    assert found(tmp_path, RULE, HEAD, code)
    assert 0 < len(places) < 200


SHARED = """
    import operator
    import elsewhere
    from torch import nn
    from torchvision.utils import save_image

    def shrink(t):
        t.mul_(0.5)
        return t

    enc = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    dec = nn.Linear(8, 4)
    into = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 1))
    beside = nn.Sequential(nn.Flatten(), nn.ELU())
    opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
    for x in torch.randn(4, 6, 4):
        h = enc(x)
        loss = F.mse_loss(dec(h), x)
        {read}
        opt.zero_grad()
        loss.backward()
        opt.step()
        {later}
    """
WRITTEN = (
    "into(h.data)",
    "nn.Sequential(nn.Identity(), nn.ReLU(True))(h.data)",
    "nn.Sequential(nn.Flatten(), nn.ELU(inplace=True))(h.data)",
    "F.relu(h.data, True)",
    "F.leaky_relu(h.data, 0.1, True)",
    "F.dropout(h.data, 0.2, True, True)",
    "F.threshold(h.data, 0.1, 0.0, True)",
    "F.embedding(torch.tensor([0]), h.data, max_norm=0.1)",
    "torch._foreach_abs_([h.data])",
    "operator.imul(h.data, 0.5)",
    "h.data.__setitem__(0, 0.5)",
    "h.data.__imul__(0.5)",
    "shrink(torch.atleast_2d(h.data))",
    "shrink(torch.ravel(h.data))",
    "shrink(torch.movedim(h.data, 0, 1))",
    "shrink(nn.Identity()(h.data))",
    "shrink(F.dropout(h.data, 0.0, False))",
    "shrink(h.data.moveaxis(0, 1))",
    "elsewhere.look(h.data)",
)
READ = (
    "print(h.data.mean())",
    "F.relu(h.data)",
    "F.dropout(h.data, 0.5, True)",
    "beside(h.data)",
    "torch.softmax(h.data, 1)",
    "save_image(h.data, 'x.png')",
    "shrink(torch.exp(h.data))",
)


@pytest.mark.parametrize("read", WRITTEN)
def test_data_stays_where_its_memory_may_be_written_before_a_backward(tmp_path: Path, read: str) -> None:
    assert found(tmp_path, RULE, HEAD, SHARED.format(read=read, later="pass")) == []


@pytest.mark.parametrize("read", READ)
def test_data_goes_where_it_is_only_read(tmp_path: Path, read: str) -> None:
    findings = found(tmp_path, RULE, HEAD, SHARED.format(read=read, later="pass"))
    assert [f.promise for f in findings] == [Promise.EXACT]


def test_unseen_code_may_write_to_what_no_backward_needs_again(tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, HEAD, SHARED.format(read="pass", later="elsewhere.look(h.data)"))
    assert [f.promise for f in findings] == [Promise.EXACT]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("inputs = [x if x is None else Variable(x) for x in loader]", "inputs = [x for x in loader]"),
        ("print([Variable(x) if x is not None else x for x in loader])", "print([x for x in loader])"),
        ("for x in loader:\n    net((x if x is None else Variable(x)))", "for x in loader:\n    net((x))"),
        # another choice is one
        (
            "inputs = [None if x is None else Variable(x) for x in loader]",
            "inputs = [None if x is None else x for x in loader]",
        ),
        (
            "inputs = [x if len(x) == 0 else Variable(x) for x in loader]",
            "inputs = [x if len(x) == 0 else x for x in loader]",
        ),
        (
            "inputs = [x.long() if x is None else Variable(x) for x in loader]",
            "inputs = [x.long() if x is None else x for x in loader]",
        ),
    ],
)
def test_a_choice_between_one_thing_goes(tmp_path: Path, before: str, after: str) -> None:
    assert _becomes(tmp_path, before) == after


NOISE = """
class Noisy(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4)) if bias else None
        self.register_buffer("noise", torch.zeros(4))
        if bias:
            self.register_buffer("offset", torch.zeros(4))
        self.scaled = torch.zeros(4) if bias else torch.ones(4)
    def forward(self, x):
        {drawn}
        return (x * self.weight + self.bias * {read}).sum()
noisy = Noisy(len(sys.argv) > 1)
"""
STEP = """
for x in loader:
    loss = noisy(x) - noisy(x + 1)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("drawn", "read"),
    [
        ("self.noise.normal_()", "self.noise.data"),
        ("self.offset.normal_()", "self.offset.data"),
        ("if self.bias is not None:\n            self.offset.normal_()", "self.offset.data"),
        ("if self.training:\n            self.noise.normal_()", "self.noise.data"),
        ("self.scaled.normal_()", "self.scaled.data"),
        ("self.scaled[:2].normal_()", "self.scaled.data"),
        ("self.scaled.view(2, 2).fill_(1)", "self.scaled.data"),
        ("self.scaled.normal_()", "self.scaled.view(4).data"),
        ("torch.rand(4, out=self.scaled)", "self.scaled.data"),
    ],
)
def test_data_stays_where_the_memory_is_written_again_before_the_backward(
    tmp_path: Path, drawn: str, read: str
) -> None:
    code = "import sys\n" + NOISE.format(drawn=drawn, read=read) + STEP
    assert not found(tmp_path, RULE, HEAD, code)


@pytest.mark.parametrize(
    ("drawn", "read", "after"),
    [
        ("pass", "self.offset.data", "self.offset"),
        ("self.offset = torch.randn(4)", "self.offset.data", "self.offset"),
        ("other = torch.zeros(4).normal_()", "self.scaled.data", "self.scaled"),
    ],
)
def test_data_goes_where_the_memory_stays_as_it_is(tmp_path: Path, drawn: str, read: str, after: str) -> None:
    code = "import sys\n" + NOISE.format(drawn=drawn, read=read) + STEP
    (finding,) = found(tmp_path, RULE, HEAD, code)
    assert finding.remedy == f"write `{after}`"


def test_the_sizes_of_a_tensor_are_no_number(tmp_path: Path) -> None:
    code = """
    class Held:
        def __init__(self, model):
            self.weights = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
            self.first = None if len(self.weights) > 3 else self.weights[0]
        def clip(self, index):
            weight = (self.first if index == 0 else self.weights[index]).data
            sizes = weight.size()
            if len(sizes) == 2:
                print(sizes[1], weight.shape[0], *weight.shape)
    held = Held(net)
    held.clip(0)
    held.clip(1)
    """
    assert ".detach()\n" in _becomes(tmp_path, dedent(code))


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("best = best.data", ""),
        ("kept = best.data", "kept = best"),
        ("best, kept = best.data, best", "best, kept = best, best"),
        ("best = best.data.view(4)", "best = best.view(4)"),
    ],
)
def test_a_name_that_would_be_given_itself_is_left_alone(tmp_path: Path, code: str, after: str) -> None:
    begin, end = "order, best = torch.rand(4).sort()\n", "print(best)"
    assert _becomes(tmp_path, f"{begin}{code}\n{end}") == "\n".join(filter(None, [begin.strip(), after, end]))


def test_what_is_decided_leaves_the_program_as_it_was() -> None:
    code = """
        import torch
        from torch.autograd import Variable

        net = torch.nn.GRU(3, 4)
        out, hidden = net(torch.randn(5, 2, 3))
        start = Variable(hidden.data.new(1, 1).fill_(2).long())
        out.sum().backward()
        print(start)
        """
    followed = run_tree({"main.py": dedent(code)})
    before = ast.dump(followed.file.tree)
    observations = list(rule(RULE).observe(followed.trace))
    decision = Decision({"main.py": followed.file}.get, Options())
    first, second = (list(rule(RULE).decide(observations, decision)) for _ in range(2))
    assert first
    assert second == first
    assert ast.dump(followed.file.tree) == before


ROWS = """
import operator
from torch.utils.data import DataLoader, Dataset

def first(rows):
    return rows[0]

class Rows(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, place):
        if place == 1:
            return {given}
        return torch.ones(2, 4)

for x in {loader}:
    out = net(Variable(x))
    print(out.shape)
"""


@pytest.mark.parametrize("given", ["None", "None if place else torch.ones(2, 4)"])
@pytest.mark.parametrize(
    "loader",
    [
        "DataLoader(Rows(), collate_fn=lambda rows: rows[0])",
        "DataLoader(Rows(), collate_fn=first)",
        "DataLoader(Rows(), collate_fn=operator.itemgetter(0))",
        "DataLoader(Rows(), batch_size=None)",
    ],
)
def test_rows_that_are_handed_on_may_be_none(tmp_path: Path, loader: str, given: str) -> None:
    # Variable(None) is an empty tensor
    assert not found(tmp_path, RULE, HEAD + ROWS.format(loader=loader, given=given))


@pytest.mark.parametrize(
    ("loader", "given"),
    [
        ("DataLoader(Rows(), collate_fn=first)", "torch.zeros(2, 4)"),
        ("DataLoader(Rows(), collate_fn=operator.itemgetter(0))", "torch.zeros(2, 4)"),
        ("DataLoader(Rows(), batch_size=None)", "torch.zeros(2, 4)"),
        # torch itself refuses None there
        ("DataLoader(Rows())", "None"),
        ("DataLoader(Rows(), batch_size=2, collate_fn=None)", "None"),
    ],
)
def test_rows_that_are_no_none_are_tensors(tmp_path: Path, loader: str, given: str) -> None:
    findings = found(tmp_path, RULE, HEAD + ROWS.format(loader=loader, given=given))
    assert "net(x)" in mended(tmp_path, findings)
