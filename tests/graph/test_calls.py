"""Calls: functions, classes, closures and containers of the tree are entered and understood."""

from __future__ import annotations

import pytest

from tests.graph.tools import Run, line, run, run_functions

FUNCTIONS = [
    ("def f(a, b=1, *args, c, d=2, **kwargs):\n    return a\ny = f(w, c=1)", "attached"),
    ("def f(a, b=1, *args, c, d=2, **kwargs):\n    return c\ny = f(x, c=w)", "attached"),
    ("def f(a, b=w):\n    return b\ny = f(x)", "attached"),
    ("def f(a, b=w):\n    return b\ny = f(x, x)", "free"),
    ("def f(*args):\n    return args[1]\ny = f(x, w)", "attached"),
    ("def f(*args):\n    return args[0]\ny = f(x, w)", "free"),
    ("def f(**kwargs):\n    return kwargs['b']\ny = f(a=x, b=w)", "attached"),
    ("def f(**kwargs):\n    return kwargs['a']\ny = f(a=x, b=w)", "free"),
    ("def f(a, b):\n    return b\ny = f(*[x, w])", "attached"),
    ("def f(a, b):\n    return a\ny = f(*(x, w))", "free"),
    ("def f(a, b):\n    return b\ny = f(**{'a': x, 'b': w})", "attached"),
    ("def f(a, /, b):\n    return b\ny = f(x, b=w)", "attached"),
    ("def f(a):\n    return a\ny = f((lambda t: t * w)(x))", "attached"),
    ("f = lambda a, b=w: b\ny = f(x)", "attached"),
    ("def outer():\n    t = w\n    def inner():\n        return t\n    return inner\ny = outer()()", "attached"),
    ("def outer():\n    def a():\n        def b():\n            return t\n        return b()\n    t = w\n"
     "    return a()\ny = outer()",
     "attached"),
    ("def outer():\n    t = x\n    def inner():\n        nonlocal t\n        t = w\n    inner()\n    return t\n"
     "y = outer()", "attached"),
    ("y = x\ndef f():\n    global y\n    y = w\nf()", "attached"),
    ("y = x\ndef f():\n    y = w\nf()", "free"),
    ("def f():\n    return w, x\ny, z = f()", "attached"),
    ("def f():\n    return w, x\nz, y = f()", "free"),
    ("def f(n):\n    return w if n == 0 else f(n - 1)\ny = f(3)", "perhaps"),
    ("def even(n):\n    return w if n == 0 else odd(n - 1)\ndef odd(n):\n    return x if n == 0 else even(n - 1)\n"
     "y = even(4)", "perhaps"),
    ("def f():\n    f()\nf()\ny = x", "free"),
    ("from functools import partial\ndef f(a, b):\n    return b\ny = partial(f, x)(w)", "attached"),
    ("import functools\ndef f(a, b):\n    return b\ny = functools.partial(f, b=w)(x)", "attached"),
    ("import functools\ny = functools.reduce(lambda a, b: a + b, [w, x])", "perhaps"),
    ("def deco(f):\n    return f\n@deco\ndef f():\n    return w\ny = f()", "attached"),
    ("import functools\ndef deco(f):\n    @functools.wraps(f)\n    def g(*a, **k):\n        return f(*a, **k)\n"
     "    return g\n"
     "@deco\ndef f():\n    return w\ny = f()", "attached"),
    ("def deco(n):\n    def d(f):\n        return f\n    return d\n@deco(3)\ndef f():\n    return w\n"
     "y = f()", "attached"),
    ("@somewhere.cache\ndef f():\n    return w\ny = f()", "attached"),
    ("def g():\n    yield x\n    yield w\ny = list(g())", "attached"),
    ("def g():\n    yield w\nfor y in g():\n    pass", "attached"),
    ("def g():\n    yield from [w]\ny = next(g())", "attached"),
    ("def g():\n    t = yield\n    return t\ny = x", "free"),
    ("y = [a * b for a in [x] for b in [w] if True]", "attached"),
    ("y = {k: v for k, v in {'a': w}.items()}", "attached"),
    ("y = {k: v for k, v in zip('ab', (x, w))}['b']", "perhaps"),
    ("y = {t for t in [w]}", "attached"),
    ("y = sum(t for t in [w, x])", "attached"),
    ("y = [*[x], *[w]]", "attached"),
    ("y = (*(x,), w)[1]", "attached"),
    ("y = {**{'a': w}}['a']", "attached"),
    ("a, *y = x, w, w", "attached"),
    ("*a, y = x, x, w", "attached"),
    ("(a, (b, y)) = x, (x, w)", "attached"),
    ("[a, y] = [x, w]", "attached"),
    ("a = y = w", "attached"),
    ("y: torch.Tensor = w", "attached"),
    ("y = list(map(lambda t: t * w, [x, x]))", "attached"),
    ("y = list(filter(None, [w]))", "attached"),
    ("y = max([w, x], key=len)", "perhaps"),
    ("y = sorted([w])[0]", "attached"),
    ("for i, y in enumerate([w, w]):\n    pass", "attached"),
    ("for a, y in zip([x], [w]):\n    pass", "attached"),
    ("y = getattr(w, 'sum')()", "attached"),
    ("async def f():\n    return w\nasync def main():\n    return await f()\nimport asyncio\n"
     "y = asyncio.run(main())", "perhaps"),
    ("from torch.utils.checkpoint import checkpoint\ny = checkpoint(lambda t: t * w, x)", "attached"),
    ("y = nn.DataParallel(net)(x)", "attached"),
    ("y = nn.DataParallel(net).cuda().module(x)", "attached"),
    ("y = nn.Sequential(nn.Linear(3, 3), nn.ReLU())(x)", "attached"),
    ("y = nn.Sequential(nn.ReLU(), nn.Tanh())(x)", "free"),
    ("y = nn.Sequential(*[nn.Linear(3, 3) for _ in range(3)])(x)", "attached"),
    ("y = nn.ModuleList([net])[0](x)", "attached"),
    ("y = nn.ModuleDict({'a': net})['a'](x)", "attached"),
    ("layers = nn.ModuleList()\nlayers.append(net)\ny = x\nfor l in layers:\n    y = l(y)", "attached"),
    ("y = nn.ReLU()(x)", "free"),
    ("y, (h, c) = nn.LSTM(3, 3)(x)", "attached"),
    ("z, (y, c) = nn.LSTM(3, 3)(x)", "attached"),
    ("z, y = nn.GRU(3, 3)(x)", "attached"),
    ("h, y = nn.LSTMCell(3, 3)(x)", "attached"),
    ("from copy import deepcopy\ny = deepcopy(net)(x)", "attached"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), FUNCTIONS)
