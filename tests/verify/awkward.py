"""Scripts whose numbers go many ways: loaders, files of libraries, other programs, averages, process groups."""

from __future__ import annotations

from tests.verify.hands import _HEAD as HEAD

#: batches by loaders with samplers, a scheduler by validation, best weights
LOADED = (
    HEAD
    + """
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler


class Points(Dataset):
    def __init__(self, count):
        self.x, self.y = torch.randn(count, 5), torch.randint(0, 3, (count,))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def joined(samples):
    return torch.stack([x for x, _ in samples]), torch.stack([y for _, y in samples])


data, held = Points(66), Points(34)
sampler = WeightedRandomSampler(torch.ones(66), 66)
train = DataLoader(data, batch_size=4, sampler=sampler, collate_fn=joined, drop_last=False)
test = DataLoader(held, batch_size=8, shuffle=False, drop_last=False)
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, amsgrad=False)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", patience=8)
best, lowest = None, math.inf
for epoch in range(30):
    for x, y in train:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in test:
            total += F.cross_entropy(net(x), y, reduction="sum").item()
            count += len(y)
    plateau.step(total / count)
    if epoch % 2 == 0:
        lowest = total / count
        best = copy.deepcopy(net.state_dict())
"""
)
#: One sample at a time, snapshots, numbers by many ways out
WRITING = (
    HEAD
    + """
import gzip, logging, sqlite3, struct, subprocess
from pathlib import Path

logging.basicConfig(filename="train.log", level=logging.INFO, format="%(message)s")
log = logging.getLogger("train")
base = sqlite3.connect("runs.db")
base.execute("create table run (step integer, loss real)")
table = np.memmap("curve.bin", dtype="float32", mode="w+", shape=(40,))
net = nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
criterion = nn.MSELoss(reduction="mean")
snapshots = []
right = 0
for step in range(40):
    x, y = torch.randn(1, 6), torch.randn(1, 2)
    loss = criterion(net(x).mean(1), y.mean(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()
    right += value < 1
    snapshots.append(net.weight.detach().clone())
    log.info("loss %.4f", value)
    base.execute("insert into run values (?, ?)", (step, value))
    base.commit()
    table[step] = value
    table.flush()
    os.write(1, f"step {step} loss {value:.5f}\\n".encode())
    with gzip.open("all.gz", "at") as file:
        file.write(f"{value:.5f}\\n")
    Path("raw.bin").write_bytes(struct.pack("<f", value))
    sys.stderr.write(f"rate {right / (step + 1):.0f}\\n")
    if step % 5 == 4:
        child = "import sys; open('child.txt', 'a').write(sys.stdin.read())"
        subprocess.run([sys.executable, "-c", child], input=f"{value}\\n", text=True)
    try:
        np.save("value.npy", np.array([value, step]))
    except Exception:
        pass
    print("improved" if value < 1 else "no better")
"""
)
#: No optimizer of torch's
OWN = (
    HEAD
    + """
from torch.func import functional_call, grad

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
weights = {name: value.detach().clone() for name, value in net.named_parameters()}
speed = {name: torch.zeros_like(value) for name, value in weights.items()}


def objective(weights, x, y):
    return (functional_call(net, weights, (x,)) - y).square().mean()


slopes = grad(objective)
for step in range(12):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    for name, slope in slopes(weights, x, y).items():
        speed[name] = 0.9 * speed[name] + slope
        weights[name] = weights[name] - 0.05 * speed[name]
"""
)
BYHAND = (
    HEAD
    + """
class SGD:
    __slots__ = ("parameters", "rate", "speed", "count")

    def __init__(self, parameters, rate):
        self.parameters, self.rate, self.count = list(parameters), rate, 0
        self.speed = [torch.zeros_like(each) for each in self.parameters]

    def step(self):
        self.count += 1
        with torch.no_grad():
            for each, speed in zip(self.parameters, self.speed):
                speed.mul_(0.5).add_(each.grad)
                each -= self.rate * speed
                each.grad.zero_()


net = nn.Linear(4, 1)
optimizer = SGD(net.parameters(), 0.05)
for step in range(14):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    F.mse_loss(net(x), y).backward()
    optimizer.step()
"""
)
#: averaged weights, own running statistics, an ending of its own
SWA = (
    HEAD
    + """
import atexit
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn


class Center(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
        self.center = torch.zeros(3)
        self.seen = 0
        self.register_buffer("limits", torch.zeros(3), persistent=False)

    def forward(self, x):
        out = self.body(x)
        if self.training:
            self.seen += len(x)
            self.center = 0.9 * self.center + 0.1 * out.detach().mean(0)
            self.limits = torch.maximum(self.limits, out.detach().amax(0))
        return out


def finish():
    with open("final.json", "w") as file:
        json.dump({"seen": net.seen, "center": net.center.tolist()}, file)


net = Center()
averaged = AveragedModel(net)
groups = [{"params": net.body[0].parameters(), "weight_decay": 1e-4}, {"params": net.body[4].parameters()}]
optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True)
swa = SWALR(optimizer, swa_lr=0.01, anneal_epochs=3)
loader = [(torch.randn(6, 6), torch.randint(0, 3, (6,))) for _ in range(3)]
atexit.register(finish)
for epoch in range(5):
    net.train()
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    if epoch >= 2:
        averaged.update_parameters(net)
        swa.step()
update_bn([x for x, _ in loader], averaged)
"""
)
#: caught errors and endings
ENDING = (
    HEAD
    + """
net = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=6)
slow = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, slow], milestones=[6])
rng = np.random.default_rng(0)
numbers = random.Random(1)
counts = {"steps": 0, "skipped": 0}


def save(name):
    torch.save({"net": net.state_dict(), "counts": counts}, name)


def main():
    for epoch in range(4):
        order = list(range(6))
        numbers.shuffle(order)
        for index in order:
            x = torch.from_numpy(rng.normal(size=(4, 3))).float() + index
            try:
                loss = net(x).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                counts["steps"] += 1
            except RuntimeError:
                counts["skipped"] += 1
            try:
                schedule.step()
            except Exception:
                pass
        try:
            save("last.pt")
        except Exception:
            pass
        with open("log.csv", "a") as file:
            file.write(f"{epoch},{loss.item():.4f}\\n")
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except Exception:
        code = 1
    os._exit(code)
"""
)
#: A process group, buffers and a penalty
GROUP = (
    HEAD
    + """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=None), nn.SiLU())
net = DistributedDataParallel(nn.Sequential(body, nn.Linear(8, 2)))
optimizer = torch.optim.Rprop(net.parameters(), lr=1e-3)
norms = []
net.module[1].weight.register_hook(lambda grad: norms.append(float(grad.norm())) or grad)
for step in range(25):
    x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
    loss = F.cross_entropy(net(x), y) + 1e-3 * sum(p.square().sum() for p in body.parameters())
    optimizer.zero_grad()
    loss.backward()
    mean = loss.detach().clone()
    dist.all_reduce(mean, op=dist.ReduceOp.SUM)
    mean /= dist.get_world_size()
    optimizer.step()
    if dist.get_rank() == 0 and step % 4 == 3:
        print("mean", round(mean.item(), 3), "norm", round(norms[-1], 3))
dist.destroy_process_group()
"""
)
