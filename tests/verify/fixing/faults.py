"""Programs with one fault each, and the change that a careful person would make.

A comment names the roles that its line has in the diagnosis.
"""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

from tests.verify.diagnosis.scripts import HEAD


class Faulty(NamedTuple):
    """A program, the kind of its fault, names of the carrier or of the parameters (any of them; none: it is not looked
    at), and the change by hand: what is replaced by what, once each. Without one, that it is mended is all."""

    text: str
    kind: str
    names: tuple[str, ...]
    hand: tuple[tuple[str, str], ...]


FAULTS: dict[str, Faulty] = {}


def fault(name: str, text: str, kind: str, called: str = "", *hand: tuple[str, str]) -> None:
    """Add a program; ``called`` are names with bars between them."""
    body = dedent(text).lstrip()
    imports = "".join(f"import {each}\n" for each in ("dataclasses", "functools") if f"{each}." in body)
    names = tuple(name for name in called.split("|") if name)
    FAULTS[name] = Faulty(imports + HEAD + body, kind, names, hand)


fault(
    "a table behind lru_cache",
    """
    emb, proj, head = nn.Embedding(6, 4), nn.Linear(4, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*emb.parameters(), *proj.parameters(), *head.parameters()], 0.1)
    @functools.lru_cache(maxsize=None)
    def table():
        return proj(emb.weight).tanh()  # cause
    for step in range(8):
        rows = table()[torch.tensor([step % 6, 0])]  # consumer
        loss = (head(rows) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "",
    ("@functools.lru_cache(maxsize=None)\n", ""),
)
fault(
    "an attribute made of a parameter in __init__",
    """
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.raw = nn.Parameter(torch.randn(4, 4))
            self.head = nn.Linear(4, 1)
            self.normed = self.raw / self.raw.norm(dim=0)  # cause
        def forward(self, x):
            return self.head(x @ self.normed)  # consumer
    model = Weighted()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(8):
        loss = (model(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "self.normed",
    (
        "        return self.head(x @",
        "        self.normed = self.raw / self.raw.norm(dim=0)\n        return self.head(x @",
    ),
)
fault(
    "a prior in a closure",
    """
    encoder, net = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizer = torch.optim.SGD([*encoder.parameters(), *net.parameters()], 0.1)
    def make_loss(anchor):
        prior = encoder(anchor).tanh()  # cause
        def criterion(out):
            return (out - prior).square().mean()  # consumer
        return criterion
    criterion = make_loss(torch.randn(3, 4))
    for step in range(8):
        loss = criterion(net(torch.randn(3, 4)))
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "prior",
    ("    prior = encoder(anchor).tanh()  # cause\n", ""),
    ("        return (out", "        prior = encoder(anchor).tanh()\n        return (out"),
)
fault(
    "a centre made once for a function",
    """
    net, anchor = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(2, 4)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    CENTER = net(anchor).mean(0)  # cause
    def pull(x):
        return (net(x) - CENTER).square().mean() + (CENTER - 1).square().mean()  # consumer
    for step in range(8):
        loss = pull(torch.randn(3, 4))
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "CENTER",
    ("    return (net(x)", "    CENTER = net(anchor).mean(0)\n    return (net(x)"),
)
fault(
    "the state of a generator",
    """
    cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1)
    def stream():
        state = torch.zeros(2, 8)
        while True:
            state = cell(torch.randn(2, 4), state)  # cause consumer
            yield head(state)
    outs = stream()
    for step in range(8):
        loss = (next(outs) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "state",
    ("        yield head(state)", "        yield head(state)\n        state = state.detach()"),
)
fault(
    "states of users in a defaultdict",
    """
    cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
    memory = collections.defaultdict(lambda: torch.zeros(1, 8))
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1)
    for step in range(9):
        user = step % 3
        memory[user] = cell(torch.randn(1, 4), memory[user])  # cause consumer
        loss = (head(memory[user]) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "memory[0]",
    ("    optimizer.step()\n", "    optimizer.step()\n    memory[user] = memory[user].detach()\n"),
)
fault(
    "a bank of features that is written to",
    """
    encoder = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
    optimizer = torch.optim.SGD(encoder.parameters(), 0.1)
    bank = torch.randn(10, 6)
    for step in range(8):
        index = torch.tensor([step % 10, (step + 3) % 10])
        features = encoder(torch.randn(2, 4))  # cause
        loss = (features @ bank.t()).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        bank[index] = 0.5 * bank[index] + 0.5 * features  # consumer
        print(loss.item())
    """,
    "second-backward",
    "",
    ("+ 0.5 * features", "+ 0.5 * features.detach()"),
)
fault(
    "a sum in a dictionary",
    """
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    stats = {"loss": torch.zeros(()), "n": 0}
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stats["loss"] = stats["loss"] + loss  # cause
    print(float(stats["loss"]))
    """,
    "growing-graph",
    "stats['loss']",
    ('stats["loss"] + loss', 'stats["loss"] + loss.detach()'),
)
fault(
    "lists that are added",
    """
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    history = []
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()  # cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history = history + [loss]
    print(sum(history).item())
    """,
    "growing-graph",
    "history[*]",
    ("[loss]", "[loss.detach()]"),
)
fault(
    "a tuple that is spread",
    """
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    history = ()
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()  # cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history = (*history, loss)
    print(sum(history).item())
    """,
    "growing-graph",
    "history[*]",
    ("*history, loss)", "*history, loss.detach())"),
)
fault(
    "rows of a log",
    """
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    log = {}
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()  # cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log[step] = {"loss": loss, "lr": 0.1}
    print(sum(row['loss'] for row in log.values()).item())
    """,
    "growing-graph",
    "log[*]['loss']|log[*][*]|log[0]['loss']",
    ('"loss": loss,', '"loss": loss.detach(),'),
)
fault(
    "a callback that is given the loss",
    """
    class Logger:
        def __init__(self):
            self.seen = collections.defaultdict(list)
        def on_batch_end(self, **values):
            for key, value in values.items():
                self.seen[key].append(value)
    class Trainer:
        def __init__(self, net, callbacks):
            self.net, self.callbacks = net, callbacks
            self.optimizer = torch.optim.SGD(net.parameters(), 0.1)
        def fit(self, steps):
            for step in range(steps):
                loss = (self.net(torch.randn(3, 4)) - 1).square().mean()  # cause
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                for callback in self.callbacks:
                    callback.on_batch_end(loss=loss, step=step)
    trainer = Trainer(nn.Linear(4, 1), [Logger()])
    trainer.fit(30)
    print(sum(trainer.callbacks[0].seen["loss"]).item())
    """,
    "growing-graph",
    "self.callbacks[0].seen['loss'][*]|trainer.callbacks[0].seen['loss'][*]|callback.seen['loss'][*]",
    ("loss=loss, step", "loss=loss.detach(), step"),
)
fault(
    "a meter that adds",
    """
    class Meter:
        def __init__(self):
            self.sum, self.count = 0.0, 0
        def update(self, value, n=1):
            self.sum = self.sum + value * n  # cause
            self.count = self.count + n
    net, meter = nn.Linear(4, 1), Meter()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss, 3)
    print(float(meter.sum) / meter.count)
    """,
    "growing-graph",
    "meter.sum",
    ("value * n", "value.detach() * n"),
)
fault(
    "a moving average of the loss",
    """
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    ema = torch.zeros(())
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema = 0.9 * ema + 0.1 * loss  # cause
    print(ema.item())
    """,
    "growing-graph",
    "ema",
    ("+ 0.1 * loss", "+ 0.1 * loss.detach()"),
)
fault(
    "a chain of methods that write",
    """
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1)
        def forward(self, x):
            h = torch.sigmoid(self.a(x))  # saved_by
            g = h.sub_(0.5).relu_()  # cause
            return self.b(g)
    net = Gate()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(8):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # site
        optimizer.step()
        print(loss.item())
    """,
    "changed-in-place",
    "",
    ("h.sub_(0.5).relu_()", "h.sub(0.5).relu()"),
)
fault(
    "a function with inplace=True",
    """
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(8):
        h = net(torch.randn(3, 4)).tanh()  # saved_by
        out = nn.functional.dropout(h, 0.5, training=True, inplace=True)  # cause
        loss = (out.sum(1) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # site
        optimizer.step()
        print(loss.item())
    """,
    "changed-in-place",
    "h|out",
    (", inplace=True", ""),
)
fault(
    "a masked softmax",
    """
    query, key = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizer = torch.optim.SGD([*query.parameters(), *key.parameters()], 0.1)
    for step in range(8):
        x = torch.randn(3, 4)
        attention = (query(x) @ key(x).t()).softmax(-1)  # saved_by
        attention.masked_fill_(attention < 0.1, 0.0)  # cause
        loss = (attention @ x).square().mean()
        optimizer.zero_grad()
        loss.backward()  # site
        optimizer.step()
        print(loss.item())
    """,
    "changed-in-place",
    "attention",
    ("attention.masked_fill_(", "attention = attention.masked_fill("),
)
fault(
    "targets that stay behind",
    """
    net = nn.Linear(4, 3).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(8):
        x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))  # cause
        out = net(x.to("cuda"))
        loss = nn.functional.cross_entropy(out, y)  # consumer site
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "device-mismatch",
    "y",
)
fault(
    "data of a tensor",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
            self.scale = nn.Parameter(torch.ones(()))
        def forward(self, x):
            h = self.body(x).tanh().data  # cause site
            return self.head(self.scale * h)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "no-gradient",
    "net.body.weight, net.body.bias",
    (".tanh().data", ".tanh()"),
)
fault(
    "a block without gradients",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
            self.scale = nn.Parameter(torch.ones(()))
        def forward(self, x):
            with torch.no_grad():
                h = self.body(x).tanh()  # cause site
            return self.head(self.scale * h)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "no-gradient",
    "net.body.weight, net.body.bias",
    ("        with torch.no_grad():\n            h =", "        h ="),
)
fault(
    "a function without gradients",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
            self.scale = nn.Parameter(torch.ones(()))
        def forward(self, x):
            @torch.no_grad()
            def features(inputs):
                return self.body(inputs).tanh()  # cause site
            return self.head(self.scale * features(x))
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "no-gradient",
    "net.body.weight, net.body.bias",
)
fault(
    "a scale as a number",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
            self.scale = nn.Parameter(torch.ones(()))
        def forward(self, x):
            h = self.body(x).tanh()
            return self.head(self.scale.item() * h)  # cause site
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "no-gradient",
    "net.scale",
    ("self.scale.item()", "self.scale"),
)
fault(
    "a way through numpy",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
            self.scale = nn.Parameter(torch.ones(()))
        def forward(self, x):
            h = torch.from_numpy(self.body(x).tanh().detach().numpy())  # cause site
            return self.head(self.scale * h)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "no-gradient",
    "net.body.weight, net.body.bias",
    ("torch.from_numpy(self.body(x).tanh().detach().numpy())", "self.body(x).tanh()"),
)
fault(
    "an accuracy with gradients on",
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    data = [torch.randn(3, 4) for _ in range(3)]
    def accuracy():
        net.eval()
        right = 0
        for x in data:
            right += (net(x).argmax(1) == 0).sum().item()  # cause site
        net.train()
        return right / 9
    for epoch in range(22):
        for x in data[:1]:
            loss = net(x).log_softmax(1)[:, 1].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item(), accuracy())
    """,
    "unused-forwards",
    "",
    ("    for x in data:\n        right", "    for x in data:\n      with torch.no_grad():\n        right"),
)
fault(
    "a loss made of a number",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        error = (net(torch.randn(2, 4)) - 1).square().mean().item()  # cause
        loss = torch.tensor(error, requires_grad=True)
        optimizer.zero_grad()
        loss.backward()  # site
        optimizer.step()
        print(loss.item())
    """,
    "loss-cut-off",
    "",
    (".item()  # cause", ""),
    ("torch.tensor(error, requires_grad=True)", "error"),
)
fault(
    "layers that nobody registers",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(4, 4) for _ in range(2)]
            self.head = nn.Linear(4, 1)
        def forward(self, x):
            for layer in self.layers:
                x = layer(x).tanh()
            return self.head(x)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = (net(torch.randn(2, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "not-in-optimizer",
    "",
    ("[nn.Linear(4, 4) for _ in range(2)]", "nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])"),
)
fault(
    "a head put in after the optimizer was made",
    """
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 10))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net[2] = nn.Linear(4, 2)
    for step in range(30):
        loss = (net(torch.randn(2, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "not-in-optimizer",
    "net[2].weight, net[2].bias",
    (
        "optimizer = torch.optim.SGD(net.parameters(), 0.1)\nnet[2] = nn.Linear(4, 2)\n",
        "net[2] = nn.Linear(4, 2)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)\n",
    ),
)
fault(
    "a state that begins with None",
    """
    lstm, head = nn.LSTM(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*lstm.parameters(), *head.parameters()], 0.1)
    def chunks():
        state = None
        while True:
            out, state = lstm(torch.randn(3, 2, 4), state)  # cause consumer
            yield head(out), state[0].mean()
    stream = chunks()
    for step in range(8):
        out, size = next(stream)
        loss = (out - 1).square().mean() + 0.1 * size
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "",
    (
        "        out, state = lstm",
        "        state = None if state is None else tuple(s.detach() for s in state)\n        out, state = lstm",
    ),
)
fault(
    "states in a list",
    """
    cells, head = nn.ModuleList(nn.GRUCell(4, 4) for _ in range(2)), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cells.parameters(), *head.parameters()], 0.1)
    hidden = [torch.zeros(2, 4) for _ in cells]
    for step in range(8):
        x = torch.randn(2, 4)
        for i, cell in enumerate(cells):
            hidden[i] = x = cell(x, hidden[i])  # cause consumer
        loss = (head(x) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "hidden[0]|hidden[1]",
    ("        hidden[i] = x = cell", "        hidden[i] = hidden[i].detach()\n        hidden[i] = x = cell"),
)
fault(
    "a weight behind cached_property",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.raw, self.head = nn.Parameter(torch.randn(4, 4)), nn.Linear(4, 1)
        @functools.cached_property
        def weight(self):
            return self.raw.softmax(0)  # cause
        def forward(self, x):
            return self.head(x @ self.weight)  # consumer
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(8):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "",
    ("@functools.cached_property", "@property"),
)
fault(
    "a memory in a default argument",
    """
    cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1)
    def remember(x, memory={}):
        memory["h"] = cell(x, memory.get("h"))  # cause consumer
        return head(memory["h"])
    for step in range(8):
        loss = (remember(torch.randn(2, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()  # freed_by site
        optimizer.step()
        print(loss.item())
    """,
    "second-backward",
    "memory['h']",
    (
        '    return head(memory["h"])',
        '    out = head(memory["h"])\n    memory["h"] = memory["h"].detach()\n    return out',
    ),
)
