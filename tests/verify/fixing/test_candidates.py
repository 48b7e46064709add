"""Changes for a fault, as texts: which are offered, and where nothing is."""

from __future__ import annotations

import json
from dataclasses import replace
from textwrap import dedent, indent

import pytest

from codemods.source.files import source_from_bytes
from verify.diagnosis.folded import Box, Graph
from verify.diagnosis.model import Clue, Fault, Kind
from verify.fixing.candidates import Candidate, candidates
from verify.measured.values import Site


def at(line: int, function: str = "f") -> Site:
    return Site("t.py", line, function)


def offered(kind: Kind, text: str, *clues: Clue, site: Site | None = None, remedy: str = "") -> list[Candidate]:
    text = dedent(text).lstrip()
    return candidates(
        Fault(kind, "", site, clues, remedy), {"t.py": source_from_bytes(text.encode(), "t.py")}.__getitem__
    )


def changed(kind: Kind, text: str, *clues: Clue, site: Site | None = None, remedy: str = "") -> list[str]:
    """The first line that each candidate adds."""
    old = dedent(text).lstrip().splitlines()
    found = []
    for candidate in offered(kind, text, *clues, site=site, remedy=remedy):
        new = candidate.files["t.py"].splitlines()
        found.append(next(line.strip() for place, line in enumerate(new) if place >= len(old) or line != old[place]))
    return found


LOOP = """
def f():
    y = t @ a
    for step in range(3):
        loss = (y - 1).sum()
        loss.backward()
"""


def test_a_graph_made_before_the_loop_is_made_in_it() -> None:
    clues = (Clue("cause", at(2)), Clue("carrier", name="y", function="f"), Clue("consumer", at(4)))
    found = changed(Kind.SECOND_BACKWARD, LOOP, *clues, Clue("freed by", at(5)))
    assert found[:3] == ["for step in range(3):", "y = t @ a", "y = y.detach()"]
    assert found[-1] == "loss = (y.detach() - 1).sum()"


CACHES = {
    "a method": ("if self.z is None:\n    self.z = net(self.x)\nreturn self.z", 2, "p.z", "self.z = net(self.x)"),
    "two statements": (
        "if self.z is None:\n    h = net(D)\n    self.z = h.mean(0)\nreturn self.z", 3, "self.z", "h = net(D)",
    ),
    "a key": ("if k not in kept:\n    kept[k] = net(D)\nreturn kept[k]", 2, "kept['a']", "kept[k] = net(D)"),
    "two names": ("if z is None:\n    z = self.z = net(D)\nreturn z", 2, "p.z", "z = self.z = net(D)"),
    "with a flag": ("if self.old:\n    self.z, self.old = net(D), False", 2, "p.z", "self.z, self.old = net(D), False"),
    "one expression": ("self.z = net(D) if self.z is None else self.z", 1, "p.z", "self.z = net(D)"),
    "the other order": ("self.z = self.z if self.z is not None else net(D)", 1, "p.z", "self.z = net(D)"),
    "an early return": ("if self.z is not None:\n    return self.z\nz = net(D)\nself.z = z", 3, "p.z", "z = net(D)"),
    "a closure": ("nonlocal z\nif z is None:\n    z = net(D)\nreturn z", 3, "get.<closure z>", "z = net(D)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CACHES)
def test_a_cache_is_computed_each_time(name: str) -> None:
    body, line, carrier, wanted = CACHES[name]
    text = f"def get(self, k):\n{indent(body, '    ')}\n"
    clues = (Clue("cause", at(line + 1)), Clue("carrier", name=carrier), Clue("consumer", at(1)))
    assert changed(Kind.SECOND_BACKWARD, text, *clues)[0] == wanted


@pytest.mark.parametrize(
    "body",
    [
        "if self.z is None:\n    self.z = net(k)\nreturn self.z",
        "if self.z is None:\n    h = net(k)\n    self.z = h\nreturn self.z",
        "self.z = net(k) if self.z is None else self.z",
        "if self.z is not None:\n    return self.z\nself.z = net(k)",
        "if self.z is None:\n    self.z = net(D)\nelse:\n    print()\nreturn self.z",
    ],
)
def test_what_the_first_batch_made_is_not_computed_each_time(body: str) -> None:
    text = f"def get(self, k):\n{indent(body, '    ')}\n"
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "self.z = " in each)
    clues = (Clue("cause", at(line)), Clue("carrier", name="p.z"), Clue("consumer", at(1)))
    assert not [each for each in offered(Kind.SECOND_BACKWARD, text, *clues) if "each time" in each.title]


def test_a_state_that_a_call_gets_again_is_detached_behind_the_backward() -> None:
    text = """
    def f(net, xs):
        state = net.start()
        for x in xs:
            out, state = net(x, state)
            loss = out.sum()
            loss.backward()
    """
    clues = (Clue("cause", at(99)), Clue("carrier", name="h", function="forward"), Clue("consumer", at(99)))
    found = changed(Kind.SECOND_BACKWARD, text, *clues, Clue("freed by", at(6)))
    assert found == ["state = state.detach()"]
    several = (clues[0], Clue("carrier", name="h[0]", function="forward"), clues[2])
    found = changed(Kind.SECOND_BACKWARD, text, *several, Clue("freed by", at(6)))
    assert found == ["state = tuple(part.detach() for part in state)"]
    records = dedent(text) + "    State = namedtuple('State', 'h c')\n"
    found = changed(Kind.SECOND_BACKWARD, records, *several, Clue("freed by", at(6)))
    assert found[0] == "state = state._make(part.detach() for part in state)"


def test_what_a_function_made_before_the_loop_is_made_in_it() -> None:
    text = """
    def weights(t):
        return t.softmax(0)
    def train(t):
        w = weights(t)
        for x in xs:
            loss = (w * x).sum()
            loss.backward()
    """
    clues = (Clue("cause", at(2)), Clue("carrier", name="w"), Clue("consumer", at(6)), Clue("freed by", at(7)))
    assert changed(Kind.SECOND_BACKWARD, text, *clues)[0] == "for x in xs:"
    other = (clues[0], Clue("carrier", name="v"), *clues[2:])
    assert "for x in xs:" not in changed(Kind.SECOND_BACKWARD, text, *other)


def test_a_loss_is_walked_once_or_its_graph_is_kept() -> None:
    text = """
    for x in xs:
        loss = net(x).sum()
        loss.backward()
        print(norm())
        loss.backward()
        opt.step()
    """
    clues = (Clue("cause", at(2)), Clue("carrier", name="loss"), Clue("consumer", at(5)), Clue("freed by", at(3)))
    remedy = "call backward once for each loss, or retain_graph=True in the first call if twice is meant"
    found = changed(Kind.SECOND_BACKWARD, text, *clues, site=at(5), remedy=remedy)
    assert found == ["opt.step()", "loss.backward(retain_graph=True)"]


def test_a_loss_that_every_turn_walks_is_computed_in_each_or_left_alone() -> None:
    text = "loss = net(x).sum()\nfor step in range(3):\n    loss.backward()\n    W.data -= W.grad\n"
    clues = (Clue("cause", at(1)), Clue("consumer", at(3)), Clue("freed by", at(3)))
    remedy = "compute the loss anew in every turn; or, if twice is meant, call backward once with the losses added"
    (found,) = offered(Kind.SECOND_BACKWARD, text, *clues, site=at(3), remedy=remedy)
    assert found.files["t.py"].splitlines()[:2] == ["for step in range(3):", "    loss = net(x).sum()"]
    # Never the graph of old values, kept.
    deeper = "h = net(x)\nloss = make(h)\nloss.retain_grad()\n" + text.partition("\n")[2]
    clues = (Clue("cause", at(2)), Clue("consumer", at(5)), Clue("freed by", at(5)))
    assert offered(Kind.SECOND_BACKWARD, deeper, *clues, site=at(5), remedy=remedy) == []


def test_what_a_loss_is_computed_from_in_the_same_graph_is_computed_in_each_turn_too() -> None:
    text = """
    X = load()
    W = torch.randn(3, 1, requires_grad=True)
    out = X @ W
    probs = out.exp()
    loss = probs.log().mean()
    print(loss.item())
    for step in range(3):
        loss.backward()
    """
    boxes = tuple(Box(at(line), "", 1, 1, 1, ()) for line in (3, 4, 5))
    clues = (Clue("cause", at(5)), Clue("consumer", at(8)), Clue("freed by", at(8)))
    remedy, graph = "compute the loss anew in every turn; or, if twice is meant", Graph(boxes, (), (), 3)
    fault = Fault(Kind.SECOND_BACKWARD, "", at(8), clues, remedy, graph=graph)
    (found,) = candidates(fault, {"t.py": source_from_bytes(dedent(text).lstrip().encode(), "t.py")}.__getitem__)
    lines = found.files["t.py"].splitlines()
    # What has no graph stays where it is, and what is shown before the loop is shown.
    assert [line.strip() for line in lines[7:10]] == [line.strip() for line in lines[2:5]]
    assert lines[5:7] == ["print(loss.item())", "for step in range(3):"]


def test_a_sum_of_earlier_steps_is_taken_up_without_its_graph() -> None:
    text = "self.loss = self.loss + net(x).sum()\nself.loss.backward(retain_graph=True)\n"
    clues = (Clue("cause", at(9)), Clue("carrier", name="self.w"), Clue("saved by", at(1)))
    remedy = "the graph of an earlier step is walked again: detach what is carried from step to step"
    found = changed(Kind.CHANGED_IN_PLACE, text, *clues, remedy=remedy)
    assert found == ["self.loss = self.loss.detach() + net(x).sum()"]
    assert changed(Kind.CHANGED_IN_PLACE, text, *clues) == []


def test_what_is_made_beside_its_use_is_not_made_twice() -> None:
    text = """
    def f():
        for step in range(3):
            z = trunk(draw())
            first = left(z)
            second = right(z)
            first.backward()
            second.backward()
    """
    clues = (Clue("cause", at(3)), Clue("carrier", name="z", function="f"), Clue("consumer", at(5)))
    found = changed(Kind.SECOND_BACKWARD, text, *clues, Clue("freed by", at(6)), remedy="both losses are built on z")
    assert "z = trunk(draw())" not in found
    assert "first.backward(retain_graph=True)" in found


def test_a_state_is_detached_where_it_is_kept_whatever_it_is() -> None:
    text = "out, self.h = self.rnn(x, self.h)\nreturn_(out)\n"
    tensor = (Clue("cause", at(1)), Clue("carrier", name="self.h"), Clue("consumer", at(1)))
    several = (Clue("cause", at(1)), Clue("carrier", name="self.h[0]"), Clue("consumer", at(1)))
    assert changed(Kind.SECOND_BACKWARD, text, *tensor)[0] == "self.h = self.h.detach()"
    assert changed(Kind.SECOND_BACKWARD, text, *several)[0] == "self.h = tuple(part.detach() for part in self.h)"


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("h[:, 0] = 0", "h = h.clone()"),
        ("h.mul_(0.5)", "h = h.mul(0.5)"),
        ("h -= h.mean()", "h = h - h.mean()"),
        ("h -= a + b", "h = h - (a + b)"),
        ("self.x *= 2", "self.x = self.x * 2"),
        ("self.x.mul_(0.9).add_(0.1 * h)", "self.x = self.x.mul(0.9).add(0.1 * h)"),
    ],
)
def test_changes_in_place_are_written_elsewhere(statement: str, wanted: str) -> None:
    text = f"h = f(x)\n{statement}\n"
    assert changed(Kind.CHANGED_IN_PLACE, text, Clue("cause", at(2)))[0] == wanted


