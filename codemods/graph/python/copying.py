"""``copy.copy`` and ``copy.deepcopy``: another object; a deep copy has parameters of its own."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property
from typing import Any

from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.modules import Modules
from codemods.graph.model.nodes import Node, Value
from codemods.graph.model.state import FROZEN, by_owner
from codemods.graph.model.values import (
    Instance,
    Join,
    Mapping,
    Method,
    Module,
    Parameters,
    Partial,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.run.contents import ANY
from codemods.graph.run.run import Run
from codemods.terms.words import words

_COPYING = words("__getstate__ __setstate__ __reduce__ __reduce_ex__ __copy__ __deepcopy__")
"""Methods that say what a copy holds (docs: copy, pickle)."""


class Copying:
    """One call of ``copy.deepcopy``, or of ``copy.copy`` where not ``deep``: what it has copied by now.

    A module's copy is frozen, thawed, trained and given attributes by itself. What a deep copy finds attached stays
    what it is: torch copies no tensor that has a history.
    """

    def __init__(self, run: Run, modules: Modules, at: ast.AST, *, deep: bool) -> None:
        self._run = run
        self._modules = modules
        self._at = at
        self._deep = deep
        self._made: dict[int, Value] = {}
        self._leaves: dict[Node, Node] = {}

    @cached_property
    def _cells(self) -> dict[int, list[Hashable]]:
        """What the run itself has written, by the identities that hold it."""
        return by_owner(self._run.s.cells())

    def of(self, value: Value) -> Value:
        """The copy of ``value``."""
        if isinstance(value, Join):
            return self._run.one_of([self.of(option) for option in value.options]) or value
        if isinstance(value, (Sequence, Mapping, Instance, Module)):
            return self._other(value)
        if isinstance(value, Unknown) and value.node is None:
            return self._other(value)
        return self._part(value) if self._deep else value

    def _part(self, value: Any) -> Any:
        """The copy of a value that a deep copy reaches."""
        if isinstance(value, tuple):
            return tuple(map(self._part, value))
        if isinstance(value, Tuple):
            return replace(value, items=self._part(value.items))
        if isinstance(value, Method):
            return replace(value, receiver=self.of(value.receiver))
        if isinstance(value, Partial):
            given = tuple((name, self.of(one)) for name, one in value.kwargs)
            return replace(value, args=self._part(value.args), kwargs=given)
        if isinstance(value, Parameters):
            return replace(value, owner=self.of(value.owner))
        if isinstance(value, Tensor) and value.node is not None and value.node.kind is NodeKind.LEAF:
            return Tensor(self._leaf(value.node), value.scalar, shadow=value.shadow)
        if isinstance(value, (Tensor, Unknown)) and value.node is not None:
            self._run.refused(value, self._at)
            return value
        if isinstance(value, (Join, Sequence, Mapping, Instance, Module, Unknown)):
            return self.of(value)
        return value

    def _other(self, value: Sequence | Mapping | Instance | Module | Unknown) -> Value:
        """An object of the same kind that holds the same, or copies of it."""
        if value.oid in self._made:
            return self._made[value.oid]
        run, oid = self._run, self._run.new_oid()
        made = replace(value, oid=oid)
        self._made[value.oid] = made
        if isinstance(made, (Instance, Module)) and made.leaf is not None and self._deep:
            made = replace(made, leaf=self._leaf(made.leaf))
            self._made[value.oid] = made
        if isinstance(made, Unknown):
            made.members = {}
            made.module = None if made.module is None else self.of(made.module)  # type: ignore[assignment]
        if value.oid in run.born:
            run.born[oid] = run.tick()
        if value.oid in run.attributes:
            run.attributes[oid] = dict(run.attributes[value.oid])
        for identities in (run.instances, run.displaced, run.bars, run.uncounted, run.repeated):
            if value.oid in identities:
                identities.add(oid)
        for key in dict.fromkeys([*self._modules.names(value.oid), *self._cells.get(value.oid, ())]):
            held = run.s.get((value.oid, key))
            if held is not None:
                run.s.set((oid, key), self._part(held) if self._deep else held)
        if isinstance(made, Instance) and any(made.cls.find(method) is not None for method in _COPYING):
            # what the copy has is what these say
            run.s.set((oid, ANY), run.unknown("copied", data=True))
        if isinstance(made, (Instance, Module)):
            leaf = made.leaf
            run.hooks += [replace(hook, oid=oid, leaf=leaf) for hook in run.hooks if hook.oid == value.oid]
        return made

    def _leaf(self, leaf: Node) -> Node:
        """The copy of a parameter, as frozen as it is."""
        if leaf not in self._leaves:
            run = self._run
            made = run.leaf(self._at, leaf.label)
            made.scalar, made.dimensionless = leaf.scalar, leaf.dimensionless
            frozen = run.s.get((-leaf.birth, FROZEN))
            if frozen is not None:
                run.s.set((-made.birth, FROZEN), frozen)
            if leaf in run.renewed:
                run.renewed.add(made)
            self._leaves[leaf] = made
        return self._leaves[leaf]
