"""What attached-loss-history finds, mends and leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import LEARNING, analysed, mended

RULES = ("attached-loss-total", "attached-loss-history")

HEAD = (
    """
from collections import defaultdict, deque
import matplotlib.pyplot as plt
import numpy as np
"""
    + LEARNING
)

LOOP = """
seen = []
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    seen.append(loss)
"""


def check(folder: Path, program: str, after: str, style: str = "auto", **files: str) -> None:
    """One exact history in ``program``, whose line becomes ``after``."""
    found = analysed(folder, Options(select=RULES, total_style=style), HEAD, program, **files)
    assert [(f.rule, f.promise, f.path) for f in found] == [("attached-loss-history", Promise.EXACT, "train.py")]
    old, new = (folder / "train.py").read_text().splitlines(), mended(folder, found).splitlines()
    assert [b.strip() for a, b in zip(old, new, strict=True) if a != b] == [after]


def leave(folder: Path, *programs: str, **files: str) -> None:
    """Nothing in ``programs``."""
    assert analysed(folder, Options(select=RULES, unsafe=True), HEAD, *programs, **files) == []


METER = """
class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.last, self.total, self.count = 0, 0, 0

    def update(self, value, n=1):
        self.last = value
        self.total += value * n
        self.count += n

    @property
    def mean(self):
        return self.total / self.count
"""


# numbers


@pytest.mark.parametrize(
    "read",
    [
        "print(seen)",
        "print('%.3f' % seen[-1])",
        "print(sum(seen) / len(seen))",
        "print(np.mean(seen))",
        "plt.plot(seen)",
        "for value in seen:\n    print(f'{value:.3f}')",
    ],
)
def test_a_list_that_is_only_looked_at_holds_floats(tmp_path: Path, read: str) -> None:
    check(tmp_path, LOOP + read, "seen.append(loss.item())")


def test_reading_the_loss_itself_says_nothing_about_the_list(tmp_path: Path) -> None:
    program = LOOP + "    print(loss.item(), loss < 3)\nprint(seen)"
    check(tmp_path, program, "seen.append(loss.item())")


def test_the_list_may_come_first(tmp_path: Path) -> None:
    program = """
seen = []
for x, y in batches():
    loss = criterion(net(x), y)
    seen.append(loss)
    learn(loss)
print(seen)
"""
    check(tmp_path, program, "seen.append(loss.item())")


@pytest.mark.parametrize(
    ("begin", "store", "after"),
    [
        ("seen = {}", "seen[len(seen)] = loss", "seen[len(seen)] = loss.item()"),
        ("seen = {'fit': []}", "seen['fit'].append(loss)", "seen['fit'].append(loss.item())"),
        ("seen = defaultdict(list)", "seen['fit'].append(loss)", "seen['fit'].append(loss.item())"),
        ("seen = deque(maxlen=20)", "seen.append(loss)", "seen.append(loss.item())"),
        ("seen = []", "seen += [loss]", "seen += [loss.item()]"),
        ("seen = []", "seen.append((1, loss))", "seen.append((1, loss.item()))"),
        ("seen = []", "seen.append({'fit': loss / 2})", "seen.append({'fit': loss.item() / 2})"),
    ],
)
def test_containers(tmp_path: Path, begin: str, store: str, after: str) -> None:
    check(tmp_path, LOOP.replace("seen = []", begin).replace("seen.append(loss)", store) + "print(seen)", after)


def test_a_list_on_an_object(tmp_path: Path) -> None:
    program = """
class Agent:
    def __init__(self):
        self.costs = []
        self.age = 0

    def learn(self, x, y):
        cost = criterion(net(x), y)
        learn(cost)
        self.costs.append(cost)

agent = Agent()
for x, y in batches():
    if agent.age > 10:
        agent.learn(x, y)
    agent.age += 1
