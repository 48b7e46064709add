"""Flags beside things of which the program says more than it seems: whole numbers, computed names, many origins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_surplus_doubts import LOOP, START
from tests.rules.tools import found

RULE = "surplus-retain-graph"

WORDS = """
import feeder
source = feeder.open(sys.argv[1])
table = nn.Embedding(10, 4)
cell = nn.GRU(4, 4)
"""

OWN = """
class Words(nn.Embedding):
    def forward(self, x):
        return x * self.weight
own = Words(9, 4)
"""


@pytest.mark.parametrize(
    ("before", "loss"),
    [
        (WORDS, "cell(table(source.words().view(1, -1)))[0].mean()"),
        (WORDS + "bag = nn.EmbeddingBag(10, 4)", "net(bag(source.words(), source.starts())).mean()"),
        (WORDS + "class Words(nn.Embedding):\n    pass\nown = Words(10, 4)", "net(own(source.words())).mean()"),
    ],
)
def test_indices_of_a_table_bring_no_graph(tmp_path: Path, before: str, loss: str) -> None:
    findings = found(tmp_path, RULE, START, before, LOOP.format(loss=loss))
    expected = ["exact"] if "starts" not in loss else ["advice"]
    assert [f.promise.value for f in findings] == expected


@pytest.mark.parametrize(
    ("before", "loss"),
    [
        (WORDS, "cell(source.words().view(1, -1, 4))[0].mean()"),
        (WORDS, "(table(source.words()) * source.weights()).mean()"),
        (WORDS + "bag = nn.EmbeddingBag(10, 4, mode='sum')", "bag(torch.zeros(3, 3), None, source.w()).mean()"),
        (WORDS + "given = source.read()", "table(*given).mean()"),
        (WORDS + OWN, "own(source.words()).mean()"),
    ],
)  # fmt: skip
def test_what_is_computed_with_may_bring_one(tmp_path: Path, before: str, loss: str) -> None:
    findings = found(tmp_path, RULE, START, before, LOOP.format(loss=loss))
    assert [f for f in findings if f.promise.value != "advice"] == []


STORE = """
import feeder
class Store:
    {body}
    def load(self, name):
        setattr(self, name + "_data", feeder.arrays(name).tolist())
        setattr(self, name + "_size", 4)
    {more}
store = Store()
kind = sys.argv[1]
store.load(kind)
{after}
bulk = torch.tensor(getattr(store, kind + "_data"))
other = nn.Linear(4, 2)
def second():
    out = (other(torch.randn(2, 4)) * getattr(store, kind + "_size")).sum()
    out.backward()
"""


def test_an_attribute_by_the_end_of_its_name_is_one_of_those(tmp_path: Path) -> None:
    start = STORE.format(body="pass", more="", after="")
    findings = found(tmp_path, RULE, START, start, LOOP.format(loss="net(x).mean()") + "    second()\n")
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize(
    ("body", "more", "after"),
    [
        ("def __getattr__(self, name):\n        return kept[-1]", "", ""),
        ("pass", "@property\n    def this_size(self):\n        return kept[-1]", ""),
        ("pass", "", "feeder.fill(store)"),
        ("pass", "", "store.last_size = 0.0"),
    ],
)
def test_an_object_that_may_have_others_may_give_any(tmp_path: Path, body: str, more: str, after: str) -> None:
    start = "kept = []\n" + STORE.format(body=body, more=more, after=after)
    end = "    kept.append(loss)\n    store.last_size = loss\n    second()\n" if "last" in after else "    second()\n"
    findings = found(tmp_path, RULE, START, start, LOOP.format(loss="net(x).mean()") + end)
    assert [f for f in findings if f.promise.value != "advice"] == []


MANY = """
import feeder
source = feeder.open(sys.argv[1])
first = nn.Linear(4, 1)
step_ = torch.optim.SGD(first.parameters(), lr=0.1)
for turn in range(2):
    own = first(torch.randn(3, 4)).mean()
    step_.zero_grad()
    own.backward(retain_graph=True)
    step_.step()
{kept}
terms = [{terms}]
for turn in range(2):
    loss = net(torch.randn(3, 4)).mean() + sum(terms)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TERMS = ", ".join(f"source.term{i}()" for i in range(30))


def test_many_unseen_terms_of_a_later_loss_are_none_of_an_earlier_one(tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, START, MANY.format(kept="", terms=TERMS))
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize("last", ["feeder.box[0]", "box.get(feeder.name(), 0.0)"])
def test_one_that_is_lost_among_many_is_not_forgotten(tmp_path: Path, last: str) -> None:
    kept = "box = {}\nbox[feeder.name()] = own\nfeeder.box = [own]"
    findings = found(tmp_path, RULE, START, MANY.format(kept=kept, terms=f"{TERMS}, {last}"))
    assert [f for f in findings if f.promise.value != "advice"] == []
