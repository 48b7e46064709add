"""Remembered calls change nothing but the time that a run takes."""

from __future__ import annotations

import textwrap

import pytest

from codemods.graph.model.nodes import Unseen, all_ancestors
from codemods.graph.model.opacity import opaque
from codemods.graph.model.values import Instance
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
        [(a.place.line, bool(found.machine.run.nodes_of(a.added)), a.grad) for a in trace.accumulations],
        [(s.place.line, len(s.nodes) > 0, s.method) for s in trace.storings],
        found.marks(),
        found.again(),
        trace.complete,
    ]


def test_memoised_calls_give_the_same_trace() -> None:
    with_memo, without = run(MEMO), run(MEMO, memo=False)
    assert summary(with_memo) == summary(without)
    assert with_memo.machine.run.memos
    assert with_memo.machine.run.spent < without.machine.run.spent


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
    # scale, inner, and forward as a whole
    assert len(with_memo.machine.run.memos) == 3
    assert with_memo.machine.run.spent < without.machine.run.spent


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


INNER = """
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
            self.kept = None
{methods}
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
            self.l = nn.Linear(3, 3)
        def forward(self, t, u):
{forward}
    outer = Outer()
    opt = torch.optim.SGD(outer.parameters(), lr=0.1)
    with torch.no_grad():
        first = outer(x, x)
    warm = outer(x, x)
{use}
"""
"""A module in another one is called twice before it is used: ``methods`` of the inner, ``forward`` of the outer one."""

TWO = """
    for i in range(2):
        a, b = outer(x, x)
        a.sum().backward(retain_graph=True)
        b.sum().backward()
"""
ONE = """
    for i in range(2):
        r = outer(x, x)
        r.sum().backward(retain_graph=True)
        (r * r).sum().backward()
"""