@pytest.mark.parametrize(
    "text",
    [
        "for h in net.parameters():\n    h.mul_(0.5)\n",
        "for a, h in zip(x, y):\n    h += 1\n",
        "h = net.weight\nh.mul_(0.5)\n",
        "h = rows[0]\nh.zero_()\n",
        "h = x.view(-1)\nh.zero_()\n",
        "def f(h):\n    h.sub_(1)\n",
        "def f(h):\n    h[0] = 1\n    return x\n",
        "h.mul_(0.5)\n",
    ],
)
def test_another_name_of_what_others_read_is_given_no_new_value(text: str) -> None:
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "_(" in each or "+=" in each or "[0] =" in each)
    assert offered(Kind.CHANGED_IN_PLACE, text, Clue("cause", at(line))) == []


ALIAS = """
def forward(self, x):
    h = self.a(x)
    gate = h
    gate *= self.b(h)
    return gate
"""


def test_another_name_of_what_nobody_reads_any_more_may_have_a_new_value() -> None:
    assert changed(Kind.CHANGED_IN_PLACE, ALIAS, Clue("cause", at(4)))[0] == "gate = gate * self.b(h)"


@pytest.mark.parametrize(
    ("old", "new"),
    [("return gate", "return h"), ("h = self.a(x)", "h = x"), ("h = self.a(x)", "pass"), ("gate = h", "gate = x")],
)
def test_another_name_of_what_somebody_reads_is_given_no_new_value(old: str, new: str) -> None:
    assert offered(Kind.CHANGED_IN_PLACE, ALIAS.replace(old, new), Clue("cause", at(4))) == []


def test_an_argument_that_a_function_returns_may_have_a_new_value() -> None:
    text = "def f(h):\n    h.sub_(1)\n    return h\n"
    assert changed(Kind.CHANGED_IN_PLACE, text, Clue("cause", at(2))) == ["h = h.sub(1)"]


