"""Changes for graphs that objects, lists and loops hand on, as texts: which are offered, and where nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from codemods.source.files import source_from_bytes
from tests.verify.fixing.test_candidates import at, changed, offered
from verify.diagnosis.model import Clue, Diagnosis, Fault, Kind, Measures
from verify.fixing import showing
from verify.fixing.candidates import candidates
from verify.fixing.repairs import Repair
from verify.fixing.searching import Kept, Search

TOGETHER = "both losses are built on it: add them and call backward once"
EARLIER = "the graph of an earlier step is walked again: detach what is carried from step to step"

OWNED = """
class Balancer:
    def weigh(self, losses):
        if self.first is None:
            self.first = losses
        return losses / self.first
balancer, other = Balancer(), Printer()
for x in data:
    losses = net(x)
    loss = balancer.weigh(losses).sum()
    other(losses)
    loss.backward()
"""


def owned(text: str, remedy: str = "", function: str = "weigh") -> list[str]:
    carrier = Clue("carrier", name="self.first", function=function)
    clues = (Clue("cause", at(8)), carrier, Clue("consumer", at(5, function)), Clue("freed by", at(11)))
    return changed(Kind.SECOND_BACKWARD, text, *clues, site=at(11), remedy=remedy)


def test_an_attribute_is_detached_by_the_name_that_its_object_has_at_the_backward() -> None:
    line = "balancer.first = balancer.first.detach()"
    assert line in owned(OWNED)
    called = OWNED.replace("weigh(self", "forward(self").replace("balancer.weigh(", "balancer(")
    assert line in owned(called, function="forward")
    # It may be another object's, or meant for both losses of a step.
    assert not any("other.first" in each for each in owned(called, function="forward"))
    assert line not in owned(OWNED, remedy=TOGETHER)
    assert line not in owned(OWNED, function="elsewhere")


def test_an_attribute_of_an_object_within_another_is_detached_by_its_path() -> None:
    inner = """
class Net:
    def __init__(self):
        self.part = Balancer()
    def run(self, x):
        return self.part.weigh(x)
net, other = Net(), Printer()
for x in data:
    loss = net.run(x).sum()
    other(loss)
    loss.backward()
"""
    text = OWNED[: OWNED.index("balancer, other")] + inner.lstrip("\n")
    clues = (Clue("cause", at(5)), Clue("carrier", name="self.first", function="weigh"), Clue("freed by", at(15)))
    found = changed(Kind.SECOND_BACKWARD, text, *clues, site=at(15))
    assert "net.part.first = net.part.first.detach()" in found
    # In the place of the backward there is no self.
    assert not any("self.part" in each for each in found)
    method = text.replace("    def run", "    def learn(self, x):\n        self.run(x).backward()\n    def run")
    clues = (*clues[:2], Clue("freed by", at(10, "learn")))
    found = changed(Kind.SECOND_BACKWARD, method, *clues, site=at(10))
    assert "self.part.first = self.part.first.detach()" in found


LISTED = """
def finish():
    loss = sum(p for p, _ in policy.chosen)
    loss.backward()
def act(x):
    policy.chosen.append(net(x))
