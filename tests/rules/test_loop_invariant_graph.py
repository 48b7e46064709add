"""What the loop uses and the optimizer changes is computed in the loop; data, views and fresh graphs are left alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import analysed, assert_mended, found, mended

RULE = "loop-invariant-graph"

START = """\
import torch
from torch import nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
proj = nn.Linear(4, 4)
weight = nn.Parameter(torch.randn(4))
opt = torch.optim.SGD([*net.parameters(), *proj.parameters(), weight], lr=0.1)
x = torch.randn(16, 4)

"""

HITS = {
    "a penalty": (
        "repair",
        """
        penalty = sum(p.norm() for p in net.parameters())  #
        for step in range(9):
            loss = net(x).pow(2).mean() + 0.1 * penalty
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
        """
        for step in range(9):
            penalty = sum(p.norm() for p in net.parameters())  #
            loss = net(x).pow(2).mean() + 0.1 * penalty
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "a penalty before nested loops": (
        "repair",
        """
        penalty = sum((p ** 2).sum() for p in net.parameters())  #
        for epoch in range(3):
            for step in range(9):
                loss = net(x).pow(2).mean() + 0.1 * penalty
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
        """
        for epoch in range(3):
            for step in range(9):
                penalty = sum((p ** 2).sum() for p in net.parameters())  #
                loss = net(x).pow(2).mean() + 0.1 * penalty
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    ),
    "two statements that build on one another, and nested loops": (
        "repair",
        """
        def train(table):
            codes = proj(table)
            scale = codes.exp().mean()  #
            for epoch in range(3):
                for step in range(9):
                    loss = (net(codes) * scale).mean()
                    opt.zero_grad()
                    loss.backward()
                    opt.step()

        train(x)
        """,
        """
        def train(table):
            for epoch in range(3):
                for step in range(9):
                    codes = proj(table)
                    scale = codes.exp().mean()  #
                    loss = (net(codes) * scale).mean()
                    opt.zero_grad()
                    loss.backward()
                    opt.step()

        train(x)
        """,
    ),
    "nothing is saved: it runs on old values": (
        "behaviour",
        """
        shifted = torch.cat([weight[:2], weight[2:]])  #
        for step in range(9):
            loss = net(x + shifted).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
        """
        for step in range(9):
            shifted = torch.cat([weight[:2], weight[2:]])  #
            loss = net(x + shifted).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
    "the loop calls the same layer on something else": (
        "repair",
        """
        codes = torch.tanh(proj(x))  #
        for step in range(9):
            opt.zero_grad()
            (torch.tanh(proj(x + 1)) * codes).mean().backward()
            opt.step()
        """,
        """
        for step in range(9):
            codes = torch.tanh(proj(x))  #
            opt.zero_grad()
            (torch.tanh(proj(x + 1)) * codes).mean().backward()
            opt.step()
        """,
    ),
    "norms of other parameters by the same words": (
        "repair",
        """
        penalty = sum([p.norm() for p in proj.parameters()])  #
        for step in range(9):
            opt.zero_grad()
            (net(x).mean() + penalty + sum([p.norm() for p in net.parameters()])).backward()
            opt.step()
        """,
        """
        for step in range(9):
            penalty = sum([p.norm() for p in proj.parameters()])  #
            opt.zero_grad()
            (net(x).mean() + penalty + sum([p.norm() for p in net.parameters()])).backward()
            opt.step()
        """,
    ),
    "an attribute of a module": (
        "repair",
        """
        class Biased(nn.Module):
            def __init__(self):
                super().__init__()
                self.raw = nn.Parameter(torch.zeros(4))
                self.body = nn.Linear(4, 1)
                self.gate = torch.sigmoid(self.raw)  #

            def forward(self, x):
                return self.body(x * self.gate)

        model = Biased()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(9):
            opt.zero_grad()
            model(x).mean().backward()
            opt.step()
        """,
        """
        class Biased(nn.Module):
            def __init__(self):
                super().__init__()
                self.raw = nn.Parameter(torch.zeros(4))
                self.body = nn.Linear(4, 1)

            def forward(self, x):
                self.gate = torch.sigmoid(self.raw)  #
                return self.body(x * self.gate)

        model = Biased()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(9):
            opt.zero_grad()
            model(x).mean().backward()
            opt.step()
        """,
    ),
    "an attribute of each of several modules": (
        "repair",
        """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.raw = nn.Parameter(torch.zeros(4))
                self.gate = torch.sigmoid(self.raw)  #

            def forward(self, x):
                return x * self.gate

        layers = nn.ModuleList([Scaled() for _ in range(2)])
        opt = torch.optim.SGD(layers.parameters(), lr=0.1)
        for step in range(9):
            z = x
            for layer in layers:
                z = layer(z)
            opt.zero_grad()
            z.mean().backward()
            opt.step()
        """,
        """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.raw = nn.Parameter(torch.zeros(4))

            def forward(self, x):
                self.gate = torch.sigmoid(self.raw)  #
                return x * self.gate

        layers = nn.ModuleList([Scaled() for _ in range(2)])
        opt = torch.optim.SGD(layers.parameters(), lr=0.1)
        for step in range(9):
            z = x
            for layer in layers:
                z = layer(z)
            opt.zero_grad()
            z.mean().backward()
            opt.step()
        """,
    ),
    "an attribute of a trainer": (
        "repair",
        """
        class Trainer:
            def __init__(self):
                self.raw = weight
                self.gate = torch.sigmoid(self.raw)  #

            def fit(self):
                for epoch in range(3):
                    for batch in x.split(4):
                        opt.zero_grad()
                        net(batch * self.gate).mean().backward()
                        opt.step()


        Trainer().fit()
        """,
        """
        class Trainer:
            def __init__(self):
                self.raw = weight

            def fit(self):
                for epoch in range(3):
                    for batch in x.split(4):
                        self.gate = torch.sigmoid(self.raw)  #
                        opt.zero_grad()
                        net(batch * self.gate).mean().backward()
                        opt.step()


        Trainer().fit()
        """,
    ),
    "an attribute of a trainer, once an epoch": (
        "repair",
        """
        class Trainer:
            def __init__(self):
                self.raw = weight
                self.gate = torch.sigmoid(self.raw)  #

            def fit(self):
                for epoch in range(3):
                    opt.zero_grad()
                    loss = 0
                    for batch in x.split(4):
                        loss = loss + net(batch * self.gate).mean()
                    loss.backward()
                    opt.step()


        Trainer().fit()
        """,
        """
        class Trainer:
            def __init__(self):
                self.raw = weight

            def fit(self):
                for epoch in range(3):
                    self.gate = torch.sigmoid(self.raw)  #
                    opt.zero_grad()
                    loss = 0
                    for batch in x.split(4):
                        loss = loss + net(batch * self.gate).mean()
                    loss.backward()
                    opt.step()


        Trainer().fit()
        """,
    ),
}

ADVICE = {
    "dropout": """
        codes = F.dropout(proj(x), 0.5)
        for step in range(9):
            opt.zero_grad()
            net(codes).mean().backward()
            opt.step()
        """,
    "a dropout layer": """
        drop = nn.Dropout(0.5)
        codes = drop(proj(x))
        for step in range(9):
            opt.zero_grad()
            net(codes).mean().backward()
            opt.step()
        """,
    "statistics are kept": """
        norm = nn.BatchNorm1d(4)
        codes = norm(proj(x))
        for step in range(9):
            opt.zero_grad()
            net(codes).mean().backward()
            opt.step()
        """,
    "a name is bound in the loop": """
        codes = proj(x)
        for step in range(9):
            x = torch.randn(16, 4)
            opt.zero_grad()
            (net(codes) * x.sum(1, keepdim=True)).mean().backward()
            opt.step()
        """,
    "its result is read after the loop": """
        penalty = weight.norm()
        for step in range(9):
            opt.zero_grad()
            (net(x).mean() + penalty).backward()
            opt.step()
        print(penalty)
        """,
    "the loop computes the same, and a difference of the two": """
        old = F.log_softmax(proj(x), 1)[:, 0]
        for step in range(9):
            new = F.log_softmax(proj(x), 1)[:, 0]
            opt.zero_grad()
            (new - old).exp().mean().backward()
            opt.step()
        """,
    "the same, by a function": """
        def likelihood(model, x):
            return F.log_softmax(model(x), 1)[:, 0]

        old = likelihood(proj, x)
        for step in range(9):
            opt.zero_grad()
            (likelihood(proj, x) - old).exp().mean().backward()
            opt.step()
        """,
    "built by a function": """
        def penalties():
            return weight.norm()

        def loss_of(penalty):
            return net(x).mean() + penalty

        def fit(penalty):
            for step in range(9):
                opt.zero_grad()
                loss_of(penalty).backward()
                opt.step()

        fit(penalties())
        """,
}

SILENT = {
    "losses of one step": """
        for step in range(9):
            codes = proj(x)
            opt.zero_grad()
            for k in range(3):
                loss = net(codes[k]).mean()
                loss.backward()
            opt.step()
        """,
    "computed in the loop": """
        for step in range(9):
            penalty = weight.norm()
            opt.zero_grad()
            (net(x).mean() + penalty).backward()
            opt.step()
        """,
    "detached": """
        codes = proj(x).detach()
        for step in range(9):
            opt.zero_grad()
            net(codes).mean().backward()
            opt.step()
        """,
    "made without gradients": """
        with torch.no_grad():
            codes = proj(x)
        for step in range(9):
            opt.zero_grad()
            net(codes).mean().backward()
            opt.step()
        """,
    "a view of a parameter": """
        row = weight.view(1, 4)
        for step in range(9):
            opt.zero_grad()
            net(x + row).mean().backward()
            opt.step()
        """,
    "one backward behind the loop": """
        codes = proj(x)
        loss = 0
        for step in range(9):
            loss = loss + net(codes).mean()
        loss.backward()
        opt.step()
        """,
    "a state that is carried": """
        cell = nn.GRUCell(4, 4)
        h = torch.zeros(16, 4)
        for step in range(9):
            h = cell(x, h)
            opt.zero_grad()
            net(h).mean().backward()
            opt.step()
        """,
    "data alone": """
        scale = x.exp().mean()
        for step in range(9):
            opt.zero_grad()
            (net(x) * scale).mean().backward()
            opt.step()
        """,
    "computed anew under a condition": """
        codes = proj(x)
        for step in range(9):
            if step > 0:
                codes = proj(x)
            opt.zero_grad()
            net(codes).mean().backward()
            opt.step()
        """,
    "several losses of one forward": """
        for step in range(9):
            codes = proj(x)
            opt.zero_grad()
            for k in range(3):
                net(codes)[:, 0].mean().backward(retain_graph=True)
            opt.step()
        """,
}


@pytest.mark.parametrize("name", HITS)
def test_it_is_computed_in_the_loop(name: str, tmp_path: Path) -> None:
    promise, before, after = HITS[name]
    assert_mended(tmp_path, RULE, promise, START, before, after)


@pytest.mark.parametrize("name", ADVICE)
def test_what_may_not_move_is_told(name: str, tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, START + dedent(ADVICE[name]))
    assert [f.promise for f in findings] == [Promise.ADVICE]


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, RULE, START + dedent(SILENT[name])) == []


def test_a_flag_that_keeps_it_alive_goes_with_it(tmp_path: Path) -> None:
    program = START + dedent(
        """
        penalty = weight.norm()
        for step in range(9):
            loss = net(x).pow(2).mean() + 0.1 * penalty
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
        """
    )
    options = Options(unsafe=True, select=(RULE, "surplus-retain-graph"))
    findings = analysed(tmp_path, options, program)
    # norm keeps the parameter itself, which the step changes in place
    assert sorted((f.rule, f.promise) for f in findings) == [
        (RULE, Promise.REPAIR),
        ("surplus-retain-graph", Promise.REPAIR),
    ]
    assert {p for f in findings for p in f.partners} == {f.key for f in findings}
    text = mended(tmp_path, findings)
    assert "retain_graph" not in text
    assert "for step in range(9):\n    penalty = weight.norm()\n" in text


ANCHORED = """
{begin}
for step in range(9):
    {each}
    penalty = sum(((p - anchors[name]) ** 2).sum() for name, p in net.named_parameters())
    loss = net(x).pow(2).mean() + 0.1 * penalty
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("begin", "after"),
    [
        (
            "anchors = {name: p.clone() for name, p in net.named_parameters()}",
            "anchors = {name: p.clone().detach() for name, p in net.named_parameters()}",
        ),
        (
            "anchors = {}\nfor name, p in net.named_parameters():\n    anchors[name] = torch.clone(p)",
            "anchors = {}\nfor name, p in net.named_parameters():\n    anchors[name] = torch.clone(p).detach()",
        ),
    ],
)
def test_a_copy_of_parameters_is_detached(tmp_path: Path, begin: str, after: str) -> None:
    program = ANCHORED.format(begin=begin, each="pass")
    findings = found(tmp_path, RULE, START, program)
    assert [f.promise for f in findings] == [Promise.BEHAVIOUR]
    assert "copy of parameters is attached" in findings[0].message
    assert after in mended(tmp_path, findings)