def test_a_step_goes_behind_the_backward_that_needs_its_parameters() -> None:
    text = "od.step()\nog.zero_grad()\nloss.backward()\nog.step()\n"
    (moved,) = offered(Kind.CHANGED_IN_PLACE, text, Clue("cause", at(1)), site=at(3))
    assert moved.files["t.py"] == "og.zero_grad()\nloss.backward()\nod.step()\nog.step()\n"


UPDATE = """
def update(tau):
    for a, b in zip(target.parameters(), net.parameters()):
        a.lerp_(b, tau)
def f():
    want = target(x)
    update(0.1)
    loss = (net(x) - want).sum()
    loss.backward()
"""


def test_an_update_by_hand_goes_behind_the_backward_that_needs_what_it_changes() -> None:
    clues = (Clue("cause", at(3, "update")), Clue("called from", at(6)), Clue("saved by", at(5)))
    moved = offered(Kind.CHANGED_IN_PLACE, UPDATE, *clues, site=at(8))[0]
    assert moved.files["t.py"].endswith("    loss = (net(x) - want).sum()\n    loss.backward()\n    update(0.1)\n")
    block = UPDATE.replace("    update(0.1)\n", "    with no_grad():\n        a.mul_(2)\n")
    clues = (Clue("cause", at(7)), Clue("saved by", at(5)))
    moved = offered(Kind.CHANGED_IN_PLACE, block, *clues, site=at(9))[0]
    assert moved.files["t.py"].endswith("    loss.backward()\n    with no_grad():\n        a.mul_(2)\n")


@pytest.mark.parametrize(
    "change",
    ["w[m] = 0.0", "w *= 2", "w.data.mul_(2)", "w.data[0] = x", "torch.relu_(w)", "torch.exp(x, out=w)"],
)
def test_a_change_in_place_is_not_moved_behind_what_reads_it(change: str) -> None:
    for name in ("w", "self.w"):
        text = f"import torch; h = f(w)\n{change}\nloss = h.sum()\nloss.backward()\n".replace("w", name)
        clues = (Clue("cause", at(2)), Clue("carrier", name=name), Clue("saved by", at(1)))
        moved = [each for each in offered(Kind.CHANGED_IN_PLACE, text, *clues, site=at(4)) if each.way == "later"]
        assert [each.files["t.py"].splitlines()[-1] for each in moved] == [change.replace("w", name)]
        text = text.replace("h.sum()", f"(h * {name}).sum()")
        assert not any(each.way == "later" for each in offered(Kind.CHANGED_IN_PLACE, text, *clues, site=at(4)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    update(0.1)\n", "    x = update(0.1)\n"),
        ("    update(0.1)\n", "    x = 1; update(0.1)\n"),
        ("    want = target(x)\n    update(0.1)\n", "    y = 1\n    want = target(update(0.1))\n"),
        ("    loss.backward()\n", "    if x:\n        loss.backward()\n"),
    ],
)
def test_an_update_stays_where_others_need_it(old: str, new: str) -> None:
    text = UPDATE.replace(old, new)
    lines = text.strip("\n").split("\n")
    saved = next(n for n, line in enumerate(lines, 1) if "want = " in line)
    called = next(n for n, line in enumerate(lines, 1) if "update(0.1)" in line)
    clues = (Clue("cause", at(3, "update")), Clue("called from", at(called)), Clue("saved by", at(saved)))
    offers = offered(Kind.CHANGED_IN_PLACE, text, *clues, site=at(len(lines)))
    assert not any(each.way == "later" for each in offers)


@pytest.mark.parametrize(
    ("line", "carrier", "wanted"),
    [
        ("out = y * self.gain", "net.gain", "out = y * self.gain.clone()"),
        ("hs[t + 1] = cell(xs[t], hs[t])", "hs", "hs[t + 1] = cell(xs[t], hs.clone()[t])"),
        ("out = y * self.gains[0]", "net.gains[0]", "out = y * self.gains[0].clone()"),
        ("h = y.exp()", "h", "h = h.clone()"),
        ("out = y * z", "net.gain", ""),
    ],
)
def test_who_saves_a_tensor_takes_a_copy(line: str, carrier: str, wanted: str) -> None:
    clues = (Clue("cause", text="unseen"), Clue("carrier", name=carrier), Clue("saved by", at(1)))
    assert changed(Kind.CHANGED_IN_PLACE, line + "\n", *clues)[:1] == ([wanted] if wanted else [])


@pytest.mark.parametrize(
    ("line", "carrier", "wanted"),
    [
        ("r = logp() - old", "old", "r = logp() - old.detach()"),
        ('out = x - self.seen[-1]["out"]', "self.seen[0]['out']", 'out = x - self.seen[-1]["out"].detach()'),
        ("h = cell(x, book[k])", "book[0][1]", "h = cell(x, tuple(part.detach() for part in book[k]))"),
        ("h = cell(x, other)", "book", ""),
    ],
)
def test_what_an_earlier_step_left_is_read_without_its_graph(line: str, carrier: str, wanted: str) -> None:
    clues = (Clue("cause", text="no line"), Clue("carrier", name=carrier), Clue("consumer", at(1)))
    assert changed(Kind.SECOND_BACKWARD, line + "\n", *clues) == ([wanted] if wanted else [])
    assert changed(Kind.SECOND_BACKWARD, line + "\n", *clues, remedy="both losses are built on it") == []


MADE = """
prior = net(z).sigmoid()
criterion = partial(divergence, prior=prior)
for x in data:
    loss = criterion(x)
    loss.backward()
"""


WEIGHTS = """
fast = list(weights)
for task in tasks:
    for _ in range(2):
        fast = [w - g for w, g in zip(fast, grads(fast))]
    loss = f(fast)
    loss.backward()
"""


def begun(text: str) -> list[Candidate]:
    clues = (Clue("cause", at(4)), Clue("carrier", name="params[0]", function="f"), Clue("consumer", at(5)))
    found = offered(Kind.SECOND_BACKWARD, text, *clues, Clue("freed by", at(6)))
    return [each for each in found if each.title.startswith("begin ")]


def test_what_a_loop_takes_over_is_begun_in_each_turn() -> None:
    (found,) = begun(WEIGHTS)
    assert found.files["t.py"].splitlines()[:2] == ["for task in tasks:", "    fast = list(weights)"]
    assert (found.way, found.fresh) == ("afresh", True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fast = list(weights)", "slow = list(weights)"),
        ("fast = list(weights)", "fast, lr = list(weights), 0.1"),
        ("fast = list(weights)", "fast = list(weights); lr = 0.1"),
        ("for task in tasks:", "if tasks:"),
        ("    loss.backward()\n", "    loss.backward()\nprint(fast)\n"),
    ],
)
def test_what_no_statement_of_its_own_begins_is_not_begun_again(old: str, new: str) -> None:
    assert begun(WEIGHTS.replace(old, new)) == []


