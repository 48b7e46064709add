"""Programs that once broke a promise, beyond the grammar of the hunt: each is rewritten, run and held to all."""

from __future__ import annotations

import pytest

from tests.hunt.checking import HARMLESS, check

PRELUDE = """\
import atexit, collections, copy, functools, itertools, weakref
from collections import namedtuple
from dataclasses import dataclass, replace

import numpy
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
cell = nn.GRUCell(3, 4)
opt_c = torch.optim.SGD(cell.parameters(), lr=0.1)
xs = torch.randn(6, 5, 3)
"""

LATER = """
{before}
for x in xs:
    out = net(x)
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    {inside}
    opt.step()
"""

STEP = """
{before}
for x in xs:
    out = net(x)
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {inside}
{after}
"""

CHECK = """
class Check:
    def __init__(self, value):
        self.value = value

    def {method}(self, *rest):
        self.value.mean().backward()
        return {result}
"""

CALLED = {
    "filters": "list(filter(Check(out), [1, 2]))",
    "is applied to a module": "net.apply(Check(out))",
    "a loader calls": "list(torch.utils.data.DataLoader([1, 2], collate_fn=Check(out)))",
    "a scheduler calls": "torch.optim.lr_scheduler.LambdaLR(opt, Check(out))",
    "sorts": "sorted([2, 1], key=Check(out))",
}

STATE = """
state = torch.zeros(5, 4)
for x in xs:
    {forward}
    loss = state.pow(2).mean()
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
"""

IMPLICIT = """
inner = nn.Linear(4, 4)
norms = []

class Calling:
    def __init__(self, function):
        self.function = function

    def __call__(self, grad):
        return self.function(grad)

for x in xs:
    h = net[:2](x)
    point = h.detach().requires_grad_()
    again = torch.tanh(inner(point))

    def implicit(grad):
        for _ in range(3):
            grad = 0.5 * torch.autograd.grad(again, point, grad, retain_graph=True)[0] + grad
        return grad

    {hook}
    loss = net[2](h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

CACHE = """
anchor = torch.randn(5, 3)
class Cache:
    def __init__(self):
        self.kept = None

    def get(self, x):
        {get}

cache = Cache()
for x in xs:
    out = net(x)
    loss = out.pow(2).mean() + F.mse_loss(out, {read})
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

