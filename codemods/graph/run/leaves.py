"""The parameters of modules: which there are, what an optimizer was given, which of them are frozen."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from codemods.graph.model.cells import Key
from codemods.graph.model.kinds import Marked, NodeKind
from codemods.graph.model.nodes import Node, Owned, Value
from codemods.graph.model.state import FROZEN
from codemods.graph.model.values import (
    Const,
    Instance,
    Join,
    Mapping,
    Module,
    Optimizer,
    Parameters,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.run.contents import Contents


class Found(NamedTuple):
    """The leaves under an owner, good for states of one version; ``cells`` with what they held led to them, and so did
    the ``names`` under which their owners held anything, of which there only come more."""

    owner: Value
    version: int
    cells: dict[Key, Any]
    names: int
    leaves: tuple[Node, ...]


class Leaves(Contents):
    """The part of the engine that knows the parameters of modules."""

    def __init__(self, budget: int = 150_000) -> None:
        super().__init__(budget)
        self.found_leaves: dict[tuple[int, bool], Found] = {}
        """What was found last, by the identity of the owner, and whether frozen parameters count."""
        self.noted_in: dict[Key, Any] | None = None
        """The reads among which cells of parameters were noted last."""
        self.noted: dict[tuple[int, bool], Iterable[Key]] = {}
        """Those cells, by what :attr:`found_leaves` has them under."""

    def parameter_leaves(self, owner: Value) -> list[Node]:
        """The leaves of all trainable parameters of a module, through its children."""
        return list(self._found(owner, trainable=True))

    def _found(self, owner: Value, *, trainable: bool) -> tuple[Node, ...]:
        """The leaves in a module, all or those that are not frozen, remembered for as long as none of it changes.

        They are asked for wherever a program reads a name that holds parameters, and a large model has hundreds.
        """
        state = self.s
        key = (id(owner), trainable)
        known = self.found_leaves.get(key)
        if known is None or known.version != state.version:
            if known is None or not self._holds(known):
                outer, state.reads = state.reads, {}
                leaves = tuple((self._trainable if trainable else self._all_leaves)(owner, set()))
                cells, state.reads = state.reads, outer
                # kept with its owner: an identity is free again when what it was of is gone
                known = Found(owner, 0, cells, self._names_of(cells), leaves)
            state.watch(dict.fromkeys(oid for oid, _ in known.cells))
            known = self.found_leaves[key] = known._replace(version=state.version)
        if state.reads is not None:
            self._note_read(key, known.cells, state.reads)
        return known.leaves

    def _note_read(self, key: tuple[int, bool], cells: Iterable[Key], reads: dict[Key, Any]) -> None:
        """Note that ``cells`` are read, unless they were noted among the same ``reads`` a moment ago."""
        if self.noted_in is not reads:
            self.noted_in, self.noted = reads, {}
        if self.noted.get(key) is not cells:
            self.noted[key] = cells
            reads |= {cell: self.s.peek(cell) for cell in cells if cell not in reads}

    def _holds(self, known: Found) -> bool:
        """Whether all that led to some leaves is as it was."""
        return self._names_of(known.cells) == known.names and self.s.holds(known.cells)

    def _names_of(self, cells: Iterable[Key]) -> int:
        return sum(len(self.attributes.get(oid, ())) for oid in {oid for oid, _ in cells})

    def _trainable(self, owner: Value, seen: set[int]) -> list[Node]:
        leaves: list[Node] = []
        if isinstance(owner, Join):
            return [leaf for option in owner.options for leaf in self._trainable(option, seen)]
        if isinstance(owner, Tensor):
            return [owner.node] if owner.node is not None and owner.node.leaf and not self.frozen(owner.node) else []
        if isinstance(owner, Unknown):
            return self._trainable(owner.module, seen) if owner.module is not None else []
        if isinstance(owner, (Sequence, Mapping, Tuple)):
            return [leaf for item in self.elements(owner) for leaf in self._trainable(item, seen)]
        if not isinstance(owner, (Module, Instance)) or owner.oid in seen:
            return leaves
        seen.add(owner.oid)
        if isinstance(owner, Instance) and not owner.cls.is_module:
            return leaves
        if owner.leaf is not None and not self.frozen(owner.leaf):
            leaves.append(owner.leaf)
        for child in self.children_of(owner):
            leaves += self._trainable(child, seen)
        return leaves

    def _all_leaves(self, owner: Value, seen: set[int]) -> Iterator[Node]:
        if isinstance(owner, Join):
            for option in owner.options:
                yield from self._all_leaves(option, seen)
        elif isinstance(owner, Tensor):
            if owner.node is not None and owner.node.leaf:
                yield owner.node
        elif isinstance(owner, (Sequence, Mapping, Tuple)):
            for item in self.elements(owner):
                yield from self._all_leaves(item, seen)
        elif isinstance(owner, Unknown):
            if owner.module is not None:
                yield from self._all_leaves(owner.module, seen)
        elif isinstance(owner, (Module, Instance)) and owner.oid not in seen:
            seen.add(owner.oid)
            if owner.leaf is not None:
                yield owner.leaf
            for child in self.children_of(owner):
                yield from self._all_leaves(child, seen)

    def owned(self, value: Value | None) -> Owned:
        """The parameters in what an optimizer was given, or in a module."""
        if isinstance(value, Optimizer):
            return value.owned or Owned((), False, True)
        if isinstance(value, Parameters):
            leaves = self._registered(value.owner)
            return Owned(leaves, not value.element, not leaves)
        if isinstance(value, Tensor):
            if value.node is None:
                return Owned((), True, False)
            if value.node.leaf:
                return Owned((value.node,), True, False)
            leaves = tuple(n for n in value.node.ancestors() if n.leaf)
            return Owned(leaves, False, value.node.kind is not NodeKind.PHI)
        if isinstance(value, (Module, Instance)) or (isinstance(value, Unknown) and value.module is not None):
            return Owned(self._registered(value), True, False)
        if isinstance(value, Mapping):
            value = self.s.get((value.oid, ("key", "params")))
            return self.owned(value) if isinstance(value, Value) else Owned((), False, True)
        if isinstance(value, (Sequence, Tuple, Join)):
            parts = [self.owned(v) for v in (value.options if isinstance(value, Join) else self.elements(value))]
            leaves = tuple(dict.fromkeys(leaf for part in parts for leaf in part.leaves))
            # a generator's values are only known as far as they were followed
            exact = all(part.exact for part in parts) and getattr(value, "kind", "") != "generator"
            if isinstance(value, Join):
                exact = exact and all(set(part.leaves) == set(leaves) for part in parts)
            return Owned(leaves, exact, not parts or any(part.more for part in parts))
        return Owned((), isinstance(value, (Const, Plain)), not isinstance(value, (Const, Plain)))

    def _registered(self, module: Value) -> tuple[Node, ...]:
        """The leaves of a module's parameters: a tensor on it that only asks for gradients is none of them."""
        return tuple(leaf for leaf in self._found(module, trainable=False) if leaf.label != "input")

    def mark_owned(self, kind: Marked, node: ast.AST, value: Value | None) -> None:
        """The same for all parameters that ``value`` (a module, an optimizer, parameters) stands for."""
        owned = self.owned(value)
        self.mark(kind, node, None if owned.more else owned.leaves, exact=owned.exact, by=value)

    def frozen(self, leaf: Node) -> bool:
        """Whether ``requires_grad = False`` was set on what the leaf stands for."""
        return self.s.get((-leaf.birth, FROZEN)) is True

    def freeze(self, owner: Value, frozen: bool | None) -> None:
        """Set ``requires_grad`` of all parameters of ``owner``; None where it cannot be seen which way."""
        value = {True: True, False: False, None: "maybe"}[frozen]
        for leaf in self._all_leaves(owner, set()):
            self.s.set((-leaf.birth, FROZEN), value)

    def holder(self, tensor: ast.expr) -> Module | None:
        """The module one of whose parameters ``tensor`` is written as: ``layer.weight``."""
        found = self.values.get(tensor.value) if isinstance(tensor, ast.Attribute) else None
        if isinstance(found, Unknown):
            found = found.module
        if not isinstance(tensor, ast.Attribute) or not isinstance(found, Module) or found.leaf is None:
            return None
        return None if isinstance(self.s.get((found.oid, tensor.attr)), Value) else found

    def thawed(self, tensor: ast.expr) -> bool:
        """Whether ``tensor`` is a parameter of a module that was frozen: asked for gradients, it learns again."""
        holder = self.holder(tensor)
        if holder is not None:
            self.freeze(holder, False)
        return holder is not None
