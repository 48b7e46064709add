"""More of :mod:`tests.verify.fixing.faults`, after what people report."""

from tests.verify.fixing.faults import fault

fault(
    "weights of an inner loop that the next task takes over",
    """
    weights = [torch.randn(1, 8).requires_grad_(), torch.randn(8, 1).requires_grad_()]
    opt = torch.optim.Adam(weights, lr=1e-2)
    def forward(x, params):
        return torch.tanh(x @ params[0]) @ params[1]  # consumer
    fast = list(weights)
    for task in range(5):
        x = torch.rand(6, 1)
        for _ in range(2):
            inner = (forward(x, fast) - x.sin()).pow(2).mean()
            grads = torch.autograd.grad(inner, fast, create_graph=True)  # consumer
            fast = [w - 0.05 * g for w, g in zip(fast, grads)]  # cause
        loss = (forward(x, fast) - x.sin()).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "",
    ("fast = list(weights)\n", ""),
    ("for task in range(5):\n", "for task in range(5):\n    fast = list(weights)\n"),
)
fault(
    "a gate that is another name of what was saved",
    """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
        def forward(self, x):
            out = torch.sigmoid(self.a(x))
            gate = out
            gate *= self.b(out)  # cause saved_by
            return gate + x
    net = nn.Sequential(Block(), Block(), nn.Linear(6, 1))
    opt = torch.optim.SGD(net.parameters(), 0.05)
    for step in range(6):
        x = torch.randn(8, 6)
        loss = (net(x).squeeze(1) - x.sum(1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "changed-in-place",
    "out",
    ("gate *= self.b(out)", "gate = gate * self.b(out)"),
)
fault(
    "an evaluation that switches gradients off for ever",
    """
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    def evaluate():
        torch.set_grad_enabled(False)
        return model(torch.ones(3, 4)).sum().item()
    def train():
        for _ in range(4):
            loss = model(torch.randn(8, 4)).pow(2).mean()  # cause
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(loss.item())
    for epoch in range(3):
        train()
        print(evaluate())
    """,
    "loss-cut-off",
    "",
    ("def evaluate():\n    torch.set_grad_enabled(False)\n", "@torch.no_grad()\ndef evaluate():\n"),
)
fault(
    "labels made of weights that nobody trains",
    """
    true_w = torch.randn(2, 1, requires_grad=True)
    inputs = torch.randn(32, 2)
    labels = inputs.mm(true_w).exp()  # cause
    w = torch.zeros(2, 1, requires_grad=True)
    for epoch in range(3):
        for chosen in torch.randperm(32).split(16):
            loss = (inputs[chosen].mm(w) - labels[chosen]).pow(2).mean()  # consumer
            loss.backward()  # freed_by site
            with torch.no_grad():
                w -= 0.03 * w.grad
                w.grad.zero_()
            print(loss.item())
    """,
    "second-backward",
    "labels",
    ("labels = inputs.mm(true_w).exp()", "labels = inputs.mm(true_w).exp().detach()"),
)
fault(
    "a layer of a class of which there are several, with a weight made once",
    """
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.raw = nn.Parameter(torch.randn(4, 4))
            self.weight = torch.linalg.qr(self.raw)[0]  # cause
        def forward(self, x):
            return x @ self.weight  # consumer
    layers = nn.ModuleList([Scaled() for _ in range(2)])
    opt = torch.optim.Adam(layers.parameters(), lr=1e-2)
    for step in range(6):
        z = torch.randn(8, 4)
        for layer in layers:
            z = layer(z)
        loss = (z - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # freed_by site
        opt.step()
        print(loss.item())
    """,
    "second-backward",
    "self.weight",
    ("    return x @ self.weight", "    self.weight = torch.linalg.qr(self.raw)[0]\n        return x @ self.weight"),
)
fault(
    "a first state that a module makes where tensors are made",
    """
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.out = nn.GRU(4, 6, batch_first=True), nn.Linear(6, 2)
        def start(self, batch):
            return torch.zeros(1, batch, 6)  # cause
        def forward(self, x):
            h, _ = self.cell(x, self.start(len(x)))  # consumer
            return self.out(h)
    model = Tagger().to("cuda")
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(4):
        loss = model(torch.randn(3, 5, 4).to("cuda")).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    """,
    "device-mismatch",
)
fault(
    "states of several languages in a dictionary",
    """
    rnns = nn.ModuleDict({lang: nn.LSTM(4, 4, batch_first=True) for lang in ("de", "fr")})
    opt = torch.optim.Adam(rnns.parameters(), lr=1e-2)
    states = {lang: None for lang in rnns}
    for batch in range(4):
        for lang in rnns:
            x = torch.randn(2, 5, 4)
            y, states[lang] = rnns[lang](x, states[lang])  # cause consumer
            loss = (y - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()  # freed_by site
            opt.step()
            print(loss.item())
    """,
    "second-backward",
    "",
    ("        loss = ", "        states[lang] = tuple(s.detach() for s in states[lang])\n        loss = "),
)
fault(
    "a block without gradients around the whole model",
    """
    class Margin(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 6))
        def forward(self, feature):
            return 8.0 * torch.tanh(feature @ self.weight.t())  # cause
    backbone, metric = nn.Linear(10, 6), Margin()
    opt = torch.optim.SGD([*backbone.parameters(), *metric.parameters()], lr=0.1)
    for step in range(8):
        x, label = torch.randn(8, 10), torch.randint(0, 4, (8,))
        with torch.no_grad():
            output = metric(backbone(x))
        loss = nn.functional.cross_entropy(output, label)
        loss.requires_grad = True
        opt.zero_grad()
        loss.backward()  # site
        opt.step()
        print(loss.item())
    """,
    "loss-cut-off",
    "",
    ("    with torch.no_grad():\n        output", "    output"),
    ("    loss.requires_grad = True\n", ""),
)
fault(
    "outputs of a step that are kept as a dictionary",
    """
    net = nn.Linear(8, 8)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    def training_step(batch):
        depth = nn.functional.softplus(net(batch))
        loss = (depth - batch.abs()).abs().mean()
        return {"loss": loss, "metrics": {"relative": (depth / (batch.abs() + 1)).mean()}}
    outputs = []
    for step in range(14):
        opt.zero_grad()
        output = training_step(torch.randn(4, 8))
        output["loss"].backward()
        opt.step()
        outputs.append(output)
        print(output["loss"].item())
    print(sum(output["metrics"]["relative"].item() for output in outputs))
    """,
    "growing-graph",
    "outputs[*]['metrics']['relative']",
    ("outputs.append(output)", "outputs.append({'metrics': {k: v.detach() for k, v in output['metrics'].items()}})"),
)
fault(
    "a mask without values",
    """
    class Causal(nn.Module):
        def __init__(self, size):
            super().__init__()
            with torch.device("meta"):
                self.bias = torch.ones(size, size).triu(1)  # cause
            self.mix = nn.Linear(size, size)
        def forward(self, x):
            return self.mix(x) - 9.0 * self.bias  # consumer site
    net = Causal(5)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        loss = net(torch.randn(5, 5)).sigmoid().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    """,
    "device-mismatch",
    "self.bias",
    ('with torch.device("meta"):', 'with torch.device("cpu"):'),
)
