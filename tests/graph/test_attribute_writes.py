"""What is written past the class of an object, and by it."""

from __future__ import annotations

import pytest

from tests.graph.tools import run

FROZEN = """
class Settings(dict):
    def __init__(self, given):
        super().__init__(given)
        {written}

    def __setattr__(self, name, value):
        if self.__dict__["frozen"]:
            raise AttributeError(name)
        super().__setattr__(name, value)

    def __getattr__(self, name):
        return self[name]

settings = Settings({{"rate": 1}})
"""

WRITTEN = [
    "self.__dict__['frozen'] = False",
    "vars(self)['frozen'] = False",
    "self.__dict__.update(frozen=False)",
    "self.__dict__.setdefault('frozen', False)",
    "object.__setattr__(self, 'frozen', False)",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_the_dict_of_an_object_is_written_past_its_class(written: str) -> None:
    seen = run(FROZEN.format(written=written) + "out = net(x)\nloss = out.sum()\nloss.backward()")
    assert len(seen.walks()) == 1


def test_what_lies_there_is_read_as_an_attribute() -> None:
    seen = run("class Box:\n    pass\nbox = Box()\nbox.__dict__['out'] = net(x)\nout = box.out")
    assert seen.graph("out") == "attached"
