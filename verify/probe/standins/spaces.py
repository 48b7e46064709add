"""The spaces of gym's environments: what is observed, and what can be done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np


class Space:
    """A set of values. ``shape`` and ``dtype`` are those of an element, None where it has none."""

    def __init__(self, shape: Any = None, dtype: Any = None, seed: Any = None) -> None:
        self.shape = None if shape is None else tuple(shape)
        self.dtype = None if dtype is None else np.dtype(dtype)
        self._stream = np.random.default_rng(0)

    def seed(self, seed: int | None = None) -> list[int | None]:
        self._stream = np.random.default_rng(seed)
        return [seed]

    def sample(self, *_: Any, **__: Any) -> Any:
        return self.drawn(self._stream)

    def drawn(self, stream: np.random.Generator, towards: float = 0.0) -> Any:
        """An element out of ``stream``, moved by a number, as far as the space lets it."""
        raise NotImplementedError

    def contains(self, value: Any) -> bool:
        return True

    def __contains__(self, value: Any) -> bool:
        return self.contains(value)

    def batched(self, count: int) -> Space:
        """The space of so many elements together."""
        return Tuple([self] * count)


class Box(Space):
    """Arrays whose elements lie between ``low`` and ``high``."""

    def __init__(self, low: Any, high: Any, shape: Any = None, dtype: Any = np.float32, seed: Any = None) -> None:
        if shape is None:
            shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        super().__init__(shape, dtype, seed)
        self.low, self.high = (np.broadcast_to(np.asarray(bound, dtype), shape).copy() for bound in (low, high))

    def drawn(self, stream: np.random.Generator, towards: float = 0.0) -> Any:
        if self.dtype is not None and self.dtype.kind in "ui":
            drawn = stream.integers(0, 256, self.shape) + int(np.rint(16 * towards))
            return np.clip(drawn, self.low, self.high).astype(self.dtype)
        return np.clip(stream.normal(0.1 * towards, 0.5, self.shape), self.low, self.high).astype(self.dtype)

    def contains(self, value: Any) -> bool:
        value = np.asarray(value)
        return value.shape == self.shape and bool(np.all((value >= self.low) & (value <= self.high)))

    def is_bounded(self, manner: str = "both") -> bool:
        return bool(np.all(np.isfinite(self.low)) and np.all(np.isfinite(self.high)))

    def batched(self, count: int) -> Space:
        low, high = (np.stack([bound] * count) for bound in (self.low, self.high))
        return Box(low, high, dtype=self.dtype)


class Discrete(Space):
    """Whole numbers from ``start`` on, ``n`` of them."""

    def __init__(self, n: Any, seed: Any = None, start: int = 0) -> None:
        super().__init__((), np.int64, seed)
        self.n = int(n)
        self.start = int(start)

    def drawn(self, stream: np.random.Generator, towards: float = 0.0) -> Any:
        return np.int64(self.start + (int(stream.integers(self.n)) + round(4 * towards)) % self.n)

    def contains(self, value: Any) -> bool:
        return self.start <= int(value) < self.start + self.n

    def batched(self, count: int) -> Space:
        return MultiDiscrete([self.n] * count)


class MultiDiscrete(Space):
    """Arrays of whole numbers; ``nvec`` has how many each can be."""

    def __init__(self, nvec: Any, dtype: Any = np.int64, seed: Any = None) -> None:
        self.nvec = np.asarray(nvec, dtype)
        super().__init__(self.nvec.shape, dtype, seed)

    def drawn(self, stream: np.random.Generator, towards: float = 0.0) -> Any:
        return (stream.integers(self.nvec) + round(4 * towards)) % self.nvec

    def contains(self, value: Any) -> bool:
        value = np.asarray(value)
        return value.shape == self.shape and bool(np.all((value >= 0) & (value < self.nvec)))


class MultiBinary(MultiDiscrete):
    """Arrays of zeros and ones."""

    def __init__(self, n: Any, seed: Any = None) -> None:
        super().__init__(np.full(n, 2), np.int8, seed)
        self.n = n


class Tuple(Space):
    """An element of each of some spaces."""

    def __init__(self, spaces: Any = (), seed: Any = None) -> None:
        super().__init__(seed=seed)
        self.spaces = tuple(spaces)

    def drawn(self, stream: np.random.Generator, towards: float = 0.0) -> Any:
        return tuple(space.drawn(stream, towards) for space in self.spaces)

    def __getitem__(self, index: int) -> Any:
        return self.spaces[index]

    def __len__(self) -> int:
        return len(self.spaces)


class Dict(Space):
    """An element of each of some spaces, by their names."""

    def __init__(self, spaces: Any = (), seed: Any = None, **named: Any) -> None:
        super().__init__(seed=seed)
        self.spaces = {**dict(spaces or ()), **named}

    def drawn(self, stream: np.random.Generator, towards: float = 0.0) -> Any:
        return {name: space.drawn(stream, towards) for name, space in self.spaces.items()}

    def __getitem__(self, name: str) -> Any:
        return self.spaces[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.spaces)

    def __len__(self) -> int:
        return len(self.spaces)

    def keys(self) -> Any:
        return self.spaces.keys()

    def items(self) -> Any:
        return self.spaces.items()

    def values(self) -> Any:
        return self.spaces.values()


#: Numbers observed, and actions: how many there are, or the bound of continuous ones and how many of these
#: (gymnasium.farama.org, a page each; the versions that most scripts name).
_CONTROL: dict[str, tuple[int, int, float | None]] = {
    "cartpole": (4, 2, None),
    "mountaincar": (2, 3, None),
    "mountaincarcontinuous": (2, 1, 1.0),
    "acrobot": (6, 3, None),
    "pendulum": (3, 1, 2.0),
    "lunarlander": (8, 4, None),
    "lunarlandercontinuous": (8, 2, 1.0),
    "bipedalwalker": (24, 4, 1.0),
    "bipedalwalkerhardcore": (24, 4, 1.0),
    "ant": (111, 8, 1.0),
    "halfcheetah": (17, 6, 1.0),
    "hopper": (11, 3, 1.0),
    "humanoid": (376, 17, 0.4),
    "humanoidstandup": (376, 17, 0.4),
    "inverteddoublependulum": (11, 1, 1.0),
    "invertedpendulum": (4, 1, 3.0),
    "pusher": (23, 7, 2.0),
    "reacher": (11, 2, 1.0),
    "swimmer": (8, 2, 1.0),
    "walker2d": (17, 6, 1.0),
}
#: States and actions that are numbered (the same pages).
_TABLES = {
    "frozenlake": (16, 4),
    "frozenlake8x8": (64, 4),
    "taxi": (500, 6),
    "cliffwalking": (48, 4),
    "blackjack": (704, 2),
    "nchain": (5, 2),
}
#: Actions of games (ale.farama.org); the others have up to 18.
_GAMES = {"breakout": 4, "pong": 6, "spaceinvaders": 6, "qbert": 6, "mspacman": 9, "beamrider": 9, "enduro": 9}
_GAME = re.compile(r"(?:^ALE/|NoFrameskip|Deterministic|-ram\b)")
_VERSION = re.compile(r"-v\d+$")


def spaces_of(id: str) -> tuple[Space, Space]:
    """What the environment ``id`` observes, and its actions; of one that is not known eight numbers, and four actions
    (or two that are continuous, if the name says so)."""
    bare = _VERSION.sub("", id).rpartition("/")[2]
    # A recorded one has more in its name: halfcheetah-medium-v2.
    name = re.sub(r"(?:bulletenv|pybulletenv|noframeskip|deterministic)$", "", bare.partition("-")[0].lower())
    if _GAME.search(id) or name in _GAMES:
        screen = Box(0, 255, (128,) if "-ram" in id else (210, 160, 3), np.uint8)
        return screen, Discrete(_GAMES.get(name, 18))
    if name in _TABLES:
        states, actions = _TABLES[name]
        return Discrete(states), Discrete(actions)
    known = (8, 2, 1.0) if "continuous" in bare.lower() else (8, 4, None)
    observed, actions, bound = _CONTROL.get(name, known)
    acting: Space = Discrete(actions) if bound is None else Box(-bound, bound, (actions,))
    return Box(-np.inf, np.inf, (observed,)), acting
