"""From choices to a program: a situation, the ways that its values take, and the form in which those are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import indent

from tests.hunt.choices import Choices
from tests.hunt.crossed.tables import SITUATIONS, WAYS
from tests.hunt.programs import Program

IMPORTS = """\
import abc, argparse, ast, asyncio, bisect, builtins, collections, concurrent.futures, contextlib, contextvars, copy
import copyreg, dataclasses, decimal, enum, fractions, functools, gc, graphlib, heapq, importlib, inspect, io, itertools
import json, logging, math, multiprocessing.pool, operator, pickle, queue, random, re, sched, selectors, signal, string
import sys, threading, time, traceback, types, typing, unittest.mock, warnings, weakref
import numpy
import torch
import torch.nn.functional as F
from torch import nn
import torch.autograd.forward_ad
import torch.fx
import torch.nn.utils.parametrize
import torch.utils.checkpoint
import torch.utils.data

torch.manual_seed(0)
"""
FORMS = ("in line", "in line", "function", "method", "another file")
"""Where the code of a way stands."""

_MARK = re.compile(r"^( *)(\w+) = CARRIED\((\w+)\)$", re.M)
_NUMBERED = re.compile(r"(?<![.\w])([A-Za-z]\w*)(?<=[A-Za-z0-9])_\b")
_METHOD = """\
class Carrier{n}:
    def __init__(self, value):
        self.value = value

    def carried(self):
{code}
        return OUT"""
_FUNCTION = """\
def carry{n}(value):
{code}
    return OUT"""


def program(seed: int = 0, record: Sequence[int] | None = None) -> Program:
    """The program of ``seed``, or that of a ``record`` of choices."""
    choices = Choices(seed, record)
    name = choices.one(tuple(SITUATIONS))
    ways = [choices.one(tuple(WAYS)) for _ in range(choices.one((1, 1, 1, 2)))]
    form = choices.one(FORMS)
    files = written(name, ways, form, called=choices.chance(50))
    return Program(files, (f"situation {name}", *(f"way {way}" for way in ways), f"form {form}"), tuple(choices.made))


def written(situation: str, ways: Sequence[str], form: str = "in line", *, called: bool = False) -> dict[str, str]:
    """The files of a situation whose values go all the ``ways``; ``called``: it runs in a function."""
    carriers: list[str] = []

    def carried(mark: re.Match[str]) -> str:
        margin, new, value = mark.groups()
        lines = []
        for place, way in enumerate(ways, 1):
            target = new if place == len(ways) else f"{new}_{place}"
            lines.append(indent(_put(way, form, value, target, carriers), margin))
            value = target
        return "\n".join(lines)

    top, code = (_MARK.sub(carried, part) for part in SITUATIONS[situation])
    if called:
        code = f"def main():\n{indent(code, '    ')}\n\n\nmain()"
    heads, files = carriers, {}
    if form == "another file":
        names = re.findall(r"^def (carry\d+)", "\n".join(carriers), re.M)
        files["carriers.py"] = "\n\n".join((IMPORTS, *carriers)) + "\n"
        heads = [f"from carriers import {', '.join(names)}"] if names else []
    return {"main.py": "\n\n".join((IMPORTS, *heads, top, code)) + "\n", **files}


def _put(way: str, form: str, value: str, target: str, carriers: list[str]) -> str:
    """The statement that sends ``value`` a way to ``target``; what it needs beside it is added to ``carriers``."""
    number = str(len(carriers) + 1)
    top, code = (_NUMBERED.sub(rf"\g<1>{number}", part) for part in WAYS[way])
    if form == "in line":
        carriers.append(top)
        return _between(code, value, target)
    whole, call = (
        (_METHOD, f"Carrier{number}({value}).carried()") if form == "method" else (_FUNCTION, f"carry{number}({value})")
    )
    reached = f"value = self.value\n{code}" if form == "method" else code
    body = indent(_between(reached, "value", "carried"), "        " if form == "method" else "    ")
    carriers.append(f"{top}\n\n\n{whole.replace('OUT', 'carried').format(n=number, code=body)}")
    return f"{target} = {call}"


def _between(code: str, value: str, target: str) -> str:
    return re.sub(r"\bIN\b", value, re.sub(r"\bOUT\b", target, code))