print(agent.costs)
"""
    check(tmp_path, program, "self.costs.append(cost.item())")


# tensors


@pytest.mark.parametrize(
    "read",
    [
        "print(torch.stack(seen).mean())",
        "print(seen[-1].item())",
        "for loss in seen:\n    print(loss.item())",
        "print(max(seen))",
        "handed_to_something(seen)",
    ],
)
def test_a_list_whose_elements_are_read_as_tensors(tmp_path: Path, read: str) -> None:
    check(tmp_path, "from somewhere import handed_to_something\n" + LOOP + read, "seen.append(loss.detach())")


def test_what_is_changed_in_place_afterwards(tmp_path: Path) -> None:
    program = """
seen = []
for x, y in batches():
    loss = criterion(net(x), y)
    seen.append(loss)
    loss /= 4
    learn(loss)
print(seen)
"""
    check(tmp_path, program, "seen.append(loss.detach())")


def test_an_element_of_a_tensor(tmp_path: Path) -> None:
    program = """
seen = torch.zeros(50)
for i, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    seen[i] = loss
print(seen.mean())
"""
    check(tmp_path, program, "seen[i] = loss.detach()")


def test_a_saved_list_holds_tensors(tmp_path: Path) -> None:
    check(tmp_path, LOOP + "torch.save({'seen': seen}, 'seen.pt')", "seen.append(loss.detach())")


# meters


def test_a_meter_is_handed_a_number(tmp_path: Path) -> None:
    program = """
from meters import Meter

meter = Meter()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    meter.update(loss, x.size(0))
print(meter.mean)
"""
    check(tmp_path, program, "meter.update(loss.item(), x.size(0))", meters=METER)


def test_a_meter_whose_mean_is_read_as_a_tensor(tmp_path: Path) -> None:
    program = """
from meters import Meter

meter = Meter()
for x, y in batches():
    loss = criterion(net(x), y)
    meter.update(n=16, value=loss)
    learn(loss)
print(meter.mean.item())
"""
    check(tmp_path, program, "meter.update(n=16, value=loss.detach())", meters=METER)


def test_other_callers_of_a_meter_stay(tmp_path: Path) -> None:
    program = """
from meters import Meter

a, b = Meter(), Meter()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    a.update(loss.item())
    b.update(loss)
print(a.mean, b.mean)
"""
    check(tmp_path, program, "b.update(loss.item())", meters=METER)


def test_numbers_of_other_callers_do_not_matter(tmp_path: Path) -> None:
    program = """
from meters import Meter

a, b = Meter(), Meter()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    a.update(loss.item())
    b.update(loss)
print(a.mean, b.mean.item())
"""
    check(tmp_path, program, "b.update(loss.detach())", meters=METER)


def test_a_dict_of_losses_is_mended_where_it_is_summed(tmp_path: Path) -> None:
    program = """
class Book:
    def __init__(self):
        self.sums = defaultdict(float)

    def add(self, terms):
        for name in terms:
            self.sums[name] += terms[name]

book = Book()
for x, y in batches():
    terms = {"fit": criterion(net(x), y), "size": net(x).pow(2).mean()}
    learn(terms["fit"] + terms["size"])
    book.add(terms)
print(book.sums)
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert [f.rule for f in found] == ["attached-loss-total"]
    assert "self.sums[name] += terms[name].item()" in mended(tmp_path, found)


def test_something_that_is_sometimes_none_is_advice(tmp_path: Path) -> None:
    program = """
seen = []
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    extra = None
    if x.mean() > 0:
        extra = loss
    seen.append(extra)
print(seen)
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert [(f.promise, f.edits) for f in found] == [(Promise.ADVICE, ())]


def test_a_container_of_losses_is_advice(tmp_path: Path) -> None:
    program = """
seen = []
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    entry = {"fit": loss, "scale": 1}
    seen.append(entry)
print(seen)
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert [(f.promise, f.edits) for f in found] == [(Promise.ADVICE, ())]


