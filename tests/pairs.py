"""Small training programs with several mistakes that touch one loop, and with what only looks like one.

Each runs in a moment. What they leave in their global names (modules, parameters) is compared with what the rewritten
ones leave.
"""

from __future__ import annotations

PRELUDE = """\
import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd import Variable

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
xs = [torch.randn(5, 3) for _ in range(4)]
ys = [torch.randn(5, 1) for _ in range(4)]
"""

PROGRAMS = {
    "total history detach": """
history = []
total = 0
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
    history.append(total)
print(total)
best = torch.stack(history).mean()
""",
    "total history item": """
history = []
total = 0
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
    history.append(total)
print(total, [h.item() for h in history])
""",
    "total history detached by author": """
history = []
total = 0
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
    history.append(total.detach())
print(total)
""",
    "total history two lists": """
history, means = [], []
total = 0
for i, (x, y) in enumerate(zip(xs, ys)):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
    history.append(total)
    means.append(total / (i + 1))
print(history[-1], sum(means))
""",
    "total history dict": """
log = {"loss": [], "total": []}
total = torch.zeros(1)
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total = total + loss
    log["loss"].append(loss)
    log["total"].append(total)
print(torch.cat(log["total"]).mean(), torch.stack(log["loss"]).mean())
""",
    "total history class": """
class Meter:
    def __init__(self):
        self.total = 0
        self.values = []

    def update(self, value):
        self.total += value
        self.values.append(self.total)

    def best(self):
        return min(v.item() for v in self.values)

meter = Meter()
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update(loss)
print(meter.best(), meter.total)
""",
    "total printed and shape": """
total = 0
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
print(total, total.shape, total.dtype)
""",
    "total new zeros": """
total = 0
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
print(total.new_zeros(2))
""",
    "total through function": """
def report(value):
    return "%.4f" % value.item()

total = 0
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
print(report(total))
""",
    "total getattr": """
def scalar(v):
    return v.item() if hasattr(v, "item") else v

total = 0
history = []
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
    history.append(scalar(total))
print(total, history)
""",
    "retain third path": """
head = nn.Linear(4, 1)
other = nn.Linear(4, 1)
third = nn.Linear(4, 1)
body = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
ob = torch.optim.SGD(body.parameters(), lr=0.1)
oh = torch.optim.SGD([*head.parameters(), *other.parameters(), *third.parameters()], lr=0.1)
for x, y in zip(xs, ys):
    z = body(x)
    la = F.mse_loss(head(z), y)
    lb = F.mse_loss(other(z.detach()), y)
    lc = F.mse_loss(third(z), y)
    ob.zero_grad()
    oh.zero_grad()
    la.backward(retain_graph=True)
    lb.backward(retain_graph=True)
    lc.backward(retain_graph=True)
    ob.step()
    oh.step()
""",
    "gan retain": """
G = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
bce = nn.BCEWithLogitsLoss()
d_total = 0
for real in xs:
    noise = torch.randn(5, 2)
    fake = G(noise)
    od.zero_grad()
    d_loss = bce(D(real), torch.ones(5, 1)) + bce(D(fake), torch.zeros(5, 1))
    d_loss.backward(retain_graph=True)
    od.step()
    og.zero_grad()
    g_loss = bce(D(fake), torch.ones(5, 1))
    g_loss.backward()
    og.step()
    d_total += d_loss
print(d_total)
""",
    "gan two uses": """
G = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
for real in xs:
    noise = torch.randn(5, 2)
    fake = G(noise)
    od.zero_grad()
    d_loss = (D(fake) - D(real)).mean()
    d_loss.backward(retain_graph=True)
    od.step()
    og.zero_grad()
    rec = F.mse_loss(fake, real)
    rec.backward(retain_graph=True)
    g_loss = -D(fake).mean()
    g_loss.backward(retain_graph=True)
    og.step()
""",
    "gan generator first": """
G = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
for real in xs:
    noise = torch.randn(5, 2)
    fake = G(noise)
    og.zero_grad()
    g_loss = -D(fake).mean()
    g_loss.backward()
    og.step()
    od.zero_grad()
    d_loss = (D(fake) - D(real)).mean()
    d_loss.backward()
    od.step()
""",
    "gan losses first": """
G = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
g_hist, d_hist = [], []
for real in xs:
    noise = torch.randn(5, 2)
    fake = G(noise)
    loss_d = (D(fake.detach()) - D(real)).mean()
    loss_g = -D(fake).mean()
    od.zero_grad()
    loss_d.backward(retain_graph=True)
    od.step()
    og.zero_grad()
    loss_g.backward()
    og.step()
    g_hist.append(loss_g)
    d_hist.append(loss_d)
print(sum(g_hist), sum(d_hist))
""",
    "gan losses first shared score": """
G = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
for real in xs:
    fake = G(torch.randn(5, 2))
    score = D(fake)
    loss_d = (score - D(real)).mean()
    loss_g = -score.mean()
    od.zero_grad()
    loss_d.backward(retain_graph=True)
    od.step()
    og.zero_grad()
    loss_g.backward()
    og.step()
""",
    "retain carried": """
rnn = nn.LSTM(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
hidden = None
total = 0
for x, y in zip(xs, ys):
    z, hidden = rnn(x.unsqueeze(1), hidden)
    loss = F.mse_loss(out(z[:, 0]), y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss
print(total)
""",
    "carried gru history": """
rnn = nn.GRU(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
hidden = torch.zeros(1, 1, 4)
losses = []
for x, y in zip(xs, ys):
    z, hidden = rnn(x.unsqueeze(1), hidden)
    loss = F.mse_loss(out(z[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss)
print(sum(losses) / len(losses))
""",
    "repackage works": """
def repackage(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage(v) for v in h)

rnn = nn.LSTM(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
hidden = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
for x, y in zip(xs, ys):
    hidden = repackage(hidden)
    z, hidden = rnn(x.unsqueeze(1), hidden)
    loss = F.mse_loss(out(z[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "repackage type in": """
def repackage(h):
    if type(h) in (torch.Tensor, Variable):
        return h.detach()
    else:
        return tuple(repackage(v) for v in h)

rnn = nn.GRU(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
hidden = torch.zeros(1, 1, 4)
for x, y in zip(xs, ys):
    hidden = repackage(hidden)
    z, hidden = rnn(x.unsqueeze(1), hidden)
    loss = F.mse_loss(out(z[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "repackage is tensor": """
def repackage(h):
    if type(h) == torch.Tensor:
        return h.data
    return [repackage(v) for v in h]

rnn = nn.LSTM(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
hidden = [torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)]
for x, y in zip(xs, ys):
    hidden = repackage(hidden)
    z, hidden = rnn(x.unsqueeze(1), hidden)
    loss = F.mse_loss(out(z[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "repackage variable fallthrough": """
def repackage(h):
    if type(h) == Variable:
        return Variable(h.data)
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage(v) for v in h)

rnn = nn.LSTM(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
hidden = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
for x, y in zip(xs, ys):
    hidden = repackage(hidden)
    z, hidden = rnn(x.unsqueeze(1), hidden)
    loss = F.mse_loss(out(z[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "repackage try": """
def repackage(h):
    try:
        return h.detach()
    except AttributeError:
        return tuple(repackage(v) for v in h)

rnn = nn.LSTM(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
hidden = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
for x, y in zip(xs, ys):
    hidden = repackage(hidden)
    z, hidden = rnn(x.unsqueeze(1), hidden)
    loss = F.mse_loss(out(z[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "repackage map inplace": """
rnn = nn.LSTM(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
hidden = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
for x, y in zip(xs, ys):
    for h in hidden:
        h.detach_()
    z, hidden = rnn(x.unsqueeze(1), hidden)
    loss = F.mse_loss(out(z[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "bptt nonlocal": """
rnn = nn.GRUCell(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)

def train():
    h = torch.zeros(5, 4)
    pending = 0
    count = 0

    def advance(x, y):
        nonlocal h, pending, count
        h = rnn(x, h)
        pending = pending + F.mse_loss(out(h), y)
        count += 1
        if count % 2 == 0:
            opt.zero_grad()
            pending.backward()
            opt.step()
            h = h.detach()
            pending = 0

    for x, y in zip(xs, ys):
        advance(x, y)

train()
""",
    "bptt nonlocal flush": """
rnn = nn.GRUCell(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)

def train():
    h = torch.zeros(5, 4)
    pending = []

    def flush():
        nonlocal h, pending
        opt.zero_grad()
        sum(pending).backward()
        opt.step()
        h = h.detach()
        pending = []

    for i, (x, y) in enumerate(zip(xs, ys)):
        h = rnn(x, h)
        pending.append(F.mse_loss(out(h), y))
        if len(pending) == 2:
            flush()

train()
""",
    "bptt counter": """
rnn = nn.GRUCell(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
h = torch.zeros(5, 4)
loss = 0
steps = 0
for x, y in zip(xs, ys):
    h = rnn(x, h)
    loss = loss + F.mse_loss(out(h), y)
    steps += 1
    if steps == 2:
        opt.zero_grad()
        loss.backward()
        opt.step()
        h = h.detach()
        loss = 0
        steps = 0
""",
    "bptt generator": """
rnn = nn.GRUCell(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)

def windows(k):
    h = torch.zeros(5, 4)
    loss = 0
    for i, (x, y) in enumerate(zip(xs, ys)):
        h = rnn(x, h)
        loss = loss + F.mse_loss(out(h), y)
        if (i + 1) % k == 0:
            yield loss
            loss = 0
            h = h.detach()

for loss in windows(2):
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "bptt class": """
class Trainer:
    def __init__(self):
        self.rnn = nn.GRUCell(3, 4)
        self.out = nn.Linear(4, 1)
        self.opt = torch.optim.SGD([*self.rnn.parameters(), *self.out.parameters()], lr=0.1)
        self.h = torch.zeros(5, 4)
        self.loss = 0
        self.n = 0

    def feed(self, x, y):
        self.h = self.rnn(x, self.h)
        self.loss = self.loss + F.mse_loss(self.out(self.h), y)
        self.n += 1
        if self.n >= 2:
            self.flush()

    def flush(self):
        self.opt.zero_grad()
        self.loss.backward()
        self.opt.step()
        self.h = self.h.detach()
        self.loss = 0
        self.n = 0

trainer = Trainer()
for x, y in zip(xs, ys):
    trainer.feed(x, y)
rnn, out = trainer.rnn, trainer.out
""",
    "bptt module state": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRUCell(3, 4)
        self.out = nn.Linear(4, 1)
        self.h = None

    def forward(self, x):
        if self.h is None:
            self.h = torch.zeros(5, 4)
        self.h = self.rnn(x, self.h)
        return self.out(self.h)

    def cut(self):
        self.h = self.h.detach()

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
window = []
for x, y in zip(xs, ys):
    window.append(F.mse_loss(net(x), y))
    if len(window) == 2:
        opt.zero_grad()
        torch.stack(window).sum().backward()
        opt.step()
        net.cut()
        window.clear()
""",
    "bptt last only": """
rnn = nn.GRUCell(3, 4)
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
h = torch.zeros(5, 4)
for i, (x, y) in enumerate(zip(xs, ys)):
    h = rnn(x, h)
    if i % 2 == 1:
        loss = F.mse_loss(out(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        h = h.detach()
""",
    "summed hidden dict": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRUCell(3, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        h = self.__dict__.get("h")
        if h is None:
            h = torch.zeros(5, 4)
        h = self.rnn(x, h)
        self.__dict__["h"] = h
        return self.out(h)

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    opt.zero_grad()
    net.__dict__["h"] = None
    total = 0
    for x, y in zip(xs, ys):
        total = total + F.mse_loss(net(x), y)
    total.backward()
    opt.step()
""",
    "summed hidden vars": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRUCell(3, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        h = vars(self).get("h")
        if h is None:
            h = torch.zeros(5, 4)
        h = self.rnn(x, h)
        object.__setattr__(self, "h", h)
        return self.out(h)

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    opt.zero_grad()
    net.h = None
    total = 0
    for x, y in zip(xs, ys):
        total = total + F.mse_loss(net(x), y)
    total.backward()
    opt.step()
""",
    "summed hidden update": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRUCell(3, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        h = getattr(self, "h", None)
        if h is None:
            h = torch.zeros(5, 4)
        h = self.rnn(x, h)
        self.__dict__.update(h=h)
        return self.out(h)

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    opt.zero_grad()
    net.__dict__.update(h=None)
    total = 0
    for x, y in zip(xs, ys):
        total = total + F.mse_loss(net(x), y)
    total.backward()
    opt.step()
""",
    "summed hidden setattr": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRUCell(3, 4)
        self.out = nn.Linear(4, 1)
        self.names = ["h"]

    def forward(self, x):
        h = getattr(self, self.names[0], None)
        if h is None:
            h = torch.zeros(5, 4)
        h = self.rnn(x, h)
        setattr(self, self.names[0], h)
        return self.out(h)

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    opt.zero_grad()
    net.h = None
    total = 0
    for x, y in zip(xs, ys):
        total = total + F.mse_loss(net(x), y)
    total.backward()
    opt.step()
""",
    "summed plain": """
for epoch in range(2):
    opt.zero_grad()
    total = 0
    for x, y in zip(xs, ys):
        total = total + F.mse_loss(model(x), y)
    total.backward()
    opt.step()
""",
    "summed retain": """
history = []
for epoch in range(2):
    opt.zero_grad()
    total = 0
    for x, y in zip(xs, ys):
        loss = F.mse_loss(model(x), y)
        total = total + loss
    total.backward(retain_graph=True)
    opt.step()
    history.append(total)
print(sum(history))
""",
    "evaluation total": """
for epoch in range(2):
    total = 0
    for x, y in zip(xs, ys):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss
    print(total / len(xs))
    val = 0
    for x, y in zip(xs, ys):
        val += F.mse_loss(model(x), y)
    print(val / len(xs))
""",
    "evaluation total function": """
def validate():
    model.eval()
    total, values = 0, []
    for x, y in zip(xs, ys):
        loss = F.mse_loss(model(x), y)
        total += loss
        values.append(loss)
    model.train()
    return total / len(xs), values

for epoch in range(2):
    for x, y in zip(xs, ys):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
    val, values = validate()
    print(val.item(), [v.item() for v in values])
""",
    "unreset total": """
loss = 0
total = 0
for x, y in zip(xs, ys):
    loss += F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
print(total)
""",
    "unreset retain history": """
loss = 0
history = []
for x, y in zip(xs, ys):
    loss = loss + F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    history.append(loss)
print(sum(history))
""",
    "invariant retain": """
emb = nn.Parameter(torch.randn(4, 3))
proj = nn.Linear(3, 3)
opt = torch.optim.SGD([emb, *proj.parameters(), *model.parameters()], lr=0.1)
table = torch.tanh(proj(emb))
total = 0
for i, (x, y) in enumerate(zip(xs, ys)):
    loss = F.mse_loss(model(x + table[i]), y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss
print(total)
""",
    "invariant plain": """
emb = nn.Parameter(torch.randn(4, 3))
proj = nn.Linear(3, 3)
opt = torch.optim.SGD([emb, *proj.parameters(), *model.parameters()], lr=0.1)
table = torch.tanh(proj(emb))
losses = []
for i, (x, y) in enumerate(zip(xs, ys)):
    loss = F.mse_loss(model(x + table[i]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss)
print(torch.stack(losses).mean())
""",
    "repeated zero grad": """
total = 0
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    loss.backward()
    opt.step()
    total += loss
print(total)
""",
    "repeated retain": """
history = []
for x, y in zip(xs, ys):
    out = model(x)
    loss = F.mse_loss(out, y)
    aux = out.abs().mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    aux.backward(retain_graph=True)
    opt.step()
    history.append(loss)
    history.append(aux)
print(sum(history))
""",
    "repeated no retain": """
for x, y in zip(xs, ys):
    out = model(x)
    loss = F.mse_loss(out, y)
    aux = out.abs().mean()
    opt.zero_grad()
    loss.backward()
    aux.backward()
    opt.step()
""",
    "missing zero total": """
total = 0
for x, y in zip(xs, ys):
    loss = F.mse_loss(model(x), y)
    loss.backward(retain_graph=True)
    opt.step()
    total += loss
print(total)
""",
    "legacy everything": """
total = 0
for x, y in zip(xs, ys):
    x, y = Variable(x), Variable(y)
    out = model(x)
    loss = F.mse_loss(out, y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss.data
print(total)
vx = Variable(xs[0], volatile=True)
print(model(vx).data)
""",
    "legacy total": """
history = []
total = 0
for x, y in zip(xs, ys):
    x, y = Variable(x, requires_grad=True), Variable(y)
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
    history.append(total.data)
print(total, sum(history))
""",
    "legacy data0": """
total = 0
for x, y in zip(xs, ys):
    x, y = Variable(x), Variable(y)
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss.data[0]
print(total)
""",
    "stored parameter to": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3)).to("cpu", torch.float64)
        self.lin = nn.Linear(3, 1).double()

    def forward(self, x):
        return self.lin(x.double() * self.scale)

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in zip(xs, ys):
    loss = F.mse_loss(net(x), y.double())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "stored bank retain": """
enc = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
opt = torch.optim.SGD(enc.parameters(), lr=0.1)
bank = []
total = 0
for x in xs:
    h = enc(x)
    loss = h.pow(2).mean()
    for old in bank:
        loss = loss + F.mse_loss(h, old)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    bank.append(h)
    total += loss
print(total)
""",
    "stored bank plain": """
enc = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
opt = torch.optim.SGD(enc.parameters(), lr=0.1)
bank = []
for x in xs:
    h = enc(x)
    loss = h.pow(2).mean()
    for old in bank:
        loss = loss + F.mse_loss(h, old)
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.append(h)
""",
    "stored delayed": """
enc = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
out = nn.Linear(4, 1)
opt = torch.optim.SGD([*enc.parameters(), *out.parameters()], lr=0.1)
previous = None
for x, y in zip(xs, ys):
    if previous is not None:
        loss = F.mse_loss(out(previous), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    previous = enc(x)
""",
    "stored ema": """
enc = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
opt = torch.optim.SGD(enc.parameters(), lr=0.1)
mean = torch.zeros(4)
for x in xs:
    h = enc(x).mean(0)
    mean = 0.9 * mean + 0.1 * h
    loss = (h - mean).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "loss loop total": """
heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(2)])
body = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
opt = torch.optim.SGD([*body.parameters(), *heads.parameters()], lr=0.1)
total = 0
for x, y in zip(xs, ys):
    z = body(x)
    opt.zero_grad()
    losses = [F.mse_loss(h(z), y) for h in heads]
    for l in losses:
        l.backward(retain_graph=True)
        total += l
    opt.step()
print(total)
""",
    "loss loop accumulated": """
heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(2)])
body = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
opt = torch.optim.SGD([*body.parameters(), *heads.parameters()], lr=0.1)
history = []
for x, y in zip(xs, ys):
    z = body(x)
    opt.zero_grad()
    loss = 0
    for h in heads:
        loss += F.mse_loss(h(z), y)
        loss.backward()
    opt.step()
    history.append(loss)
print(sum(history))
""",
    "step between retain": """
actor = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
oa = torch.optim.SGD(actor.parameters(), lr=0.1)
oc = torch.optim.SGD(critic.parameters(), lr=0.1)
for x, y in zip(xs, ys):
    value = critic(x)
    loss_c = F.mse_loss(value, y)
    loss_a = -critic(actor(x)).mean()
    oc.zero_grad()
    loss_c.backward(retain_graph=True)
    oc.step()
    oa.zero_grad()
    loss_a.backward(retain_graph=True)
    oa.step()
""",
    "step between intermediate": """
G = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
for real in xs:
    fake = G(torch.randn(5, 2))
    score = D(fake)
    loss_d = (D(fake.detach()) - D(real)).mean()
    loss_g = -score.mean()
    od.zero_grad()
    loss_d.backward()
    od.step()
    og.zero_grad()
    loss_g.backward()
    og.step()
""",
    "inplace total": """
total = 0
for x, y in zip(xs, ys):
    out = torch.sigmoid(model(x))
    mask = out.detach()
    mask[mask < 0.5] = 0
    loss = F.mse_loss(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
print(total)
""",
    "total reset each step": """
for x, y in zip(xs, ys):
    parts = 0
    out = model(x)
    loss = F.mse_loss(out, y)
    parts += loss
    parts += out.abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(parts)
""",
    "total in inner loop": """
for epoch in range(2):
    for x, y in zip(xs, ys):
        shown = 0
        opt.zero_grad()
        for part, target in zip(x.split(2), y.split(2)):
            loss = F.mse_loss(model(part), target)
            loss.backward()
            shown += loss
        opt.step()
    print(shown)
""",
    "input flag total": """
total = 0
for x, y in zip(xs, ys):
    x = x.clone().requires_grad_()
    loss = F.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    total += loss
print(total)
""",
}
