"""Backward: what it walks, what it frees and retains, and what walks it again."""

from __future__ import annotations

import pytest
import torch

from tests.graph.tools import line, run, run_functions

RETAINING = [
    "loss.backward(retain_graph=True)",
    "loss.backward(retain_variables=True)",
    "loss.backward(None, True)",
    "loss.backward(gradient=None, retain_graph=True)",
    "torch.autograd.backward(loss, retain_graph=True)",
    "torch.autograd.backward([loss], None, True)",
    "torch.autograd.backward(tensors=[loss], grad_tensors=None, retain_graph=True)",
    "torch.autograd.grad(loss, w, retain_graph=True)",
    "torch.autograd.grad(loss, [w], None, True)",
    "torch.autograd.grad(loss, w, create_graph=True)",
    "from torch.autograd import grad\ngrad(loss, w, retain_graph=True)",
    "import torch.autograd as autograd\nautograd.grad(outputs=loss, inputs=w, retain_graph=True)",
    "torch.cuda.amp.GradScaler().scale(loss).backward(retain_graph=True)",
]


@pytest.mark.parametrize("code", RETAINING)
def test_a_retained_graph_may_be_walked_again(code: str) -> None:
    found = run(f"loss = (w * x).sum()\n{code}\nloss.backward()")
    assert found.again() == []
    assert found.retained() == [found.walks()[-1].place.line]


FREEING = [
    "loss.backward()",
    "loss.backward(retain_graph=False)",
    "loss.backward(retain_graph=None)",
    "loss.backward(None, False)",
    "loss.backward(torch.tensor(1.0))",
    "torch.autograd.backward(loss)",
    "torch.autograd.backward([loss])",
    "torch.autograd.backward((loss, loss * 2))",
    "torch.autograd.grad(loss, w)",
    "torch.autograd.grad(loss, w, create_graph=True, retain_graph=False)",
    "torch.cuda.amp.GradScaler().scale(loss).backward()",
    "import torch.cuda.amp as amp\nscaler = amp.GradScaler()\nscaler.scale(loss).backward()\nscaler.step(None)",
    "(loss / 2).backward()",
    "def back(l):\n    l.backward()\nback(loss)",
    "back = loss.backward\nback()",
    "getattr(loss, 'backward')()",
    "from accelerate import Accelerator\naccelerator = Accelerator()\naccelerator.backward(loss)",
    "from apex import amp\nwith amp.scale_loss(loss, None) as scaled:\n    scaled.backward()",
    "[l.backward() for l in [loss]]",
    "list(map(lambda l: l.backward(), [loss]))",
    "d = {'a': loss}\nfor v in d.values():\n    v.backward()",
    "from collections import deque\nq = deque([loss])\nq.pop().backward()",
    "if x.sum() > 0:\n    loss.backward()\nelse:\n    loss.backward()",
    "try:\n    loss.backward()\nexcept RuntimeError:\n    pass",
    "with open('f'):\n    loss.backward()",
    "match x:\n    case _:\n        loss.backward()",
    "while True:\n    loss.backward()\n    break",
]


@pytest.mark.parametrize("code", FREEING)
def test_a_freed_graph_is_walked_again(code: str) -> None:
    found = run(f"loss = (w * x).sum()\n{code}\nloss.backward()")
    assert found.walks()[-1].place.line in found.again()


@pytest.mark.parametrize(
    "argument", ["retain_graph=len(x) > 1", "retain_graph=flag", "**{'retain_graph': True}", "**options"]
)
def test_a_retain_argument_that_is_no_literal_is_not_known(argument: str) -> None:
    found = run(f"flag = True\noptions = somewhere()\n(w * x).sum().backward({argument})")
    assert [walk.retains for walk in found.walks()] == [None]


def test_the_argument_that_retains() -> None:
    found = run("a = (w * x).sum()\na.backward(None, True)\na.backward(retain_variables=True)\na.backward()")
    assert [walk.retain_argument for walk in found.walks()] == [1, "retain_variables", None]


