"""What ends a graph: the table, the simulated engine and torch agree, and what none of them names carries on."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch

from codemods.graph.model import cutting
from codemods.graph.model.facts.gradients import DETACHING
from codemods.graph.model.facts.operations import DRAWN_OF, HANDING_ON, ZERO_GRADIENT
from codemods.graph.model.facts.saved import SAVES_NOTHING
from codemods.graph.model.values import Tuple
from tests.graph import cuts
from tests.graph.tools import Run, run

# the table


def entries() -> dict[str, str]:
    """What the table says, by path: a sort, or the parts."""
    said = {
        f"{space}.{name}": sort
        for sort, table in ((cuts.PLAIN, cutting.PLAIN), (cuts.INDEX, cutting.INTEGERS), (cuts.FRESH, cutting.FRESH))
        for space, names in table.items()
        for name in names
    }
    parts = {path: " ".join(f"{n}:{s}" if s else n for n, s in parts) for path, parts in cutting.PARTS.items()}
    return said | parts


def differences(seen: dict[str, cuts.Seen]) -> list[str]:
    """The paths of which the table says something else than torch does."""
    said = entries()
    return [path for path, what in seen.items() if (what.kind() or what.parts()) != said.get(path, "")]


def test_a_part_of_the_table_is_what_torch_does() -> None:
    said = [path for path in sorted(entries()) if not path.startswith("Distribution")]
    sample = random.Random(3).sample(said, 20)
    others = ["torch.round", "torch.svd", "torch.linalg.qr", "Tensor.copy_", "Tensor.zero_", "torch.nn.functional.relu"]
    wanted = {*sample, *others}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert differences(cuts.tables(wanted.__contains__)) == []


@pytest.mark.slow
def test_the_table_is_what_torch_does() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cuts.tables()
    assert differences(found) == []
    assert set(entries()) <= set(found)
    assert cuts.texts(found) == cuts.TABLE.read_text(), "python -m tests.graph.cuts writes it"


def test_what_carries_on_is_not_in_the_table() -> None:
    said = entries()
    for name in (ZERO_GRADIENT | DRAWN_OF | HANDING_ON | SAVES_NOTHING) - {"detach"}:
        assert not said.keys() & {f"torch.{name}", f"Tensor.{name}"} - set(cutting.PARTS), name
    assert {f"Tensor.{name}" for name in DETACHING} <= said.keys()


# torch and the engine, one call after the other

_FORMS = (
    *("({h})", "({h}, 0)", "({h}, 1)", "({h}, 2)", "({h}, dim=0)", "({h}, 0, 1)", "({h}, {h})", "({h}, {x})"),
    *("({h}, (2, 2))", "({x}, {h})", "([{h}, {h}])", "({h}, 0, i)", "({h}, m)", "(m, {h}, {x})", "({h}, 0, i, {x})"),
    *("({h}, 2, return_indices=True)", "({h}, return_inverse=True, return_counts=True)", "({x}, 0, i, {h})"),
    *("({h}, {h}, {h})", "({h}, m, 0.5)", "({h}, m, {h})"),
)


def calls() -> Iterator[str]:
    """Expressions that call everything that is public on small tensors."""
    for path, space in cuts.SPACES.items():
        for name in cuts.functions(space):
            for on in ("H", "H[0]", "H[None]"):
                x = on.replace("H", "X")
                for form in _FORMS:
                    given = form.format(h=on + ("" if on == "H" else " * 1.0"), x=x + " * 1.0")
                    if path != "Tensor":
                        yield f"{path}.{name}{given}"
                    elif form.startswith(("({h}", "({x}")):
                        receiver = on if form.startswith("({h}") else x
                        rest = given.partition(",")[2].strip() or ")"
                        yield f"({receiver} * 1.0).{name}({rest}"
    for name in dir(torch.Tensor):
        if not name.startswith("_") and not callable(getattr(torch.Tensor, name)) and name != "grad":
            yield f"H.{name}"


def parts_of(value: Any) -> list[Any]:
    """An output, or what it is made of."""
    return list(value) if isinstance(value, (tuple, list)) and type(value) is not torch.Size else [value]


def carries(value: Any) -> bool:
    """Whether something that torch made is part of a graph."""
    return cuts.sort_of(value) == cuts.ATTACHED


def in_torch(expressions: Iterable[str]) -> dict[str, tuple[bool, list[bool]]]:
    """Of each expression that torch takes: whether it is part of a graph, and each of its elements."""
    found: dict[str, tuple[bool, list[bool]]] = {}
    leaf = cuts.attached(4, 4).detach().requires_grad_()
    index, mask = torch.zeros(4, 4, dtype=torch.long), torch.ones(4, 4, dtype=torch.bool)
    names = {"torch": torch, "i": index, "m": mask, "X": leaf.detach().clone()}
    for expression in expressions:
        try:
            names["H"] = leaf * 1.0
            made = eval(expression, names)  # the expressions are our own
        except Exception:
            continue
        found[expression] = carries(made), [carries(part) for part in parts_of(made)]
    return found


def in_engine(r: Run, name: str, parts: int) -> tuple[bool, list[bool]]:
    """The same as the engine sees it; where it knows no elements, they are as attached as the whole."""
    value = r.value(name)
    whole = bool(r.nodes(name))
    if isinstance(value, Tuple) and len(value.items) == parts:
        return whole, [bool(r.machine.run.nodes_of(item)) for item in value.items]
    return whole, [whole] * parts


def compare(expressions: list[str]) -> tuple[list[str], list[str]]:
    """What the engine thinks free and torch does not, and the other way round."""
    wrong, lost = [], []
    truth = in_torch(expressions)
    known = list(truth)
    for start in range(0, len(known), 400):
        chunk = known[start : start + 400]
        head = (
            "i = torch.zeros(4, 4).long()\nm = torch.ones(4, 4).bool()\nX = torch.zeros(4, 4)\nleaf = nn.Parameter(X)\n"
        )
        body = "".join(f"H = leaf * 1.0\nz{n} = {expression}\n" for n, expression in enumerate(chunk))
        r = run(head + body, budget=10_000_000)
        assert r.trace.complete
        for n, expression in enumerate(chunk):
            whole, parts = truth[expression]
            seen, seen_parts = in_engine(r, f"z{n}", len(parts))
            if (whole and not seen) or any(t and not e for t, e in zip(parts, seen_parts, strict=True)):
                wrong.append(expression)
            elif (seen and not whole) or any(e and not t for t, e in zip(parts, seen_parts, strict=True)):
                lost.append(expression)
    return wrong, lost


def test_a_part_of_all_calls_is_attached_where_torch_attaches_it() -> None:
    expressions = random.Random(7).sample(list(calls()), 1500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong, lost = compare(expressions)
    assert wrong == []
    assert len(lost) < 20, lost


@pytest.mark.slow
def test_all_calls_are_attached_where_torch_attaches_them() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong, _ = compare(list(calls()))
    assert wrong == []


# what is in no table


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("out = h.max(0).values", "attached"),
        ("out = h.max(dim=0).values", "attached"),
        ("out = torch.max(h, 0)[0]", "attached"),
        ("out = torch.topk(h, 2).values.sum()", "attached"),
        ("out, _ = h.sort()", "attached"),
        ("out = h.kthvalue(1).values", "attached"),
        ("out = h.cummax(0)[0]", "attached"),
        ("found = torch.median(h, dim=0)\nout = found.values", "attached"),
        ("out = h.max(0).indices", "free"),
        ("_, out = h.sort()", "free"),
        ("out = torch.mode(h)[1]", "free"),
        ("from settings import axis\nout = h.max(axis)", "perhaps"),
        ("from settings import axis\nout = h.max(axis).values", "perhaps"),
        ("from settings import axis\nvalues, out = h.max(axis)", "perhaps"),
        ("out = torch.linalg.svd(h).S", "perhaps"),
        ("out = torch.linalg.lstsq(h, x).solution", "attached"),
        ("out = torch.linalg.lstsq(h, x).rank", "free"),
        ("out = torch.linalg.lu(h).P", "free"),
        ("out = h.mH", "attached"),
        ("out = h.adjoint()", "attached"),
        ("out = h.some_attribute_of_tomorrow", "attached"),
        ("out = h.some_method_of_tomorrow(3)", "attached"),
        ("out = torch.some_function_of_tomorrow(h)", "attached"),
        ("out = x.some_method_of_tomorrow(h)", "attached"),
        ("out = torch.unique(h)", "attached"),
        ("out = torch.heaviside(h, x)", "attached"),
        ("out = torch.histc(h)", "free"),
        ("out = torch.special.bessel_j0(h)", "free"),
        ("out = h.to_sparse().coalesce().values()", "attached"),
        ("out = h.to_sparse().indices()", "free"),
        ("out = torch.nested.as_nested_tensor([h, h])", "attached"),
        ("out = F.max_pool1d(h, 2, return_indices=True)[0]", "attached"),
        ("out = F.max_pool1d(h, 2, return_indices=True)[1]", "free"),
        ("out = F.multi_head_attention_forward(h, h, h, 3, 1)[1]", "attached"),
        ("out = h.zero_()", "attached"),
        ("out = h.shape", "free"),
        ("out = h.numpy()", "free"),
        ("out = h.detach()", "free"),
    ],
)
def test_what_carries(code: str, expected: str) -> None:
    assert run(f"h = w * 2\n{code}").graph("out") == expected


@pytest.mark.parametrize(
    "code",
    [
        "packed = nn.utils.rnn.pack_padded_sequence(h, [3])\nout = packed.data",
        "packed = nn.utils.rnn.pack_sequence([h])\nout = packed.cuda().data",
        "def packed(t):\n    return nn.utils.rnn.pack_padded_sequence(t, [3])\nout = packed(h).data",
        "packed = nn.utils.rnn.pack_padded_sequence(x, [3])\ny, _ = nn.LSTM(3, 3)(packed)\nout = y.data",
        "packed = nn.utils.rnn.pack_padded_sequence(x, [3])\ny, _ = nn.GRU(3, 3)(packed)\n"
        "out, lengths = nn.utils.rnn.pad_packed_sequence(y)",
        "out = torch.vmap(net)(x)",
        "out = torch.vmap(lambda t: t * w)(x)",
        "out = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)",
        "out = torch.utils.checkpoint.checkpoint(lambda t, k: t * k, x, k=w)",
        "out = torch.utils.checkpoint.checkpoint_sequential([nn.Tanh(), nn.Tanh()], 2, h)",
        "d = torch.distributions.Normal(h, 1.0)\nout = d.rsample()",
        "d = torch.distributions.Normal(h, 1.0)\nout = d.log_prob(x)",
        "d = torch.distributions.Normal(h, 1.0)\nout = d.mean",
        "d = torch.distributions.Normal(h, 1.0)\nout = d.entropy().sum()",
        "d = torch.distributions.Normal(0.0, 1.0)\nout = d.log_prob(h)",
    ],
)
def test_what_is_made_of_it_carries(code: str) -> None:
    assert run(f"h = w * 2\n{code}").graph("out") in ("attached", "perhaps")


@pytest.mark.parametrize("drawn", ["d.sample()", "d.sample((3,))", "d.batch_shape", "d.enumerate_support()"])
def test_what_is_drawn_carries_nothing(drawn: str) -> None:
    assert run(f"d = torch.distributions.Bernoulli(w * 2)\nout = {drawn}").graph("out") == "free"


# writes


WRITES = [
    "out = torch.zeros(3)\nv = out[0]\nv.copy_(h.sum())",
    "out = torch.zeros(3)\nout.view(-1)[2] = h.sum()",
    "out = torch.zeros(3)\nout[0].add_(h.sum())",
    "out = torch.zeros(3, 3)\nout[0][1] = h.sum()",
    "out = torch.zeros(3, 3)\nout[0][1].add_(h.sum())",
    "out = torch.zeros(3)\nv = out\nv.add_(h)",
    "out = torch.zeros(3)\nv = out\nv += h",
    "out = torch.zeros(3)\nv = out[:]\nv += h",
    "out = torch.zeros(3)\nv = out.t().view(3)\nv[0] = h.sum()",
    "out = torch.zeros(3)\nheld = [out]\nheld[0][1] = h.sum()",
    "out = torch.zeros(3)\nheld = {'a': out}\nheld['a'].copy_(h)",
    "out = torch.zeros(3)\ntorch.index_put_(out, (x,), h)",
    "def fill(t):\n    t.copy_(h)\nout = torch.zeros(3)\nfill(out)",
    "def fill(t):\n    t[0] = h.sum()\nout = torch.zeros(3)\nfill(out)",
    "from data import made\nout = made()\nv = out[0]\nv.copy_(h)\nout = out + 1",
    "out = w * 2\nwith torch.no_grad():\n    out.mul_(2)",
    "out = w * 2\nwith torch.no_grad():\n    out[0] = 1",
    "out = w * 2\nwith torch.no_grad():\n    out += 1",
    "out = torch.zeros(3)\nout.fill_(h.sum())",
    "out = torch.zeros(3)\nout.zero_().add_(h)",
]


@pytest.mark.parametrize("code", WRITES)
def test_what_is_written_to_carries(code: str) -> None:
    assert run(f"h = w * 2\n{code}").graph("out") in ("attached", "perhaps")


@pytest.mark.parametrize(
    "code",
    [
        "out = torch.zeros(3)\nv = out.detach()\nv.add_(h)",
        "out = torch.zeros(3)\nv = out.clone()\nv.add_(h)",
        "out = torch.zeros(3)\nv = out * 1\nv.add_(h)",
        "out = torch.zeros(3)\nv = torch.zeros(3)\nv.add_(h)",
        "out = torch.zeros(3)\nv = out[0]\nv.add_(1)",
        "out = torch.zeros(3)\nwith torch.no_grad():\n    out.copy_(h)",
        "out = torch.zeros(3)\nwith torch.no_grad():\n    out[0] = h.sum()",
        "out = torch.zeros(3)\nwith torch.no_grad():\n    out += h",
        "out = torch.zeros(3)\nout.copy_(h.detach())",
        "out = h.detach_()",
    ],
)
def test_what_else_carries_nothing(code: str) -> None:
    assert run(f"h = w * 2\n{code}").graph("out") == "free"