def test_a_graph_and_what_is_made_of_it_are_made_in_the_loop() -> None:
    clues = (Clue("cause", at(1)), Clue("carrier", name="prior"), Clue("freed by", at(5)))
    moved = offered(Kind.SECOND_BACKWARD, MADE, *clues)[0]
    assert moved.fresh
    assert [line for line in moved.files["t.py"].splitlines() if line] == [
        "for x in data:",
        "    prior = net(z).sigmoid()",
        "    criterion = partial(divergence, prior=prior)",
        "    loss = criterion(x)",
        "    loss.backward()",
    ]
    for line in ("criterion = partial(divergence, prior=prior)", "prior = net(z).sigmoid()"):
        other = MADE.replace(line, "prior.retain_grad()" if "partial" in line else "self.prior, prior = net(z)")
        assert not any("each turn" in each.title for each in offered(Kind.SECOND_BACKWARD, other, *clues))


def test_a_list_is_made_again_before_the_loop_over_it() -> None:
    text = """
    class N(nn.Module):
        def __init__(self):
            self.scales = [p.exp() for p in self.raw]
        def forward(self, x):
            for s in self.scales:
                x = x * s
            return x
    """
    carrier = Clue("carrier", name="s", function="forward", also=("self.scales[0]",))
    clues = (Clue("cause", at(3, "__init__")), carrier, Clue("consumer", at(6, "forward")))
    (found, *_) = offered(Kind.SECOND_BACKWARD, text, *clues)
    assert "(self, x):\n        self.scales = [p.exp() for p in self.raw]\n        for s in" in found.files["t.py"]
    (other, *_) = offered(Kind.SECOND_BACKWARD, text, clues[0], replace(carrier, also=()), clues[2])
    assert other.way == "cut"


def test_what_the_first_batch_gave_is_not_made_of_each_batch() -> None:
    text = """
    for x in data:
        z = net(x)
        if anchor is None:
            anchor = z.mean(0)
        loss = (z - anchor).sum()
        loss.backward()
    """
    clues = (Clue("cause", at(4)), Clue("carrier", name="anchor"), Clue("consumer", at(5)), Clue("freed by", at(6)))
    assert {each.way for each in offered(Kind.SECOND_BACKWARD, text, *clues)} == {"cut"}
    of_parameters = text.replace("z.mean(0)", "net.weight.exp()")
    assert offered(Kind.SECOND_BACKWARD, of_parameters, *clues)[0].way == "rebuild"


def test_a_buffer_is_made_where_it_is_used() -> None:
    text = """
    class N(nn.Module):
        def __init__(self):
            self.register_buffer("mix", self.a @ self.b)
        def forward(self, x):
            return x @ self.mix
    """
    clues = (Clue("cause", at(3, "__init__")), Clue("carrier", name="self.mix"), Clue("consumer", at(5, "forward")))
    assert changed(Kind.SECOND_BACKWARD, text, *clues)[0] == "self.mix = self.a @ self.b"


def test_gradients_that_are_used_are_recorded() -> None:
    text = "energy = net(x).sum()\nforce, = torch.autograd.grad(energy, x)\nloss = energy + force.sum()\n"
    clues = (Clue("cause", at(1)), Clue("freed by", at(2)), Clue("consumer", at(3)))
    assert changed(Kind.SECOND_BACKWARD, text, *clues) == [
        "force, = torch.autograd.grad(energy, x, create_graph=True)",
        "force, = torch.autograd.grad(energy, x, retain_graph=True)",
    ]
    told = text.replace("energy, x)", "energy, x, create_graph=again)")
    assert changed(Kind.SECOND_BACKWARD, told, *clues) == []


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("    loss.backward()\n    opt.step()\n", "opt.zero_grad()"),
        ("    one.backward()\n    two.backward()\n    opt.step()\n", "opt.zero_grad()"),
        ("    walk()\n    opt.step(closure)\n", ""),
    ],
)
def test_gradients_that_nobody_clears_are_cleared(body: str, first: str) -> None:
    text = f"for x in data:\n    loss = f(x)\n{body}"
    step = next(n for n, line in enumerate(text.splitlines(), 1) if "step(" in line)
    offers = offered(Kind.NEVER_CLEARED, text, Clue("step", at(step)))
    assert len(offers) == (2 if first else 1)
    lines = offers[0].files["t.py"].splitlines()
    assert lines.index("    opt.zero_grad()") == (2 if first else len(lines) - 1)
    assert offered(Kind.NEVER_CLEARED, text.replace("opt.step(", "train("), Clue("step", at(step))) == []


def test_a_forward_for_nobody_makes_no_graph() -> None:
    text = "import torch\nfor x in data:\n    soft = teacher(x)  # as it is\n    if x: teacher(x)\n"
    (found,) = offered(Kind.UNUSED_FORWARDS, text, Clue("cause", at(3)))
    assert "    with torch.no_grad():\n        soft = teacher(x)  # as it is\n" in found.files["t.py"]
    assert offered(Kind.UNUSED_FORWARDS, text, Clue("cause", at(4))) == []
    assert offered(Kind.UNUSED_FORWARDS, text.removeprefix("import torch\n"), Clue("cause", at(2))) == []


def test_what_would_be_no_python_is_not_offered() -> None:
    text = "x = 1\nif x:\n    h = body(x).data\n"
    clues = Clue("cause", at(3))
    assert changed(Kind.NO_GRADIENT, text, clues) == ["h = body(x)"]
    # Nothing else would be left under the condition.
    assert changed(Kind.NO_GRADIENT, "if x:\n    h = h.data\n", Clue("cause", at(2))) == ["pass"]


def test_what_is_kept_is_kept_without_its_graph() -> None:
    text = "loss = f(x)\ntotal += loss\nself.history.append(loss)\nother.append(loss)\n"
    clues = (Clue("cause", at(1)), Clue("carrier", name="trainer.history[*]"))
    assert changed(Kind.GROWING_GRAPH, text, *clues) == ["self.history.append(loss.detach())"]
    assert changed(Kind.GROWING_GRAPH, text, Clue("cause", at(1)), Clue("carrier", name="total")) == [
        "total += loss.detach()"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1; b.mul_(2)\n",
        "if (b.mul_(2)).any(): pass\n",
        "b.mul_(\n  2)\n",
        "not python(\n",
        "b.mul(2)\n",
        "b.__x__()\n",
    ],
)
def test_nothing_is_offered_for_what_cannot_be_changed_alone(text: str) -> None:
    assert offered(Kind.CHANGED_IN_PLACE, text, Clue("cause", at(1))) == []


def test_nothing_is_offered_without_a_line_or_for_another_kind() -> None:
    assert offered(Kind.CHANGED_IN_PLACE, "b.mul_(2)\n", Clue("cause")) == []
    assert offered(Kind.SLOWER_STEPS, "b.mul_(2)\n", Clue("cause", at(1))) == []


