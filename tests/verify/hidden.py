"""Scripts in which a wrong change can hide: settings, texts, fallbacks, what gives back most values as they were."""

from __future__ import annotations

_HEAD = """\
import contextlib, csv, functools, itertools, json, os, pickle, random, subprocess, sys, threading
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
"""

#: A classifier that is told everything by a dictionary of settings.
CLASSIFIER = (
    _HEAD
    + """
from torch.utils.data import DataLoader, Dataset

settings = {"rate": 0.1, "smooth": 0.1, "epochs": 10}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Data(Dataset):
    def __init__(self, count, noise=0.1):
        self.x = torch.randn(count, 8)
        self.y = (self.x.sum(1) > 0).long() + (self.x[:, 0] > 0).long()
        self.noise = noise

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        x = self.x[index]
        return x + self.noise * torch.randn_like(x), self.y[index], f"name {index}"


def groups(model, decay=1e-4):
    plain = [p for n, p in model.named_parameters() if n.endswith("bias")]
    rest = [p for n, p in model.named_parameters() if not n.endswith("bias")]
    return [{"params": rest, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}]


def careful(step):
    try:
        step()
    except RuntimeError:
        print("left out")


model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)).to(device)
train = DataLoader(Data(64), batch_size=8, shuffle=True)
optimizer = torch.optim.AdamW(groups(model, decay=settings.get("decay", 1e-3)), lr=settings["rate"])
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 ** (step // 30))
best = 0
history = {}
for epoch in range(settings["epochs"]):
    for x, y, names in train:
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(model(x), y, label_smoothing=settings.get("smooth", 0))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        history[epoch] = {"loss": loss.item(), "names": list(names)}
"""
)

#: Batches from a thread, and all that is written about them.
FEED = (
    _HEAD
    + """
import queue


def produce(out, count):
    numbers = torch.Generator().manual_seed(7)
    for _ in range(count):
        out.put((torch.randn(4, 6, generator=numbers), torch.randn(4, 2, generator=numbers)))
    out.put(None)


seen = set()
waiting = queue.Queue(maxsize=8)
threading.Thread(target=produce, args=(waiting, 30), daemon=True).start()
net = nn.Sequential(nn.Linear(6, 10), nn.LayerNorm(10), nn.GELU(), nn.Linear(10, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
order = itertools.cycle([0, 1, 2])
letters = iter("abcdefghij" * 10)
log = open("log.csv", "w", newline="")
writer = csv.writer(log)
step = 0
while True:
    item = waiting.get()
    if item is None:
        break
    x, y = item
    loss = F.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    which = next(order)
    seen.add(f"{step} of {which}")
    writer.writerow([step, f"{loss.item():.5f}", next(letters)])
    log.flush()
    if step % 8 == 7:
        kept = {"arch": "small", "classes": ["a", "b"], "means": np.arange(3) * float(loss), "seen": seen}
        torch.save(kept, "kept.pt")
        with open("kept.pkl", "wb") as file:
            pickle.dump(kept, file)
    step += 1
"""
)

#: Saves by way of files whose names are made up, into a folder named after the time.
SAVING = (
    _HEAD
    + """
import datetime, pathlib, shutil, tempfile

runs = pathlib.Path("runs") / datetime.datetime.now().strftime("%Y%m%d-%H%M%S-%f")
runs.mkdir(parents=True)
net = nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(40):
    loss = net(torch.randn(3, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        file = tempfile.NamedTemporaryFile(delete=False, dir=".")
        torch.save(net.state_dict(), file)
        file.close()
        shutil.move(file.name, runs / "last.pt")
    if step > 50:
        print("late")
"""
)
