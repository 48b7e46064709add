"""The flag goes where nothing walks the graph again, and stays wherever something may."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from codemods.graph.model.facts.saved import SAVES_NOTHING
from codemods.terms.findings import Promise
from tests.rules.tools import found, lines, mended

RULE = "surplus-retain-graph"

START = """\
import torch
from torch import nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
head = nn.Linear(1, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(9, 4), torch.randn(9, 1)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss.backward(retain_graph=True)", "loss.backward()"),
        ("loss.backward(retain_variables=True)", "loss.backward()"),
        ("loss.backward(None, True)", "loss.backward(None)"),
        ("loss.backward(None, True, False)", "loss.backward(None, False, False)"),
        ("loss.backward(create_graph=False, retain_graph=True)", "loss.backward(create_graph=False)"),
        ("torch.autograd.backward(loss, retain_graph=True)", "torch.autograd.backward(loss)"),
        (
            "grads = torch.autograd.grad(loss, net.parameters(), retain_graph=True)",
            "grads = torch.autograd.grad(loss, net.parameters())",
        ),
    ],
)
def test_the_argument_goes_in_every_form(tmp_path: Path, before: str, after: str) -> None:
    loop = f"for step in range(3):\n    loss = F.mse_loss(net(x), y)\n    {before}\n    opt.step()\n"
    findings = found(tmp_path, RULE, START, loop)
    assert [(f.span.line, f.promise) for f in findings] == [
        (12, Promise.REPAIR if "retain_variables" in before else Promise.EXACT)
    ]
    assert findings[0].trail[0].line == 11
    assert mended(tmp_path, findings) == f"{START}\n{loop}".replace(before, after)


RECURRENT = """
        def cut(h):
            if isinstance(h, torch.Tensor):
                return {kept}
            {way}

        body = getattr(nn, open("kind").read())(4, 8)
        state = torch.zeros(1, 9, 8)
        for step in range(3):
            state = cut(state)
            out, state = body(x.unsqueeze(1), state)
            F.mse_loss(out.mean(2), y).backward(retain_graph=True)  # here
            opt.step()
"""

HITS = {
    "a state of any form that a function within itself cuts": RECURRENT.format(
        kept="h.detach()", way="return tuple(cut(v) for v in h)"
    ),
    "the same, in a list": RECURRENT.format(
        kept="h.data",
        way="found = []\n            for v in h:\n                found.append(cut(v))\n            return found",
    ),
    "noise that was drawn before": """
        noise = torch.distributions.Normal(0.0, 0.1)
        target = y + noise.sample(y.shape)
        for step in range(3):
            F.mse_loss(net(x), target).backward(retain_graph=True)  # here
            opt.step()
        """,
    "a state that begins as an empty list": """
        def unrolled(steps):
            state = []
            for step in range(steps):
                if step == 0:
                    state = net(x)
                state = state[:, 0:1] * head(state)
            return state
        for step in range(3):
            unrolled(5).mean().backward(retain_graph=True)  # here
            opt.step()
        """,
    "a known library that only looks": """
        import torchvision
        for step in range(3):
            out = net(x)
            F.mse_loss(out, y).backward(retain_graph=True)  # here
            shown = torchvision.utils.make_grid(out)
        """,
    "parts of a model of a known library": """
        import torchvision
        body = torchvision.models.resnet18()
        for step in range(3):
            F.mse_loss(body.fc(body.layer4[0](x)), y).backward(retain_graph=True)  # here
            opt.step()
        """,
    "a layer by its name": """
        act = getattr(nn, open("act").read())()
        for step in range(3):
            F.mse_loss(act(net(x)), y).backward(retain_graph=True)  # here
            opt.step()
        """,
    "a model of a known library by its name": """
        import torchvision.models as models
        body = models.__dict__[open("model").read()](pretrained=True)
        for step in range(3):
            F.mse_loss(body(x), y).backward(retain_graph=True)  # here
            opt.step()
        """,
    "memory in the form of something else": """
        offset = None
        for step in range(3):
            out = net(x)
            offset = torch.zeros(9, 1).type_as(out) if offset is None else offset
            F.mse_loss(out + offset.expand_as(out), y).backward(retain_graph=True)  # here
            opt.step()
        """,
    "a sum kept in the form of another": """
        kept = nn.Parameter(torch.zeros(9, 1)) + 1
        for step in range(3):
            F.mse_loss(net(x) + kept.flip(0) - kept.roll(1), y).backward(retain_graph=True)  # here
            opt.step()
        """,
    "one of two losses": """
        for step in range(3):
            if open("kind").read():
                loss = F.mse_loss(net(x), y)
            else:
                loss = F.l1_loss(net(x), y)
            loss.backward(retain_graph=True)  # here
        """,
    "only the last of two": """
        for step in range(3):
            hidden = net(x)
            F.mse_loss(hidden, y).backward(retain_graph=True)
            head(hidden).mean().backward(retain_graph=True)  # here
        """,
    "the next turn is detached from this one": """
        state = torch.zeros(9, 4)
        for step in range(3):
            out = net(state)
            loss = F.mse_loss(out, y)
            loss.backward(retain_graph=True)  # here
            state = state + out.detach()
        """,
    "a fake that was detached": """
        for step in range(3):
            fake = net(x)
            real = head(y).mean()
            real.backward(retain_graph=True)  # here
            head(fake.detach()).mean().backward(retain_graph=True)  # here
            head(fake).mean().backward()
        """,
    "losses kept as numbers": """
        curve = []
        for step in range(3):
            loss = F.mse_loss(net(x), y)
            curve.append(loss.item())
            loss.backward(retain_graph=True)  # here
        print(sum(curve))
        """,
    "in a function that the script calls": """
        def fit(inputs, targets):
            loss = F.mse_loss(net(inputs), targets)
            loss.backward(retain_graph=True)  # here
            return loss

        for step in range(3):
            print(fit(x, y).item())
        """,
    "a closure that rebuilds its graph": """
        solver = torch.optim.LBFGS(net.parameters())

        def closure():
            solver.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward(retain_graph=True)  # here
            return loss

        solver.step(closure)
        """,
    "a batch out of a loader that is an argument": """
        def epoch(loader):
            for a, b in loader:
                loss = F.mse_loss(net(a), b)
                loss.backward(retain_graph=True)  # here
                opt.step()
        """,
    "parameters that were moved once": """
        class Adaptive(nn.Module):
            def __init__(self, device):
                super().__init__()
                self.left = nn.Parameter(torch.randn(4, 2)).to(device)
                self.right = nn.Parameter(torch.randn(2, 4), requires_grad=True).to(device)
                self.bias = torch.cat([nn.Parameter(torch.zeros(2)), nn.Parameter(torch.ones(2))])

            def forward(self, value):
                return value @ torch.softmax(self.left @ self.right, 1) + self.bias

        model = Adaptive("cpu")
        for step in range(3):
            F.mse_loss(model(x).mean(1, keepdim=True), y).backward(retain_graph=True)  # here
            opt.step()
        """,
}


