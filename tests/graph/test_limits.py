"""Any valid Python, however odd or deep, ends within its budget and says where it stopped."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from codemods.graph.model.values import Tensor
from tests.graph.tools import PRELUDE, run, run_functions, run_tree

ODD = [
    "x = *[1], *(2, 3)\nfor x.attr, x[0] in []:\n    pass",
    "print(*[], **{}, sep='', end=f'{1!r:>{10}}')",
    "@(lambda f: f)\ndef f(): ...\nf()",
    "def f(a, /, b, *, c): return a\nf(1, 2, c=3)",
    "class A(*[object], metaclass=type, key=1): pass",
    "lambda: (yield)",
    "async def f():\n    async with a as b, c as d:\n        async for e in b:\n            yield await e\n"
    "        return\n",
    "async def f():\n    return [x async for x in y if await x]\nf()",
    "try:\n    pass\nexcept* ValueError as e:\n    raise\nelse:\n    pass\nfinally:\n    pass",
    "with (open('a') as a, open('b') as b):\n    pass",
    "match x:\n    case {'a': 1, **rest} if rest:\n        pass\n    case [1, *_, 2] | (3 as y):\n        pass\n"
    "    case A(b=1, c=A.d):\n        pass\n    case -1 | 1 + 2j | 'a' | None | True:\n        pass",
    "match w, x:\n    case [[a, *b], {'k': c, **d}] | [a, [*b, {'k': c, **d}]]:\n        y = a, b, c, d",
    "global undefined\nundefined += 1",
    "del x, (w, [net])",
    "x[1:2, ::3, ..., None] = x[...]",
    "a = b = c = d[e := 1]",
    "f(a for a in b)(c)[d].e = 1",
    "assert (x, 'always')",
    "0 if 1 else 2 if 3 else 4",
    "not -+~x ** 2 // 3 @ 4 << 5 >> 6 & 7 | 8 ^ 9",
    "1 < 2 <= 3 != 4 in [5] not in [6] is 7 is not 8",
    "'a' 'b' f'{x}' if b'' rb'c' else 0xFF + 1_000 + 1e400 + 3j",
    "while 0: pass\nelse: pass\nfor _ in []: continue\nelse: pass",
    "import a.b.c, d as e\nfrom . import f\nfrom .g import *\nfrom ...h import i as j",
    "def f():\n    nonlocal_ = 1\n    def g():\n        nonlocal nonlocal_\n        nonlocal_ += 1\n"
    "        return g\n    return g()\nf()",
    "class A:\n    x = x\n    def x(self): return self.x\n    x = property(x)\nA().x",
    "x = x.x = x[x] = x",
    "(lambda f: f(f))(lambda f: f(f))",
    "def f(*a, **k): return f(*a, f, **k, x=f)\nf()",
    "f = lambda: f()\nf()",
    "class A:\n    def __getattr__(self, n): return getattr(self, n + 'x')\nA().y",
    "class A(A2): pass\nclass A2(A): pass\nA().f()",
    "class A:\n    def __iter__(self): return self\n    def __next__(self): return next(self)\nfor a in A(): pass",
    "class A:\n    def __enter__(self): return self\n    def __exit__(self, *a): self.__exit__()\nwith A(): pass",
    "a = []\na.append(a)\nb = {}\nb['b'] = b\nx = (a, b)\nc = [*a, *b, a, b]\nfor d in a:\n    a = d\nprint(a, b)",
    "a = [w]\na[0] = a\ntorch.stack(a).sum().backward()",
    "class A: pass\na = A()\na.a = a\nsum([a.a.a.a])",
    "a = torch.nn.Module()\na.a = a\nlist(a.parameters())\na(x)",
    "a = nn.Sequential()\na.append(a)\na(x)",
    "import sys\nsys.exit()\nw.sum().backward()",
    "raise\nw",
    "return_ = 1\nif x:\n    pass\nelif x:\n    ...\n",
    "x = yield_ = [i for i in range(3) for j in range(i) if j if i]",
    "y = {**{}, 'a': 1, **x}\nz = {*[], 1}",
    "for i in range(3):\n    def f(i=i): return i\n    class C:\n        f = f\n    f(), C.f()",
    "try:\n    1/0\nfinally:\n    try:\n        raise\n    except Exception as e:\n        del e\n",
    "type X = int" if hasattr(ast, "TypeAlias") else "X = int",
    "w.backward\nw.backward()()\nw.backward(w.backward())",
    "torch.no_grad(torch.no_grad)(torch.no_grad())",
    "with torch.no_grad:\n    pass",
    "super().x\nsuper(1, 2).y\nsuper",
    "torch.optim.SGD()\ntorch.optim.SGD(x).step(1, 2)\ntorch.autograd.grad()\ntorch.autograd.backward()",
    "nn.Linear()()\nnn.LSTM()()[0]\nnn.ModuleList(1)[2]\nnn.Parameter()\nVariable()\nnn.Sequential(1, 2)(3)",
    "torch.utils.checkpoint.checkpoint()\nmap()\nzip()\nenumerate()\nnext()\ngetattr()\nsetattr(1)\nisinstance()\n"
    "super(1)\nmax()\nsum()",
]  # fmt: skip


@pytest.mark.parametrize("code", ODD)
def test_odd_code_is_followed(code: str) -> None:
    if "except*" in code or "type X" in code:
        try:
            ast.parse(code)
        except SyntaxError:
            pytest.skip("newer Python")
    assert run(code).trace.complete


@pytest.mark.parametrize("code", ODD)
def test_odd_code_in_functions(code: str) -> None:
    try:
        ast.parse(textwrap.indent(code, "    ").join(["def root(x, w, net):\n", ""]))
    except SyntaxError:
        pytest.skip("not for functions")
    for trace in run_functions("def root(x, w, net):\n" + textwrap.indent(code, "    "), "root"):
        assert trace.complete


DEEP = {
    "sum": "y = " + " + ".join(["w"] * 900),
    "parentheses": "y = " + "(" * 90 + "w" + ")" * 90,
    "calls": "def f(a): return a\ny = " + "f(" * 80 + "w" + ")" * 80,
    "methods": "y = w" + ".exp()" * 700,
    "attributes": "y = x" + ".a" * 700,
    "subscripts": "y = x" + "[0]" * 700,
    "lists": "y = " + "[" * 90 + "w" + "]" * 90,
    "not": "y = " + "not " * 700 + "w",
    "conditions": "y = " + "w if x.sum() > 0 else " * 80 + "x",
    "lambdas": "y = " + "lambda: " * 90 + "w",
    "comprehension": "y = [0 " + "".join(f"for a{i} in x " for i in range(12)) + "]",
    "blocks": "".join(f"{' ' * i}if x.sum() > {i}:\n" for i in range(60)) + " " * 60 + "y = w",
    "loops": "".join(f"{' ' * i}for i{i} in range(3):\n" for i in range(8)) + " " * 8 + "y = w",
    "functions": "".join(f"{' ' * i}def f{i}():\n" for i in range(60)) + " " * 60 + "return w\nf0()",
    "chain": "".join(f"def f{i}(): return f{i + 1}()\n" for i in range(300)) + "def f300(): return w\ny = f0()",
    "elif": "if x.sum() > 0:\n    y = w\n" + "".join(f"elif x.sum() > {i}:\n    y = w\n" for i in range(300)),
    "classes": "class C0: pass\n" + "".join(f"class C{i + 1}(C{i}): pass\n" for i in range(300)) + "y = C300().f",
    "strings": "y = " + " + ".join(["'a'"] * 900),
    "dicts": "y = {" + ", ".join(f"'k{i}': w * {i}" for i in range(3000)) + "}",
    "tuple": "y = (" + ", ".join(["w"] * 5000) + ")",
    "names": "\n".join(f"v{i} = w * {i}" for i in range(5000)),
}


@pytest.mark.parametrize("kind", DEEP)
def test_deep_and_long_code_is_survived(kind: str) -> None:
    try:
        ast.parse(DEEP[kind])
    except (RecursionError, MemoryError):
        pytest.skip("too deep for this Python")
    found = run(DEEP[kind])
    # what is too deep or too long is told
    assert found.trace.complete or found.trace.notes


def test_a_long_function_is_followed_to_its_end() -> None:
    body = "\n".join(f"    h = torch.relu(h * w + {i})" for i in range(4000))
    found = run(f"def f(h):\n{body}\n    return h\ny = f(x)\ny.sum().backward()")
    assert found.trace.complete
    assert len(found.walks()) == 1


def test_the_budget_ends_a_run_and_tells_where() -> None:
    found = run("\n".join(f"y = w * {i}" for i in range(200)), budget=300)
    assert not found.trace.complete
    assert found.trace.notes == [f"main.py:{found.trace.walks or 81}: the budget of this run ended here"] or (
        "the budget of this run ended here" in found.trace.notes[-1]
    )


def test_each_function_has_a_budget_of_its_own() -> None:
    code = "\n".join(f"def f{i}(t):\n" + "\n".join(f"    t = t * {j}" for j in range(100)) for i in range(6))
    traces = run_functions(code, budget=3000)
    assert len(traces) == 6
    assert all(trace.complete for trace in traces)


def test_all_functions_of_a_file_together_have_a_budget() -> None:
    code = "\n".join(f"def f{i}(t):\n" + "\n".join(f"    t = t * {j}" for j in range(100)) for i in range(40))
    traces = run_functions(code, budget=3000)
    assert len(traces) < 40
    assert "the budget of this file's functions ended here" in traces[-1].notes[-1]


def test_an_exponential_tree_of_calls_ends() -> None:
    code = "".join(f"def f{i}(t):\n    return f{i + 1}(t) + f{i + 1}(t * w)\n" for i in range(30))
    found = run(code + "def f30(t):\n    return t\ny = f0(x)\n", budget=20_000)
    assert found.machine.run.spent <= 20_001


def test_a_library_that_shadows_the_tree() -> None:
    found = run_tree({"main.py": PRELUDE + "import numpy as np\ny = np.ones(3)", "numpy.py": "def ones(n):\n    raise"})
    assert found.graph("y") == "free"


HASHED = """
bank = {name: w * 2 for name in ("one", "two", "three", "four")}
for name in bank:
    if x.sum() > 0:
        bank[name], net.first, net.second, total = w * 3, w * 4, w * 5, 0
    else:
        total = bank["one"]
