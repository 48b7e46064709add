"""What carried-hidden-state finds, mends and leaves alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from codemods.source.options import Options
from codemods.terms.edits import InsertStatements
from codemods.terms.findings import Finding, Promise
from tests.rules import tools
from tests.rules.tools import added, analysed

RULE = "carried-hidden-state"
STORED = "stored-graph"


def findings(folder: Path, program: str, *rules: str, options: Options | None = None) -> list[Finding]:
    return analysed(folder, options if options is not None else Options(select=rules), program)


def mended(folder: Path, program: str, *rules: str, options: Options | None = None) -> str:
    return tools.mended(folder, findings(folder, program, *rules, options=options))


HEAD = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, units=8):
        super().__init__()
        self.units = units
        self.rnn = nn.GRU(4, units)
        self.out = nn.Linear(units, 2)

    def forward(self, x, h):
        y, h = self.rnn(x, h)
        return self.out(y), h

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(90, 3, 4)
"""

STATEFUL = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8)
        self.out = nn.Linear(8, 2)
        self.state = self.begin()

    def begin(self):
        return torch.zeros(1, 3, 8), torch.zeros(1, 3, 8)

    def forward(self, x):
        y, self.state = self.rnn(x, self.state)
        return self.out(y[-1])

net = Net()
opt = torch.optim.Adam(net.parameters())
ask = nn.CrossEntropyLoss()
"""


# what is found


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        (
            """
h = None
for i in range(0, 90, 10):
    y, h = net(data[i:i + 10], h)
    loss = y.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
            "h = h.detach()",
        ),
        (
            """
cell = nn.LSTMCell(4, 8)
hx = cx = torch.zeros(3, 8)
optimiser = torch.optim.SGD(cell.parameters(), lr=0.1)
for t in range(90):
    hx, cx = cell(data[t], (hx, cx))
    loss = hx.pow(2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
""",
            "hx = hx.detach()|cx = cx.detach()",
        ),
        (
            """
w = nn.Parameter(torch.randn(8, 8))
sgd = torch.optim.SGD([w], lr=0.1)
memory = torch.zeros(3, 8)
for t in range(90):
    memory = torch.tanh(memory @ w.t() + 1)
    loss = memory.sum()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""",
            "memory = memory.detach()",
        ),
    ],
    ids=["gru", "lstm-cell", "by-hand"],
)
def test_state_of_the_loop_is_cut_where_the_step_ends(tmp_path: Path, loop: str, line: str) -> None:
    program = HEAD + loop
    [found] = findings(tmp_path, program, RULE)
    assert found.promise is Promise.REPAIR
    assert added(program, mended(tmp_path, program, RULE)) == line.split("|")
    assert [step.note for step in found.trail][::3] == ["graph produced here", "used again here, one step later"]


def test_a_state_of_unknown_shape_gets_a_helper(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.LSTM(4, 8)
        self.b = nn.LSTM(8, 8)

    def forward(self, x, state):
        y, first = self.a(x, state[0])
        y, second = self.b(y, state[1])
        return y, [first, second]

deep = Deep()
adam = torch.optim.Adam(deep.parameters())
zero = torch.zeros(1, 3, 8)
state = [(zero, zero), (zero, zero)]
for i in range(0, 90, 10):
    y, state = deep(data[i:i + 10], state)
    adam.zero_grad()
    y.sum().backward()
    adam.step()
"""
    )
    after = mended(tmp_path, program, RULE)
    assert "    adam.step()\n    state = detach_state(state)\n" in after
    assert after.count("def detach_state(state):") == 1
    assert findings(tmp_path, after, RULE) == []


def test_a_state_handed_on_is_cut_in_the_function_of_the_step(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
def learn(x, h):
    y, h = net(x, h)
    loss = y.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item(), h

h = None
for i in range(0, 90, 10):
    value, h = learn(data[i:i + 10], h)
"""
    )
    after = mended(tmp_path, program, RULE)
    assert "    opt.step()\n    h = h.detach()\n    return loss.item(), h\n" in after