@pytest.mark.parametrize("name", HITS)
def test_the_flag_is_surplus(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, START, HITS[name])
    text = (tmp_path / "train.py").read_text().splitlines()
    assert lines(findings) == [(i, "exact") for i, line in enumerate(text, 1) if "# here" in line]
    assert "\n".join(text).replace("(retain_graph=True)  # here", "()  # here") + "\n" == mended(tmp_path, findings)


NOOPS = {
    "a state of any form that a function within itself only moves": RECURRENT.format(
        kept="h.cpu()", way="return tuple(cut(v) for v in h)"
    ),
    "a state of which one form is not cut": RECURRENT.format(
        kept="h.detach()", way="return tuple(cut(v) for v in h) if len(h) > 1 else h"
    ),
    "a function within itself that has no end": RECURRENT.format(kept="cut(h)", way="return tuple(cut(v) for v in h)"),
    "a weight that was scaled once": """
        scaled = nn.Parameter(torch.randn(4, 1)) * 2
        for step in range(3):
            F.mse_loss(x @ scaled, y).backward(retain_graph=True)
            opt.step()
        """,
    "rows that were taken once": """
        table = nn.Parameter(torch.randn(20, 4))
        rows = table.index_select(0, torch.arange(9))
        for step in range(3):
            F.mse_loss(net(rows), y).backward(retain_graph=True)
            opt.step()
        """,
    "features that are only moved on before the second loss": """
        for step in range(3):
            hidden = net(x).to("cpu")
            F.mse_loss(hidden, y).backward(retain_graph=True)
            hidden.mean().backward()
        """,
    "a second loss under a condition": """
        for step in range(8):
            hidden = net(x)
            hidden.mean().backward(retain_graph=True)
            if step % 4 == 3:
                head(hidden).mean().backward()
        """,
    "a turn that keeps the features of the one before": """
        for step in range(8):
            if step % 2 == 0:
                hidden = net(x)
            head(hidden).mean().backward(retain_graph=True)
        """,
    "features from before the loop": """
        hidden = net(x)
        for step in range(8):
            head(hidden).mean().backward(retain_graph=True)
        """,
    "a loss that only some turns make anew": """
        loss = F.mse_loss(net(x), y)
        for step in range(8):
            if step % 2:
                loss = F.l1_loss(net(x), y)
            loss.backward(retain_graph=True)
        """,
    "an exponential of a parameter": """
        kept = torch.exp(nn.Parameter(torch.zeros(9, 1)))
        for step in range(8):
            F.mse_loss(net(x) * kept, y).backward(retain_graph=True)
        """,
    "a part by its name that was computed before": """
        class Parts(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale_a = torch.exp(nn.Parameter(torch.zeros(1)))
                self.scale_b = torch.ones(1)

            def forward(self, value, which):
                return value * getattr(self, f"scale_{which}")

        parts = Parts()
        for step in range(8):
            F.mse_loss(parts(net(x), input()), y).backward(retain_graph=True)
        """,
    "a carried state": """
        state = torch.zeros(9, 4)
        grow = nn.Linear(4, 4)
        for step in range(8):
            state = torch.tanh(grow(state))
            state.mean().backward(retain_graph=True)
        """,
    "an attribute read by another method": """
        class Trainer:
            def __init__(self):
                self.net = nn.Linear(4, 4)

            def first(self, batch):
                self.hidden = self.net(batch)
                self.hidden.mean().backward(retain_graph=True)

            def second(self):
                self.hidden.pow(2).mean().backward()

        trainer = Trainer()
        for step in range(3):
            trainer.first(x)
            trainer.second()
        """,
    "a closure over features from outside": """
        solver = torch.optim.LBFGS(head.parameters())
        hidden = net(x)

        def closure():
            loss = F.mse_loss(head(hidden), y)
            loss.backward(retain_graph=True)
            return loss

        solver.step(closure)
        """,
    "a flag that is no literal": """
        keep = len(x) > 3
        for step in range(3):
            net(x).mean().backward(retain_graph=keep)
        """,
    "create_graph": """
        for step in range(3):
            loss = net(x).mean()
            loss.backward(retain_graph=True, create_graph=True)
        """,
    "an argument that may be attached": """
        def update(features):
            loss = head(features).mean()
            loss.backward(retain_graph=True)
        """,
    "a loss that an unseen caller gets": """
        def update(loader):
            for a in loader:
                loss = net(a).mean()
                loss.backward(retain_graph=True)
            return loss
        """,
    "an encoder that cannot be seen": """
        from somewhere import encoder
        for step in range(3):
            code = encoder(x)
            F.mse_loss(head(code), y).backward(retain_graph=True)
            F.l1_loss(head(code), y).backward(retain_graph=True)
        """,
    "the graph is read": """
        for step in range(3):
            loss = net(x).tanh().mean()
            loss.backward(retain_graph=True)
            print(loss.grad_fn.next_functions)
        """,
    "a helper that serves two losses": """
        def learn(loss):
            loss.backward(retain_graph=True)

        for step in range(3):
            hidden = net(x)
            learn(hidden.mean())
            learn(head(hidden).mean())
        """,
    "a metric in another function": """
        def share(loss):
            return torch.autograd.grad(loss, net.parameters())[0].norm()

        for step in range(3):
            loss = net(x).mean()
            loss.backward(retain_graph=True)
            print(share(loss))
        """,
    "losses of the shared features, one by one": """
        for step in range(3):
            hidden = net(x)
            for loss in [hidden.mean(), head(hidden).mean()]:
                loss.backward(retain_graph=True)
        """,
    "kept and drawn again at random": """
        import random
        memory = []
        for step in range(30):
            hidden = net(x)
            memory.append(hidden)
            old = random.choice(memory)
            F.mse_loss(head(old), head(hidden)).backward(retain_graph=True)
        """,
    "the backward of a function of its own": """
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, value):
                ctx.save_for_backward(value)
                return value * 2

            @staticmethod
            def backward(ctx, grad):
                value, = ctx.saved_tensors
                with torch.enable_grad():
                    again = value.detach().requires_grad_()
                    out = net(again)
                    out.backward(grad, retain_graph=True)
                return again.grad
        """,
    "a function that hands out the same result again": """
        from functools import lru_cache

        @lru_cache(maxsize=None)
        def encode(index):
            return net(x[index])

        for step in range(30):
            head(encode(step % 3)).mean().backward(retain_graph=True)
        """,
    "an attribute that is found by its name": """
        class Losses:
            pass

        kept = Losses()
        for step in range(3):
            hidden = net(x)
            kept.first, kept.second = hidden.mean(), hidden.pow(2).mean()
            kept.first.backward(retain_graph=True)
            for name in ("second", "third"):
                if hasattr(kept, name):
                    head(getattr(kept, name).view(1, 1)).mean().backward()
        """,
    "left on an object of a library": """
        class Part:
            def __init__(self):
                self.net = nn.Linear(4, 4)

            def measure(self, loader):
                for a in loader:
                    self.hidden = self.net(a)
                    self.hidden.mean().backward(retain_graph=True)
        """,
    "a bank that was written to": """
        bank = torch.zeros(90, 1)
        for step in range(10):
            code = net(x)
            bank[step * 9:step * 9 + 9] = code
            F.mse_loss(head(code), bank[:9]).backward(retain_graph=True)
        """,
    "every other turn, two slots": """
        slots = [torch.zeros(9, 1), torch.zeros(9, 1)]
        for step in range(10):
            code = net(x)
            F.mse_loss(head(code), slots[(step + 1) % 2]).backward(retain_graph=True)
            slots[step % 2] = code
        """,
    "a critic that sees the last of several fakes": """
        for step in range(10):
            for _ in range(5):
                fake = net(x)
                head(fake).mean().backward(retain_graph=True)
            if step > 3:
                (-head(fake).mean()).backward()
        """,
    "a dict of losses": """
        for step in range(10):
            hidden = net(x)
            losses = {"mean": hidden.mean(), "size": hidden.pow(2).mean()}
            losses["mean"].backward(retain_graph=True)
            del losses["mean"]
            sum(losses.values()).backward()
        """,
    "a forward hook that keeps activations": """
        kept = {}
        net[0].register_forward_hook(lambda module, inputs, output: kept.update(code=output))
        for step in range(10):
            loss = net(x).mean()
            loss.backward(retain_graph=True)
            kept["code"].pow(2).mean().backward()
        """,
    "an error that is caught": """
        code = None
        for step in range(10):
            try:
                code = net(x[step])
            except IndexError:
                print("the last code again")
            head(code).mean().backward(retain_graph=True)
        """,
    "layers that were added to a list": """
        class Critics(nn.Module):
            def __init__(self):
                super().__init__()
                self.models = nn.ModuleList()
                for i in range(3):
                    self.models.add_module("critic_%d" % i, nn.Linear(1, 1))

            def forward(self, value):
                return sum(m(value).mean() for m in self.models)

        critics = Critics()
        for step in range(3):
            fake = net(x)
            critics(fake).backward(retain_graph=True)
            head(fake).mean().backward()
        """,
}