TERMS = """
seen = []
for x, y in batches():
    out = net(x)
    terms = {{"fit": criterion(out, y), "size": {size}}}
    {walked}
    {store}
{read}
"""
ELEMENTS = {
    "a list": ("seen.append([{} for t in terms.values()])", "t"),
    "a dict": ("seen.append({{k: {} for k, t in terms.items()}})", "t"),
    "added to the list": ("seen += [{} for t in terms.values()]", "t"),
    "in pairs": ("seen.append([(k, {}) for k, t in terms.items()])", "t"),
    "scaled": ("seen.append([{} / 2 for t in terms.values()])", "t"),
    "some of them": ("seen.append([{} for k, t in terms.items() if k != 'size'])", "t"),
    "by its key": ("seen.append([{} for k in sorted(terms)])", "terms[k]"),
}


def terms(store: str, *, size: str = "out.pow(2).mean()", walked: str = "", read: str = "print(seen)") -> str:
    return TERMS.format(store=store, size=size, walked=walked or "learn(sum(terms.values()))", read=read)


@pytest.mark.parametrize("form", ELEMENTS)
def test_a_container_that_is_made_element_by_element(form: str, tmp_path: Path) -> None:
    store, element = ELEMENTS[form]
    check(tmp_path, terms(store.format(element)), store.format(element + ".item()"))


@pytest.mark.parametrize(
    "read",
    [
        "torch.stack(seen[-1]).mean()",
        "seen[-1][0].item()",
        "[v.tolist() for row in seen for v in row]",
        "seen[0][0] > 1",
    ],
)
def test_elements_of_elements_that_are_read_as_tensors(read: str, tmp_path: Path) -> None:
    store, element = ELEMENTS["a list"]
    program = terms(store.format(element), read=f"print({read})")
    check(tmp_path, program, store.format(element + ".detach()"))


@pytest.mark.parametrize("size", ["0.5", "out.abs().mean() if len(seen) % 2 else 0.0"])
def test_elements_that_may_be_numbers(size: str, tmp_path: Path) -> None:
    store, element = ELEMENTS["a list"]
    program = terms(store.format(element), size=size)
    check(tmp_path, program, store.format(f"float({element})"))


@pytest.mark.parametrize(
    "changed",
    [
        # also None, also a number that is read as a tensor where it is none
        {"size": "None", "walked": "learn(terms['fit'])"},
        {"size": "0.5", "read": "print(seen[-1][0].item())"},
        # its graph is needed later
        {"walked": "pass", "read": "learn(sum(sum(row) for row in seen))"},
        {"walked": "learn(sum(terms.values()) + sum(t for row in seen[-1:] for t in row))"},
    ],
)
def test_elements_of_several_kinds_and_such_as_are_walked_again_stay(changed: dict[str, str], tmp_path: Path) -> None:
    found = analysed(
        tmp_path, Options(select=RULES), HEAD, terms("seen.append([t for t in terms.values()])", **changed)
    )
    assert [f for f in found if f.edits] == []


@pytest.mark.parametrize(
    ("begun", "grown"),
    [
        ("{}", "{place} | {{len({place}): loss}}"),
        ("{}", "{{0: loss}} | {place}"),
        ("[]", "{place} + [loss]"),
        ("[]", "[loss] + {place}"),
        ("()", "{place} + (loss,)"),
        ("set()", "{place} | {{loss}}"),
    ],
)
def test_a_container_under_a_computed_key_is_no_tensor(tmp_path: Path, begun: str, grown: str) -> None:
    place = 'kept[len("name")]'
    program = f"""
kept = {{}}
{place} = {begun}
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    {place} = {grown.format(place=place)}
print(len({place}))
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert ").detach()" not in mended(tmp_path, found)


@pytest.mark.parametrize(
    "grown",
    ["seen.add({})", "seen.update([{}])", "seen |= {{{}}}", "seen = seen | {{{}}}", "seen = {{*seen, {}}}"],
)
def test_a_set_keeps_every_tensor_where_it_would_keep_equal_numbers_once(tmp_path: Path, grown: str) -> None:
    program = f"""
seen = set()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    {grown.format("loss")}
print(len(seen))
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert "item()" not in mended(tmp_path, found)


# what stays