"""


@pytest.mark.parametrize(
    ("text", "name", "offers"),
    [
        (LISTED, "policy.chosen[4][0]", True),
        (LISTED.replace("append", "look"), "policy.chosen[4][0]", False),
        (LISTED, "policy.chosen['a']", False),
        (LISTED, "self.chosen[0]", False),
        (LISTED, "policy.chosen", False),
    ],
)
def test_a_list_is_cleared_that_is_only_filled(text: str, name: str, *, offers: bool) -> None:
    clues = (Clue("cause", at(5)), Clue("carrier", name="p", function="finish", also=(name,)), Clue("freed by", at(3)))
    assert ("policy.chosen.clear()" in changed(Kind.SECOND_BACKWARD, text, *clues)) == offers
    assert "policy.chosen.clear()" not in changed(Kind.SECOND_BACKWARD, text, *clues, remedy=TOGETHER)


def test_a_value_is_detached_where_it_is_given_under_its_key() -> None:
    text = "buffer.add(state=x, logp=dist.log_prob(a))\nloss.backward()\n"
    for name, offers in (("buffer.rows[0]['logp']", True), ("buffer.rows[0]['value']", False), ("logp", False)):
        clues = (Clue("cause", at(1)), Clue("carrier", name=name), Clue("freed by", at(2)))
        found = changed(Kind.SECOND_BACKWARD, text, *clues)
        assert ("buffer.add(state=x, logp=dist.log_prob(a).detach())" in found) == offers


UNROLLED = """
point, state, count, goal = start(), (zeros(), zeros()), 0, draw()
for unroll in range(5):
    total = 0
    for k in range(3):
        slope = grad(f(point, goal), point)
        update, state = learned(slope, state)
        point = point + update
        total = total + f(point, goal)
        count = count + 1
    total.backward()
    opt.step()
"""


def test_what_a_loop_hands_on_is_detached_after_the_backward() -> None:
    clues = (Clue("cause", at(11)), Clue("carrier", name="learned.w"), Clue("saved by", at(6)))
    found = offered(Kind.CHANGED_IN_PLACE, UNROLLED, *clues, site=at(10), remedy=EARLIER)[-1]
    # Neither a number, nor what the loop only reads, nor what a turn begins.
    assert found.files["t.py"].splitlines()[10:12] == [
        "    point = point.detach().requires_grad_()",
        "    state = tuple(part.detach() for part in state)",
    ]
    assert not any("detach" in each for each in changed(Kind.CHANGED_IN_PLACE, UNROLLED, *clues, site=at(10)))


NEXT = """
value = critic(state)
for step in range(9):
    following = move(state)
    later = critic(following)
    loss = (later - value).pow(2)
    loss.backward()
    state, value = following, later
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("", "", True),
        ("later = critic(following)", "later = critic(following) + 1", False),
        ("later = critic(following)", "later = target(following)", False),
        ("state, value = following, later", "value = later", False),
        ("state, value = following, later", "value = later\n    state = following", True),
        ("loss = (later", "later = later * 2\n    loss = (later", False),
    ],
)
def test_what_the_next_turn_takes_over_is_made_anew_where_it_is_the_same(old: str, new: str, *, same: bool) -> None:
    text = NEXT.replace(old, new, 1) if old else NEXT
    freed = 6 + text.partition("loss = ")[0].count("\n") - 5
    clues = (Clue("cause", at(4)), Clue("carrier", name="value"), Clue("consumer", at(5)), Clue("freed by", at(freed)))
    found = [each for each in offered(Kind.SECOND_BACKWARD, text, *clues, site=at(freed)) if each.same]
    assert bool(found) == same
    for each in found:
        assert each.files["t.py"].splitlines()[:2] == ["for step in range(9):", "    value = critic(state)"]


def test_what_is_kept_in_another_file_is_kept_detached_there() -> None:
    kept = "class History:\n    def end(self, out):\n        self.rows.append({k: v for k, v in out.items()})\n"
    texts = {"t.py": "loss = f(x)\ntrainer.end({'loss': loss})\n", "history.py": kept}
    sources = {path: source_from_bytes(text.encode(), path) for path, text in texts.items()}
    for name, offers in (("trainer.rows[*]['loss']", True), ("rows[*]", False), ("trainer.others[*]", False)):
        fault = Fault(Kind.GROWING_GRAPH, "", None, (Clue("carrier", name=name), Clue("cause", at(1))))
        found = [each.files.get("history.py") for each in candidates(fault, sources.__getitem__, loaded=texts)]
        assert (kept.replace("k: v for", "k: v.detach() for") in found) == offers


KEYED = "def get(self, i, x):\n    if i not in memo:\n        memo[i] = net({})\n    return memo[i]\n"


