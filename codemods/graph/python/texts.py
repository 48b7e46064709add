"""Texts that are run, as ``exec`` and ``eval`` get them: settings that they may write are known no more."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codemods.graph.model.cells import Key
from codemods.graph.model.nodes import Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.values import Class, Const, Imported, Instance, Join, TreeModule, is_setting
from codemods.graph.python.containers import Containers
from codemods.graph.run.contents import ITEMS

_WORD = re.compile(r"\w+")


def written_by_text(engine: Containers, text: Value | None, named: Iterable[Value]) -> None:
    """Let each setting that ``text`` may write be what it was or something else; ``named`` is what its names mean.

    Settings are numbers and texts that lie in variables of files, in attributes or in containers. Variables of
    functions stay: a text has copies of them.
    """
    run = engine.run
    words = _words(text)
    for value in named:
        _load(engine, value)
    local = {frame.fid for frame in run.trace.frames if frame.function is not None}
    cells = {key: run.s.get(key) for key in (*run.s.base, *run.s.cells()) if key[0] not in local}
    run.spent += len(cells) >> 10
    classes = dict.fromkeys(cls for held in cells.values() for option in _options(held) for cls in _classes(option))
    of_classes = {(cls.oid, name): held for cls in classes for name, held in cls.members.items()}
    for key, held in (of_classes | cells).items():
        if isinstance(held, Imported) and held.module.path in engine.modules.loaded:
            held = engine.imported(held)
        if key[1] == ITEMS and isinstance(held, tuple):
            run.s.set(key, tuple(_perhaps(engine, v) if is_setting(v) else v for v in held))
        elif isinstance(held, Value) and is_setting(held) and _names(key, words):
            run.s.set(key, _perhaps(engine, held))
            if key in of_classes:
                run.class_attributes.add(str(key[1]))


def _words(text: Value | None) -> frozenset[str] | None:
    """The words of a text; None where it may write what it does not name: it is not known, or calls something."""
    known = text.value if isinstance(text, Const) else None
    return frozenset(_WORD.findall(known)) if isinstance(known, str) and "(" not in known else None


def _names(key: Key, words: frozenset[str] | None) -> bool:
    """Whether a cell is a variable, an attribute or an element that a text of these words may write."""
    name = key[1][1] if isinstance(key[1], tuple) else key[1]
    if not isinstance(name, str):
        return isinstance(key[1], tuple)
    return name[:1] != "[" and name[:2] != "__" and (words is None or name in words)


def _load(engine: Containers, value: Value) -> None:
    """Load a module of the tree that a text may come to by a name."""
    module = value.module if isinstance(value, Imported) else value
    file = engine.importer.file(module.path) if isinstance(module, TreeModule) and module.path[-1:] != "/" else None
    if file is not None:
        engine.load_module(file)


def _classes(value: object) -> list[ClassInfo]:
    info = value.info if isinstance(value, Class) else value.cls if isinstance(value, Instance) else None
    return [] if info is None else info.mro()


def _options(held: object) -> tuple[object, ...]:
    return held.options if isinstance(held, Join) else (held,)


def _perhaps(engine: Containers, held: Value) -> Value:
    return engine.run.join(held, engine.run.unknown("text", data=True))