def test_a_cell_of_a_notebook_is_changed_as_the_program_that_all_are() -> None:
    cells = [["%matplotlib inline\n", "b = f()"], ["c = b.sigmoid()\n", "b.mul_(2)"]]
    written = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    data = json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
    source = source_from_bytes(data, "a.ipynb")
    clue = Clue("cause", Site("a.ipynb", 2, "<module>", 2))
    found = candidates(Fault(Kind.CHANGED_IN_PLACE, "", None, (clue,)), {"a.ipynb": source}.__getitem__)[0]
    changed = json.loads(source.encode(found.files["a.ipynb"]))
    assert ["".join(cell["source"]) for cell in changed["cells"]] == [
        "".join(cells[0]),
        "c = b.sigmoid()\nb = b.mul(2)",
    ]
    other = replace(clue, site=Site("a.ipynb", 2, "<module>", 7))
    assert candidates(Fault(Kind.CHANGED_IN_PLACE, "", None, (other,)), {"a.ipynb": source}.__getitem__) == []


STATE = """
def f():
    for step in range(3):
        smooth = 0.9 * smooth + 0.1 * loss(step)
        smooth.backward()
"""


def test_a_state_that_feeds_itself_may_be_cut_or_begin_afresh() -> None:
    clues = (Clue("cause", at(3)), Clue("carrier", name="smooth", function="f"), Clue("freed by", at(4)))
    found = changed(Kind.SECOND_BACKWARD, STATE, *clues, Clue("consumer", at(3)))
    assert found[:2] == ["smooth = smooth.detach()", "smooth = smooth.new_zeros(smooth.shape)"]
    # What is made once and used elsewhere is no state: zeros would be nonsense.
    assert not any("new_zeros" in line for line in changed(Kind.SECOND_BACKWARD, LOOP, *clues, Clue("consumer", at(4))))


TWO = """
def f():
    for x in data:
        first = left(x)
        first.backward(retain_graph=True)
        one.step()
        second = right(x)
        second.backward()
        other.step()
"""


def test_two_losses_are_walked_as_one_sum() -> None:
    offers = offered(Kind.CHANGED_IN_PLACE, TWO, Clue("cause", at(5)), site=at(7))
    (found,) = [each for each in offers if each.summed]
    assert [line.strip() for line in found.files["t.py"].splitlines()] == [
        "def f():",
        "for x in data:",
        "first = left(x)",
        "second = right(x)",
        "(first + second).backward()",
        "one.step()",
        "other.step()",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("one.step()", "one.zero_grad()"),
        ("second = right(x)", "first = right(x)"),
        ("first.backward(retain_graph=True)", "first.backward(weights)"),
        ("first.backward(retain_graph=True)", "first.backward(create_graph=True)"),
        ("second.backward()", "first.backward()"),
        ("first.backward(retain_graph=True)", "if x: first.backward()"),
    ],
)
def test_what_stands_between_two_losses_keeps_them_apart(old: str, new: str) -> None:
    clues = (Clue("freed by", at(4)), Clue("consumer", at(7)))
    offers = offered(Kind.SECOND_BACKWARD, TWO.replace(old, new), *clues, site=at(7))
    assert not any(each.summed for each in offers)
    assert any(each.summed for each in offered(Kind.SECOND_BACKWARD, TWO, *clues, site=at(7)))


CUT = """
net = Net()
optimizer = SGD(net.parameters(), 0.1)
features = net.body(x).detach()
"""


def test_what_lies_behind_a_cut_that_is_meant_may_be_frozen() -> None:
    parameters = Clue("parameters", name="net.body.weight, net.body.bias")
    (_, frozen) = offered(Kind.NO_GRADIENT, CUT, Clue("cause", at(3, "<module>")), parameters)
    lines = frozen.files["t.py"].splitlines()
    assert lines[1:3] == ["net.body.weight.requires_grad_(False)", "net.body.bias.requires_grad_(False)"]


@pytest.mark.parametrize(
    "names",
    [
        "one of shape (4,)",
        "net.a, net.b, net.c, net.d and 3 more",
        "net.body[0].weight",
        "net.a, other.a",
        "self.body.weight",
    ],
)
def test_what_has_no_name_of_its_own_is_not_frozen(names: str) -> None:
    found = changed(Kind.NO_GRADIENT, CUT, Clue("cause", at(3, "<module>")), Clue("parameters", name=names))
    assert found == ["features = net.body(x)"]


CACHED = """
@lru_cache(maxsize=None)
def table():
    return net(x)
def f():
    return table()[0]
"""


def test_a_cache_that_gives_a_graph_out_again_goes() -> None:
    clues = (Clue("cause", at(3, "table")), Clue("carrier", text="no name"), Clue("consumer", at(5)))
    (found,) = offered(Kind.SECOND_BACKWARD, CACHED, *clues)
    assert found.files["t.py"].startswith("def table():")
    kept = CACHED.replace("@lru_cache(maxsize=None)", "@staticmethod")
    assert offered(Kind.SECOND_BACKWARD, kept, *clues) == []
    attribute = offered(Kind.SECOND_BACKWARD, CACHED.replace("lru_cache(maxsize=None)", "cached_property"), *clues)
    assert attribute[0].files["t.py"].startswith("@property\ndef table():")


CLOSURE = """
def make(anchor):
    prior = encoder(anchor)
    def criterion(out):
        return (out - prior).sum()
    return criterion
"""


def test_what_a_function_takes_from_outside_is_made_in_it() -> None:
    clues = (Clue("cause", at(2, "make")), Clue("carrier", name="prior", function="criterion"))
    used = Clue("consumer", at(4, "criterion"))
    (found, *_) = offered(Kind.SECOND_BACKWARD, CLOSURE, *clues, used)
    line, made = "    prior = encoder(anchor)\n", CLOSURE.lstrip()
    assert found.files["t.py"] == made.replace(line, "").replace("        return", f"    {line}        return")
    shown = CLOSURE.replace("    return criterion", "    print(prior)\n    return criterion")
    assert changed(Kind.SECOND_BACKWARD, shown, *clues, used)[0] == "prior = encoder(anchor)"
    for other in (
        CLOSURE.replace("criterion(out)", "criterion(anchor)"),
        CLOSURE.replace("return (out", "print(prior); return (out"),
        CLOSURE.replace("    prior =", "    for anchor in anchors: prior ="),
    ):
        assert not any("again" in each.title for each in offered(Kind.SECOND_BACKWARD, other, *clues, used))


@pytest.mark.parametrize(
    ("line", "carrier", "added"),
    [
        ("memory[user] = cell(x, memory[user])", "memory[0]", "memory[user] = memory[user].detach()"),
        ("memory[user] = cell(x, memory[user])", "agent.memory['a'][1]", "memory[user] = tuple(part.detach() for "),
        ("memory[user] = cell(x, memory[user])", "other[0]", ""),
        ("memory[:2] = cell(x, memory[:2])", "memory[0]", ""),
        ("state = cell(x, state)", "state", "state = state.detach()"),
    ],
)
def test_a_state_is_cut_where_it_is_taken_up(line: str, carrier: str, added: str) -> None:
    text = f"for x in data:\n    {line}\n    yield_(head({line.partition(' = ')[0]}))\n"
    clues = (Clue("cause", at(2)), Clue("carrier", name=carrier), Clue("consumer", at(2)))
    found = [each for each in offered(Kind.SECOND_BACKWARD, text, *clues) if "taken up" in each.title]
    assert len(found) == bool(added)
    if found:
        assert found[0].files["t.py"].splitlines()[1].strip().startswith(added)