PROGRAMS = {
    "a second backward in a truth": LATER.format(
        before=CHECK.format(method="__bool__", result="True"), inside="if Check(out): pass"
    ),
    "a second backward in a text": LATER.format(
        before=CHECK.format(method="__str__", result="'ok'"), inside="print(Check(out))"
    ),
    "a second backward in a length": LATER.format(
        before=CHECK.format(method="__len__", result="1"), inside="len(Check(out))"
    ),
    "a second backward where an object goes": LATER.format(
        before=CHECK.format(method="__del__", result="None"), inside="Check(out)"
    ),
    "a second backward when an object is gone": LATER.format(
        before="class Thing: pass",
        inside="thing = Thing(); weakref.finalize(thing, out.mean().backward); del thing",
    ),
    "a second backward in a key": LATER.format(
        before="", inside="sorted([out, out], key=lambda q: q.mean().backward(retain_graph=True) or 0)"
    ),
    "a second backward in a filter": LATER.format(
        before="", inside="list(filter(lambda q: q.sum().backward(), [out]))"
    ),
    "a second backward in a text of code": LATER.format(before="", inside="exec('out.mean().backward()')"),
    "a second backward in a class body": LATER.format(before="", inside="class Log: out.mean().backward()"),
    "a second backward in an optimizer's step": LATER.format(
        before="""
class Extra(torch.optim.SGD):
    extra = None

    def step(self, closure=None):
        self.extra().backward()
        return super().step(closure)

opt = Extra(net.parameters(), lr=0.1)
opt.extra = lambda: out.mean()
""",
        inside="pass",
    ),
    "a second backward in a hook of the step": LATER.format(
        before="opt.register_step_pre_hook(lambda *rest: out.mean().backward())", inside="pass"
    ),
    "a loss with the output of the turn before": """
before = None
for x in xs:
    out = net(x)
    if before is not None:
        (out - before).pow(2).mean().backward(retain_graph=True)
    before = out
opt.step()
print(net[0].weight.sum().item())
""",
    "a loss with the output of the turn before, which only a later step refuses": """
before = None
for x in xs:
    out = net(x)
    if before is None:
        pass
    else:
        loss = F.mse_loss(out, before)
        loss.backward(retain_graph=True)
        opt.step()
    before = out
""",
    "a graph that is retained over turns in which nothing steps": """
before = None
for i, x in enumerate(xs):
    out = net(x)
    loss = out.pow(2).mean()
    if before is not None:
        loss = loss + F.mse_loss(out, before)
    loss.backward(retain_graph=True)
    if i % 2 == 1:
        opt.step()
        opt.zero_grad()
    before = out
""",
    "a graph that is retained while another model steps": """
critic = nn.Linear(1, 1)
opt_d = torch.optim.SGD(critic.parameters(), lr=0.1)
before = None
for x in xs:
    out = net(x)
    loss = critic(out).mean()
    if before is not None:
        loss = loss + F.mse_loss(out, before)
    loss.backward(retain_graph=True)
    opt_d.step()
    before = out
opt.step()
""",
    "a state that is retained over turns in which nothing steps": """
state = torch.zeros(5, 4)
for i, x in enumerate(xs):
    state = cell(x, state)
    state.pow(2).mean().backward(retain_graph=True)
    if i % 2 == 1:
        opt_c.step()
        opt_c.zero_grad()
""",
    "a loss with the output that a function gave in the turn before": """
def forward(x, before=None):
    out = net(x)
    if before is None:
        return out
    (out - before).pow(2).mean().backward(retain_graph=True)
    return out

before = None
for x in xs:
    before = forward(x, before)
opt.step()
print(net[0].weight.sum().item())
""",
    "losses between neighbours in a list": """
outs = [net(x) for x in xs]
for first, second in zip(outs[:-1], outs[1:]):
    (first - second).pow(2).mean().backward(retain_graph=True)
opt.step()
print(net[0].weight.sum().item())
""",
    "losses between neighbours in a list that a loop fills": """
outs = []
for x in xs:
    outs.append(net(x))
for first, second in zip(outs[1:], outs):
    (first - second).pow(2).mean().backward(retain_graph=True)
opt.step()
print(net[0].weight.sum().item())
""",
    "losses between the first and the others": """
anchor, *others = [net(x) for x in xs]
for other in others:
    (other - anchor).pow(2).mean().backward(retain_graph=True)
opt.step()
print(net[0].weight.sum().item())
""",
    "a copy that is frozen": """
import copy
encoder, first, second = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 1)
teacher = copy.deepcopy(encoder).requires_grad_(False)
opt = torch.optim.SGD([*encoder.parameters(), *first.parameters(), *second.parameters()], lr=0.1)
for x in xs:
    code = encoder(x).tanh()
    one = first(code).pow(2).mean()
    two = (second(code) - teacher(x).sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    one.backward(retain_graph=True)
    two.backward()
    opt.step()
    print(one.item(), two.item())
""",
    "a copy with another setting": """
import copy

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.learns = nn.Linear(3, 3), True

    def forward(self, x):
        code = self.inner(x).tanh()
        return code if self.learns else code.detach()

coder, head = Coder(), nn.Linear(3, 1)
probe = copy.copy(coder)
probe.learns = False
opt = torch.optim.SGD([*coder.parameters(), *head.parameters()], lr=0.1)
for x in xs:
    code = coder(x)
    opt.zero_grad()
    head(code).pow(2).mean().backward(retain_graph=True)
    (code - probe(x)).pow(2).mean().backward()
    opt.step()
""",
    "parametrizations that are computed once": """
from torch.nn.utils import parametrize

class Symmetric(nn.Module):
    def forward(self, weight):
        return (weight + weight.t()).tanh()

layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
opt = torch.optim.SGD(layer.parameters(), lr=0.1)
for x in xs:
    opt.zero_grad()
    with parametrize.cached():
        layer(x).pow(2).mean().backward(retain_graph=True)
        layer(x + 1).pow(2).mean().backward()
    opt.step()
""",
    "a total of zero that divides": """
class Report:
    total, steps = 0.0, 0

    def share(self):
        return self.steps / self.total

report = Report()
for x in xs:
    loss = F.relu(net(x) - 100).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    report.total += loss
    report.steps += 1
print(report.share())
""",
    "a total that a scheduler reads": """
total = 0.0
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 1 / (1 + float(total)))
for x in xs:
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
    schedule.step()
print(net[0].weight.sum().item())
""",
    "a total that a sampler reads": """
class Order(torch.utils.data.Sampler):
    def __init__(self):
        self.score = 0.0

    def __len__(self):
        return 6

    def __iter__(self):
        seed = int(float(self.score) * 1e7) % 1000
        yield from torch.randperm(6, generator=torch.Generator().manual_seed(seed)).tolist()

order = Order()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(xs), batch_size=2, sampler=order)
for epoch in range(3):
    for (x,) in loader:
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        order.score += loss
    print(loss.item())
""",
    "an average of parameters that is not cut": """
average = [p.clone() for p in net.parameters()]
for x in xs:
    loss = net(x).pow(2).mean() + sum((p - q).pow(2).sum() for p, q in zip(net.parameters(), average))
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    average = [0.9 * q + 0.1 * p for p, q in zip(net.parameters(), average)]
    print(loss.item())
""",
    "an output that comes back three turns later": """
class Delay:
    def __init__(self, turns):
        self.line = [torch.zeros(())] * turns

    def __call__(self, value):
        self.line.append(value)
        return self.line.pop(0)

delay = Delay(3)
opt.zero_grad()
for x in xs:
    out = net(x)
    loss = out.pow(2).mean() + 0.2 * delay(net(x + 1).sum())
    loss.backward(retain_graph=True)
opt.step()
print(net[0].weight.sum().item())
""",
    "outputs in a tuple that is shifted": """
lags = (torch.zeros(5, 1),) * 3
opt.zero_grad()
for x in xs:
    out = net(x)
    (out.pow(2).mean() + (out - lags[-1]).pow(2).mean()).backward(retain_graph=True)
    lags = (out,) + lags[:2]
opt.step()
print(net[0].weight.sum().item())
""",
    "activations whose gradients are read": """
kept = []
for x in xs:
    code = net[1](net[0](x))
    code.retain_grad()
    kept.append(code)
    loss = net[2](code).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print([one.grad.norm().item() for one in kept])
""",
    "activations that get a hook where they are kept": """
kept, seen = [], []
for x in xs:
    code = net[1](net[0](x))
    kept.append(code)
    kept[-1].register_hook(seen.append)
    opt.zero_grad()
    net[2](code).pow(2).mean().backward()
    opt.step()
print([float(grad.sum()) for grad in seen], float(torch.stack(kept).mean()))
""",
    "neighbours of a generator that is read twice": """
import itertools
first, second = itertools.tee(net(x) for x in xs)
next(second)
opt.zero_grad()
for a, b in zip(first, second):
    (a - b).pow(2).mean().backward(retain_graph=True)
opt.step()
print(net[0].weight.sum().item())
""",
    "a loop that breaks after its one backward": """
loss = 0
for i, x in enumerate(xs):
    loss = loss + net(x).pow(2).mean()
    if i < 3:
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
    break
print([p.sum().item() for p in net.parameters()])
""",
    "a function that returns after its one backward": """
def learn():
    state = torch.zeros(5, 4)
    for i, x in enumerate(xs):
        state = cell(x, state)
        if i == 3:
            opt_c.zero_grad()
            state.pow(2).mean().backward()
            opt_c.step()
            return

learn()
""",
    "an error that is caught": """
kept = []
for x in xs:
    out = net(x)
    loss = out.pow(2).mean()
    if kept:
        loss = loss + F.mse_loss(out, kept.pop())
    opt.zero_grad()
    try:
        loss.backward()
        opt.step()
    except RuntimeError:
        print("skipped")
    kept.append(out)
""",
    "a state in a named tuple": """
State = namedtuple("State", "h n")
s = State(torch.zeros(5, 4), 0)
for x in xs:
    h = cell(x, s.h)
    s = s._replace(h=h, n=s.n + 1)
    loss = h.pow(2).mean()
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
""",
    "a state in a frozen dataclass": """
@dataclass(frozen=True)
class State:
    h: torch.Tensor

s = State(torch.zeros(5, 4))
for x in xs:
    s = replace(s, h=cell(x, s.h))
    loss = s.h.pow(2).mean()
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
""",
    "a state that is changed in place": STATE.format(forward="state += cell(x, state)"),
    "a state that a method changes": STATE.format(forward="state = state.add_(cell(x, state))"),
    "states in one tensor": """
states = torch.zeros(7, 5, 4)
for i, x in enumerate(xs):
    states[i + 1] = cell(x, states[i])
    loss = states[i + 1].pow(2).mean()
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
""",
    "a state that a hook of the step takes away": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.state = None

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state

model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
opt.register_step_post_hook(lambda *rest: setattr(model, "state", None))
for x in xs:
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an error of a change in place that is caught": """
for x in xs:
    h = torch.tanh(net[0](x))
    loss = net[2](h).pow(2).mean()
    shown = h.detach()
    shown.clamp_(min=0)
    opt.zero_grad()
    try:
        loss.backward()
        opt.step()
    except RuntimeError:
        print("skipped")
""",
    "an evaluation that is asked whether it has a graph": """
def evaluate():
    net.eval()
    score = 0
    for x in xs[3:]:
        score += net(x).pow(2).mean()
    net.train()
    return score

for x in xs:
    loss = net(x).pow(2).mean()
    if evaluate().requires_grad:
        loss = loss * 2
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a second backward when a class is made": """
class Base:
    def __init_subclass__(cls, extra):
        extra.mean().backward()

for x in xs:
    out = net(x)
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    type("Log", (Base,), {}, extra=out)
    opt.step()
""",
    "a state in a dict of the module, kept by a function": """
kept = {"state": None}

def learn():
    for x in xs:
        kept["state"] = cell(x, kept["state"])
        loss = kept["state"].pow(2).mean()
        opt_c.zero_grad()
        loss.backward()
        opt_c.step()

learn()
""",
    "parameters of the epoch before, of which there are none at first": """
def learn(kept):
    for x in xs:
        loss = net(x).pow(2).mean()
        if kept is not None:
            loss = loss + sum(((a - b) ** 2).sum() for a, b in zip(net.parameters(), kept))
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
    return [p.clone() for p in net.parameters()]

kept = None
for epoch in range(2):
    kept = learn(kept)
""",
    "a target that is overwritten in place": """
bank = torch.zeros(5, 1)
for x in xs:
    out = net(x)
    loss = F.mse_loss(out, bank)
    bank[:] = out.clone()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a bank in which the output of this step is written": """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.outer = nn.Linear(4, 1)

    def forward(self, x):
        h = torch.tanh(self.inner(x))
        if not self.training:
            return self.outer(h)
        return self.outer(h) * 1.0

net = Two()
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def learn(bank, batches):
    for x, y in batches:
        out = net(x)
        loss = F.mse_loss(out, bank) + F.mse_loss(out, y)
        loss.backward(retain_graph=True)
        opt.step()
        bank = bank.clone()
        bank[:2] = out[:2]
    return bank

batches = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(2)]
bank = torch.zeros(5, 1)
for epoch in range(2):
    bank = learn(bank, batches)
