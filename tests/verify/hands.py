"""Scripts of awkward kinds, to be changed by hand: what is wrong must not be kept, what is right not broken."""

from __future__ import annotations

_HEAD = """\
import copy, json, math, os, pickle, random, sys, threading
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
"""

#: A student and the average of its weights, which nothing calls before the end of the training.
TEACHER = (
    _HEAD
    + """
class Average:
    def __init__(self, net, decay):
        self.decay = decay
        self.shadow = {name: value.detach().clone() for name, value in net.state_dict().items()}

    def update(self, net):
        for name, value in net.state_dict().items():
            self.shadow[name].mul_(self.decay).add_(value.detach(), alpha=1 - self.decay)


student = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
teacher = copy.deepcopy(student)
average = Average(student, 0.99)
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
for epoch in range(100):
    for batch in range(4):
        x, y = torch.randn(8, 6), torch.randint(0, 2, (8,))
        loss = F.cross_entropy(student(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(student)
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters()):
                slow.lerp_(fast, 0.01)
"""
)

#: Stops when the validation gets no better, keeps the best weights, and tells nothing on the way.
STOPPING = (
    _HEAD
    + """
class Stopper:
    def __init__(self, patience):
        self.patience, self.bad, self.best = patience, 0, math.inf

    def __call__(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


net = nn.Sequential(nn.Linear(5, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Dropout(0.2), nn.Linear(9, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
held = [(torch.randn(8, 5), torch.randn(8, 1)) for _ in range(3)]
stopper = Stopper(50)
history = []
best = None
for epoch in range(60):
    net.train()
    for _ in range(2):
        x, y = torch.randn(8, 5), torch.randn(8, 1)
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
    net.eval()
    value = 0.0
    with torch.no_grad():
        for x, y in held:
            value += F.mse_loss(net(x), y).item()
    history.append(value / len(held))
    if stopper(value):
        break
    if value <= stopper.best:
        best = copy.deepcopy(net.state_dict())
"""
)

#: Half precision on the processor, with a scaler of losses.
SCALED = (
    _HEAD
    + """
net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(40):
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(net(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
"""
)

#: A solver that asks for the loss as often as it likes, and a total that keeps graphs.
SOLVER = (
    _HEAD
    + """
field = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
points = torch.linspace(0, 1, 16).unsqueeze(1)
optimizer = torch.optim.LBFGS(field.parameters(), lr=0.5, max_iter=4, history_size=5)
calls = 0
curve = []


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    inner = points.clone().requires_grad_()
    value = field(inner)
    slope, = torch.autograd.grad(value.sum(), inner, create_graph=True)
    residual = (slope - torch.cos(6.28 * inner)).square().mean()
    boundary = field(torch.zeros(1, 1)).square().mean()
    loss = residual + 10 * boundary
    loss.backward()
    return loss


for step in range(30):
    loss = optimizer.step(closure)
    curve.append(loss)
"""
)

#: A function with a backward of its own.
CUSTOM = (
    _HEAD
    + """
class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        inside = (x.abs() <= 1).float()
        return grad * (inside + 0.1 * (1 - inside))


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.weight * grad, None


body, label, domain = nn.Linear(7, 10), nn.Linear(10, 3), nn.Linear(10, 2)
optimizer = torch.optim.RMSprop([*body.parameters(), *label.parameters(), *domain.parameters()], lr=1e-3)
for step in range(50):
    x, y, d = torch.randn(6, 7), torch.randint(0, 3, (6,)), torch.randint(0, 2, (6,))
    features = Clamp.apply(body(x))
    weight = 2 / (1 + math.exp(-step / 10)) - 1
    loss = F.cross_entropy(label(features), y)
    adversarial = F.cross_entropy(domain(Reverse.apply(features, weight)), d)
    optimizer.zero_grad()
    (loss + adversarial).backward()
    optimizer.step()
"""
)