def test_functions(code: str, expected: str) -> None:
    found = run(code)
    assert found.trace.complete
    assert found.graph("y") == expected


CLASSES = [
    ("class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.l = nn.Linear(3, 1)\n"
     "    def forward(self, t):\n        return self.l(t)\ny = N()(x)", "attached"),
    ("class N(nn.Module):\n    def __init__(self):\n        super(N, self).__init__()\n        self.l = nn.ReLU()\n"
     "    def forward(self, t):\n        return self.l(t)\ny = N()(x)", "free"),
    ("class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.l = nn.Linear(3, 1)\n"
     "class B(A):\n    def forward(self, t):\n        return self.l(t)\ny = B()(x)", "attached"),
    ("class A(nn.Module):\n    def forward(self, t):\n        return self.body(t)\n"
     "class B(A):\n    def body(self, t):\n        return t * w\ny = B()(x)", "attached"),
    ("class A:\n    def f(self):\n        return x\nclass B(A):\n    def f(self):\n        return super().f() * w\n"
     "y = B().f()", "attached"),
    ("class A:\n    def f(self):\n        return w\nclass B(A):\n    def f(self):\n        return x\n"
     "y = B().f()", "free"),
    ("class A:\n    def f(self):\n        return w\nclass M:\n    pass\nclass B(M, A):\n    pass\n"
     "y = B().f()", "attached"),
    ("class A:\n    @property\n    def f(self):\n        return w\ny = A().f", "attached"),
    ("import functools\nclass A:\n    @functools.cached_property\n    def f(self):\n        return w\n"
     "y = A().f", "attached"),
    ("class A:\n    @property\n    def f(self):\n        return self._f\n    @f.setter\n    def f(self, v):\n"
     "        self._f = v\n"
     "a = A()\na.f = w\ny = a.f", "attached"),
    ("class A:\n    t = w\ny = A.t", "attached"),
    ("class A:\n    t = w\ny = A().t", "attached"),
    ("class A:\n    t = x\nA.t = w\ny = A().t", "attached"),
    ("class A:\n    @staticmethod\n    def f(a):\n        return a\ny = A.f(w)", "attached"),
    ("class A:\n    @staticmethod\n    def f(a):\n        return a\ny = A().f(w)", "attached"),
    ("class A:\n    @classmethod\n    def f(cls, a):\n        return a\ny = A.f(w)", "attached"),
    ("class A:\n    t = w\n    @classmethod\n    def f(cls):\n        return cls.t\ny = A().f()", "attached"),
    ("class A:\n    @classmethod\n    def make(cls):\n        return cls(w)\n    def __init__(self, t):\n"
     "        self.t = t\ny = A.make().t",
     "attached"),
    ("class A:\n    def __call__(self, t):\n        return t * w\ny = A()(x)", "attached"),
    ("class A:\n    def __getitem__(self, i):\n        return w\ny = A()[0]", "attached"),
    ("class A:\n    def __iter__(self):\n        yield w\nfor y in A():\n    pass", "attached"),
    ("class A:\n    def __add__(self, o):\n        return w\ny = A() + 1", "attached"),
    ("class A:\n    def __enter__(self):\n        return w\n    def __exit__(self, *a):\n        pass\n"
     "with A() as y:\n    pass", "attached"),
    ("from dataclasses import dataclass\n@dataclass\nclass A:\n    a: int\n    t: object = None\n"
     "y = A(1, w).t", "attached"),
    ("from dataclasses import dataclass\n@dataclass\nclass A:\n    a: int\n    t: object = None\n"
     "y = A(1, t=w).t", "attached"),
    ("from dataclasses import dataclass, field\n@dataclass\nclass A:\n    ts: list = field(default_factory=list)\n"
     "a = A()\na.ts.append(w)\n"
     "y = a.ts", "attached"),
    ("from typing import NamedTuple\nclass A(NamedTuple):\n    a: int\n    t: object\ny = A(1, w).t", "attached"),
    ("from collections import namedtuple\nA = namedtuple('A', 'a t')\ny = A(1, w)", "perhaps"),
    ("class A:\n    def __init__(self):\n        self.f = self.g\n    def g(self):\n        return w\n"
     "y = A().f()", "attached"),
    ("class A:\n    pass\na = A()\na.t = w\ny = a.t", "attached"),
    ("class A:\n    pass\na = A()\nsetattr(a, 't', w)\ny = getattr(a, 't')", "attached"),
    ("class A:\n    pass\na = A()\na.t = w\na.t = x\ny = a.t", "free"),
    ("class A:\n    pass\na = A()\nb = a\nb.t = w\ny = a.t", "attached"),
    ("class A:\n    class B:\n        t = w\ny = A.B.t", "attached"),
    ("def make():\n    class A:\n        def f(self):\n            return w\n    return A()\n"
     "y = make().f()", "attached"),
    ("class A:\n    def f(self):\n        def g():\n            return self.t\n        self.t = w\n"
     "        return g()\ny = A().f()", "attached"),
    ("class A:\n    if True:\n        def f(self):\n            return w\ny = A().f()", "attached"),
    ("class A:\n    t = [w]\ny = A.t[0]", "attached"),
    ("class A:\n    def f(self): return w\n    g = f\ny = A().g()", "attached"),
    ("from pytorch_lightning import LightningModule\nclass L(LightningModule):\n"
     "    def validation_step(self, b, i):\n        return w * 2\n"
     "y = L().validation_step(x, 0)", "free"),
    ("class F_(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t):\n        return t\n"
     "y = F_.apply(w)", "attached"),
    ("import unknown\nclass A(unknown.Base):\n    def f(self):\n        return self.t\ny = A().f()", "free"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), CLASSES)
