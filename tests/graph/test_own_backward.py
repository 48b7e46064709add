"""What is seen in the backward of an ``autograd.Function``, compared with what two walks of it give."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
import torch

from codemods.graph.torch.own_backward import is_linear

LINEAR = {
    "handed on": "return gradient",
    "reversed": "return -0.5 * gradient",
    "by a saved tensor": "return gradient * ctx.saved_tensors[0].exp()",
    "where the input was in range": """
        (values,) = ctx.saved_tensors
        changed = gradient.clone()
        changed[values.abs() > 0.5] = 0
        return changed
    """,
    "masked": "return gradient * (ctx.saved_tensors[0] > 0)",
    "only if asked": "return gradient.mm(torch.eye(3)) if ctx.needs_input_grad[0] else None",
    "over a constant": "return gradient / 3",
    "through a list": """
        parts = [part * 2 for part in gradient.unbind(0)]
        return torch.stack(parts)
    """,
    "in a branch of the value": """
        if ctx.saved_tensors[0].sum() > 0:
            gradient = gradient * 2
        return gradient
    """,
}
NOT_LINEAR = {
    "clamped": "return gradient.clamp(-0.05, 0.05)",
    "clamped in place": "return gradient.clone().clamp_(-0.05, 0.05)",
    "normalized": "return gradient / (gradient.norm() + 1e-6)",
    "squared": "return gradient ** 2",
    "times itself": """
        other = gradient * 1.0
        return other * gradient
    """,
    "its sign": "return torch.sign(gradient)",
    "a function of torch": "return torch.nn.functional.normalize(gradient, dim=0)",
    "compared": "return gradient * (gradient > 0)",
    "compared by name": """
        size = gradient.mean()
        if size > 0.1:
            return gradient * 0
        return gradient
    """,
    "noise": "return gradient + torch.randn(3, 3)",
    "dropped": "return torch.nn.functional.dropout(gradient, 0.5)",
    "counted": """
        global walks
        walks += 1
        return gradient * walks
    """,
    "counted on the class": """
        Own.walks = Own.walks + 1
        return gradient * Own.walks
    """,
    "counted on the context": """
        ctx.walks = getattr(ctx, "walks", 0) + 1
        return gradient * ctx.walks
    """,
    "counted in a list": """
        COUNTS[0] += 1
        return gradient * COUNTS[0]
    """,
}


def backward_of(body: str) -> ast.FunctionDef:
    text = "def backward(ctx, gradient):\n" + "\n".join(f"    {line}" for line in dedent(body).strip().splitlines())
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    return definition


def adds_up(body: str) -> bool:
    """Whether two walks of it leave what one walk of the sum leaves."""
    torch.manual_seed(0)
    scope: dict[str, object] = {"torch": torch, "COUNTS": [0], "walks": 0}
    exec(ast.unparse(backward_of(body)), scope)

    def forward(ctx: torch.autograd.function.FunctionCtx, values: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(values)
        return values.view_as(values)

    members = {"walks": 0, "forward": staticmethod(forward), "backward": staticmethod(scope["backward"])}
    own = scope["Own"] = type("Own", (torch.autograd.Function,), members)
    values, first, second = torch.randn(3, 3), torch.randn(3, 3), torch.randn(3, 3)
    given = []
    for weights in ([first, second], [first + second]):
        leaf = values.clone().requires_grad_()
        for weight in weights:
            (own.apply(leaf) * weight).sum().backward()  # type: ignore[attr-defined]
        assert leaf.grad is not None
        given.append(leaf.grad)
    return torch.allclose(*given, atol=1e-6)


@pytest.mark.parametrize("body", LINEAR.values(), ids=LINEAR)
def test_a_derivative_is_linear(body: str) -> None:
    assert adds_up(body)
    assert is_linear(backward_of(body))


@pytest.mark.parametrize("body", NOT_LINEAR.values(), ids=NOT_LINEAR)
def test_what_is_seen_to_be_more_is_not(body: str) -> None:
    assert not is_linear(backward_of(body))


@pytest.mark.parametrize(
    "body", [body for name, body in NOT_LINEAR.items() if "context" not in name], ids=lambda body: body.split("\n")[0]
)
def test_what_is_more_does_not_add_up(body: str) -> None:
    assert not adds_up(body)
