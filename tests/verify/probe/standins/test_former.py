"""Names that newer releases lack, in real child processes."""

import importlib.util
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType

import pytest

from tests.verify.probe.tools import probe
from verify.probe.standins.former import is_former
from verify.probe.standins.former_names import FORMER

OLD = """
import collections, inspect, time
from collections import Iterable
import numpy as np

print(isinstance([], Iterable), isinstance({}, collections.Mapping), time.clock() >= 0)
print(inspect.getargspec(lambda a, b=1: 0).args)
print(np.array([1], copy=False), np.array(np.ones(1), copy=True))
from distutils.util import strtobool
from pkg_resources import parse_version, get_distribution
print(int(strtobool("yes")), parse_version("1.10") > parse_version("1.9"), bool(get_distribution("numpy").version))
print(np.float(2), np.object, np.Inf, np.product([2, 3]), np.asscalar(np.ones(1)))
try:
    np.never_there
except AttributeError as error:
    print(error)
import torch
"""


def test_former_names_mean_what_they_meant() -> None:
    record, done = probe(OLD, former=True)
    assert done.stdout.splitlines() == [
        "True True True",
        "['a', 'b']",
        "[1] [1.]",
        "1 True True",
        "2.0 <class 'object'> inf 6 1.0",
        "module 'numpy' has no attribute 'never_there'",
    ], done.stderr
    told = [standin["what"] for standin in record.standins]
    assert told[:3] == ["collections.Iterable", "collections.Mapping", "time.clock"]
    assert {"numpy.Inf", "numpy.array", "inspect.getargspec"} <= set(told)


def test_versions_are_compared_as_they_were() -> None:
    loose = FORMER["distutils.version"]["LooseVersion"]
    assert loose("1.10") > loose("1.9")
    assert loose("1.0") == "1.0"
    assert loose("1.0") != "1.0.0"
    # What packaging says otherwise: a build between two releases.
    assert loose("2.1.0a0+abc") >= "2.1"
    assert (str(loose("2.1b-x")), loose("2.1b-x").version) == ("2.1b-x", [2, 1, "b", "-", "x"])


def test_what_is_installed_is_told_from_what_is_not() -> None:
    library = FORMER["pkg_resources"]
    assert library["require"]("torch>=99", ["numpy", ""])[1].metadata["Name"] == "numpy"
    assert library["get_distribution"]("torch>=99").metadata["Name"] == "torch"
    for name in ("require", "get_distribution"):
        with pytest.raises(PackageNotFoundError):
            library[name]("never-there")


def test_a_source_is_loaded_as_a_module_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "cells.py"
    source.write_text(
        "from __future__ import annotations\nimport dataclasses\n\n@dataclasses.dataclass\nclass Cell:\n    size: int\n"
    )
    monkeypatch.setitem(sys.modules, "cells_of_a_test", ModuleType("cells_of_a_test"))
    module = FORMER["imp"]["load_source"]("cells_of_a_test", str(source))
    assert sys.modules["cells_of_a_test"] is module
    assert module.Cell(3).size == 3


def test_files_beside_a_module_are_found() -> None:
    assert FORMER["pkg_resources"]["resource_filename"](__name__, "x.txt") == str(Path(__file__).parent / "x.txt")


def test_one_dimension_comes_of_any_number() -> None:
    assert FORMER["numpy"]["in1d"]([[1, 2], [3, 4]], [2, 3]).tolist() == [False, True, True, False]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_stays_one() -> None:
    networkx = pytest.importorskip("networkx")
    matrix = FORMER["networkx"]["to_numpy_matrix"](networkx.path_graph(3))
    assert (matrix * matrix).tolist() == [[1, 0, 1], [0, 2, 0], [1, 0, 1]]


def test_without_being_asked_for_they_are_not_there() -> None:
    record, done = probe("import torch\nimport collections\ncollections.Iterable\n")
    assert record.standins == []
    assert done.returncode == 1
    assert record.error is not None
    assert is_former(record.error.message)


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed")
def test_a_module_that_is_gone_is_made() -> None:
    record, done = probe(
        "import torch\nfrom torchvision.models.utils import load_state_dict_from_url\n"
        "print(load_state_dict_from_url is torch.hub.load_state_dict_from_url)\n",
        former=True,
    )
    assert done.stdout == "True\n", done.stderr
    assert [standin["what"] for standin in record.standins] == ["torchvision.models.utils.load_state_dict_from_url"]


@pytest.mark.parametrize(
    "message",
    [
        "No module named 'pkg_resources'",
        "No module named 'distutils'",
        "module 'PIL.Image' has no attribute 'ANTIALIAS'",
        "module 'numpy' has no attribute 'int'.\n`np.int` was a deprecated alias for the builtin `int`.",
        "`np.Inf` was removed in the NumPy 2.0 release. Use `np.inf` instead.",
        "cannot import name 'Sequence' from 'collections' (/usr/lib/python3/collections/__init__.py)",
        "cannot import name 'imread' from 'scipy.misc' (/x/scipy/misc/__init__.py)",
        "No module named 'torchvision.models.utils'",
        "load() missing 1 required positional argument: 'Loader'",
        "Unable to avoid copy while creating an array as requested.\nIf using `np.array(obj, copy=False)` replace it",
    ],
)
def test_errors_about_former_names(message: str) -> None:
    assert is_former(message)


@pytest.mark.parametrize(
    "message",
    [
        "module 'torchvision.transforms' has no attribute 'Scale'",
        "module 'numpy' has no attribute 'ints'",
        "module 'torch' has no attribute 'rfft'",
        "cannot import name 'Sequence' from 'typing' (/usr/lib/python3/typing.py)",
        "No module named 'collections.nothing'",
        "No module named 'numpy'",
        "No module named 'time'",
        "forward() missing 1 required positional argument: 'Loader'",
        "'Net' object has no attribute 'int'",
    ],
)
def test_errors_about_other_names(message: str) -> None:
    assert not is_former(message)


def test_loaders_and_copies_that_are_asked_for_stay() -> None:
    pytest.importorskip("yaml")
    record, done = probe(
        "import torch, yaml\nprint(yaml.load('a: 1', Loader=yaml.BaseLoader), yaml.load('a: 1', yaml.BaseLoader))\n"
        "print(yaml.load('a: 1'))\n",
        former=True,
    )
    assert done.stdout == "{'a': '1'} {'a': '1'}\n{'a': 1}\n", done.stderr
    assert [standin["what"] for standin in record.standins] == ["yaml.load"]