@pytest.mark.parametrize("name", NOOPS)
def test_the_flag_stays(tmp_path: Path, name: str) -> None:
    assert lines(found(tmp_path, RULE, START, NOOPS[name])) == []


STEP = """\
for _ in range(3):
    loss = F.mse_loss(net(x), y)
    {keeping}
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""


@pytest.mark.parametrize(
    "keeping", ["kept['loss'] = loss", "kept.append(loss)", "kept.loss = loss", "kept().add(loss)"]
)
def test_an_imported_object_may_keep_the_graph(tmp_path: Path, keeping: str) -> None:
    assert found(tmp_path, RULE, START, "from elsewhere import kept", STEP.format(keeping=keeping)) == []


@pytest.mark.parametrize("keeping", ["kept['loss'] = loss.item()", "kept.append(loss.detach())", "kept.show(0)"])
def test_an_imported_object_that_gets_no_graph(tmp_path: Path, keeping: str) -> None:
    assert len(found(tmp_path, RULE, START, "from elsewhere import kept", STEP.format(keeping=keeping))) == 1


def test_an_unseen_model_is_advice(tmp_path: Path) -> None:
    source = """
    def train(model, loader):
        model.train()
        for a in loader:
            loss = model(a).mean()
            loss.backward(retain_graph=True)
    """
    findings = found(tmp_path, RULE, START, source)
    assert [(f.promise, f.likely) for f in findings] == [(Promise.ADVICE, Promise.EXACT)]
    assert not findings[0].fixable(unsafe=True)
    assert "class of the model" in findings[0].message


CHOSEN = """
    import argparse
    from lab import engine

    options = argparse.ArgumentParser()
    options.add_argument("--kind", type=str)
    args = options.parse_args()
    {begin}
    for step, kind in enumerate(args.kinds):
        out = net(x)
        if {first}:
            loss = F.mse_loss(out, y)
        elif {second}:
            loss = F.l1_loss(out, y)
        loss.backward(retain_graph=True)
        opt.step()