""",
    "an output that is kept, and changed in place before": """
kept = []

def learn(x):
    out = net(x)
    loss = (out - 1).abs().sum()
    if kept:
        loss = loss + 0.1 * F.mse_loss(out, kept[-1])
    shown = out.detach()
    shown.clamp_(min=0)
    loss.backward()
    kept.append(out)

for x in [xs[0], xs[1]]:
    learn(x)
""",
    "a hook before a layer that asks for the mode": """
calls = []
net[0].register_forward_pre_hook(lambda module, given: calls.append(torch.is_grad_enabled()))

def look(x):
    net.eval()
    print(net(x).sum().item())
    net.train()

for x in xs:
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
    look(x)
print(sum(calls))
""",
    "a hook before a layer that walks what it gets": """
kept = []

def walk(module, given):
    if given[0].requires_grad:
        given[0].sum().backward(retain_graph=True)

net[2].register_forward_pre_hook(walk)
for x in xs:
    opt.zero_grad()
    print(net(x).sum().item())
    opt.step()
""",
    "a hook before a layer that brings another graph": """
scale = nn.Parameter(torch.ones(()))
opt.add_param_group({"params": [scale]})
doubled = scale * scale
net[0].register_forward_pre_hook(lambda module, given: (given[0] * doubled,))
for step in range(3):
    opt.zero_grad()
    for x in xs:
        net(x).pow(2).mean().backward(retain_graph=True)
    opt.step()
    doubled = scale * scale
