"""What attached-bootstrap-target finds and leaves alone."""

from __future__ import annotations

from tests.rules.tools import sited

RULE = "attached-bootstrap-target"
HEAD = """\
import copy

import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self, outputs=3):
        super().__init__()
        self.a = nn.Linear(4, 16)
        self.b = nn.Linear(16, outputs)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))

net = Net()
other = Net()
other.load_state_dict(net.state_dict())
opt = torch.optim.Adam(net.parameters())
gamma = 0.99

def batch():
    return torch.randn(8, 4), torch.randint(0, 3, (8, 1)), torch.randn(8, 1), torch.randn(8, 4), torch.zeros(8, 1)

def learn(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

FOUND = {
    "the network's own best value": (
        """
        for _ in range(50):
            s, a, r, s2, done = batch()
            q = net(s).gather(1, a)
            y = r + gamma * net(s2).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(q, y))
        """,
        "y = r + gamma * net(s2).max(1)[0].unsqueeze(1)",
        "y = (r + gamma * net(s2).max(1)[0].unsqueeze(1)).detach()",
    ),
    "the other side of the loss": (
        """
        criterion = nn.SmoothL1Loss()
        for _ in range(50):
            s, a, r, s2, done = batch()
            best = torch.amax(net(s2), 1, keepdim=True)
            y = gamma * best * (1 - done) + r
            learn(criterion(y, net(s).gather(1, a)))
        """,
        "y = gamma * best * (1 - done) + r",
        "y = (gamma * best * (1 - done) + r).detach()",
    ),
    "a value without actions, at the end of episodes": (
        """
        value = Net(1)
        opt = torch.optim.SGD(value.parameters(), lr=0.1)
        for _ in range(50):
            s, a, r, s2, done = batch()
            error = r + gamma * (1 - done) * value(s2) - value(s)
            loss = error.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
        "error = r + gamma * (1 - done) * value(s2) - value(s)",
        "error = (r + gamma * (1 - done) * value(s2)).detach() - value(s)",
    ),
    "an environment's reward": (
        """
        import gymnasium

        env = gymnasium.make("CartPole-v1")
        value = Net(1)
        opt = torch.optim.SGD(value.parameters(), lr=0.1)
        s = torch.as_tensor(env.reset()[0])
        for _ in range(50):
            s2, r, ended, cut, about = env.step(env.action_space.sample())
            s2 = torch.as_tensor(s2)
            error = r + gamma * value(s2) - value(s)
            loss = torch.mean(error) ** 2
            opt.zero_grad()
            loss.backward()
            opt.step()
            s = s2
        """,
        "error = r + gamma * value(s2) - value(s)",
        "error = (r + gamma * value(s2)).detach() - value(s)",
    ),
    "a copy that nobody trains": (
        """
        for i in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * other(s2).max(1)[0].unsqueeze(1) * (1 - done)
            learn(F.smooth_l1_loss(net(s).gather(1, a), y))
            if i % 10 == 0:
                other.load_state_dict(net.state_dict())
        """,
        "y = r + gamma * other(s2).max(1)[0].unsqueeze(1) * (1 - done)",
        "y = (r + gamma * other(s2).max(1)[0].unsqueeze(1) * (1 - done)).detach()",
    ),
    "a copy whose values are written into a table": (
        """
        for i in range(50):
            s, a, r, s2, done = batch()
            q = net(s)
            y = q.data.clone()
            y[torch.arange(8), a.squeeze(1)] = r.squeeze(1) + gamma * torch.max(other(s2), 1)[0]
            learn(F.mse_loss(q, y))
        """,
        "y[torch.arange(8), a.squeeze(1)] = r.squeeze(1) + gamma * torch.max(other(s2), 1)[0]",
        "y[torch.arange(8), a.squeeze(1)] = (r.squeeze(1) + gamma * torch.max(other(s2), 1)[0]).detach()",
    ),
    "a copy of the prediction, one value after the other": (
        """
        for _ in range(50):
            s, a, r, s2, done = batch()
            pred = net(s)
            y = pred.clone()
            for i in range(len(done)):
                new = r[i]
                if not done[i]:
                    new = r[i] + gamma * torch.max(net(s2[i]))
                y[i][torch.argmax(a[i]).item()] = new
            learn(F.mse_loss(y, pred))
        """,
        "y[i][torch.argmax(a[i]).item()] = new",
        "new = (r[i] + gamma * torch.max(net(s2[i]))).detach()",
    ),
    "a copy of the prediction with one value": (
        """
        for _ in range(50):
            s, a, r, s2, done = batch()
            pred = net(s[0])
            y = pred.clone()
            y[0] = r[0] + gamma * torch.max(net(s2[0]))
            learn(F.mse_loss(pred, y))
        """,
        "y[0] = r[0] + gamma * torch.max(net(s2[0]))",
        "y[0] = (r[0] + gamma * torch.max(net(s2[0]))).detach()",
    ),
    "a teacher that was loaded": (
        """
        for i in range(50):
            x = torch.randn(8, 4)
            wanted = other(x)
            learn(F.mse_loss(net(x), wanted))
        """,
        "wanted = other(x)",
    ),
    "in a class": (
        """
        class Agent:
            def __init__(self):
                self.net, self.old = Net(), Net()
                self.old.load_state_dict(self.net.state_dict())
                self.opt = torch.optim.Adam(self.net.parameters())

            def update(self, s, a, r, s2, done):
                chosen = self.net(s).gather(1, a)
                following = self.old(s2).max(1).values.unsqueeze(1)
                wanted = r + gamma * (1 - done) * following
                loss = F.mse_loss(chosen, wanted)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()

        agent = Agent()
        for i in range(50):
            agent.update(*batch())
        """,
        "wanted = r + gamma * (1 - done) * following",
        "wanted = (r + gamma * (1 - done) * following).detach()",
    ),
}

