"""Methods of what cannot be seen: what a command line says of its options, what distributions give."""

from __future__ import annotations

import pytest
import torch

from codemods.graph.model.values import Plain, Unknown
from tests.graph.tools import run


@pytest.mark.parametrize(
    "option",
    [
        "'--share', type=float, default=0.5",
        "'--share', default=-1, help='of the second loss'",
        "'-s', '--share', type=int, default=3, choices=[1, 3]",
        "'--portion', dest='share', type=float, default=1e-3",
        "'--share', action='store_true'",
    ],
)
def test_an_option_that_is_a_number(option: str) -> None:
    r = run(
        f"""
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument({option})
        args = parser.parse_args()
        share = args.share
        total = (w * x).mean() * args.share
        """
    )
    assert isinstance(r.value("share"), Plain)
    assert [n.dimensionless for n in r.nodes("total")] == [True]


@pytest.mark.parametrize(
    "options",
    [
        "parser.add_argument('--share')",
        "parser.add_argument('--share', type=float)",
        "parser.add_argument('--share', type=float, default=None)",
        "parser.add_argument('--share', type=float, default=[0.5], nargs='+')",
        "parser.add_argument('--share', type=make, default=0.5)",
        "parser.add_argument('--share', default='0.5')",
        "parser.add_argument('--share', default=0.5, **more)",
        "parser.add_argument('--share', default=0.5)\nparser.set_defaults(share=None)",
        "parser.add_argument('--other', default=0.5)",
    ],
)
def test_an_option_that_may_be_anything(options: str) -> None:
    code = f"import argparse\nparser = argparse.ArgumentParser()\n{options}\nshare = parser.parse_args().share"
    assert isinstance(run(code).value("share"), Unknown)


def test_an_option_that_is_overwritten() -> None:
    code = """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--share", type=float, default=0.5)
        args = parser.parse_args()
        args.share = w * 2
        out = args.share
        """
    assert run(code).graph("out") == "attached"


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("entropy().mean().item()", "free"),
        ("log_prob(x).sum().detach()", "free"),
        ("rsample().argmax()", "free"),
        ("entropy().mean().detach().numpy()", "free"),
        ("entropy().mean()", "attached"),
        ("log_prob(x).sum().cpu()", "attached"),
        ("mean.abs()", "attached"),
        ("expand([3]).rsample()", "attached"),
        ("sample().log()", "free"),
    ],
)
def test_what_is_made_of_a_distribution(method: str, expected: str) -> None:
    made = run(f"out = torch.distributions.Normal(net(x), net(x).exp()).{method}")
    assert (made.graph("out") == "free") is (expected == "free")
    assert torch_says(method) is (expected == "attached")


def torch_says(method: str) -> bool:
    """Whether torch's own result has a history."""
    net, x = torch.nn.Linear(3, 1), torch.ones(3)
    made = eval(f"torch.distributions.Normal(net(x), net(x).exp()).{method}", {"torch": torch, "net": net, "x": x})
    return bool(getattr(made, "requires_grad", False))
