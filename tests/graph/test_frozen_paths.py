"""Parameters that are frozen on one path, where it meets others on which they were made as well, or never."""

from __future__ import annotations

import pytest

from tests.graph.tools import run

HEAD = """
import sys
def made(frozen):
    net = nn.Linear(3, 3)
    if frozen:
        for p in net.parameters():
            p.requires_grad = False
    return net
def quiet():
    net = nn.Linear(3, 3)
    net.requires_grad_(False)
    return net
net = None
many = len(sys.argv) > 1
"""

MADE_AND_FROZEN = {
    "in a branch": "if many:\n    net = quiet()",
    "in the other branch": "if not many:\n    pass\nelse:\n    net = quiet()",
    "in a branch of a branch": "if many:\n    if len(sys.argv) > 2:\n        net = quiet()\n    print(net)",
    "one in each branch": "if many:\n    net = quiet()\nelse:\n    net = quiet()",
    "in a turn": "for name in sys.argv:\n    net = quiet()",
    "in a turn that ends its loop": "for name in sys.argv:\n    if name:\n        net = quiet()\n        break",
    "in an expression": "net = quiet() if many else None",
    "after a branch that returns": """
def build():
    if many:
        return None
    return quiet()
net = build()""",
}

FROZEN_IN_PART = {
    "made before the branch": "net = nn.Linear(3, 3)\nif many:\n    net.requires_grad_(False)",
    "made in the branch, frozen in one within": """
if many:
    net = nn.Linear(3, 3)
    if len(sys.argv) > 2:
        net.requires_grad_(False)""",
    "the turn ends once it is frozen": """
for name in sys.argv:
    net = nn.Linear(3, 3)
    if name:
        net.requires_grad_(False)
        break""",
    "the turn goes on once it is frozen": """
for name in sys.argv:
    net = nn.Linear(3, 3)
    if name:
        net.requires_grad_(False)
        continue
    print(name)""",
    "frozen unless there is an error": """
try:
    net = nn.Linear(3, 3)
    if many:
        raise ValueError
    net.requires_grad_(False)
except ValueError:
    pass""",
    "frozen unless a call ends in an error": """
try:
    net = nn.Linear(3, 3)
    print(open("settings"))
    net.requires_grad_(False)
except OSError:
    pass""",
    "frozen by the handler": """
try:
    net = nn.Linear(3, 3)
    if many:
        raise ValueError
except ValueError:
    net.requires_grad_(False)""",
    "frozen by the first of two handlers": """
try:
    net = nn.Linear(3, 3)
    if many:
        raise ValueError
    raise KeyError
except ValueError:
    net.requires_grad_(False)
except KeyError:
    pass""",
    "returned early": """
def build():
    net = nn.Linear(3, 3)
    if many:
        return net
    net.requires_grad_(False)
    return net
net = build()""",
    "returned early once it is frozen": """
def build():
    net = nn.Linear(3, 3)
    if many:
        net.requires_grad_(False)
        return net
    return net
net = build()""",
    "one frozen and one not": "net = quiet() if many else nn.Linear(3, 3)",
    "asked for": "net = made(many)",
}


@pytest.mark.parametrize("code", MADE_AND_FROZEN.values(), ids=MADE_AND_FROZEN)
def test_a_path_on_which_parameters_were_never_made_says_nothing_of_them(code: str) -> None:
    assert run(f"{HEAD}{code}\ny = net(x)").graph("y") == "free"


@pytest.mark.parametrize("code", FROZEN_IN_PART.values(), ids=FROZEN_IN_PART)
def test_what_is_frozen_on_some_of_the_paths_may_ask_for_gradients(code: str) -> None:
    assert run(f"{HEAD}{code}\ny = net(x)").graph("y") != "free"


CONTEXTS = """
from contextlib import contextmanager
class Frozen:
    def __init__(self, net):
        self.net = net
        net.requires_grad_(False)
    def __enter__(self):
        pass
    def __exit__(self, *error):
        self.net.requires_grad_(True)
@contextmanager
def by_hand(net):
    net.requires_grad_(False)
    yield net
    net.requires_grad_(True)
@contextmanager
def by_another(net):
    with Frozen(net) as one:
        yield one
@contextmanager
def evaluating(net):
    net.eval()
    yield net
    net.train()
net = nn.Linear(3, 3)
"""


@pytest.mark.parametrize("context", ["by_hand", "by_another", "Frozen"])
def test_what_a_context_freezes_asks_for_no_gradients_in_it(context: str) -> None:
    found = run(f"{CONTEXTS}with {context}(net):\n    a = net(x)\nb = net(x)\nloss = b.sum()\nloss.backward()")
    assert [forward.grad for forward in found.trace.forwards] == ([True, True] if context == "Frozen" else [None, True])
    assert found.graph("a") != "attached"
    assert found.graph("b") == "attached"


def test_a_context_that_freezes_nothing_leaves_gradients_on() -> None:
    found = run(f"{CONTEXTS}with evaluating(net):\n    a = net(x)\n")
    assert found.graph("a") == "attached"
