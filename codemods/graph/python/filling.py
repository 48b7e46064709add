"""Containers are filled, copied and looked through as a whole."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import (
    TEXT,
    Const,
    Mapping,
    Namespace,
    Plain,
    Sequence,
    Tuple,
    Unknown,
)
from codemods.graph.python.items import Items
from codemods.graph.run.contents import KEYS, REST


class Filling(Items):
    """The part of the engine that fills containers."""

    def ordered_by(self, args: Arguments, values: list[Value], at: ast.AST) -> None:
        """The key function of ``sort``, ``sorted``, ``min`` and ``max`` gets each of the values."""
        key = args.keywords.get("key")
        for value in values if key is not None and not self.run.is_none(key) else ():
            assert key is not None
            self.call_value(key, Arguments(None, [value]), at)

    def turns_of(self, value: Value, at: ast.AST) -> list[Value]:
        """What goes into a container that is filled from ``value``, whose elements are unknown."""
        if isinstance(value, (Tuple, Sequence, Mapping, Const, Plain)):
            return []
        if isinstance(value, Unknown) and not (value.node is not None or value.shadow or self.run.held_in([value])):
            return []
        return self.iterate(value, at)

    def make_mapping(self, args: Arguments, at: ast.AST) -> Mapping:
        """``dict(...)``."""
        made = self.run.new_mapping()
        for value in (*args.positional, *args.more):
            self.fill_mapping(made, value, at)
        for key, value in args.keywords.items():
            self.torch.put_item(made, Const(key), value)
        return made

    def fill_mapping(self, mapping: Mapping, value: Value, at: ast.AST) -> None:
        """``mapping.update(value)``: a dict, pairs, or something that cannot be seen."""
        run = self.run
        for option in run.options(value):
            source = run.contained(option) or option
            if isinstance(source, Mapping):
                for key in run.mapping_keys(source):
                    found = run.s.get((source.oid, key))
                    if isinstance(found, Value):
                        self.torch.put_item(mapping, Const(key[1]) if isinstance(key, tuple) else TEXT, found)
            elif isinstance(source, Namespace):
                for name, held in self.named_in(source).items():
                    self.torch.put_item(mapping, Const(name), held)
                if isinstance(source.of, Unknown):
                    self.torch.put_item(mapping, TEXT, run.taken(at, source.of))
            elif isinstance(source, (Const, Plain)):
                continue
            elif isinstance(source, (Sequence, Tuple)):
                for pair in run.elements(source):
                    if isinstance(pair, Tuple) and len(pair.items) == 2:
                        self.torch.put_item(mapping, *pair.items)
                    else:
                        self.torch.put_item(mapping, TEXT, run.taken(at, pair))
            else:
                self.torch.put_item(mapping, TEXT, run.taken(at, source))

    def mapping_view(self, container: Mapping, name: str) -> Value:
        """``keys``, ``values``, ``items`` or a ``copy`` of a dict."""
        run = self.run
        if name == "copy":
            made = run.new_mapping()
            for key in run.mapping_keys(container):
                value = run.s.get((container.oid, key))
                if value is not None:
                    run.s.set((made.oid, key), value)
                    if key != REST:
                        run.attributes[made.oid][key] = None
            return made
        found: list[Value] = []
        rest: Value | None = None
        any_key = run.s.get((container.oid, REST))
        for key in run.mapping_keys(container):
            value = run.s.get((container.oid, key))
            if value is None:
                continue
            if isinstance(any_key, Value) and value is not any_key:
                value = run.join(value, any_key)
            label: Value = Const(key[1]) if isinstance(key, tuple) else run.s.get((container.oid, KEYS)) or TEXT
            shown = {"values": value, "keys": label, "items": Tuple((label, value))}[name]
            if isinstance(key, tuple):
                found.append(shown)
            else:
                # under keys that are not known there may be many
                rest = shown
        return run.new_sequence(found, rest)