LEFT = {
    "how far a mixture is from its own mean": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            mixed = net(s) * (1 - done) + s.mean() * done
            learn((mixed - mixed.mean(0)).pow(2).mean())
        """,
    "the copy computes it of something that is learned too": """
        prompt = torch.zeros(8, 4, requires_grad=True)
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * other(s2 + prompt).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(net(s).gather(1, a), y))
            prompt = (prompt - prompt.grad).detach().requires_grad_()
        """,
    "a hook looks at the gradients of the copy": """
        other.a.weight.register_hook(print)
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * other(s2).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(net(s).gather(1, a), y))
        """,
    "a factor within a function that bounds": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + torch.sigmoid(gamma * net(s2).max(1)[0].unsqueeze(1))
            learn(F.mse_loss(net(s).gather(1, a), y))
        """,
    "a copy of the prediction with a detached value": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            pred = net(s[0])
            y = pred.clone()
            y[0] = r[0] + gamma * torch.max(net(s2[0])).detach()
            learn(F.mse_loss(pred, y))
        """,
    "a copy of the prediction with what is computed of it": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            pred = net(s[0])
            y = pred.clone()
            y[0] = r[0] + gamma * torch.max(pred)
            learn(F.mse_loss(pred, y))
        """,
    "a copy of the prediction": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            pred = net(s[0])
            learn(F.mse_loss(pred, pred.clone()))
        """,
    "detached": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * net(s2).max(1)[0].unsqueeze(1).detach()
            learn(F.mse_loss(net(s).gather(1, a), y))
        """,
    "detached at the loss": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * net(s2).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(net(s).gather(1, a), y.detach()))
        """,
    "without gradients": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            with torch.no_grad():
                y = r + gamma * other(s2).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(net(s).gather(1, a), y))
        """,
    "a frozen copy": """
        other.requires_grad_(False)
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * other(s2).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(net(s).gather(1, a), y))
        """,
    "a step of an integrator": """
        flow = Net(4)
        opt = torch.optim.Adam(flow.parameters())
        for _ in range(50):
            x, y = torch.randn(8, 4), torch.randn(8, 4)
            loss = F.mse_loss(flow(y), x + 0.1 * flow(x))
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "two views that shall agree": """
        for _ in range(50):
            x = torch.randn(8, 4)
            learn(F.mse_loss(net(x), net(x + 0.1)))
        """,
    "another optimizer trains the other network": """
        second = torch.optim.Adam(other.parameters())
        for _ in range(50):
            s, a, r, s2, done = batch()
            loss = F.mse_loss(net(s).gather(1, a), r + gamma * other(s2).max(1)[0].unsqueeze(1))
            opt.zero_grad()
            second.zero_grad()
            loss.backward()
            opt.step()
            second.step()
        """,
    "the copy's gradients are read": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * other(s2).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(net(s).gather(1, a), y))
            print(other.a.weight.grad.norm())
        """,
    "trained by hand": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * other(s2).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(net(s).gather(1, a), y))
            for p in other.parameters():
                p.data -= 0.01 * p.grad
        """,
    "the copy goes where nobody sees": """
        from trainers import register

        register(other)
        for _ in range(50):
            s, a, r, s2, done = batch()
            y = r + gamma * other(s2).max(1)[0].unsqueeze(1)
            learn(F.mse_loss(net(s).gather(1, a), y))
        """,
    "features of a network behind another": """
        decoder = Net(4)
        opt = torch.optim.Adam(decoder.parameters())
        for _ in range(50):
            x = torch.randn(8, 4)
            loss = F.mse_loss(decoder(other(x)), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a network that was forgotten": """
        fresh = Net()
        for _ in range(50):
            x = torch.randn(8, 4)
            learn(F.mse_loss(net(x), fresh(x)))
        """,
    "an advantage that weighs": """
        value = Net(1)
        opt = torch.optim.Adam([*net.parameters(), *value.parameters()])
        for _ in range(50):
            s, a, r, s2, done = batch()
            better = r + gamma * (1 - done) * value(s2).detach() - value(s)
            loss = -(better.detach() * F.log_softmax(net(s), 1)).mean() + better.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a difference that is a direction": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            gap = r + gamma * (1 - done) * net(s2) - net(s)
            learn(gap.mean())
        """,
    "a gradient of a gradient": """
        for _ in range(50):
            s, a, r, s2, done = batch()
            loss = F.mse_loss(net(s).gather(1, a), r + gamma * net(s2).max(1)[0].unsqueeze(1))
            opt.zero_grad()
            loss.backward(create_graph=True)
            opt.step()
        """,
}

told, test_found, test_left = sited(RULE, HEAD, FOUND, LEFT)


WRITTEN = sum(len(program) > 2 for program in FOUND.values())