def test_only_shared_nodes_are_walked_again() -> None:
    found = run("h = w * x\na = h.sum()\nb = h.exp().sum()\na.backward()\nb.backward()")
    (walk,) = [walk for walk in found.walks() if walk.again]
    assert {node.label for node, _ in walk.again} == {"Mult"}


def test_two_forwards_share_only_parameters() -> None:
    assert run("net(x).sum().backward()\nnet(x).sum().backward()").again() == []


def test_leaves_are_never_freed() -> None:
    assert run("w.sum().backward()\nw.sum().backward()").again() == []


def test_what_is_saved() -> None:
    labels = {node.label: node.saves for node in run("y = ((w + 1).exp() * w).sum()").trace.nodes if not node.leaf}
    assert labels == {"Add:number": False, "exp": True, "Mult": True, "sum": False}


def test_a_step_is_recorded() -> None:
    code = """
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(10):
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
    """
    found = run(code)
    assert [step.place.line for step in found.trace.steps] == [line(found, "opt.step()")] * 2
    assert found.marks().count("zero_grad") == 2
    assert found.again() == []


def test_a_step_by_the_scaler() -> None:
    code = """
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        scaler.scale(net(x).sum()).backward()
        scaler.unscale_(opt)
        scaler.step(opt)
        scaler.update()
    """
    found = run(code)
    assert len(found.trace.steps) == 1
    assert "gradients-changed" in found.marks()


def test_a_closure_of_lbfgs_runs_twice() -> None:
    code = """
        opt = torch.optim.LBFGS([w])
        h = w.exp()
        def closure():
            opt.zero_grad()
            loss = h.sum()
            loss.backward()
            return loss
        opt.step(closure)
    """
    found = run(code)
    assert len(found.walks()) == 2
    assert found.again() == [line(found, "loss.backward()")]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("torch.autograd.grad(loss, w)", ["mid.sum().backward()"]),
        ("torch.autograd.grad(loss, [mid, w])", ["mid.sum().backward()"]),
        ("loss.backward()", ["mid.sum().backward()"]),
        ("loss.backward(inputs=[mid])", ["mid.sum().backward()"]),
        # behind its inputs it goes nowhere
        ("torch.autograd.grad(loss, mid)", []),
        ("torch.autograd.grad(loss, [mid])", []),
        ("torch.autograd.grad(loss, late)", []),
        ("loss.backward(inputs=[late])", []),
    ],
)
def test_gradients_of_some_nodes_walk_up_to_them(first: str, again: list[str]) -> None:
    code = f"mid = w * w\nlate = mid.exp()\nloss = (late * late).sum()\n{first}\nmid.sum().backward()"
    found = run(code)
    assert found.again() == [line(found, text) for text in again]
    names = {"torch": torch, "w": torch.rand(2, requires_grad=True)}
    if again:
        with pytest.raises(RuntimeError, match="second time"):
            exec(code, names)
    else:
        exec(code, names)


def test_autograd_grad_with_create_graph_goes_on() -> None:
    code = """
        loss = (w ** 2).sum()
        g, = torch.autograd.grad(loss, [w], create_graph=True)
        penalty = g.norm()
        penalty.backward()
    """
    found = run(code)
    assert found.graph("penalty") == "attached"
    assert found.again() == []


def test_backward_proves_that_something_is_attached() -> None:
    code = """
        import somewhere
        loss = somewhere.loss(x)
        loss.backward()
        total = loss + 1
    """
    assert run(code).graph("total") == "attached"


def test_the_gradient_argument_is_no_proof_of_a_scalar() -> None:
    found = run("y = w * x\ny.backward(torch.ones(3))\nz = w * x\nz.backward()")
    first, second = (walk.roots[0] for walk in found.walks())
    assert (first.scalar, second.scalar) == (False, True)


@pytest.mark.parametrize("mode", ["enable_grad", "no_grad"])
def test_a_backward_proves_a_graph_whatever_the_mode_is_where_it_stands(mode: str) -> None:
    (trace,) = run_functions(
        f"""
        def step(model, criterion, x, y):
            loss = criterion(model(x), y)
            with torch.{mode}():
                loss.backward()
        """,
        "step",
    )
    assert {len(walk.roots) for walk in trace.walks} == {1}
