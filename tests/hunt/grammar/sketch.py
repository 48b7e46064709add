"""A program in the making: what fragments add to, and what they may name.

A fragment never writes where a thing lives. It asks for a shared name (:meth:`Sketch.share`) or a helper
(:meth:`Sketch.helper`) and gets the expression that stands for it: a local, an attribute, an item, a method, a call
into another file. So each fragment meets each of these forms.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent, indent

from tests.hunt.choices import Choices

SLOTS = ("epoch_start", "turn_start", "forward", "update", "turn_end", "epoch_end", "finish")
"""Where statements go, in the order in which they run. ``forward`` ends with the loss made, ``update`` has stepped."""

SKIP = "__skip__"
"""Stands for the statement that goes on with the next batch, whatever that is in the layout."""


@dataclass
class Sketch:
    """What has been written so far. ``layout`` says in which functions the slots will stand."""

    choices: Choices
    layout: str
    imports: dict[str, None] = field(default_factory=dict)
    definitions: list[str] = field(default_factory=list)
    modules: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    setup: list[str] = field(default_factory=list)
    slots: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    methods: list[str] = field(default_factory=list)
    plain: set[str] = field(default_factory=set)
    features: list[str] = field(default_factory=list)
    epochs: int = 2
    batches: int = 2
    model: str = ""
    """The expression for the module that the task trains; see ``forward``."""
    optimizer: str = ""
    any_batch: bool = True
    """Whether the model takes batches of one."""
    forward: Callable[[str], str] = str
    """From an expression for inputs to one for the model's plain output (a matrix of 4 x 2)."""
    _number: int = 0
    _homes: dict[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """What a shared name is read from: nothing, or ``self.``."""
        return "self." if self.layout == "trainer" else ""

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        self._number += 1
        return f"{stem}{self._number}"

    def need(self, *lines: str) -> None:
        """Import something in every file."""
        self.imports.update(dict.fromkeys(lines))

    def define(self, text: str, module: str | None = None) -> None:
        """Add a class or function at the top level of the main file, or of another ``module``."""
        text = dedent(text).strip("\n")
        home = self.definitions if module is None else self.modules[module]
        if text not in home:
            home.append(text)

    def add(self, slot: str, text: str) -> None:
        """Add statements to ``slot``."""
        self.slots[slot].append(dedent(text).strip("\n"))

    def prepare(self, text: str) -> None:
        """Add statements that run once, before the loops."""
        self.setup.append(dedent(text).strip("\n"))

    def share(self, stem: str, value: str, *, held: bool = False) -> str:
        """Make a thing before the loops that all slots can read and rebind; returns the expression for it.

        With ``held`` it may live inside something else: a dict, a namespace, a dataclass, a list.
        """
        name = self.fresh(stem)
        place = self._held(name) if held and self.choices.chance(40) else self._plain(name)
        self.prepare(f"{place} = {value}")
        return place

    def _plain(self, name: str) -> str:
        if not self.prefix:
            self.plain.add(name)
        return self.prefix + name

    def _held(self, name: str) -> str:
        kind = self.choices.one(tuple(kind for kind in HOMES if self.model or kind != "model"))
        self.features.append(f"home {kind}")
        made, form = HOMES[kind](self)
        if made is not None and kind not in self._homes:
            holder = self._plain(self.fresh("held"))
            self.prepare(f"{holder} = {made}")
            self._homes[kind] = holder
        holder = self._homes.get(kind, "")
        if kind == "cell":
            holder = self._plain(self.fresh("cell"))
            self.prepare(f"{holder} = [None]")
        return form.format(holder=holder, name=name, model=self.model)

    def helper(self, stem: str, arguments: Mapping[str, str], body: str) -> str:
        """Put ``body`` (which returns) into a function of ``arguments``' names; returns the call with their values."""
        kind = self.choices.one(HELPERS)
        name = self.fresh(stem)
        names, values = ", ".join(arguments), ", ".join(arguments.values())
        body = dedent(body).strip("\n")
        self.features.append(f"helper {kind}")
        text = f"def {name}({names}):\n{indent(body, '    ')}"
        if kind == "module":
            self.define(text, "helpers")
            self.need("import helpers")
            return f"helpers.{name}({values})"
        if kind == "from module":
            self.define(text, "pkg.tools")
            self.need(f"from pkg.tools import {name}")
            return f"{name}({values})"
        if kind == "method" and self.layout == "trainer":
            self.methods.append(f"def {name}(self, {names}):\n{indent(body, '    ')}")
            return f"self.{name}({values})"
        if kind == "static":
            holder = self.fresh("Tools")
            self.define(f"class {holder}:\n    @staticmethod\n{indent(text, '    ')}")
            return f"{holder}.{name}({values})"
        if kind == "callable object":
            holder = self.fresh("Tool")
            self.define(f"class {holder}:\n    def __call__(self, {names}):\n{indent(body, '        ')}")
            return f"{holder}()({values})"
        if kind == "decorated":
            self.need("import functools")
            self.define(TRACED)
            self.define(f"@traced\n{text}")
            return f"{name}({values})"
        if kind == "registry":
            self.define(
                "REGISTRY = {}\n\n\ndef register(function):\n    REGISTRY[function.__name__] = function\n"
                "    return function"
            )
            self.define(f"@register\n{text}")
            return f'REGISTRY["{name}"]({values})'
        if kind == "partial" and arguments:
            self.need("import functools")
            self.define(text)
            first, *rest = arguments
            given = ", ".join(f"{n}={arguments[n]}" for n in rest)
            return f"functools.partial({name}{', ' if given else ''}{given})({arguments[first]})"
        if kind == "keywords":
            self.define(text)
            return f"{name}({', '.join(f'{n}={v}' for n, v in arguments.items())})"
        if kind == "star":
            self.define(
                f"def {name}(*args):\n    {names}{',' if len(arguments) == 1 else ''} = args\n{indent(body, '    ')}"
                if arguments
                else text
            )
            return f"{name}(*[{values}])"
        self.define(text)
        return f"{name}({values})"


HELPERS = (
    "function",
    "function",
    "module",
    "from module",
    "method",
    "static",
    "callable object",
    "decorated",
    "registry",
    "partial",
    "keywords",
    "star",
)

TRACED = """
def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper
"""

Home = tuple[str | None, str]


def _class(sketch: Sketch, head: str, text: str, *imports: str) -> str:
    sketch.need(*imports)
    sketch.define(text)
    return head


HOMES: dict[str, Callable[[Sketch], Home]] = {
    "dict": lambda s: ("{}", '{holder}["{name}"]'),
    "cell": lambda s: (None, "{holder}[0]"),
    "namespace": lambda s: (_class(s, "types.SimpleNamespace()", "", "import types"), "{holder}.{name}"),
    "argparse": lambda s: (_class(s, "argparse.Namespace()", "", "import argparse"), "{holder}.{name}"),
    "object": lambda s: (_class(s, "State()", "class State:\n    pass"), "{holder}.{name}"),
    "class": lambda s: (None, _class(s, "Config", "class Config:\n    pass") + ".{name}"),
    "model": lambda s: (None, "{model}.{name}"),
    "default dict": lambda s: (
        _class(s, "collections.defaultdict(list)", "", "import collections"),
        '{holder}["{name}"]',
    ),
    "attribute dict": lambda s: (_class(s, "Attributes()", ATTRIBUTES), "{holder}.{name}"),
    "slots by property": lambda s: (_class(s, "Proxy()", PROXY), "{holder}.{name}"),
    "nested dict": lambda s: ('{"inner": {}}', '{holder}["inner"]["{name}"]'),
    "keyed by number": lambda s: ("{}", '{holder}[len("{name}")]'),
}

ATTRIBUTES = """
class Attributes(dict):
    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value
"""

PROXY = """
class Proxy:
    def __init__(self):
        object.__setattr__(self, "_values", {})

    def __getattr__(self, name):
        return self._values[name]

    def __setattr__(self, name, value):
        self._values[name] = value
"""


def names_in(text: str) -> tuple[set[str], set[str]]:
    """The names that statements read, and those that they bind."""
    tree = ast.parse(dedent(re.sub(rf"\b{SKIP}\b", "pass", text)))
    read, bound = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            if not isinstance(node.ctx, ast.Load):
                read.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
    return read, bound
