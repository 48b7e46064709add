"""What proves that code only evaluates: nobody, seen or unseen, can back-propagate what comes out of it.

All programs here run: each of them trains, and a wrong ``no_grad`` would change what it learns.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.proofs.observations import Decision
from codemods.rules import rule
from codemods.source.options import Options
from codemods.terms.findings import Promise, promoted
from tests.graph.tools import run_tree
from tests.rules.tools import found, lines, mended

RULE = "grad-in-evaluation"

START = """\
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
teacher = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [(torch.randn(9, 4), torch.randn(9, 2)) for _ in range(3)]
x, y = batches[0]
"""

TRAIN = """
def learn():
    net.train()
    for x, y in batches:
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()

learn()
"""

POLICY = """
from torch.distributions import Normal

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(4, 2)
        self.dist = None

    def forward(self, x):
        self.dist = Normal(self.mean(x), 1.0)
        return self.dist.mean

    def kl(self):
        return self.dist.mean.pow(2).mean()

policy = Policy()
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
"""

WALKED = {
    "a distribution that the forward left on the module": POLICY
    + """
for x, y in batches:
    policy(x)
    loss = -policy.dist.log_prob(y).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a divergence that a method computes of it": POLICY
    + """
def act(x):
    policy.eval()
    return policy(x).argmax(1).tolist()

for x, y in batches:
    moves = act(x)
    opt.zero_grad()
    policy.kl().backward()
    opt.step()
""",
    "a cache in a dict of the caller": """
def remember(x, seen):
    net.eval()
    seen["out"] = net(x)
    return seen["out"].argmax(1).tolist()

for x, y in batches:
    seen = {}
    remember(x, seen)
    opt.zero_grad()
    F.mse_loss(seen["out"], y).backward()
    opt.step()
""",
    "a list of the caller": """
def remember(x, seen):
    net.eval()
    out = net(x)
    seen.append(out)
    return out.argmax(1).tolist()

for x, y in batches:
    seen = []
    remember(x, seen)
    opt.zero_grad()
    F.mse_loss(seen[0], y).backward()
    opt.step()
""",
    "a global": """
last = None

def look(x):
    global last
    net.eval()
    last = net(x)
    return last.argmax(1).tolist()

for x, y in batches:
    look(x)
    opt.zero_grad()
    F.mse_loss(last, y).backward()
    opt.step()
""",
    "a variable of the function around": """
def learn():
    last = None
    def look(x):
        nonlocal last
        net.eval()
        last = net(x)
        return last.argmax(1).tolist()
    for x, y in batches:
        look(x)
        opt.zero_grad()
        F.mse_loss(last, y).backward()
        opt.step()

learn()
""",
    "a closure that is called later": """
def prepare(x):
    net.eval()
    out = net(x)
    print(out.argmax(1).tolist())
    return lambda y: F.mse_loss(out, y)

for x, y in batches:
    measure = prepare(x)
    opt.zero_grad()
    measure(y).backward()
    opt.step()
""",
    "an attribute of a class": """
class Store:
    last = None

def look(x):
    net.eval()
    Store.last = net(x)
    return Store.last.argmax(1).tolist()

for x, y in batches:
    look(x)
    opt.zero_grad()
    F.mse_loss(Store.last, y).backward()
    opt.step()
""",
    "an attribute of a function": """
def look(x):
    net.eval()
    look.last = net(x)
    return look.last.argmax(1).tolist()

for x, y in batches:
    look(x)
    opt.zero_grad()
    F.mse_loss(look.last, y).backward()
    opt.step()
""",
    "what a decorator keeps on its wrapper": """
import functools

def kept(function):
    @functools.wraps(function)
    def wrapper(*args):
        out = function(*args)
        wrapper.last = out
        return out.argmax(1).tolist()
    return wrapper

@kept
def look(x):
    net.eval()
    return net(x)

for x, y in batches:
    print(look(x))
    opt.zero_grad()
    F.mse_loss(look.last, y).backward()
    opt.step()
""",
    "what a decorator keeps in a list": """
kept = []

def keep(function):
    def wrapper(x):
        out = function(x)
        kept.append(out)
        return out.argmax(1)
    return wrapper

@keep
def look(x):
    net.eval()
    return net(x)

for x, y in batches:
    print(look(x).tolist())
    opt.zero_grad()
    F.mse_loss(kept.pop(), y).backward()
    opt.step()
""",
    "what a forward hook appends": """
caught = []
net[0].register_forward_hook(lambda module, inputs, output: caught.append(output))

def look(x):
    net.eval()
    return net(x).argmax(1).tolist()

for x, y in batches:
    caught.clear()
    print(look(x))
    opt.zero_grad()
    caught[0].pow(2).mean().backward()
    opt.step()
""",
    "what a hook of an object keeps": """
class Probe:
    def __init__(self, module):
        self.out = None
        module.register_forward_hook(self.catch)

    def catch(self, module, inputs, output):
        self.out = output

probe = Probe(net[0])
for x, y in batches:
    best = net(x).argmax(1).tolist()
    opt.zero_grad()
    probe.out.pow(2).mean().backward()
    opt.step()
    print(best)
""",
    "a hook on a part of a module that stands in the tree": """
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

wide = Wide()
opt = torch.optim.SGD(wide.parameters(), lr=0.1)
features = {}

def catch(name):
    def hook(module, inputs, output):
        features[name] = output
    return hook

wide.body.register_forward_hook(catch("body"))
for x, y in batches:
    best = wide(x).argmax(1).tolist()
    opt.zero_grad()
    features["body"].pow(2).mean().backward()
    opt.step()
    print(best)
""",
    "an item that an iterator hands out": """
def outs():
    net.eval()
    for x, y in batches:
        out = net(x)
        print(out.argmax(1).tolist())
        yield out, y

for out, y in outs():
    opt.zero_grad()
    F.mse_loss(out, y).backward()
    opt.step()
""",
    "a dataclass that is returned": """
from dataclasses import dataclass

@dataclass
class Out:
    logits: torch.Tensor
    best: list

def predict(x):
    net.eval()
    logits = net(x)
    return Out(logits, logits.argmax(1).tolist())

for x, y in batches:
    out = predict(x)
    print(out.best)
    opt.zero_grad()
    F.mse_loss(out.logits, y).backward()
    opt.step()
""",
    "an exception that carries it": """
class Found(Exception):
    def __init__(self, out):
        super().__init__()
        self.out = out

def search(x):
    net.eval()
    out = net(x)
    print(out.argmax(1).tolist())
    raise Found(out)

for x, y in batches:
    try:
        search(x)
    except Found as found:
        opt.zero_grad()
        F.mse_loss(found.out, y).backward()
        opt.step()
""",
    "a method that its owner's training reads": """
class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def act(self, x):
        self.values = self.net(x)
        return self.values.argmax(1).tolist()

    def learn(self, y):
        self.opt.zero_grad()
        F.mse_loss(self.values, y).backward()
        self.opt.step()

agent = Agent()
for x, y in batches:
    print(agent.act(x))
    agent.learn(y)
""",
}