AGAIN = {
    "elements of a tensor of its own": (
        ["def forward(self, t):", "    h, out = torch.relu(self.a(t)), torch.zeros(3)", "    out[0] = h",
         "    out[1:] = self.b(h)", "    return out, self.c(h)"],
        ["return self.inner(t)"],
        TWO,
    ),
    "elements of a view of its own tensor": (
        ["def fill(self, out, h):", "    out.view(-1)[0] = torch.exp(h)", "    return out",
         "def forward(self, t):", "    h = torch.relu(self.a(t))", "    return self.fill(self.b(h).clone(), h), h"],
        ["return self.inner(t)"],
        TWO,
    ),
    "elements of an argument": (
        ["def forward(self, t, out):", "    h = torch.relu(self.a(t))", "    out[0] = h", "    return self.b(t)"],
        ["out = torch.zeros(3)", "return self.inner(t, out), out"],
        TWO,
    ),
    "elements of a view of an argument": (
        ["def forward(self, t, out):", "    part = out[1:]", "    part[0] = torch.exp(self.a(t))",
         "    return self.b(t)"],
        ["out = torch.zeros(3)", "return self.inner(t, out), out"],
        TWO,
    ),
    "elements of what an attribute holds": (
        ["def forward(self, t):", "    self.kept = torch.zeros(3) if self.kept is None else self.kept",
         "    return self.put(t)", "def put(self, t):", "    self.kept[0] = torch.exp(self.a(t))",
         "    return self.b(t), self.kept.clone()"],
        ["return self.inner(t)"],
        TWO,
    ),
    "two results of one trunk": (
        ["def forward(self, t):", "    h = torch.relu(self.a(t))", "    return self.b(h), self.c(h)"],
        ["return self.inner(t)"],
        TWO,
    ),
    "two results without a common trunk": (
        ["def forward(self, t):", "    return self.b(t), self.c(t)"],
        ["return self.inner(t)"],
        TWO,
    ),
    "one result of another": (
        ["def forward(self, t):", "    h = torch.relu(self.a(t))", "    return h, self.b(h)"],
        ["return self.inner(t)"],
        TWO,
    ),
    "three results, of which two share": (
        ["def forward(self, t):", "    h = torch.relu(self.a(t))", "    return self.b(h), self.b(t), self.c(h)"],
        ["one, two, three = self.inner(t)", "return (one, three) if t is u else (one, two)"],
        TWO,
    ),
    "one tensor given twice, then two": (
        ["def mix(self, q, k):", "    return torch.softmax(q * k, -1)"],
        ["h, k = self.l(t), self.inner.a(u)", "self.inner.mix(h, h)", "return h, self.inner.mix(h, k)"],
        TWO,
    ),
    "two tensors, then one given twice": (
        ["def mix(self, q, k):", "    return torch.softmax(k * k, -1) + q.detach()"],
        ["h, k = self.l(t), self.inner.a(u)", "self.inner.mix(h, k)", "return k, self.inner.mix(h, k)"],
        TWO,
    ),
    "an argument that is given back changed": (
        ["def forward(self, t):", "    return t, torch.exp(t)"],
        ["return self.inner(self.l(t))"],
        TWO,
    ),
    "a list of tensors": (
        ["def forward(self, parts):", "    return torch.exp(self.a(parts[0]) * parts[1])"],
        ["h, k = self.l(t), torch.exp(self.l(u))", "return h, self.inner([k, h])"],
        TWO,
    ),
    "a dict of tensors": (
        ["def forward(self, parts):", "    return torch.exp(self.a(parts['p'])), torch.exp(parts['q'])"],
        ["h, k = torch.exp(self.l(t)), torch.exp(self.l(u))", "return self.inner({'q': h, 'p': h})"],
        TWO,
    ),
    "a list that grows in the call": (
        ["def forward(self, t):", "    found = []", "    for m in (self.a, self.b):", "        t = torch.exp(m(t))",
         "        found.append(t)", "    return found[0], found[1]"],
        ["return self.inner(t)"],
        TWO,
    ),
    "a list that the call grows": (
        ["def forward(self, t, found):", "    t = torch.exp(self.a(t))", "    found.append(t)", "    return self.b(t)"],
        ["found = []", "r = self.inner(t, found)", "return r, found[0]"],
        TWO,
    ),
    "what a module keeps": (
        ["def forward(self, t):", "    self.kept = torch.exp(self.a(t))", "    return self.b(self.kept)"],
        ["r = self.inner(t)", "return r, self.inner.kept"],
        TWO,
    ),
    "a view of what is given": (
        ["def forward(self, t):", "    return t.view(-1)"],
        ["h = torch.exp(self.l(t))", "self.inner(h).mul_(2)", "return h, torch.exp(h)"],
        TWO,
    ),
    "a call that changes what it gets": (
        ["def forward(self, t):", "    t.mul_(2)", "    return self.a(t)"],
        ["h = torch.exp(self.l(t))", "r = self.inner(h)", "return r, h"],
        TWO,
    ),
    "a call that cuts": (
        ["def forward(self, t):", "    return torch.exp(self.a(t)).detach()"],
        ["return self.l(self.inner(t)), self.l(t)"],
        TWO,
    ),
    "a call that freezes": (
        ["def forward(self, t):", "    self.a.requires_grad_(False)", "    return self.a(t)"],
        ["return self.l(t) * self.inner(t)"],
        ONE,
    ),
    "a call that raises on one way": (
        ["def forward(self, t, plain):", "    if plain:", "        raise ValueError", "    return torch.exp(t)"],
        ["return self.inner(self.l(t), False)"],
        ONE,
    ),
    "a number read of what is given": (
        ["def forward(self, t):", "    s = t.sum().item()", "    return torch.exp(self.a(t)) * s"],
        ["return self.inner(self.l(t))"],
        ONE,
    ),
    "an unseen part": (
        ["def forward(self, t):", "    return unseen(torch.exp(self.a(t)))"],
        ["return self.inner(t)"],
        ONE,
    ),
    "a branch": (
        ["def forward(self, t):", "    h = torch.exp(self.a(t))", "    if t.sum() > 0:",
         "        h = torch.exp(self.b(h))", "    return h, self.c(h)"],
        ["return self.inner(t)"],
        TWO,
    ),
}  # fmt: skip


def shape(found: Run) -> list[object]:
    """Of each backward, and of what it meets again: what goes into it, and which nodes that matter are there."""
    return [
        (
            w.place.line,
            sorted({n.birth for r in w.roots for n in r.ancestors() if n.leaf}),
            any(n.saves for n in w.seen),
            any(n.kind.value == "call" for n in w.seen),
            any(n.saves for n, _ in w.again),
            any(n.certain and n.saves for n, _ in w.again),
            sorted({by.place.line for _, by in w.again}),
        )
        for w in found.trace.walks
    ]


def leaves(found: Run) -> dict[int, int]:
    """The births of all leaves, counted: a run that calls less often has another clock."""
    return {n.birth: i for i, n in enumerate(n for n in found.trace.nodes if n.leaf)}


