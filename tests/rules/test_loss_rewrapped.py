"""What loss-rewrapped finds and leaves alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.hunt.rewriting import files_after, rewritten
from tests.rules.tools import LEARNING, MAIN, found, mended, sited

RULE = "loss-rewrapped"
HEAD = (
    LEARNING
    + """

from torch.autograd import Variable
"""
)

FOUND = {
    "a tensor of it": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss = torch.tensor(loss, requires_grad=True)
            learn(loss)
        """,
        "loss = torch.tensor(loss, requires_grad=True)",
    ),
    "a variable of its data": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            opt.zero_grad()
            loss = Variable(loss.data, requires_grad=True)
            loss.backward()
            opt.step()
        """,
        "loss = Variable(loss.data, requires_grad=True)",
    ),
    "a tensor of its number, scaled": (
        """
        for x, y in batches():
            again = torch.tensor(criterion(net(x), y).item(), requires_grad=True)
            learn(again / 2)
        """,
        "again = torch.tensor(criterion(net(x), y).item(), requires_grad=True)",
        "again = criterion(net(x), y)",
    ),
    "given to the next function by another name": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            learn(Variable(loss.detach().clone(), requires_grad=True))
        """,
        "learn(Variable(loss.detach().clone(), requires_grad=True))",
        "learn(loss)",
    ),
    "a loss of two names, one for what has no graph": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss = loss.detach()
            learn(torch.tensor(loss, requires_grad=True))
        """,
        "learn(torch.tensor(loss, requires_grad=True))",
    ),
    "asked for gradients by a method": (
        """
        for x, y in batches():
            loss = criterion(net(x).detach(), y)
            loss.requires_grad_()
            learn(loss)
        """,
        "loss.requires_grad_()",
    ),
    "asked for gradients by an attribute": (
        """
        for x, y in batches():
            loss = (net(x).argmax(1) - y[:, 0]).float().abs().mean()
            loss.requires_grad = True
            learn(loss)
        """,
        "loss.requires_grad = True",
    ),
    "the outputs": (
        """
        for x, y in batches():
            out = torch.tensor(net(x).tolist(), requires_grad=True)
            learn(criterion(out, y))
        """,
        "out = torch.tensor(net(x).tolist(), requires_grad=True)",
        "out = net(x)",
    ),
    "a number that was computed before": (
        """
        for x, y in batches():
            value = sum(criterion(net(x * k), y).item() for k in range(3))
            learn(torch.tensor(value, requires_grad=True))
        """,
        "learn(torch.tensor(value, requires_grad=True))",
    ),
}
"""Programs with the line that is found."""

LEFT = {
    "the loss itself": """
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "an input that asks for gradients": """
        for x, y in batches():
            x = torch.tensor(x.numpy(), requires_grad=True)
            learn(criterion(net(x), y))
        """,
    "its gradient is read": """
        for x, y in batches():
            out = net(x)
            cut = Variable(out.data, requires_grad=True)
            opt.zero_grad()
            (cut ** 2).sum().backward()
            out.backward(cut.grad)
            opt.step()
        """,
    "an optimizer updates it": """
        code = torch.tensor(net(torch.randn(3, 4)).detach().numpy(), requires_grad=True)
        code = Variable(net(torch.randn(3, 4)).data, requires_grad=True)
        search = torch.optim.SGD([code], lr=0.1)
        for x, y in batches():
            search.zero_grad()
            (code ** 2).sum().backward()
            search.step()
        """,
    "both are walked": """
        for x, y in batches():
            loss = criterion(net(x), y)
            shown = torch.tensor(loss.item(), requires_grad=True)
            shown.backward()
            learn(loss)
        """,
    "another loss trains": """
        for x, y in batches():
            opt.zero_grad()
            torch.tensor(criterion(net(x), y).item(), requires_grad=True).backward()
            criterion(net(x + 1), y).backward()
            opt.step()
        """,
    "part of another loss": """
        for x, y in batches():
            weight = torch.tensor(criterion(net(x), y).item(), requires_grad=True)
            learn(criterion(net(x), y) * weight)
        """,
    "gradients are given by hand": """
        for x, y in batches():
            loss = torch.tensor(criterion(net(x), y).item(), requires_grad=True)
            opt.zero_grad()
            loss.backward()
            for p in net.parameters():
                p.grad = loss.detach() * torch.randn_like(p)
            opt.step()
        """,
    "an attack that is looked at": """
        for x, y in batches():
            near = x.clone().requires_grad_()
            criterion(net(near), y).backward()
            learn(criterion(net(x + near.grad.sign()), y))
        """,
    "a step in the next turn": """
        loss = torch.tensor(1.0, requires_grad=True)
        for x, y in batches():
            opt.step()
            opt.zero_grad()
            criterion(net(x), y).backward()
        loss.backward()
        """,
    "a backward that is hidden": """
        from elsewhere import engine
        for x, y in batches():
            out = criterion(net(x), y)
            engine.backward(out)
            shown = torch.tensor(out.item(), requires_grad=True)
            shown.backward()
            opt.step()
        """,
    "of no graph": """
        for x, y in batches():
            loss = criterion(x[:, :2], y)
            learn(torch.tensor(loss, requires_grad=True))
        """,
    "no gradients asked for": """
        for x, y in batches():
            loss = criterion(net(x), y)
            print(torch.tensor(loss.item()))
            learn(loss)
        """,
    "unseen code reads what is made": """
        from elsewhere import train
        for x, y in batches():
            loss = torch.tensor(criterion(net(x), y).item(), requires_grad=True)
            train(loss)
            opt.step()
        """,
}

told, test_found, test_left = sited(RULE, HEAD, FOUND, LEFT)


WRAPPED = ("torch.tensor(loss, requires_grad=True)", "Variable(loss.data, requires_grad=True)")


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_a_loss_that_keeps_its_name_is_not_wrapped_any_more(tmp_path: Path, wrapped: str) -> None:
    program = """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss = {wrapped}
            learn(loss)
        """
    (finding,) = found(tmp_path, RULE, HEAD, program.format(wrapped=wrapped))
    assert finding.promise is Promise.BEHAVIOUR
    left = [line for line in dedent(program).splitlines() if "wrapped" not in line]
    assert mended(tmp_path, [finding]).splitlines()[-len(left) :] == left


def test_what_a_graph_brings_to_light_is_mended_too() -> None:
    program = HEAD + dedent(
        """
        for x, y in batches():
            loss = torch.tensor(criterion(net(x), y).item(), requires_grad=True)
            loss.backward()
            opt.zero_grad()
            opt.step()
        """
    )
    result = rewritten({MAIN: program}, Options(unsafe=True))
    assert not result.failures
    assert {finding.rule for finding in result.fixed} == {RULE, "zero-grad-misplaced"}
    assert files_after({MAIN: program}, result)[MAIN] == HEAD + dedent(
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            opt.step()
            opt.zero_grad()
        """
    )


WRITTEN = sum(len(program) > 2 for program in FOUND.values()) + len(WRAPPED)