@pytest.mark.parametrize("name", WALKED)
def test_what_is_kept_and_walked_later_is_no_evaluation(tmp_path: Path, name: str) -> None:
    assert lines(found(tmp_path, RULE, START, WALKED[name])) == []


HANDED_OUT = {
    "a public function": """
def predict(model, x):
    model.eval()
    return model(x)
""",
    "a public function in a dict": """
def predict(model, x):
    model.eval()
    out = model(x)
    return {"out": out, "best": out.argmax(1).tolist()}
""",
    "a public function that returns an object": """
class Result:
    def __init__(self, out):
        self.out = out

def predict(model, x):
    model.eval()
    return Result(model(x))
""",
    "a public function that returns a closure": """
def scorer(model, x):
    model.eval()
    out = model(x)
    def score(y):
        return F.mse_loss(out, y)
    return score
""",
    "a public generator": """
def predictions(model, loader):
    model.eval()
    for x in loader:
        yield x, model(x)
""",
    "a method of a trainer": """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.model.eval()

    def loss(self, x, y):
        return F.mse_loss(self.model(x), y)
""",
    "a method that leaves its results on the object": """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.model.eval()

    def run(self, x):
        self.out = self.model(x)
        return self.out.argmax(1).tolist()
""",
    "a method that fills a list of the object": """
class Collector:
    def __init__(self, model):
        self.model = model
        self.outs = []
        self.model.eval()

    def collect(self, x):
        out = self.model(x)
        self.outs.append(out)
        return out.argmax(1).tolist()
""",
    "a function that writes to its argument": """
def annotate(model, sample):
    model.eval()
    sample.out = model(sample.x)
    return sample.out.argmax(1).tolist()
""",
    "a callback that unseen code gets": """
from elsewhere import on_step

kept = []

@on_step
def watch(x):
    net.eval()
    kept.append(net(x))
""",
    "what an unseen registry decorates": """
from elsewhere import REGISTRY

@REGISTRY.register("mse")
def distance(model, x, y):
    model.eval()
    return F.mse_loss(model(x), y)
""",
    "a perceptual loss with loaded weights": """
class Perceptual(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.features.load_state_dict(torch.load(path))
        self.features.eval()

    def forward(self, x, y):
        return F.mse_loss(self.features(x), self.features(y))
""",
    "a forward of which only data comes out": """
class Quantizer(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.encoder.eval()

    def forward(self, x):
        codes = self.encoder(x)
        self.usage = codes.mean(0)
        return codes.argmax(1)
""",
    "a forward with an encoder through the constructor": """
class Wrapper(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        encoder.eval()
        self.head = nn.Linear(2, 2)

    def forward(self, x):
        if not torch.is_tensor(x):
            print(self.encoder(x[0]).sum().item())
            x = x[0]
        return self.head(self.encoder(x))
""",
    "other methods of a module": """
class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)
        self.body.load_state_dict(torch.load("body.pt"))

    def encode(self, x):
        return self.body(x)

    def log_prob(self, x, action):
        return -(self.encode(x) - action).pow(2).sum(1)

    def loss(self, x, action):
        return {"loss": -self.log_prob(x, action).mean()}
""",
    "an epoch that a caller may ask to train": """
def epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total = 0.0
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total

net.eval()
print(epoch(net, batches))
""",
    "a base class whose methods others complete": """
class Base:
    def __init__(self, model):
        self.model = model
        model.eval()

    def measure(self, out, y):
        raise NotImplementedError

    def run(self, x, y):
        out = self.model(x)
        return self.measure(out, y)
""",
    "a subclass of a class that cannot be seen": """
from elsewhere import Task

class Mine(Task):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.model.eval()

    def step(self, x, y):
        self.log("loss", 0)
        return self.finish(F.mse_loss(self.model(x), y))
""",
}