@pytest.mark.parametrize(("value", "offers"), [("rows[i]", True), ("rows[i, : x.shape[1]]", True), ("x", False)])
def test_what_is_kept_by_a_key_is_made_each_time_of_that_key_alone(value: str, *, offers: bool) -> None:
    clues = (Clue("cause", at(3)), Clue("carrier", name="memo[2]"), Clue("consumer", at(9)), Clue("freed by", at(9)))
    found = [each.title for each in offered(Kind.SECOND_BACKWARD, KEYED.format(value), *clues)]
    assert any("each time" in title for title in found) == offers


def test_all_that_one_call_hands_back_is_detached_together() -> None:
    text = "for x in data:\n    out, (h, c) = model(x, (h, c))\n    f(out).backward()\n"
    clues = (Clue("cause", at(9)), Clue("carrier", name="h", function="forward"), Clue("freed by", at(3)))
    found = next(each for each in offered(Kind.SECOND_BACKWARD, text, *clues) if "h, c" in each.title)
    assert found.files["t.py"].splitlines()[3:] == ["    h = h.detach()", "    c = c.detach()"]


def test_what_was_changed_within_a_step_keeps_its_graph() -> None:
    text = "attn = scores(x).softmax(-1)\nattn.masked_fill_(mask, 0.0)\n(attn @ v).sum().backward()\n"
    clues = (Clue("cause", at(2)), Clue("carrier", name="attn"), Clue("saved by", at(1)))
    found = changed(Kind.CHANGED_IN_PLACE, text, *clues, site=at(3))
    assert "attn = attn.clone()" in found
    assert not any("detach" in line for line in found)


def test_whether_a_state_is_there_is_asked_of_the_state_itself() -> None:
    text = "self.m = h if self.m is None else 0.9 * self.m + 0.1 * h\nf(self.m, h).backward()\n"
    clues = (Clue("cause", at(1)), Clue("carrier", name="self.m"), Clue("consumer", at(1)), Clue("freed by", at(2)))
    found = changed(Kind.SECOND_BACKWARD, text, *clues)
    assert "self.m = h if self.m is None else 0.9 * self.m.detach() + 0.1 * h" in found


SHARED = "h = body(x)\nvalue = left(h)\nvalue.backward()\none.step()\nchoice = right(h)\nchoice.backward()\n"
BETWEEN = "two losses of one step walk h, with an optimizer's step between them: use h.detach() in the second"


def test_what_two_losses_are_built_on_is_made_once_more_after_a_step_between_them() -> None:
    clues = (Clue("cause", at(1)), Clue("carrier", name="h"), Clue("consumer", at(5)), Clue("freed by", at(3)))
    found = offered(Kind.SECOND_BACKWARD, SHARED, *clues, site=at(6), remedy=BETWEEN)
    texts = [each.files["t.py"] for each in found]
    assert SHARED.replace("choice =", "h = body(x)\nchoice =") in texts
    without = offered(Kind.SECOND_BACKWARD, SHARED, *clues, site=at(6))
    assert not any("once more" in each.title for each in without)


TWO_PLAYERS = """
def f(net, xs):
    for x in xs:
        made = maker(x)
        worth = judge(x).mean() + judge(made).mean()
        second.zero_grad()
        worth.backward()
        second.step()
        fool = judge(made).mean()
        first.zero_grad()
        fool.backward()
        first.step()
"""


