"""Models whose file or class has a computed name: all that may be meant are tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Finding
from tests.rules.tools import REMEMBERING, analysed, found

RULE = "surplus-retain-graph"

PLAIN = """
from torch import nn

class {name}(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.layer = nn.Linear(4, width)

    def forward(self, x):
        return self.layer(x){more}
"""

TRAIN = """
import importlib
import sys
import torch
from torch import nn
{imports}

def main(name):
    net = {make}
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in [torch.randn(3, 4) for _ in range(9)]:
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
    print(loss.item())

{own}

if __name__ == "__main__":
    main(sys.argv[1])
"""

MODULES = {
    "a constant": "importlib.import_module('models.a').Net()",
    "a sum": "importlib.import_module('models.' + name).Net()",
    "a sum of three": "importlib.import_module('models.' + name + '').Net()",
    "an f-string": "importlib.import_module(f'models.{name}').Net()",
    "format": "importlib.import_module('models.{}'.format(name)).Net()",
    "percent": "importlib.import_module('models.%s' % name).Net()",
    "relative": "importlib.import_module(f'.{name}', 'models').Net()",
    "a builtin": "__import__('models.' + name, fromlist=['Net']).Net()",
    "a builtin by position": "__import__(f'models.{name}', None, None, ['']).Net()",
    "a known attribute": "getattr(importlib.import_module('models.' + name), 'Net')()",
    "a computed attribute": "getattr(importlib.import_module('models.' + name), name.title())()",
    "a dictionary": "importlib.import_module('models.' + name).__dict__['Net']()",
    "a search": "pick(importlib.import_module('models.' + name + ''), name)()",
}
OWN = {
    "globals": "globals()[name]()",
    "get of globals": "globals()['Net' + name]()",
    "its own module": "getattr(sys.modules[__name__], name)()",
}


PICK = """
def pick(library, name):
    cls = None
    for key, value in library.__dict__.items():
        if key.lower() == name.lower() and issubclass(value, nn.Module):
            cls = value
    return cls
"""


def of_modules(folder: Path, make: str, first: str, second: str) -> list[Finding]:
    (folder / "models").mkdir()
    (folder / "models" / "__init__.py").touch()
    train = TRAIN.format(imports=PICK, make=make, own="")
    files = {"models/a": first.format(name="Net", more=""), "models/b": second.format(name="Net", more=".relu()")}
    return found(folder, RULE, train, **files)


@pytest.mark.parametrize("form", MODULES)
def test_all_modules_that_may_be_meant_are_tried(tmp_path: Path, form: str) -> None:
    assert [f.promise.value for f in of_modules(tmp_path, MODULES[form], PLAIN, PLAIN)] == ["exact"]


@pytest.mark.parametrize("form", MODULES)
def test_one_that_remembers_its_graph_is_enough(tmp_path: Path, form: str) -> None:
    first, second = (REMEMBERING, PLAIN) if form == "a constant" else (PLAIN, REMEMBERING)
    findings = of_modules(tmp_path, MODULES[form], first, second)
    assert all(f.promise.value == "advice" for f in findings)


OF_A_PACKAGE = {
    "its own name": "importlib.import_module('models.' + name)",
    "its own name about a name": "importlib.import_module('models.' + name + '')",
    "an f-string": "importlib.import_module(f'models.{name}')",
    "a builtin": "__import__('models.' + name, fromlist=['Net'])",
}

FACTORY = """
import importlib
from torch import nn

def search(library, name):
    cls = None
    for key, value in {items}:
        if key.lower() == name.lower() and issubclass(value, nn.Module):
            cls = value
    return cls

def build(name):
    return search({library}, name)()
"""

BESIDE = """
import copy, functools, itertools, json, math, os, random, sys
import numpy as np
from collections import OrderedDict, defaultdict
"""
"""What stands in a file of a model beside it: more names than values are told apart of most kinds."""


def of_package(folder: Path, library: str, items: str, first: str, second: str) -> list[str]:
    """Promises of what is found where a package picks a class out of one of its own modules."""
    (folder / "models").mkdir()
    train = TRAIN.format(imports="import models", make="models.build(name)", own="")
    files = {
        "models/__init__": FACTORY.format(library=library, items=items),
        "models/a": BESIDE + first.format(name="Net", more=""),
        "models/b": BESIDE + second.format(name="Other", more=".relu()"),
    }
    return [f.promise.value for f in found(folder, RULE, train, **files)]


@pytest.mark.parametrize("form", OF_A_PACKAGE)
@pytest.mark.parametrize("items", ["library.__dict__.items()", "vars(library).items()"])
def test_a_package_that_imports_its_own_modules_by_name(tmp_path: Path, form: str, items: str) -> None:
    assert of_package(tmp_path, OF_A_PACKAGE[form], items, PLAIN, PLAIN) == ["exact"]


@pytest.mark.parametrize("form", OF_A_PACKAGE)
@pytest.mark.parametrize("items", ["library.__dict__.items()", "vars(library).items()"])
def test_a_module_of_its_own_that_remembers(tmp_path: Path, form: str, items: str) -> None:
    assert set(of_package(tmp_path, OF_A_PACKAGE[form], items, PLAIN, REMEMBERING)) <= {"advice"}


def test_a_package_may_have_the_name_of_a_library(tmp_path: Path) -> None:
    library = "importlib.import_module('torch.' + name)"
    assert set(of_package(tmp_path, library, "library.__dict__.items()", PLAIN, PLAIN)) <= {"advice"}


@pytest.mark.parametrize("form", OWN)
def test_classes_of_the_same_file(tmp_path: Path, form: str) -> None:
    own = PLAIN.format(name="NetA", more="") + PLAIN.format(name="NetB", more=".tanh()")
    findings = found(tmp_path, RULE, TRAIN.format(imports="", make=OWN[form], own=own))
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize("form", OWN)
def test_one_of_the_same_file_that_remembers(tmp_path: Path, form: str) -> None:
    own = PLAIN.format(name="NetA", more="") + REMEMBERING.format(name="NetB")
    findings = found(tmp_path, RULE, TRAIN.format(imports="", make=OWN[form], own=own))
    assert all(f.promise.value == "advice" for f in findings)


@pytest.mark.parametrize("form", OWN)
def test_one_that_is_imported_and_remembers(tmp_path: Path, form: str) -> None:
    train = TRAIN.format(imports="from others import NetB", make=OWN[form], own=PLAIN.format(name="NetA", more=""))
    findings = found(tmp_path, RULE, train, others=REMEMBERING.format(name="NetB"))
    assert all(f.promise.value == "advice" for f in findings)


REGISTRY = """
def by_name(name):
    if name not in globals():
        raise NotImplementedError(name)
    return globals()[name]
"""


def of_registry(folder: Path, *classes: str) -> list[str]:
    """Promises of what is found where an imported file makes a class of its own by a name."""
    train = TRAIN.format(imports="import registry", make="registry.by_name(name)()", own="")
    return [f.promise.value for f in found(folder, RULE, train, registry="\n".join([*classes, REGISTRY]))]


def test_classes_of_an_imported_file(tmp_path: Path) -> None:
    assert of_registry(tmp_path, *(PLAIN.format(name=f"Net{i}", more="") for i in range(25))) == ["exact"]


def test_classes_of_an_imported_file_beside_others(tmp_path: Path) -> None:
    others = (f"class Data{i}:\n    def __init__(self, size=1):\n        self.size = size" for i in range(13))
    assert of_registry(tmp_path, PLAIN.format(name="Net", more=""), *others) == ["exact"]


def test_one_of_an_imported_file_that_remembers(tmp_path: Path) -> None:
    many = [PLAIN.format(name=f"Net{i}", more="") for i in range(25)]
    assert set(of_registry(tmp_path, *many, REMEMBERING.format(name="Other"))) <= {"advice"}


def test_too_many_of_an_imported_file(tmp_path: Path) -> None:
    many = [PLAIN.format(name=f"Net{i}", more="") for i in range(40)]
    assert set(of_registry(tmp_path, *many)) <= {"advice"}


def test_a_model_that_an_imported_file_holds_is_no_class(tmp_path: Path) -> None:
    held = "\n".join([REMEMBERING.format(name="Other"), "kept = Other()"])
    assert set(of_registry(tmp_path, PLAIN.format(name="Net", more=""), held)) <= {"advice"}


@pytest.mark.parametrize(
    "make",
    [
        "importlib.import_module(name).Net()",
        "importlib.import_module('elsewhere.' + name).Net()",
        "importlib.import_module('..' + name, 'models').Net()",
        "eval(name)()",
        "getattr(sys.modules[name], name)()",
    ],
)
def test_what_may_be_anything_stays_advice(tmp_path: Path, make: str) -> None:
    findings = of_modules(tmp_path, make, PLAIN, PLAIN)
    assert [f.promise.value for f in findings] == ["advice"]


def test_a_text_and_something_unseen_are_a_text(tmp_path: Path) -> None:
    program = """
    import sys
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    names = []
    for x in [torch.randn(3, 4) for _ in range(9)]:
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        names.append("run " + sys.argv[1] + ".txt")
    print(names)
    """
    assert analysed(tmp_path, Options(unsafe=True), program) == []


HEADS = """
import json
import torch
from torch import nn

class Heads(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads
        self.body = nn.Linear(4, 4)
        for head in heads:
            self.__setattr__(head, nn.Linear(4, heads[head]))

    def forward(self, x):
        x = self.body(x)
        out = {{}}
        for head in self.heads:
            out[head] = self.__getattr__(head)(x)
            {keep}
        return out

net = Heads(json.load(open("heads.json")))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
last = torch.zeros(1)
for x in [torch.randn(3, 4) for _ in range(9)]:
    out = net(x)
    loss = out["hm"].pow(2).mean() + last
    {more}
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""


@pytest.mark.parametrize(
    ("keep", "more", "surplus"),
    [
        ("pass", "pass", True),
        ("pass", "last = net.body.__getattr__('weight').detach().mean()", True),
        ("self.__setattr__('kept', x)", "last = net.__getattr__('kept').mean()", False),
        ("self.register_buffer(head, x)", "last = net.__getattr__(str(x)).mean()", False),
        ("self.__setattr__(head, x)", "last = net.__getattr__('kept').mean()", False),
    ],
)
def test_parts_that_a_module_is_asked_for(tmp_path: Path, keep: str, more: str, surplus: bool) -> None:
    findings = found(tmp_path, RULE, HEADS.format(keep=keep, more=more))
    assert [f.promise.value for f in findings] == (["exact"] if surplus else [])


@pytest.mark.parametrize(("parts", "surplus"), [(PLAIN, True), (REMEMBERING, False)])
@pytest.mark.parametrize("bases", ["(Part, nn.Module)", "(nn.Module, Part)"])
def test_a_class_that_a_call_makes(tmp_path: Path, parts: str, bases: str, surplus: bool) -> None:
    part = parts.format(name="Part", more="").replace("(nn.Module)", "")
    members = "{'forward': Part.forward, '__init__': Part.__init__}"
    own = f"{part}\nNet = type('Net', {bases}, {members})"
    findings = found(tmp_path, RULE, TRAIN.format(imports="", make="Net()", own=own))
    assert [f.promise.value for f in findings] == (["exact"] if surplus else [])


@pytest.mark.parametrize(
    ("test", "surplus"),
    [
        ("issubclass(value, Base)", True),
        ("issubclass(value, (Base, Counted.__mro__[1]))", False),
        ("isinstance(value, type) and issubclass(value, Base)", True),
        ("inspect.isclass(value) and issubclass(value, (Base, Base))", True),
        ("issubclass(value, nn.Module)", False),
        ("issubclass(value, object)", False),
        ("not issubclass(value, nn.Linear)", False),
        ("issubclass(value, Counted)", False),
    ],
)
def test_classes_that_a_test_picks(tmp_path: Path, test: str, surplus: bool) -> None:
    search = f"""
import inspect
from parts import Base, Counted

def search(library):
    for value in vars(library).values():
        if {test}:
            return value
"""
    parts = """
from torch import nn

class Base(nn.Module):
    pass

class Meta(type):
    def __subclasscheck__(cls, other):
        return True

class Counted(metaclass=Meta):
    pass
"""
    first = BESIDE + "from elsewhere import chosen\n" + PLAIN.format(name="Net", more="").replace("nn.Module", "Base")
    files = {"zoo": "from parts import Base\n" + first, "parts": parts}
    train = TRAIN.format(imports=f"import zoo\n{search}", make="search(zoo)()", own="")
    findings = found(tmp_path, RULE, train, **files)
    assert [f.promise.value for f in findings] == (["exact"] if surplus else ["advice"])
