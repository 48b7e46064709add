"""What Python hands on keeps its history: never does the engine call free what torch attaches.

Each snippet is run by torch and simulated. Torch says whether what comes out has a history; where it has, the graph of
what went in has to be among the ancestors in the simulation, or the value is marked as what may carry any graph.
"""

from __future__ import annotations

import sys
import types
import warnings
from unittest import mock

import pytest

from codemods.graph.model.nodes import Node, Unseen
from tests.graph.carrying import HANDING_ON, IMPORTS, snippet
from tests.graph.tools import PRELUDE, run

BEGIN = f"{IMPORTS}h = net(x)\n"

NAMES = list(HANDING_ON)


def torch_attaches(code: str) -> bool:
    """Whether ``out`` has a history when torch has run the code."""
    pytest.importorskip("torch")
    module = types.ModuleType("snippet")
    # dataclasses look for the module that they stand in
    with warnings.catch_warnings(), mock.patch.dict(sys.modules, {"snippet": module}):
        warnings.simplefilter("ignore")
        exec(compile(PRELUDE + BEGIN + code, "snippet", "exec"), module.__dict__)
    return bool(getattr(module.out, "requires_grad", False))


def engine_keeps(code: str) -> bool:
    """Whether ``out`` depends on the node of ``h``, or may carry any graph, as the engine sees it."""
    seen = run(f"{BEGIN}{code}\nresult = out\n")
    value = seen.value("result")
    assert value is not None, "the end is not reached"
    whole: set[Node] = {a for n in seen.nodes("result") for a in n.ancestors()}
    shadows = [*seen.machine.run.shadow_of([value]), *(o for n in whole for o in n.shadow)]
    return bool(whole & set(seen.nodes("h"))) or any(isinstance(o, Unseen) and o.kind == "lost" for o in shadows)


@pytest.mark.parametrize("name", NAMES)
def test_what_python_hands_on_keeps_its_history(name: str) -> None:
    assert engine_keeps(snippet(name))


@pytest.mark.parametrize("step", [7, 101])
def test_one_behind_the_other(step: int) -> None:
    lost = []
    for i, name in enumerate(NAMES):
        other = NAMES[(i * 5 + step) % len(NAMES)]
        if i % 6 == step % 6 and not engine_keeps(f"{snippet(name, 'h', 'mid')}\n{snippet(other, 'mid')}"):
            lost.append((name, other))
    assert lost == []


@pytest.mark.slow
def test_torch_says_the_same() -> None:
    assert [name for name in HANDING_ON if not torch_attaches(snippet(name))] == []


@pytest.mark.slow
def test_every_one_behind_several_others() -> None:
    lost = []
    for i, name in enumerate(NAMES):
        for step in (1, 13, 57, 131, 211, 307):
            other = NAMES[(i + step) % len(NAMES)]
            if not engine_keeps(f"{snippet(name, 'h', 'mid')}\n{snippet(other, 'mid')}"):
                lost.append((name, other))
    assert lost == []


HOLDS_ITSELF = [
    "kept = locals()\nfor n in range(3):\n    kept['h'] = h\nout = kept['h']",
    "kept = globals()\nother = [kept]\nkept['more'] = other\nout = kept['h']",
    "class A:\n    pass\na = A()\na.t = h\na.own = vars(a)\nout = a.own['own']['t']",
    "kept = [h]\nkept.append(kept)\nout = kept[-1][0]",
    "kept = {'h': h}\nkept['own'] = kept\nout = kept['own']['own']['h']",
]


@pytest.mark.parametrize("code", HOLDS_ITSELF)
def test_what_holds_itself_is_looked_at_once(code: str) -> None:
    assert engine_keeps(code)


CUT = """\
h.item()
float(h)
h.detach()
h.detach().numpy()
h.tolist()
[t.item() for t in [h]][0]
sum(t.item() for t in [h])
sum([float(h), float(h)]) / 2
max(h.item(), 0.0)
str(h)
f"{h}"
"{:.3f}".format(h.item())
"%s" % h
len([h])
int(h > 0)
bool(h > 0)
h.argmax()
h > 0
h.shape[0]
h.size(0)
dict(a=h.item())["a"]
SimpleNamespace(a=h.item()).a
list(map(float, [h]))[0]
[float(t) for t in (h,)][-1]
sorted([h.item(), 1.0])[0]
operator.add(h.item(), 1)
functools.reduce(operator.add, [h.item(), 1.0])
deque([h.item()], maxlen=10)[0]
Counter(a=1)["a"]
defaultdict(float, a=h.item())["a"]
OrderedDict(a=h.detach())["a"]
copy.copy([h.item()])[0]
copy.deepcopy({"a": h.detach()})["a"]
random.random()
random.choice([1, 2])
statistics.mean([h.item(), 2.0])
next(iter([h.item()]))
list(zip([1], [h.item()]))[0][1]
[b for _, b in enumerate([h.detach()])][0]
namedtuple("P", "a b")(h.item(), 1).a
namedtuple("P", "a b")(h, h.item()).b
{"a": h, "b": h.item()}["b"]
(h, h.item())[1]
[h, h.detach()][1]
itertools.chain([h.item()], [1.0])
vars(SimpleNamespace(a=h.item()))["a"]
torch.no_grad() and h.item()
hash(h)
id(h)
isinstance(h, torch.Tensor)
repr(h)
""".splitlines()


def stays_free(code: str) -> bool:
    """Whether the engine knows that ``out`` has no history."""
    seen = run(f"{BEGIN}{code}\nresult = out\n")
    value = seen.value("result")
    assert value is not None
    return not seen.nodes("result") and not any(isinstance(o, Unseen) for o in seen.machine.run.shadow_of([value]))


@pytest.mark.parametrize("expression", CUT)
def test_what_evaluation_and_logging_cut_is_known_to_be_cut(expression: str) -> None:
    assert stays_free(f"out = {expression}")


@pytest.mark.slow
def test_torch_says_that_it_is_cut() -> None:
    assert [e for e in CUT if torch_attaches(f"out = {e}")] == []
