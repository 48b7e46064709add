"""Made-up arguments, where no run has any: which to try, and what each of them is.

A made-up argument is described by a *recipe* in plain JSON, so that the original and the rewritten program are given
the same. Values come from a random stream of their own.
"""

from __future__ import annotations

import contextlib
import enum
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from ..state.returned import mark

#: So many calls are tried at most; the likely ones come first.
MOST = 300
#: Of a generator so many items are asked for.
_TURNS = 2
_SIZES = (2, 4, 1, 8)
_SHAPES = ((2, 4), (2, 3, 16, 16), (4,), (2, 3, 4), (), (1,), (2, 1, 28, 28), (2, 3, 64, 64), (4, 4), (2, 3, 32))
_TENSORS = ("tensor", "labels")
#: What is made of the shape of a tensor.
_SHAPED = (*_TENSORS, "module", "criterion", "optimizer", "loader")
_FIXED: dict[str, Any] = {"float": 0.5, "device": "cpu", "criterion": None, "dict": {}, "none": None}
_MOST_ROLES = 16


class Is(str, enum.Enum):
    """What a recipe makes; the words of the JSON that both programs are given."""

    TENSOR = "tensor"
    ARRAY = "array"
    VALUE = "value"
    OPTIONS = "options"
    OBJECT = "object"
    ALIVE = "alive"
    CRITERION = "criterion"
    MODULE = "module"
    OPTIMIZER = "optimizer"
    LOADER = "loader"
    SAMPLES = "samples"
    PARTS = "parts"
    HOLLOW = "hollow"
    """Something that does nothing, whatever is asked of it."""
    BOOL = "bool"
    FLOAT = "float"
    TEXT = "text"
    TEXTS = "texts"
    FILE = "file"
    """A file or a folder: see :mod:`.contents`."""


def calls(hints: dict[str, Any], owner: Any) -> Iterator[dict[str, Any]]:
    """Recipes for all parameters in ``hints`` (see :mod:`verify.reaching.hints`), likely ones first.

    ``owner`` is the object whose method is called, or None: the shapes of what its layers take are tried first.
    """
    return itertools.islice(_calls(hints, owner), MOST)


def _calls(hints: dict[str, Any], owner: Any) -> Iterator[dict[str, Any]]:
    names = list(hints)
    if not names:
        yield {}
        return
    roles = list(itertools.islice(itertools.product(*(hints[name]["roles"] for name in names)), _MOST_ROLES))
    for attached, size in ((True, _SIZES[0]), (False, _SIZES[0]), *((True, size) for size in _SIZES[1:])):
        for choice in roles:
            shaped = any(role in _SHAPED for role in choice)
            if not shaped and not attached:
                continue
            if size != _SIZES[0] and not ({"int", "options"} & set(choice)):
                continue
            for shape, kind, most in shapes(owner) if shaped else [((), "float32", 0)]:
                for others in _variants(choice, shape, kind, most):
                    parts = zip(names, choice, others, strict=True)
                    yield {name: _recipe(role, hints[name], other, attached, size) for name, role, other in parts}


def shapes(owner: Any) -> list[tuple[tuple[int, ...], str, int]]:
    """(shape, type, bound of whole numbers) of what the layers of ``owner`` take, then common ones."""
    found: list[tuple[tuple[int, ...], str, int]] = []
    for layer in owner.modules() if callable(getattr(owner, "modules", None)) else ():
        kind, of = type(layer).__name__, vars(layer)
        if "in_channels" in of and isinstance(of.get("kernel_size"), tuple):
            places = len(of["kernel_size"])
            channels = of["in_channels"]
            sizes = [((2, channels, *[size] * places), "float32", 0) for size in (16, 32, 28, 64)]
            # Points and words come with their features last, and are turned.
            found += [*sizes[:2], ((2, 16, channels), "float32", 0), *sizes[2:]] if places == 1 else sizes
        elif "in_features" in of or kind.startswith(("BatchNorm", "LayerNorm")):
            size = of.get("in_features") or of.get("num_features") or (of.get("normalized_shape") or (1,))[-1]
            found += [((2, size), "float32", 0), ((2, 3, size), "float32", 0)]
        elif "input_size" in of:
            found += [((3, 2, of["input_size"]), "float32", 0), ((2, of["input_size"]), "float32", 0)]
        elif "num_embeddings" in of:
            most = of["num_embeddings"]
            found += [((2, 3), "int64", most), ((2,), "int64", most), ((), "int64", most)]
        if len(found) > 24:
            break
    return list(dict.fromkeys([*found, *((shape, "float32", 0) for shape in _SHAPES)]))


