"""Containers: what is put into them is found again."""

from __future__ import annotations

import pytest

from tests.graph.tools import run

CONTAINERS = [
    ("c = []\nc.append(w)\ny = c[0]", "attached"),
    ("c = [x]\nc += [w]\ny = c[1]", "attached"),
    ("c = [x]\nc[0] = w\ny = c[0]", "attached"),
    ("c = [w]\nc[0] = x\ny = c[0]", "free"),
    ("c = [w]\nc.clear()\ny = c", "free"),
    ("c = [w]\ny = c.pop()", "attached"),
    ("c = [x, w]\ny = c[-1]", "attached"),
    # where a loop counts to: the first turn surely comes to the first, the others may end early
    ("c = [x, x]\nfor i in range(2):\n    c[i] = w\ny = c[0]", "attached"),
    ("c = [x, x]\nfor i in range(2):\n    c[i] = w\ny = c[1]", "perhaps"),
    ("c = [x, x]\nfor i in range(2):\n    c[i] = w\n    y = c[i]", "attached"),
    ("c = [w, w]\nfor i in range(2):\n    c[i] = x\ny = c[0]", "free"),
    ("c = [w, w]\nfor i in range(1):\n    c[i] = x\ny = c[1]", "perhaps"),
    ("c = [w, w]\nfor i in range(2):\n    c[i] = x\n    y = c[i]", "free"),
    ("c = [w, w]\nfor i in range(2):\n    c[i] = x\n    c[0] = w\n    y = c[i]", "perhaps"),
    ("c = [w, w]\nfor i in range(2):\n    c[i] = x\nc.append(x)\nfor i in range(2):\n    y = c[i]", "perhaps"),
    ("c = [w, w]\nfor i in range(2):\n    c[i] = x\nfor k in range(2):\n    y = c[k]", "perhaps"),
    ("c = [x, x, w]\nfor i in range(3):\n    y = c[i]", "perhaps"),
    ("c = [x, w]\nfor i in range(1, 2):\n    c[i] = x\ny = c[1]", "perhaps"),
    ("c = [x, w]\nfor i, n in enumerate(c, 1):\n    c[i - 1] = x\ny = c[1]", "perhaps"),
    ("c = [w, w]\nfor i in range(2):\n    if input():\n        c[i] = x\n    y = c[i]", "perhaps"),
    ("c = {}\nfor k, p in net.named_parameters():\n    c[k] = w\n    y = c[k]", "attached"),
    ("c = {'bias': w}\nfor k, p in net.named_parameters():\n    c[k] = x\n    y = c[k]", "free"),
    ("c = {'bias': w}\nfor k, p in net.named_parameters():\n    c[k] = x\ny = c['bias']", "perhaps"),
    ("c = {}\nfor k, p in net.named_parameters():\n    c[k] = x\n    c['bias'] = w\n    y = c[k]", "perhaps"),
    ("c = {}\nfor k, p in net.named_parameters():\n    c[k] = x\nc['bias'] = w\n"
     "for k, p in net.named_parameters():\n    y = c[k]", "perhaps"),
    ("c = [x, w]\nd = [x, w]\nfor i, n in zip(range(3), [1, 2, 3]):\n    d[i % 2] = n\n    y = c[i - 1]", "perhaps"),
    ("c = [w, x]\ny = c[-1]", "free"),
    ("c = [x, w, w]\ny = c[1:]", "attached"),
    ("c = [x, w]\ny = c[1:][0]", "attached"),
    ("c = [w, x]\ny = c[1:][0]", "free"),
    ("c = [x, w]\ny = c[:1][0]", "free"),
    ("c = [w, x]\ny = c[:-1][0]", "attached"),
    ("c = [x, w]\ny = c[::-1][0]", "perhaps"),
    ("c = (x, w)\ny = c[1:][0]", "attached"),
    ("c = [w]\nc.insert(int(input()), x)\ny = c[0]", "perhaps"),
    ("c = [" + "x, " * 12 + "]\nc.insert(0, w)\ny = c[0]", "perhaps"),
    ("import copy\nc = [" + "x, " * 70 + "w]\ny = copy.copy(c)[70]", "perhaps"),
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
    ("from collections import Counter\nc = Counter()\nc.update(a=w)\nc.update(a=x)\ny = c['a']", "attached"),
    ("from collections import Counter\nc = Counter(a=w)\nc.update({'a': x})\ny = c['a']", "attached"),
    ("from collections import Counter\nc = Counter(a=w)\nc += Counter(a=x)\ny = c['a']", "attached"),
    ("from collections import Counter\nc = Counter(a=x)\nc += Counter(a=w)\ny = c['a']", "attached"),
    ("from collections import Counter\nc = Counter(a=x)\nc.update(b=w)\ny = c['a']", "free"),
    ("from collections import Counter\nc = Counter(a=w)\nc['a'] = x\ny = c['a']", "free"),
    ("c = dict(a=w)\nc.update({'a': x})\ny = c['a']", "free"),
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


@pytest.mark.parametrize(
    ("dicts", "expected"),
    [
        ("{'a': {'k': w}, 'b': {}}", "attached"),
        ("{'a': {'k': w}, 'b': {'l': x}, 'c': {'l': w}}", "attached"),
        ("{'a': {'k': x}, 'b': {'l': w}}", "free"),
        ("{'a': {'k': w}, 'b': {'k': x}}", "perhaps"),
        ("{'a': {'k': w}, 'b': defaultdict(lambda: x)}", "perhaps"),
        ("{'a': {'k': w}, 'b': {input(): x}}", "perhaps"),
    ],
)
def test_of_several_dicts_those_that_have_the_key_are_meant(dicts: str, expected: str) -> None:
    code = f"from collections import defaultdict\nchosen = {dicts}[input()]\ny = chosen['k']"
    assert run(code).graph("y") == expected