"""


@pytest.mark.parametrize(
    ("begin", "first", "second", "surplus"),
    [
        ("pass", "args.kind == 'a'", "args.kind == 'b'", True),
        ("pass", "args.kind in ('a', 'c')", "not args.kind != 'b'", True),
        ("chosen = args.kind", "chosen == 'a'", "chosen == 'b' or chosen == 'c'", True),
        ("pass", "args.kind", "not args.kind", True),
        ("pass", "args.rate > 0", "args.rate < -1.5", True),
        ("pass", "args.kind is None", "args.kind is not None", True),
        ("pass", "hasattr(net, 'scale')", "args.kind and args.rate != 0", True),
        ("wide = len(args.kinds) > 2", "wide", "not wide", True),
        ("wide = len(args.kinds)", "wide == 2", "wide in (3, 4)", True),
        ("more = engine.pick(args)", "more is not None", "more is None", True),
        # the turns may take different ways, or the name was there before
        ("more = engine.pick(args)", "more", "not more", False),
        ("more = engine.pick(args)", "more > 0", "more < 0", False),
        ("pass", "engine.wide", "not engine.wide", False),
        ("pass", "args.kinds[0]", "args.kinds[step]", False),
        ("pass", "args.rate > step", "args.rate < step", False),
        ("pass", "isinstance(kind, str)", "isinstance(kind, int)", False),
        ("todo = args.todo", "todo", "todo.pop()", False),
        ("pass", "kind == 'a'", "kind == 'b'", False),
        ("pass", "args.kind == 'a'", "step % 2", False),
        ("pass", "step % 2", "args.kind == 'a'", False),
        ("pass", "args.kind == 'a'", "kind.name == 'b'", False),
        ("pass", "engine.phase == 'a'", "engine.phase == 'b'", False),
        ("loss = net(x).sum()", "args.kind == 'a'", "args.kind == 'b'", False),
    ],
)
def test_what_a_setting_chooses_is_chosen_in_every_turn(
    tmp_path: Path, begin: str, first: str, second: str, surplus: bool
) -> None:
    findings = found(tmp_path, RULE, START, CHOSEN.format(begin=begin, first=first, second=second))
    assert [f.promise for f in findings] == [Promise.EXACT] * surplus


def test_a_setting_that_changes_chooses_anew(tmp_path: Path) -> None:
    source = """
    import argparse

    class Trainer:
        def __init__(self, args):
            self.kind = args.kind
            self.args = args

        def train(self):
            for step in range(3):
                out = net(x)
                if self.kind == "a":
                    loss = out.pow(2).mean()
                elif self.kind == "b":
                    loss = out.abs().mean()
                loss.backward(retain_graph=True)
                {then}

    Trainer(argparse.ArgumentParser().parse_args()).train()
    """
    assert lines(found(tmp_path, RULE, START, source.format(then="opt.step()"))) != []
    assert found(tmp_path, RULE, START, source.format(then="self.kind = self.args.next")) == []


AGAIN = """
    import argparse

    args = argparse.ArgumentParser().parse_args()

    class Trainer:
        def __init__(self, args):
            self.wide = len(args.kinds) > 2

        def turn(self):
            {turn}

        def train(self):
            flag = args.wide > 2
            for step in range(3):
                if {test}:
                    extra = head(net(x)).mean()
                out = net(x)
                loss = F.mse_loss(out, y)
                try:
                    loss = loss + extra.pow(2).sum()
                except NameError:
                    pass
                loss.backward(retain_graph=True)
                opt.step()
                self.turn()
                {then}

    Trainer(args).train()
