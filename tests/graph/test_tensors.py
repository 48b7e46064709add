"""What torch makes of tensors: whose history a constructor hands on, and what has one element or no dimension."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from codemods.graph.model.facts.operations import OF_SIZES
from codemods.graph.model.kinds import AliasForm
from tests.graph.tools import run


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.Tensor(h)", "attached"),
        ("torch.FloatTensor(h)", "attached"),
        ("torch.cuda.FloatTensor(h)", "attached"),
        ("torch.Tensor(w)", "attached"),
        ("x.new(h)", "attached"),
        ("torch.as_tensor(h)", "attached"),
        ("torch.normal(h, 1.0)", "attached"),
        ("torch.combinations(h)", "attached"),
        ("torch.round(h)", "attached"),
        ("h.sign()", "attached"),
        ("torch.bernoulli(h)", "attached"),
        ("h.type_as(x)", "attached"),
        ("h.to(x)", "attached"),
        ("x.copy_(h)", "attached"),
        ("x.where(x > 0, h)", "attached"),
        ("x.type_as(h)", "free"),
        ("x.view_as(h)", "free"),
        ("x.expand_as(h)", "free"),
        ("x.reshape_as(h)", "free"),
        ("x.to(h)", "free"),
        ("x.to(other=h)", "free"),
        ("torch.tensor(h)", "free"),
        ("x.new_tensor(h)", "free"),
        ("torch.Tensor(h.detach())", "free"),
        ("torch.Tensor([h.sum(), h.mean()])", "free"),
        ("torch.FloatTensor((h.sum(),))", "free"),
        ("x.new([h.sum()])", "free"),
        ("torch.Tensor(3)", "free"),
        ("torch.Tensor(h.size())", "free"),
        ("torch.normal(0.0, 1.0, (3,))", "free"),
        ("h.argmax()", "free"),
        ("torch.gt(h, 0)", "free"),
    ],
)
def test_whose_history_is_handed_on(made: str, expected: str) -> None:
    assert run(f"h = w * 2\nout = {made}").graph("out") == expected


def test_what_is_handed_on_shares_memory() -> None:
    r = run("v = Variable(x)\nout = torch.Tensor(v)\nout.unsqueeze_(0)")
    altered = [change.value for change in r.trace.alterations]
    assert [[alias.form for alias in value.aliases] for value in altered if hasattr(value, "aliases")] == [
        [AliasForm.VARIABLE]
    ]


@pytest.mark.parametrize(
    "loss",
    [
        "h.mean()",
        "torch.mean(h)",
        "h.norm()",
        "torch.norm(h, 2)",
        "torch.max(h)",
        "-h.mean()",
        "h.mean() * 0.5 + 1",
        "h.mean() - h.std()",
        "torch.log(h.mean())",
        "h.mean().log().clamp(min=0)",
        "h.mean().cuda()",
        "F.mse_loss(h, x)",
        "nn.MSELoss()(h, x)",
        "nn.CrossEntropyLoss(weight=x)(h, x)",
        "sum([h.mean(), h.sum()])",
        "h.mean() if x.any() else h.sum()",
    ],
)
def test_no_dimension(loss: str) -> None:
    assert all(node.dimensionless for node in run(f"h = w * 2\nout = {loss}").nodes("out"))


@pytest.mark.parametrize(
    "loss",
    [
        "h",
        "h.mean(0)",
        "h.mean().view(1)",
        "h.mean().unsqueeze(0)",
        "h.mean().expand(3)",
        "h.sum(0, keepdim=True)",
        "h.norm(2, keepdim=True)",
        "h[0]",
        "h.mean() * x",
        "h.mean() * torch.ones(1)",
        "h.mean() * anything",
        "h.mean() if x.any() else torch.zeros(1)",
        "F.mse_loss(h, x, reduction='none')",
        "F.mse_loss(h, x, None, False)",
        "nn.MSELoss(reduction='none')(h, x)",
        "nn.MSELoss(None, False)(h, x)",
        "torch.stack([h.mean()])",
        "net(x)",
    ],
)
def test_perhaps_a_dimension(loss: str) -> None:
    nodes = run(f"from elsewhere import anything\nh = w * 2\nout = {loss}").nodes("out")
    assert nodes
    assert not any(node.dimensionless for node in nodes)


def test_a_function_that_is_remembered_gives_each_argument_its_dimensions() -> None:
    r = run(
        """
        class Half(nn.Module):
            def forward(self, t):
                return self.scaled(t)
            def scaled(self, t):
                return t / 2
        half = Half()
        h = w * 2
        a = half(h.mean())
        b = half(h.mean().view(1))
        c = half(h.mean())
        """
    )
    assert [r.nodes(name)[0].dimensionless for name in "abc"] == [True, False, True]


def test_terms_of_what_is_walked_have_one_element() -> None:
    r = run(
        """
        a, b = net(x), (w * x)[0]
        c = w * 3
        total = a * 0.1 + b / 2 - a
        total.backward()
        (c + a).sum().backward()
        """
    )
    assert [all(n.scalar for n in r.nodes(name)) for name in "abc"] == [True, True, False]


def test_terms_of_a_matrix_product_may_have_any_shape() -> None:
    r = run("a = w * 2\nb = w * 3\n(a @ b).backward()")
    assert not any(n.scalar for name in "ab" for n in r.nodes(name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(OF_SIZES))
def test_sizes_bring_no_graph(name: str) -> None:
    size = torch.tensor(2.0, requires_grad=True)
    function = getattr(torch.Tensor, name, None) or getattr(functional, name, None) or getattr(torch, name)
    for others in ((size,), (size, size), (0, size), (0, 1, size), ((size, size),)):
        try:
            made = function(torch.rand(4, 4, 4), *others)
        except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
            continue
        parts = made if isinstance(made, (tuple, list)) else [made]
        assert not any(part.requires_grad for part in parts)