def test_a_state_that_is_asked_for_by_get_is_cut_once_there_is_one() -> None:
    text = "for x in data:\n    seen['h'] = cell(x, seen.get('h'))\n    use(seen['h'])\n"
    clues = (Clue("cause", at(2)), Clue("carrier", name="seen['h']"), Clue("consumer", at(2)))
    (found,) = [each for each in offered(Kind.SECOND_BACKWARD, text, *clues) if "taken up" in each.title]
    assert "    if 'h' in seen:\n        seen['h'] = seen['h'].detach()\n" in found.files["t.py"]


def test_a_state_that_is_begun_by_then_is_cut_without_a_question() -> None:
    text = """
    class N(nn.Module):
        def __init__(self):
            self.state = None
        def training_step(self, x):
            if self.state is None:
                self.state = torch.zeros(2, 8)
            self.state = self.cell(x, self.state)
            return self.head(self.state).sum()
    """
    clues = (
        Clue("cause", at(7, "training_step")),
        Clue("carrier", name="self.state"),
        Clue("consumer", at(7, "training_step")),
    )
    found = [each.files["t.py"] for each in offered(Kind.SECOND_BACKWARD, text, *clues)]
    assert "        self.state = self.state.detach()\n        self.state = self.cell(x, self.state)\n" in found[0]
    # Behind the line the step would lose its own graph.
    assert not any("self.state)\n        self.state = self.state" in each for each in found)


def test_a_state_that_begins_with_none_is_cut_once_there_is_one() -> None:
    text = "state = None\nfor x in data:\n    state = cell(x, state)\n    use(state)\n"
    clues = (Clue("cause", at(3)), Clue("carrier", name="state"), Clue("consumer", at(3)))
    (found,) = [each for each in offered(Kind.SECOND_BACKWARD, text, *clues) if "taken up" in each.title]
    assert "    if state is not None:\n        state = state.detach()\n" in found.files["t.py"]


@pytest.mark.parametrize(
    ("statement", "carrier", "added"),
    [
        ("total = total + loss", "total", "total = total + loss.detach()"),
        ("total = total + 0.1 * loss", "total", "total = total + (0.1 * loss).detach()"),
        ("total = loss + total - 1.0", "total", "total = loss.detach() + total - 1.0"),
        ('stats["l"] = stats["l"] + loss', "stats['l']", 'stats["l"] = stats["l"] + loss.detach()'),
        ("history = history + [loss]", "history[*]", "history = history + [loss.detach()]"),
        ("history = (*history, loss)", "history[*]", "history = (*history, loss.detach())"),
        ("history += [step, loss]", "history[*]", "history += [step, loss.detach()]"),
        ("log[step] = loss", "log[*]", "log[step] = loss.detach()"),
        ('log[step] = {"loss": loss, "n": n}', "log[*]['loss']", 'log[step] = {"loss": loss.detach(), "n": n}'),
        ("log.append((step, loss))", "self.log[*][*]", "log.append((step, loss.detach()))"),
        ("log[len(log)] = (real, fake)", "log[*][*]", "log[len(log)] = (real.detach(), fake.detach())"),
        ("t.update({k: v for k, v in loss.items()})", "t['a']", "t.update({k: v.detach() for k, v in loss.items()})"),
        ("log.extend([v for v in loss])", "log[*]", "log.extend([v.detach() for v in loss])"),
        ("log += [2 * v for v in loss]", "log[*]", "log += [(2 * v).detach() for v in loss]"),
        ("self.seen[key].append(loss)", "c.seen['loss'][*]", "self.seen[key].append(loss.detach())"),
    ],
)
def test_what_is_kept_in_any_form_is_kept_without_its_graph(statement: str, carrier: str, added: str) -> None:
    clues = (Clue("cause", at(1)), Clue("carrier", name=carrier))
    assert changed(Kind.GROWING_GRAPH, f"loss = f(x)\n{statement}\n", *clues)[0] == added


@pytest.mark.parametrize(
    ("statement", "carrier"),
    [
        ("total = loss", "total"),
        ("history = [loss]", "history[*]"),
        ("log[step] = {'n': 3, 'm': m.item()}", "log[*]"),
        ("mean = mean + (loss - mean) / n", "mean"),
        ("other[step] = loss", "log[*]"),
        ("log.remove(loss)", "log[*]"),
        ("log.extend(v.item() for v in loss)", "log[*]"),
        ("total = 2 * total", "total"),
        ("total += loss.item()", "total"),
        ("total += float(loss)", "total"),
    ],
)
def test_what_does_not_add_is_left_alone(statement: str, carrier: str) -> None:
    clues = (Clue("cause", at(1)), Clue("carrier", name=carrier))
    assert changed(Kind.GROWING_GRAPH, f"loss = f(x)\n{statement}\n", *clues) == []


def test_a_loss_that_others_get_is_cut_behind_its_last_backward() -> None:
    text = "def f():\n    loss = g(x)\n    loss.backward()\n    for c in callbacks:\n        c.end(loss)\n"
    clues = (Clue("cause", at(2)), Clue("carrier", name="c.seen[*]"))
    assert changed(Kind.GROWING_GRAPH, text, *clues) == ["loss = loss.detach()"]
    assert changed(Kind.GROWING_GRAPH, text.replace("loss.backward()", "sum(loss).backward()"), *clues) == [
        "loss = loss.detach()"
    ]
    assert changed(Kind.GROWING_GRAPH, text.replace("loss.backward()", "walk(loss)"), *clues) == []


@pytest.mark.parametrize(
    ("statement", "added"),
    [
        ("g = h.sub_(1).relu_()", "g = h.sub(1).relu()"),
        ("out = F.dropout(h, 0.5, inplace=True)", "out = F.dropout(h, 0.5, inplace=False)"),
        ("out = act(h)\nact = nn.ReLU(inplace=True)", "act = nn.ReLU(inplace=False)"),
    ],
)
def test_what_writes_in_an_expression_writes_elsewhere(statement: str, added: str) -> None:
    assert changed(Kind.CHANGED_IN_PLACE, statement + "\n", Clue("cause", at(1))) == [added]


@pytest.mark.parametrize(
    "statement", ["p = net.requires_grad_(True)", "F.relu(h, inplace=True)", "out = F.relu(h, inplace=flag)"]
)
def test_what_does_not_write_or_has_no_target_is_left_alone(statement: str) -> None:
    assert changed(Kind.CHANGED_IN_PLACE, statement + "\n", Clue("cause", at(1))) == []