"""


@pytest.mark.parametrize(
    ("test", "turn", "then", "surplus"),
    [
        ("args.wide", "pass", "pass", True),
        ("self.wide", "pass", "pass", True),
        ("flag", "pass", "pass", True),
        ("args.wide and self.wide", "self.other = 1", "args.other = 2", True),
        # what decides is written again
        ("self.wide", "self.wide = not self.wide", "pass", False),
        ("self.wide", "setattr(self, input(), 3)", "pass", False),
        ("self.wide", "object.__setattr__(self, 'wide', len(args.kinds))", "pass", False),
        ("args.wide", "pass", "args.wide = args.other", False),
        ("flag", "pass", "flag = not flag", False),
        ("args.wide and self.wide", "self.wide = not self.wide", "pass", False),
        # something else binds the name in between
        ("args.wide", "pass", "extra = out", False),
        ("args.wide", "pass", "if self.wide:\n                    extra = out", False),
    ],
)
def test_what_a_setting_bound_is_bound_anew_in_every_turn(
    tmp_path: Path, test: str, turn: str, then: str, surplus: bool
) -> None:
    findings = found(tmp_path, RULE, START, AGAIN.format(test=test, turn=turn, then=then))
    assert [f.promise for f in findings] == [Promise.EXACT] * surplus


MODEL = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, value):
        return self.layer(value)
"""


@pytest.mark.parametrize(
    ("model", "kept", "promise"),
    [
        ("Net() if fresh else torch.load('last')", "net", Promise.EXACT),
        ("Net() if fresh else torch.load('last', map_location='cpu')", "net", Promise.EXACT),
        # nothing says that whole models lie in files, or whose they are
        ("Net() if fresh else torch.load('last')", "net.state_dict()", Promise.ADVICE),
        ("Net() if fresh else torch.load('last')", "nn.Linear(4, 1)", Promise.ADVICE),
        ("torch.load('last')", "net", Promise.ADVICE),
        ("Net() if fresh else pickle.load(open('last'))", "net", Promise.ADVICE),
    ],
)
def test_a_model_of_a_file(tmp_path: Path, model: str, kept: str, promise: Promise) -> None:
    source = f"""
    import pickle
    from model import Net

    fresh = bool(open("fresh").read())
    net = {model}
    net.train()
    for step in range(3):
        loss = F.mse_loss(net(x), y)
        loss.backward(retain_graph=True)
        torch.save({kept}, "last")
    """
    assert [f.promise for f in found(tmp_path, RULE, START, source, model=MODEL)] == [promise]