@pytest.mark.parametrize("case", AGAIN)
def test_a_call_leaves_the_same_graph_each_time(case: str) -> None:
    methods, forward, use = AGAIN[case]
    code = INNER.format(
        methods=textwrap.indent("\n".join(methods), " " * 8),
        forward=textwrap.indent("\n".join(forward), " " * 12),
        use=use,
    )
    if "unseen" in code:
        code = "    from somewhere import unseen\n" + code
    seen = []
    for memo in (True, False):
        found = run(code, memo=memo)
        number = leaves(found)
        seen.append([(line, [number[b] for b in births], *more) for line, births, *more in shape(found)])
        assert found.trace.complete
    assert seen[0] == seen[1]
    assert seen[0], "something is back-propagated"


def test_a_module_that_gets_lists_is_not_run_again() -> None:
    methods, forward, use = AGAIN["a list of tensors"]
    code = INNER.format(
        methods=textwrap.indent("\n".join(methods), " " * 8),
        forward=textwrap.indent("\n".join(forward), " " * 12),
        use=use,
    )
    assert run(code).machine.run.spent < run(code, memo=False).machine.run.spent


@pytest.mark.parametrize(
    "body", ["look(t)", "look([t])", "print(t)", "t.sum().item()", "numpy.sum(t.detach())", "look(self)", "pass"]
)
def test_what_a_call_hands_out_is_noted_each_time(body: str) -> None:
    code = INNER.format(
        methods=f"        def forward(self, t):\n            {body}\n            return torch.exp(self.a(t))",
        forward="            return self.inner(self.l(t))",
        use=ONE,
    )
    code = "    import numpy\n    from somewhere import look\n" + code
    seen = []
    for memo in (True, False):
        found = run(code, memo=memo)
        uses = [(use.kind, use.name) for node in found.trace.nodes for use in node.uses]
        escapes = [escape for node in found.trace.nodes for escape in node.escapes]
        handed = [(h.models, [o.oid for o in h.given if isinstance(o, Instance)]) for h in found.trace.handings]
        seen.append((uses, escapes, handed))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("lines", "remembered"),
    [
        (["out = torch.zeros(3)", "out[0] = torch.exp(t)", "return out"], True),
        (["out = torch.exp(t).clone()", "out[0] = torch.exp(t)", "return out"], True),
        (["out[0] = torch.exp(t)", "return torch.exp(t)"], False),
        (["out.view(-1)[0] = torch.exp(t)", "return torch.exp(t)"], False),
        (["self.kept[0] = torch.exp(t)", "return torch.exp(t)"], False),
        (["out = [out][0]", "out[0] = torch.exp(t)", "return torch.exp(t)"], False),
    ],
)
def test_only_what_a_call_made_may_be_changed_in_it(lines: list[str], remembered: bool) -> None:
    methods = ["def put(self, t, out):", *(f"    {line}" for line in lines)]
    code = INNER.format(
        methods=textwrap.indent("\n".join(methods), " " * 8),
        forward="            self.inner.kept = u.clone()\n            return self.inner.put(self.l(t), u.clone())",
        use=ONE,
    )
    found = run(code)
    inner = {
        function.definition.name
        for frame in found.trace.frames
        if (function := frame.function) is not None
        and any(id(function.definition) == key[0][0] and key[1] for key in found.machine.run.memos)
    }
    assert ("put" in inner) is remembered


# forwards as a whole


def test_a_forward_is_not_run_again_for_the_same() -> None:
    for call in ("net(x)", "net.forward(x)", "[net(x) for i in range(2)][0]"):
        code = INNER.format(
            methods="        def forward(self, t):\n            return torch.exp(self.a(t))",
            forward="            return self.inner(self.l(t)) + self.l(u)",
            use="    def again():\n        return outer(x, x).sum()\n" + "    again().backward()\n" * 12,
        )
        less = code.replace("    again().backward()\n" * 12, "    again().backward()\n" * 2)
        each = (run(code).machine.run.spent - run(less).machine.run.spent) / 10
        assert each < 16, call