@pytest.mark.parametrize(
    ("statement", "added"),
    [
        ("h = body(x).data", "h = body(x)"),
        ("h = scale.item() * x", "h = scale * x"),
        ("h = float(scale) * x", "h = scale * x"),
        ("h = torch.from_numpy((a + b).detach().cpu().numpy()) * 2", "h = (a + b) * 2"),
        ("loss = Variable(f(x).data, requires_grad=True)", "loss = f(x)"),
        ("h = torch.as_tensor(body(x).detach().numpy().mean())", "h = body(x).mean()"),
    ],
)
def test_ways_out_of_the_graph_are_left_out(statement: str, added: str) -> None:
    assert changed(Kind.NO_GRADIENT, statement + "\n", Clue("cause", at(1)))[-1] == added


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("(a + b) * (c + d)", "((a + b) * (c + d))"),
        ("(a + b) ** n(c)", "((a + b) ** n(c))"),
        ("(a + b).mean()", "(a + b).mean()"),
        ("body(a)[0]", "body(a)[0]"),
    ],
)
def test_what_stood_inside_a_cut_stays_together(value: str, left: str) -> None:
    found = changed(Kind.NO_GRADIENT, f"h = 2 / torch.tensor({value})\n", Clue("cause", at(1)))
    assert set(found) == {f"h = 2 / {left}"}


def test_a_list_that_is_filled_and_made_a_tensor_of_is_stacked_once() -> None:
    text = "parts.append(f(x).item())\nloss = torch.tensor(parts, requires_grad=True).sum()\n"
    found = offered(Kind.LOSS_CUT_OFF, text, Clue("cause", at(1)), Clue("made", at(2)))
    assert "parts.append(f(x))\nloss = torch.stack(parts).sum()\n" in [each.files["t.py"] for each in found]
    # The call is known by the line that fills the list alone, too.
    found = offered(Kind.NO_GRADIENT, text, Clue("cause", at(1)))
    assert "parts.append(f(x))\nloss = torch.stack(parts).sum()\n" in [each.files["t.py"] for each in found]


def test_a_list_of_losses_is_stacked_and_what_says_nothing_goes() -> None:
    clue = Clue("cause", at(1))
    text = "loss = torch.tensor(loss, requires_grad=True)\nloss.backward()\nx = x\n"
    assert [each.files["t.py"] for each in offered(Kind.LOSS_CUT_OFF, text, clue)] == [
        "loss.backward()\nx = x\n",
        "loss = torch.stack(loss)\nloss.backward()\nx = x\n",
    ]


@pytest.mark.parametrize(
    "statement",
    ["h = body(x)", "h = x.argmax(1)", "h.data = x", "h = torch.tensor([1.0, 2.0])", "h = np.tensor(x)", "h = int(x)"],
)
def test_what_is_no_way_out_is_left_alone(statement: str) -> None:
    assert changed(Kind.NO_GRADIENT, statement + "\n", Clue("cause", at(1))) == []


KEEPING = """
def train():
    for batch in data:
        out = model(batch)
        out["loss"].backward()
        outputs.append(out)
"""


def test_tensors_under_keys_are_cut_before_their_dictionary_is_kept() -> None:
    clues = [Clue("cause", at(3)), *(Clue("carrier", name=f"outputs[*]{key}") for key in ("['m']['err']", "['loss']"))]
    found = [each for each in offered(Kind.GROWING_GRAPH, KEEPING, *clues) if "before it is kept" in each.title]
    (cut,) = found
    lines = cut.files["t.py"].splitlines()
    assert lines[4:7] == [
        "        out['m']['err'] = out['m']['err'].detach()",
        "        out['loss'] = out['loss'].detach()",
        "        outputs.append(out)",
    ]


@pytest.mark.parametrize(
    ("carrier", "line"),
    [
        ("outputs[*]", "outputs.append(out)"),
        ("outputs[*][0]", "outputs.append(out)"),
        ("others[*]['loss']", "outputs.append(out)"),
        ("outputs[*]['loss']", "outputs.append(make(out))"),
        ("outputs[*]['loss']", "outputs.append(out); later()"),
        ("outputs[*]['loss']", "outputs.append(out['loss'].item())"),
    ],
)
def test_nothing_is_cut_by_key_where_no_dictionary_is_kept_as_it_is(carrier: str, line: str) -> None:
    text = KEEPING.replace("outputs.append(out)", line)
    found = offered(Kind.GROWING_GRAPH, text, Clue("cause", at(3)), Clue("carrier", name=carrier))
    assert not [each for each in found if "before it is kept" in each.title]


def test_lines_without_gradients_get_them() -> None:
    cause = Clue("cause", at(2), text="under no_grad")
    text = "with torch.no_grad():\n    h = body(x)\n    g = h\nuse(h)\n"
    (found,) = offered(Kind.NO_GRADIENT, text, cause)
    assert found.files["t.py"] == "h = body(x)\ng = h\nuse(h)\n"
    decorated = "@torch.no_grad()\ndef f(x):\n    return body(x)\n"
    (found,) = offered(Kind.NO_GRADIENT, decorated, replace(cause, site=at(3)))
    assert found.files["t.py"] == "def f(x):\n    return body(x)\n"
    assert offered(Kind.NO_GRADIENT, text, replace(cause, text="argmax ends their graph")) == []
    assert offered(Kind.NO_GRADIENT, text.replace("torch.no_grad()", "autocast()"), cause) == []
    # The block stands around a call that leads to the line.
    calling = "def run(x):\n    return body(x)\nwith torch.no_grad():\n    h = run(x)\nuse(h)\n"
    off = Clue("off", at(3))
    found = offered(Kind.LOSS_CUT_OFF, calling, cause, off)
    assert found[0].files["t.py"] == "def run(x):\n    return body(x)\nh = run(x)\nuse(h)\n"
    assert offered(Kind.LOSS_CUT_OFF, calling, cause) == []
    marking = calling.replace("use(h)\n", "h.requires_grad = True\nh.backward()\nother.requires_grad = True\n")
    found = offered(Kind.LOSS_CUT_OFF, marking, cause, off, site=at(6))
    assert found[0].files["t.py"].endswith("h = run(x)\nh.backward()\nother.requires_grad = True\n")
    assert offered(Kind.LOSS_CUT_OFF, calling.replace("torch.no_grad()", "autocast()"), cause, off) == []


SWITCH = """
def evaluate():
    {off}
    net.eval()
    return net(x)
def train():
    loss = net(x)
    loss.backward()
"""


def test_gradients_that_a_function_switches_off_for_ever_are_off_in_it_alone() -> None:
    clues = (Clue("cause", at(6), text="under no_grad"), Clue("off", at(2)))
    found = changed(Kind.LOSS_CUT_OFF, SWITCH.format(off="torch.set_grad_enabled(False)"), *clues)
    assert found == ["@torch.no_grad()"]


