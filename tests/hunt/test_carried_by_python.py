"""Values that take a way which Python goes by itself: a graph that came along it is walked once more, and stays."""

from __future__ import annotations

import pytest

from tests.hunt.checking import check

PROGRAM = """
import concurrent.futures, contextlib, dataclasses, itertools, logging, sys, threading
import numpy
import torch
import torch.nn.utils.parametrize
from torch import nn

torch.manual_seed(0)
body, head, other = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
{before}
for x in torch.randn(4, 5, 3):
    h = torch.tanh(body(x))
{inside}
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    {walk}
    opt.step()
"""

DIAMOND = """
class Base:
    def take(self, value):
        return value.detach()
class Left(Base):
    def take(self, value):
        return super().take(value)
class Right(Base):
    def take(self, value):
        return value * 1
class Both(Left, Right):
    pass
"""

LAZY = """
class Lazy:
    def __init__(self, function):
        self.function = function
    def __get__(self, obj, owner=None):
        return self.function(obj)
class Box:
    @Lazy
    def value(self):
        return self.kept
box = Box()
"""

WRAPPED = """
class Wrapped:
    def __init__(self, function):
        self.function = function
    def __call__(self, value):
        self.function(value)
        return value * 1
@Wrapped
def take(value):
    return value.detach()
"""

COUNTED = """
class Counted:
    def __init__(self, value):
        self.value, self.asked = value, None
    def __bool__(self):
        self.asked = self.value
        return True
"""

STREAM = """
import asyncio
class Stream:
    def __init__(self, value):
        self.left = [value]
    def __aiter__(self):
        return self
    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop()
async def first(value):
    return [got async for got in Stream(value)][0]
"""

SHARED = """
class Shared:
    state = {}
    def __init__(self):
        self.__dict__ = self.state
"""

SUPPRESSED = """
def take(value):
    got = value.detach()
    with contextlib.suppress(ValueError):
        got = value * 1
        raise ValueError
    return got
"""

FACTORY = """
last = []
@dataclasses.dataclass
class Record:
    value: object = dataclasses.field(default_factory=lambda: last[-1])
"""

HELD = """
class Held(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value
    def forward(self, weight):
        return weight * 0 + self.value
def take(value):
    module = nn.Module()
    module.weight = nn.Parameter(torch.zeros(5, 4))
    nn.utils.parametrize.register_parametrization(module, "weight", Held(value))
    return module.weight
"""

CACHED = """
import functools
class Box:
    @functools.cached_property
    def value(self):
        return self.source
"""

OWN_CACHE = """
import functools
source = []
@functools.lru_cache(maxsize=None)
def take():
    return source[-1]
"""

DELETED = """
class Box:
    @property
    def value(self):
        return self.held
    @value.deleter
    def value(self):
        self.gone = self.held
"""

CLOSED = """
class Box:
    def __init__(self, value):
        self.value = value
    def close(self):
        self.closed = self.value
"""

WRITTEN = """
class Field:
    values = []
    def __get__(self, obj, owner=None):
        return 0
    def __set__(self, obj, value):
        self.values.append(value)
class Box:
    field = Field()
"""

COMPARED = """
class Box:
    __hash__ = None
    def __eq__(self, other):
        self.other = other
        return False
"""

MODE = """
import enum
class Mode(enum.Enum):
    WARM = "warm"
    COLD = "cold"
"""

ASKED = """
seen = []
class Asking(type):
    def __instancecheck__(cls, obj):
        seen.append(obj)
        return False
class Box(metaclass=Asking):
    pass
"""

