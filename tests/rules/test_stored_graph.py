"""What stored-graph finds, mends and leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Finding, Promise
from tests.rules import tools
from tests.rules.tools import analysed

RULE = "stored-graph"
RULES = (RULE, "carried-hidden-state", "attached-loss-total", "attached-loss-history", "surplus-retain-graph")

WALK = "loss.backward(retain_graph=True)"

HEAD = """
import torch
from collections import deque
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters())

def batches():
    for _ in range(50):
        yield torch.randn(16, 4)

def step(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def findings(folder: Path, program: str) -> list[Finding]:
    return analysed(folder, Options(unsafe=True, select=RULES), HEAD + program)


def check(folder: Path, program: str, promise: Promise, before: str, after: str) -> None:
    found = findings(folder, program)
    assert [(f.rule, f.promise) for f in found] == [(RULE, promise)]
    assert tools.mended(folder, found) == (HEAD + program).replace(before, after)
    assert before in HEAD + program


# what is found


def test_what_a_later_step_reads_is_detached_where_it_is_stored(tmp_path: Path) -> None:
    program = """
queue = deque(maxlen=3)
for x in batches():
    z = net(x)
    loss = z.pow(2).mean()
    for old in queue:
        loss = loss + (z - old).abs().mean()
    step(loss)
    queue.append(z)
"""
    check(tmp_path, program, Promise.REPAIR, "queue.append(z)", "queue.append(z.detach())")


def test_an_attribute_is_a_store_too(tmp_path: Path) -> None:
    program = """
class Smooth:
    last = None

    def __call__(self, z):
        jump = 0.0 if self.last is None else (z - self.last).pow(2).mean()
        self.last = z
        return jump

smooth = Smooth()
for x in batches():
    z = net(x)
    step(z.pow(2).mean() + smooth(z))
"""
    check(tmp_path, program, Promise.REPAIR, "self.last = z", "self.last = z.detach()")


def test_a_queue_with_the_current_batch_is_cut_where_the_step_ends(tmp_path: Path) -> None:
    program = """
bank = []
for x in batches():
    z = net(x)
    bank.append(z)
    step(torch.cat(bank).std(0).sum())
"""
    check(tmp_path, program, Promise.REPAIR, ".sum())\n", ".sum())\n    bank[-1] = bank[-1].detach()\n")


def test_a_mean_that_the_step_uses_is_cut_where_the_old_one_is_read(tmp_path: Path) -> None:
    program = """
mean = torch.zeros(2)
for x in batches():
    z = net(x)
    mean = 0.9 * mean + 0.1 * z.mean(0)
    step((z - mean).pow(2).mean())
"""
    check(tmp_path, program, Promise.REPAIR, "0.9 * mean +", "0.9 * mean.detach() +")


@pytest.mark.parametrize(
    ("grown", "after"),
    [
        ("queue = torch.cat([z, queue])[:64]", "queue = torch.cat([z, queue.detach()])[:64]"),
        ("queue = torch.cat([z, queue])[:64, :]", "queue = torch.cat([z, queue.detach()])[:64, :]"),
    ],
)
def test_a_queue_of_so_many_is_cut_where_the_old_one_is_read(tmp_path: Path, grown: str, after: str) -> None:
    program = f"""
queue = torch.zeros(64, 2)
for x in batches():
    z = net(x)
    {grown}
    step((z @ queue.t()).logsumexp(1).mean())
"""
    check(tmp_path, program, Promise.REPAIR, grown, after)


def test_a_queue_that_is_filled_behind_the_step(tmp_path: Path) -> None:
    program = """
class Queue:
    def __init__(self, size):
        self.size = size
        self.held = torch.zeros(size, 2)

    def push(self, new):
        self.held = torch.cat([new, self.held])[:self.size]

queue = Queue(64)
for x in batches():
    z = net(x)
    step((z @ queue.held.t()).logsumexp(1).mean())
    queue.push(z)
"""
    check(tmp_path, program, Promise.REPAIR, "self.held])[:self.size]", "self.held])[:self.size].detach()")


def test_a_mean_that_only_weighs_the_loss_is_cut_where_it_is_added_to(tmp_path: Path) -> None:
    program = """
scale = 1.0
for x in batches():
    z = net(x)
    scale = 0.9 * scale + 0.1 * z.exp().mean()
    step((z / scale.detach()).pow(2).mean() if i else z.sum())
"""
    check(tmp_path, "i = 1\n" + program, Promise.EXACT, "0.1 * z.exp().mean()", "0.1 * z.exp().mean().detach()")


def test_outputs_that_pile_up_are_detached(tmp_path: Path) -> None:
    program = """
def epoch():
    seen = []
    for x in batches():
        z = net(x)
        step(z.pow(2).mean())
        seen.append(z)
    return torch.cat(seen).argmax(1).tolist()

print(epoch())
"""
    check(tmp_path, program, Promise.EXACT, "seen.append(z)", "seen.append(z.detach())")


def test_what_saves_nothing_is_a_change_of_behaviour(tmp_path: Path) -> None:
    program = """
bias = nn.Parameter(torch.zeros(4))
sgd = torch.optim.SGD([bias], lr=0.1)
last = torch.zeros(4)
for x in batches():
    here = x.mean(0) + bias
    loss = (here - last).pow(2).sum()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    last = here
"""
    check(tmp_path, program, Promise.BEHAVIOUR, "last = here", "last = here.detach()")


@pytest.mark.parametrize(
    ("walk", "rest", "under", "promise"),
    [
        ("pass", WALK, "True", Promise.REPAIR),
        (WALK, "pass", "True", Promise.BEHAVIOUR),
        ("pass", WALK, "i % 2 == 1", Promise.BEHAVIOUR),
    ],
)
def test_what_a_step_learned_through_is_no_repair(
    tmp_path: Path, walk: str, rest: str, under: str, promise: Promise
) -> None:
    program = f"""
last = None
for i, x in enumerate(batches()):
    z = net(x)
    loss = z.pow(2).mean()
    if last is not None:
        loss = loss + (z - last).pow(2).mean()
        {walk}
    {rest}
    if {under}:
        opt.step()
    last = z
"""
    found = [f for f in findings(tmp_path, program) if f.rule == RULE]
    assert {f.promise for f in found} == {promise}


@pytest.mark.parametrize("made", ["net(x)", "either(x)"])
def test_what_a_step_learned_through_may_be_one_of_several_results(tmp_path: Path, made: str) -> None:
    program = f"""
def either(x):
    if not net.training:
        return net(x)
    return net(x) * 1.0

last = None
for x in batches():
    z = {made}
    if last is not None:
        loss = (z - last).pow(2).mean()
        loss.backward()
        opt.step()
    last = z
"""
    found = [f for f in findings(tmp_path, program) if f.rule == RULE]
    assert {f.promise for f in found} == {Promise.BEHAVIOUR}


@pytest.mark.parametrize(("steps", "promise"), [("opt", Promise.REPAIR), ("other", Promise.BEHAVIOUR)])
def test_a_retained_graph_raises_only_behind_a_step_of_its_own_parameters(
    tmp_path: Path, steps: str, promise: Promise
) -> None:
    program = f"""
head = nn.Linear(2, 1)
other = torch.optim.SGD(head.parameters(), lr=0.1)
last = torch.zeros(16, 2)
for x in batches():
    z = net(x)
    loss = head(z).mean() + (z - last).abs().mean()
    loss.backward(retain_graph=True)
    {steps}.step()
    last = z
"""
    found = [f for f in findings(tmp_path, program) if f.rule == RULE]
    assert {f.promise for f in found} == {promise}


def test_the_flag_that_kept_the_graph_goes_with_it(tmp_path: Path) -> None:
    program = """
last = torch.zeros(16, 2)
for x in batches():
    z = net(x)
    loss = (z - last).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    last = z
"""
    found = findings(tmp_path, program)
    assert sorted(f.rule for f in found) == [RULE, "surplus-retain-graph"]
    after = tools.mended(tmp_path, found)
    assert "loss.backward()\n" in after
    assert "last = z.detach()\n" in after


# what is left alone

KEPT = {
    "behind what a gradient is taken of": """
x = torch.rand(2, 4, requires_grad=True)
slope = torch.autograd.grad(net(x).sum(), x)[0]
for _ in range(9):
    y = torch.clamp(x - 0.1 * slope, 0, 1)
    y = y / y.norm(dim=1, keepdim=True)
    energy = net(y)
    slope = torch.autograd.grad(energy.sum(), y)[0]
    x = y
""",
    "behind what a gradient is taken of, beside a step": """
last = torch.rand(16, 4)
for x in batches():
    y = torch.tanh(net[0](x)[:, :4] * last)
    slope = torch.autograd.grad(net(y).sum(), y, create_graph=True)[0]
    last = slope.detach()
    step(net(x).pow(2).mean())
""",
    "read detached, one kept": """
last = torch.zeros(16, 2)
for x in batches():
    z = net(x)
    step((z - last.detach()).pow(2).mean())
    last = z
""",
    "stored detached": """
bank = deque(maxlen=5)
for x in batches():
    z = net(x)
    step(z.std(0).sum() + sum((z - b).abs().mean() for b in bank))
    bank.append(z.detach())
""",
    "stored without gradients": """
bank = []
for x in batches():
    with torch.no_grad():
        key = net(x)
    z = net(x)
    bank.append(key)
    step((z - torch.stack(bank).mean(0)).pow(2).mean())
""",
    "used within the step": """
for x in batches():
    parts = []
    for row in x:
        parts.append(net(row))
    step(torch.stack(parts).pow(2).mean())
""",
    "cleared before each step": """
parts = []
for x in batches():
    parts.clear()
    parts.append(net(x))
    step(torch.stack(parts).pow(2).mean())
""",
    "emptied after each step": """
parts = []
for x in batches():
    parts.append(net(x))
    parts.append(net(x + 1))
    step(torch.stack(parts).pow(2).mean())
    del parts[:]
""",
    "emptied every few steps, where they are used": """
parts = []
for i, x in enumerate(batches()):
    parts.append(net(x))
    if i % 4 == 3:
        step(torch.stack(parts).pow(2).mean())
        parts = []
""",
    "popped by its reader": """
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(4, 8), nn.Linear(12, 2)
        self.skips = []

    def forward(self, x):
        self.skips.append(x)
        y = self.down(x)
        return self.up(torch.cat([y, self.skips.pop()], 1))

tower = Tower()
sgd = torch.optim.SGD(tower.parameters(), lr=0.1)
for x in batches():
    sgd.zero_grad()
    tower(x).sum().backward()
    sgd.step()
""",
    "overwritten before it is read": """
class Tap(nn.Module):
    def forward(self, x):
        self.seen = net(x)
        return self.seen.sum(1)

tap = Tap()
for x in batches():
    y = tap(x)
    step(y.mean() + tap.seen.pow(2).mean())
""",
    "a graph from before the loop": """
first = net(torch.randn(16, 4)).detach()
for x in batches():
    step((net(x) - first).pow(2).mean())
""",
    "handed to code that cannot be seen": """
from library import Memory
memory = Memory()
for x in batches():
    z = net(x)
    step(z.pow(2).mean() + memory.distance(z))
    memory.add(z)
""",
    "sums with parameters": """
w = net[0].weight
dual = torch.zeros(8, 4)
for x in batches():
    dual = dual + w - 0.5
    step(net(x).pow(2).mean() + (w + dual).pow(2).sum())
""",
    "copies of parameters, one by one": """
anchor = None
for x in batches():
    loss = net(x).pow(2).mean()
    if anchor is not None:
        loss = loss + sum(((a - b) ** 2).sum() for a, b in zip(net.parameters(), anchor))
    step(loss)
    anchor = [p.detach().clone() for p in net.parameters()]
""",
    "copies of parameters by name": """
anchor = {}
for x in batches():
    loss = net(x).pow(2).mean()
    for name, p in net.named_parameters():
        if name in anchor:
            loss = loss + (p - anchor[name]).abs().sum()
    step(loss)
    for name, p in net.named_parameters():
        anchor[name] = p.data.clone()
""",
    "numbers of parameters": """
norms = []
for x in batches():
    loss = net(x).pow(2).mean()
    for norm, p in zip(norms, net.parameters()):
        loss = loss + (p.norm() - norm) ** 2
    step(loss)
    norms = [p.norm().item() for p in net.parameters()]
""",
    "a queue of data": """
queue = torch.zeros(64, 2)
for x in batches():
    z = net(x)
    step((z @ queue.t()).logsumexp(1).mean())
    queue = torch.cat([z.detach(), queue])[:64]
""",
    "a queue that is made anew in each step": """
for x in batches():
    queue = torch.zeros(64, 2)
    for part in x.chunk(4):
        queue = torch.cat([net(part), queue])[:64]
    step((net(x) @ queue.t()).logsumexp(1).mean())
""",
    "gradients": """
mean = None
for x in batches():
    loss = net(x).pow(2).mean()
    g = torch.autograd.grad(loss, net[0].weight)[0]
    mean = g if mean is None else 0.9 * mean + 0.1 * g
    step((net(x) * mean.norm()).pow(2).mean())
""",
    "outputs of evaluation": """
seen = []
with torch.no_grad():
    for x in batches():
        seen.append(net(x))
print(torch.cat(seen).mean())
""",
    "outputs that are back-propagated after the loop": """
seen = []
for x in batches():
    seen.append(net(x))
step(torch.cat(seen).mean())
""",
    "outputs that are returned to nobody knows whom": """
def run(x, model=None):
    seen = []
    for part in x:
        z = net(part)
        step(z.mean())
        seen.append(z)
    return seen
""",
}


@pytest.mark.parametrize("program", KEPT.values(), ids=KEPT.keys())
def test_left_alone(tmp_path: Path, program: str) -> None:
    assert findings(tmp_path, program) == []


IN_SOME_TURNS = """
    mean = torch.zeros(3)
    todo = [torch.randn(6, 4) for _ in range(8)]
    scorer = nn.Linear(4, 3)
    trainer = torch.optim.SGD(scorer.parameters(), lr=0.1)
    {loop}:
        out = torch.tanh(scorer(torch.randn(6, 4)))
        mean = 0.5 * mean + 0.5 * out.mean(0)
        if {condition}:
            trainer.zero_grad()
            (mean - 1).pow(2).mean().backward()
            trainer.step()
    """


@pytest.mark.parametrize(
    ("loop", "condition"),
    [
        ("for step in range(6)", "step == 5"),
        ("for step in range(6)", "(step + 1) % 3 == 0"),
        ("while todo.pop() is not None", "not todo"),
        ("for step in range(6)", "torch.rand(()) < 0.2"),
        ("for step in range(6)", "step in (3,)"),
    ],
)
def test_a_backward_in_some_turns_proves_nothing_of_two(tmp_path: Path, loop: str, condition: str) -> None:
    assert tools.found(tmp_path, RULE, HEAD, IN_SOME_TURNS.format(loop=loop, condition=condition)) == []


@pytest.mark.parametrize("condition", ["step > 0", "scorer is not None", "scorer.training"])
def test_a_condition_that_lasts_proves_it(tmp_path: Path, condition: str) -> None:
    findings = tools.found(tmp_path, RULE, HEAD, IN_SOME_TURNS.format(loop="for step in range(6)", condition=condition))
    assert [f.promise for f in findings] == [Promise.REPAIR]


ONE_TURN = """
    net = nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    first = None
    for step in range(6):
        out = net(torch.randn(6, 4))
        loss = out.pow(2).mean()
        if first is None:
            first = out
        if {condition}:
            loss = loss + (out - first).pow(2).mean() + first.abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """


@pytest.mark.parametrize(("condition", "number"), [("step == 0", 0), ("step > 0", 1), ("first is not None", 1)])
def test_what_a_loss_reads_in_one_turn_is_walked_once(tmp_path: Path, condition: str, number: int) -> None:
    assert len(tools.found(tmp_path, RULE, HEAD, ONE_TURN.format(condition=condition))) == number


SKIPPED = """
    net = nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    bank = None

    def learn(loss, step):
        {early}
        opt.zero_grad()
        loss.backward()
        opt.step()

    for step in range(6):
        out = net(torch.randn(6, 4))
        loss = out.pow(2).mean()
        if bank is not None:
            loss = loss + (out - bank).abs().mean()
        bank = out
        {skip}
        learn(loss, step)
    """


@pytest.mark.parametrize(
    ("early", "skip", "number"),
    [
        ("pass", "pass", 1),
        ("pass", "if step == 1: continue", 0),
        ("pass", "if torch.isnan(loss): continue", 0),
        ("pass", "if step == 0: continue", 1),
        ("pass", "for part in out: print(part)", 1),
        ("if torch.isnan(loss): return", "pass", 0),
        ("if opt is None: return", "pass", 1),
    ],
)
def test_a_turn_that_may_be_skipped_proves_nothing(tmp_path: Path, early: str, skip: str, number: int) -> None:
    assert len(tools.found(tmp_path, RULE, HEAD, SKIPPED.format(early=early, skip=skip))) == number


AVERAGED = """
{begin}
for x in batches():
    step(net(x).pow(2).mean())
    {update}
{end}
"""

BY_NAME = "for name, p in net.named_parameters(): "
LOOK = "print(sum(float(v.norm()) for v in (mean.values() if isinstance(mean, dict) else mean)))"


@pytest.mark.parametrize(
    ("begin", "update", "after"),
    [
        (
            "mean = {name: p.clone() for name, p in net.named_parameters()}",
            BY_NAME + "mean[name] = 0.9 * mean[name] + 0.1 * p",
            BY_NAME + "mean[name] = (0.9 * mean[name] + 0.1 * p).detach()",
        ),
        (
            "mean = {name: p.data.clone() for name, p in net.named_parameters()}",
            BY_NAME + "mean[name] = mean[name] * 0.9 + p * 0.1",
            BY_NAME + "mean[name] = (mean[name] * 0.9 + p * 0.1).detach()",
        ),
        (
            "mean = [p.data.clone() for p in net.parameters()]",
            "for i, p in enumerate(net.parameters()): mean[i] = 0.9 * mean[i] + 0.1 * p",
            "for i, p in enumerate(net.parameters()): mean[i] = (0.9 * mean[i] + 0.1 * p).detach()",
        ),
    ],
)
def test_a_mean_of_weights_is_cut_where_it_is_made(tmp_path: Path, begin: str, update: str, after: str) -> None:
    check(tmp_path, AVERAGED.format(begin=begin, update=update, end=LOOK), Promise.EXACT, update, after)


@pytest.mark.parametrize(
    ("begin", "update", "end"),
    [
        ("mean = {}", BY_NAME + "mean[name] = 0.9 * mean.get(name, 0.0) + 0.1 * p.data", LOOK),
        (
            "mean = {name: p.data.clone() for name, p in net.named_parameters()}",
            BY_NAME + "mean[name] = 0.9 * mean[name] + 0.1 * p.detach()",
            LOOK,
        ),
        (
            "mean = {name: p.data.clone() for name, p in net.named_parameters()}",
            "with torch.no_grad():\n        " + BY_NAME + "mean[name] = 0.9 * mean[name] + 0.1 * p",
            LOOK,
        ),
        # made anew in each step, and used by its loss
        (
            "mean = {}",
            BY_NAME + "mean[name] = 0.1 * p",
            "step(sum(v.norm() for v in mean.values()))",
        ),
        # somebody may back-propagate it
        (
            "import elsewhere\nmean = {name: p.data.clone() for name, p in net.named_parameters()}",
            BY_NAME + "mean[name] = 0.9 * mean[name] + 0.1 * p",
            "elsewhere.finish(mean)",
        ),
        (
            "mean = {name: p.data.clone() for name, p in net.named_parameters()}",
            BY_NAME + "mean[name] = 0.9 * mean[name] + 0.1 * p",
            "step(sum(v.norm() for v in mean.values()))",
        ),
    ],
)
def test_a_mean_of_weights_that_is_left_alone(tmp_path: Path, begin: str, update: str, end: str) -> None:
    assert findings(tmp_path, AVERAGED.format(begin=begin, update=update, end=end)) == []


# what is stored once

CACHE = """
data = torch.randn(3, 4)

class Prototypes:
    def __init__(self):
        self.kept, self.old = None, True

    def get(self, x):
        {get}

prototypes = Prototypes()
for x in batches():
    step(torch.cdist(net(x), prototypes.get(x)).mean())
"""

CACHES = {
    "if none": "if self.kept is None:\n            self.kept = net(data)\n        return self.kept",
    "otherwise": "if self.kept is not None:\n            return self.kept\n"
    "        self.kept = net(data)\n        return self.kept",
    "in one expression": "self.kept = net(data) if self.kept is None else self.kept\n        return self.kept",
    "of the first batch": "if self.kept is None:\n            self.kept = net(x)[:3]\n        return self.kept",
    "an attribute that is there or not": "if not hasattr(self, 'first'):\n            self.first = net(data)\n"
    "        return self.first",
}


@pytest.mark.parametrize("name", CACHES)
def test_a_cache_may_have_to_be_computed_anew(name: str, tmp_path: Path) -> None:
    found = findings(tmp_path, CACHE.format(get=CACHES[name]))
    assert [(f.rule, f.promise) for f in found] == [(RULE, Promise.ADVICE)]
    assert "compute it in every step, or detach it if it should not be trained" in found[0].message


LISTED = """
kept = []
for x in batches():
    {fill}
    step(torch.cdist(net(x), kept[0]).mean())
    {end}
"""


@pytest.mark.parametrize(
    "fill",
    [
        "if not kept: kept.append(net(x)[:3])",
        "if len(kept) == 0: kept.append(net(x)[:3])",
        "if len(kept) < 1: kept.append(net(x)[:3])",
        "if len(kept): pass\n    else: kept.append(net(x)[:3])",
        "if kept: pass\n    else: kept.append(net(x)[:3])",
    ],
)
def test_a_list_that_is_filled_once_is_a_cache(fill: str, tmp_path: Path) -> None:
    found = findings(tmp_path, LISTED.format(fill=fill, end=""))
    assert [(f.rule, f.promise) for f in found] == [(RULE, Promise.ADVICE)]
    assert "compute it in every step" in found[0].message


def test_a_list_behind_a_return_is_a_cache(tmp_path: Path) -> None:
    get = (
        "if self.kept:\n            return self.kept[0]\n"
        "        self.kept.append(net(data))\n        return self.kept[0]"
    )
    code = CACHE.replace("self.kept, self.old = None, True", "self.kept = []")
    found = findings(tmp_path, code.format(get=get))
    assert [(f.rule, f.promise) for f in found] == [(RULE, Promise.ADVICE)]


@pytest.mark.parametrize(
    ("fill", "end"),
    [
        ("kept.append(net(x)[:3])", "kept = kept[-4:]"),
        ("kept.append(net(x)[:3])", "if len(kept) > 4: kept.pop(0)"),
        ("if x.shape[0] > 2: kept.append(net(x)[:3])", "if len(kept) > 4: del kept[0]"),
    ],
)
def test_a_list_that_goes_on_is_no_cache(fill: str, end: str, tmp_path: Path) -> None:
    found = findings(tmp_path, LISTED.format(fill=fill, end=end))
    assert all(f.promise is not Promise.ADVICE for f in found)


@pytest.mark.parametrize("end", ["kept.clear()", "kept = []"])
def test_a_list_that_is_emptied_in_its_step_is_left_alone(end: str, tmp_path: Path) -> None:
    assert findings(tmp_path, LISTED.format(fill="if not kept: kept.append(net(x)[:3])", end=end)) == []


def test_what_every_step_stores_is_no_cache(tmp_path: Path) -> None:
    get = (
        "if self.kept is None:\n            self.kept = torch.zeros(3, 2)\n"
        "        self.kept = 0.9 * self.kept + 0.1 * net(x)[:3]\n        return self.kept"
    )
    found = findings(tmp_path, CACHE.format(get=get))
    assert [(f.rule, f.promise) for f in found] == [(RULE, Promise.REPAIR)]


@pytest.mark.parametrize("get", ["return net(data)", "return net(data).detach()", "return data[:, :2]"])
def test_what_is_computed_in_every_step_is_left_alone(get: str, tmp_path: Path) -> None:
    assert findings(tmp_path, CACHE.format(get=get)) == []


MEMBRANE = """
class Neuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.charge = {begin}
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        self.charge = 0.9 * self.charge + self.layer(x)
        return self.charge.sigmoid()

neuron = Neuron()
opt = torch.optim.SGD(neuron.parameters(), lr=0.1)
for i, x in enumerate(batches()):
    {guard}
    fired = 0
    for _ in range(3):
        fired = fired + neuron(x)
    loss = fired.pow(2).mean()
    step(loss)
"""

BEGUN = [
    ("0.0", "if torch.is_tensor(neuron.charge):\n        neuron.charge = neuron.charge.detach()"),
    ("torch.zeros(16, 2)", "if i > 0:\n        neuron.charge = neuron.charge.detach()"),
    ("torch.zeros(16, 2)", "if i:\n        neuron.charge.detach_()"),
    ("torch.zeros(16, 2)", "if i % 2 == 0:\n        neuron.charge = torch.zeros(16, 2)"),
    ("torch.zeros(16, 2)", "neuron.charge = neuron.charge.detach() if i else neuron.charge"),
]


@pytest.mark.parametrize(("begin", "guard"), BEGUN)
def test_a_membrane_that_is_cut_under_a_condition_is_left_alone(begin: str, guard: str, tmp_path: Path) -> None:
    # what the second of several time steps takes up is of this turn, and the first took up what may be cut
    assert findings(tmp_path, MEMBRANE.format(begin=begin, guard=guard)) == []


@pytest.mark.parametrize("begin", ["0.0", "torch.zeros(16, 2)"])
def test_a_membrane_that_nothing_cuts_is_found(begin: str, tmp_path: Path) -> None:
    program = MEMBRANE.format(begin=begin, guard="x = 2 * x")
    cut = "    step(loss)\n    neuron.charge = neuron.charge.detach()\n"
    check(tmp_path, program, Promise.REPAIR, "    step(loss)\n", cut)


@pytest.mark.parametrize(
    ("begin", "grown"),
    [
        ("torch.zeros(16)", "seen.index_copy(0, torch.arange(16), each)"),
        ("torch.zeros(16)", "torch.lerp(seen, each, 0.1)"),
        ("0", "torch.tanh(each)"),
    ],
)
def test_what_grows_behind_its_step_is_cut_where_it_is_stored(begin: str, grown: str, tmp_path: Path) -> None:
    program = f"""
seen = {begin}
for x in batches():
    each = net(x).pow(2).mean(1)
    loss = (each * (1 - seen)).mean()
    step(loss)
    seen = {grown}
"""
    # without the old value what is new would still be of a graph that is freed
    check(tmp_path, program, Promise.REPAIR, grown, f"{grown}.detach()")


META = """
rate = torch.tensor(0.1, requires_grad=True)
outer = torch.optim.SGD([rate], lr=0.01)
weights = {begin}
for x in batches():
    inner = torch.tanh(x @ {first}).pow(2).mean()
    slope = torch.autograd.grad(inner, weights, create_graph=True)[0]
    new = {first} - rate * slope
    loss = torch.tanh(x @ new).pow(2).mean()
    outer.zero_grad()
    loss.backward()
    outer.step()
    {store}
"""

LEAVES = {
    "a tensor": ("torch.randn(4, 2, requires_grad=True)", "weights", "weights = new",
                 "weights = new.detach().requires_grad_()"),
    "computed": ("torch.randn(4, 2, requires_grad=True)", "weights", "weights = 0.9 * new",
                 "weights = (0.9 * new).detach().requires_grad_()"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAVES)
def test_what_gradients_are_taken_of_still_asks_for_them(name: str, tmp_path: Path) -> None:
    begin, first, store, after = LEAVES[name]
    program = META.format(begin=begin, first=first, store=store)
    assert tools.mended(tmp_path, findings(tmp_path, program)) == (HEAD + program).replace(store, after)


# by which name the own step comes to what was stored

KEPT = """
import copy
from operator import attrgetter

class State:
    def __init__(self):
        self.kept = torch.zeros(16, 2)

class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(16, 2))

state, buffered = State(), Buffered()
name = "".join(["k", "ept"])
last = torch.zeros(16, 2)
def read(): return last
for x in batches():
    old = {target}
    out = net(x)
    {target} = out
    step({again}.pow(2).mean() + (out * old).exp().mean())
"""


@pytest.mark.parametrize(
    ("target", "again"),
    [
        ("last", "last"),
        ("last", "read()"),
        ("last", "(lambda: last)()"),
        ("last", 'globals()["last"]'),
        ("state.kept", "getattr(state, name)"),
        ("state.kept", 'attrgetter("kept")(state)'),
        ("state.kept", "torch.stack(list(vars(state).values()))"),
        ("state.kept", "copy.copy(state).kept"),
        ("buffered.kept", "torch.stack([*buffered.buffers()])"),
        ("buffered.kept", 'buffered.get_buffer("kept")'),
    ],
)
def test_what_its_own_step_reads_back_is_cut_where_the_step_ends(tmp_path: Path, target: str, again: str) -> None:
    program = KEPT.format(target=target, again=again)
    check(tmp_path, program, Promise.REPAIR, program, f"{program}    {target} = {target}.detach()\n")


GIVEN = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
        self.kept = torch.zeros(16, 2)

    def forward(self, x):
        old = self.kept
        out = self.net(x)
        self.kept = out
        {given}

def judge(given, old):
    return (given * old).exp().mean()

model = Model()
for x in batches():
    out, old = model(x)
    {use}
"""


@pytest.mark.parametrize(
    ("given", "use"),
    [
        ("return out, old", "step((out * old).exp().mean())"),
        ("return out, old", "step(judge(out, old))"),
        ("return out, old", "mine = out\n    step(judge(given=mine, old=old))"),
        ("result = out\n        return result, old", "step((out - 1).pow(2).mean() + judge(out, old))"),
        ("return torch.tanh(out), old", "step(judge(out, old))"),
    ],
)
def test_what_its_own_step_has_by_another_name_is_cut_where_it_is_stored(tmp_path: Path, given: str, use: str) -> None:
    check(tmp_path, GIVEN.format(given=given, use=use), Promise.REPAIR, "self.kept = out", "self.kept = out.detach()")