""",
    "a coroutine that is run by hand": """
async def asking(value):
    return value

for x in xs:
    out = torch.zeros(5, 1)
    out.copy_(net(x))
    try:
        asking(out.pow(2).mean()).send(None)
    except StopIteration as stop:
        loss = stop.value
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gradients of some parameters": """
for step in range(3):
    total = 0
    for x in xs:
        total = total + net(x).pow(2).mean()
    opt.zero_grad()
    total.backward(inputs=list(net[0].parameters()))
    opt.step()
""",
    "two backwards for different parameters": """
for x in xs:
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(inputs=list(net[0].parameters()), retain_graph=True)
    loss.backward(inputs=list(net[2].parameters()))
    opt.step()
""",
    "a turn in which all is frozen": """
for step in range(3):
    total = 0
    for j, x in enumerate(xs):
        for p in net.parameters():
            p.requires_grad_(j > 0)
        total = total + net(x).pow(2).mean()
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "an input that is the only leaf in one turn": """
for i, x in enumerate(xs):
    for p in net.parameters():
        p.requires_grad_(i != 3)
    x = torch.randn(5, 3, requires_grad=True)
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "losses of a generator that reads gradients": """
def losses(x):
    out = net(x)
    yield out.mean()
    scale = net[0].weight.grad.norm().item()
    yield out.pow(2).mean() * scale