@pytest.mark.parametrize("number", ["loss.item()", "float(loss)", "loss.detach()", "loss.data", "loss.tolist()"])
def test_numbers_stay(tmp_path: Path, number: str) -> None:
    leave(tmp_path, LOOP.replace("append(loss)", f"append({number})"), "print(seen)")


@pytest.mark.parametrize("objective", ["sum(parts)", "torch.stack(parts).mean()", "parts[0] + parts[1]"])
def test_parts_of_an_objective_stay(tmp_path: Path, objective: str) -> None:
    leave(
        tmp_path,
        f"""
for x, y in batches():
    parts = []
    for scale in (1, 2):
        parts.append(criterion(net(x * scale), y))
    learn({objective})
""",
    )


def test_parts_that_wait_for_the_end_of_an_episode_stay(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
waiting = []
for i, (x, y) in enumerate(batches()):
    waiting.append(criterion(net(x), y))
    if i % 5 == 4:
        learn(sum(waiting))
        waiting.clear()
""",
    )


def test_a_list_of_one_step_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    seen = []
    seen.append(loss)
    print(seen)
""",
    )


def test_a_list_that_dies_with_its_function_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
def step(x, y):
    seen = []
    loss = criterion(net(x), y)
    seen.append(loss)
    learn(loss)
    print(seen)

for x, y in batches():
    step(x, y)
""",
    )


def test_an_entry_that_the_next_step_replaces_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
log = {}
for x, y in batches():
    log["total"] = criterion(net(x), y)
    learn(log["total"])
    print(log["total"])
""",
    )


@pytest.mark.parametrize(
    ("begin", "read", "store"),
    [
        ("{hash(x.shape): torch.zeros(())}", "kept[hash(x.shape)]", "kept[hash(x.shape)] = loss"),
        ("{}", "kept.get(hash(x.shape), 0)", "kept[hash(x.shape)] = loss"),
        ("{}", "kept.get(hash(x.shape), 0)", "kept.update({hash(x.shape): loss})"),
        ("{}", "kept.setdefault(hash(x.shape), torch.zeros(()))", "kept[hash(x.shape)] = loss"),
        ("{}", "sum(kept.values())", "kept[hash(x.shape)] = loss"),
        ("{}", "sum(kept[key] for key in kept)", "kept[hash(x.shape)] = loss"),
        ("[torch.zeros(())] * 3", "kept[hash(x.shape) % 3]", "kept[hash(x.shape) % 3] = loss"),
        ("[torch.zeros(())] * 3", "sum(kept)", "kept[hash(x.shape) % 3] = loss"),
        ("[torch.zeros(())] * 3", "kept.pop()", "kept.insert(hash(x.shape) % 3, loss)"),
        ("{0: {}}", "kept[0].get(hash(x.shape), 0)", "kept[0][hash(x.shape)] = loss"),
        ("argparse.Namespace()", "getattr(kept, str(x.shape), 0)", "setattr(kept, str(x.shape), loss)"),
    ],
)
def test_what_a_later_loss_reads_stays_wherever_it_lies(tmp_path: Path, begin: str, read: str, store: str) -> None:
    leave(
        tmp_path,
        f"""
import argparse
kept = {begin}
for x, y in batches():
    loss = criterion(net(x), y)
    (loss - 0.1 * {read}).backward(retain_graph=True)
    {store}
""",
    )


def test_a_list_that_each_step_empties_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
seen = []
for x, y in batches():
    seen.clear()
    loss = criterion(net(x), y)
    learn(loss)
    seen.append(loss)
    print(seen)
""",
    )


def test_a_meter_that_detaches_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
from meters import Meter

meter = Meter()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    meter.update(loss)
print(meter.mean)
""",
        meters=METER.replace("self.last = value", "value = value.detach()\n        self.last = value"),
    )


def test_a_meter_that_cannot_be_seen_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
from somewhere import Meter

meter = Meter()
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    meter.update(loss)
""",
    )


def test_a_returned_dict_of_losses_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
def terms(x, y):
    losses = {}
    losses["fit"] = criterion(net(x), y)
    losses["size"] = net(x).pow(2).mean()
    return losses

for x, y in batches():
    learn(sum(terms(x, y).values()))
""",
    )


