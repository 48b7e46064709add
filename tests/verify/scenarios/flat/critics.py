"""Two optimizers, one of which steps four times as often."""

import torch
from torch import nn

torch.manual_seed(2)
generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
generator_optimizer = torch.optim.Adam(generator.parameters())
critic_optimizer = torch.optim.Adam(critic.parameters())
for _ in range(40):
    for _ in range(4):
        with torch.no_grad():
            fake = generator(torch.randn(6, 2))
        critic_loss = critic(fake).mean() - critic(torch.randn(6, 4)).mean()
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()
    generator_loss = -critic(generator(torch.randn(6, 2))).mean()
    generator_optimizer.zero_grad()
    generator_loss.backward()
    generator_optimizer.step()
