"""Calls: functions of the tree are entered, and so is what is handed to code that cannot be seen."""

from __future__ import annotations

import pytest

from tests.graph.tools import line, run

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
    ("def f(n):\n    return w if n == 0 else f(n - 1)\ny = f(3)", "attached"),
    ("def f(n):\n    return w if n == 0 else f(n - 1)\ny = f(30)", "perhaps"),
    ("from elsewhere import steps\ndef f(n):\n    return w if n == 0 else f(n - 1)\ny = f(steps)", "perhaps"),
    ("def even(n):\n    return w if n == 0 else odd(n - 1)\ndef odd(n):\n    return x if n == 0 else even(n - 1)\n"
     "y = even(4)", "perhaps"),
    ("def f():\n    f()\nf()\ny = x", "free"),
    ("from functools import partial\ndef f(a, b):\n    return b\ny = partial(f, x)(w)", "attached"),
    ("import functools\ndef f(a, b):\n    return b\ny = functools.partial(f, b=w)(x)", "attached"),
    ("import functools\ny = functools.reduce(lambda a, b: a + b, [w, x])", "attached"),
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
    ("from six.moves import zip\nfor a, y in zip([x], [w]):\n    pass", "attached"),
    ("from six.moves import zip\nfor y, a in zip([x], [w]):\n    pass", "free"),
    ("import six\ny = list(six.moves.map(lambda t: t * 2, [w]))[0]", "perhaps"),
    ("from past.builtins import map\ny = list(map(lambda t: t.detach(), [w]))[0]", "free"),
    ("from six.moves import reduce\nimport operator\ny = reduce(operator.add, [x, w])", "perhaps"),
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
    ("layers = nn.ModuleList()\nlayers += [net]\ny = x\nfor l in layers:\n    y = l(y)", "attached"),
    ("layers = nn.ModuleList()\nlayers += [net]\ny = layers[0](x)", "attached"),
    ("layers = nn.ModuleList([nn.ReLU()])\nlayers += nn.ModuleList([net])\ny = layers[1](x)", "attached"),
    ("layers = nn.ModuleList()\nlayers += [nn.ReLU()]\ny = layers[0](x)", "free"),
    ("layers = nn.ModuleList()\nfor _ in range(3):\n    layers += [nn.ReLU()]\ny = layers[0](x)", "free"),
    ("layers = nn.Sequential(nn.ReLU())\nlayers += nn.Sequential(net)\ny = layers(x)", "attached"),
    ("heads = nn.ParameterList()\nheads += [w]\ny = heads[0] * x", "attached"),
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
