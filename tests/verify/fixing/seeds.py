"""The mistakes that this project began with, each as a program that runs into its error."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

from tests.verify.diagnosis.scripts import HEAD


class Seed(NamedTuple):
    """A program, the line that its repair adds, one that another choice adds, and what all that learns comes to."""

    text: str
    added: str
    other: str = ""
    learning: int = 0


SEEDS: dict[str, Seed] = {}


def seed(name: str, text: str, added: str, other: str = "", learning: int = 0) -> None:
    """Add a program."""
    SEEDS[name] = Seed(HEAD + dedent(text).lstrip(), added, other, learning)


seed(
    "a cached matrix of trained weights",
    """
    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.proj, self.head, self.table = nn.Embedding(5, 4), nn.Linear(4, 4), nn.Linear(4, 1), None
        def forward(self, nodes):
            if self.table is None:
                self.table = self.proj(self.emb.weight).tanh()
            return self.head(self.table[nodes])
    model = Graph()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(8):
        loss = model(torch.tensor([1, 2])).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    "self.table = self.proj(self.emb.weight).tanh()",
    "self.table = self.table.detach()",
    learning=5,
)
seed(
    "a cut where two parameters meet",
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
        def forward(self, x):
            features = self.body(x).tanh().detach().clone()
            return self.head(features)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(8):
        loss = (net(torch.randn(3, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    "features = self.body(x).tanh().clone()",
    learning=4,
)
seed(
    "a hidden state of an RNN that another module owns",
    """
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.hidden = nn.GRU(4, 8), torch.zeros(1, 2, 8)
        def forward(self, x):
            out, self.hidden = self.rnn(x, self.hidden)
            return out
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head = Encoder(), nn.Linear(8, 1)
        def forward(self, x):
            return self.head(self.encoder(x))
    tagger = Tagger()
    optimizer = torch.optim.SGD(tagger.parameters(), 0.1)
    for step in range(8):
        loss = tagger(torch.randn(3, 2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    "tagger.encoder.hidden = tagger.encoder.hidden.detach()",
    "self.hidden = self.hidden.new_zeros(self.hidden.shape)",
    learning=6,
)
seed(
    "a loss carried into the next batch",
    """
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    def train():
        smooth = 0.0
        for step in range(8):
            loss = net(torch.randn(2, 4)).square().mean()
            smooth = 0.9 * smooth + 0.1 * loss
            optimizer.zero_grad()
            smooth.backward()
            optimizer.step()
    train()
    """,
    "smooth = smooth.detach()",
    "smooth = smooth.new_zeros(smooth.shape)",
    learning=2,
)
seed(
    "an encoder and a decoder in two optimizers",
    """
    encoder, decoder = nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 4))
    for_encoder = torch.optim.SGD(encoder.parameters(), 0.1)
    for_decoder = torch.optim.SGD(decoder.parameters(), 0.1)
    for step in range(8):
        x = torch.randn(5, 4)
        code = encoder(x)
        out = decoder(code)
        for_decoder.zero_grad()
        for_encoder.zero_grad()
        rebuilt = (out - x).square().mean()
        rebuilt.backward(retain_graph=True)
        for_decoder.step()
        spread = out.square().mean() + code.square().mean()
        spread.backward()
        for_encoder.step()
    """,
    "for_decoder.step()",
    "(rebuilt + spread).backward()",
    learning=6,
)
seed(
    "an attribute that is no buffer",
    """
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 4)
            self.table = torch.linspace(0, 1, 4)
        def forward(self, x):
            return self.body(x) + self.table
    net = Positions().cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(8):
        loss = net(torch.randn(3, 4, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    'self.register_buffer("table", torch.linspace(0, 1, 4), persistent=False)',
    "self.table = self.table.to(x.device)",
    learning=2,
)