#: Two players, an old form that stops today's torch in the first turn, and a penalty that comes later.
GAN = (
    _HEAD
    + """
maker = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8))
critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
of_maker = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.9))
of_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.9))
log = []
for turn in range(80):
    real = torch.randn(8, 8) + 1
    fake = maker(torch.randn(8, 4))
    of_critic.zero_grad()
    loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
    if turn >= 4:
        mixed = (0.5 * real + 0.5 * fake.detach()).requires_grad_()
        slope, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        loss = loss + 0.1 * (slope.norm(dim=1) - 1).square().mean()
    loss.backward()
    of_critic.step()
    if turn % 2:
        of_maker.zero_grad()
        gain = F.softplus(-critic(fake)).mean()
        gain.backward()
        of_maker.step()
    log.append(loss.data[0])
"""
)

#: Gradients of several batches to a step, by a generator of batches with a generator of numbers of its own.
GATHERED = (
    _HEAD
    + """
numbers = torch.Generator().manual_seed(3)


def batches(count):
    order = torch.randperm(count, generator=numbers).tolist()
    for index in order:
        yield torch.randn(4, 6, generator=numbers) + index, torch.full((4, 1), float(index))


net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.1), nn.Linear(12, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
gather = 4
seen = 0
for epoch in range(20):
    for index, (x, y) in enumerate(batches(12)):
        loss = F.smooth_l1_loss(net(x), y) / gather
        loss.backward()
        seen += len(x)
        if (index + 1) % gather == 0:
            nn.utils.clip_grad_value_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
"""
)

#: What is kept for later: pickles, JSON, checkpoints, a buffer of experience.
KEEPING = (
    _HEAD
    + """
os.makedirs("out", exist_ok=True)
policy = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
memory = []
rewards = []
state = np.zeros(3, dtype=np.float32)
for episode in range(200):
    scores = policy(torch.from_numpy(state))
    chance = torch.distributions.Categorical(logits=scores)
    action = chance.sample()
    reward = float(action) * float(state[0]) + random.random()
    memory.append((state.copy(), int(action), reward))
    rewards.append(reward)
    state = np.tanh(state + np.random.randn(3).astype(np.float32))
    baseline = sum(rewards[-10:]) / len(rewards[-10:])
    loss = -chance.log_prob(action) * (reward - baseline)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 8 == 7:
        with open("out/memory.pkl", "wb") as file:
            pickle.dump({"memory": memory[-8:], "rewards": rewards}, file)
        kept = {"policy": policy.state_dict(), "episode": episode, "optimizer": optimizer.state_dict()}
        torch.save(kept, "out/last.pt")
        json.dump({"reward": rewards, "seen": 1000000 + episode}, open("out/log.json", "w"))
"""
)

#: A large and a small loss in one optimizer: gradients of very different sizes.
UNEVEN = (
    _HEAD
    + """
big, small = nn.Linear(6, 6), nn.Linear(6, 6)
norm = nn.BatchNorm1d(6)
optimizer = torch.optim.Adam([*big.parameters(), *small.parameters(), *norm.parameters()], lr=1e-3)
for step in range(40):
    x = torch.randn(16, 6)
    heavy = 1e4 * (norm(big(x)) - 1).square().mean()
    light = 1e-3 * small(x).cos().mean()
    optimizer.zero_grad()
    heavy.backward(retain_graph=True)
    light.backward()
    optimizer.step()
"""
)

#: Errors that the script goes on from: batches that do not fit.
SKIPPING = (
    _HEAD
    + """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
skipped = 0
hidden = torch.zeros(2, 8)
cell = nn.GRUCell(4, 8)
both = torch.optim.SGD([*net.parameters(), *cell.parameters()], lr=0.01)
for step in range(60):
    x = torch.randn(2, 4)
    y = torch.randn(2, 1)
    # The state goes on.
    try:
        hidden = cell(x, hidden)
        loss = F.mse_loss(net[2](hidden), y)
    except RuntimeError:
        skipped += 1
        continue
    both.zero_grad()
    loss.backward()
    both.step()
"""
)