@pytest.mark.parametrize(
    ("begin", "each"),
    [
        ("anchors = {name: p.detach().clone() for name, p in net.named_parameters()}", "pass"),
        ("anchors = {name: p.clone().detach() for name, p in net.named_parameters()}", "pass"),
        ("anchors = {name: p.data.clone() for name, p in net.named_parameters()}", "pass"),
        ("with torch.no_grad(): anchors = {name: p.clone() for name, p in net.named_parameters()}", "pass"),
        # others than those that are stepped
        ("anchors = {name: p.clone() for name, p in nn.Linear(4, 4).named_parameters()}", "pass"),
        # made anew in each step
        ("pass", "anchors = {name: p.clone() for name, p in net.named_parameters()}"),
        # read without their graph
        (
            "copies = {name: p.clone() for name, p in net.named_parameters()}",
            "anchors = {name: p.detach() for name, p in copies.items()}",
        ),
    ],
)
def test_a_copy_without_a_way_back_is_left_alone(tmp_path: Path, begin: str, each: str) -> None:
    assert not found(tmp_path, RULE, START, ANCHORED.format(begin=begin, each=each))


BUILT = """
kept = list(net.parameters())
scale, other, weights = torch.ones(1), torch.ones(1), {"norm": 1.0}
alias, factor = scale, 2.0

def norms():
    return factor * sum(p.norm() for p in net.parameters())

"""
USED = """
for step in range(9):
    loss = net(x).pow(2).mean() + 0.1 * penalty
    opt.zero_grad()
    loss.backward()
    opt.step()
    {each}
"""
OF_LIST = "sum(p.norm() for p in kept)"
OF_TENSOR = "scale * sum(p.norm() for p in net.parameters())"
OF_DICT = "weights['norm'] * sum(p.norm() for p in net.parameters())"


