"""Gym, Gymnasium and D4RL where they are not installed: spaces, wrappers, and environments that are made up.

An environment has the spaces of the real one where those are known. Its episodes are short, its rewards are random, and
what it observes depends on the actions that it is given, so that a policy which acts differently shows.
"""

from __future__ import annotations

import dis
import functools
import importlib
import itertools
import sys
import zlib
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, ClassVar

import numpy as np

from ..guarding.guard import Write
from .spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple, spaces_of

#: Steps of an episode: short, so that a run of a few steps comes to its end.
_SHORTEST, _LONGEST = 8, 24
#: What a policy that is trained for longer may ask of ``spec``.
_TIME_LIMIT = 200
#: Transitions of a recorded data set.
_RECORDED = 1024
#: Two of one kind differ.
_MADE = itertools.count()


class Spec:
    """What an environment is registered as."""

    reward_threshold: float | None = None
    max_episode_steps: int | None = _TIME_LIMIT

    def __init__(self, id: str, entry_point: Any = None, kwargs: dict[str, Any] | None = None) -> None:
        self.id = id
        self.entry_point = entry_point
        self.kwargs = kwargs or {}


class Env:
    """The base class of environments."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "render.modes": [], "render_fps": 30}
    render_mode: str | None = None
    reward_range = (-float("inf"), float("inf"))
    spec: Spec | None = None
    action_space: Any = None
    observation_space: Any = None

    @property
    def unwrapped(self) -> Env:
        return self

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return None

    def render(self, *_: Any, **__: Any) -> Any:
        return np.zeros((64, 64, 3), np.uint8)

    def close(self) -> None:
        pass

    def seed(self, seed: int | None = None) -> list[int | None]:
        return [seed]

    def __enter__(self) -> Env:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __class_getitem__(cls, _: Any) -> type:
        return cls


class Wrapper(Env):
    """Hands on all that it does not define to the environment inside."""

    def __init__(self, env: Any, *_: Any, **__: Any) -> None:
        self.env = env
        self.action_space = env.action_space
        self.observation_space = env.observation_space
        self.spec = env.spec

    def __getattr__(self, name: str) -> Any:
        if name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    @property
    def unwrapped(self) -> Env:
        inside: Env = self.env.unwrapped
        return inside

    def reset(self, **options: Any) -> Any:
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        return self.env.step(action)

    def render(self, *arguments: Any, **named: Any) -> Any:
        return self.env.render(*arguments, **named)

    def close(self) -> None:
        self.env.close()

    def seed(self, seed: int | None = None) -> list[int | None]:
        numbers: list[int | None] = self.env.seed(seed)
        return numbers


class ObservationWrapper(Wrapper):
    def reset(self, **options: Any) -> Any:
        result = self.env.reset(**options)
        return (self.observation(result[0]), *result[1:]) if isinstance(result, tuple) else self.observation(result)

    def step(self, action: Any) -> Any:
        seen, *rest = self.env.step(action)
        return self.observation(seen), *rest

    def observation(self, observation: Any) -> Any:
        raise NotImplementedError


class RewardWrapper(Wrapper):
    def step(self, action: Any) -> Any:
        seen, reward, *rest = self.env.step(action)
        return seen, self.reward(reward), *rest

    def reward(self, reward: Any) -> Any:
        raise NotImplementedError


class ActionWrapper(Wrapper):
    def step(self, action: Any) -> Any:
        return self.env.step(self.action(action))

    def action(self, action: Any) -> Any:
        raise NotImplementedError


class _Lives:
    def lives(self) -> int:
        return 3


class Made(Env):
    """An environment nobody has. ``new``: whether ``step`` gives five values and ``reset`` two where the caller does
    not show how many it takes."""

    ale = _Lives()

    def __init__(self, id: str, new: bool) -> None:
        self.observation_space, self.action_space = spaces_of(id)
        self.spec = Spec(id)
        self._max_episode_steps = _TIME_LIMIT
        self._new = new
        self._stream = np.random.default_rng([zlib.crc32(id.encode()), next(_MADE)])
        self._left = 0

    @property
    def np_random(self) -> np.random.Generator:
        return self._stream

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._left = int(self._stream.integers(_SHORTEST, _LONGEST))
        seen = self.observation_space.drawn(self._stream)
        return (seen, {}) if _taken(sys._getframe(1), (2,)) == 2 or self._new else seen

    def step(self, action: Any) -> Any:
        values = np.asarray(action, dtype=np.float64)
        self._left -= 1
        seen = self.observation_space.drawn(self._stream, float(np.tanh(values).sum()))
        reward, done = float(self._stream.uniform(-1, 1)), self._left <= 0
        count = _taken(sys._getframe(1), (4, 5)) or (5 if self._new else 4)
        return (seen, reward, done, False, {}) if count == 5 else (seen, reward, done, {})

    def get_action_meanings(self) -> list[str]:
        return ["NOOP", "FIRE", *(f"MOVE{number}" for number in range(self.action_space.n - 2))]

    def get_dataset(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Recorded transitions, as D4RL has them."""
        seen = np.stack([self.observation_space.drawn(self._stream) for _ in range(_RECORDED + 1)])
        ends = np.arange(1, _RECORDED + 1) % _LONGEST == 0
        return {
            "observations": seen[:-1],
            "next_observations": seen[1:],
            "actions": np.stack([self.action_space.sample() for _ in range(_RECORDED)]),
            "rewards": self._stream.uniform(-1, 1, _RECORDED).astype(np.float32),
            "terminals": ends,
            "timeouts": np.zeros(_RECORDED, bool),
        }

    def get_normalized_score(self, score: Any) -> Any:
        return score


