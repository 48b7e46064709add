"""What another network gives is a factor in a loss, or compared with: its gradients are computed and thrown away."""

from __future__ import annotations

import pytest

from tests.rules.tools import Told, told_of

HEAD = """\
import torch
from torch import nn
from torch.nn import functional as F

actor = nn.Sequential(nn.Linear(4, 2), nn.LogSoftmax(-1))
critic = nn.Linear(4, 2)
actor_opt = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_opt = torch.optim.SGD(critic.parameters(), lr=0.1)
batches = [(torch.randn(9, 4), torch.randint(2, (9, 1)), torch.randn(9)) for _ in range(3)]

def of(values, action):
    return values.gather(1, action).squeeze(-1)
"""

FOUND = {
    "an advantage": (
        """
for x, action, reward in batches:
    advantage = reward - of(critic(x), action)
    actor_loss = -(of(actor(x), action) * advantage).mean()
    critic_loss = advantage.pow(2).mean()
    actor_opt.zero_grad()
    actor_loss.backward(retain_graph=True)
    actor_opt.step()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
""",
        "actor_loss = -(of(actor(x), action) * advantage).mean()",
        "actor_loss = -(of(actor(x), action) * advantage.detach()).mean()",
        "actor_loss.backward()",
    ),
    "values for all actions": (
        """
for x, action, target in batches:
    critic_loss = F.mse_loss(of(critic(x), action), target)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    log_p = actor(x)
    values = critic(x)
    actor_loss = (log_p.exp() * (0.2 * log_p - values)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
""",
        "actor_loss = (log_p.exp() * (0.2 * log_p - values)).mean()",
        "actor_loss = (log_p.exp() * (0.2 * log_p - values.detach())).mean()",
    ),
    "a target that another network gives": (
        """
for x, action, reward in batches:
    wanted = critic(x)
    actor_loss = F.mse_loss(actor(x), wanted)
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic_loss = F.mse_loss(of(critic(x), action), reward)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
""",
        "actor_loss = F.mse_loss(actor(x), wanted)",
        "actor_loss = F.mse_loss(actor(x), wanted.detach())",
    ),
    "beside a cut of the same": (
        """
generator = nn.Linear(4, 4)
autoencoder = nn.Linear(4, 4)
g_opt = torch.optim.SGD(generator.parameters(), lr=0.1)
d_opt = torch.optim.SGD(autoencoder.parameters(), lr=0.1)
for x, _, _ in batches:
    fake = generator(x)
    gap = (autoencoder(fake.detach()) - fake).abs().mean()
    loss = (autoencoder(x) - x).abs().mean() - 0.1 * gap
    d_opt.zero_grad()
    loss.backward()
    d_opt.step()
    g_opt.zero_grad()
    fake = generator(x)
    (autoencoder(fake) - fake).abs().mean().backward()
    g_opt.step()
""",
        "gap = (autoencoder(fake.detach()) - fake).abs().mean()",
        "gap = (autoencoder(fake.detach()) - fake.detach()).abs().mean()",
    ),
}

LEFT = {
    "it is cut": """
for x, action, reward in batches:
    advantage = reward - of(critic(x), action)
    actor_loss = -(of(actor(x), action) * advantage.detach()).mean()
    critic_loss = advantage.pow(2).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
""",
    "both losses have gone back before the steps": """
for x, action, reward in batches:
    advantage = reward - of(critic(x), action)
    actor_loss = -(of(actor(x), action) * advantage).mean()
    critic_loss = advantage.pow(2).mean()
    actor_opt.zero_grad()
    critic_opt.zero_grad()
    (actor_loss + critic_loss).backward()
    actor_opt.step()
    critic_opt.step()
""",
    "nothing clears them": """
for x, action, reward in batches:
    advantage = reward - of(critic(x), action)
    actor_loss = -(of(actor(x), action) * advantage).mean()
    actor_opt.zero_grad()
    actor_loss.backward(retain_graph=True)
    actor_opt.step()
    advantage.pow(2).mean().backward()
    critic_opt.step()
""",
    "they are read before": """
for x, action, reward in batches:
    advantage = reward - of(critic(x), action)
    actor_loss = -(of(actor(x), action) * advantage).mean()
    actor_opt.zero_grad()
    actor_loss.backward(retain_graph=True)
    actor_opt.step()
    print(critic.weight.grad.norm())
    critic_opt.zero_grad()
    advantage.pow(2).mean().backward()
    critic_opt.step()
""",
    "the loss goes through the critic itself": """
policy = nn.Linear(4, 4)
policy_opt = torch.optim.SGD(policy.parameters(), lr=0.1)
for x, action, reward in batches:
    policy_loss = -critic(policy(x)).mean()
    policy_opt.zero_grad()
    policy_loss.backward()
    policy_opt.step()
    critic_opt.zero_grad()
    F.mse_loss(of(critic(x), action), reward).backward()
    critic_opt.step()
""",
    "one optimizer for both": """
both = torch.optim.SGD([*actor.parameters(), *critic.parameters()], lr=0.1)
for x, action, reward in batches:
    advantage = reward - of(critic(x), action)
    loss = -(of(actor(x), action) * advantage).mean() + advantage.pow(2).mean()
    both.zero_grad()
    loss.backward()
    both.step()
""",
}


@pytest.fixture(scope="module", name="told")
def _told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    programs = {name: text for name, (text, *_) in FOUND.items()} | LEFT
    return told_of(tmp_path_factory.mktemp("factors"), "undetached-generator-output", HEAD, programs)


@pytest.mark.parametrize("name", FOUND)
def test_its_cut_is_likely(told: dict[str, Told], name: str) -> None:
    _, line, *written = FOUND[name]
    assert told[name] == Told([line], written)


@pytest.mark.parametrize("name", LEFT)
def test_it_is_left(told: dict[str, Told], name: str) -> None:
    assert told[name] == Told([], [])
