"""Mixed precision: the scaler skips the first steps, whose scaled gradients are infinite."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, backoff_factor=2.0**-8, growth_interval=10**6)
for _ in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.randn(8, 6)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(scaler.get_scale())