def test_elements_of_what_is_walked_stay(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
for x, y in batches():
    parts = torch.zeros(2)
    for k in range(2):
        parts[k] = criterion(net(x)[:, k], y[:, k])
    learn(parts.mean())
""",
    )


def test_predictions_are_no_losses(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
outputs = []
for x, y in batches():
    out = net(x)
    learn(criterion(out, y))
    outputs.append(out)
print(outputs)
""",
    )


# what does not outlive its step

RAW = """
xs = [torch.randn(16, 4) for _ in range(4)]
ys = [torch.randn(16, 2) for _ in range(4)]
"""
STEP = """
    out = net(x)
    loss = criterion(out, y)
    {first}
    {second}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def stepped(before: str, turn: str, put: str, end: str) -> str:
    """A loop over lists, with two values put aside in each turn: nothing is recorded before the first of them."""
    body = STEP.format(first=put.format("'a'", "loss"), second=put.format("'b'", "out.abs().mean()"))
    return f"{RAW}{before}\nfor x, y in zip(xs, ys):\n    {turn}{body}    {end}\n"


@pytest.mark.parametrize(
    ("before", "turn", "put", "end"),
    [
        ("", "parts = []", "parts.append({1})", "print(sum(parts))"),
        ("", "parts = {}", "parts[{0}] = {1}", "print(parts)"),
        ("from collections import deque", "parts = deque()", "parts.append({1})", "print(sum(parts))"),
        ("", "parts = 0", "parts += {1}", "print(parts)"),
        ("parts = []", "pass", "parts.append({1})", "print(sum(parts)); parts.clear()"),
        ("", "parts = []", "parts.append({1})", "print(sum(parts)); del parts"),
        ("parts = []", "pass", "parts.append({1})", "print(sum(parts)); parts = []"),
        ("class Log:\n    pass\nlog = Log()", "log.parts = []", "log.parts.append({1})", "print(log.parts)"),
    ],
)
def test_what_is_made_anew_in_each_step_keeps_nothing(
    tmp_path: Path, before: str, turn: str, put: str, end: str
) -> None:
    options = Options(select=("attached-loss-history", "attached-loss-total"), unsafe=True)
    assert analysed(tmp_path, options, LEARNING, stepped(before, turn, put, end)) == []


def test_a_list_of_a_function_that_does_one_step_keeps_nothing(tmp_path: Path) -> None:
    body = STEP.format(first="parts.append(loss)", second="parts.append(out.mean())")
    program = (
        f"{RAW}def step(x, y):\n    parts = []{body}    print(sum(parts))\n\nfor x, y in zip(xs, ys):\n    step(x, y)\n"
    )
    assert analysed(tmp_path, Options(select=("attached-loss-history",), unsafe=True), LEARNING, program) == []


@pytest.mark.parametrize(
    "program",
    [
        stepped("parts = []", "pass", "parts.append({1})", "print(len(parts))"),
        stepped("log = {'a': [], 'b': []}", "pass", "log[{0}].append({1})", "print(len(log))"),
        RAW
        + "for epoch in range(3):\n    parts = []\n    for x, y in zip(xs, ys):\n        out = net(x)\n"
        + "        loss = criterion(out, y)\n        learn(loss)\n        parts.append(loss)\n"
        + "        parts.append(out.mean())\n    print(sum(parts))\n",
    ],
)
def test_what_is_older_than_the_steps_keeps_their_graphs(tmp_path: Path, program: str) -> None:
    found = analysed(tmp_path, Options(select=("attached-loss-history",)), LEARNING, program)
    assert [f.promise for f in found] == [Promise.EXACT] * 2


GENERIC = """
class Attributes(dict):
    def __setattr__(self, name, value):
        self[name, len(self)] = value

held = Attributes()
{other}
for i, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    held.last = loss
print(held)
"""

HELPER = """
held = {}

def keep(name, value):
    held[name] = value