@pytest.mark.parametrize(
    ("penalty", "between", "each", "moves"),
    [
        (OF_LIST, "", "", True),
        (OF_LIST, "other.mul_(3)", "print(loss.item())", True),
        (OF_LIST, "kept.append(torch.ones(1))", "", False),
        (OF_LIST, "", "kept.append(torch.ones(1))", False),
        (OF_LIST, "last = kept.pop()", "", False),
        (OF_TENSOR, "", "", True),
        (OF_TENSOR, "scale.mul_(3)", "", False),
        (OF_TENSOR, "alias.mul_(3)", "", False),
        (OF_TENSOR, "alias.data.mul_(3)", "", False),
        (OF_DICT, "weights.update(norm=3.0)", "", False),
        (OF_DICT, "", "weights['norm'] *= 0.5", False),
        ("norms()", "", "", True),
        ("norms()", "factor = 3.0", "", False),
        ("norms()", "", "factor = 0.5 * factor", False),
    ],
)
def test_what_is_changed_behind_it_would_be_read_as_it_is_then(
    tmp_path: Path, penalty: str, between: str, each: str, moves: bool
) -> None:
    [finding] = found(
        tmp_path, RULE, START, BUILT, f"penalty = {penalty}\n{between}\n", USED.format(each=each or "pass")
    )
    assert finding.promise is (Promise.REPAIR if moves else Promise.ADVICE)


