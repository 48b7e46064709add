"""What code tells apart from other objects is not detached: another object would take its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import LEARNING, found, lines

KEEPING = """
kept, seen, when = [], set(), {{}}
for number, (x, y) in enumerate(batches()):
    out = net(x)
    loss = criterion(out, y)
    learn(loss)
    {before}
    kept.append({what})
    {behind}
print({end})
"""

BEHAVIOUR = {
    "attributes": ("{0}.number = number", "pass", "[k.number for k in kept]"),
    "attributes by a name": ("setattr({0}, 'number', number)", "pass", "[getattr(k, 'number', 0) for k in kept]"),
    "attributes in its dict": ("{0}.__dict__['number'] = number", "pass", "[k.__dict__ for k in kept]"),
    "a key": ("when[{0}] = number", "pass", "[when[k] for k in kept]"),
    "a key of a dict as written": ("when = {{{0}: number}}", "print([k in when for k in kept])", "kept"),
    "a set": ("seen.add({0})", "print({0} in seen)", "kept"),
    "a list that is asked": ("pass", "print(kept.index({0}))", "kept"),
    "a list that is counted": ("pass", "print(kept.count({0}))", "kept"),
    "a list that gives it back": ("pass", "kept.remove({0})", "kept"),
    "an identity": ("pass", "print(id({0}), [id(k) for k in kept])", "kept"),
    "a hash": ("pass", "print(hash({0}), [hash(k) for k in kept])", "kept"),
}


@pytest.mark.parametrize(("rule", "what"), [("stored-graph", "out"), ("attached-loss-history", "loss")])
@pytest.mark.parametrize("name", BEHAVIOUR)
def test_what_is_told_apart_is_kept_as_it_is(tmp_path: Path, rule: str, what: str, name: str) -> None:
    before, behind, end = (text.format(what) for text in BEHAVIOUR[name])
    assert found(tmp_path, rule, LEARNING, KEEPING.format(before=before, behind=behind, what=what, end=end)) == []


@pytest.mark.parametrize(("rule", "what"), [("stored-graph", "out"), ("attached-loss-history", "loss")])
@pytest.mark.parametrize(
    ("before", "behind", "end"),
    [
        ("net.number = number", "pass", "[k.sum() for k in kept]"),
        ("when[number] = float({0}.sum())", "pass", "[k.sum() for k in kept]"),
        ("seen.add({0}.item() if {0}.numel() == 1 else 0)", "print(number in seen)", "[k.sum() for k in kept]"),
        ("same = {0}.detach()\n    when[same] = number", "print(same in when)", "[k.sum() for k in kept]"),
    ],
)
def test_what_only_has_values_is_detached(
    tmp_path: Path, rule: str, what: str, before: str, behind: str, end: str
) -> None:
    program = KEEPING.format(before=before.format(what), behind=behind, what=what, end=end)
    assert [promise for _, promise in lines(found(tmp_path, rule, LEARNING, program))] == ["exact"]


CARRIED = """
cell = nn.RNNCell(4, 8)
opt = torch.optim.Adam(cell.parameters())
state = torch.zeros(16, 8)
{begin}
for x, y in batches():
    {read}
    state = cell(x, state)
    {write}
    learn(state.pow(2).mean())
"""


def test_a_state_that_has_attributes_is_left_alone(tmp_path: Path) -> None:
    parts = {"begin": "state.count = 0", "read": "count = state.count", "write": "state.count = count + 1"}
    assert found(tmp_path, "carried-hidden-state", LEARNING, CARRIED.format(**parts)) == []


def test_a_state_beside_what_has_attributes_is_cut(tmp_path: Path) -> None:
    parts = {"begin": "cell.count = 0", "read": "count = cell.count", "write": "cell.count = count + 1"}
    program = CARRIED.format(**parts)
    assert [promise for _, promise in lines(found(tmp_path, "carried-hidden-state", LEARNING, program))] == ["repair"]


ADVERSARIES = """
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.factor = 2

    def forward(self, given):
        return self.layer(given) * {owner}.factor

G, D = nn.Linear(4, 2), Judge()
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for x, y in batches():
    fake = G(x)
    fake.factor = 2
    opt_d.zero_grad()
    D({given}).mean().backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    fake.pow(2).mean().backward()
    opt_g.step()
"""


@pytest.mark.parametrize(("owner", "given", "mended"), [("given", "fake", False), ("self", "2 * fake", True)])
def test_a_fake_that_has_attributes_is_left_alone(tmp_path: Path, owner: str, given: str, mended: bool) -> None:
    program = ADVERSARIES.format(owner=owner, given=given)
    assert bool(lines(found(tmp_path, "undetached-generator-output", LEARNING, program))) is mended