net(x).sum().backward()
"""


def test_hashes_do_not_change_a_run() -> None:
    program = (
        "from tests.graph.tools import run; from tests.graph.test_limits import HASHED;"
        "print([(n.birth, n.kind, n.label) for n in run(HASHED).trace.nodes])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("fields", ["['for', 'loss']", "'class loss'", "['1st', 'loss']"])
def test_a_record_whose_fields_are_no_names_carries_what_it_gets(fields: str) -> None:
    seen = run(f"import collections\nP = collections.namedtuple('P', {fields}, rename=True)\nresult = P(1, net(x))\n")
    assert seen.machine.run.nodes_of(seen.value("result"))


def test_what_is_joined_again_and_again_stays_small() -> None:
    """A tensor that branches bind to what aliases it has each of them once, and not twice as many after each."""
    turns = "if x.any():\n    a, b = Variable(b), a.data\n" * 30
    seen = run(f"a = Variable(x)\nb = Variable(x)\n{turns}")
    value = seen.value("a")
    assert isinstance(value, Tensor)
    assert len(value.aliases) <= 62


BEHIND = """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)
            self.seen = []
        def forward(self, t):
            h = torch.relu(self.l(t))
            out = torch.zeros(3)
            out[0] = h
            {line}
            return torch.exp(out)
    net = Block()
    def again(t):
        return {calls}
    def train(loss):
        loss.backward()
    again(x)
    again(x)
    train(again(x).sum())
"""


def test_what_is_remembered_leaves_the_budget_to_what_comes_behind() -> None:
    code = BEHIND.replace("{calls}", " + ".join(["net(t)"] * 40))
    for line, ends in (("pass", False), ("self.seen.append(t)", True), ("t[0] = h", True)):
        found = run(code.replace("{line}", line), budget=3_000)
        assert any("the budget is spent" in note for note in found.trace.notes) is ends, line
        assert len(found.trace.walks) == (not ends)
        assert bool(found.trace.cut_short) is ends