ONCE = """
import functools, itertools, math, random
import numpy as np

class Box:
    factor = 2.0

    def more(self):
        self.factor += 1.0

    def __call__(self):
        self.factor += 1.0
        return self.factor

def more():
    global scale
    scale += 1.0

def filled(given):
    given["last"] = weight.exp()
    return given["last"]

@functools.lru_cache
def remembered():
    return weight.exp()

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.count = nn.Linear(4, 4), 0

    def forward(self, given):
        self.count += 1
        return self.layer(given) * self.count

box, scale, queue, counter, rng = Box(), 2.0, [4.0, 3.0, 2.0], itertools.count(1), np.random.default_rng(0)
counting = Counting()
opt.add_param_group({{"params": counting.parameters()}})
made = {made}
{between}
for step in range(9):
    loss = net(x + made).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {behind}
"""


@pytest.mark.parametrize(
    ("made", "between", "behind"),
    [
        # what it is computed from is another one by then
        ("weight.exp() * box.factor", "setattr(box, 'factor', 3.0)", ""),
        ("weight.exp() * box.factor", "box.more()", ""),
        ("weight.exp() * box.factor", "", "box.more()"),
        ("weight.exp() * scale", "", "more()"),
        ("weight.exp()", "proj.weight.grad = None\nopt.step()", ""),
        ("proj(x).exp()", "proj.load_state_dict(nn.Linear(4, 4).state_dict())", ""),
        # it does more than compute
        ("weight.exp() * box()", "", ""),
        ("weight.exp() * queue.pop()", "", ""),
        ("weight.exp() * next(counter)", "", ""),
        ("weight.exp() * random.betavariate(1, 2)", "", ""),
        ("weight.exp() * float(np.random.standard_normal())", "", ""),
        ("weight.exp() * int(rng.integers(1, 9))", "", ""),
        ("weight.exp() * (print('once') or 1)", "", ""),
        ("filled({{}}) if False else filled(vars(box).copy())", "", ""),
        ("counting(x).exp()", "", ""),
        ("remembered() * 2", "", ""),
    ],
)
def test_what_would_not_be_the_same_in_the_loop_is_told(tmp_path: Path, made: str, between: str, behind: str) -> None:
    findings = found(tmp_path, RULE, START + ONCE.format(made=made, between=between, behind=behind or "pass"))
    assert [f.promise for f in findings] == [Promise.ADVICE]