#: Trains in a thread and in the main one, each its own model.
THREADS = (
    _HEAD
    + """
def work(net, optimizer, data):
    for x, y in data:
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()


nets = [nn.Linear(5, 1), nn.Linear(5, 1)]
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
data = [(torch.randn(4, 5), torch.randn(4, 1)) for _ in range(12)]
for net, optimizer in zip(nets, optimizers):
    thread = threading.Thread(target=work, args=(net, optimizer, data))
    thread.start()
    thread.join()
mean = sum(float(net.weight.detach().sum()) for net in nets) / 2
with open("mean.txt", "w") as file:
    print("mean", mean, file=file)
os._exit(0)
"""
)

#: Two processes of torchrun's kind: a rank from the environment, gradients averaged by hand.
RANKS = (
    _HEAD
    + """
import torch.multiprocessing as mp


def train(rank, shared):
    torch.manual_seed(rank)
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = 0
    for step in range(30):
        x = torch.randn(8, 4)
        loss = net(x).square().mean() + rank
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    shared[rank] = float(total)


if __name__ == "__main__":
    mp.set_start_method("fork", force=True)
    shared = torch.zeros(2)
    workers = [mp.Process(target=train, args=(rank, shared)) for rank in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print("totals", shared.tolist())
"""
)

#: A recurrent language model with truncation, whose state is cut every second batch only.
CARRIED = (
    _HEAD
    + """
embed, cell, head = nn.Embedding(20, 8), nn.LSTM(8, 16), nn.Linear(16, 20)
parameters = [*embed.parameters(), *cell.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.5)
text = torch.randint(0, 20, (400,))
norm = nn.BatchNorm1d(16)
state = None
perplexity = []
for start in range(0, 396, 6):
    x, y = text[start:start + 6], text[start + 1:start + 7]
    if start % 24 == 0:
        state = None
    out, state = cell(embed(x).unsqueeze(1), state)
    out = norm(out.squeeze(1))
    loss = F.cross_entropy(head(out), y)
    optimizer.zero_grad()
    # Here it comes.
    loss.backward()
    optimizer.step()
    perplexity.append(math.exp(loss.item()))
"""
)

#: Evaluates by batches whose number nobody tells; nothing is printed.
QUIET = (
    _HEAD
    + """
net = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
test = [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(6)]


def evaluate():
    net.eval()
    right = 0
    for x, y in test:
        out = net(x)
        right += (out.argmax(1) == y).sum().item()
    net.train()
    return right / 24


scores = []
for step in range(40):
    optimizer.zero_grad()
    F.cross_entropy(net(torch.randn(4, 6)), torch.randint(0, 3, (4,))).backward()
    optimizer.step()
    if step % 3 == 2:
        scores.append(evaluate())
"""
)

#: Stops before anything is computed.
EARLY = (
    _HEAD
    + """
from torch.utils.data import Dataset
weights = torch.zeros(3).no_such_form()
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    net(torch.randn(2, 3)).mean().backward()
    optimizer.step()
"""
)

#: Conditions of all kinds, of which a short run takes one side.
SIDES = (
    _HEAD
    + """
import collections


def scaled(x, scale=None):
    return x * scale if scale is not None else x


net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
recent = collections.deque(maxlen=200)
hooks = [net.weight.register_hook(lambda grad: grad * 0.5 if grad.norm() > 1e6 else grad)]
left = 30
for step in range(30):
    left -= 1
    x = torch.randn(5, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=step >= 0):
        parts = [scaled(net(x)).square().mean(), net.weight.square().mean()]
    kept = [part for part in parts if part is not None and part.requires_grad]
    loss = sum(kept) / len(kept)
    if not torch.isfinite(loss): net.zero_grad()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    width = min(left, 500)
    try:
        ratio = 1 / (1 + width)
    except ValueError:
        ratio = 0
    except ZeroDivisionError:
        ratio = 1
    match step:
        case n if n % 1000 == 999: recent.clear()
        case _: recent.append(ratio)
"""
)