#: What is there before the loop, and the statements that bring ``h`` to ``kept``.
WAYS = {
    "the next class in the order of the object": (DIAMOND, "kept = Both().take(h)"),
    "a decorator that reads attributes": (LAZY, "box.kept = h\nkept = box.value"),
    "an object in place of a function": (WRAPPED, "kept = take(h)"),
    "a function that is applied to modules": (
        "holder = nn.Sequential(nn.Identity())",
        "def put(module):\n    module.held = h\nholder.apply(put)\nkept = holder[0].held",
    ),
    "an attribute of a part, found among all parts": (
        "holder = nn.Sequential(nn.Identity(), nn.Identity())",
        "holder[0].held = h\nkept = [m.held for m in holder.modules() if hasattr(m, 'held')][0]",
    ),
    "an attribute of a part that is asked for by its name": (
        "holder = nn.Sequential(nn.Identity())",
        "holder[0].held = h\nkept = holder.get_submodule('0').held",
    ),
    "a buffer": (
        "holder = nn.Module()\nholder.register_buffer('held', torch.zeros(1))",
        "holder.held = h\nkept = next(holder.buffers())",
    ),
    "the exception that is handled": (
        "",
        "try:\n    raise LookupError(h)\nexcept LookupError:\n    kept = sys.exc_info()[1].args[0]",
    ),
    "a body whose error is suppressed": (SUPPRESSED, "kept = take(h)"),
    "an object that is asked for its truth": (COUNTED, "box = Counted(h)\nif box:\n    pass\nkept = box.asked"),
    "an object that takes another class": (
        "class Cut:\n    def take(self, value):\n        return value.detach()\n"
        "class Keep(Cut):\n    def take(self, value):\n        return value * 1",
        "box = Cut()\nbox.__class__ = Keep\nkept = box.take(h)",
    ),
    "a function that takes other defaults": (
        "def take(value=None):\n    return value",
        "take.__defaults__ = (h,)\nkept = take()",
    ),
    "a forward of the module's own": (
        "class Cut(nn.Module):\n    def forward(self, value):\n        return value.detach()\ncut = Cut()\n"
        "cut.forward = lambda value: value * 1",
        "kept = cut(h)",
    ),
    "attributes that objects share": (SHARED, "Shared().value = h\nkept = Shared().value"),
    "an asynchronous iterator": (STREAM, "kept = asyncio.run(first(h))"),
    "an array of objects": ("", "held = numpy.empty(1, dtype=object)\nheld[0] = h\nkept = held[0]"),
    "the begin of an accumulation": ("", "kept = list(itertools.accumulate([1], lambda a, _: a, initial=h))[-1]"),
    "a collate function": ("", "for kept in torch.utils.data.DataLoader([1], collate_fn=lambda batch: h):\n    pass"),
    "the method of a dict in a thread": (
        "",
        'held = {}\nthread = threading.Thread(target=held.__setitem__, args=("a", h))\nthread.start()\nthread.join()\n'
        'kept = held["a"]',
    ),
    "a factory of a field": (FACTORY, "last[:] = [h]\nkept = Record().value"),
    "a parametrization": (HELD, "kept = take(h)"),
    "a property that keeps what it gave": (
        CACHED,
        "box = Box()\nbox.source = h\nbox.value\nbox.source = h.detach()\nkept = box.value",
    ),
    "a function that keeps what it gave": (
        OWN_CACHE,
        "source.append(h)\ntake.cache_clear()\ntake()\nsource.append(h.detach())\nkept = take()",
    ),
    "a property that is deleted": (DELETED, "box = Box()\nbox.held = h\ndel box.value\nkept = box.gone"),
    "an attribute that is kept when it is deleted": (
        "class Box:\n    def __delattr__(self, name):\n        self.old = self.__dict__.pop(name)",
        "box = Box()\nbox.old = h.detach()\nbox.held = h\ndel box.held\nkept = box.old",
    ),
    "a context that closes": (CLOSED, "with contextlib.closing(Box(h)) as box:\n    pass\nkept = box.closed"),
    "a view of a dict that is empty yet": (
        "",
        "named = {}\nviewed = named.values()\nnamed['a'] = h\nkept = next(iter(viewed))",
    ),
    "pairs of a dict that is empty yet": (
        "",
        "named = {}\nviewed = named.items()\nnamed['a'] = h\n((_, kept),) = viewed",
    ),
    "a dict of futures": (
        "",
        "kept = h.detach()\nwith concurrent.futures.ThreadPoolExecutor(1) as pool:\n"
        "    named = {pool.submit(lambda v: v, h): 'a'}\n"
        "    for one in concurrent.futures.as_completed(named):\n        kept = one.result()",
    ),
    "what a class holds itself": (WRITTEN, "Box().field = h\nkept = Box.__dict__['field'].values[-1]"),
    "what a function holds itself": (
        "def act():\n    pass",
        "act.held = h.detach()\nact.__dict__['held'] = h\nkept = act.held",
    ),
    "a member of an enumeration": (MODE, "Mode.WARM.held = h\nkept = Mode.WARM.held"),
    "a member that is asked for by its value": (MODE, "Mode.WARM.held = h\nkept = Mode('warm').held"),
    "an object that is compared": (COMPARED, "box = Box()\nbox.other = h.detach()\nbox == h\nkept = box.other"),
    "a class that is asked whether it is its own": (
        ASKED,
        "seen.append(h.detach())\nisinstance(h, Box)\nkept = seen[-1]",
    ),
    "the state of a module with a buffer": (
        "holder = nn.Module()\nholder.register_buffer('held', torch.zeros(1))",
        "holder.held = h\nkept = holder.state_dict(keep_vars=True)['held']",
    ),
    "contexts that are kept open": (
        "@contextlib.contextmanager\ndef hand(value):\n    yield [value]",
        "with contextlib.ExitStack() as stack:\n    got = stack.enter_context(hand(h))\n    later = stack.pop_all()\n"
        "kept = got[0]\nlater.close()",
    ),
    "a derivative with respect to something else": ("", "kept = torch.func.jacrev(lambda s: s * h)(torch.ones(()))"),
}