def test_classes(code: str, expected: str) -> None:
    found = run(code)
    assert found.trace.complete
    assert found.graph("y") == expected


CONTAINERS = [
    ("c = []\nc.append(w)\ny = c[0]", "attached"),
    ("c = [x]\nc += [w]\ny = c[1]", "attached"),
    ("c = [x]\nc[0] = w\ny = c[0]", "attached"),
    ("c = [w]\nc[0] = x\ny = c[0]", "free"),
    ("c = [w]\nc.clear()\ny = c", "free"),
    ("c = [w]\ny = c.pop()", "attached"),
    ("c = [x, w]\ny = c[-1]", "attached"),
    ("c = [w, x]\ny = c[-1]", "free"),
    ("c = [x, w, w]\ny = c[1:]", "attached"),
    ("c = [x]\nc.extend([w])\ny = c[-1]", "attached"),
    ("c = [x]\nc.insert(0, w)\ny = c", "attached"),
    ("c = {}\nc['a'] = w\ny = c['a']", "attached"),
    ("c = {}\nc['a'] = w\nc['b'] = x\ny = c['b']", "free"),
    ("c = dict(a=w)\ny = c.get('a')", "attached"),
    ("c = {}\nc.update(a=w)\ny = c['a']", "attached"),
    ("c = {}\nc.update({'a': w})\ny = c.pop('a')", "attached"),
    ("c = {}\nc.setdefault('a', []).append(w)\ny = c['a']", "attached"),
    ("from collections import defaultdict\nc = defaultdict(list)\nc['a'].append(w)\ny = c['a'][0]", "attached"),
    ("from collections import deque\nc = deque(maxlen=2)\nc.append(w)\ny = c[0]", "attached"),
    ("from collections import deque\nc = deque()\nc.appendleft(w)\ny = c.popleft()", "attached"),
    ("from collections import OrderedDict\nc = OrderedDict()\nc['a'] = w\ny = c['a']", "attached"),
    ("c = set()\nc.add(w)\ny = c", "attached"),
    ("c = (x, w)\ny = c[1]", "attached"),
    ("c = (x, w)\ny = c[0]", "free"),
    ("c = [[x], [w]]\ny = c[1][0]", "attached"),
    ("c = [w] * 3\ny = c[2]", "attached"),
    ("c = [x] + [w]\ny = c[1]", "attached"),
    ("c = {'a': w}\nfor k, y in c.items():\n    pass", "attached"),
    ("c = {'a': w}\nfor y in c.values():\n    pass", "attached"),
    ("c = {'a': w}\nfor y in c:\n    pass", "free"),
    ("c = {'a': w}\ny = list(c.values())[0]", "attached"),
    ("c = [w]\nd = c\nd.append(x)\ny = c[0]", "attached"),
    ("c = [w]\nd = list(c)\nc.clear()\ny = d[0]", "attached"),
    ("c = [x, w]\ndel c[0]\ny = c", "attached"),
    ("c = {'a': w}\ndel c['a']\nc['a'] = x\ny = c['a']", "free"),
    ("import itertools\ny = list(itertools.chain([x], [w]))", "perhaps"),
    ("c = [w]\ny = c.copy()", "attached"),
    ("c = [(x, w)]\nfor a, y in c:\n    pass", "attached"),
    ("y = dict(zip(['a'], [w]))", "attached"),
    ("y = list(reversed([w]))", "attached"),
    ("y = tuple([w])", "attached"),
    ("y = [t for c in [[w]] for t in c]", "attached"),
    ("import torch.nn.utils.rnn as rnn\ny = rnn.pad_sequence([w])", "attached"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), CONTAINERS)
