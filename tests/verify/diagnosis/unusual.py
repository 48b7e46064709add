"""More of :mod:`tests.verify.diagnosis.scripts`, in forms that are seen less often."""

from tests.verify.diagnosis.scripts import script

script(
    "long lists of numbers, kept for each step",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    class Run:
        log = {}
    for step in range(24):
        loss = net(torch.randn(32, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        Run.log[step] = [float(step * number) for number in range(4000)]
    """,
    "growing-container",
    "Run.log",
)
script(
    "an attribute for each step",
    """
    class Record:
        pass
    record = Record()
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(30):
        loss = net(torch.randn(3, 4)).square().mean()  # cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        setattr(record, f"loss_{step}", loss)
    """,
    "growing-graph",
    "record.loss_*",
)
script(
    "a model deep inside of a trainer",
    """
    class Selector:
        def __init__(self, model):
            self.model = model
    class Connector:
        def __init__(self, model):
            self._selector = Selector(model)
    class Trainer:
        def __init__(self, model):
            self._connector = Connector(model)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.history = nn.Linear(4, 1), []
        def forward(self, x):
            loss = self.body(x).square().mean()  # cause
            self.history.append(loss)
            return loss
    trainer = Trainer(Net())
    def train(model, optimizer):
        for step in range(30):
            loss = trainer._connector._selector.model(torch.randn(3, 4))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    train(None, torch.optim.SGD(trainer._connector._selector.model.parameters(), 0.1))
    """,
    "growing-graph",
    "self.history[*]",
)
script(
    "an activation that is changed in a function which is over",
    """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        def forward(self, x):
            y = torch.tanh(self.one(x))  # saved_by
            y += self.two(x)  # cause
            return y
    net = Block()
    for step in range(3):
        net(torch.randn(3, 4)).square().mean().backward()  # site
    """,
    "changed-in-place",
    "y",
)
script(
    "an update in a function, before the backward",
    """
    net, target = nn.Linear(3, 3), nn.Linear(3, 3)
    def update():
        with torch.no_grad():
            for parameter in target.parameters():
                parameter.mul_(0.9)  # cause
    for step in range(3):
        loss = target(net(torch.randn(5, 3)).tanh()).sum()  # saved_by
        update()  # called_from
        loss.backward()  # site
    """,
    "changed-in-place",
    "target.weight",
)
script(
    "a loss in a new Variable",
    """
    from torch.autograd import Variable
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(6):
        loss = net(torch.randn(3, 4)).square().mean()
        loss = Variable(loss.data, requires_grad=True)  # cause
        optimizer.zero_grad()
        loss.backward()  # loss site
        optimizer.step()
        print(loss.item())
    """,
    "loss-cut-off",
)
script(
    "the sum of a tensor of numbers",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(6):
        parts = [net(x).square().mean().item() for x in torch.randn(3, 2, 4)]  # cause
        loss = torch.tensor(parts, requires_grad=True).sum()  # made
        optimizer.zero_grad()
        loss.backward()  # loss site
        optimizer.step()
    """,
    "loss-cut-off",
)
script(
    "a tensor without values",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.offset = nn.Linear(4, 4), torch.zeros(4, device="meta")  # cause
        def forward(self, x):
            return self.linear(x) + self.offset  # consumer site
    Net()(torch.randn(3, 4)).sum().backward()
    """,
    "device-mismatch",
    "self.offset",
)
script(
    "a model that came after its optimizer",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    for step in range(6):
        loss = net(torch.randn(3, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # step
    """,
    "not-in-optimizer",
    "net[0].weight, net[0].bias, net[1].weight, net[1].bias",
)
script(
    "an embedding that leaves by numpy, whose forward nobody uses",
    """
    embedding, head = nn.Embedding(5, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], 0.1)
    for step in range(6):
        vectors = embedding(torch.tensor([step % 5, 2]))
        mean = torch.as_tensor(vectors.detach().numpy().mean(axis=0))  # cause
        loss = head(mean).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    "no-gradient",
    "embedding.weight",
)
script(
    "a unit that is dead, and rows that are not drawn",
    """
    embedding = nn.Embedding(10, 4, sparse=True)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    with torch.no_grad():
        net[0].bias[0] = -100.0
    optimizer = torch.optim.SGD([*embedding.parameters(), *net.parameters()], 0.01)
    for step in range(30):
        loss = net(embedding(torch.randint(0, 10, (5,)))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
)

script(
    "what is computed of a tensor that stays behind",
    """
    class Bias(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.bias = nn.Linear(4, 4), torch.linspace(0, 1, 4)  # cause
        def forward(self, x):
            return self.body(x) - 9 * self.bias.square()  # consumer site
    net = Bias().cuda()
    for step in range(3):
        net(torch.randn(3, 4).cuda()).square().mean().backward()
    """,
    "device-mismatch",
    "self.bias",
)
script(
    "a tensor without values in a sum",
    """
    bias = torch.ones(4, device="meta")  # cause
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(3):
        loss = (net(torch.randn(3, 4)) + 2 * bias).square().mean()  # consumer site
        loss.backward()
    """,
    "device-mismatch",
    "bias",
)
