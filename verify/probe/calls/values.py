"""Made-up values for what a program lacks: which to try, and what each of them is.

A *recipe* in plain JSON says what a value is, so that the original and the rewritten program are given the same. Values
come from random streams of their own; those of one place differ from call to call, and from run to run they do not.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from . import recipes
from .recipes import Is

_SIZE = 4
_SHAPES = ((4, 4), (4,), (4, 3, 32, 32), (4, 1, 28, 28), (4, 3, 64, 64), (4, 4, 4), (), (4, 3, 16, 16), (4, 8), (1, 4))
_SAMPLES = ((3, 32, 32), (4,), (1, 28, 28), (3, 64, 64), (4, 4), (64, 3), (3, 224, 224), ())
_TURNS, _ITEMS = 4, 16
_LETTERS = "the quick brown fox jumps over the lazy dog. "
#: Of one place so many options at most.
_MOST = 30


class Batches(list):  # type: ignore[type-arg]
    """Made-up batches of ``size`` items: what training code asks of a loader."""

    sampler = None

    def __init__(self, batches: Iterable[Any], size: int) -> None:
        super().__init__(batches)
        self.batch_size = size

    @property
    def dataset(self) -> Any:
        """What the batches are of."""
        return _Items(self)


class _Items:
    """As many as the batches have together; one by one nobody has them."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches) * self._batches.batch_size

    def __getitem__(self, index: int) -> Any:
        return self._batches[index // self._batches.batch_size]


class _Within(NamedTuple):
    """What is known of a value: ``shapes`` that modules take, the size of a ``batch``, and what it is one turn of."""

    shapes: list[Any]
    batch: int
    role: str = ""


def skeletons(form: dict[str, Any], modules: Iterable[Any]) -> Iterator[Any]:
    """Recipes with *leaves* in them, ``{"options": [recipe, ...]}``, of which one each is to be chosen.

    ``form`` is as :func:`verify.reaching.values.wanted` has it; the shapes of what ``modules`` take come first. Batches
    are of the size ``batch`` of the form.
    """
    shapes = [(shape, kind, most) for module in modules for shape, kind, most in recipes.shapes(module)[:6]]
    yield from _skeletons(form, _Within(shapes, form.get("batch") or _SIZE))


def _skeletons(form: dict[str, Any], within: _Within, *, part: bool = False) -> Iterator[Any]:
    """``part``: for the parts of a value, which is batches only if it can be nothing else."""
    plain = [role for role in form["roles"] if role not in ("parts", "loader", "samples")]
    for role in form["roles"]:
        turns = role in ("loader", "samples") and not within.role
        if role == "parts" and form.get("parts"):
            yield {"is": Is.PARTS, "parts": [_first(each, within) for each in form["parts"]]}
        elif turns and (not part or (role == form["roles"][0] and form.get("item"))):
            for item in _items(form.get("item"), within._replace(role=role)):
                yield {"is": Is(role), "item": item, "size": within.batch}
        elif plain and role == plain[0]:
            yield {**_leaf(plain, form.get("texts", ()), within), "name": form.get("name")}
            plain = []


def _first(form: dict[str, Any], within: _Within) -> Any:
    found = list(itertools.islice(_skeletons(form, within, part=True), 1))
    return found[0] if found else _leaf(["tensor", "labels", "int"], (), within)


def _items(form: dict[str, Any] | None, within: _Within) -> Iterator[Any]:
    """What each turn of a loop over it gives."""

    def leaf(*roles: str) -> Any:
        return _leaf(list(roles), (), within)

    if form is not None and form.get("parts") and within.role == "loader":
        yield {"is": Is.PARTS, "parts": [_first(part, within) for part in form["parts"]]}
        return
    yield {"is": Is.PARTS, "parts": [leaf("tensor", "array"), leaf("labels", "tensor")]}
    yield leaf("tensor", "labels", "text")
    yield {"is": Is.PARTS, "parts": [leaf("tensor"), leaf("labels", "tensor"), leaf("labels", "tensor")]}


def _leaf(roles: list[str], texts: Iterable[str], within: _Within) -> dict[str, Any]:
    every = [list(_options(role, list(texts), within)) for role in roles]
    found: list[Any] = []
    # The first of each role before the second of any.
    for turn in itertools.zip_longest(*every):
        found += [option for option in turn if option is not None and option not in found]
    return {"options": found[:_MOST]}


def _options(role: str, texts: list[str], within: _Within) -> Iterator[dict[str, Any]]:
    if role in ("tensor", "array"):
        for shape, kind, most in _shapes(role, within):
            yield {"is": Is(role), "shape": list(shape), "type": kind, "below": most}
    elif role == "labels":
        whole = [each for each in _known(within) if each[1] == "int64"]
        alone, size = within.role == "samples", within.batch
        first = ((), "int64", 2) if alone else ((size,), "int64", 2)
        columns = (((1,), "int64", 2), ((64,), "int64", 2)) if alone else (((size, 1), "int64", 2),)
        larger = (*columns, ((size, _SIZE), "int64", 2), ((size, 32, 32), "int64", 2))
        for shape, _, most in (first, *whole[:4], *larger):
            yield {"is": Is.TENSOR, "shape": list(shape), "type": "int64", "below": most}
    elif role == "int":
        for number in (within.batch, 1000, 2, 1, 32):
            yield {"is": Is.VALUE, "value": number}
    elif role == "text":
        for text in texts[:2]:
            yield {"is": Is.VALUE, "value": text}
        yield {"is": Is.TEXT}
    elif role in ("bool", "float", "texts", "hollow", "criterion", "module"):
        yield {"is": Is(role)}
    elif role == "dict":
        yield {"is": Is.VALUE, "value": {}}
    elif role == "none":
        yield {"is": Is.VALUE, "value": None}


def _known(within: _Within) -> list[Any]:
    """The shapes that modules take, as what is one turn of it has them: a sample, or a batch of the loader's size."""
    if within.role == "samples":
        return [(shape[1:], kind, most) for shape, kind, most in within.shapes if len(shape) > 1]
    if within.role == "loader":
        sized = [((within.batch, *shape[1:]) if shape else (), kind, most) for shape, kind, most in within.shapes]
        return list(dict.fromkeys([*sized[:8], *within.shapes[:4], *sized[8:]]))
    return within.shapes


def _shapes(role: str, within: _Within) -> Iterator[Any]:
    known = _known(within)
    common = [(shape, "float32", 0) for shape in (_SAMPLES if within.role == "samples" else _SHAPES)]
    if within.role == "loader" and within.batch != _SIZE:
        common = [((within.batch, *shape[1:]), kind, most) for shape, kind, most in common if shape[:1] == (_SIZE,)]
    single = [(shape[1:], kind, most) for shape, kind, most in known if len(shape) > 1]
    # Arrays come one by one more often than tensors.
    yield from _between(*((single, known[:8]) if role == "array" else (known[:8], single)))
    yield from common


def _between(one: list[Any], other: list[Any]) -> Iterator[Any]:
    for pair in itertools.zip_longest(one, other):
        yield from (each for each in pair if each is not None)


def leaves(skeleton: Any) -> list[dict[str, Any]]:
    """The leaves in order: the ``options`` of each, and the ``name`` that it is bound to, None where none is known."""
    if "options" in skeleton:
        return [skeleton]
    inside = skeleton["parts"] if skeleton["is"] in (Is.PARTS, Is.FILE) else [skeleton["item"]]
    return [leaf for part in inside for leaf in leaves(part)]


def chosen(skeleton: Any, picks: Iterator[Any]) -> Any:
    """``skeleton`` with each leaf replaced by the next of ``picks``."""
    if "options" in skeleton:
        return next(picks)
    if skeleton["is"] in (Is.PARTS, Is.FILE):
        return {**skeleton, "parts": [chosen(part, picks) for part in skeleton["parts"]]}
    return {**skeleton, "item": chosen(skeleton["item"], picks)}


#: What was made first at each place: whoever asks it for an attribute that it lacks lacks that.
FIRST: typing.Dict[int, Any] = {}  # noqa: UP006 - evaluated here, in Python 3.8


def made_first(value: Any) -> bool:
    """Whether ``value`` was made up at the first turn of a place."""
    return any(value is each for each in FIRST.values())


def make(recipe: dict[str, Any], number: int, turn: int) -> Any:
    """The value at the ``turn``-th call of place ``number``."""
    kind = Is(recipe["is"])
    seed = number * 100_003 + turn
    if kind is Is.PARTS:
        return tuple([make(part, number * 31 + place + 7, turn) for place, part in enumerate(recipe["parts"])])
    if kind is Is.LOADER:
        batches = [make(recipe["item"], number, turn * 101 + each) for each in range(_TURNS)]
        return Batches(batches, recipe.get("size", _SIZE))
    if kind is Is.SAMPLES:
        return [make(recipe["item"], number, turn * 101 + each) for each in range(_ITEMS)]
    if kind is Is.ARRAY:
        return recipes.make({**recipe, "is": Is.TENSOR, "attached": False}, seed).numpy()
    if kind is Is.TENSOR:
        return recipes.make({**recipe, "attached": False}, seed)
    if kind is Is.HOLLOW:
        from ..standins.modules import Nothing

        return Nothing("what is left out")
    if kind is Is.BOOL:
        # A loop that waits for either comes to its end.
        return turn % 4 == 0
    if kind is Is.FLOAT:
        return (seed * 7919 % 1000) / 1000
    if kind is Is.TEXT:
        return _LETTERS * 50
    if kind is Is.TEXTS:
        return [f"{_LETTERS}{each}" for each in range(_ITEMS)]
    if kind in (Is.CRITERION, Is.MODULE):
        return recipes.make({**recipe, "shape": [_SIZE]}, seed)
    return recipe["value"]


def told(recipe: dict[str, Any]) -> str:
    """``recipe`` for people."""
    kind = Is(recipe["is"])
    if kind is Is.PARTS:
        return f"({', '.join(map(told, recipe['parts']))})"
    if kind in (Is.LOADER, Is.SAMPLES):
        return f"{_TURNS if kind is Is.LOADER else _ITEMS} times {told(recipe['item'])}"
    return recipes.told(recipe)