def test_containers(code: str, expected: str) -> None:
    assert run(code).graph("y") == expected


def test_a_callback_of_a_library_is_run() -> None:
    code = """
        from ignite.engine import Engine
        def step(engine, batch):
            loss = net(batch).sum()
            loss.backward()
        trainer = Engine(step)
    """
    found = run(code)
    assert [walk.place.line for walk in found.walks()] == [line(found, "loss.backward()")]
    assert any(frame.handed for frame in found.trace.frames)


def test_a_thread_target_is_run_with_its_arguments() -> None:
    code = """
        import torch.multiprocessing as mp
        def train(loss):
            loss.backward()
        p = mp.Process(target=train, args=(w.sum(),))
        p.start()
    """
    assert len(run(code).walks()) == 1


def test_a_forward_is_recorded_once_with_its_mode() -> None:
    code = """
        class N(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(3, 1)
            def forward(self, t):
                return self.l(t)
        n = N()
        n.eval()
        n(x)
        n.train()
        n(x)
        with torch.no_grad():
            n(x)
    """
    forwards = run(code).trace.forwards
    assert [(f.mode, f.grad) for f in forwards] == [("eval", True), ("train", True), ("train", False)]


def test_an_optimizer_knows_its_parameters() -> None:
    found = run("other = nn.Linear(1, 1)\nopt = torch.optim.Adam(net.parameters())")
    optimizer, own, other = found.value("opt"), found.value("net"), found.value("other")
    assert optimizer is not None
    leaves = [leaf for p in optimizer.params for leaf in found.machine.parameter_leaves(p.owner)]  # type: ignore[attr-defined]
    assert leaves == found.machine.parameter_leaves(own)  # type: ignore[arg-type]
    assert leaves != found.machine.parameter_leaves(other)  # type: ignore[arg-type]


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


def test_methods_of_a_class_share_their_object() -> None:
    (trace,) = run_functions(
        """
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.h = torch.zeros(3)
            def step(self, batch):
                self.h = self.model(batch, self.h) * w
                self.h.sum().backward()
        """
    )
    assert [bool(walk.again) for walk in trace.walks] == [False, True]


def test_functions_are_run_twice_with_what_they_left() -> None:
    (trace,) = run_functions(
        """
        kept = [torch.zeros(3)]
        def step(batch):
            h = kept[0] * w
            h.sum().backward()
            kept[0] = h
        """
    )
    assert [bool(walk.again) for walk in trace.walks] == [False, True]


def test_a_method_that_is_put_on_a_class_later() -> None:
    code = """
        class N(nn.Module):
            def forward(self, t):
                return t
        n = N()
        a = n(x)
        N.forward = lambda self, t: t * w
        b = n(x)
        N.extra = lambda self: w
        c = n.extra()
    """
    found = run(code)
    assert [found.graph(name) for name in "abc"] == ["free", "attached", "attached"]
