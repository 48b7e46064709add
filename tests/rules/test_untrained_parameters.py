"""What untrained-parameters finds and leaves alone."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.rules.tools import LEARNING, advised

RULE = "untrained-parameters"
HEAD = (
    LEARNING
    + """
device = torch.device("cuda")
"""
)

MODULE = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        {line}

    def forward(self, x):
        return self.layer(x) * self.scale

own = Scaled()
sgd = torch.optim.SGD(own.parameters(), lr=0.1)
for x, y in batches():
    sgd.zero_grad()
    criterion(own(x), y).backward()
    sgd.step()
"""

FOUND = (
    "self.scale = nn.Parameter(torch.ones(2)).to(device)",
    "self.scale = torch.nn.Parameter(torch.ones(2)).cuda()",
    "self.scale = torch.nn.parameter.Parameter(torch.ones(2), requires_grad=True).double()",
)

LEFT = (
    "self.scale = nn.Parameter(torch.ones(2).to(device))",
    "self.scale = nn.Parameter(torch.ones(2))",
    "self.scale = nn.Parameter(torch.ones(2), requires_grad=False).to(device)",
    "self.scale = nn.Parameter(torch.ones(2), True if device else False).to(device)",
    "self.scale = nn.Parameter(torch.ones(2, device='cuda')).cuda()",
    "self.scale = nn.Parameter(nn.Parameter(torch.ones(2)).to(device))",
    "self.scale = nn.Parameter(torch.ones(2)).to(device); self.scale = nn.Parameter(self.scale)",
    "self.scale = torch.ones(2).to(device)",
    "scale = nn.Parameter(torch.ones(2)).to(device); self.register_buffer('scale', scale)",
)

ELSEWHERE = {
    "no module": MODULE.replace("(nn.Module)", "").format(line=FOUND[0]),
    "of another library": "from elsewhere import nn\n" + MODULE.format(line=FOUND[0]),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    programs = {line: dedent(MODULE).format(line=line) for line in (*FOUND, *LEFT)} | ELSEWHERE
    return advised(tmp_path_factory.mktemp(RULE), RULE, HEAD, programs)


@pytest.mark.parametrize("line", FOUND)
def test_found(told: dict[str, list[str]], line: str) -> None:
    assert told[line] == [line]


@pytest.mark.parametrize("name", [*LEFT, *ELSEWHERE])
def test_left(told: dict[str, list[str]], name: str) -> None:
    assert told[name] == []