for x in xs:
    opt.zero_grad()
    for loss in losses(x):
        loss.backward(retain_graph=True)
    opt.step()
""",
    "a chain of maps that grows": STEP.format(
        before="kept = collections.ChainMap()",
        inside="kept = kept.new_child({'v': out.max()})",
        after="print(float(kept['v']))",
    ),
    "a table that grows": STEP.format(
        before="kept = {}", inside="kept = kept | {len(kept): out.max()}", after="print(len(kept))"
    ),
    "a list made anew of another": STEP.format(
        before="kept = []", inside="kept = list(itertools.chain(kept, [out.max()]))", after="print(len(kept))"
    ),
    "a table of an object that cannot be seen": STEP.format(
        before="import argparse\nheld = argparse.Namespace()\nheld.kept = {}",
        inside="held.kept = held.kept | {len(held.kept): loss}",
        after="print(len(held.kept))",
    ),
    "code that asks whether it is the same object": STEP.format(
        before="kept = []", inside="kept.append(loss)", after="print(kept[-1] is loss)"
    ),
    "a set that grows": STEP.format(
        before="kept = set()", inside="kept = kept.union({out.max()})", after="print(len(kept))"
    ),
    "a tuple that grows by its method": STEP.format(
        before="kept = ()", inside="kept = kept.__add__((out.max(),))", after="print(len(kept))"
    ),
    "references that keep nothing alive": STEP.format(
        before="kept = []",
        inside="kept.append(weakref.ref(loss))",
        after="del loss, out\nprint([k() is None for k in kept])",
    ),
    "code that counts on an array being refused": STEP.format(
        before="kept = []",
        inside="kept.append(loss)",
        after="""
