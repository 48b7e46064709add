"""Attributes whose names a program computes, and the dict of a module's parts."""

from __future__ import annotations

import pytest

from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.values import Join, Sequence
from tests.graph.tools import run

HEAD = """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 3
        {make}
    def forward(self, x):
        {use}
        return x
out = Deep()(x)
"""

MAKE = {
    "by hand": "self.enc_0 = nn.Linear(3, 3); self.enc_1 = nn.Linear(3, 3); self.act = nn.ReLU()",
    "setattr": 'for k in range(4): setattr(self, "enc_%d" % k, nn.Linear(3, 3))',
    "add_module": "for k in range(4): self.add_module(f'enc_{k}', nn.Linear(3, 3))",
    "register_module": "for k in range(4): self.register_module('enc_' + str(k), nn.Linear(3, 3))",
}

USE = {
    "an f-string": "for k in range(2): x = getattr(self, f'enc_{k}')(x)",
    "a format": "for k in range(2): x = getattr(self, 'enc_{}'.format(k))(x)",
    "a percent sign": "for k in range(2): x = getattr(self, 'enc_%d' % k)(x)",
    "a sum": "for k in range(2): x = getattr(self, 'enc_' + str(k))(x)",
}


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("use", USE)
def test_a_part_is_found_by_the_begin_of_its_name(make: str, use: str) -> None:
    assert run(HEAD.format(make=MAKE[make], use=USE[use])).graph("out") == "attached"


def test_a_list_of_computed_names() -> None:
    make = "self.names = [f'enc_{k}' for k in range(4)]; [self.add_module(n, nn.Linear(3, 3)) for n in self.names]"
    use = "for name in self.names: x = getattr(self, name)(x)"
    assert run(HEAD.format(make=make, use=use)).graph("out") == "attached"


UNSURE = {
    "one of them has no parameters": ("self.enc_0 = nn.Linear(3, 3); self.enc_1 = nn.ReLU()", USE["a sum"]),
    "a name of which nothing is known": (MAKE["by hand"], "x = getattr(self, str(x))(x)"),
    "two kinds of names": (MAKE["by hand"], "x = getattr(self, 'enc_%d' % 1 if len(x) > 1 else f'act{x}')(x)"),
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_not_known_is_no_proof(name: str) -> None:
    make, use = UNSURE[name]
    assert run(HEAD.format(make=make, use=use)).graph("out") != "attached"


def test_a_base_that_cannot_be_seen_may_have_more() -> None:
    code = "from elsewhere import Base\n" + HEAD.format(make=MAKE["by hand"], use=USE["a sum"])
    assert run(code.replace("nn.Module", "Base")).graph("out") != "attached"


def test_what_was_written_under_another_name_is_not_read() -> None:
    make = "for k in range(4): setattr(self, f'enc_{k}', nn.Linear(3, 3))"
    assert run(HEAD.format(make=make, use="x = x * self.limit")).graph("out") == "free"


def test_what_was_written_under_any_name_may_be_read() -> None:
    make = "for k in ('a', 'b'): setattr(self, str(k), torch.nn.Parameter(torch.ones(3)))"
    assert run(HEAD.format(make=make, use="x = x * self.other")).graph("out") != "free"


REGISTERED = {
    "known": "x = self.__getattr__('enc_' + '0')(x)",
    "of which the begin is known": "for k in range(2): x = self.__getattr__(f'enc_{k}')(x)",
    "of which nothing is known": "for name in open('names'): x = self.__getattr__(name)(x)",
}


@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.parametrize("make", MAKE)
def test_a_module_is_asked_for_a_part(make: str, name: str) -> None:
    traced = run(HEAD.format(make=MAKE[make], use=REGISTERED[name]))
    assert traced.graph("out") != "free"
    assert not any(node.kind is NodeKind.CALL for node in traced.nodes("out")[0].ancestors())


def test_a_part_that_a_module_is_told_to_set() -> None:
    make = "for k in 'ab': self.__setattr__('enc_' + k, nn.Linear(3, 3))"
    assert run(HEAD.format(make=make, use="x = self.__getattr__('enc_' + str(len(x)))(x)")).graph("out") == "attached"


OTHERS = {
    "a base that cannot be seen": (("nn.Module", "Base"), ("class", "from elsewhere import Base\nclass")),
    "ways of its own": (
        ("    def forward", "    def __getattribute__(self, name): return hidden(name)\n    def forward"),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_module_may_find_other_parts(name: str) -> None:
    code = HEAD.format(make=MAKE["by hand"], use="x = self.__getattr__(str(x))(x)")
    for old, new in OTHERS[name]:
        code = code.replace(old, new)
    out = run(code).nodes("out")
    assert not out or any(node.kind is not NodeKind.MODULE for node in out[0].ancestors() if not node.leaf)


PARTS = {
    "values": "for part in self.body._modules.values(): x = part(x)",
    "items": "for name, part in self.body._modules.items(): x = part(x)",
    "turned round": "for part in reversed(self.body._modules.values()): x = part(x)",
    "names": "for name in self.body._modules.keys(): x = self.body._modules[name](x)",
    "its own": "x = self._modules['body'](x)",
}


@pytest.mark.parametrize("name", PARTS)
def test_the_dict_of_parts_is_read(name: str) -> None:
    make = "self.body = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))"
    assert run(HEAD.format(make=make, use=PARTS[name])).graph("out") == "attached"


LAYERS = """
class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.fcs, self.fc12 = [], "no layer"
        for i, size in enumerate(sizes):
            fc = nn.Linear(3, size)
            self.__setattr__({name}, fc)
            self.fcs.append(fc)
    def forward(self, t):
        for fc in self.fcs:
            t = fc(t)
        return t
import sys
n = Net([int(a) for a in sys.argv[1:]])
kept, other = n.fcs, n.fc12
r = n(torch.exp(w))
"""


@pytest.mark.parametrize("name", ["'fc{}'.format(i)", "'fc{0}'.format(i)", "f'fc{i}'", "'fc%d' % i", "'fc' + str(i)"])
def test_a_name_that_ends_in_a_number_is_no_other_name(name: str) -> None:
    found = run(LAYERS.replace("{name}", name))
    assert isinstance(found.value("kept"), Sequence)
    assert found.graph("r") == "attached"


@pytest.mark.parametrize("name", ["'fc{}'.format(i)", "f'fc{i}'", "'fc%d' % i"])
def test_a_name_that_may_be_that_number_is_it(name: str) -> None:
    assert isinstance(run(LAYERS.replace("{name}", name)).value("other"), Join)


@pytest.mark.parametrize(
    "name", ["'fc{}'.format(size)", "f'fc{size:s}'", "'fc%s' % sys", "f'fc{i}{size}'", "f'f{i!r:>3}'"]
)
def test_a_name_of_which_less_is_known_may_be_any(name: str) -> None:
    text = LAYERS.replace("{name}", name).replace("int(a)", "a").replace("nn.Linear(3, size)", "nn.Linear(3, 3)")
    assert not isinstance(run("import sys\n" + text).value("kept"), Sequence)