@pytest.mark.parametrize(
    ("old", "new", "there"),
    [
        ("", "", True),
        # What the first backward leaves to the maker is learned from.
        ("        first.zero_grad()\n", "", False),
        ("        first.zero_grad()\n", "        second.zero_grad()\n", False),
        ("first.step()\n", "first.step()\n        third.step()\n", False),
        ("        second.zero_grad()\n", "        second.zero_grad()\n        first.zero_grad()\n", True),
        ("fool.backward()", "self.manual_backward(fool)", True),
    ],
)
def test_what_another_player_made_is_cut_for_the_first_loss_where_its_gradients_are_cleared(
    old: str, new: str, there: bool
) -> None:
    text = TWO_PLAYERS.lstrip().replace(old, new) if old else TWO_PLAYERS.lstrip()
    lines = text.splitlines()

    def line(part: str) -> int:
        return next(number for number, each in enumerate(lines, 1) if part in each)

    clues = (
        Clue("cause", at(line("made ="))),
        Clue("carrier", name="made", function="f"),
        Clue("consumer", at(line("fool ="))),
        Clue("freed by", at(line("worth.backward"))),
    )
    last = at(line("fool.backward" if "fool.backward" in text else "manual_backward"))
    found = [each.files["t.py"] for each in offered(Kind.SECOND_BACKWARD, text, *clues, site=last, remedy=BETWEEN)]
    wanted = text.replace("judge(x).mean() + judge(made)", "judge(x).mean() + judge(made.detach())")
    assert (wanted in found) is there
    # Without a step between them both losses are learned from.
    plain = offered(Kind.SECOND_BACKWARD, text, *clues, site=last, remedy="learn from both losses")
    assert wanted not in [each.files["t.py"] for each in plain]


def test_a_cut_is_no_worse_than_a_graph_that_is_built_again() -> None:
    def kept(title: str, way: str, *starved: str) -> Kept:
        measures = Measures(meant=4, learning=4, starved=starved, losses=(1.0, 2.0), first=1.0)
        after = Diagnosis("t.py", "/", (), (), (), (), 3, 3, (), measures=measures)
        return Kept(Repair(title, "", (), "", measures), {"t.py": title.encode()}, after, frozenset({way}))

    before = Diagnosis("t.py", "/", (), (), (), (), 1, 2, ())
    fault = Fault(Kind.SECOND_BACKWARD, "", None, remedy=BETWEEN)

    def found(cut: Kept, *built: Kept) -> list[str]:
        search = Search(fault, before, None, kept=list(built), priced=[cut], doubted=[cut])  # type: ignore[arg-type]
        search.excuse()
        assert len(search.priced) == (cut not in search.kept)
        return [one.repair.title for one in search.kept]

    cut = kept("cut", "cut", "head.weight for optimizer 3 (Adam)")
    # The loss of the third optimizer never reaches that layer.
    assert found(cut, kept("built", "rebuild", "head.weight for optimizer 3 (Adam)")) == ["cut", "built"]
    assert found(cut, kept("built", "rebuild")) == ["built"]
    assert found(cut, kept("built", "rebuild", "body.weight for optimizer 2 (SGD)")) == ["built"]
    assert found(cut, kept("other", "retain", "head.weight for optimizer 3 (Adam)")) == ["other"]
    assert not found(cut)


def test_a_cut_that_starves_an_optimizer_has_its_price() -> None:
    def told(*starved: str, **fields: Any) -> Diagnosis:
        measures = Measures(meant=4, learning=4, starved=starved, losses=(1.0,), first=1.0)
        return Diagnosis("t.py", "/", (), (), (), (), 3, 3, (), measures=measures, **fields)

    fault = Fault(Kind.SECOND_BACKWARD, "", None, remedy=BETWEEN)
    price = showing.price(fault, told(), told("body.weight for optimizer 2 (SGD)"))
    assert price == "no loss reaches body.weight for optimizer 2 (SGD)"
    # What was so before is nothing that the change does.
    assert not showing.cut_from(fault, told("spare for optimizer 1 (SGD)"), told("spare for optimizer 1 (SGD)"))
    assert not showing.cut_from(fault, told("spare for optimizer 1 (SGD)"), told())
    # Optimizers that share parameters are no fault of a state that is carried on.
    carried = Fault(Kind.SECOND_BACKWARD, "", None, remedy="cut the graph where the next step begins")
    assert not showing.price(carried, told(), told("body.weight for optimizer 2 (SGD)"))


def test_a_line_that_is_named_twice_is_changed_once() -> None:
    text = "v = torch.tensor([f(x).item() for x in rows], requires_grad=True)\nv.sum().backward()\n"
    clues = (Clue("cause", at(1, "<listcomp>")), Clue("made", at(1)))
    assert changed(Kind.LOSS_CUT_OFF, text, *clues, site=at(2)) == ["v = torch.stack([f(x) for x in rows])"]
