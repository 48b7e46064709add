"""More of :mod:`tests.verify.fixing.faults`: graphs that objects, lists and functions hand on, and values that leave
torch."""

from tests.verify.fixing.faults import fault

fault(
    "what a critic says of the next state is what it says of this one a step later",
    """
    critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = torch.optim.SGD(critic.parameters(), 0.05)
    state = torch.randn(3)
    value = critic(state)
    for step in range(7):
        following = 0.9 * state + 0.1 * torch.randn(3)
        later = critic(following)
        loss = (state.sum() + 0.9 * later - value).pow(2).sum()  # consumer
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        state, value = following, later
        print(loss.item())
    """,
    "second-backward",
    "value",
    ("    state, value = following, later\n", "    state = following\n    value = critic(state)\n"),
)
fault(
    "what an episode chose, never cleared",
    """
    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.score = nn.Linear(4, 2), nn.Linear(4, 1)
            self.chosen, self.rewards = [], []
        def forward(self, x):
            return torch.distributions.Categorical(logits=self.body(x)), self.score(x).squeeze()
    policy = Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
    def finish():
        terms = []
        for (log_prob, value), reward in zip(policy.chosen, policy.rewards):
            terms.append((value - reward).pow(2) - log_prob * (reward - value.item()))
        loss = torch.stack(terms).sum()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        policy.rewards = []
        print(loss.item())
    for episode in range(4):
        for t in range(3):
            x = torch.randn(4)
            actions, value = policy(x)
            action = actions.sample()
            policy.chosen.append((actions.log_prob(action), value))
            policy.rewards.append(float(action == (x[0] > 0)))
        finish()
    """,
    "second-backward",
    "",
    ("    policy.rewards = []\n", "    policy.rewards = []\n    policy.chosen = []\n"),
)
fault(
    "first losses that a balancer keeps and divides by",
    """
    class Balancer(nn.Module):
        first = None
        def forward(self, losses):
            if self.first is None:
                self.first = losses
            return (losses / self.first).sum() + losses.sum()  # consumer
    trunk, left, right = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    balancer = Balancer()
    opt = torch.optim.SGD([*trunk.parameters(), *left.parameters(), *right.parameters()], 0.02)
    for step in range(5):
        h = trunk(torch.randn(8, 3)).tanh()
        losses = torch.stack([(left(h) - 1).pow(2).mean(), (right(h) + 2).pow(2).mean()])  # cause
        loss = balancer(losses)
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "self.first",
    ("    opt.step()\n", "    opt.step()\n    balancer.first = balancer.first.detach()\n"),
)
fault(
    "weights of the graph that a learned optimizer was given",
    """
    cell, out = nn.GRUCell(1, 4), nn.Linear(4, 1)
    opt = torch.optim.Adam([*cell.parameters(), *out.parameters()], lr=1e-2)
    goal = torch.randn(3)
    point, state = torch.zeros(3, requires_grad=True), torch.zeros(3, 4)
    for unroll in range(5):
        total = 0.0
        for _ in range(2):
            loss = (point - goal).pow(2).sum()
            (slope,) = torch.autograd.grad(loss, point, retain_graph=True)
            state = cell(slope.detach().reshape(-1, 1), state)
            point = point + 0.1 * out(state).reshape(3)
            total = total + loss
        opt.zero_grad()
        total.backward()  # site
        opt.step()  # cause
        print(total.item())
    """,
    "changed-in-place",
    "",
    (
        "    opt.step()  # cause\n",
        "    opt.step()\n    point, state = point.detach().requires_grad_(), state.detach()\n",
    ),
)
fault(
    "a prediction made before the closure that walks it",
    """
    coefficients = nn.Parameter(torch.tensor([0.1, 0.2, 0.3]))
    t = torch.linspace(0, 2, 12)
    opt = torch.optim.LBFGS([coefficients], lr=0.3, max_iter=3)
    for outer in range(3):
        curve = torch.stack([t**k for k in range(3)], 1).mv(coefficients).exp()  # cause
        def closure():
            opt.zero_grad()
            loss = (curve - 2).pow(2).mean()  # consumer
            loss.backward()  # freed_by site
            return loss
        print(opt.step(closure).item())
    """,
    "second-backward",
    "curve",
    ("    curve = torch", "    _ = torch"),
    (
        "        loss = (curve",
        "        curve = torch.stack([t**k for k in range(3)], 1).mv(coefficients).exp()\n        loss = (curve",
    ),
)
fault(
    "a function of points that is made before its slope is asked for in every turn",
    """
    net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    x = torch.linspace(0, 1, 9).reshape(-1, 1).requires_grad_()
    def slope(y, x):
        return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]  # site
    y = net(x)  # cause
    for step in range(6):
        loss = (slope(y, x) + 2 * y).pow(2).mean() + (net(x[:1]) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "y",
    ("y = net(x)  # cause\n", ""),
    ("for step in range(6):\n", "for step in range(6):\n    y = net(x)\n"),
)
fault(
    "a degree of a graph that a method computes once from weights that learn",
    """
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.raw, self.lin = nn.Parameter(torch.zeros(6, 6)), nn.Linear(3, 3)
            self.kept = None
        def normal(self, n):
            weight = self.raw.sigmoid()[:n, :n]
            return weight / weight.sum(1, keepdim=True)  # cause
        def forward(self, x):
            if self.kept is None:
                self.kept = self.normal(x.shape[0])
            return self.kept @ self.lin(x)  # consumer
    model = Layer()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.randn(6, 3)
    for step in range(5):
        loss = (model(x) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "self.kept",
    ("        if self.kept is None:\n            self.kept = self", "        self.kept = self"),
)
fault(
    "images that a pool keeps as the generator made them",
    """
    made, judge = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    first, second = torch.optim.SGD(made.parameters(), 0.05), torch.optim.SGD(judge.parameters(), 0.05)
    class Pool:
        def __init__(self):
            self.kept = []
        def ask(self, rows):
            self.kept = [*self.kept, rows.tanh()][-2:]
            return torch.cat(self.kept)
    pool = Pool()
    for step in range(5):
        fake = made(torch.randn(5, 3)).exp()
        wanted = (judge(fake) - 1).pow(2).mean()
        first.zero_grad()
        wanted.backward()  # freed_by
        first.step()
        loss = judge(pool.ask(fake)).pow(2).mean() + (judge(torch.randn(5, 4)) - 1).pow(2).mean()
        second.zero_grad()
        loss.backward()  # site
        second.step()
        print(wanted.item(), loss.item())
    """,
    "second-backward",
    "",
    ("pool.ask(fake)", "pool.ask(fake.detach())"),
)
fault(
    "values of a network made a tensor one by one",
    """
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(4):
        rows = [(torch.randn(3), int(torch.randint(2, ()))) for _ in range(5)]
        value = torch.tensor([net(x)[a].item() for x, a in rows], requires_grad=True)
        loss = (value - torch.stack([x.sum() for x, _ in rows])).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    """,
    "loss-cut-off",
    "",
    (
        "torch.tensor([net(x)[a].item() for x, a in rows], requires_grad=True)",
        "torch.stack([net(x)[a] for x, a in rows])",
    ),
)
fault(
    "a loss of values that is told to require a gradient",
    """
    net = nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(4):
        out = net(torch.randn(6, 4))
        loss = nn.functional.cross_entropy(out.data, torch.randint(0, 3, (6,)))
        loss.requires_grad = True
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    """,
    "loss-cut-off",
    "",
    ("out.data", "out"),
    ("    loss.requires_grad = True\n", ""),
)
fault(
    "features that pass through numpy on their way to the head",
    """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 2)
        def pooled(self, h):
            return h.detach().numpy()
        def forward(self, x):
            h = self.pooled(self.body(x).relu())
            return self.head(torch.from_numpy(h))
    model = Model()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(5):
        loss = nn.functional.cross_entropy(model(torch.randn(6, 4)), torch.randint(0, 2, (6,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    """,
    "no-gradient",
    "",
    ("h.detach().numpy()", "h"),
    ("torch.from_numpy(h)", "h"),
)
fault(
    "weights of two losses in a plain list",
    """
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk, self.heads = nn.Linear(3, 6), nn.ModuleList([nn.Linear(6, 1), nn.Linear(6, 1)])
            self.logs = [nn.Parameter(torch.zeros(())) for _ in range(2)]
        def forward(self, x):
            h = self.trunk(x).tanh()
            losses = [(head(h) - x.sum(1, keepdim=True)).pow(2).mean() for head in self.heads]
            return sum((-s).exp() * one + s for s, one in zip(self.logs, losses))
    model = Weighted()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(5):
        loss = model(torch.randn(8, 3))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    """,
    "not-in-optimizer",
    "",
    (
        "[nn.Parameter(torch.zeros(())) for _ in range(2)]",
        "nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in range(2))",
    ),
)
fault(
    "a memo by number that an object keeps",
    """
    class Finder:
        def __init__(self):
            self.encoder, self.known = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 4)), {}
        def encode(self, i):
            if i not in self.known:
                self.known[i] = self.encoder(texts[i])  # cause
            return self.known[i]
    texts = torch.randn(5, 3)
    finder = Finder()
    opt = torch.optim.SGD(finder.encoder.parameters(), 0.1)
    for step in range(5):
        found = torch.stack([finder.encode(i % 5) for i in range(step, step + 3)])
        loss = (found.sum(1) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "",
    ("        if i not in self.known:\n            self.known", "        self.known"),
)
fault(
    "two states of a cell that a model hands back in one tuple",
    """
    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.LSTMCell(2, 4), nn.Linear(4, 1)
        def forward(self, given):
            x, (h, c) = given
            h, c = self.cell(x, (h, c))
            return self.head(h), (h, c)
    agent = Agent()
    opt = torch.optim.Adam(agent.parameters(), lr=1e-2)
    for rollout in range(5):
        if rollout == 0:
            h, c = torch.zeros(1, 4), torch.zeros(1, 4)
        values = []
        for t in range(3):
            value, (h, c) = agent((torch.randn(1, 2), (h, c)))
            values.append(value)
        loss = (torch.cat(values) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "",
    ("    opt.step()\n", "    opt.step()\n    h, c = h.detach(), c.detach()\n"),
)
fault(
    "a centre that one line begins or moves on, and the step reads",
    """
    class Puller:
        centre = None
        def loss(self, h):
            self.centre = h if self.centre is None else 0.9 * self.centre + 0.1 * h  # consumer
            return (h - self.centre).pow(2).sum() + (h - 1).pow(2).sum()
    net, puller = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), Puller()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(6):
        loss = puller.loss(net(torch.randn(7, 3)).mean(0))  # cause
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "self.centre",
    ("0.9 * self.centre", "0.9 * self.centre.detach()"),
)
fault(
    "an encoder that two optimizers hold, and a step between their losses",
    """
    body, left, right = nn.Sequential(nn.Linear(4, 6), nn.Tanh()), nn.Linear(6, 1), nn.Linear(6, 2)
    one = torch.optim.SGD([*body.parameters(), *left.parameters()], 0.05)
    two = torch.optim.SGD([*body.parameters(), *right.parameters()], 0.05)
    for step in range(5):
        x = torch.randn(9, 4)
        h = body(x)  # cause
        value = (left(h) - 1).pow(2).mean()
        one.zero_grad()
        value.backward()  # freed_by
        one.step()
        choice = -right(h).log_softmax(1)[:, 0].mean()  # consumer
        two.zero_grad()
        choice.backward()  # site
        two.step()
        print(value.item(), choice.item())
    """,
    "second-backward",
    "h",
    ("    choice = -right", "    h = body(x)\n    choice = -right"),
)
fault(
    "an encoder that only the first of two optimizers holds",
    """
    body, left, right = nn.Sequential(nn.Linear(4, 6), nn.Tanh()), nn.Linear(6, 1), nn.Linear(6, 2)
    one = torch.optim.SGD([*body.parameters(), *left.parameters()], 0.05)
    two = torch.optim.SGD(right.parameters(), 0.05)
    for step in range(5):
        x = torch.randn(9, 4)
        h = body(x)  # cause
        value = (left(h) - 1).pow(2).mean()
        one.zero_grad()
        value.backward()  # freed_by
        one.step()
        choice = -right(h).log_softmax(1)[:, 0].mean()  # consumer
        two.zero_grad()
        choice.backward()  # site
        two.step()
        print(value.item(), choice.item())
    """,
    "second-backward",
    "h",
    ("-right(h)", "-right(h.detach())"),
)