def test_a_forward_that_is_given_again_is_called_as_any() -> None:
    code = INNER.format(
        methods="        def forward(self, t):\n            return torch.exp(self.a(t))",
        forward="            return self.inner(self.l(t))",
        use=ONE,
    )
    seen = []
    for memo in (True, False):
        found = run(code, memo=memo)
        frames = [f for f in found.trace.frames if f.receiver is not None and not f.call.frame.inside_module]
        forwards = [(f.place.line, f.grad, f.mode, f.closed is None) for f in found.trace.forwards]
        seen.append(([(f.call.line, f.grad, len(f.left), f.end > f.birth) for f in frames], forwards))
        assert found.machine.run.called
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "use",
    [
        "    h = x\n    for i in range(3):\n        h = outer(h, x)\n        h.sum().backward()\n",
        "    for i in range(3):\n        r = outer(x, x)\n        r.sum().backward()\n        s = outer(r, x)\n"
        "        s.sum().backward()\n",
        "    for i in range(3):\n        outer.inner.kept = outer(x, x)\n        outer.inner.kept.sum().backward()\n",
    ],
)
def test_what_was_there_before_a_backward_is_read_each_time(use: str) -> None:
    code = INNER.format(
        methods="        def forward(self, t):\n            if self.kept is not None:\n"
        "                t = t + self.kept\n            return torch.exp(self.a(t))",
        forward="            return self.inner(self.l(t))",
        use=use,
    )
    seen = []
    for memo in (True, False):
        found = run(code, memo=memo)
        stale = sorted(
            (c.kind.value, p.line)
            for n in found.trace.nodes
            for c, p in n.reads
            if n.walks and p.clock > n.walks[0].place.clock
        )
        readings = sorted((r.carrier.kind.value, r.place.line) for r in found.trace.readings)
        seen.append((stale, readings, found.again()))
    assert seen[0] == seen[1]
    assert seen[0][0]


def test_a_result_that_is_one_of_several_stays_so() -> None:
    code = INNER.format(
        methods="        def forward(self, t):\n            h = torch.tanh(self.a(t))\n"
        "            if not self.training:\n                return self.b(h)\n            return self.b(h) * 1.0",
        forward="            return self.inner(self.l(t))",
        use="    outer.train(unknown)\n    a, b = outer(x, x), outer(x, x)",
    )
    for memo in (True, False):
        found = run(code, memo=memo)
        assert [[node.kind.value for node in found.nodes(name)] for name in ("a", "b")] == [["phi"], ["phi"]]
        assert [any(node.saves for node in all_ancestors(found.nodes(name))) for name in ("a", "b")] == [True, True]


def test_what_unseen_code_makes_in_a_call_is_another_graph_each_time() -> None:
    code = """
    from somewhere import make
    class N(nn.Module):
        def __init__(self):
            super().__init__()
            self.l, self.act = nn.Linear(3, 3), make()
        def inner(self, t):
            return self.act(torch.exp(self.l(t)))
        def forward(self, t):
            return self.l(torch.exp(self.inner(t)))
    n = N()
    a, b = n.inner(x), n.inner(x)
    c, d = n(x), n(x)
    """
    found = run(code)
    assert {key[0][0] for key in found.machine.run.memos} >= {
        id(f.definition) for f in found.trace.frames if f.function is not None and f.function.cls and f.end > 0
    } - {id(f.definition) for f in found.trace.frames if getattr(f.definition, "name", "") == "__init__"}
    unseen = {
        name: {o for o in found.machine.run.shadow_of([found.value(name)]) if isinstance(o, Unseen)} for name in "abcd"
    }
    for one, other in ("ab", "cd", "ac", "bd"):
        assert unseen[one]
        assert unseen[one].isdisjoint(unseen[other])
    assert found.value("a").oid != found.value("b").oid
    for memo in (True, False):
        made = run(code, memo=memo)
        assert [
            any(isinstance(o, Unseen) for n in all_ancestors(made.nodes(name)) for o in n.shadow) for name in "cd"
        ] == [
            True,
            True,
        ]


def test_a_layer_that_is_not_known_stays_opaque() -> None:
    code = INNER.format(
        methods="        def forward(self, t):\n            return torch.exp(self.a(self.kind(t)))",
        forward="            return self.inner(self.l(t))",
        use=ONE,
    ).replace("self.kept = None", "self.kind = nn.NotYetKnown(3)")
    for memo in (True, False):
        assert [sum(map(opaque, walk.seen)) for walk in run(code, memo=memo).walks()] == [1] * 8


def test_data_that_shares_memory_is_drawn_into_each_graph() -> None:
    code = INNER.format(
        methods="        def forward(self, t):\n            return torch.exp(self.a(t))",
        forward="            return self.inner(Variable(t))",
        use="    for i in range(3):\n        d = x.detach()\n        r = outer(d).sum()\n        d.mul_(2)\n"
        "        r.backward()",
    )
    drawn = [len({id(a) for aliases, _ in run(code, memo=m).trace.drawn for a in aliases}) for m in (True, False)]
    assert drawn[0] == drawn[1] > 0