@pytest.mark.parametrize(
    ("made", "between", "behind"),
    [
        ("weight.exp() * box.factor", "net.factor = 3.0", "net.factor = 4.0"),
        ("weight.exp() * scale", "setattr(box, 'factor', 3.0)", "box.more()"),
        ("torch.exp(weight.clamp(min=0.1)) * max(1, len(queue)) * math.sqrt(scale)", "pass", "print(scale)"),
        ("sum(p.norm() for p in proj.parameters())", "net.zero_grad()", "queue.append(1.0)"),
    ],
)
def test_what_is_the_same_in_the_loop_moves(tmp_path: Path, made: str, between: str, behind: str) -> None:
    program = START + ONCE.format(made=made, between=between, behind=behind)
    findings = found(tmp_path, RULE, program)
    assert [f.promise for f in findings] == [Promise.REPAIR]
    assert f"    made = {made}\n" in mended(tmp_path, findings)


@pytest.mark.parametrize(
    "loop",
    [
        "while made.sum() < 99:\n    loss = net(x + made).pow(2).mean()\n    {learn}",
        "for step in range(9):\n    loss = net(x + made).pow(2).mean()\n    {learn}\nelse:\n    print(made)",
        "for epoch in range(3):\n    print(made.sum())\n    for step in range(9):\n"
        "        loss = net(x + made).pow(2).mean()\n        {learn}",
    ],
)
def test_what_the_head_or_the_end_of_the_loop_reads_stays(tmp_path: Path, loop: str) -> None:
    learn = "opt.zero_grad(); loss.backward(); opt.step()"
    findings = found(tmp_path, RULE, START + "made = weight.exp()\n" + loop.format(learn=learn) + "\n")
    assert [f.promise for f in findings] == [Promise.ADVICE]


