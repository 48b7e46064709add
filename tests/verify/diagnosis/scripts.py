"""Scripts with one fault each, or with none. A comment names the roles that its line has in the diagnosis."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple


class Script(NamedTuple):
    """A program, the kinds of its faults, and what the first one names: a carrier, or the parameters."""

    text: str
    kinds: tuple[str, ...] = ()
    name: str = ""


HEAD = """\
import collections
import torch
from torch import nn
torch.manual_seed(0)
"""

SCRIPTS: dict[str, Script] = {}


def script(name: str, text: str, kinds: str = "", called: str = "") -> None:
    """Add a script; ``kinds`` are words."""
    SCRIPTS[name] = Script(HEAD + dedent(text).lstrip(), tuple(kinds.split()), called)


script(
    "a state on self, of a module that owns it",
    """
    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head, self.state = nn.LSTM(4, 8), nn.Linear(8, 1), None
        def forward(self, x):
            out, self.state = self.rnn(x, self.state)  # cause consumer
            return self.head(out)
    model = Forecaster()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(4):
        loss = model(torch.randn(3, 2, 4)).mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
    """,
    "second-backward",
    "self.state[1]",
)
script(
    "a loss carried into the next batch",
    """
    net = nn.Linear(4, 1)
    def train():
        smooth = 0.0
        for step in range(4):
            loss = net(torch.randn(2, 4)).square().mean()
            smooth = 0.9 * smooth + 0.1 * loss  # cause consumer
            smooth.backward()  # freed_by site
    train()
    """,
    "second-backward",
    "smooth",
)
script(
    "two heads on one trunk",
    """
    trunk, left, right = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    for step in range(3):
        features = trunk(torch.randn(2, 4)).tanh()  # cause
        first = left(features).mean()
        second = right(features).mean()  # consumer
        first.backward()  # freed_by
        second.backward()  # site
    """,
    "second-backward",
    "features",
)
script(
    "one loss twice",
    """
    net = nn.Linear(4, 1)
    loss = net(torch.randn(2, 4)).square().mean()  # cause
    loss.backward()  # freed_by
    loss.backward()  # site
    """,
    "second-backward",
)
script(
    "a matrix of trained weights, made once",
    """
    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.proj, self.cache = nn.Embedding(5, 4), nn.Linear(4, 4), {}
        def forward(self, nodes):
            if "table" not in self.cache:
                self.cache["table"] = self.proj(self.emb.weight)  # cause
            return self.cache["table"][nodes].sum()  # consumer
    model = Graph()
    for step in range(3):
        loss = model(torch.tensor([1, 2]))
        loss.backward()  # freed_by site
    """,
    "second-backward",
    "self.cache['table']",
)
script(
    "features in a deque of an object in a list",
    """
    class Memory:
        def __init__(self):
            self.last = collections.deque(maxlen=4)
    net, head, memories = nn.Linear(4, 4), nn.Linear(4, 1), [Memory()]
    for step in range(4):
        memories[0].last.append(net(torch.randn(2, 4)).relu())  # cause
        loss = head(torch.cat(list(memories[0].last))).mean()  # consumer
        loss.backward()  # freed_by site
    """,
    "second-backward",
    "memories[0].last[0]",
)
script(
    "a masked activation",
    """
    weight = torch.randn(4, 4, requires_grad=True)
    def forward(x):
        gate = torch.sigmoid(x @ weight)  # saved_by
        gate[:, 0] = 0  # cause
        return gate
    out = forward(torch.randn(4, 4))
    out.sum().backward()  # site
    """,
    "changed-in-place",
    "out",
)
script(
    "a discriminator that steps before the generator's backward",
    """
    gen, dis = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    for_gen = torch.optim.Adam(gen.parameters())
    for_dis = torch.optim.Adam(dis.parameters())
    for step in range(2):
        score = dis(gen(torch.randn(2, 4)))  # saved_by
        for_dis.zero_grad()
        score.mean().backward(retain_graph=True)
        for_dis.step()  # cause
        for_gen.zero_grad()
        (-score.mean()).backward()  # site
        for_gen.step()
    """,
    "changed-in-place",
    "dis[2].weight",
)
script(
    "a meter of an object in a dictionary",
    """
    class Meter:
        def __init__(self):
            self.history = []
    class Trainer:
        def __init__(self):
            self.net = nn.Linear(4, 1)
            self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)
            self.meters = {"loss": Meter()}
        def step(self):
            loss = self.net(torch.randn(2, 4)).square().mean()  # cause
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.meters["loss"].history.append(loss)
    trainer = Trainer()
    for step in range(30):
        trainer.step()
    """,
    "growing-graph",
    "self.meters['loss'].history[*]",
)
script(
    "a state that retain_graph drags along",
    """
    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head, self.state = nn.GRU(4, 8), nn.Linear(8, 1), None
        def forward(self, x):
            out, self.state = self.rnn(x, self.state)  # cause
            return self.head(out)
    model = Forecaster()
    for step in range(30):
        loss = model(torch.randn(3, 2, 4)).square().mean()
        model.zero_grad()
        loss.backward(retain_graph=True)  # consumer
    """,
    "growing-graph",
    "model.state",
)
script(
    "predictions without a graph",
    """
    net, kept = nn.Linear(8, 2000), []
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        out = net(torch.randn(4, 8))
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
        kept.append({"out": out.detach(), "step": step})
    """,
    "growing-tensors",
    "kept",
)
script(
    "a validation with gradients on",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(25):
        optimizer.zero_grad()
        net(torch.randn(2, 4)).square().mean().backward()
        optimizer.step()
        outs = [net(torch.randn(2, 4)) for _ in range(3)]  # cause site
        print(torch.cat(outs).mean().item())
    """,
    "unused-forwards",
)
script(
    "a hard choice in the middle",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)
        def forward(self, x):
            return self.second((self.first(x) > 0).float())  # cause site
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = net(torch.randn(2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    "no-gradient",
    "net.first.weight, net.first.bias",
)
script(
    "a layer that no forward uses",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.spare = nn.Linear(4, 1), nn.Linear(4, 1)
        def forward(self, x):
            return self.first(x)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = net(torch.randn(2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # site
    """,
    "no-gradient",
    "net.spare.weight, net.spare.bias",
)
script(
    "gradients cleared between backward and step",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        net(torch.randn(2, 4)).square().mean().backward()
        optimizer.zero_grad()
        optimizer.step()  # site step
    """,
    "no-gradient",
    "net.weight, net.bias",
)
script(
    "a loss made anew of its number",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        error = net(torch.randn(2, 4)).square().mean().item()  # cause
        loss = torch.tensor(error, requires_grad=True)  # made
        optimizer.zero_grad()
        loss.backward()  # site loss
        optimizer.step()
    """,
    "loss-cut-off",
)
script(
    "a loss of classes that were chosen",
    """
    net = nn.Linear(4, 3)
    for step in range(30):
        chosen = net(torch.randn(2, 4)).argmax(1).float()  # cause
        loss = (chosen - 1).square().mean()
        loss.backward()  # site loss
    """,
    "loss-cut-off",
)
script(
    "layers in a plain list",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = [nn.Linear(4, 4)], nn.Linear(4, 1)
        def forward(self, x):
            return self.head(self.layers[0](x))
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = net(torch.randn(2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # step site
    """,
    "not-in-optimizer",
    "net.layers[0].weight, net.layers[0].bias",
)
script(
    "a head that was replaced",
    """
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 10))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net[1] = nn.Linear(4, 2)
    for step in range(30):
        loss = net(torch.randn(2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # step site
    """,
    "not-in-optimizer",
    "net[1].weight, net[1].bias",
)
script(
    "a layer that no forward uses, and a variable that is left of a loop",
    """
    net = nn.ModuleDict({"used": nn.Linear(4, 1), "spare": nn.Linear(4, 1)})
    for parameter in net.parameters():
        nn.init.constant_(parameter, 0.5)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = net["used"](torch.randn(2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # site
    """,
    "no-gradient",
    "net.spare.weight, net.spare.bias",
)
script(
    "gradients that nobody clears",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(30):
        net(torch.randn(2, 4)).square().mean().backward()
        optimizer.step()  # step site
    """,
    "gradients-never-cleared",
)

script(
    "an attribute that stays behind when its module moves",
    """
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.table = nn.Linear(4, 4), torch.linspace(0, 1, 4)  # cause
        def forward(self, x):
            return self.body(x) + self.table  # consumer site
    net = Positions().cuda()
    for step in range(3):
        net(torch.randn(3, 4, device="cuda")).square().mean().backward()
    """,
    "device-mismatch",
    "self.table",
)
script(
    "a table of tensors by step",
    """
    net, log = nn.Linear(4, 1), {}
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = net(torch.randn(2, 4)).square().mean()  # cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log[f"loss/{step}"] = loss
    """,
    "growing-graph",
    "log[*]",
)
script(
    "predictions joined to one tensor",
    """
    net, kept = nn.Linear(8, 2000), torch.zeros(0, 2000)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        out = net(torch.randn(4, 8))
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
        kept = torch.cat((kept, out.detach()))
    """,
    "growing-tensors",
    "kept",
)

# Nothing is wrong with the others.

script(
    "a training on a device, with what may be mixed",
    """
    net = nn.ModuleList([nn.Embedding(20, 8), nn.BatchNorm1d(8), nn.LSTM(8, 8), nn.GRU(8, 8)]).to("cuda")
    optimizer = torch.optim.Adam(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for step in range(3):
        ids = torch.randint(0, 20, (6,)).cuda(non_blocking=True)
        x = net[1](net[0](ids)).unsqueeze(1)
        out, _ = net[2](nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6])))
        out, _ = net[3](nn.utils.rnn.pad_packed_sequence(out)[0])
        out = out.squeeze(1) * torch.ones(6, 8, device=ids.device) + torch.arange(8).to(out) * torch.tensor(2.0)
        wanted = torch.randint(0, 8, (6,), device=x.device)
        loss = nn.functional.cross_entropy(out, wanted) + out[torch.tensor([0, 1])].square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        print((out.detach().cpu() * torch.ones(6, 8)).sum(), loss.to("cpu", torch.float64) + torch.ones(1))
    """,
)

script(
    "an ordinary training",
    """
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters())
    losses, recent, total = [], collections.deque(maxlen=5), 0.0
    for epoch in range(3):
        net.train()
        for step in range(8):
            loss = net(torch.randn(4, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            recent.append(loss)
            total += loss.item()
        net.eval()
        with torch.no_grad():
            print([net(torch.randn(4, 8)).mean().item() for _ in range(3)])
    """,
)
script(
    "micro-batches, cleared in place after the step",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(40):
        (net(torch.randn(2, 4)).square().mean() / 4).backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    """,
)
script(
    "a frozen body and an adversary in turns",
    """
    body, gen, dis = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
    for parameter in body.parameters():
        parameter.requires_grad = False
    for_gen = torch.optim.Adam([*body.parameters(), *gen.parameters()])
    for_dis = torch.optim.Adam(dis.parameters())
    for step in range(8):
        fake = gen(body(torch.randn(4, 4)))
        for_dis.zero_grad()
        (dis(fake.detach()).mean() - dis(torch.randn(4, 4)).mean()).backward()
        for_dis.step()
        for_gen.zero_grad()
        (-dis(fake).mean()).backward()
        for_gen.step()
    """,
)
script(
    "truncated back-propagation, and a target that follows",
    """
    cell, target = nn.GRUCell(4, 8), nn.GRUCell(4, 8)
    optimizer = torch.optim.SGD(cell.parameters(), 0.1)
    state = torch.zeros(2, 8)
    for step in range(12):
        state = state.detach()
        for _ in range(3):
            state = cell(torch.randn(2, 4), state)
        with torch.no_grad():
            wanted = target(torch.randn(2, 4), state)
        optimizer.zero_grad()
        (state - wanted).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), cell.parameters()):
                slow.mul_(0.9).add_(fast, alpha=0.1)
    """,
)
script(
    "a penalty on gradients, and LBFGS",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=2)
    for step in range(6):
        x = torch.randn(8, 4, requires_grad=True)
        def closure():
            optimizer.zero_grad()
            out = net(x)
            gradient, = torch.autograd.grad(out.sum(), x, create_graph=True)
            loss = out.square().mean() + (gradient.norm(dim=1) - 1).square().mean()
            loss.backward()
            return loss
        optimizer.step(closure)
    """,
)
