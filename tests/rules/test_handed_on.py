"""A loss that Python hands on before its backward: nothing that the backward needs is switched off, freed or cut."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.graph.carrying import HANDING_ON, IMPORTS, snippet
from tests.rules.tools import analysed

START = f"""\
import torch
from torch import nn
{IMPORTS}
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(9, 4)
net.load_state_dict(torch.load("weights.pt"))
"""

PROGRAMS = {
    "grad-in-evaluation": """
for turn in range(3):
    begun = net(data).mean()
{inside}
    opt.zero_grad()
    ended.backward()
    opt.step()
""",
    "surplus-retain-graph": """
for turn in range(3):
    begun = net(data).pow(2).mean()
    opt.zero_grad()
    begun.backward(retain_graph=True)
{inside}
    ended.sum().backward()
    opt.step()
""",
    "attached-loss-total": """
begun = 0
for turn in range(3):
    begun += net(data).mean()
{behind}
opt.zero_grad()
ended.backward()
opt.step()
""",
    "attached-loss-history": """
losses = []
for turn in range(3):
    losses.append(net(data).mean())
begun = losses[-1]
{behind}
opt.zero_grad()
ended.backward()
opt.step()
""",
}
"""By rule: a program in which a backward comes to what was handed on."""

RULES = tuple(PROGRAMS)

SOME = [
    "a namespace",
    "the dict of an object updated",
    "setattr by a computed name",
    "a named tuple unpacked",
    "collections.namedtuple by index",
    "dataclasses.replace",
    "ChainMap written",
    "a heap",
    "a queue",
    "a derived dict",
    "a dict read by attribute",
    "operator.mul",
    "functools.reduce",
    "a decorator that keeps",
    "starmap",
    "list of what iterates",
    "a generator sent",
    "__radd__",
    "__iadd__",
    "a property with a setter",
    "a descriptor that is set",
    "an exception out of a call",
    "a context manager",
    "an executor that keeps",
    "a thread by keywords",
    "match by __match_args__",
    "a loop of three",
    "a tensor attribute",
    "random.choice",
    "a long slice",
]


def rewritten(folder: Path, rule: str, name: str) -> list[str]:
    """What is rewritten by any of the rules where one of the ways to hand on stands in the program of a rule."""
    code = snippet(name, "begun", "ended")
    program = PROGRAMS[rule].format(inside=indent(code, "    "), behind=code)
    findings = analysed(folder, Options(unsafe=True, select=RULES), START, program)
    return [f"{name}: {f.rule} in {f.span.line}" for f in findings if f.promise is not Promise.ADVICE]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", SOME)
def test_what_a_backward_comes_to_is_left(tmp_path: Path, rule: str, name: str) -> None:
    assert rewritten(tmp_path, rule, name) == []


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_it_is_left_whatever_hands_it_on(tmp_path: Path, rule: str) -> None:
    assert [found for name in HANDING_ON for found in rewritten(tmp_path, rule, name)] == []


REPORTED = {
    "a number in a namespace": "kept = SimpleNamespace(loss=begun.item())\nprint(kept.loss)",
    "a number in a named tuple": "kept = namedtuple('P', 'a b')(begun.item(), 1)\nprint(kept.a)",
    "a mean": "print(statistics.mean([begun.item(), 1.0]))",
    "a counter": "kept = Counter()\nkept['loss'] += begun.item()\nprint(kept['loss'])",
    "a queue of numbers": "kept = deque(maxlen=3)\nkept.append(float(begun))\nprint(sum(kept))",
    "a printed one": "print(f'{begun:.3f}')",
    "an object with a number": "class Row:\n    pass\nrow = Row()\nrow.loss = begun.item()\nprint(vars(row)['loss'])",
}


@pytest.mark.parametrize("name", REPORTED)
def test_what_is_only_reported_is_found_as_before(tmp_path: Path, name: str) -> None:
    code = f"""
net.eval()
for turn in range(3):
    begun = net(data).mean()
{indent(REPORTED[name], "    ")}
"""
    findings = analysed(tmp_path, Options(select=("grad-in-evaluation",)), START, code)
    assert [f.promise for f in findings] == [Promise.EXACT]
