"""Made-up values in the place of what a program lacks: which there are to try, and what each of them is.

A *recipe* in plain JSON says what a value is, so that the original and the rewritten program are given the same. Values
come from random streams of their own; those of one place differ from call to call, and from run to run they do not.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from . import making

HOLLOW = "hollow"
_SIZE = 4
_SHAPES = ((4, 4), (4,), (4, 3, 32, 32), (4, 1, 28, 28), (4, 3, 64, 64), (4, 4, 4), (), (4, 3, 16, 16), (4, 8), (1, 4))
_SAMPLES = ((3, 32, 32), (4,), (1, 28, 28), (3, 64, 64), (4, 4), (64, 3), (3, 224, 224), ())
_TURNS, _ITEMS = 4, 16
_LETTERS = "the quick brown fox jumps over the lazy dog. "
#: Of one place so many options at most.
_MOST = 30


class Batches(list):  # type: ignore[type-arg]
    """Made-up batches: what training code asks of a loader."""

    @property
    def dataset(self) -> Any:
        """What the batches are of."""
        return self

    batch_size = _SIZE
    sampler = None


def skeletons(form: dict[str, Any], modules: Iterable[Any]) -> Iterator[Any]:
    """Recipes with *leaves* in them, ``{"options": [recipe, ...]}``, of which one each is to be chosen.

    ``form`` is as :func:`verify.reaching.values.wanted` has it; the shapes of what ``modules`` take come first.
    """
    shapes = [(shape, kind, most) for module in modules for shape, kind, most in making.shapes(module)[:6]]
    yield from _skeletons(form, shapes, inside=False)


def _skeletons(form: dict[str, Any], shapes: list[Any], *, inside: bool) -> Iterator[Any]:
    plain = [role for role in form["roles"] if role not in ("parts", "loader", "samples")]
    for role in form["roles"]:
        if role == "parts" and form.get("parts"):
            yield {"is": "parts", "parts": [_first(part, shapes) for part in form["parts"]]}
        elif role in ("loader", "samples") and not inside:
            for item in _items(form.get("item"), shapes, role):
                yield {"is": role, "item": item}
        elif plain:
            yield {**_leaf(plain, form.get("texts", ()), shapes), "name": form.get("name")}
            plain = []


def _first(form: dict[str, Any], shapes: list[Any], role: str = "loader") -> Any:
    found = list(itertools.islice(_skeletons(form, shapes, inside=True), 1))
    return found[0] if found else _leaf(["tensor", "labels", "int"], (), shapes, role)


def _items(form: dict[str, Any] | None, shapes: list[Any], role: str) -> Iterator[Any]:
    """What each turn of a loop over it gives."""

    def leaf(*roles: str) -> Any:
        return _leaf(list(roles), (), shapes, role)

    if form is not None and form.get("parts") and role == "loader":
        yield {"is": "parts", "parts": [_first(part, shapes, role) for part in form["parts"]]}
        return
    yield {"is": "parts", "parts": [leaf("tensor", "array"), leaf("labels", "tensor")]}
    yield leaf("tensor", "labels", "text")
    yield {"is": "parts", "parts": [leaf("tensor"), leaf("labels", "tensor"), leaf("labels", "tensor")]}


def _leaf(roles: list[str], texts: Iterable[str], shapes: list[Any], within: str = "loader") -> dict[str, Any]:
    every = [list(_options(role, list(texts), shapes, within)) for role in roles]
    found: list[Any] = []
    # The first of each role before the second of any.
    for turn in itertools.zip_longest(*every):
        found += [option for option in turn if option is not None and option not in found]
    return {"options": found[:_MOST]}


def _options(role: str, texts: list[str], shapes: list[Any], within: str) -> Iterator[dict[str, Any]]:
    common = [(shape, "float32", 0) for shape in (_SAMPLES if within == "samples" else _SHAPES)]
    if within == "samples":
        shapes = [(shape[1:], kind, most) for shape, kind, most in shapes if len(shape) > 1]
    if role in ("tensor", "array"):
        single = [(shape[1:], kind, most) for shape, kind, most in shapes if len(shape) > 1]
        # Arrays come one by one more often than tensors.
        order = (single, shapes[:8]) if role == "array" else (shapes[:8], single)
        for shape, kind, most in (*_between(*order), *common):
            yield {"is": role, "shape": list(shape), "type": kind, "below": most}
    elif role == "labels":
        whole = [each for each in shapes if each[1] == "int64"]
        first = ((), "int64", 2) if within == "samples" else ((_SIZE,), "int64", 2)
        columns = (((1,), "int64", 2), ((64,), "int64", 2)) if within == "samples" else ()
        larger = (*columns, ((_SIZE, _SIZE), "int64", 2), ((_SIZE, 32, 32), "int64", 2))
        for shape, _, most in (first, *whole[:4], *larger):
            yield {"is": "tensor", "shape": list(shape), "type": "int64", "below": most}
    elif role == "int":
        for number in (_SIZE, 1000, 2, 1, 32):
            yield {"is": "value", "value": number}
    elif role == "text":
        for text in texts[:2]:
            yield {"is": "value", "value": text}
        yield {"is": "text"}
    elif role in ("bool", "float", "texts", HOLLOW, "criterion", "module"):
        yield {"is": role}
    elif role == "dict":
        yield {"is": "value", "value": {}}
    elif role == "none":
        yield {"is": "value", "value": None}


def _between(one: list[Any], other: list[Any]) -> Iterator[Any]:
    for pair in itertools.zip_longest(one, other):
        yield from (each for each in pair if each is not None)


def leaves(skeleton: Any) -> list[dict[str, Any]]:
    """The leaves in order: the ``options`` of each, and the ``name`` that it is bound to, None where none is known."""
    if "options" in skeleton:
        return [skeleton]
    inside = skeleton["parts"] if skeleton["is"] == "parts" else [skeleton["item"]]
    return [leaf for part in inside for leaf in leaves(part)]


def chosen(skeleton: Any, picks: Iterator[Any]) -> Any:
    """``skeleton`` with the next of ``picks`` in the place of each leaf."""
    if "options" in skeleton:
        return next(picks)
    if skeleton["is"] == "parts":
        return {"is": "parts", "parts": [chosen(part, picks) for part in skeleton["parts"]]}
    return {**skeleton, "item": chosen(skeleton["item"], picks)}


#: What was made first at each place: whoever asks it for an attribute that it lacks lacks that.
FIRST: typing.Dict[int, Any] = {}  # noqa: UP006 - evaluated here, in Python 3.8


def made_first(value: Any) -> bool:
    """Whether ``value`` was made up at the first turn of a place."""
    return any(value is each for each in FIRST.values())


def make(recipe: dict[str, Any], number: int, turn: int) -> Any:
    """The value at the ``turn``-th call of place ``number``."""
    kind = recipe["is"]
    seed = number * 100_003 + turn
    if kind == "parts":
        return tuple([make(part, number * 31 + place + 7, turn) for place, part in enumerate(recipe["parts"])])
    if kind == "loader":
        return Batches([make(recipe["item"], number, turn * 101 + each) for each in range(_TURNS)])
    if kind == "samples":
        return [make(recipe["item"], number, turn * 101 + each) for each in range(_ITEMS)]
    if kind == "array":
        return making.make({**recipe, "is": "tensor", "attached": False}, seed).numpy()
    if kind == "tensor":
        return making.make({**recipe, "attached": False}, seed)
    if kind == HOLLOW:
        from .standins.modules import Nothing

        return Nothing("what is left out")
    if kind == "bool":
        # A loop that waits for either comes to its end.
        return turn % 4 == 0
    if kind == "float":
        return (seed * 7919 % 1000) / 1000
    if kind == "text":
        return _LETTERS * 50
    if kind == "texts":
        return [f"{_LETTERS}{each}" for each in range(_ITEMS)]
    if kind in ("criterion", "module"):
        return making.make({**recipe, "shape": [_SIZE]}, seed)
    return recipe["value"]


def told(recipe: dict[str, Any]) -> str:
    """``recipe`` for people."""
    kind = recipe["is"]
    if kind in ("tensor", "array"):
        size = "×".join(map(str, recipe["shape"])) or "one number"
        return f"{'array ' * (kind == 'array')}{recipe['type']} {size}"
    if kind == "parts":
        return f"({', '.join(map(told, recipe['parts']))})"
    if kind in ("loader", "samples"):
        return f"{_TURNS if kind == 'loader' else _ITEMS} times {told(recipe['item'])}"
    return {
        HOLLOW: "what does nothing", "bool": "true at every fourth time", "float": "numbers from 0 to 1",
        "text": "a text", "texts": "texts", "criterion": "a mean squared error", "module": "a linear layer",
    }.get(kind) or repr(recipe.get("value"))  # fmt: skip