@pytest.mark.parametrize("name", HANDED_OUT)
def test_what_somebody_unseen_may_walk_is_no_evaluation(tmp_path: Path, name: str) -> None:
    assert lines(found(tmp_path, RULE, START, TRAIN, "x = None\n", HANDED_OUT[name])) == []


# what is proof

DECORATED = {
    "a function that gives numbers": """
def score():
    net.eval()
    return sum(F.mse_loss(net(x), y).item() for x, y in batches)
print(score())
""",
    "a function that nobody in sight calls": """
def score(model, loader):
    model.eval()
    return [model(x).argmax(1).tolist() for x, _ in loader]
""",
    "a method that gives an array": """
class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def score(self, x):
        return self.net(x).cpu().data.numpy().flatten()

    def learn(self, x, y):
        self.opt.zero_grad()
        F.mse_loss(self.net(x), y).backward()
        self.opt.step()

agent = Agent()
for x, y in batches:
    print(agent.score(x).shape)
    agent.learn(x, y)
""",
    "a function that prints": """
def score():
    net.eval()
    for x, y in batches:
        print(F.mse_loss(net(x), y).item())
score()
""",
    "a meter of the function's own": """
class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value):
        self.sum += value
        self.count += 1

def score():
    net.eval()
    meter = Meter()
    for x, y in batches:
        meter.update(F.mse_loss(net(x), y))
    print(float(meter.sum) / meter.count)
score()
""",
    "a list of the function's own": """
def score():
    net.eval()
    outs = []
    for x, y in batches:
        outs.append(net(x))
    return torch.cat(outs).argmax(1).tolist()
print(score())
""",
    "a meter that is kept, of numbers": """
class Meter:
    def __init__(self):
        self.values = []

meter = Meter()

def score():
    net.eval()
    for x, y in batches:
        meter.values.append(F.mse_loss(net(x), y).item())
score()
print(meter.values)
""",
    "what is detached before it is kept": """
kept = {}

def score():
    net.eval()
    for i, (x, y) in enumerate(batches):
        kept[i] = net(x).detach()
score()
print(len(kept))
""",
    "a decorator that only measures": """
import functools
import time

def timed(function):
    @functools.wraps(function)
    def wrapper(*args):
        start = time.time()
        out = function(*args)
        print(time.time() - start)
        return out
    return wrapper

@timed
def score():
    net.eval()
    return [net(x).argmax(1).tolist() for x, _ in batches]
print(score())
""",
    "a command": """
import click

@click.command()
def score():
    net.eval()
    for x, y in batches:
        print(F.mse_loss(net(x), y).item())
""",
    "a file that is written": """
def export(path):
    net.eval()
    outs = [net(x) for x, _ in batches]
    torch.save(torch.cat(outs).detach(), path)
export("outs.pt")
""",
    "a hook that only counts": """
count = [0]

def tick(module, inputs, output):
    count[0] += 1

net[0].register_forward_hook(tick)

def score():
    net.eval()
    return [net(x).argmax(1).tolist() for x, _ in batches]
print(score(), count)
""",
    "a hook that keeps data": """
caught = []

def catch(module, inputs, output):
    caught.append(output.detach())

net[0].register_forward_hook(catch)

def score():
    net.eval()
    return [net(x).argmax(1).tolist() for x, _ in batches]
print(score(), len(caught))
""",
    "a generator of data": """
def predictions():
    net.eval()
    for x, _ in batches:
        yield net(x).argmax(1)
for prediction in predictions():
    print(prediction.tolist())
""",
    "results in a dict, as numbers": """
def score():
    net.eval()
    out = {"loss": 0.0, "hits": 0}
    for x, y in batches:
        logits = net(x)
        out["loss"] += F.mse_loss(logits, y).item()
        out["hits"] += (logits.argmax(1) == y.argmax(1)).sum().item()
    return out
print(score())
""",
    "a closure of the function's own": """
def score():
    net.eval()
    def one(x):
        return net(x)
    return [one(x).argmax(1).tolist() for x, _ in batches]
print(score())
""",
}