@pytest.mark.parametrize(
    "off", ["torch.set_grad_enabled(mode)", "torch.set_grad_enabled(True)", "no_gradients()", "old = torch.no_grad()"]
)
def test_what_may_be_switched_off_for_a_reason_stays(off: str) -> None:
    clues = (Clue("cause", at(6), text="under no_grad"), Clue("off", at(2)))
    assert offered(Kind.LOSS_CUT_OFF, SWITCH.format(off=off), *clues) == []


def test_gradients_are_switched_on_again_in_the_function_that_switched_them_off() -> None:
    text = "for epoch in range(2):\n    loss = net(x)\n    loss.backward()\n    torch.set_grad_enabled(False)\n"
    clues = (Clue("cause", at(2), text="under no_grad"), Clue("off", at(4)))
    assert changed(Kind.LOSS_CUT_OFF, text, *clues) == ["torch.set_grad_enabled(True)"]


def test_layers_in_a_list_are_registered() -> None:
    text = "from torch import nn\nclass N:\n    def __init__(self):\n        self.a, self.n = [nn.Linear(1, 1)], 3\n"
    parameters = Clue("parameters", name="net.a[0].weight, net.a[0].bias")
    assert changed(Kind.NOT_IN_OPTIMIZER, text, parameters, Clue("step", at(4))) == [
        "self.a, self.n = nn.ModuleList([nn.Linear(1, 1)]), 3"
    ]
    other = replace(parameters, name="net.b[0].weight")
    assert changed(Kind.NOT_IN_OPTIMIZER, text, other, Clue("step", at(4))) == []


def test_an_optimizer_is_made_behind_what_replaces_its_parameters() -> None:
    text = "opt = SGD(net.parameters())\nnet.head = Linear(1, 1)\nopt.step()\n"
    step, parameters = Clue("step", at(3)), Clue("parameters", name="net.head.weight")
    (found,) = offered(Kind.NOT_IN_OPTIMIZER, text, parameters, step)
    assert found.files["t.py"].splitlines()[:2] == ["net.head = Linear(1, 1)", "opt = SGD(net.parameters())"]
    assert offered(Kind.NOT_IN_OPTIMIZER, text, replace(parameters, name="net.body.weight"), step) == []


@pytest.mark.parametrize(
    "made",
    [
        "layers = []\n        layers.append(nn.Linear(1, 1))\n        self.a = layers",
        "self.a = list(map(make, sizes))",
        "self.a = (nn.Linear(1, 1), nn.ReLU())",
    ],
)
def test_layers_are_registered_whatever_lists_them_and_wherever_their_class_is(made: str) -> None:
    model = f"from torch import nn\nclass N:\n    def __init__(self):\n        {made}\n"
    texts = {"t.py": "opt.step()\n", "model.py": model}
    sources = {path: source_from_bytes(text.encode(), path) for path, text in texts.items()}
    clues = (Clue("parameters", name="net.a[0].weight"), Clue("step", at(1)))
    fault = Fault(Kind.NOT_IN_OPTIMIZER, "", None, clues)
    (found,) = candidates(fault, sources.__getitem__, ["t.py", "model.py"])
    assert "self.a = nn.ModuleList(" in found.files["model.py"]
    assert candidates(fault, sources.__getitem__) == []


@pytest.mark.parametrize(
    "made", ["self.a = nn.ModuleList(x)", "self.a = make()", "self.a = a", "a = []\n        a = {}\n        self.a = a"]
)
def test_what_is_registered_or_may_be_no_list_is_left_alone(made: str) -> None:
    text = f"from torch import nn\nclass N:\n    def __init__(self):\n        {made}\n"
    assert offered(Kind.NOT_IN_OPTIMIZER, text, Clue("parameters", name="net.a[0].weight"), Clue("step", at(4))) == []


@pytest.mark.parametrize("argument", ["state=None", "*, state=None", "n=1, /, state=None"])
def test_a_state_that_is_none_by_default_is_cut_once_there_is_one(argument: str) -> None:
    text = f"def forward(self, x, {argument}):\n    y, state = self.rnn(x, state)\n    return y, state\n"
    clues = (Clue("cause", at(2)), Clue("carrier", name="state"), Clue("consumer", at(2)))
    (found,) = [each for each in offered(Kind.SECOND_BACKWARD, text, *clues) if "taken up" in each.title]
    assert "    if state is not None:\n        state = state.detach()\n" in found.files["t.py"]
    plain = text.replace("state=None", "state=0")
    (found,) = [each for each in offered(Kind.SECOND_BACKWARD, plain, *clues) if "taken up" in each.title]
    assert "    state = state.detach()\n    y, state" in found.files["t.py"]


KEPT = """
out, state = model(x, self.memory["h"])
loss.backward()
self.memory["h"] = state
self.memory["seen"] = count
memory = state
self.memory["h"] = model.begin()
"""


@pytest.mark.parametrize(
    ("also", "added"),
    [
        ("self.memory['h']", 'self.memory["h"] = state.detach()'),
        ("t.memory['h'][1]", 'self.memory["h"] = tuple(part.detach() for part in state)'),
    ],
)
def test_a_state_is_cut_where_it_is_kept_under_another_name(also: str, added: str) -> None:
    clues = (Clue("cause", at(1)), Clue("carrier", name="state", also=(also,)), Clue("consumer", at(1)))
    found = offered(Kind.SECOND_BACKWARD, KEPT, *clues, Clue("freed by", at(2)))
    kept = [each.files["t.py"].splitlines()[2] for each in found if each.title.startswith("keep self.memory")]
    assert kept == [added]


@pytest.mark.parametrize("also", ["self.memory['other']", "self.cells['h']", "self.memory['h'][0][1]"])
def test_what_is_kept_elsewhere_is_no_carrier(also: str) -> None:
    clues = (Clue("cause", at(1)), Clue("carrier", name="state", also=(also,)), Clue("consumer", at(1)))
    found = offered(Kind.SECOND_BACKWARD, KEPT, *clues, Clue("freed by", at(2)))
    assert not any(each.title.startswith("keep self.memory") for each in found)


SUM = """
def f():
    loss = torch.zeros(1)
    for x in data:
        loss += net(x).sum()
        loss.backward()
    print({})
"""


def test_a_sum_that_is_read_behind_its_loop_is_not_begun_in_it() -> None:
    clues = (Clue("cause", at(4)), Clue("carrier", name="loss", function="f"), Clue("consumer", at(4)))
    for read, wanted in (("loss.item()", False), ("0", True)):
        found = offered(Kind.SECOND_BACKWARD, SUM.format(read), *clues, Clue("freed by", at(5)))
        assert any("in each turn" in each.title for each in found) is wanted
        assert any(each.title.startswith("detach loss after") for each in found)