def _program(name: str, walk: str) -> str:
    before, inside = WAYS[name]
    return PROGRAM.format(before=before, inside="\n".join(f"    {line}" for line in inside.splitlines()), walk=walk)


@pytest.mark.parametrize("name", WAYS)
def test_what_came_along_is_walked_once_more(name: str) -> None:
    verdict = check({"main.py": _program(name, "other(kept).mean().backward()")})
    assert verdict.violations == []
    assert not verdict.fired


#: Those whose way is followed to its end: the flag is still surplus where nothing walks what came along.
FOLLOWED = (
    "the next class in the order of the object",
    "a decorator that reads attributes",
    "an object in place of a function",
    "an attribute of a part, found among all parts",
    "an attribute of a part that is asked for by its name",
    "a buffer",
    "a body whose error is suppressed",
    "a forward of the module's own",
    "an asynchronous iterator",
    "the begin of an accumulation",
    "a collate function",
    "a factory of a field",
    "a parametrization",
    "a property that is deleted",
    "a context that closes",
    "a view of a dict that is empty yet",
    "pairs of a dict that is empty yet",
    "what a class holds itself",
    "what a function holds itself",
    "a member of an enumeration",
    "a member that is asked for by its value",
)


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_is_only_looked_at_needs_no_graph(name: str) -> None:
    verdict = check({"main.py": _program(name, "print(kept.mean().item())")})
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1


KEPT = """
import dataclasses
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
last = []
@dataclasses.dataclass
class Record:
    value: object = dataclasses.field(default_factory=lambda: last[-1])
for x in torch.randn(4, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    last[:] = [loss]
    kept = Record().value
    {ask}
    opt.step()
"""


@pytest.mark.parametrize(
    "ask",
    ["kept.backward()", "print(kept.requires_grad)", "torch.autograd.grad(kept, list(net.parameters()))"],
)
def test_what_a_factory_reads_and_code_asks_for_its_graph_stays(ask: str) -> None:
    verdict = check({"main.py": KEPT.format(ask=ask)})
    assert verdict.violations == []
    assert not {kind for kind in verdict.fired if kind.startswith("attached-loss-history")}


def test_what_a_factory_reads_and_code_only_prints_needs_no_graph() -> None:
    verdict = check({"main.py": KEPT.format(ask="print(kept.item())")})
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1


SUMMED = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
class Meter(nn.Module):
    def __init__(self):
        super().__init__()
        self.other = 0.0
        self.register_buffer("held", torch.zeros(()))
meter = Meter()
total = 0.0
for x in torch.randn(4, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss
meter.{name} = total
print(float(meter.{name}))
"""


@pytest.mark.parametrize(("name", "form"), [("held", "total += loss.detach()"), ("other", "total += loss.item()")])
def test_a_total_that_becomes_a_buffer_stays_a_tensor(name: str, form: str) -> None:
    verdict = check({"main.py": SUMMED.format(name=name)})
    assert verdict.violations == []
    assert verdict.fired["attached-loss-total exact"] == 1
    assert verdict.after is not None
    assert form in verdict.after["main.py"]


LATER = """
import asyncio, contextlib, queue, threading
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
spare = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.0)
{setup}
last = None
for x in torch.randn(4, 5, 3):
    loss = net(x).mean()
    if last is not None:
        loss = loss + 0.5 * last
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    one = net(x).mean()
    last = hand(one)