TRAINER = """
import copy
from operator import attrgetter

factor = 2.0

class Trainer:
    def __init__(self):
        self.raw = weight
        self.gate = torch.sigmoid(self.raw) * factor
        {behind}

    def fit(self, other):
        for batch in x.split(4):
            opt.zero_grad()
            net(batch * {owner}.gate).mean().backward()
            opt.step()

trainer = Trainer()
{between}
trainer.fit({other})
"""


@pytest.mark.parametrize(
    ("behind", "between", "owner", "other"),
    [
        ("self.raw = 2 * weight", "", "self", "None"),
        ("", "trainer.raw = 2 * weight", "self", "None"),
        ("", "factor = 3.0", "self", "None"),
        ("", "print(getattr(trainer, 'gate').sum())", "self", "None"),
        ("", "kind = 'gate'\nprint(getattr(trainer, kind).sum())", "self", "None"),
        ("", "kind = 'ga'\nprint(getattr(trainer, kind + 'te').sum())", "self", "None"),
        (
            "",
            "class Change:\n    def __init__(self, of):\n        of.raw = 2 * weight\nChange(trainer)",
            "self",
            "None",
        ),
        (
            "",
            "class Heir(Trainer):\n    def __init__(self):\n        super().__init__()\n        self.raw = 2 * weight\n"
            "class Last(Heir):\n    pass\ntrainer = Last()",
            "self",
            "None",
        ),
        ("", "print([v.sum() for v in vars(trainer).values()])", "self", "None"),
        ("", "print(attrgetter('gate')(trainer).sum())", "self", "None"),
        ("", "", "other", "Trainer()"),
        ("", "weight.data.mul_(2)", "self", "None"),
    ],
)
def test_an_attribute_that_others_look_at_or_that_would_be_another_stays(
    tmp_path: Path, behind: str, between: str, owner: str, other: str
) -> None:
    program = TRAINER.format(behind=behind or "pass", between=between, owner=owner, other=other)
    assert [f.promise for f in found(tmp_path, RULE, START + program)] == [Promise.ADVICE]


@pytest.mark.parametrize(
    "between",
    [
        "trainer.more = 4",
        "class Apart:\n    def __init__(self):\n        self.raw = 3\nApart()",
        "kind = 'cosine'\nprint(getattr(torch, kind + '_similarity'))",
        "print(getattr(trainer, 'more', None))",
    ],
)
def test_an_attribute_beside_others_moves(tmp_path: Path, between: str) -> None:
    program = TRAINER.format(behind="self.other = 3", between=between, owner="self", other="None")
    assert [f.promise for f in found(tmp_path, RULE, START + program)] == [Promise.REPAIR]