{other}
for i, (x, y) in enumerate(batches()):
    loss = criterion(net(x), y)
    learn(loss)
    keep(i, loss)
print(held)
"""


@pytest.mark.parametrize("value", ["None", "'nothing yet'", "[]", "{}", "(1, 2)"])
def test_a_setter_that_keeps_other_things_too_is_no_place_for_a_number(tmp_path: Path, value: str) -> None:
    program = GENERIC.replace("{other}", f"held.first = {value}")
    found = analysed(tmp_path, Options(select=RULES, unsafe=True), HEAD, program)
    assert [(f.promise, f.edits) for f in found] == [(Promise.ADVICE, ())]


@pytest.mark.parametrize("other", ["", "keep('note', None)"])
def test_a_helper_that_keeps_other_things_too_is_handed_a_number(tmp_path: Path, other: str) -> None:
    check(tmp_path, HELPER.replace("{other}", other), "keep(i, loss.item())")


def test_a_set_tells_tensors_apart_and_numbers_not(tmp_path: Path) -> None:
    program = LOOP.replace("seen = []", "seen = set()").replace("seen.append(", "seen.add(") + "print(len(seen))"
    check(tmp_path, program, "seen.add(loss.detach())")


RECORD = """
class Record:
    def __init__(self, loss):
        self.loss = loss
"""


@pytest.mark.parametrize(("walked", "found"), [("learn(loss)", 1), ("loss.backward(retain_graph=True)", 0)])
def test_an_object_may_be_read_anywhere_so_its_graph_has_to_be_freed(tmp_path: Path, walked: str, found: int) -> None:
    program = RECORD + LOOP.replace("seen.append(loss)", "seen.append(Record(loss))").replace("learn(loss)", walked)
    assert len(analysed(tmp_path, Options(select=RULES), HEAD, program)) == found


SPOKEN = {
    "itertools.chain": ("seen = []", "seen = list(itertools.chain(seen, [loss.clone()]))", "seen"),
    "a tuple made anew": ("seen = ()", "seen = (*seen, loss.clone())", "seen"),
    "a heap": ("seen = []", "heapq.heappush(seen, (len(seen), loss.clone()))", "seen"),
    "a method under another name": ("seen = []; box.put = seen.append", "box.put(loss.clone())", "a container"),
    "a method": ("box.seen = []", "box.seen.append(loss.clone())", "box.seen"),
    "a key": ("box.seen = {}", "box.seen[len(box.seen)] = loss.clone()", "box.seen"),
    "a list added to it": ("box.seen = []", "box.seen += [loss.clone()]", "box.seen"),
}


@pytest.mark.parametrize("name", SPOKEN)
def test_what_keeps_the_losses_is_named(name: str, tmp_path: Path) -> None:
    begin, put, keeper = SPOKEN[name]
    program = LOOP.replace("seen = []", begin).replace("seen.append(loss)", put)
    head = HEAD + "\nimport heapq, itertools\nclass Box: pass\nbox = Box()\n"
    [found] = analysed(tmp_path, Options(select=RULES), head, program)
    assert found.message.startswith(f"{keeper} keeps loss.clone() with its graph")


# copies of containers

COPIED = """
seen, log = [], {{}}
for step, (x, y) in enumerate(batches()):
    out = net(x)
    parts = {made}
    loss = parts[{first}] + out.mean()
    learn(loss)
    {line}