"""

AS_GRADIENT = """
def hand(v):
    box = torch.zeros(())
    box.grad = v
    return box.grad
"""
IN_QUEUE = """
def hand(v):
    held = queue.Queue()
    thread = threading.Thread(target=lambda: held.put(v))
    thread.start()
    thread.join()
    return held.get()
"""
IN_ASYNC_QUEUE = """
async def passed(v):
    held = asyncio.Queue()
    async def fill():
        await held.put(v)
    task = asyncio.create_task(fill())
    got = await held.get()
    await task
    return got
def hand(v):
    return asyncio.run(passed(v))
"""
IN_HOOK = """
def hand(v):
    box = []
    handle = spare.{register}(lambda *given: box.append(v))
    spare.step()
    handle.remove()
    return box[0]
"""
ANSWERED = """
class Wrapped:
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return args[0].inner
def hand(v):
    return torch.add(Wrapped(v), 0)
"""
KEPT_AND_GIVEN = """
kept = []
def hand(v):
    kept.append(v)
    return kept[-1]
"""
KEPT_AND_ASKED = """
kept = []
def keep(v):
    kept.append(v)
def given(v):
    return kept[-1]
def hand(v):
    keep(v)
    out = given(v)
    return out
"""
WALKED_BY_ALL = {
    "gradient": AS_GRADIENT,
    "queue": IN_QUEUE,
    "async queue": IN_ASYNC_QUEUE,
    "hook before": IN_HOOK.format(register="register_step_pre_hook"),
    "hook behind": IN_HOOK.format(register="register_step_post_hook"),
    "torch function": ANSWERED,
    "list": KEPT_AND_GIVEN,
    "list asked": KEPT_AND_ASKED,
}


@pytest.mark.parametrize("setup", WALKED_BY_ALL.values(), ids=WALKED_BY_ALL)
def test_what_comes_back_on_another_way_keeps_its_graph(setup: str) -> None:
    verdict = check({"main.py": LATER.format(setup=setup)})
    assert verdict.violations == []
    assert not {kind for kind in verdict.fired if kind.startswith("attached-loss-history")}


WALKED_AGAIN = """
import asyncio, contextlib, queue, threading
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
spare = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.0)
{setup}
for x in torch.randn(4, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    got = hand(loss)
    loss.backward(retain_graph=True)
    {ask}
    opt.step()
"""


@pytest.mark.parametrize("setup", WALKED_BY_ALL.values(), ids=WALKED_BY_ALL)
def test_what_comes_back_on_another_way_is_walked_again(setup: str) -> None:
    verdict = check({"main.py": WALKED_AGAIN.format(setup=setup, ask="got.backward()")})
    assert verdict.violations == []
    assert "surplus-retain-graph exact" not in verdict.fired


OF_DIGITS = {
    "gradient": AS_GRADIENT.replace("= v", "= v.detach()"),
    "queue": IN_QUEUE.replace("put(v)", "put(v.item())"),
    "async queue": IN_ASYNC_QUEUE.replace("put(v)", "put(v.item())"),
    "hook": IN_HOOK.format(register="register_step_pre_hook").replace("append(v)", "append(1)"),
    "torch function": ANSWERED.replace("Wrapped(v)", "Wrapped(1.0)"),
    "list": KEPT_AND_GIVEN,
}


@pytest.mark.parametrize("setup", OF_DIGITS.values(), ids=OF_DIGITS)
def test_a_backward_behind_which_only_digits_come_back_needs_no_graph(setup: str) -> None:
    verdict = check({"main.py": WALKED_AGAIN.format(setup=setup, ask="print(got)")})
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1


THREAD_WALKS = """
def work():
    while True:
        got = box.get()
        if got is None:
            return
        {ask}
box = queue.Queue()
threading.Thread(target=work).start()
def hand(v):
    box.put(v)
"""


def test_what_a_thread_takes_out_of_a_queue_may_be_walked_there() -> None:
    setup = THREAD_WALKS.format(ask="got.backward()")
    text = WALKED_AGAIN.format(setup=setup, ask="") + "box.put(None)\n"
    assert "surplus-retain-graph exact" not in check({"main.py": text}).fired


CLOSED = """
class Box:
    def __init__(self, inner):
        self.inner = inner
        self.out = None
    def close(self):
        self.out = {closed}
    def __enter__(self):
        return self
    def __exit__(self, *given):
        self.out = {closed}
def hand(v):
    {body}
    return box.out
"""
STACKED = {
    "closing": "box = Box(v)\n    with contextlib.ExitStack() as stack:\n"
    "        stack.enter_context(contextlib.closing(box))",
    "context": "with contextlib.ExitStack() as stack:\n        box = stack.enter_context(Box(v))",
    "closed": "stack = contextlib.ExitStack()\n    box = stack.enter_context(Box(v))\n    stack.close()",
}


@pytest.mark.parametrize("body", STACKED.values(), ids=STACKED)
def test_a_stack_of_contexts_leaves_each(body: str) -> None:
    setup = CLOSED.format(body=body, closed="self.inner")
    verdict = check({"main.py": WALKED_AGAIN.format(setup=setup, ask="got.backward()")})
    assert verdict.violations == []
    assert "surplus-retain-graph exact" not in verdict.fired


@pytest.mark.parametrize("body", STACKED.values(), ids=STACKED)
def test_a_stack_of_contexts_that_leave_nothing_behind_needs_no_graph(body: str) -> None:
    setup = CLOSED.format(body=body, closed="1")
    verdict = check({"main.py": WALKED_AGAIN.format(setup=setup, ask="print(got)")})
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1


def test_a_total_that_becomes_a_buffer_made_by_its_class_stays_a_tensor() -> None:
    text = SUMMED.replace('self.register_buffer("held", torch.zeros(()))', "self.held = nn.Buffer(torch.zeros(()))")
    verdict = check({"main.py": text.format(name="held")})
    assert verdict.violations == []
    assert verdict.after is not None
    assert "total += loss.detach()" in verdict.after["main.py"]


@pytest.mark.parametrize("given", ["loss", "loss.detach()"])
def test_a_buffer_made_by_its_class_has_no_graph_of_what_it_is_made_of(given: str) -> None:
    setup = f"def hand(loss):\n    return nn.Buffer({given})\n"
    verdict = check({"main.py": WALKED_AGAIN.format(setup=setup, ask="print(got)")})
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1


RAISED = """
class Swallow:
    def __enter__(self):
        return self
    def __exit__(self, kind, value, traceback):
        self.got = value.args[0]
        return True
def hand(v):
    with Swallow() as context:
        raise RuntimeError({given})
    return context.got
"""


def test_a_context_gets_what_was_raised_in_it() -> None:
    text = WALKED_AGAIN.format(setup=RAISED.format(given="v"), ask="got.backward()")
    verdict = check({"main.py": text})
    assert verdict.violations == []
    assert "surplus-retain-graph exact" not in verdict.fired


BY_VALUE = """
import enum
class Mode(enum.Enum):
    FIRST = "first"
    SECOND = "second"
def hand(v):
    Mode.FIRST.kept = v
    return Mode("first").kept
"""
CLOSED_GENERATOR = """
left = []
def wait(v):
    try:
        yield 1
    except GeneratorExit:
        left.append(v)
        raise
def hand(v):
    waiting = wait(v)
    next(waiting)
    waiting.close()
    return left.pop()
"""


@pytest.mark.parametrize("setup", [BY_VALUE, CLOSED_GENERATOR], ids=["member by its value", "closed generator"])
def test_what_members_and_closed_generators_keep_is_walked_again(setup: str) -> None:
    verdict = check({"main.py": WALKED_AGAIN.format(setup=setup, ask="got.backward()")})
    assert verdict.violations == []
    assert "surplus-retain-graph exact" not in verdict.fired


@pytest.mark.parametrize(
    "setup",
    [BY_VALUE.replace("kept = v", "kept = 1"), CLOSED_GENERATOR.replace("append(v)", "append(1)")],
    ids=["member by its value", "closed generator"],
)
def test_what_members_and_closed_generators_keep_of_digits_needs_no_graph(setup: str) -> None:
    verdict = check({"main.py": WALKED_AGAIN.format(setup=setup, ask="print(got)")})
    assert verdict.violations == []
    assert verdict.fired["surplus-retain-graph exact"] == 1
