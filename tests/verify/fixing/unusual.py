"""More of :mod:`tests.verify.fixing.faults`, in forms that are seen less often."""

from tests.verify.fixing.faults import fault

fault(
    "pairs of states in lists in a dictionary",
    """
    cells = nn.ModuleList([nn.LSTMCell(3, 4), nn.LSTMCell(4, 4)])
    opt = torch.optim.SGD(cells.parameters(), 0.1)
    book = {"states": [[(torch.zeros(2, 4), torch.zeros(2, 4))] for _ in cells]}
    for _ in range(6):
        x = torch.randn(2, 3)
        for k, cell in enumerate(cells):
            hx, cx = cell(x, book["states"][k][-1])  # cause consumer
            book["states"][k].append((hx, cx))
            x = hx
        loss = (x - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "book['states'][0][1][0]|book['states'][0][-1][0]|book['states'][0][1][1]|book['states'][1][1][0]|book['states'][1][1][1]",
    ("append((hx, cx))", "append((hx.detach(), cx.detach()))"),
)
fault(
    "a prior behind functools.partial",
    """
    prior_net, q_net = nn.Linear(2, 4), nn.Linear(4, 4)
    opt = torch.optim.SGD([*prior_net.parameters(), *q_net.parameters()], 0.1)
    def divergence(q, prior):
        return torch.nn.functional.mse_loss(q, prior)  # consumer
    prior = prior_net(torch.ones(3, 2)).sigmoid()  # cause
    criterion = functools.partial(divergence, prior=prior)
    for _ in range(5):
        loss = criterion(q_net(torch.randn(3, 4)))
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "prior",
    (
        "    loss = criterion(q_net",
        "    prior = prior_net(torch.ones(3, 2)).sigmoid()\n"
        "    criterion = functools.partial(divergence, prior=prior)\n"
        "    loss = criterion(q_net",
    ),
)
fault(
    "a gradient that a loss is made of",
    """
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(4):
        x = torch.randn(5, 3, requires_grad=True)
        energy = net(x).sum()  # cause
        force, = torch.autograd.grad(energy, x)  # freed_by
        loss = energy.pow(2) + force.pow(2).sum()  # consumer
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "energy",
    ("grad(energy, x)", "grad(energy, x, create_graph=True)"),
)
fault(
    "a buffer that __init__ registers",
    """
    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.randn(4, 2))
            self.b = nn.Parameter(torch.randn(2, 4))
            self.register_buffer("mix", self.a @ self.b)  # cause
        def forward(self, x):
            return x @ self.mix  # consumer
    m = Mixer()
    opt = torch.optim.SGD(m.parameters(), 0.01)
    for _ in range(6):
        loss = (m(torch.randn(3, 4)) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "self.mix|m.mix",
    ("        return x @ self.mix", "        self.mix = self.a @ self.b\n        return x @ self.mix"),
)
fault(
    "outputs in a log of dictionaries",
    """
    class Trainer:
        def __init__(self):
            self.net = nn.Linear(3, 3)
            self.history = []
            self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
        def step(self, x):
            out = self.net(x).tanh()  # cause
            if self.history:
                out2 = out - self.history[-1]["out"]  # consumer
            else:
                out2 = out
            loss = (out2 - 1).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()  # freed_by site
            self.opt.step()
            self.history.append({"out": out, "loss": loss.item()})
            return loss.item()
    trainer = Trainer()
    for x in torch.randn(6, 2, 3):
        print(trainer.step(x))
    """,
    "second-backward",
    "self.history[0]['out']|trainer.history[0]['out']",
    ('{"out": out,', '{"out": out.detach(),'),
)
fault(
    "weights pulled in before the backward",
    """
    net, other = nn.Linear(3, 3), nn.Linear(3, 3)
    opt = torch.optim.SGD([*net.parameters(), *other.parameters()], 0.1)
    for _ in range(4):
        x = torch.randn(5, 3)
        loss = (net(other(x).tanh()) - 1).pow(2).mean()  # saved_by
        with torch.no_grad():
            for p in net.parameters():
                p.mul_(0.99)  # cause
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "changed-in-place",
    "net.weight|p",
    ("    with torch.no_grad():\n        for p in net.parameters():\n            p.mul_(0.99)  # cause\n", ""),
    (
        "    loss.backward()  # site\n",
        "    loss.backward()\n"
        "    with torch.no_grad():\n        for p in net.parameters():\n            p.mul_(0.99)\n",
    ),
)
fault(
    "rows of a buffer that the next one reads",
    """
    cell = nn.RNNCell(2, 3)
    opt = torch.optim.SGD(cell.parameters(), 0.1)
    for _ in range(3):
        xs = torch.randn(5, 4, 2)
        hs = torch.zeros(6, 4, 3)
        for t in range(5):
            hs[t + 1] = cell(xs[t], hs[t])  # cause saved_by
        loss = (hs[1:] - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "changed-in-place",
    "hs",
    ("hs[t + 1] = cell(xs[t], hs[t])", "hs[t + 1] = cell(xs[t], hs[t].clone())"),
)
fault(
    "a gain that is updated after its use",
    """
    class Gain(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)
            self.register_buffer("gain", torch.ones(3))
        def forward(self, x):
            y = self.lin(x)
            out = y * self.gain  # saved_by
            with torch.no_grad():
                self.gain.mul_(0.9).add_(0.1 * y.abs().mean(0))  # cause
            return out
    net = Gain()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(4):
        loss = (net(torch.randn(4, 3)) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "changed-in-place",
    "net.gain",
    ("out = y * self.gain", "out = y * self.gain.clone()"),
)
fault(
    "a target that is moved before the backward",
    """
    net, target = nn.Linear(3, 2), nn.Linear(3, 2)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    def soft_update(tau):
        with torch.no_grad():
            for a, b in zip(target.parameters(), net.parameters()):
                a.lerp_(b, tau)  # cause
    for _ in range(4):
        x = torch.randn(5, 3)
        want = target(net(x) @ torch.ones(2, 3)).tanh()  # saved_by
        loss = (net(x) - want).pow(2).mean()
        soft_update(0.1)
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "changed-in-place",
    "target.weight|a",
    ("    soft_update(0.1)\n", ""),
    ("    loss.backward()  # site\n", "    loss.backward()\n    soft_update(0.1)\n"),
)
fault(
    "a row of an activation, by another name",
    """
    net = nn.Linear(3, 4)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(4):
        h = net(torch.randn(5, 3)).sigmoid()  # saved_by
        first = h[0]
        first.zero_()  # cause
        loss = h.pow(2).mean()
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "changed-in-place",
    "h|first",
    ("    first = h[0]\n", "    h = h.clone()\n    first = h[0]\n"),
)
fault(
    "a replay buffer of objects",
    """
    @dataclasses.dataclass
    class Step:
        obs: torch.Tensor
        value: torch.Tensor
        reward: float
    class Replay:
        def __init__(self):
            self.steps = collections.deque(maxlen=1000)
        def push(self, *what):
            self.steps.append(Step(*what))
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    replay = Replay()
    for i in range(30):
        obs = torch.randn(3, 4)
        value = net(obs).tanh()  # cause
        loss = (value - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        replay.push(obs, value, float(i))
    print(float(torch.stack([s.value for s in replay.steps]).mean()))
    """,
    "growing-graph",
    "replay.steps[*].value|self.steps[*].value",
    ("push(obs, value,", "push(obs, value.detach(),"),
)
fault(
    "an average by numpy",
    """
    emb, head = nn.Embedding(5, 4), nn.Linear(4, 1)
    opt = torch.optim.SGD([*emb.parameters(), *head.parameters()], 0.1)
    for i in range(6):
        vectors = emb(torch.tensor([i % 5, 2]))
        mean = torch.as_tensor(vectors.detach().numpy().mean(axis=0))  # cause
        loss = (head(mean) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    """,
    "no-gradient",
    "emb.weight",
    ("torch.as_tensor(vectors.detach().numpy().mean(axis=0))", "vectors.mean(0)"),
)
fault(
    "a loss in a new Variable",
    """
    from torch.autograd import Variable
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for i in range(6):
        loss = (net(torch.randn(3, 4)) - 1).pow(2).mean()
        loss = Variable(loss.data, requires_grad=True)  # cause
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "loss-cut-off",
    "",
    ("    loss = Variable(loss.data, requires_grad=True)  # cause\n", ""),
)
fault(
    "a sum of items",
    """
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for i in range(6):
        parts = []
        for x in torch.randn(3, 2, 4):
            parts.append((net(x) - 1).pow(2).mean().item())  # cause
        loss = torch.tensor(parts, requires_grad=True).sum()  # made
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "loss-cut-off",
    "",
    ("mean().item())", "mean())"),
    ("torch.tensor(parts, requires_grad=True)", "torch.stack(parts)"),
)
fault(
    "the gradients of one of two",
    """
    g, d = nn.Linear(2, 3), nn.Linear(3, 1)
    og, od = torch.optim.SGD(g.parameters(), 0.01), torch.optim.SGD(d.parameters(), 0.01)
    for i in range(8):
        z = torch.randn(4, 2)
        od.zero_grad()
        dl = d(g(z).detach()).mean() - d(torch.randn(4, 3)).mean()
        dl.backward()
        od.step()
        gl = -d(g(z)).mean()
        gl.backward()
        og.step()
        print(dl.item(), gl.item())
    """,
    "gradients-never-cleared",
    "",
    ("    gl.backward()", "    og.zero_grad()\n    gl.backward()"),
)
fault(
    "a teacher with gradients on",
    """
    teacher, student = nn.Linear(4, 2), nn.Linear(4, 2)
    opt = torch.optim.SGD(student.parameters(), 0.1)
    for i in range(12):
        x = torch.randn(5, 4)
        soft = teacher(x).softmax(1).detach()  # cause
        loss = torch.nn.functional.kl_div(student(x).log_softmax(1), soft, reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    """,
    "unused-forwards",
    "",
    ("    soft = teacher(x)", "    with torch.no_grad():\n        soft = teacher(x)"),
)
fault(
    # It may not go behind the backward: the second term would see what the first one saw.
    "a gain that a later term reads as it is changed",
    """
    w, gain = nn.Parameter(torch.ones(3)), torch.ones(3)
    optimizer = torch.optim.SGD([w], 0.1)
    for step in range(4):
        x = torch.randn(5, 3)
        one = (x * w * gain).square().mean()  # saved_by
        gain.mul_(0.5)  # cause
        loss = one + (x * w * gain).sum()
        optimizer.zero_grad()
        loss.backward()  # site
        optimizer.step()
        print(loss.item())
    """,
    "changed-in-place",
    "gain",
    ("gain.mul_(0.5)", "gain = gain.mul(0.5)"),
)
fault(
    # A new value for `row` would not reach `h`.
    "a row that a call selected",
    """
    net = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(4):
        h = net(torch.randn(5, 3)).sigmoid()  # saved_by
        row = h.select(0, 0)
        row.mul_(2)  # cause
        loss = h.square().mean()
        optimizer.zero_grad()
        loss.backward()  # site
        optimizer.step()
        print(loss.item())
    """,
    "changed-in-place",
    "h",
    ("    row =", "    h = h.clone()\n    row ="),
)
fault(
    "prototypes that a property computes in two statements, once",
    """
    class Prototypes:
        def __init__(self, net, data):
            self.net, self.data, self.kept = net, data, None
        @property
        def centres(self):
            if self.kept is None:
                z = self.net(self.data)
                self.kept = torch.stack([z[:2].mean(0), z[2:].mean(0)])  # cause
            return self.kept
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    prototypes = Prototypes(net, torch.randn(4, 3))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(5):
        loss = torch.cdist(net(torch.randn(6, 3)), prototypes.centres).mean()  # consumer
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "prototypes.kept",
    ("        if self.kept is None:\n            z =", "        if True:\n            z ="),
)
fault(
    "a named tuple as state, handed from call to call",
    """
    State = collections.namedtuple("State", "deter stoch")
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.GRUCell(3, 4), nn.Linear(4, 3)
        def forward(self, xs, state):
            for x in xs:
                deter = self.cell(state.stoch, state.deter)  # cause consumer
                state = State(deter, self.head(deter) + x)
            return state.stoch, state
    model = Model()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    state = State(torch.zeros(2, 4), torch.zeros(2, 3))
    for xs in torch.randn(8, 2, 3).split(2):
        out, state = model(xs, state)
        loss = out.pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "state[0]|state[1]",
    ("opt.step()", "opt.step()\n    state = State(*(part.detach() for part in state))"),
)
fault(
    "a target of style that LBFGS meets in each evaluation",
    """
    def gram(f):
        return f @ f.t()  # cause
    net = nn.Linear(4, 4)
    target = gram(net(torch.randn(4, 4)))
    image = torch.randn(4, 4, requires_grad=True)
    opt = torch.optim.LBFGS([image], max_iter=3)
    def closure():
        opt.zero_grad()
        loss = (gram(net(image)) - target).pow(2).mean()  # consumer
        loss.backward()  # freed_by site
        return loss
    for _ in range(3):
        print(opt.step(closure).item())
    """,
    "second-backward",
    "target",
    ("- target)", "- target.detach())"),
)
fault(
    "weights of edges that a module computes before the loop",
    """
    class Edges(nn.Module):
        def __init__(self):
            super().__init__()
            self.logits = nn.Parameter(torch.randn(4, 4))
        def forward(self):
            a = self.logits.sigmoid()
            return a / a.sum(1, keepdim=True)  # cause
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 2)
        def forward(self, x, adj):
            return adj @ self.a(x)  # consumer
    edges, net = Edges(), Net()
    opt = torch.optim.SGD([*edges.parameters(), *net.parameters()], 0.1)
    adj = edges()
    for _ in range(5):
        loss = net(torch.randn(4, 3), adj).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "adj",
    ("    loss = net", "    adj = edges()\n    loss = net"),
)
fault(
    "a loss that is walked once more after its gradients were read",
    """
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(4):
        loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()  # cause
        opt.zero_grad()
        loss.backward()  # freed_by
        norm = sum(p.grad.norm().item() for p in net.parameters())
        loss.backward()  # site consumer
        opt.step()
        print(loss.item(), norm)
    """,
    "second-backward",
    "loss",
    ("    loss.backward()  # site consumer\n", ""),
)
fault(
    "a sum on an object that no step resets",
    """
    class Trainer:
        def __init__(self):
            self.net, self.total = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.zeros(())
            self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
        def step(self, x):
            self.total = self.total + self.net(x).pow(2).mean()  # saved_by
            self.opt.zero_grad()
            self.total.backward(retain_graph=True)  # site
            self.opt.step()  # cause
            return self.total.item()
    trainer = Trainer()
    for _ in range(4):
        print(trainer.step(torch.randn(5, 3)))
    """,
    "changed-in-place",
    "",
    ("self.total = self.total +", "self.total = self.total.detach() +"),
)