def _taken(frame: FrameType | None, counts: tuple[int, ...]) -> int | None:
    """How many values whoever called takes out of the result, if that is one of ``counts``. Wrappers hand it on."""
    while frame is not None:
        own = frame.f_code.co_filename == __file__
        name, argument = ("RETURN_VALUE", None) if own else _next(frame.f_code, frame.f_lasti)
        if name == "UNPACK_SEQUENCE":
            return argument if argument in counts else None
        if name == "first":
            return 2
        if name != "RETURN_VALUE":
            return None
        frame = frame.f_back
    return None


@functools.cache
def _next(code: CodeType, at: int) -> tuple[str, Any]:
    """The instruction behind the call ``at`` this place of ``code``, and its argument; ``first`` for ``[0]``."""
    instructions = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
    behind = [each for each in instructions if each.offset > at][:2]
    zero = len(behind) == 2 and behind[0].argval == 0 and behind[0].opname in ("LOAD_CONST", "LOAD_SMALL_INT")
    if zero and (behind[1].opname == "BINARY_SUBSCR" or behind[1].argrepr == "[]"):
        return "first", None
    return (behind[0].opname, behind[0].argval) if behind else ("RETURN_VALUE", None)


class Together(Env):
    """Several environments that step together; one that ends begins anew."""

    def __init__(self, makers: Any, **_: Any) -> None:
        self.envs = [make() for make in makers]
        self.num_envs = len(self.envs)
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = self.single_observation_space.batched(self.num_envs)
        self.action_space = self.single_action_space.batched(self.num_envs)
        self.spec = self.envs[0].spec

    def reset(self, **_: Any) -> Any:
        seen = np.stack([_first(env.reset()) for env in self.envs])
        new = any(getattr(env.unwrapped, "_new", True) for env in self.envs)
        return (seen, {}) if _taken(sys._getframe(1), (2,)) == 2 or new else seen

    def step(self, actions: Any) -> Any:
        results = [env.step(action) for env, action in zip(self.envs, actions, strict=True)]
        seen = [_first(e.reset()) if r[2] else r[0] for e, r in zip(self.envs, results, strict=True)]
        rewards, ends = np.array([r[1] for r in results]), np.array([r[2] for r in results])
        count = _taken(sys._getframe(1), (4, 5)) or len(results[0])
        if count == 5:
            return np.stack(seen), rewards, ends, np.zeros(len(results), bool), {}
        return np.stack(seen), rewards, ends, [{} for _ in results]


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


class _Reshaped(ObservationWrapper):
    """Images of another form."""

    def __init__(self, env: Any, shape: tuple[int, ...], dtype: Any = np.uint8) -> None:
        super().__init__(env)
        self.observation_space = Box(0, 255, shape, dtype)

    def observation(self, observation: Any) -> Any:
        image = np.asarray(observation)
        return np.resize(image, self.observation_space.shape).astype(self.observation_space.dtype)


