"""Gym, Gymnasium and D4RL that nobody has, in real child processes."""

import importlib.util
from typing import Any

import pytest

from tests.verify.probe.tools import probe

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) for name in ("gym", "gymnasium")), reason="environments are installed"
)


def printed(script: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The lines that ``script`` prints, and what was made up for it."""
    record, done = probe("import torch\n" + script, modules=["gym", "gymnasium", "d4rl"])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), record.standins


def test_as_many_values_as_the_caller_takes() -> None:
    lines, made = printed("""
import gym, gymnasium
env = gym.make("CartPole-v1")
state = env.reset()
state, reward, done, info = env.step(1)
print(state.shape, state.dtype, type(reward).__name__, done)
state, reward, done, cut, info = env.step(env.action_space.sample())
state, info = env.reset()
print(state.shape, env.reset()[0].shape, env.reset(seed=1)[0].shape)
print(len(env.step(0)), len(gymnasium.make("CartPole-v1").step(0)), len(gymnasium.make("CartPole-v1").reset()))
""")
    assert lines == ["(4,) float32 float False", "(4,) (4,) (4,)", "4 5 2"]
    assert [one["what"] for one in made] == [
        *("the module gym", "the module gymnasium", "the environment CartPole-v1", "the environment CartPole-v1")
    ]


def test_wrappers_of_the_program_hand_on() -> None:
    lines, _ = printed("""
import gym

class Own(gym.Wrapper):
    def step(self, action):
        return self.env.step(action)

class Twice(gym.ObservationWrapper):
    def observation(self, observation):
        return observation * 2

class Signs(gym.RewardWrapper):
    def reward(self, reward):
        return (reward > 0) - (reward < 0)

env = Signs(Twice(Own(gym.wrappers.RecordEpisodeStatistics(gym.make("Pendulum-v1")))))
a, b, c, d = env.step(env.action_space.sample())
a, b, c, d, e = env.step([0.5])
print(b in (-1, 0, 1), env.observation_space.shape, env.action_space.high, env.spec.id, env.unwrapped.spec.id)
""")
    assert lines == ["True (3,) [2.] Pendulum-v1 Pendulum-v1"]


def test_environments_of_the_program_are_its_own() -> None:
    lines, made = printed("""
import gym
from gym import spaces
from gym.envs.registration import register
from gym.utils import seeding

class Mine(gym.Env):
    def __init__(self, size):
        self.observation_space = spaces.Dict({"x": spaces.Box(0.0, 1.0, (size,)), "n": spaces.Discrete(3)})
        self.action_space = spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(3)))
        self.np_random, _ = seeding.np_random(1)

    def reset(self):
        return self.observation_space.sample()

register(id="Mine-v0", entry_point="__main__:Mine", kwargs={"size": 2})
env = gym.make("Mine-v0")
state = env.reset()
print(type(env).__name__, env.spec.id, sorted(state), state["x"].shape, 0 <= state["n"] < 3)
print([len(env.action_space), env.action_space.sample()[1].shape], isinstance(env.action_space[0], spaces.Discrete))
""")
    assert lines == ["Mine Mine-v0 ['n', 'x'] (2,) True", "[2, (3,)] True"]
    assert [one["what"] for one in made] == ["the module gym"]


def test_what_is_observed_depends_on_the_actions() -> None:
    lines, _ = printed("""
import gym
for action in (0, 0, 1):
    gym.envs.registry.clear()
    env = gym.make("CartPole-v1")
    env._stream = __import__("numpy").random.default_rng(0)
    env.reset()
    print(env.step(action)[0].tolist())
""")
    assert lines[0] == lines[1] != lines[2]


def test_a_graph_does_not_go_into_an_environment() -> None:
    lines, _ = printed("""
import gym
env = gym.make("Pendulum-v1")
env.reset()
try:
    env.step(torch.zeros(1, requires_grad=True))
except RuntimeError as error:
    print("Can't call numpy()" in str(error))
print(env.step(torch.zeros(1))[0].shape)
""")
    assert lines == ["True", "(3,)"]


def test_episodes_end_and_several_go_on() -> None:
    lines, _ = printed("""
import gym
env = gym.make("Unheard-v0")
env.reset()
steps = 1
while not env.step(0)[2]:
    steps += 1
print(steps < 30, env.observation_space.shape, env.action_space.n)
envs = gym.vector.SyncVectorEnv([lambda: gym.make("LunarLander-v2") for _ in range(3)])
states = envs.reset()
ended = False
for _ in range(30):
    states, rewards, dones, infos = envs.step(envs.action_space.sample())
    ended = ended or dones.any()
print(states.shape, rewards.shape, ended, envs.single_action_space.n, (rewards[0] != rewards[1]).item())
""")
    assert lines == ["True (8,) 4", "(3, 8) (3,) True 4 True"]


def test_images_and_recorded_data() -> None:
    lines, _ = printed("""
import d4rl, gym
env = gym.make("PongNoFrameskip-v4")
print(env.reset().shape, env.reset().dtype, env.unwrapped.get_action_meanings()[:2], env.unwrapped.ale.lives())
small = gym.wrappers.FrameStack(gym.wrappers.AtariPreprocessing(env), 4)
print(small.reset().shape, small.observation_space.shape, small.action_space.n)
data = d4rl.qlearning_dataset(gym.make("halfcheetah-medium-v2"))
print(data["observations"].shape, data["actions"].shape, data["terminals"].any())
print(gym.make("FrozenLake-v1").observation_space.n, gym.make("Pong-ram-v0").observation_space.shape)
""")
    assert lines == [
        "(210, 160, 3) uint8 ['NOOP', 'FIRE'] 3",
        "(4, 84, 84) (4, 84, 84) 6",
        "(1024, 17) (1024, 6) True",
        "16 (128,)",
    ]
