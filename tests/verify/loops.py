"""Small training loops, each a function that takes the number of steps: flat ones, and ones whose graphs pile up."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.func import functional_call


def _net() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    return net, torch.optim.SGD(net.parameters(), lr=0.01)


def _step(net: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
    loss = net(torch.randn(3, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


# Flat.


def plain(steps: int) -> None:
    net, optimizer = _net()
    total, losses = 0.0, []
    for _ in range(steps):
        loss = _step(net, optimizer)
        total += loss.item()
        losses.append(loss.detach())


def variable_length_lstm(steps: int) -> None:
    lstm, head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 1)
    optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
    for number in range(steps):
        output, _ = lstm(torch.randn(2, 2 + 7 * number % 11, 4))
        optimizer.zero_grad()
        head(output).square().mean().backward()
        optimizer.step()


def truncated_bptt(steps: int) -> None:
    cell, head = nn.GRUCell(4, 5), nn.Linear(5, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
    state = torch.zeros(2, 5)
    for _ in range(steps):
        state = state.detach()
        loss = torch.zeros(())
        for _ in range(4):
            state = cell(torch.randn(2, 4), state)
            loss = loss + head(state).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def lbfgs(steps: int) -> None:
    net, _ = _net()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3, history_size=20)
    inputs = torch.randn(6, 4)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (net(inputs) - 1).square().mean()
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)


def accumulation(steps: int) -> None:
    net, optimizer = _net()
    for number in range(4 * steps):
        (net(torch.randn(3, 4)).square().mean() / 4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


def gan(steps: int) -> None:
    generator, of_generator = _net()
    critic = nn.Linear(1, 1)
    of_critic = torch.optim.SGD(critic.parameters(), lr=0.01)
    for _ in range(steps):
        fake = generator(torch.randn(3, 4))
        of_critic.zero_grad()
        (critic(fake.detach()) - critic(torch.randn(3, 1))).mean().backward()
        of_critic.step()
        of_generator.zero_grad()
        critic(fake).mean().neg().backward()
        of_generator.step()


def maml(steps: int) -> None:
    net, optimizer = _net()
    for _ in range(steps):
        weights = dict(net.named_parameters())
        for _ in range(3):
            inner = functional_call(net, weights, (torch.randn(3, 4),)).square().mean()
            grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
            weights = {name: weight - 0.1 * grad for (name, weight), grad in zip(weights.items(), grads, strict=True)}
        optimizer.zero_grad()
        functional_call(net, weights, (torch.randn(3, 4),)).square().mean().backward()
        optimizer.step()


def one_long_inner_loop(steps: int) -> None:
    """A single outer step, so no step by which the graph could be said to grow."""
    net, _ = _net()
    weights = dict(net.named_parameters())
    for _ in range(steps):
        inner = functional_call(net, weights, (torch.randn(3, 4),)).square().mean()
        grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        weights = {name: weight - 0.1 * grad for (name, weight), grad in zip(weights.items(), grads, strict=True)}


def gradient_penalty(steps: int) -> None:
    net, optimizer = _net()
    for _ in range(steps):
        inputs = torch.randn(3, 4, requires_grad=True)
        (slope,) = torch.autograd.grad(net(inputs).sum(), inputs, create_graph=True)
        optimizer.zero_grad()
        (slope.norm(dim=1) - 1).square().mean().backward()
        optimizer.step()


def by_hand(steps: int) -> None:
    weight = torch.randn(4, 1, requires_grad=True)
    for _ in range(steps):
        (torch.randn(3, 4) @ weight).square().mean().backward()
        with torch.no_grad():
            weight -= 0.01 * weight.grad
            weight.grad = None


def by_grad(steps: int) -> None:
    weight = torch.randn(4, 1, requires_grad=True)
    for _ in range(steps):
        (grad,) = torch.autograd.grad((torch.randn(3, 4) @ weight).square().mean(), weight)
        with torch.no_grad():
            weight -= 0.01 * grad


def validated(steps: int) -> None:
    net, optimizer = _net()
    for number in range(steps):
        _step(net, optimizer)
        if number % 8 == 7:
            with torch.no_grad():
                outputs = [net(torch.randn(3, 4)) for _ in range(6)]
            assert len(outputs) == 6


def validation(steps: int) -> None:
    net, _ = _net()
    outputs = []
    for _ in range(steps):
        with torch.no_grad():
            outputs.append(net(torch.randn(3, 4)))


def inference(steps: int) -> None:
    net, _ = _net()
    outputs = []
    with torch.inference_mode():
        for _ in range(steps):
            outputs.append(net(torch.randn(3, 4)))


def validation_reduced(steps: int) -> None:
    """With gradients on: wasteful, but nothing is kept."""
    net, _ = _net()
    total = 0.0
    for _ in range(steps):
        total += net(torch.randn(3, 4)).mean().item()


# Growing.


def total_loss(steps: int) -> None:
    net, optimizer = _net()
    total: Any = 0.0
    for _ in range(steps):
        total += _step(net, optimizer)


def loss_list(steps: int) -> None:
    net, optimizer = _net()
    losses = []
    for _ in range(steps):
        losses.append(_step(net, optimizer))


def long_deque(steps: int) -> None:
    net, optimizer = _net()
    recent: collections.deque[torch.Tensor] = collections.deque(maxlen=1000)
    for _ in range(steps):
        recent.append(_step(net, optimizer))


def closure(steps: int) -> None:
    net, optimizer = _net()
    average: Any = 0.0

    def update(value: torch.Tensor) -> None:
        nonlocal average
        average = 0.9 * average + 0.1 * value

    for _ in range(steps):
        update(_step(net, optimizer))


class Normalized(nn.Module):
    average: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.zeros(4))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = inputs * self.scale
        self.average = 0.9 * self.average + 0.1 * scaled.mean(0)
        return scaled


def buffer(steps: int) -> None:
    layer = Normalized()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    for _ in range(steps):
        _step(layer, optimizer)


def hidden_retained(steps: int) -> None:
    cell = nn.GRUCell(4, 5)
    state = torch.zeros(2, 5)
    for _ in range(steps):
        state = cell(torch.randn(2, 4), state)
        state.square().mean().backward(retain_graph=True)
        cell.zero_grad()


def validation_kept(steps: int) -> None:
    net, _ = _net()
    outputs = []
    for _ in range(steps):
        outputs.append(net(torch.randn(3, 4)))


def two_modules_kept(steps: int) -> None:
    encoder, decoder = nn.Linear(4, 3), nn.Linear(3, 4)
    # Once before the loop: its line is not the one that counts.
    encoder(torch.zeros(1, 4))
    outputs = []
    for _ in range(steps):
        code = encoder(torch.randn(3, 4))
        outputs.append(decoder(code))


Loop = Callable[[int], None]

#: loop: the clock that counts its steps.
FLAT: dict[Loop, str] = {
    plain: "step",
    variable_length_lstm: "step",
    truncated_bptt: "step",
    lbfgs: "step",
    accumulation: "step",
    gan: "step",
    maml: "step",
    gradient_penalty: "step",
    by_hand: "backward",
    by_grad: "backward",
    validated: "step",
    validation: "forward",
    inference: "forward",
    validation_reduced: "forward",
}
#: loop: its clock, the nodes that a step adds, and who holds them at the end of 16 steps, innermost frame first.
LEAKS: dict[Loop, tuple[str, int, str]] = {
    total_loss: ("step", 8, "`total` in total_loss() (1 tensor)"),
    loss_list: ("step", 7, "`losses[*]` in loss_list() (15 tensors)"),
    long_deque: ("step", 7, "`recent[*]` in long_deque() (15 tensors)"),
    closure: ("step", 10, "`average` in closure() (1 tensor)"),
    buffer: ("step", 5, "`net.average` in _step() (1 tensor)"),
    hidden_retained: ("backward", 16, "`state` in hidden_retained() (1 tensor)"),
    validation_kept: ("forward", 5, "`outputs[*]` in validation_kept() (15 tensors)"),
    two_modules_kept: ("forward", 4, "`outputs[*]` in two_modules_kept() (15 tensors)"),
}
