"""What inplace-activation finds and leaves alone."""

from __future__ import annotations

from tests.rules.tools import LEARNING, sited

RULE = "inplace-activation"
HEAD = (
    LEARNING
    + """
import torch.nn.functional as F

layer = nn.Linear(4, 2)
norm = nn.BatchNorm1d(2)
opt = torch.optim.Adam([*layer.parameters(), *norm.parameters(), *net.parameters()])
"""
)

FOUND = {
    "an output that sigmoid keeps": (
        """
        for x, y in batches():
            h = torch.sigmoid(layer(x))
            h += y
            learn(criterion(h, y))
        """,
        "h += y",
    ),
    "an output of softmax that is masked": (
        """
        for x, y in batches():
            p = F.softmax(layer(x), dim=1)
            p.masked_fill_(y > 0, 0.0)
            learn(criterion(p, y))
        """,
        "p.masked_fill_(y > 0, 0.0)",
    ),
    "an element of an output": (
        """
        for x, y in batches():
            p = layer(x).exp()
            p[:, 0] = 0
            learn(criterion(p, y))
        """,
        "p[:, 0] = 0",
    ),
    "an input that a norm keeps": (
        """
        act = nn.ReLU(inplace=True)
        for x, y in batches():
            h = layer(x)
            out = norm(h)
            learn(criterion(out + act(h), y))
        """,
        "learn(criterion(out + act(h), y))",
    ),
    "a flag of a function": (
        """
        for x, y in batches():
            h = torch.tanh(layer(x))
            learn(criterion(F.relu(h, inplace=True), y))
        """,
        "learn(criterion(F.relu(h, inplace=True), y))",
    ),
    "a state in a table": (
        """
        cell = nn.Linear(4, 4)
        opt = torch.optim.Adam(cell.parameters())
        for x, y in batches():
            h = torch.zeros(6, 16, 4)
            for t in range(1, 5):
                h[t] = torch.tanh(cell(h[t - 1]) + x)
            learn(h.sum())
        """,
        "h[t] = torch.tanh(cell(h[t - 1]) + x)",
    ),
    "a factor of a product": (
        """
        for x, y in batches():
            a, b = layer(x), net(x)
            c = a * b
            a.add_(1)
            learn(criterion(c, y))
        """,
        "a.add_(1)",
    ),
    "in a method": (
        """
        class Gate(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 2)
                self.b = nn.Linear(4, 2)

            def forward(self, x):
                gate = torch.sigmoid(self.a(x))
                out = gate * self.b(x)
                gate *= 0.5
                return out

        gate = Gate()
        opt = torch.optim.Adam(gate.parameters())
        for x, y in batches():
            learn(criterion(gate(x), y))
        """,
        "gate *= 0.5",
    ),
    "without gradients, which counts all the same": (
        """
        for x, y in batches():
            h = torch.sigmoid(layer(x))
            with torch.no_grad():
                h.clamp_(max=0.9)
            learn(criterion(h, y))
        """,
        "h.clamp_(max=0.9)",
    ),
}

LEFT = {
    "a new tensor": """
        for x, y in batches():
            h = torch.sigmoid(layer(x))
            h = h + y
            learn(criterion(h, y))
        """,
    "an output that the layer does not keep": """
        for x, y in batches():
            h = layer(x)
            h += y
            learn(criterion(h, y))
        """,
    "an activation behind a layer": """
        act = nn.ReLU(inplace=True)
        for x, y in batches():
            learn(criterion(act(norm(layer(x))), y))
        """,
    "a flag that is false": """
        act = nn.ReLU(inplace=False)
        for x, y in batches():
            h = layer(x)
            out = norm(h)
            learn(criterion(out + act(h), y))
        """,
    "a flag that cannot be seen": """
        import sys

        act = nn.ReLU(inplace=len(sys.argv) > 1)
        for x, y in batches():
            h = layer(x)
            out = norm(h)
            learn(criterion(out + act(h), y))
        """,
    "dropout, which may be switched off": """
        drop = nn.Dropout(0.5, inplace=True)
        for x, y in batches():
            learn(criterion(drop(torch.tanh(layer(x))), y))
        """,
    "after the backward": """
        for x, y in batches():
            h = torch.sigmoid(layer(x))
            learn(criterion(h, y))
            h += y
        """,
    "a copy": """
        for x, y in batches():
            h = torch.sigmoid(layer(x))
            kept = h.clone()
            kept += y
            learn(criterion(h, y))
        """,
    "the values alone": """
        for x, y in batches():
            h = torch.sigmoid(layer(x))
            h.data.clamp_(max=0.9)
            learn(criterion(h, y))
        """,
    "an index that copies": """
        cell = nn.Linear(4, 4)
        opt = torch.optim.Adam(cell.parameters())
        for x, y in batches():
            h = cell(x)
            picked = cell(h[torch.tensor([0, 1])])
            h[2] = 0
            learn(h.sum() + picked.sum())
        """,
    "a number added to a sum": """
        for x, y in batches():
            loss = criterion(layer(x), y)
            loss += 0.1 * layer.weight.norm()
            loss /= 2
            learn(loss)
        """,
    "a backward that does not come there": """
        for x, y in batches():
            h = torch.sigmoid(layer(x))
            h += y
            learn(criterion(net(x), y))
        """,
    "an error that is expected": """
        for x, y in batches():
            h = torch.sigmoid(layer(x))
            h += y
            try:
                criterion(h, y).backward()
            except RuntimeError:
                print("as it should")
        """,
    "mutation that is allowed": """
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            for x, y in batches():
                h = torch.sigmoid(layer(x))
                h += y
                learn(criterion(h, y))
        """,
    "what a checkpoint computes anew": """
        from torch.utils.checkpoint import checkpoint

        for x, y in batches():
            h = checkpoint(lambda z: torch.sigmoid(layer(z)), x, use_reentrant=False)
            h += y
            learn(criterion(h, y))
        """,
    "a layer whose weights are frozen": """
        fixed = nn.Linear(2, 2)
        fixed.requires_grad_(False)
        for x, y in batches():
            h = layer(x)
            out = fixed(h)
            h += 1
            learn(criterion(out + h, y))
        """,
}

told, test_found, test_left = sited(RULE, HEAD, FOUND, LEFT)