print(len(seen), log)
"""
DICT = {"made": '{"fit": criterion(out, y), "size": out.abs().mean()}', "first": '"fit"'}
LIST = {"made": "[criterion(out, y), out.abs().mean()]", "first": "0"}
VALUES = "{name: value.detach() for name, value in parts.items()}"


@pytest.mark.parametrize(
    ("made", "line", "after"),
    [
        (DICT, "seen.append(dict(parts))", f"seen.append({VALUES})"),
        (DICT, "seen.append(parts.copy())", f"seen.append({VALUES})"),
        (DICT, "log[step] = {**parts}", f"log[step] = {VALUES}"),
        (DICT, "seen.append(list(parts.values()))", "seen.append([value.detach() for value in parts.values()])"),
        (DICT, "seen.append({**parts, 'step': step})", f"seen.append({{**{VALUES}, 'step': step}})"),
        (DICT, "seen.append(dict(parts, step=step))", f"seen.append(dict({VALUES}, step=step))"),
        (DICT, "seen.append((step, dict(parts)))", f"seen.append((step, {VALUES}))"),
        (DICT, "seen.append({**parts, 'loss': loss})", f"seen.append({{**{VALUES}, 'loss': loss.item()}})"),
        (LIST, "seen.append(list(parts))", "seen.append([value.detach() for value in parts])"),
        (LIST, "seen.append(parts.copy())", "seen.append([value.detach() for value in parts])"),
        (LIST, "seen.append(tuple(parts))", "seen.append(tuple([value.detach() for value in parts]))"),
        (LIST, "seen.append([step, *parts])", "seen.append([step, *[value.detach() for value in parts]])"),
    ],
)
def test_what_a_copied_container_holds_is_detached(tmp_path: Path, made: dict[str, str], line: str, after: str) -> None:
    check(tmp_path, COPIED.format(line=line, **made), after)


def test_what_is_no_tensor_stays_in_a_copy(tmp_path: Path) -> None:
    made = {"made": '{"fit": criterion(out, y), "step": step, "kind": "train", "none": None}', "first": '"fit"'}
    value = "value.detach() if torch.is_tensor(value) else value"
    after = f"seen.append({{name: {value} for name, value in parts.items()}})"
    check(tmp_path, COPIED.format(line="seen.append(dict(parts))", **made), after)


@pytest.mark.parametrize(
    ("made", "line"),
    [
        # the container itself: who changes it later changes what is kept
        (DICT, "seen.append(parts)"),
        # a parameter, which would no longer be it
        ({"made": '{"fit": criterion(out, y), "weight": net.weight}', "first": '"fit"'}, "seen.append(dict(parts))"),
        # what a list within it holds
        ({"made": '{"fit": criterion(out, y), "more": [out.mean()]}', "first": '"fit"'}, "seen.append(dict(parts))"),
        ({"made": '{"fit": criterion(out, y), "more": unknown()}', "first": '"fit"'}, "seen.append(dict(parts))"),
        # a copy of another class
        ({"made": 'defaultdict(int, {"fit": criterion(out, y)})', "first": '"fit"'}, "seen.append(parts.copy())"),
        ({"made": "deque([criterion(out, y)])", "first": "0"}, "seen.append(parts.copy())"),
        # a graph that the copy does not bring
        (DICT, "seen.append((list([out]), dict(parts), [*[[out.sum()]]]))"),
    ],
)
def test_copies_that_cannot_be_detached_are_advice(tmp_path: Path, made: dict[str, str], line: str) -> None:
    program = "from somewhere import unknown\n" + COPIED.format(line=line, **made)
    found = analysed(tmp_path, Options(select=RULES, unsafe=True), HEAD, program)
    assert [(f.promise, f.edits) for f in found] in ([(Promise.ADVICE, ())], [])


def test_copies_are_left_alone(tmp_path: Path) -> None:
    # detached already
    values = "{k: v.detach() for k, v in parts.items()}"
    leave(tmp_path, COPIED.format(line=f"seen.append({values})", **DICT))
    # the keys of a dict
    leave(tmp_path, COPIED.format(line="seen.append(list(parts))", **DICT))
    # made again in each step
    leave(tmp_path, COPIED.format(line="seen = [dict(parts)]", **DICT))
    # a later step learns from it
    later = 'seen.append(dict(parts)); learn(sum(each["size"] for each in seen))'
    leave(tmp_path, COPIED.format(line=later, **DICT).replace("learn(loss)", "loss.backward(retain_graph=True)"))
    # nothing has a graph
    leave(tmp_path, COPIED.format(line="seen.append(dict(parts))", made='{"fit": 1.0}', first='"fit"'))
