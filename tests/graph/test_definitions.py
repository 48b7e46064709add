"""Definitions: functions and classes of the tree mean what Python makes of them."""

from __future__ import annotations

import pytest

from tests.graph.tools import run

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
    ("from collections import namedtuple\nA = namedtuple('A', 'a t')\ny = A(1, w)", "attached"),
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