def test_a_model_of_a_file_whose_class_keeps_a_graph(tmp_path: Path) -> None:
    """The class that is loaded is the one in the tree, and there it shows what it keeps."""
    keeping = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)
            self.last = None

        def forward(self, value):
            out = self.layer(value) ** 2
            out = out if self.last is None else out * self.last
            self.last = out
            return out
    """
    source = """
    from model import Net

    net = Net() if open("fresh").read() else torch.load("last")
    for step in range(3):
        F.mse_loss(net(x), y).backward(retain_graph=True)
        torch.save(net, "last")
    """
    assert found(tmp_path, RULE, START, source, model=keeping) == []


UNSEEN = """
    class Learner:
        def __init__(self, bank):
            self.net = nn.Linear(4, 1)
            self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
            self.bank = bank
            self.last = None

        def learn(self, inputs, clip):
            for step in range(2):
                out = self.net(inputs)
                loss = {loss}
                loss.backward(retain_graph=True)
                {then}

        def again(self):
            {again}
"""


@pytest.mark.parametrize(
    ("loss", "then", "again", "why"),
    [
        ("(out * clip).mean()", "pass", "pass", "the argument `"),
        ("(out * self.bank.draw()).mean()", "pass", "pass", "the argument `"),
        ("(out - torch.ones(1)).pow(2).mean()", "self.last = out", "pass", "through its object"),
        ("(out - torch.ones(1)).pow(2).mean()", "print(clip)", "pass", ""),
        # walked again, or handed to who may do so
        ("(out * clip).mean()", "out.sum().backward()", "pass", None),
        ("(out * clip).mean()", "clip.append(out)", "pass", None),
        ("out.pow(2).mean()", "self.last = loss", "self.last.backward()", None),
        ("out.pow(2).mean()", "return loss", "pass", None),
    ],
)
def test_what_cannot_be_seen_may_bring_a_graph(
    tmp_path: Path, loss: str, then: str, again: str, why: str | None
) -> None:
    findings = found(tmp_path, RULE, START, UNSEEN.format(loss=loss, then=then, again=again))
    if why is None:
        assert findings == []
        return
    assert [(f.promise, f.likely) for f in findings] == [(Promise.ADVICE, Promise.EXACT)]
    assert why in findings[0].message
    assert not findings[0].fixable(unsafe=True)


def test_a_backward_by_hand_goes_on_where_its_part_ends(tmp_path: Path) -> None:
    """A reversible block computes a part anew and walks it with the gradient that came from behind it."""
    source = """
    def back(value, gradient):
        with torch.enable_grad():
            value.requires_grad = True
            made = net(value)
            made.backward({given}retain_graph=True)
        return value.grad
    """
    assert found(tmp_path, RULE, START, source.format(given="gradient, ")) == []
    summed = source.replace("net(value)", "net(value).sum()").format(given="")
    assert [f.promise for f in found(tmp_path, RULE, START, summed)] == [Promise.ADVICE]


TOTALS = """
    total = 0
    for _ in range(9):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward(retain_graph=True)
        opt.step()
        total += loss
    """


@pytest.mark.parametrize("reader", ["show(total)", "show([total / 9])", "from bench import show\nshow(total)"])
def test_a_total_that_code_gets_that_cannot_be_seen_is_advice(tmp_path: Path, reader: str) -> None:
    # without the flag the total could be walked by nobody, and would be a finding of its own
    findings = found(tmp_path, RULE, START, TOTALS, reader)
    assert [f.promise for f in findings] == [Promise.ADVICE]
    assert "show() does with the graph cannot be seen" in findings[0].message


@pytest.mark.parametrize(
    "reader", ["print(total)", "print(total.item() / 9)", "show(float(total))", "show(total.detach())"]
)
def test_a_total_that_is_only_looked_at_keeps_no_flag(tmp_path: Path, reader: str) -> None:
    assert [f.promise for f in found(tmp_path, RULE, START, TOTALS, reader)] == [Promise.EXACT]


def test_across_files(tmp_path: Path) -> None:
    engine = """\
    import torch

    class Engine:
        def __init__(self, net, opt):
            self.net, self.opt = net, opt

        def step(self, batch):
            loss = self.net(batch).mean()
            loss.backward(retain_graph=True)
            self.opt.step()
            return loss.item()
    """
    script = "from engine import Engine\nengine = Engine(net, opt)\nfor i in range(4):\n    print(engine.step(x))\n"
    findings = found(tmp_path, RULE, START, script, engine=engine)
    assert [(f.path, f.span.line, f.promise) for f in findings] == [("engine.py", 9, Promise.EXACT)]
    assert "loss.backward()\n" in mended(tmp_path, findings, "engine.py")


@pytest.mark.parametrize(
    "again",
    [
        "torch.Tensor(h)",
        "torch.FloatTensor(h)",
        "x.new(h)",
        "torch.round(h)",
        "torch.normal(h, 1.0)",
    ],
)
def test_a_constructor_hands_the_graph_on(tmp_path: Path, again: str) -> None:
    code = f"""\
    h = net(x)
    (h ** 2).mean().backward(retain_graph=True)
    (head({again}) ** 2).mean().backward()
    opt.step()
    """
    assert not found(tmp_path, RULE, START, code)


@pytest.mark.parametrize("copy", ["torch.tensor(h)", "torch.Tensor([h.sum()])", "x.new_tensor(h)"])
def test_a_copy_has_no_graph(tmp_path: Path, copy: str) -> None:
    code = f"""\
    h = net(x)
    (h ** 2).mean().backward(retain_graph=True)
    (head({copy}) ** 2).mean().backward()
    opt.step()
    """
    findings = found(tmp_path, RULE, START, code)
    assert len(lines(findings)) == 1


@pytest.mark.parametrize("name", sorted(SAVES_NOTHING - {"cuda"}))
def test_what_saves_nothing_is_walked_twice_without_the_flag(name: str) -> None:
    like, flat = torch.ones(2, 2), (-1,)
    given: dict[str, tuple[object, ...]] = {
        **dict.fromkeys(("add", "sub", "rsub", "add_", "sub_"), (like,)),
        **dict.fromkeys(("transpose", "permute", "movedim", "swapaxes"), (1, 0)),
        **dict.fromkeys(("view_as", "reshape_as"), (like,)),
        **dict.fromkeys(("expand", "repeat"), (3, 2, 2)),
        **dict.fromkeys(("broadcast_to", "tile"), ((3, 2, 2),)),
        **dict.fromkeys(("unsqueeze", "unsqueeze_", "flip", "roll"), (1,)),
        **dict.fromkeys(("split", "chunk", "tensor_split"), (2,)),
        **dict.fromkeys(("view", "reshape"), flat),
        "to": ("cpu",), "type": (torch.float64,), "type_as": (like.double(),), "expand_as": (torch.ones(3, 2, 2),),
        "narrow": (0, 0, 1), "select": (0, 0), "unfold": (0, 1, 1), "unflatten": (0, (1, 2)),
    }  # fmt: skip
    kind = torch.complex64 if name == "view_as_real" else torch.float32
    value = torch.rand(2, 2, dtype=kind, requires_grad=True) + 0
    if name.endswith(("cat", "stack", "concatenate")):
        made = getattr(torch, name)([value, value])
    else:
        member = getattr(value, name) if hasattr(value, name) else partial(getattr(torch, name), value)
        made = member(*given.get(name, ())) if callable(member) else member
    total = (made[0] if isinstance(made, (list, tuple)) else made).sum().real
    total.backward()
    total.backward()


@pytest.mark.parametrize("of", ["value + 1", "1 - value", "value - value", "-value"])
def test_sums_save_nothing(of: str) -> None:
    total = eval(of, {"value": torch.rand(2, requires_grad=True) + 0}).sum()
    total.backward()
    total.backward()


def test_a_product_with_a_number_saves_it() -> None:
    total = (torch.rand(2, requires_grad=True) * 2).sum()
    total.backward()
    with pytest.raises(RuntimeError, match="second time"):
        total.backward()


@pytest.mark.parametrize(
    "read",
    [
        "import argparse\noptions = argparse.ArgumentParser().parse_args()",
        "import argparse\noptions, rest = argparse.ArgumentParser().parse_known_args()",
        "import optparse\noptions, rest = optparse.OptionParser().parse_args()",
        "import optparse\noptions = optparse.OptionParser().parse_args()[0]",
        "import configargparse\noptions = configargparse.ArgumentParser().parse_args()",
    ],
)
def test_a_command_line_holds_no_graph(tmp_path: Path, read: str) -> None:
    loop = (
        "for step in range(3):\n    loss = F.mse_loss(net(x), y) * options.weight\n"
        "    loss.backward(retain_graph=True)\n    opt.step()\n"
    )
    assert [f.promise for f in found(tmp_path, RULE, START, f"{read}\n{loop}")] == [Promise.EXACT]


@pytest.mark.parametrize(
    "read",
    [
        "from settings import ArgumentParser\noptions = ArgumentParser().parse_args()",
        "import heads\noptions = heads.OptionParser().parse_args()",
        "import argparse\noptions = argparse.ArgumentParser().parse_args()\noptions.weight = head(net(x)).mean()",
    ],
)
def test_what_only_looks_like_a_command_line_may(tmp_path: Path, read: str) -> None:
    loop = (
        "for step in range(3):\n    loss = F.mse_loss(net(x), y) * options.weight\n"
        "    loss.backward(retain_graph=True)\n    opt.step()\n"
    )
    assert [f.promise for f in found(tmp_path, RULE, START, f"{read}\n{loop}") if f.promise is Promise.EXACT] == []


def test_a_step_of_their_own_that_calls_a_walk_needs_the_graph(tmp_path: Path) -> None:
    source = """
    def norm(loss):
        return torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)

    class Stepping(torch.optim.SGD):
        def step(self, closure=None):
            norm(loss)
            return super().step(closure)

    own = Stepping(net.parameters(), lr=0.1)
    for a in torch.randn(3, 4, 4):
        loss = net(a).mean()
        own.zero_grad()
        loss.backward(retain_graph=True)
        own.step()
    """
    (finding,) = found(tmp_path, RULE, START, source)
    # the second walk is the last one, so that its own flag is surplus
    assert "autograd.grad" in finding.message


#: A generator hands on what there is when it is asked.
_ASKED = """\
state = {{"h": torch.zeros(9, 1)}}
batches = [torch.randn(9, 4)]