def _variants(
    roles: tuple[str, ...], shape: tuple[int, ...], kind: str, most: int
) -> Iterator[tuple[tuple[tuple[int, ...], str, int], ...]]:
    """For each parameter (shape, type, bound): all the same, then the others by the first."""
    plain = (shape, kind, most)
    yield (plain,) * len(roles)
    takers = [number for number, role in enumerate(roles) if role in _TENSORS]
    if len(takers) < 2:
        return
    labels = ((*shape[:1],), "int64", 2)
    for other in (labels, (shape[:-1], "float32", 0), (shape, "int64", most or 2)):
        found = [plain] * len(roles)
        for number in takers[1:]:
            found[number] = other
        yield tuple(found)


def _recipe(role: str, hint: dict[str, Any], tensor: tuple[Any, str, int], attached: bool, size: int) -> dict[str, Any]:
    shape, kind, most = tensor
    if role in _TENSORS:
        whole = role == "labels" or kind == "int64"
        made = {"shape": list(shape), "type": "int64" if whole else kind, "below": most or 2 if whole else 0}
        return {"is": Is.TENSOR, **made, "attached": attached and not whole}
    if role in ("module", "optimizer", "loader"):
        return {"is": Is(role), "shape": list(shape), "type": kind, "below": most}
    if role == "options":
        values = {name: size if value is None else value for name, value in hint["values"].items()}
        return {"is": Is.OPTIONS, "values": values}
    if role in ("int", "bool", "text"):
        values = {"int": size, "bool": size != _SIZES[0], "text": (hint["texts"] or ["a"])[0]}
        return {"is": Is.VALUE, "value": values[role]}
    if role == "object":
        return {"is": Is.OBJECT, "how": hint["objects"][0]}
    return {"is": Is(role)} if role in ("criterion", "alive") else {"is": Is.VALUE, "value": _FIXED.get(role)}


@contextlib.contextmanager
def unmoved() -> Iterator[None]:
    """Leave torch's generator as it is."""
    import torch

    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


def call(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What ``function`` returns; of a generator the first items."""
    result = function(*arguments, **named)
    return list(itertools.islice(result, _TURNS)) if inspect.isgenerator(result) else result


def make(recipe: dict[str, Any], number: int) -> Any:
    """What ``recipe`` describes; ``number`` is the parameter's, which seeds its values."""
    import torch

    kind = Is(recipe["is"])
    if kind is Is.TENSOR:
        return _tensor(recipe, number)
    if kind is Is.VALUE:
        return recipe["value"]
    if kind is Is.OPTIONS:
        import argparse

        return argparse.Namespace(**recipe["values"])
    if kind is Is.CRITERION:
        return torch.nn.MSELoss()
    size = (recipe["shape"] or [1])[-1]
    if kind is Is.LOADER:
        batch = {**recipe, "attached": False}
        labels = {"shape": recipe["shape"][:1], "type": "int64", "below": 2, "attached": False}
        return [(_tensor(batch, number + turn), _tensor(labels, number + turn)) for turn in range(2)]
    with unmoved():
        layer = torch.nn.Linear(size, size)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(_stream(parameter.shape, number) / size)
    return layer if kind is Is.MODULE else torch.optim.SGD(layer.parameters(), lr=0.1)


def _tensor(recipe: dict[str, Any], number: int) -> Any:
    import torch

    if recipe["type"] == "int64":
        stream = torch.Generator().manual_seed(number)
        return torch.randint(0, max(1, recipe["below"]), tuple(recipe["shape"]), generator=stream)
    made = _stream(recipe["shape"], number)
    if not recipe["attached"]:
        return made
    # Not a leaf: a function may write into its argument.
    return mark(made.requires_grad_()).clone()


def _stream(shape: Any, number: int) -> Any:
    import torch

    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(number))


#: What is made, for people, where the recipe says no more.
_TOLD = {
    Is.ALIVE: "what is called so",
    Is.OPTIONS: "the defaults of the options",
    Is.CRITERION: "a mean squared error",
    Is.MODULE: "a linear layer",
    Is.OPTIMIZER: "plain SGD",
    Is.LOADER: "two batches",
    Is.HOLLOW: "what does nothing",
    Is.BOOL: "true at every fourth time",
    Is.FLOAT: "numbers from 0 to 1",
    Is.TEXT: "a text",
    Is.TEXTS: "texts",
}


def told(recipe: dict[str, Any]) -> str:
    """``recipe`` for people."""
    kind = Is(recipe["is"])
    if kind is Is.OBJECT:
        return f"a {recipe['how']['name']}"
    if kind in (Is.TENSOR, Is.ARRAY):
        size = "×".join(map(str, recipe["shape"])) or "one number"
        return f"{'array ' * (kind is Is.ARRAY)}{recipe['type']} {size}"
    return _TOLD.get(kind) or repr(recipe["value"])