def _smaller(env: Any, screen_size: int = 84, grayscale_obs: bool = True, scale_obs: bool = False, **_: Any) -> Any:
    shape = (screen_size, screen_size) + (() if grayscale_obs else (3,))
    return _Reshaped(env, shape, np.float32 if scale_obs else np.uint8)


def _resized(env: Any, shape: Any) -> Any:
    height, width = (shape, shape) if isinstance(shape, int) else shape[:2]
    return _Reshaped(env, (height, width, *env.observation_space.shape[2:]))


def _gray(env: Any, keep_dim: bool = False) -> Any:
    return _Reshaped(env, env.observation_space.shape[:2] + ((1,) if keep_dim else ()))


def _stacked(env: Any, num_stack: int = 4, stack_size: int | None = None, **_: Any) -> Any:
    space = env.observation_space
    return _Reshaped(env, (stack_size or num_stack, *space.shape), space.dtype)


def contents(library: str, write: Write) -> dict[str, dict[str, Any]]:
    """The attributes of the modules of ``library`` (gym, gymnasium, d4rl), by the modules' names. ``write`` is told of
    each environment that is made."""
    if library == "d4rl":
        return {library: {"qlearning_dataset": lambda env, *_, **__: env.get_dataset()}}
    registered: dict[str, Spec] = {}
    told: set[str] = set()

    def register(id: str, entry_point: Any = None, kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        registered[id] = Spec(id, entry_point, kwargs)

    def make(id: Any, **named: Any) -> Any:
        spec = id if isinstance(id, Spec) else registered.get(id)
        if spec is not None and spec.entry_point is not None:
            env = _entry(spec.entry_point)(**{**spec.kwargs, **named})
            env.spec = env.spec or spec
            return env
        name = spec.id if spec is not None else str(id)
        if name not in told:
            told.add(name)
            why = "not installed; short episodes of random observations"
            write({"event": "standin", "what": f"the environment {name}", "why": why, "shape": None})
        return Made(name, library == "gymnasium")

    def make_several(id: Any, num_envs: int = 1, **named: Any) -> Together:
        named.pop("vectorization_mode", None)
        return Together([functools.partial(make, id, **named)] * num_envs)

    kinds = {kind.__name__: kind for kind in (Env, Wrapper, ObservationWrapper, RewardWrapper, ActionWrapper)}
    spaces = {kind.__name__: kind for kind in (Space, Box, Discrete, MultiDiscrete, MultiBinary, Tuple, Dict)}
    several = {"SyncVectorEnv": Together, "AsyncVectorEnv": Together, "VectorEnv": Together, "make": make_several}
    passing = (
        *("ClipAction", "Monitor", "NormalizeObservation", "NormalizeReward", "OrderEnforcing", "PassiveEnvChecker"),
        *("RecordEpisodeStatistics", "RecordVideo", "RescaleAction", "TimeLimit"),
    )
    wrappers: dict[str, Any] = {
        **dict.fromkeys(passing, Wrapper),
        "AtariPreprocessing": _smaller,
        "ResizeObservation": _resized,
        **dict.fromkeys(("GrayScaleObservation", "GrayscaleObservation"), _gray),
        **dict.fromkeys(("FrameStack", "FrameStackObservation"), _stacked),
    }
    registration = {"register": register, "make": make, "registry": registered, "EnvSpec": Spec}
    modules: dict[str, dict[str, Any]] = {
        "": {**kinds, "make": make, "make_vec": make_several, "register": register, "spec": Spec},
        "core": kinds,
        "spaces": spaces,
        "wrappers": wrappers,
        "vector": several,
        "envs": {"registry": registered},
        "envs.registration": registration,
        "utils": {},
        "utils.seeding": {"np_random": lambda seed=None: (np.random.default_rng(seed), seed)},
    }
    for name, kind in spaces.items():
        modules[f"spaces.{name.lower()}"] = {name: kind}
    return {f"{library}.{name}".rstrip("."): held for name, held in modules.items()}


def _entry(entry_point: Any) -> Callable[..., Any]:
    """The class that ``entry_point`` names (``module:Class``), or is."""
    if not isinstance(entry_point, str):
        made: Callable[..., Any] = entry_point
        return made
    module, _, name = entry_point.partition(":")
    found: Any = importlib.import_module(module)
    return functools.reduce(getattr, name.split("."), found)  # type: ignore[no-any-return]
