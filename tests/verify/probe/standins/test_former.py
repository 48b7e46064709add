"""Names that newer releases lack, in real child processes."""

import importlib.util

import pytest

from tests.verify.probe.tools import probe
from verify.probe.standins.former import is_former

OLD = """
import collections, inspect, time
from collections import Iterable
import numpy as np

print(isinstance([], Iterable), isinstance({}, collections.Mapping), time.clock() >= 0)
print(inspect.getargspec(lambda a, b=1: 0).args)
print(np.array([1], copy=False), np.array(np.ones(1), copy=True))
from distutils.util import strtobool
from pkg_resources import parse_version, get_distribution
print(strtobool("yes"), parse_version("1.10") > parse_version("1.9"), bool(get_distribution("numpy").version))
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
