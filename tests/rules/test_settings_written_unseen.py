"""A flag that decides about a second backward: what writes it in a way that names it late, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "surplus-retain-graph"

PROGRAM = """
import argparse, builtins, functools, importlib, json, operator, sys, types
import torch
from torch import nn

class Settings{bases}:
    {own}

    def __init__(self):
        self.more = False
        {init}

{helper}
net = nn.Linear(3, 3)
it = Settings()
{after}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    out = net(torch.ones(2, 3)).tanh()
    out.mean().backward(retain_graph=True)
    if {flag}:
        out.pow(2).mean().backward()
    opt.step()
"""

WAYS = {
    "a text": {"after": "exec('it.more = True')"},
    "a text that is put together": {"after": "exec('it.' + 'more' + ' = True')"},
    "a text that calls something": {
        "after": "eval('setattr(it, name, True)', {'it': it, 'name': 'more', 'setattr': setattr})"
    },
    "a text in a function": {"helper": "def up(o, text):\n    exec(text)", "after": "up(it, 'o.more = True')"},
    "a text in the constructor": {"init": "exec('self.more = True')"},
    "exec by another name": {"after": "run = getattr(builtins, 'exec')\nrun('it.more = True')"},
    "a bound method": {"after": "put = it.__setattr__\nput('more', True)"},
    "a bound method that is kept": {"init": "self.put = self.__setattr__", "after": "it.put('more', True)"},
    "the method of the class": {"after": "type(it).__setattr__(it, 'more', True)"},
    "a caller of methods": {"after": "operator.methodcaller('__setattr__', 'more', True)(it)"},
    "a getter of attributes": {"after": "operator.attrgetter('__dict__')(it)['more'] = True"},
    "the dict's |=": {"after": "names = vars(it)\nnames |= {'more': True}"},
    "the function of |=": {"after": "operator.ior(it.__dict__, {'more': True})"},
    "dict.update": {"after": "dict.update(it.__dict__, more=True)"},
    "dict.__setitem__": {"after": "dict.__setitem__(vars(it), 'more', True)"},
    "taken away and set by default": {"after": "it.__dict__.pop('more')\nit.__dict__.setdefault('more', True)"},
    "deleted, so that the class says it": {"own": "more = True", "after": "delattr(it, 'more')"},
    "deleted out of the dict": {"own": "more = True", "after": "del vars(it)['more']"},
    "the state of a module": {
        "bases": "(nn.Module)",
        "init": "super().__init__()",
        "after": "it.__setstate__(dict(vars(it), more=True))",
    },
    "a property that hides it": {"after": "Settings.more = property(lambda self: True, lambda self, value: None)"},
    "names of a class that are computed": {
        "after": "del it.more\nfor name, value in json.loads('{\"more\": true}').items():\n"
        "    setattr(Settings, name, value)",
        "own": "more = False",
    },
    "a command line": {
        "after": "parser = argparse.ArgumentParser()\nparser.add_argument('--more', default=True)\n"
        "parser.parse_args([], namespace=argparse.Namespace())\nparser.parse_args(['--more=1'], namespace=it)"
    },
    "the script by its name": {"after": "import __main__\n__main__.it.more = True"},
    "the script as a module": {"after": "importlib.import_module('__main__').it.more = True"},
    "from the script": {"after": "from __main__ import it as other\nother.more = True"},
    "frames": {"helper": "def up():\n    sys._getframe(1).f_globals['it'].more = True", "after": "up()"},
}

VARIABLES = {
    "a text": "exec('more = True')",
    "a text in a function": "def up():\n    exec('global more\\nmore = True')\nup()",
    "the dict of globals": "names = globals()\nnames |= {'more': True}",
    "names that are computed": "globals().update(json.loads('{\"more\": true}'))",
    "the script by its name": "import __main__\n__main__.more = True",
    "code as a function": "types.FunctionType(compile('more = True', 'x', 'exec'), globals())()",
}


def promises(tmp_path: Path, flag: str = "it.more", **given: str) -> list[Promise | None]:
    slots = {"bases": "", "own": "pass", "init": "pass", "helper": "", "after": "pass", "flag": flag}
    return [f.promise for f in found(tmp_path, RULE, PROGRAM.format(**{**slots, **given}))]


@pytest.mark.parametrize("way", WAYS)
def test_a_flag_that_may_be_set_needs_the_graph(tmp_path: Path, way: str) -> None:
    assert Promise.EXACT not in promises(tmp_path, **WAYS[way])


@pytest.mark.parametrize("way", VARIABLES)
def test_a_variable_that_may_be_set_needs_the_graph(tmp_path: Path, way: str) -> None:
    assert Promise.EXACT not in promises(tmp_path, "more", after=f"more = False\n{VARIABLES[way]}")


UNNAMED = ("names of a class that are computed", "a command line", "frames", "from the script")
"""Ways that show too much to tell names apart; behind a text that is run the model may be walked by it."""

ELSEWHERE = [way for way in WAYS if way not in UNNAMED and "text" not in way and "exec" not in way]


@pytest.mark.parametrize("way", ELSEWHERE)
def test_another_name_leaves_the_flag_alone(tmp_path: Path, way: str) -> None:
    given = {slot: text.replace("more", "less") for slot, text in WAYS[way].items()}
    given["init"] = f"{given.get('init', 'pass')}\n        self.less = False"
    assert promises(tmp_path, **given) == [Promise.EXACT]


OF_OTHERS = {
    "a dict": "names = {'more': True}\nnames |= {'most': 1}",
    "an element": "names = {'more': 1}\ndel names['more']",
    "an item": "first = operator.itemgetter(0)([it])\nfirst.less = 1",
    "an attribute of an attribute": "it.inner = types.SimpleNamespace(less=1)\noperator.attrgetter('inner.less')(it)",
    "options of a command line": "args = argparse.ArgumentParser().parse_args([])\nargs.more = True",
    "it is set again": "it.__dict__.update(json.loads('{}'))\nit = Settings()",
}


@pytest.mark.parametrize("way", OF_OTHERS)
def test_a_flag_that_nobody_sets_keeps_no_graph(tmp_path: Path, way: str) -> None:
    assert promises(tmp_path, after=OF_OTHERS[way]) == [Promise.EXACT]


TRAINER = """
import torch
from torch import nn

def build():
    net = nn.Linear(3, 3)
    return net, torch.optim.SGD(net.parameters(), lr=0.1)

class Trainer:
    def __init__(self):
        self.more = False

    def step(self, net, opt, x):
        opt.zero_grad()
        out = net(x).tanh()
        out.mean().backward(retain_graph=True)
        if self.more:
            out.pow(2).mean().backward()
        opt.step()

it = Trainer()
{text}

def main():
    net, opt = build()
    for _ in range(3):
        it.step(net, opt, torch.ones(2, 3))

main()
"""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("exec('less = 1')", False),
        ("exec('import math')", False),
        ("exec('it.less = 1')", False),
        ("exec('it.more = 1')", True),
        ("exec('flip(it)', {'flip': lambda o: vars(o).update(more=1)})", True),
        ("exec(open('settings.py').read())", True),
        ("exec(open('settings.py').read())\nit.more = False", False),
    ],
)
def test_a_text_that_is_known_writes_what_it_names(tmp_path: Path, text: str, kept: bool) -> None:
    got = [f.promise for f in found(tmp_path, RULE, TRAINER.format(text=text))]
    assert (Promise.EXACT not in got) is kept
