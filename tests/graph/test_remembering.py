"""Remembered calls change nothing but the time that a run takes."""

from __future__ import annotations

from tests.graph.tools import Run, run

MEMO = """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)
            self.calls = 0
            self.kept = None
        def act(self, t, scale=1.0):
            return F.relu(self.l(t)) * scale
        def pair(self, t):
            return self.act(t), t.detach()
        def forward(self, t):
            t = self.act(t)
            t = self.act(t, 2.0)
            a, b = self.pair(t)
            self.calls += 1
            if self.kept is not None:
                a = a + self.kept
            self.kept = a
            return a + b
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block() for _ in range(4)])
        def forward(self, t):
            for block in self.blocks:
                t = block(t)
            return t
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0
    history = []
    for epoch in range(3):
        for batch in [x, x]:
            opt.zero_grad()
            loss = model(batch).sum()
            loss.backward()
            opt.step()
            total += loss
            history.append(loss)
        with torch.no_grad():
            valid = model(x)
"""


def summary(found: Run) -> list[object]:
    """What rules can see of a run, less identities."""
    trace = found.trace
    return [
        [(w.place.line, w.kind, w.retains, len(w.roots), w.roots[0].certain, w.roots[0].scalar) for w in trace.walks],
        [(w.place.line, bool(w.again)) for w in trace.walks],
        [(s.place.line, s.optimizer is not None) for s in trace.steps],
        [(f.place.line, f.grad, f.mode) for f in trace.forwards],
        [(a.place.line, bool(found.machine.nodes_of(a.added)), a.grad) for a in trace.accumulations],
        [(s.place.line, len(s.nodes) > 0, s.method) for s in trace.storings],
        found.marks(),
        found.again(),
        trace.complete,
    ]


def test_memoised_calls_give_the_same_trace() -> None:
    with_memo, without = run(MEMO), run(MEMO, memo=False)
    assert summary(with_memo) == summary(without)
    assert with_memo.machine.memos
    assert with_memo.machine.spent < without.machine.spent


def test_a_memo_is_not_used_where_a_weight_was_frozen() -> None:
    code = """
        class N(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(3, 3)
            def inner(self, t):
                return self.l(t)
            def forward(self, t):
                return self.inner(t)
        n = N()
        a = n(x)
        n.requires_grad_(False)
        b = n(x)
        n.requires_grad_(True)
        c = n(x)
    """
    for memo in (True, False):
        found = run(code, memo=memo)
        assert [found.graph(name) for name in "abc"] == ["attached", "free", "attached"]


def test_calls_with_none_and_of_functions_in_functions_are_remembered() -> None:
    code = """
        def scaled(factor):
            def scale(t):
                return t * factor
            return scale
        class N(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(3, 3)
                self.scale = scaled(2)
            def inner(self, t, mask=None):
                t = self.scale(self.l(t))
                t = F.relu(t) + F.tanh(t) + F.relu(t) + F.tanh(t)
                return t if mask is None else t * mask
            def forward(self, t):
                return self.inner(t, None)
        n = N()
        for i in range(3):
            loss = n(x).sum()
            loss.backward()
    """
    with_memo, without = run(code), run(code, memo=False)
    assert summary(with_memo) == summary(without)
    assert len(with_memo.machine.memos) == 2
    assert with_memo.machine.spent < without.machine.spent


def test_functions_made_by_different_calls_are_remembered_apart() -> None:
    code = """
        def made(weight):
            def act(t):
                return t * weight
            return act
        class N(nn.Module):
            def __init__(self, act):
                super().__init__()
                self.act = act
            def forward(self, t):
                return self.act(t)
        a = N(made(x))(x)
        b = N(made(w))(x)
        c = N(made(x))(x)
    """
    for memo in (True, False):
        found = run(code, memo=memo)
        assert [found.graph(name) for name in "abc"] == ["free", "attached", "free"]


def test_true_and_one_are_remembered_apart() -> None:
    code = """
        class N(nn.Module):
            def pick(self, t, flag):
                return t * w if flag is True else t
            def forward(self, t, flag):
                return self.pick(t, flag)
        n = N()
        a = n(x, 1)
        b = n(x, True)
    """
    assert run(code).graph("b") == run(code, memo=False).graph("b")