@pytest.mark.parametrize("name", DECORATED)
def test_a_function_that_lets_no_graph_out_is_decorated(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, START, TRAIN, DECORATED[name])
    assert [f.promise for f in findings] == [Promise.EXACT]
    after = mended(tmp_path, findings).splitlines()
    assert after[after.index("@torch.no_grad()") + 1 if "@torch.no_grad()" in after else 0].startswith("def ") or any(
        line == "    @torch.no_grad()" for line in after
    )


WRAPPED = {
    "the call of a function that hands its graph out": (
        """
        def predict(x):
            net.eval()
            return net(x)
        for x, y in batches:
            print(predict(x).argmax(1).tolist())
        """,
        "with torch.no_grad():\n    for x, y in batches:\n        print(predict(x)",
    ),
    "the same, two calls away": (
        """
        def predict(x):
            net.eval()
            return net(x)
        def probabilities(x):
            return predict(x).softmax(1)
        for x, y in batches:
            print(probabilities(x).tolist())
        """,
        "with torch.no_grad():\n    for x, y in batches:\n        print(probabilities(x)",
    ),
    "the function that reduces them to data": (
        """
        def predict(x):
            net.eval()
            return net(x)
        def best(x):
            return predict(x).argmax(1).tolist()
        for x, y in batches:
            print(best(x))
        """,
        "@torch.no_grad()\ndef best(x):",
    ),
    "a loss that a helper returns": (
        """
        def error(x, y):
            return F.mse_loss(net(x), y)
        def score():
            net.eval()
            return sum(error(x, y).item() for x, y in batches)
        print(score())
        """,
        "@torch.no_grad()\ndef score():",
    ),
    "a list that a helper fills": (
        """
        def collect(outs):
            net.eval()
            for x, _ in batches:
                outs.append(net(x))
        def score():
            outs = []
            collect(outs)
            return torch.cat(outs).argmax(1).tolist()
        print(score())
        """,
        "@torch.no_grad()\ndef score():",
    ),
    "results that an object keeps for a report": (
        """
        class Tester:
            def __init__(self, net):
                self.net = net

            def run(self, x):
                self.out = self.net(x)

            def report(self):
                return self.out.argmax(1).tolist()

        def main():
            net.eval()
            tester = Tester(net)
            for x, _ in batches:
                tester.run(x)
                print(tester.report())
        main()
        """,
        "    @torch.no_grad()\n    def run(self, x):",
    ),
    "results that an object keeps, and that code reads which never ran": (
        """
        class Tester:
            def __init__(self, net):
                self.net = net

            def run(self, x):
                self.out = self.net(x)

            def report(self):
                return self.out.argmax(1).tolist()

            def loss(self, y):
                return F.mse_loss(self.out, y)

        def main():
            net.eval()
            tester = Tester(net)
            for x, _ in batches:
                tester.run(x)
                print(tester.report())
        main()
        """,
        "@torch.no_grad()\ndef main():",
    ),
    "the loop of a script, by what a helper returns": (
        """
        def outs(loader):
            net.eval()
            return [net(x) for x, _ in loader]
        for out in outs(batches):
            print(out.argmax(1).tolist())
        """,
        "with torch.no_grad():\n    for out in outs(batches):",
    ),
    "the loop, where the function returns what unseen code made": (
        """
        from elsewhere import Report

        def score():
            net.eval()
            report = Report()
            for x, _ in batches:
                report.update(net(x).argmax(1).tolist())
            return report.compute()
        print(score())
        """,
        "    with torch.no_grad():\n        for x, _ in batches:\n            report.update(",
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_where_graphs_are_handed_out_the_caller_is_covered(tmp_path: Path, name: str) -> None:
    code, expected = WRAPPED[name]
    findings = found(tmp_path, RULE, START, TRAIN, code)
    assert [f.promise for f in findings] == [Promise.EXACT]
    assert expected in mended(tmp_path, findings)


def test_what_a_public_function_leaves_behind_is_advice(tmp_path: Path) -> None:
    code = """
    class Tester:
        def __init__(self, model):
            self.model = model
            self.model.eval()

        def run(self, x):
            self.out = self.model(x)
            print(self.out.argmax(1).tolist())
    """
    findings = found(tmp_path, RULE, START, TRAIN, code)
    assert [f.promise for f in findings] == [Promise.ADVICE]
    assert "outlive the function" in findings[0].message
    assert findings[0].likely is Promise.EXACT
    assert "    @torch.no_grad()\n    def run(self, x):" in mended(tmp_path, promoted(findings))


LEFT = {
    "not known to evaluate": """
class Tester:
    def __init__(self, model):
        self.model = model

    def run(self, x):
        self.out = self.model(x)
        print(self.out.argmax(1).tolist())
""",
    "a coroutine": """
class Tester:
    def __init__(self, model):
        self.model = model
        self.model.eval()

    async def run(self, x):
        self.out = self.model(x)
        print(self.out.argmax(1).tolist())
""",
    "the forward of a module": """
class Tester(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 2)
        self.model.eval()

    def forward(self, x):
        self.out = self.model(x)
        print(self.out.argmax(1).tolist())
""",
    "one that trains on another path": """
class Tester:
    def __init__(self, model):
        self.model = model
        self.model.eval()

    def run(self, x, y=None):
        self.out = self.model(x)
        print(self.out.argmax(1).tolist())
        if y is not None:
            F.mse_loss(self.out, y).backward()
""",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_behind_keeps_no_edit(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, START, TRAIN, LEFT[name])
    assert all(f.promise is Promise.ADVICE and f.likely is None and not f.edits for f in findings)


# what depends on whether gradients are on, and what a forward leaves behind without saying so

DEPENDS = {
    "a cache that evaluation fills": """
import functools

@functools.lru_cache(maxsize=None)
def center():
    return net[0].weight.mean()

def score(x):
    return (net(x).mean() + center()).item()

for x, y in batches:
    print(score(x))
    opt.zero_grad()
    (F.mse_loss(net(x), y) + center() ** 2).backward()
    opt.step()
""",
    "a property that is computed once": """
import functools

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    @functools.cached_property
    def scale(self):
        return self.layer.weight.norm()

    def forward(self, x):
        return self.layer(x) / self.scale

scaled = Scaled()
opt = torch.optim.SGD(scaled.parameters(), lr=0.1)

def score(x):
    return scaled(x).mean().item()

for x, y in batches[:1]:
    print(score(x))
    opt.zero_grad()
    F.mse_loss(scaled(x), y).backward()
    opt.step()
""",
    "a weight that each forward computes": """
normed = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 2)), nn.Tanh())
opt = torch.optim.SGD(normed.parameters(), lr=0.1)

def score():
    return sum(normed(x).pow(2).mean().item() for x, y in batches)

for x, y in batches:
    size = normed[0].weight.pow(2).sum()
    opt.zero_grad()
    (F.mse_loss(normed(x), y) + size).backward()
    opt.step()
    print(score())
""",
    "a forward that asks whether gradients are on": """
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 2), 0

    def forward(self, x):
        if torch.is_grad_enabled():
            self.calls += 1
        return self.layer(x) / self.calls

counting = Counting()
opt = torch.optim.SGD(counting.parameters(), lr=0.1)

def score(x):
    return counting(x).pow(2).mean().item()

for x, y in batches:
    opt.zero_grad()
    F.mse_loss(counting(x), y).backward()
    opt.step()
    print(score(x))
""",
    "an error that is caught": """
def score(x):
    out = net(x)
    try:
        return float(out.numpy().mean())
    except RuntimeError:
        return 1.0

for x, y in batches:
    opt.zero_grad()
    (F.mse_loss(net(x), y) * score(x)).backward()
    opt.step()
""",
    "an error that the caller catches": """
def score(x):
    return float(net(x).numpy().mean())

for x, y in batches:
    try:
        weight = score(x)
    except RuntimeError:
        weight = 1.0
    opt.zero_grad()
    (F.mse_loss(net(x), y) * weight).backward()
    opt.step()
""",
}

DOES_NOT = {
    "a cache of data": """
import functools

@functools.lru_cache(maxsize=None)
def mask():
    return torch.ones(2)

def score(x):
    return (net(x) * mask()).mean().item()
""",
    "a weight that is computed anew whenever it is asked for": """
normed = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)), net)
print(normed[0].weight.shape)

def score(x):
    return net(normed[0](x) @ torch.ones(2, 4)).mean().item()
""",
    "a weight that nobody asks for": """
normed = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 4)), net)

def score(x):
    return normed(x).mean().item()
""",
    "a try around what raises no such error": """
def score(x):
    try:
        return net(x).mean().item()
    except KeyboardInterrupt:
        return 0.0
""",
}


@pytest.mark.parametrize("name", DEPENDS)
def test_what_gradients_being_on_decides_is_left_alone(name: str, tmp_path: Path) -> None:
    assert lines(found(tmp_path, RULE, START, DEPENDS[name])) == []


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_only_looks_like_it_is_evaluated_without_gradients(name: str, tmp_path: Path) -> None:
    code = DOES_NOT[name] + "\nnet.eval()\nfor x, y in batches:\n    print(score(x))\n"
    assert [f.promise for f in found(tmp_path, RULE, START, TRAIN, code)] == [Promise.EXACT]


# what forwards share of their weights

CASTS = """
import contextlib

def score(x):
    net.eval()
    shown = net(x).mean().item()
    net.train()
    return shown

context = {context}

{body}
"""
CAST_BOTH = """
for x, y in batches:
    with {context}:
        print(score(x))
        loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CAST_APART = """
for x, y in batches:
    {first}
        {one}
    {second}
        {other}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CAST_STEP = """
@{context}
def step(x, y):
    print(score(x))
    return F.mse_loss(net(x), y)

for x, y in batches:
    opt.zero_grad()
    step(x, y).backward()
    opt.step()
"""
SCORE, LOSS = "print(score(x))", "loss = F.mse_loss(net(x), y)"
CONTEXTS = [
    "torch.autocast('cuda')",
    "torch.amp.autocast('cuda', dtype=torch.bfloat16)",
    "torch.cuda.amp.autocast()",
    "torch.cpu.amp.autocast()",
    "torch.nn.utils.parametrize.cached()",
]
MAYBE = "(torch.autocast('cuda') if torch.cuda.is_available() else contextlib.nullcontext())"


@pytest.mark.parametrize(
    ("context", "body"),
    [
        *((context, body) for context in CONTEXTS for body in (CAST_BOTH, CAST_STEP)),
        *((context, CAST_BOTH.replace("{context}", "context")) for context in [*CONTEXTS, MAYBE]),
    ],
)
def test_training_that_would_find_weights_without_a_graph(context: str, body: str, tmp_path: Path) -> None:
    code = CASTS.format(context=context, body=body.format(context=context))
    assert lines(found(tmp_path, RULE, START, code)) == []


@pytest.mark.parametrize("context", [*CONTEXTS, MAYBE])
@pytest.mark.parametrize(
    ("first", "one", "second", "other"),
    [
        ("with context:", SCORE, "with context:", LOSS),
        ("with context:", LOSS, "if True:", SCORE),
        ("if True:", SCORE, "with context:", LOSS),
        ("with context:", f"{LOSS}\n        {SCORE}", "if True:", "pass"),
    ],
    ids=["two regions", "training in one", "evaluation outside", "training first"],
)
def test_training_that_finds_its_own_weights(
    context: str, first: str, one: str, second: str, other: str, tmp_path: Path
) -> None:
    body = CAST_APART.format(first=first, one=one, second=second, other=other)
    assert lines(found(tmp_path, RULE, START, CASTS.format(context=context, body=body)))


# what was not looked at

DEEP = """
outs = []
{}
def learn():
    for x, y in batches:
        opt.zero_grad()
        F.mse_loss(outs.pop(), y).backward()
        opt.step()

def follow(n):
    {}

def look():
    net.eval()
    for x, y in batches:
        outs.append(net(x))
        print(outs[-1].argmax(1).tolist())
        follow(0)

look()
"""


def test_a_call_that_nests_too_deeply_may_walk_what_was_stored(tmp_path: Path) -> None:
    deep = "".join(f"def f{i}():\n    f{i + 1}()\n" for i in range(30)) + "def f30():\n    learn()\n"
    assert lines(found(tmp_path, RULE, START, DEEP.format(deep, "f0()"))) == []


def test_at_no_budget_anything_is_said_of_what_a_later_call_walks() -> None:
    text = START + DEEP.format("", "learn()")
    for budget in range(60, 900, 7):
        trace = run_tree({"main.py": text}, budget=budget).trace
        observations = list(rule(RULE).observe(trace))
        file = trace.frames[0].file if trace.frames else None
        findings = rule(RULE).decide(observations, Decision(lambda _, file=file: file, Options()))  # type: ignore[misc]
        assert lines(list(findings)) == []


CAST = """
from torch.autograd import Variable

def play(env, build, dtype):
    net = build(4, 2){cast}
    opt = torch.optim.SGD({given}, lr=0.1)
    state = env.reset()
    while True:
        scores = net(Variable(state, volatile=True))
        state, reward = env.step(scores.data.max(1)[1])
        opt.zero_grad()
        (net(state).mean() - reward).backward()
        opt.step()
"""


@pytest.mark.parametrize("cast", [".double()", ".type(dtype)", ".half().cuda()", ".cuda().float()"])
def test_what_is_built_out_of_sight_and_cast_is_a_model_by_its_parameters(tmp_path: Path, cast: str) -> None:
    (finding,) = found(tmp_path, RULE, START, CAST.format(cast=cast, given="net.parameters()"))
    assert finding.promise is Promise.EXACT
    after = mended(tmp_path, [finding])
    assert "        with torch.no_grad():\n            scores = net(Variable(state))\n" in after


@pytest.mark.parametrize("cast", [".double()", ".type(dtype)", ".half().cuda()", ".cuda().float()"])
def test_without_parameters_it_may_be_a_tensor(tmp_path: Path, cast: str) -> None:
    assert found(tmp_path, RULE, START, CAST.format(cast=cast, given="[torch.zeros(1, requires_grad=True)]")) == []


WEIGHED = """
for x, y in batches:
    score = teacher(x)
    now = net(x)
    opt.zero_grad()
    {walk}
    opt.step()
    {after}
"""


@pytest.mark.parametrize(
    "walk",
    [
        "now.backward((now - score.detach()).data)",
        "now.backward(gradient=now.detach() - score.detach())",
        "now.backward((now.data - score.data) * 2)",
    ],
)
def test_what_the_gradient_of_a_backward_is_made_of_teaches(tmp_path: Path, walk: str) -> None:
    findings = found(tmp_path, RULE, START, WEIGHED.format(walk=walk, after=""))
    assert [f.promise for f in findings] == [Promise.ADVICE]
    assert "enters a loss detached" in findings[0].message


def test_beside_such_a_backward_an_evaluation_is_mended(tmp_path: Path) -> None:
    walk = "now.backward(torch.ones_like(now))"
    findings = found(tmp_path, RULE, START, WEIGHED.format(walk=walk, after="print(score.argmax(1))"))
    assert [f.promise for f in findings] == [Promise.EXACT]