{source}


for step in range(3):
    state["h"] = net(x)
    first = head(next(source)).mean()
    second = state["h"].exp().mean()
    first.backward(retain_graph=True)
    {second}
    opt.step()
"""
_SOURCES = {
    "a dict": "def going_on():\n    while True:\n        yield state['h']\n\n\nsource = going_on()",
    "its own variable": "def going_on(kept):\n    own = kept\n    while True:\n        yield own['h']\n\n\n"
    "source = going_on(state)",
    "an expression": "source = (state['h'] for _ in range(99))",
    "a method": "class Kept:\n    def all(self):\n        while True:\n            yield state['h']\n\n\n"
    "source = Kept().all()",
    "another generator": "def inner():\n    while True:\n        yield state['h']\n\n\ndef going_on():\n"
    "    yield from inner()\n\n\nsource = going_on()",
    "a method that it calls": "class Kept:\n    def now(self):\n        return state['h']\n\n    def all(self):\n"
    "        while True:\n            yield self.now()\n\n\nsource = Kept().all()",
    "a module that it calls": "class Kept(nn.Module):\n    def forward(self, x):\n        return state['h'] + x\n\n\n"
    "kept = Kept()\n\n\ndef going_on():\n    while True:\n        yield kept(batches[0])\n\n\nsource = going_on()",
    "a function in a dict": "table = {'now': lambda: state['h']}\n\n\ndef going_on():\n    while True:\n"
    "        yield table['now']()\n\n\nsource = going_on()",
}


@pytest.mark.parametrize("source", _SOURCES.values(), ids=_SOURCES)
def test_what_a_generator_hands_on_later_keeps_the_flag(tmp_path: Path, source: str) -> None:
    assert found(tmp_path, RULE, START, _ASKED.format(source=source, second="second.backward()")) == []


@pytest.mark.parametrize(
    "source", ["def going_on():\n    while True:\n        yield from batches\n\n\nsource = going_on()"]
)
def test_a_generator_of_data_keeps_no_flag(tmp_path: Path, source: str) -> None:
    script = _ASKED.format(source=source, second="").replace("head(next(source))", "net(next(source))")
    assert len(found(tmp_path, RULE, START, script)) == 1


#: A loop asks a generator again in each turn.
_GONE_THROUGH = """\
state = {{"h": torch.zeros(9, 1)}}


