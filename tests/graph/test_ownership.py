"""What optimizers own, whose gradients are cleared or read, and what gradients are taken of."""

from __future__ import annotations

from textwrap import dedent

import pytest

from codemods.graph.model.values import Optimizer
from tests.graph.tools import Run, run

NETS = "a = nn.Linear(3, 3)\nb = nn.Linear(3, 1)\n"


def owned(found: Run) -> tuple[list[str], bool, bool]:
    """The leaves of the last step by the line that made them, whether exactly they, and whether there may be more."""
    step = found.trace.steps[-1]
    assert step.owned is not None
    made = {found.value("a").leaf: "a", found.value("b").leaf: "b"}  # type: ignore[union-attr]
    return [made.get(leaf, leaf.label) for leaf in step.owned.leaves], step.owned.exact, step.owned.more


OWNED = {
    "torch.optim.SGD(a.parameters())": (["a"], True, False),
    "torch.optim.SGD(list(a.parameters()) + list(b.parameters()))": (["a", "b"], True, False),
    "torch.optim.SGD([*a.parameters(), *b.parameters()])": (["a", "b"], True, False),
    "torch.optim.SGD(itertools.chain(a.parameters(), b.parameters()))": (["a", "b"], True, False),
    "torch.optim.SGD([{'params': a.parameters()}, {'params': b.parameters(), 'lr': 1}])": (["a", "b"], True, False),
    "torch.optim.SGD(filter(lambda p: p.requires_grad, a.parameters()))": (["a"], True, False),
    "torch.optim.SGD([p for n, p in a.named_parameters() if 'bias' in n])": (["a"], False, False),
    "torch.optim.SGD([torch.zeros(3, requires_grad=True)])": (["input"], True, False),
    "torch.optim.SGD(unseen())": ([], False, True),
}


@pytest.mark.parametrize("code", OWNED)
def test_a_step_names_what_it_updates(code: str) -> None:
    assert owned(run(f"import itertools\n{NETS}opt = {code}\nopt.step()")) == OWNED[code]


def test_a_list_of_parameters_may_grow() -> None:
    found = run(f"{NETS}params = list(a.parameters())\nparams += list(b.parameters())\ntorch.optim.SGD(params).step()")
    assert owned(found) == (["a", "b"], True, False)
    assert "parameter-changed" not in found.marks()


def test_a_tensor_on_a_module_is_no_parameter() -> None:
    code = """
        class Gated(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = a
                self.gate = torch.zeros(3, requires_grad=True)

        torch.optim.SGD(Gated().parameters()).step()
    """
    assert owned(run(NETS + dedent(code))) == (["a"], True, False)


MARKS = {
    "opt.zero_grad()": ("zero_grad", ["Linear"], True),
    "net.zero_grad()": ("zero_grad", ["Linear"], True),
    "nn.utils.clip_grad_norm_(net.parameters(), 1)": ("gradients-changed", ["Linear"], True),
    "w.grad": ("grad-read", ["parameter"], False),
    "x.grad": ("grad-read", None, False),
    "for p in net.parameters():\n    p.grad": ("grad-read", ["Linear"], False),
    "for p in net.parameters():\n    p.grad = None": ("zero_grad", ["Linear"], False),
    "unseen.zero_grad()": ("zero_grad", None, False),
    "w.register_hook(print)": ("hook", ["parameter"], False),
}


@pytest.mark.parametrize("code", MARKS)
def test_a_mark_names_the_leaves(code: str) -> None:
    found = run(f"opt = torch.optim.SGD(net.parameters())\n{code}")
    mark = next(m for m in found.trace.marks if m.kind.value == MARKS[code][0])
    of = None if mark.of is None else [n.label for n in mark.of]
    assert (mark.kind.value, of, mark.exact) == MARKS[code]


@pytest.mark.parametrize(
    ("given", "labels"),
    [("w", ["parameter"]), ("[w]", ["parameter"]), ("net.parameters()", ["Linear"]), ("unseen", None)],
)
def test_a_gradient_is_taken_of_its_inputs(given: str, labels: list[str] | None) -> None:
    found = run(f"loss = net(w * x).sum()\ntorch.autograd.grad(loss, {given})")
    inputs = found.walks()[0].inputs
    assert (None if inputs is None else [n.label for n in inputs]) == labels


def test_an_optimizer_knows_its_parameters() -> None:
    found = run("other = nn.Linear(1, 1)\nopt = torch.optim.Adam(net.parameters())")
    optimizer, own, other = found.value("opt"), found.value("net"), found.value("other")
    assert optimizer is not None
    leaves = [leaf for p in optimizer.params for leaf in found.machine.run.parameter_leaves(p.owner)]  # type: ignore[attr-defined]
    assert leaves == found.machine.run.parameter_leaves(own)  # type: ignore[arg-type]
    assert leaves != found.machine.run.parameter_leaves(other)  # type: ignore[arg-type]


@pytest.mark.parametrize("made", ["getattr(torch.optim, name)", "getattr(optim, name, None)"])
def test_an_optimizer_by_its_name(made: str) -> None:
    code = (
        f"import sys\nfrom torch import optim\nname = sys.argv[1]\nopt = {made}(net.parameters(), lr=0.1)\nopt.step()"
    )
    taken = run(code).trace.steps[0].owned
    assert taken is not None
    assert taken.exact
    assert not taken.more


def test_a_schedule_by_its_name_is_no_optimizer() -> None:
    code = """
        import sys
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        schedule = getattr(torch.optim.lr_scheduler, sys.argv[1])(opt, 3)
        opt.step()
        schedule.step()
    """
    assert not isinstance(run(code).value("schedule"), Optimizer)