try:
    print(kept[-1].numpy().shape)
except RuntimeError:
    print("attached")
""",
    ),
    "code that counts on a list of arrays being refused": STEP.format(
        before="kept = []",
        inside="kept.append(loss)",
        after="""
try:
    print(numpy.mean(kept).shape)
except RuntimeError:
    print("attached")
""",
    ),
    "code that counts on a copy being refused": STEP.format(
        before="kept = []",
        inside="kept.append(out)",
        after="""
try:
    copy.deepcopy(kept[-1])
    print("copied")
except RuntimeError:
    print("attached")
""",
    ),
    "code that asks what is kept of outputs for its flag": STEP.format(
        before="kept = []", inside="kept.append(out)", after="print(kept[-1].requires_grad)"
    ),
    "what an object holds under a name that is made up": """
class Slot:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, thing, kind=None):
        return getattr(thing, self.name, [])

    def __set__(self, thing, value):
        thing.__dict__.setdefault(self.name, []).append(value)

class Things:
    kept = Slot()

things, line = Things(), nn.Linear(3, 1)
opt = torch.optim.SGD(line.parameters(), lr=0.1)
for x in xs:
    out = line(x)
    opt.zero_grad()
    out.pow(2).mean().backward(retain_graph=True)
    opt.step()
    things.kept = out
opt.zero_grad()
for out in things.kept:
    out.sum().backward()
print(line.weight.grad.sum().item())
""",
    "a hook that walks another graph": IMPLICIT.format(hook="h.register_hook(implicit)"),
    "the same where the graph is asked for": IMPLICIT.format(hook="h.grad_fn and h.register_hook(implicit)"),
    "the same as an object that is called": IMPLICIT.format(hook="h.register_hook(Calling(implicit))"),
    "the same on a node of the graph": IMPLICIT.format(
        hook="h.grad_fn.register_prehook(lambda grads: (implicit(grads[0]),))"
    ),
    "the same for several tensors": IMPLICIT.format(
        hook="torch.autograd.graph.register_multi_grad_hook([h], lambda grads: norms.append(implicit(grads[0]).norm()))"
    ),
    "what is computed when it is first asked for": CACHE.format(
        get="if self.kept is None:\n            self.kept = net(anchor)\n        return self.kept", read="cache.get(x)"
    ),
    "the same as a property": CACHE.format(
        get="return 0\n\n    @property\n    def built(self):\n        if self.kept is None:\n"
        "            self.kept = net(anchor)\n        return self.kept",
        read="cache.built",
    ),
    "the same in one expression": CACHE.format(
        get="self.kept = net(anchor) if self.kept is None else self.kept\n        return self.kept", read="cache.get(x)"
    ),
    "the same of the first batch": CACHE.format(
        get="if self.kept is None:\n            self.kept = net(x)\n        return self.kept", read="cache.get(x)"
    ),
    **{
        f"an object that {name}": LATER.format(before=CHECK.format(method="__call__", result="0"), inside=inside)
        for name, inside in CALLED.items()
    },
    "an output that the next step walks first, carried on one of two paths": """
class Kept:
    last = None

kept = Kept()

def epoch():
    for x in xs[:2]:
        out = net(x)
        loss = out.pow(2).mean()
        if loss > 1e9:
            continue
        if kept.last is None:
            pass
        else:
            loss = F.mse_loss(out, kept.last)
            loss.backward()
            opt.step()
        kept.last = out