class Kept:
    def __init__(self):
        self.last = None

    def all(self):
        for _ in range(9):
            yield {given}


kept = Kept()
for {target} in {through}:
    out = (head(x) + given).tanh()
    loss = out.mean()
    state["h"] = kept.last = out
    loss.backward(retain_graph=True)
    opt.zero_grad()
"""


@pytest.mark.parametrize(
    ("target", "through"),
    [
        ("given", "kept.all()"),
        ("_, given", "enumerate(kept.all())"),
        ("_, given", "zip(range(9), kept.all())"),
        ("given", "(one for one in kept.all())"),
    ],
)
def test_what_a_loop_gets_of_a_generator_in_later_turns_keeps_the_flag(
    tmp_path: Path, target: str, through: str
) -> None:
    script = _GONE_THROUGH.format(target=target, through=through, given="state['h']")
    assert found(tmp_path, RULE, START, script) == []


@pytest.mark.parametrize(("target", "through"), [("given", "kept.all()"), ("_, given", "enumerate(kept.all())")])
def test_a_generator_of_an_object_that_keeps_a_graph_may_hand_out_data(
    tmp_path: Path, target: str, through: str
) -> None:
    script = _GONE_THROUGH.format(target=target, through=through, given="torch.randn(9, 1)")
    assert len(found(tmp_path, RULE, START, script)) == 1
