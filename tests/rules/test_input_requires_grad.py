"""Data stops asking for gradients where nobody reads them, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import added, found, lines, mended

RULE = "input-requires-grad"

START = """import contextlib
\
import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd import Variable

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(9, 4), torch.randn(9, 1)), 3)


def learn(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

HITS = {
    "what parameters learn from keeps its gradient": (
        """
        for x, y in data:
            x.requires_grad_()
            out = net(x)
            out.retain_grad()
            learn(F.mse_loss(out, y))
            print(out.grad.abs().mean())
        """,
        [],
    ),
    "another tensor may be refused": (
        """
        for x, y in data:
            x.requires_grad_()
            try:
                net.weight[0] = y[0, 0]
            except RuntimeError:
                print("not this one")
            learn(F.mse_loss(net(x), y))
        """,
        [],
    ),
    "within brackets over two lines": (
        """
        for x, y in data:
            out = net((x
                       + 1).requires_grad_())
            learn(F.mse_loss(out, y))
        """,
        ["+ 1))"],
    ),
    "a graph that only it brings, made in each step": (
        """
        for x, y in data:
            gain = F.softplus(torch.ones(1, requires_grad=True))
            try:
                learn(F.mse_loss(net(x) * gain, y))
            except RuntimeError:
                pass
        """,
        ["gain = F.softplus(torch.ones(1))"],
    ),
    "Variable": (
        """
        for x, y in data:
            x = Variable(x, requires_grad=True)
            learn(F.mse_loss(net(x), Variable(y)))
        """,
        ["x = Variable(x)"],
    ),
    "a statement": (
        """
        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(net(x), y))
        """,
        [],
    ),
    "losses of several outputs, each at its place": (
        """
        for x, y in data:
            x.requires_grad_()
            outs = [net(x * i) for i in range(len(y))]
            losses = [0] * len(outs)
            for i in range(0, len(outs)):
                losses[i] = F.mse_loss(outs[i], y)
            learn(0.5 * sum(losses[:-1]) + losses[-1])
        """,
        [],
    ),
    "an assignment": (
        """
        for x, y in data:
            x = x.float()
            x.requires_grad = True
            learn(F.mse_loss(net(x), y))
        """,
        [],
    ),
    "within an expression": (
        """
        for x, y in data:
            out = net(x.float().requires_grad_(True))
            learn(F.mse_loss(out, y))
        """,
        ["out = net(x.float())"],
    ),
    "a sum in parentheses": (
        """
        for x, y in data:
            noisy = (x + 0.1 * torch.randn_like(x)).requires_grad_() * 2
            learn(F.mse_loss(net(noisy), y))
        """,
        ["noisy = (x + 0.1 * torch.randn_like(x)) * 2"],
    ),
    "an initial state": (
        """
        cell = nn.GRUCell(4, 8)
        head = nn.Linear(8, 1)
        opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
        for x, y in data:
            h = torch.zeros(3, 8, requires_grad=True)
            for t in range(5):
                h = cell(x, h)
            learn(F.mse_loss(head(h), y))
        """,
        ["h = torch.zeros(3, 8)"],
    ),
    "a target, made once": (
        """
        ones = torch.ones(3, 1, requires_grad=True)
        for x, y in data:
            learn(F.mse_loss(net(x), ones))
        """,
        ["ones = torch.ones(3, 1)"],
    ),
    "a fixed batch, made once": (
        """
        x = Variable(torch.from_numpy(numpy_data), requires_grad=True)
        for step in range(9):
            learn(net(x).pow(2).mean())
        """,
        ["x = Variable(torch.from_numpy(numpy_data))"],
    ),
    "a buffer": (
        """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 1)

            def forward(self, x):
                scale = torch.ones(1, 4, requires_grad=True)
                return self.body(x * scale)

        scaled = Scaled()
        opt = torch.optim.SGD(scaled.parameters(), lr=0.1)
        for x, y in data:
            learn(F.mse_loss(scaled(x), y))
        """,
        ["scale = torch.ones(1, 4)"],
    ),
    "only evaluated": (
        """
        net.eval()
        with torch.no_grad():
            for x, y in data:
                x = Variable(x, requires_grad=True)
                print((net(x) - y).abs().mean().item())
        """,
        ["x = Variable(x)"],
    ),
    "a checkpoint that is not reentrant": (
        """
        from torch.utils.checkpoint import checkpoint

        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(checkpoint(net, x, use_reentrant=False), y))
        """,
        [],
    ),
    "beside an attack that makes its own leaf": (
        """
        def attack(x, y):
            adv = Variable(x.data, requires_grad=True)
            F.mse_loss(net(adv), y).backward()
            return x.data + 0.1 * adv.grad.sign()

        for x, y in data:
            x = Variable(x, requires_grad=True)
            bad = attack(x, y)
            learn(F.mse_loss(net(bad), y))
        """,
        ["x = Variable(x)"],
    ),
    "beside an optimizer of what cannot be seen, made before": (
        """
        import registry

        opt = torch.optim.SGD(registry.parameters_of(net), lr=0.1)
        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(net(x), y))
        """,
        [],
    ),
    "of batches that are kept in a list": (
        """
        kept = [(torch.randn(3, 4), torch.randn(3, 1)) for _ in range(4)]
        for x, y in kept:
            x.requires_grad_()
            learn(F.mse_loss(net(x), y))
        """,
        [],
    ),
    "of another name, too": (
        """
        for x, y in data:
            image = x
            image.requires_grad_()
            learn(F.mse_loss(net(x), y))
        """,
        [],
    ),
    "asked by a helper": (
        """
        def ready(batch):
            batch.requires_grad = True
            return batch.float()

        for x, y in data:
            learn(F.mse_loss(net(ready(x * 2)), y))
        """,
        [],
    ),
    "beside gradients of parameters": (
        """
        for x, y in data:
            x.requires_grad_()
            loss = F.mse_loss(net(x), y)
            learn(loss)
            print(sum(p.grad.norm() for p in net.parameters()))
        """,
        [],
    ),
}


@pytest.mark.parametrize("name", HITS)
def test_it_is_dropped(tmp_path: Path, name: str) -> None:
    body, new = HITS[name]
    findings = found(tmp_path, RULE, START, body)
    assert [f.promise for f in findings] == [Promise.EXACT]
    before = (tmp_path / "train.py").read_text()
    text = mended(tmp_path, findings)
    assert added(before, text) == new
    gone = len(before.splitlines()) - len(text.splitlines())
    assert gone == (0 if new else 1)


NOOPS = {
    "what is computed of it keeps its gradient": """
        for x, y in data:
            x.requires_grad_()
            wide = x * 2
            wide.retain_grad()
            learn(F.mse_loss(net(wide), y))
            print(wide.grad.abs().mean())
        """,
    "a hook of what is computed of it": """
        for x, y in data:
            x.requires_grad_()
            wide = x * 2
            wide.register_hook(print)
            learn(F.mse_loss(net(wide), y))
        """,
    "a change in place that is refused": """
        for x, y in data:
            x = torch.zeros(3, 4, requires_grad=True)
            try:
                x += 1
            except RuntimeError:
                print("not this one")
            learn(F.mse_loss(net(x), y))
        """,
    "an element that is refused": """
        for x, y in data:
            x = torch.zeros(3, 4, requires_grad=True)
            try:
                x[0] = 1
            except RuntimeError:
                print("not this one")
            learn(F.mse_loss(net(x), y))
        """,
    "a view that is refused": """
        import contextlib
        for x, y in data:
            x = torch.zeros(3, 4, requires_grad=True)
            with contextlib.suppress(RuntimeError):
                x.view(-1).add_(1)
            learn(F.mse_loss(net(x), y))
        """,
    "an array that is refused": """
        for x, y in data:
            x = torch.zeros(3, 4, requires_grad=True)
            try:
                print(x.numpy())
            except RuntimeError:
                print("not this one")
            learn(F.mse_loss(net(x), y))
        """,
    "a copy that is refused": """
        import copy
        for x, y in data:
            x = torch.zeros(3, 4, requires_grad=True)
            wide = x * 2
            try:
                print(copy.deepcopy(wide))
            except RuntimeError:
                print("not this one")
            learn(F.mse_loss(net(wide), y))
        """,
    "a backward that data changed in place refuses": """
        for x, y in data:
            x = torch.zeros(3, 4, requires_grad=True)
            scale = torch.ones(3, 4)
            out = net(x * scale)
            scale.add_(1)
            try:
                learn(F.mse_loss(out, y))
            except RuntimeError:
                print("not this one")
        """,
    "a list of targets": """
        for x, y in data:
            z = torch.zeros(3, 4)
            x.requires_grad = z.requires_grad = True
            learn(F.mse_loss(net(x + z), y))
        """,
    "it asks where a test says so": """
        for x, y in data:
            x.requires_grad = bool(len(x))
            learn(F.mse_loss(net(x.requires_grad_(len(x) > 2)), y))
        """,
    "its gradient is read": """
        for x, y in data:
            x.requires_grad_()
            F.mse_loss(net(x), y).backward()
            print(x.grad.abs().mean())
        """,
    "read through another name": """
        for x, y in data:
            image = x
            x.requires_grad_()
            F.mse_loss(net(x), y).backward()
            print(image.grad.abs().mean())
        """,
    "autograd.grad": """
        for x, y in data:
            x = Variable(x, requires_grad=True)
            slope = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
            learn(slope.pow(2).mean())
        """,
    "autograd.grad in a callee": """
        class Energy(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 1)

            def forward(self, x):
                return torch.autograd.grad(self.body(x).tanh().sum(), x, create_graph=True)[0]

        field = Energy()
        opt = torch.optim.SGD(field.parameters(), lr=0.1)
        for x, y in data:
            x = torch.tensor(x, requires_grad=True)
            learn(field(x).pow(2).mean())
        """,
    "optimised": """
        code = torch.zeros(3, 4, requires_grad=True)
        solver = torch.optim.Adam([code])
        for step in range(9):
            solver.zero_grad()
            net(code).pow(2).mean().backward()
            solver.step()
        """,
    "made by a function for others to learn": """
        class Factors:
            def __init__(self, parts):
                self.parts = parts

            def norm(self):
                return sum(p.norm() for p in self.parts)

        def factors(rank):
            left = torch.randn(4, rank, requires_grad=True)
            right = torch.randn(rank, 4, requires_grad=True)
            return Factors([left, right])

        made = factors(3)
        print(made, made.norm())
        """,
    "in a parameter group": """
        scale = torch.ones(1, requires_grad=True)
        solver = torch.optim.Adam([{"params": net.parameters()}, {"params": [scale], "lr": 0.5}])
        for x, y in data:
            solver.zero_grad()
            (net(x) * scale).pow(2).mean().backward()
            solver.step()
        """,
    "a hook": """
        for x, y in data:
            x.requires_grad_()
            x.register_hook(print)
            learn(F.mse_loss(net(x), y))
        """,
    "a backward hook of the model": """
        net.register_full_backward_hook(lambda module, before, after: print(before[0]))
        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(net(x), y))
        """,
    "a reentrant checkpoint": """
        from torch.utils.checkpoint import checkpoint

        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(checkpoint(net, x), y))
        """,
    "checkpoint_sequential": """
        from torch.utils.checkpoint import checkpoint_sequential

        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(checkpoint_sequential(net, 2, x), y))
        """,
    "an autograd.Function": """
        class Reversible(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, body):
                ctx.body = body
                return body(x)

            @staticmethod
            def backward(ctx, g):
                return g, None

        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(Reversible.apply(x, net), y))
        """,
    "a frozen model": """
        for p in net.parameters():
            p.requires_grad = False
        for x, y in data:
            x.requires_grad_()
            net(x).sum().backward()
        """,
    "an accumulator of a loop that may run no turn": """
        for x, y in data:
            loss = torch.tensor(0.0, requires_grad=True)
            for one in x[y.squeeze() > 0]:
                loss = loss + net(one).pow(2).sum()
            learn(loss)
        """,
    "the same, divided": """
        for x, y in data:
            total = torch.zeros(1, requires_grad=True)
            for one in x[y.squeeze() > 0]:
                total = total + net(one).pow(2).sum()
            learn(total / 3)
        """,
    "an accumulator under a condition": """
        for x, y in data:
            loss = torch.zeros(1, requires_grad=True)
            if y.sum() > 0:
                loss = loss + net(x).mean()
            learn(loss)
        """,
    "a list of terms": """
        for x, y in data:
            terms = [torch.zeros(1, requires_grad=True)]
            for one in x[y.squeeze() > 0]:
                terms.append(net(one).pow(2))
            learn(sum(terms))
        """,
    "a model that cannot be seen": """
        from elsewhere import Field
        field = Field()
        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(field(x), y))
        """,
    "a residual that cannot be seen": """
        from physics import Residual
        residual = Residual()
        for x, y in data:
            x.requires_grad_()
            learn(residual(net(x), x).mean())
        """,
    "a residual loss that may differentiate the network": """
        from physics import ResidualLoss
        residual = ResidualLoss()
        for x, y in data:
            x.requires_grad_()
            learn(residual(net(x), x))
        """,
    "an argument that an unseen caller may read": """
        def saliency(x):
            x.requires_grad_()
            net(x).sum().backward()
        """,
    "returned to an unseen caller": """
        def batch(x):
            return Variable(x.float(), requires_grad=True)
        """,
    "a flag that is no literal": """
        import sys
        wanted = len(sys.argv) > 1
        for x, y in data:
            x = Variable(x, requires_grad=wanted)
            learn(F.mse_loss(net(x), y))
        """,
    "False": """
        for x, y in data:
            x = Variable(x, requires_grad=False)
            x.requires_grad_(False)
            learn(F.mse_loss(net(x), y))
        """,
    "attached already": """
        embed = nn.Linear(4, 4)
        for x, y in data:
            h = embed(x)
            h.requires_grad_()
            learn(F.mse_loss(net(h), y))
        """,
    "a variable that holds an adversarial example too": """
        for x, y in data:
            adv = Variable(x.data, requires_grad=True)
            for _ in range(3):
                F.mse_loss(net(adv), y).backward()
                step = adv.grad.sign()
                adv = Variable(adv.data + step, requires_grad=True)
                adv = Variable(torch.clamp(adv, 0, 1), requires_grad=True)
        """,
    "the graph is drawn": """
        def draw(out):
            stack = [out.grad_fn]
            while stack:
                stack += [f for f, _ in stack.pop().next_functions]

        x = torch.randn(3, 4)
        x.requires_grad_()
        draw(net(x))
        """,
    "the program asks": """
        class Noisy(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 1)

            def forward(self, x):
                return self.body(x + torch.randn_like(x)) if x.requires_grad else self.body(x)

        noisy = Noisy()
        opt = torch.optim.SGD(noisy.parameters(), lr=0.1)
        for x, y in data:
            x.requires_grad_()
            learn(F.mse_loss(noisy(x), y))
        """,
    "hand-written descent": """
        w = Variable(torch.randn(4, 1), requires_grad=True)
        for x, y in data:
            loss = (x.mm(w) - y).pow(2).sum()
            loss.backward()
            w.data -= 0.01 * w.grad.data
            w.grad.data.zero_()
        """,
    "jacobian": """
        for x, y in data:
            x.requires_grad_()
            print(torch.autograd.functional.jacobian(net, x).shape)
        """,
    "parameters that are thawed, of modules in a list": """
        def thaw(modules):
            if isinstance(modules, nn.ModuleDict):
                modules = modules.values()
            for module in list(modules):
                for p in module.parameters(recurse=False):
                    p.requires_grad = True
        """,
    "a parameter of a layer that was frozen to be written": """
        layer = nn.Linear(4, 4).cuda()
        layer.weight.requires_grad = False
        layer.weight.copy_(torch.eye(4))
        layer.weight.requires_grad = True
        opt.add_param_group({"params": layer.parameters()})
        for x, y in data:
            learn(F.mse_loss(net(layer(x)), y))
        """,
    "the same in a method call": """
        def grown(old):
            layer = nn.Linear(4, 4, bias=False)
            layer.weight.requires_grad_(False)
            layer.weight[:2] = old
            layer.weight.requires_grad_(True)
            return layer
        """,
    "modules of a model that cannot be seen": """
        def freeze(model, exceptions=()):
            for module in model.modules():
                if isinstance(module, exceptions):
                    module.requires_grad_(True)
                else:
                    module.requires_grad_(False)
            return model
        """,
    "asked where checkpoints are in use": """
        class Biased(nn.Module):
            def __init__(self, checkpointing):
                super().__init__()
                self.checkpointing = checkpointing
                self.body = nn.Linear(4, 4)

            def forward(self, x):
                bias = torch.zeros(4)
                if self.checkpointing and self.training:
                    bias.requires_grad = True
                return self.body(x) + bias

        biased = Biased(True)
        for x, y in data:
            learn(F.mse_loss(net(biased(x)), y))
        """,
    "tensors of a caller, for a while": """
        from elsewhere import trace

        def traced(body, tensors):
            asked = [t for t in tensors if not t.requires_grad]
            try:
                for t in asked:
                    t.requires_grad_(True)
                return trace(body, tensors)
            finally:
                for t in asked:
                    t.requires_grad_(False)
        """,
    "codes in a list, asked one after the other": """
        codes = []
        for rows in (3, 6):
            codes.append(torch.zeros(rows, 4).normal_())
        for code in codes:
            code.requires_grad = True
        solver = torch.optim.Adam([*net.parameters()] + codes)
        for step in range(9):
            solver.zero_grad()
            sum(net(code).pow(2).mean() for code in codes).backward()
            solver.step()
        """,
    "more codes than turns that are followed": """
        codes = [torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)]
        for i, code in enumerate(codes):
            code.requires_grad_()
        solver = torch.optim.Adam(codes)
        for step in range(9):
            solver.zero_grad()
            net(codes[0] + codes[3]).pow(2).mean().backward()
            solver.step()
        """,
    "codes in a dict": """
        codes = {"pose": torch.randn(3, 4), "light": torch.randn(3, 4)}
        for name, code in codes.items():
            code.requires_grad = True
        solver = torch.optim.Adam(list(codes.values()))
        for step in range(9):
            solver.zero_grad()
            net(codes["pose"] * codes["light"]).mean().backward()
            solver.step()
        """,
    "batches that were kept, asked later": """
        kept = []
        for x, y in data:
            kept.append(x.detach())
        for x in kept:
            x.requires_grad_()
        solver = torch.optim.Adam(kept)
        for step in range(9):
            solver.zero_grad()
            net(kept[0]).pow(2).mean().backward()
            solver.step()
        """,
    "two names of one tensor": """
        code = torch.randn(3, 4)
        tuned = code
        tuned.requires_grad = True
        solver = torch.optim.Adam([code])
        for step in range(9):
            solver.zero_grad()
            net(code).pow(2).mean().backward()
            solver.step()
        """,
    "one of two tensors": """
        import sys

        pose, light = torch.randn(3, 4), torch.randn(3, 4)
        tuned = pose if len(sys.argv) > 1 else light
        tuned.requires_grad_()
        solver = torch.optim.Adam([pose, light])
        for step in range(9):
            solver.zero_grad()
            net(pose + light).pow(2).mean().backward()
            solver.step()
        """,
    "asked by a helper": """
        def free(*tensors):
            for tensor in tensors:
                tensor.requires_grad = True

        pose, light, shape = torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)
        free(pose, light, shape)
        solver = torch.optim.Adam([pose, light, shape])
        for step in range(9):
            solver.zero_grad()
            net(pose + light + shape).pow(2).mean().backward()
            solver.step()
        """,
    "an optimizer of all that an object holds": """
        class Scene:
            def __init__(self):
                self.pose = torch.randn(3, 4)
                self.pose.requires_grad_()

        scene = Scene()
        solver = torch.optim.Adam([v for v in vars(scene).values() if isinstance(v, torch.Tensor)])
        for step in range(9):
            solver.zero_grad()
            net(scene.pose).pow(2).mean().backward()
            solver.step()
        """,
    "a parameter group that cannot be seen": """
        import registry

        pose = torch.randn(3, 4)
        pose.requires_grad = True
        registry.known.append(pose)
        opt.add_param_group(registry.group())
        for x, y in data:
            learn(F.mse_loss(net(x + pose), y))
        """,
    "of a class that others make objects of": """
        class Scene:
            def __init__(self):
                self.codes = [torch.randn(3, 4) for _ in range(3)]
                self.pose = torch.randn(3, 4)
                for tensor in (*self.codes, self.pose):
                    tensor.requires_grad = True
        """,
    "on an object that goes to code that cannot be seen": """
        from elsewhere import tune

        class Scene:
            def __init__(self):
                self.pose = torch.randn(3, 4)

        scene = Scene()
        pose = scene.pose
        pose.requires_grad = True
        for step in range(9):
            net(scene.pose).pow(2).mean().backward()
            tune(scene)
        """,
    "on an object, asked by another name": """
        class Scene:
            def __init__(self):
                self.pose = torch.randn(3, 4)
                self.light = torch.randn(3, 4)
                for tensor in (self.pose, self.light):
                    tensor.requires_grad = True

            def tuned(self):
                return [self.pose, self.light]

        scene = Scene()
        solver = torch.optim.Adam(scene.tuned())
        for step in range(9):
            solver.zero_grad()
            net(scene.pose + scene.light).pow(2).mean().backward()
            solver.step()
        """,
    "an element of a caller's batch": """
        def step(batch):
            batch[0].requires_grad_()
            learn(F.mse_loss(net(batch[0]), batch[1]))
        """,
    "one of several, returned to an unseen caller": """
        from elsewhere import view

        def alias(base, like, wanted):
            if like is None:
                out = base.detach()
            else:
                out = view(base, like)
            if wanted:
                out.requires_grad_(True)
            return out
        """,
    "module parameters": """
        for p in net.parameters():
            p.requires_grad = True
        for x, y in data:
            learn(F.mse_loss(net(x), y))
        """,
    "a graph that only it brings, used again in a way that raises and is caught": """
        gain = F.softplus(torch.ones(1, requires_grad=True))
        for x, y in data:
            try:
                learn(F.mse_loss(net(x) * gain, y))
            except RuntimeError:
                pass
        """,
    "a backward that only its gradient lets raise, behind a step": """
        last = None
        for x, y in data:
            x.requires_grad_()
            out = net(x)
            try:
                if last is not None:
                    F.mse_loss(out, last).backward(retain_graph=True)
                    opt.step()
                last = out
            except RuntimeError:
                pass
        """,
    "the same in a function": """
        def learn_from(out, last):
            if last is not None:
                F.mse_loss(out, last).backward(retain_graph=True)
                opt.step()

        last = None
        for x, y in data:
            x.requires_grad_()
            out = net(x)
            with contextlib.suppress(RuntimeError):
                learn_from(out, last)
            last = out
        """,
}


LEARNING = """
def learn_from(out, last):
    if last is not None:
        F.mse_loss(out, last).backward(retain_graph=True)
        opt.step()

class Tried:
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): return {returned}

@contextlib.contextmanager
def tried():
    try:
        yield
    except {caught}:
        pass

last = None
for x, y in data:
    x.requires_grad_()
    out = net(x)
    with {context}:
        learn_from(out, last)
    last = out
"""
CATCHING = [
    # a context, what its __exit__ returns or its generator catches, and whether it ends the error of a backward
    ("contextlib.suppress(RuntimeError)", "None", True),
    ("contextlib.suppress(OSError, Exception)", "None", True),
    ("contextlib.suppress(OSError)", "None", False),
    ("contextlib.nullcontext()", "None", False),
    ("Tried()", "True", True),
    ("Tried()", "kind is RuntimeError", True),
    ("Tried()", "False", False),
    ("Tried()", "None", False),
    ("tried()", "RuntimeError", True),
    ("tried()", "OSError", False),
]


@pytest.mark.parametrize(("context", "end", "caught"), CATCHING)
def test_errors_that_a_context_ends(tmp_path: Path, context: str, end: str, caught: bool) -> None:
    error = end if end.endswith("Error") and " " not in end else "OSError"
    text = LEARNING.format(context=context, returned=end, caught=error)
    assert bool(lines(found(tmp_path, RULE, START, text))) is not caught


@pytest.mark.parametrize("name", NOOPS)
def test_it_stays(tmp_path: Path, name: str) -> None:
    assert lines(found(tmp_path, RULE, START, NOOPS[name])) == []


LASTING = {
    "written out": """
        weight = torch.tensor([1.0, -2.0], requires_grad=True)
        for x, y in data:
            learn((net(x) * weight).pow(2).mean())
        """,
    "moved before it asks": """
        weight = torch.randn(1).to("cpu").requires_grad_()
        for x, y in data:
            learn((net(x) * weight - y).pow(2).mean())
        """,
    "on a module": """
        class Gated(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 1)
                self.gate = torch.zeros(4, requires_grad=True)

            def forward(self, x):
                return self.body(x * self.gate)

        gated = Gated()
        opt = torch.optim.SGD(gated.parameters(), lr=0.1)
        for x, y in data:
            learn(F.mse_loss(gated(x), y))
        """,
    "a random weight in the script": """
        weight = torch.randn(1, requires_grad=True)
        for x, y in data:
            learn((net(x) * weight - y).pow(2).mean())
        """,
}


@pytest.mark.parametrize("name", LASTING)
def test_what_looks_like_a_parameter_is_advice(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, START, LASTING[name])
    assert [(f.promise, f.edits) for f in findings] == [(Promise.ADVICE, ())]
    assert "looks like a parameter" in findings[0].message


def test_what_another_file_reads_stays(tmp_path: Path) -> None:
    module = """
        import torch
        code = torch.zeros(3, 4, requires_grad=True)
        def use(net):
            return net(code).mean()
    """
    reader = "import store\nstore.use(net).backward()\nprint(store.code.grad)\n"
    other = "import store\nlearn(store.use(net))\n"
    assert lines(found(tmp_path, RULE, START, other, store=module)) == [(3, "exact")]
    assert lines(found(tmp_path, RULE, START, reader, store=module)) == []