for _ in range(2):
    epoch()
""",
    "a node of the graph that is called": LATER.format(
        before="", inside="print(loss.grad_fn(torch.ones(()))[0].sum().item())"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_promise_is_broken(name: str) -> None:
    verdict = check({"main.py": PRELUDE + PROGRAMS[name]})
    assert [v for v in verdict.violations if v.kind not in HARMLESS] == []
    assert not verdict.ungrammatical


SOUND = {
    "a cell whose pair of states is carried as one": """
cells, head = nn.LSTMCell(3, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*cells.parameters(), *head.parameters()], lr=0.1)
state = (torch.zeros(5, 4), torch.zeros(5, 4))
for x in xs:
    state = cells(x, state)
    loss = head(state[0]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an array that nobody expects to be refused": STEP.format(
        before="kept = []",
        inside="kept.append(loss)",
        after="""
try:
    print(float(numpy.mean([float(k) for k in kept])) > 0)
except ZeroDivisionError:
    print("nothing")
""",
    ),
    "a table that makes what it lacks": STEP.format(
        before="""
class Log(dict):
    def __missing__(self, key):
        self[key] = []
        return self[key]

    __getattr__ = dict.__getitem__

log = Log()
""",
        inside="log['loss'].append(loss)",
        after="print(float(min(log.loss)) > 0)",
    ),
    "a mean that begins with a tensor": STEP.format(
        before="kept = torch.zeros(())", inside="kept = 0.9 * kept + 0.1 * out.mean()", after="print(kept.item() < 9)"
    ),
    "an error of which the program stops": """
def learn():
    state = torch.zeros(5, 4)
    for x in xs:
        state = cell(x, state)
        loss = state.pow(2).mean()
        opt_c.zero_grad()
        loss.backward()
        opt_c.step()

try:
    learn()
except KeyboardInterrupt:
    print("stopped")
""",
    "an error that is raised again": """
state = torch.zeros(5, 4)
for x in xs:
    state = cell(x, state)
    opt_c.zero_grad()
    try:
        state.pow(2).mean().backward()
    except RuntimeError as error:
        print("in line", 1)
        raise
    opt_c.step()
""",
    "a gradient of an input, which frees no more than its own path": """
head = nn.Linear(1, 1)
opt_h = torch.optim.SGD(head.parameters(), lr=0.1)
for x in xs:
    out = net(x)
    d = torch.randn(5, 3).requires_grad_()
    torch.autograd.grad(F.mse_loss(out, net(x + d)), [d])
    g_loss = head(out).pow(2).mean()
    h_loss = head(out.detach()).mean()
    opt_h.zero_grad()
    h_loss.backward()
    opt_h.step()
    opt.zero_grad()
    g_loss.backward()
    opt.step()
""",
    "a closure that is evaluated once": """
state = torch.zeros(5, 4)
for x in xs:
    state = cell(x, state)

    def closure():
        opt_c.zero_grad()
        loss = state.pow(2).mean()
        loss.backward()
        return loss

    opt_c.step(closure)
""",
    "a loop that breaks when it has learned enough": """
state = torch.zeros(5, 4)
for i, x in enumerate(xs):
    state = cell(x, state)
    loss = state.pow(2).mean()
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
    if loss < 1e-9:
        break
""",
    **{
        f"an object that {name} and only looks": LATER.format(
            before=CHECK.format(method="__call__", result="0").replace(".backward()", ".item()"), inside=inside
        )
        for name, inside in CALLED.items()
    },
    "a class whose methods only look": LATER.format(
        before=CHECK.format(method="__str__", result="'ok'").replace(".backward()", ".item()"),
        inside="print(Check(out))",
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_proven_is_still_mended(name: str) -> None:
    verdict = check({"main.py": PRELUDE + SOUND[name]})
    assert verdict.violations == []
    assert verdict.after is not None
