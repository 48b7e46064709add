"""Losses that are kept for some steps and back-propagated then: the flag of their first backward is needed."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

START = """\
import collections
import contextlib
import copy
import functools
import heapq
import itertools
import queue
import types

import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.0)


class Holder:
    pass


o = Holder()
"""

LOOP = """
for step in range(12):
    x = torch.randn(8, 4)
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
{body}
    opt.step()
"""

LINES = {
    "window list": (
        "buf = []",
        """
            buf.append(loss)
            if len(buf) == 4:
                sum(buf).backward()
                buf = []
        """,
    ),
    "window clear": (
        "buf = []",
        """
            buf.append(loss)
            if len(buf) > 3:
                torch.stack(buf).sum().backward()
                buf.clear()
        """,
    ),
    "lag index": (
        "buf = []",
        """
            buf.append(loss)
            if step >= 5:
                buf[step - 5].backward()
        """,
    ),
    "lag neg": (
        "buf = []",
        """
            buf.append(loss)
            if len(buf) > 5:
                buf[-5].backward()
        """,
    ),
    "shift names": (
        "a = b = c = d = None",
        """
            a, b, c, d = b, c, d, loss
            if a is not None:
                a.backward()
        """,
    ),
    "shift seq": (
        "a = b = c = d = None",
        """
            if a is not None:
                a.backward()
            a = b
            b = c
            c = d
            d = loss
        """,
    ),
    "shift attrs": (
        "o.a = o.b = o.c = o.d = None",
        """
            o.a, o.b, o.c, o.d = o.b, o.c, o.d, loss
            if o.a is not None:
                o.a.backward()
        """,
    ),
    "shift attrs seq": (
        "o.a = o.b = o.c = o.d = None",
        """
            if o.a is not None:
                o.a.backward()
            o.a = o.b
            o.b = o.c
            o.c = o.d
            o.d = loss
        """,
    ),
    "shift dict": (
        "s = dict(a=None,b=None,c=None,d=None)",
        """
            if s['a'] is not None:
                s['a'].backward()
            s['a'] = s['b']
            s['b'] = s['c']
            s['c'] = s['d']
            s['d'] = loss
        """,
    ),
    "shift dict tuple": (
        "s = dict(a=None,b=None,c=None,d=None)",
        """
            s['a'], s['b'], s['c'], s['d'] = s['b'], s['c'], s['d'], loss
            if s['a'] is not None:
                s['a'].backward()
        """,
    ),
    "shift list slots": (
        "s = [None] * 4",
        """
            s[0], s[1], s[2], s[3] = s[1], s[2], s[3], loss
            if s[0] is not None:
                s[0].backward()
        """,
    ),
    "shift list seq": (
        "s = [None] * 4",
        """
            if s[0] is not None:
                s[0].backward()
            s[0] = s[1]
            s[1] = s[2]
            s[2] = s[3]
            s[3] = loss
        """,
    ),
    "slice shift": (
        "s = [None] * 4",
        """
            s = s[1:] + [loss]
            if s[0] is not None:
                s[0].backward()
        """,
    ),
    "slice assign": (
        "s = [None] * 4",
        """
            s[:-1] = s[1:]
            s[-1] = loss
            if s[0] is not None:
                s[0].backward()
        """,
    ),
    "star": (
        "s = (None,) * 4",
        """
            _, *s = (*s, loss)
            if s[0] is not None:
                s[0].backward()
        """,
    ),
    "tuple shift": (
        "s = (None, None, None, None)",
        """
            s = (*s[1:], loss)
            if s[0] is not None:
                s[0].backward()
        """,
    ),
    "ring": (
        "s = [None] * 4",
        """
            old = s[(step + 1) % 4]
            if old is not None:
                old.backward()
            s[step % 4] = loss
        """,
    ),
    "ring dict": (
        "s = {}",
        """
            old = s.get((step + 1) % 4)
            if old is not None:
                old.backward()
            s[step % 4] = loss
        """,
    ),
    "deque0": (
        "s = collections.deque(maxlen=4)",
        """
            s.append(loss)
            if len(s) == 4:
                s[0].backward()
        """,
    ),
    "deque popleft": (
        "s = collections.deque()",
        """
            s.append(loss)
            if len(s) > 4:
                s.popleft().backward()
        """,
    ),
    "deque rotate": (
        "s = collections.deque([None] * 4)",
        """
            s.rotate(1)
            if s[0] is not None:
                s[0].backward()
            s[0] = loss
        """,
    ),
    "list pop0": (
        "s = []",
        """
            s.append(loss)
            if len(s) > 4:
                s.pop(0).backward()
        """,
    ),
    "insert pop": (
        "s = []",
        """
            s.insert(0, loss)
            if len(s) > 4:
                s.pop().backward()
        """,
    ),
    "queue": (
        "s = queue.Queue()",
        """
            s.put(loss)
            if s.qsize() > 4:
                s.get().backward()
        """,
    ),
    "heap": (
        "s = []",
        """
            heapq.heappush(s, (step, loss))
            if len(s) > 4:
                heapq.heappop(s)[1].backward()
        """,
    ),
    "lambdas": (
        "s = []",
        """
            s.append(lambda l=loss: l.backward())
            if len(s) > 4:
                s.pop(0)()
        """,
    ),
    "partials": (
        "s = []",
        """
            s.append(functools.partial(torch.autograd.backward, loss))
            if len(s) > 4:
                s.pop(0)()
        """,
    ),
    "bound method": (
        "s = []",
        """
            s.append(loss.backward)
            if len(s) > 4:
                s.pop(0)()
        """,
    ),
    "closure": (
        """
            s = []
            def later(l):
                def walk():
                    l.backward()
                return walk
        """,
        """
            s.append(later(loss))
            if len(s) > 4:
                s.pop(0)()
        """,
    ),
    "generator": (
        """
            def line():
                s = []
                out = None
                while True:
                    l = yield out
                    s.append(l)
                    out = s.pop(0) if len(s) > 4 else None
            g = line()
            next(g)
        """,
        """
            old = g.send(loss)
            if old is not None:
                old.backward()
        """,
    ),
    "chain attr": (
        """
            class N:
                def __init__(self, l, prev):
                    self.l, self.prev = l, prev
            n = None
        """,
        """
            n = N(loss, n)
            if step > 5:
                n.prev.prev.prev.prev.l.backward()
        """,
    ),
    "chain tuple": (
        "n = None",
        """
            n = (loss, n)
            if step > 5:
                n[1][1][1][1][0].backward()
        """,
    ),
    "nested dict": (
        "n = None",
        """
            n = {'l': loss, 'p': n}
            if step > 5:
                n['p']['p']['p']['p']['l'].backward()
        """,
    ),
    "rec fn": (
        """
            n = None
            def down(n, k):
                return n[0] if k == 0 else down(n[1], k - 1)
        """,
        """
            n = (loss, n)
            if step > 5:
                down(n, 5).backward()
        """,
    ),
    "setattr names": (
        "",
        """
            setattr(o, f'l{step}', loss)
            if step > 5:
                getattr(o, f'l{step - 5}').backward()
        """,
    ),
    "globals": (
        "",
        """
            globals()[f'l{step}'] = loss
            if step > 5:
                globals()[f'l{step - 5}'].backward()
        """,
    ),
    "default arg": (
        """
            def keep(l, s=[]):
                s.append(l)
                return s.pop(0) if len(s) > 4 else None
        """,
        """
            old = keep(loss)
            if old is not None:
                old.backward()
        """,
    ),
    "fn attr": (
        """
            def keep(l):
                keep.s.append(l)
                return keep.s.pop(0) if len(keep.s) > 4 else None
            keep.s = []
        """,
        """
            old = keep(loss)
            if old is not None:
                old.backward()
        """,
    ),
    "class attr": (
        """
            class K:
                s = []
                @classmethod
                def keep(cls, l):
                    cls.s = cls.s + [l]
                    if len(cls.s) > 4:
                        old, cls.s = cls.s[0], cls.s[1:]
                        return old
        """,
        """
            old = K.keep(loss)
            if old is not None:
                old.backward()
        """,
    ),
    "zip lag": (
        "s = []",
        """
            s += [loss]
            for a, b in zip(s, s[5:]):
                a.backward(retain_graph=True)
        """,
    ),
    "enumerate mod": (
        "s = {}",
        """
            s.setdefault(step // 5, []).append(loss)
            if step % 5 == 4:
                sum(s.pop(step // 5)).backward()
        """,
    ),
    "groupby": (
        "s = []",
        """
            s.append((step // 4, loss))
            if step == 11:
                for k, g in itertools.groupby(s, key=lambda p: p[0]):
                    sum(l for _, l in g).backward()
        """,
    ),
    "islice": (
        "s = []",
        """
            s.append(loss)
            if len(s) > 5:
                next(itertools.islice(s, 5 - 1, None)).backward(retain_graph=True)
        """,
    ),
    "exitstack": (
        "s = contextlib.ExitStack()",
        """
            s.callback(loss.backward)
            if step == 11:
                s.close()
        """,
    ),
    "ema of losses": (
        "e = 0",
        """
            e = 0.5 * e + loss
            if step % 6 == 5:
                e.backward()
                e = 0
        """,
    ),
    "cumulative product": (
        "e = 1",
        """
            e = e * (1 + loss)
            if step % 6 == 5:
                e.backward()
                e = 1
        """,
    ),
    "namespace": (
        "s = types.SimpleNamespace(hist=[])",
        """
            s.hist = [*s.hist, loss][-4:]
            if len(s.hist) == 4:
                s.hist[0].backward(retain_graph=True)
        """,
    ),
    "two level": (
        "s = [[], []]",
        """
            s[step % 2].append(loss)
            if len(s[0]) > 2:
                s[0].pop(0).backward()
        """,
    ),
    "swap": (
        "a, b = [], []",
        """
            a.append(loss)
            if len(a) == 4:
                a, b = b, a
                for l in b:
                    l.backward()
                b.clear()
        """,
    ),
    "copy list": (
        "s = []",
        """
            s.append(loss)
            if step == 9:
                t = copy.copy(s)
                sum(t[2:5]).backward()
        """,
    ),
    "reversed": (
        "s = []",
        """
            s.append(loss)
            if step == 9:
                for l in reversed(s):
                    l.backward()
        """,
    ),
    "while pop": (
        "s = []",
        """
            s.append(loss)
            if step == 9:
                while s:
                    s.pop().backward()
        """,
    ),
    "flag late": (
        """
            late = False
            s = None
        """,
        """
            if late:
                s.backward()
                late = False
            if step == 5:
                s = loss
                late = True
        """,
    ),
    "count": (
        """
            k = 0
            s = None
        """,
        """
            k += 1
            if k == 3:
                s = loss
            if k == 7:
                s.backward()
        """,
    ),
}
"""What is there before the loop, and what each step does with its ``loss``. Each of them runs."""


def _script(case: str, kept: str) -> str:
    before, body = map(dedent, LINES[case])
    return START + before + LOOP.replace("{body}", indent(body.replace("loss", kept), "    "))


@pytest.mark.parametrize("case", LINES)
def test_the_flag_of_a_loss_that_is_walked_later_stays(tmp_path: Path, case: str) -> None:
    assert not [
        f for f in found(tmp_path, "surplus-retain-graph", _script(case, "loss")) if f.promise is not Promise.ADVICE
    ]


@pytest.mark.parametrize("case", ["shift seq", "shift attrs seq", "shift dict", "chain tuple", "chain attr", "ring"])
def test_the_flag_goes_where_only_numbers_are_kept(tmp_path: Path, case: str) -> None:
    script = _script(case, "loss.item()").replace("a.backward()", "print(a)").replace("old.backward()", "print(old)")
    script = script.replace("['a'].backward()", "['a']").replace("l.backward()", "l").replace("[0].backward()", "[0]")
    (finding,) = found(tmp_path, "surplus-retain-graph", script)
    assert finding.promise is Promise.EXACT