def test_shuffled_batches_start_afresh(tmp_path: Path) -> None:
    program = (
        STATEFUL
        + """
for x, y in DataLoader([], batch_size=3, shuffle=True):
    loss = ask(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    )
    assert added(program, mended(tmp_path, program, RULE)) == []
    assert "def forward(self, x):\n        self.state = self.begin()\n" in mended(tmp_path, program, RULE)


FRESH = "def forward(self, x):\n        self.state = self.begin()\n"
ZEROS = "return torch.zeros(1, 3, 8), torch.zeros(1, 3, 8)"


@pytest.mark.parametrize(
    ("begin", "fresh"),
    [
        ("return self.one(), self.one()\n\n    def one(self):\n        return torch.zeros(1, 3, 8)", True),
        # what draws once more moves the generator
        ("return torch.randn(1, 3, 8), torch.zeros(1, 3, 8)", False),
        ("return torch.zeros(1, 3, 8).normal_(), torch.zeros(1, 3, 8)", False),
        ("return self.one(), self.one()\n\n    def one(self):\n        return torch.zeros(1, 3, 8).normal_()", False),
        ("return made(), made()", False),
    ],
)
def test_a_state_that_is_drawn_is_cut_and_not_made_again(tmp_path: Path, begin: str, fresh: bool) -> None:
    head = "import torch\n\ndef made():\n    return torch.zeros(1, 3, 8)\n" + STATEFUL.replace(ZEROS, begin)
    loop = """
for x, y in DataLoader([], batch_size=3, shuffle=True):
    loss = ask(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    after = mended(tmp_path, head + loop, RULE)
    assert (FRESH in after, "net.state = tuple(" in after) == (fresh, not fresh)


@pytest.mark.parametrize(
    ("order", "shuffled"),
    [
        ("order = list(range(9))", False),
        ("rng = np.random.RandomState(0)\norder = rng.permutation(9)", True),
        ("order = np.random.default_rng(0).permutation(9)", True),
        ("rng = random.Random(0)\norder = list(range(9))\nrng.shuffle(order)", True),
    ],
)
def test_a_generator_of_random_numbers_shuffles_too(tmp_path: Path, order: str, shuffled: bool) -> None:
    loop = f"""
import random
import numpy as np

xs, ys = torch.randn(9, 5, 3, 4), torch.randint(0, 2, (9, 3))
{order}
for i in range(len(order)):
    loss = ask(net(xs[order[i]]), ys[order[i]])
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    after = mended(tmp_path, STATEFUL + loop, RULE)
    assert (FRESH in after, "net.state = tuple(" in after) == (shuffled, not shuffled)


def test_the_user_decides_how(tmp_path: Path) -> None:
    program = (
        STATEFUL
        + """
for x, y in DataLoader([], batch_size=3, shuffle=True):
    loss = ask(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    )
    after = mended(tmp_path, program, options=Options(select=(RULE,), hidden_state="detach"))
    assert "    opt.step()\nXnet.state".replace("X", "    ") in after


def test_the_flag_that_kept_the_state_goes_with_it(tmp_path: Path) -> None:
    program = (
        STATEFUL
        + """
for i in range(0, 90, 10):
    loss = net(torch.randn(10, 3, 4)).sum()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""
    )
    mine, flag = findings(tmp_path, program, options=Options())
    assert (mine.rule, flag.rule) == (RULE, "surplus-retain-graph")
    assert mine.promise is flag.promise is Promise.REPAIR
    assert mine.partners == (flag.key,)
    assert flag.partners == (mine.key,)
    assert "loss.backward()\n" in mended(tmp_path, program, options=Options())


def test_a_flag_that_something_else_needs_stays(tmp_path: Path) -> None:
    program = (
        STATEFUL
        + """
for i in range(0, 90, 10):
    y = net(torch.randn(10, 3, 4))
    opt.zero_grad()
    y.sum().backward(retain_graph=True)
    y.pow(2).sum().backward()
    opt.step()
"""
    )
    [found] = findings(tmp_path, program, options=Options(select=(RULE,)))
    assert found.partners == ()
    assert "retain_graph=True" in mended(tmp_path, program, RULE)


def test_a_conditional_step_leaves_the_cut_behind_the_backward(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
h = None
for i in range(0, 90, 10):
    y, h = net(data[i:i + 10], h)
    y.sum().backward()
    if i % 40 == 0:
        opt.step()
        opt.zero_grad()
"""
    )
    assert "    y.sum().backward()\n    h = h.detach()\n    if" in mended(tmp_path, program, RULE)


@pytest.mark.parametrize(
    ("test", "cut", "after"),
    [
        ("type(h) == Variable", "Variable(h.data)", "h.detach()"),
        ("type(h)==Variable", "h.detach()", "h.detach()"),
        ("type(h) is Variable", "Variable(h.data, volatile=True)", "h.detach()"),
        ("Variable == type(h)", "h.data", "h.detach()"),
        ("type(h) == torch.autograd.Variable", "Variable(h.data, requires_grad=True)", "h.detach().requires_grad_()"),
    ],
)
def test_the_old_helper_is_mended(tmp_path: Path, test: str, cut: str, after: str) -> None:
    program = f"""
import torch
from torch.autograd import Variable

def repackage(h):
    if {test}:
        return {cut}
    return tuple(repackage(v) for v in h)
"""
    [found] = findings(tmp_path, program, RULE)
    assert (found.promise, found.span.line) == (Promise.REPAIR, 6)
    text = mended(tmp_path, program, RULE)
    assert "if isinstance(h, torch.Tensor):" in text
    assert f"return {after}\n" in text
    assert "Variable" not in text


# what is left alone

KEPT = {
    "fresh for each batch": """
for i in range(9):
    h = torch.zeros(1, 3, 8)
    y, h = net(data[i:i + 10], h)
    opt.zero_grad()
    y.sum().backward()
    opt.step()
""",
    "cut at the top": """
h = torch.zeros(1, 3, 8)
for i in range(9):
    h = h.detach()
    y, h = net(data[i:i + 10], h)
    opt.zero_grad()
    y.sum().backward()
    opt.step()
""",
    "cut through data": """
h = torch.zeros(1, 3, 8)
for i in range(9):
    y, h = net(data[i:i + 10], h.data)
    opt.zero_grad()
    y.sum().backward()
    opt.step()
""",
    "cut where the window ends": """
h = torch.zeros(1, 3, 8)
total = 0
for i in range(9):
    y, h = net(data[i:i + 10], h)
    total = total + y.sum()
    if i % 3 == 2:
        opt.zero_grad()
        total.backward()
        opt.step()
        total = 0
        h = h.detach()
""",
    "sometimes made anew, sometimes cut": """
h = torch.zeros(1, 3, 8)
for i in range(9):
    if i % 3 == 0:
        h = torch.zeros(1, 3, 8)
    else:
        h = h.detach()
    y, h = net(data[i:i + 10], h)
    opt.zero_grad()
    y.sum().backward()
    opt.step()
""",
    "cut under a flag": """
import sys
h = torch.zeros(1, 3, 8)
for i in range(9):
    if len(sys.argv) > 1:
        h = h.detach()
    y, h = net(data[i:i + 10], h)
    opt.zero_grad()
    y.sum().backward()
    opt.step()
""",
    "time steps of one sequence": """
for i in range(9):
    h = None
    total = 0
    for t in range(10):
        y, h = net(data[t:t + 1], h)
        total = total + y.sum()
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "a backward for each time step, one optimizer step": """
for i in range(9):
    h = None
    opt.zero_grad()
    for t in range(10):
        y, h = net(data[t:t + 1], h)
        y.sum().backward(retain_graph=True)
    opt.step()
""",
    "without gradients": """
h = None
for i in range(9):
    with torch.no_grad():
        y, h = net(data[i:i + 10], h)
    loss = net.out(torch.randn(3, 8)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a list emptied where the window ends": """
h = None
kept = []
for i in range(9):
    if not kept:
        h = None
    y, h = net(data[i:i + 10], h)
    kept.append(y.sum())
    if i % 3 == 2:
        opt.zero_grad()
        torch.stack(kept).sum().backward()
        opt.step()
        kept.clear()
        h = None
""",
    "a layer that cannot be seen": """
from library import Recurrent
layer = Recurrent(4, 8)
h = None
for i in range(9):
    y, h = layer(data[i:i + 10], h)
    opt.zero_grad()
    net.out(y).sum().backward()
    opt.step()
""",
    "frozen": """
for p in net.rnn.parameters():
    p.requires_grad = False
h = None
for i in range(9):
    y, h = net.rnn(data[i:i + 10], h)
    opt.zero_grad()
    net.out(y).sum().backward()
    opt.step()
""",
    "a graph of the second order": """
h = None
for i in range(9):
    y, h = net(data[i:i + 10], h)
    opt.zero_grad()
    y.sum().backward(create_graph=True)
    opt.step()
""",
}


@pytest.mark.parametrize("loop", KEPT.values(), ids=KEPT.keys())
def test_left_alone(tmp_path: Path, loop: str) -> None:
    assert findings(tmp_path, HEAD + loop, RULE, STORED) == []


RESET = {
    "by the script": """
for i in range(9):
    net.state = net.begin()
    STEP
""",
    "by a method of the class": """
Net.forget = lambda self: setattr(self, "state", None)
for i in range(9):
    net.forget()
    STEP
""",
    "in a callee": """
def prepare(model):
    model.state = None

for i in range(9):
    prepare(net)
    STEP
""",
    "where the step ends": """
for i in range(9):
    STEP
    net.state = tuple(h.detach() for h in net.state)
""",
    "by a hook": """
def fresh(module, args):
    module.state = module.begin()

net.register_forward_pre_hook(fresh)
for i in range(9):
    STEP
""",
    "of all modules": """
for i in range(9):
    for m in nn.Sequential(nn.Linear(1, 1), net).modules():
        if isinstance(m, Net):
            m.state = m.begin()
    STEP
""",
    "in place": """
for i in range(9):
    STEP
    for h in net.state:
        h.detach_()
""",
}


@pytest.mark.parametrize("loop", RESET.values(), ids=RESET.keys())
def test_a_reset_is_seen_wherever_it_stands(tmp_path: Path, loop: str) -> None:
    step = "opt.zero_grad(); net(torch.randn(10, 3, 4)).sum().backward(); opt.step()"
    assert findings(tmp_path, STATEFUL + loop.replace("STEP", step), RULE, STORED) == []


@pytest.mark.parametrize(
    "helper",
    [
        "def cut(h):\n    if isinstance(h, Variable):\n        return h.detach()\n    return tuple(cut(v) for v in h)",
        "def cut(h):\n    if type(h) == torch.Tensor:\n        return h.detach()\n    return tuple(cut(v) for v in h)",
        "def kind(h):\n    if type(h) == Variable:\n        return 'variable'\n    return kind(h[0])",
        "def cut(h):\n    if type(h) == Variable:\n        return Variable(h.data)\n    return h",
    ],
    ids=["isinstance", "torch.Tensor", "no cut", "no parts"],
)
def test_a_helper_that_works_is_left_alone(tmp_path: Path, helper: str) -> None:
    program = f"import torch\nfrom torch.autograd import Variable\n\n{helper}\n"
    assert findings(tmp_path, program, RULE) == []


# two states, one flag

GATED = """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 16)
        self.seen = torch.zeros(3, 4)
        self.kept = torch.zeros(3, 4)

    def forward(self, x):
        f, i, o, g = self.mix(torch.cat((x, self.seen), 1)).chunk(4, 1)
        kept = f.sigmoid() * self.kept + i.sigmoid() * g.tanh()
        seen = o.sigmoid() * kept.tanh()
        self.seen = seen
        self.kept = kept
        return seen

    def forget(self):
        self.seen.detach_()
        self.kept.detach_()

class Tracker(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell
        self.lift = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.cell(self.lift(x)))
"""

CLIPS = """
import sys

def fit(tracker, opt, clips):
    for clip in clips:
        for x, y in clip:
            opt.zero_grad()
            loss = ((tracker(x) - y) ** 2).mean()
            loss.backward(retain_graph=True)
            opt.step()
        tracker.cell.forget()

memory = Cell()
tracker = Tracker(memory) if len(sys.argv) > 1 else Tracker(memory)
clips = [[(torch.randn(3, 4), torch.randn(3, 1)) for _ in range(5)] for _ in range(3)]
fit(tracker, torch.optim.SGD(tracker.parameters(), lr=0.1), clips)
"""


def test_the_flag_that_keeps_two_states_alive_goes_with_both(tmp_path: Path) -> None:
    both = findings(tmp_path, GATED + CLIPS)
    assert sorted(f.rule for f in both) == [RULE, RULE, "surplus-retain-graph"]
    flag = next(f for f in both if f.rule != RULE)
    states = [f for f in both if f.rule == RULE]
    assert set(flag.partners) == {f.key for f in states}
    assert all(flag.key in f.partners and f.promise is Promise.REPAIR for f in states)
    after = tools.mended(tmp_path, both)
    assert added(GATED + CLIPS, after) == [
        "loss.backward()",
        "tracker.cell.seen = tracker.cell.seen.detach()",
        "tracker.cell.kept = tracker.cell.kept.detach()",
    ]


def test_a_retained_graph_that_saved_no_weights_yet_is_learned_through_once(tmp_path: Path) -> None:
    alone = CLIPS.replace("Tracker(memory) if len(sys.argv) > 1 else Tracker(memory)", "Tracker(memory)")
    assert {f.promise for f in findings(tmp_path, GATED + alone)} == {Promise.REPAIR}
    # the weights of the first step meet plain data only: the second backward does not need them
    plain = GATED.replace("self.cell(self.lift(x))", "self.cell(x)")
    found = findings(tmp_path, plain + alone, options=Options(unsafe=True))
    assert {f.promise for f in found} == {Promise.BEHAVIOUR}
    assert "the weights that it saved change" in found[0].message


@pytest.mark.parametrize(
    ("layer", "given", "promise"),
    [
        ("RNN", "x", Promise.REPAIR),
        ("GRU", "x", Promise.REPAIR),
        ("RNN", "x[:, None]", Promise.BEHAVIOUR),
        ("GRU", "x.unsqueeze(0)", Promise.BEHAVIOUR),
        ("GRU", "x.view(1, 4, 3)", Promise.BEHAVIOUR),
        ("GRU", "lift(x).view(1, 4, 5)", Promise.REPAIR),
        ("LSTM", "x.view(1, 4, 3)", Promise.REPAIR),
    ],
)
def test_over_one_time_step_a_layer_may_save_no_weights(
    tmp_path: Path, layer: str, given: str, promise: Promise
) -> None:
    program = f"""
import torch
from torch import nn

lift = nn.Linear(3, 5)
cell, head = nn.{layer}(3, 4), nn.Linear(4, 2)
opt = torch.optim.SGD([*lift.parameters(), *cell.parameters(), *head.parameters()], lr=0.1)
state = None
for x in torch.randn(9, 4, 3):
    out, state = cell({given}, state)
    loss = head(out).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""
    found = findings(tmp_path, program, options=Options(unsafe=True))
    assert {f.promise for f in found} == {promise}


@pytest.mark.parametrize(
    ("first", "owned", "promise"),
    [
        ("torch.zeros(4, 4)", "[*cell.parameters(), *head.parameters()]", Promise.BEHAVIOUR),
        ("torch.zeros(4, 4)", "elsewhere.chosen([*cell.parameters()])", Promise.BEHAVIOUR),
        ("start(torch.zeros(4, 4))", "[*cell.parameters(), *head.parameters()]", Promise.REPAIR),
        ("start(torch.zeros(4, 4))", "elsewhere.chosen([*cell.parameters()])", Promise.BEHAVIOUR),
    ],
)
def test_of_an_optimizer_whose_parameters_cannot_be_told_nothing_is_sure(
    tmp_path: Path, first: str, owned: str, promise: Promise
) -> None:
    program = f"""
import elsewhere
import torch
from torch import nn

start, cell, head = nn.Linear(4, 4), nn.GRUCell(3, 4), nn.Linear(4, 2)
opt = torch.optim.SGD({owned}, lr=0.1)
state = {first}
for x in torch.randn(9, 4, 3):
    state = cell(x, state)
    loss = head(state).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""
    found = findings(tmp_path, program, options=Options(unsafe=True))
    assert {f.promise for f in found if f.rule == RULE} == {promise}


def test_the_flag_stays_where_something_else_is_kept_alive_by_it(tmp_path: Path) -> None:
    program = GATED.replace("class Cell", "KEPT = [torch.zeros(3, 4)]\n\nclass Cell").replace(
        "self.kept *", "KEPT[0] *"
    )
    program = program.replace("* self.kept +", "* KEPT[0] +").replace("self.kept = kept", "KEPT[:] = [kept]")
    program = program.replace("        self.kept.detach_()\n", "")
    (state,) = findings(tmp_path, program + CLIPS)
    assert state.rule == RULE
    assert state.partners == ()
    assert [type(edit) for _, edit in state.edits] == [InsertStatements]


EPISODES = """
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.LSTMCell(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1)
seen = iter([False] * 3 + [True] * 3 + [False] * 90)
done = True
for turn in range(4):
{begin}
    total = 0
    for step in range(3):
        hx, cx = cell(torch.randn(1, 4), (hx, cx))
        total = total + head(hx).sum()
        done = next(seen)
        if done:
            break
    opt.zero_grad()
{end}
"""
END = "total.backward()\nopt.step()"
ANEW = "hx, cx = torch.zeros(1, 8), torch.zeros(1, 8)"


def episodes(begin: str, end: str = END) -> str:
    """A program that begins its state in one of two ways."""
    return EPISODES.format(begin=indent(begin, "    "), end=indent(end, "    "))


def error_of(program: str) -> str:
    """The error that ends a program, if any."""
    try:
        exec(compile(program, "program", "exec"), {})
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("begin", "names"),
    [
        (f"if done:\n    {ANEW}\nelse:\n    hx, cx = hx.detach(), cx", "the state `cx` goes"),
        (f"if done:\n    {ANEW}\nelse:\n    cx = cx\n    hx = hx.data", "the state `cx` goes"),
        (f"if done:\n    {ANEW}", "the states `hx`, `cx` go"),
        (f"if not done:\n    hx = hx.detach()\nelse:\n    {ANEW}", "the state `cx` goes"),
    ],
)
def test_a_state_that_one_of_two_ways_keeps_is_advice(tmp_path: Path, begin: str, names: str) -> None:
    found = findings(tmp_path, episodes(begin), RULE)
    assert [f.promise for f in found] == [Promise.ADVICE]
    assert found[0].edits == ()
    assert names.replace("`, `", "` and `") in found[0].message
    assert "second time" in error_of(episodes(begin))


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (f"if done:\n    {ANEW}\nelse:\n    hx, cx = hx.detach(), cx.detach()", END),
        (f"if done:\n    {ANEW}\nelse:\n    hx, cx = hx.data, cx.data", END),
        (f"{ANEW}\nif done:\n    hx = hx + 1", END),
        # always the same way
        (f"if turn >= 0 or done:\n    pass\nif torch.is_tensor(opt):\n    hx, cx = hx, cx\nelse:\n    {ANEW}", END),
        # the backward comes where the state ends
        (f"if turn % 2 == 0:\n    {ANEW}\n    kept = 0", "kept = kept + total\nif turn % 2:\n    kept.backward()"),
        # an episode ends in every turn
        (
            f"if done:\n    {ANEW}\nelse:\n    hx, cx = hx, cx",
            f"while not done:\n    done = torch.rand(1) < 0.5\n{END}",
        ),
    ],
)
def test_a_state_that_begins_in_two_ways_is_left_alone(tmp_path: Path, begin: str, end: str) -> None:
    assert findings(tmp_path, episodes(begin, end), RULE) == []
    assert error_of(episodes(begin, end)) == ""


@pytest.mark.parametrize(
    ("begun", "name"),
    [
        ("h = None", "h"),
        ("held = {'h': None}", "held['h']"),
        ("held = [None]", "held[0]"),
    ],
)
def test_the_message_names_the_state_as_one_types_it(tmp_path: Path, begun: str, name: str) -> None:
    program = HEAD + (
        f"{begun}\nfor x in data.split(3):\n    y, {name} = net(x, {name})\n    loss = y.mean()\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    )
    (finding,) = findings(tmp_path, program, "carried-hidden-state")
    assert finding.message.startswith(f"the state `{name}` goes")


# a state that gets its name behind the step

BEHIND = """
import torch
from torch import nn

cell, head = nn.{cell}(4, 8), nn.Linear(8, 2)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
state = {begin}
for x in torch.randn(90, 3, 4):
    new = cell(x, state)
    loss = head({out}).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {store}
"""

TAKEN_OVER = {
    "under a plain name": ("GRUCell", "None", "new", "state = new", "state = new.detach()"),
    "from zeros": ("GRUCell", "torch.zeros(3, 8)", "new", "state = new", "state = new.detach()"),
    "computed": ("GRUCell", "None", "new", "state = 0.5 * new", "state = (0.5 * new).detach()"),
    "beside something else": (
        "GRUCell",
        "None",
        "new",
        "state, last = new, x",
        "state, last = new, x\n    state = state.detach()",
    ),
    "two tensors": (
        "LSTMCell",
        "None",
        "new[0]",
        "state = new",
        "state = new\n    state = tuple(h.detach() for h in state)",
    ),
}


@pytest.mark.parametrize("name", TAKEN_OVER)
def test_a_state_that_is_taken_over_behind_the_step_is_cut_there(name: str, tmp_path: Path) -> None:
    cell, begin, out, store, after = TAKEN_OVER[name]
    program = BEHIND.format(cell=cell, begin=begin, out=out, store=store)
    assert mended(tmp_path, program, RULE) == program.replace(store, after)


def test_a_state_that_a_method_takes_over_is_cut_behind_its_call(tmp_path: Path) -> None:
    program = """
import torch
from torch import nn

class Learner:
    def __init__(self):
        self.cell, self.state = nn.GRUCell(4, 8), None
        self.opt = torch.optim.SGD(self.cell.parameters(), lr=0.1)

    def keep(self, new):
        self.state = new

    def step(self, x):
        new = self.cell(x, self.state)
        self.opt.zero_grad()
        new.pow(2).mean().backward()
        self.opt.step()
        self.keep(new)

learner = Learner()
for x in torch.randn(90, 3, 4):
    learner.step(x)
"""
    after = "        self.keep(new)\n        self.state = self.state.detach()\n"
    assert mended(tmp_path, program, RULE) == program.replace("        self.keep(new)\n", after)


@pytest.mark.parametrize(
    "store",
    ["state = new.detach()", "state = new.data", "state = None", "with torch.no_grad():\n        state = new * 1.0"],
)
def test_a_state_that_is_cut_behind_the_step_is_left_alone(store: str, tmp_path: Path) -> None:
    program = BEHIND.format(cell="GRUCell", begin="None", out="new", store=store)
    assert findings(tmp_path, program, RULE, STORED) == []


@pytest.mark.parametrize("store", ["if loss > 1:\n        state = new", "state = new if len(x) > 3 else None"])
def test_a_state_that_is_taken_over_in_some_turns_is_not_cut(store: str, tmp_path: Path) -> None:
    program = BEHIND.format(cell="GRUCell", begin="None", out="new", store=store)
    assert mended(tmp_path, program, RULE, STORED) == program


TRAINED_BY_ALL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.rnn = layer
        self.out = nn.Linear(8, 4)

    def forward(self, x, state):
        y, state = self.rnn(x, state)
        return self.out(y), state

def train(model, start):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        state = start()
        for step in range(3):
            out, state = model(torch.randn(5, 2, 4), state)
            loss = out.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
ONE = "train(Model(nn.GRU(4, 8)), lambda: torch.zeros(1, 2, 8))"
NOTHING = "train(Model(nn.GRU(4, 8)), lambda: None)"
TWO = "train(Model(nn.LSTM(4, 8)), lambda: (torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)))"


@pytest.mark.parametrize(
    ("calls", "line"),
    [
        ((ONE,), "state = state.detach()"),
        ((TWO,), "state = tuple(h.detach() for h in state)"),
        ((ONE, ONE), "state = state.detach()"),
        ((ONE, NOTHING), "state = state.detach()"),
        ((ONE, TWO), "state = detach_state(state)"),
        ((TWO, ONE), "state = detach_state(state)"),
        ((TWO, NOTHING), "state = detach_state(state)"),
    ],
)
@pytest.mark.parametrize("apart", [False, True], ids=["one program", "several"])
def test_a_loop_that_trains_several_models_detaches_the_state_of_each(
    tmp_path: Path, calls: tuple[str, ...], line: str, *, apart: bool
) -> None:
    head = "import torch\nfrom torch import nn\nfrom loop import Model, train\n"
    several = {f"script_{i}": head + call for i, call in enumerate(calls)} if apart else {}
    code = "" if apart else head + "\n".join(calls)
    (finding,) = analysed(tmp_path, Options(select=(RULE,)), code, loop=TRAINED_BY_ALL, **several)
    assert finding.promise is Promise.REPAIR
    new = added(TRAINED_BY_ALL, tools.mended(tmp_path, [finding], "loop.py"))
    assert [text for text in new if text.startswith("state = ")] == [line]


GATHERED = """
import torch
from torch import nn

class Kept:
    def __init__(self):
        self.h = torch.zeros(5, 4)

class Counting(Kept):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        super().__setattr__("count", getattr(self, "count", 0) + 1)

cell, head = nn.RNNCell(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
state = {kept}()
for _ in range(9):
    {before}
    state.h = cell(torch.randn(5, 3), state.h)
    {made}
    loss = head(state.h).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {behind}
"""


@pytest.mark.parametrize(
    ("kept", "before", "made", "behind", "number"),
    [
        ("Kept", "pass", "state.h.retain_grad()", "print(state.h.grad.sum())", 0),
        ("Kept", "state.h.requires_grad and state.h.retain_grad()", "pass", "pass", 0),
        ("Kept", "state.h.requires_grad and state.h.register_hook(print)", "pass", "pass", 0),
        ("Kept", "pass", "state.h.register_hook(print)", "pass", 1),
        ("Kept", "pass", "pass", "print(head.weight.grad.sum())", 1),
        # to set it does more
        ("Counting", "pass", "pass", "print(state.count)", 0),
    ],
)
def test_a_state_whose_gradient_is_read_when_its_step_is_over_is_left_alone(
    tmp_path: Path, kept: str, before: str, made: str, behind: str, number: int
) -> None:
    program = GATHERED.format(kept=kept, before=before, made=made, behind=behind)
    assert len(tools.lines(tools.found(tmp_path, "carried-hidden-state", program))) == number


WRAPPED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 6)
        self.memory = None

    def forward(self, x):
        if self.memory is None:
            self.memory = torch.zeros(x.size(0), 6)
        self.memory = self.cell(x, self.memory)
        return self.memory

model = {}
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(25):
    loss = model(torch.randn(3, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "made",
    [
        "nn.DataParallel(Net())",
        "nn.parallel.DistributedDataParallel(Net())",
        "torch.distributed.fsdp.FullyShardedDataParallel(Net())",
        "torch.compile(nn.DataParallel(Net()))",
    ],
)
def test_an_object_around_the_model_has_not_its_state(tmp_path: Path, made: str) -> None:
    (found,) = findings(tmp_path, WRAPPED.format(made), RULE)
    assert not any("model.memory" in str(edit) for edit in found.edits)
    assert found.promise is Promise.ADVICE


@pytest.mark.parametrize("made", ["Net()", "torch.compile(Net())"])
def test_the_model_itself_has_it(tmp_path: Path, made: str) -> None:
    assert "    model.memory = model.memory.detach()\n" in mended(tmp_path, WRAPPED.format(made), RULE)
