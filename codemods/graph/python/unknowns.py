"""Methods of unseen objects: what the method's name, its arguments and a public origin say."""

from __future__ import annotations

import ast

from codemods.graph.libraries.table import METHODS
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cutting import FRESH, INTEGERS, OF_TENSORS, PLAIN
from codemods.graph.model.facts.gradients import DETACHING
from codemods.graph.model.facts.layers import PACKING
from codemods.graph.model.facts.libraries import ARRAY_ESTIMATORS, NO_ARRAY_ESTIMATORS, is_logging
from codemods.graph.model.facts.operations import KEEPS_SHAPE
from codemods.graph.model.facts.python import EXIT_STACKS
from codemods.graph.model.kinds import Escape, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import ARRAY, NUMBER, Tensor, Unknown
from codemods.graph.python.builtin_calls import BuiltinCalls
from codemods.graph.python.unseen import methods
from codemods.graph.python.unseen.methods import OF_GRAPHLESS, OF_UNSEEN

_OF_TENSORS = DETACHING | PLAIN["Tensor"] | FRESH["Tensor"] | INTEGERS["Tensor"]
"""Methods that cut a graph and that no distribution has (ran: torch 2.13)."""

_MADE_OF_OTHERS = frozenset({
    "Independent", "MixtureSameFamily", "TransformedDistribution", "CatTransform", "ComposeTransform",
    "IndependentTransform", "StackTransform",
})  # fmt: skip
"""The distributions and transforms that take other distributions and transforms (docs: torch.distributions)."""


class Unknowns(BuiltinCalls):
    """The part of the engine that calls methods of unseen objects."""

    def unknown_method(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method call on something that cannot be seen."""
        if name in ("enter_context", "enter_async_context") and args.positional:
            return methods.enter_context(self, receiver, args.positional[0], at)
        if receiver.path in EXIT_STACKS and name in ("close", "aclose", "pop_all", "__exit__", "__aexit__"):
            self.run.leave_all(receiver)
        stored = self.run.s.get((receiver.oid, name))
        if isinstance(stored, Value):
            return self.call_value(stored, args, at)
        if receiver.module is not None:
            return methods.method_of_module(self, receiver, receiver.module, name, args, at)
        taught = METHODS.get(f"{receiver.path}.{name}") if receiver.public else None
        found = taught(self.torch, receiver, name, args, at) if taught is not None else None
        handler = OF_UNSEEN.get(name)
        if found is None and handler is not None:
            found = handler(self, receiver, name, args, at)
        if found is None and receiver.public:
            found = self._method_of_public(receiver, name, args, at)
        if found is not None:
            return found
        if receiver.node is not None and name in OF_TENSORS:
            return self._opaque_tensor_method(receiver, name, args, at)
        handler = OF_GRAPHLESS.get(name)
        found = handler(self, receiver, name, args, at) if handler is not None else None
        return found if found is not None else self._unlisted_method(receiver, name, args, at)

    def _method_of_public(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
        """A method of something that came from a library; None where nothing is known of that."""
        if self.answers(receiver.path):
            self.run.escape_all(args.all(), Escape.STORED_ANYWHERE)
        if is_logging(f"{receiver.path}."):
            for value in args.all():
                self.run.use(value, UseKind.CALL, at, f"{receiver.path}.{name}")
            self.run.run_callbacks(args, at)
            return self.run.unknown(f"{receiver.path}.{name}", public=True)
        if receiver.path.startswith("torch.distributions."):
            drawn = self.drawn_from(receiver, name, at)
            if drawn is not None:
                return drawn
            # only tensors have such methods: what a distribution gave
            if name not in _OF_TENSORS and (receiver.node is not None or not _made_of_others(receiver.path)):
                return self.run.opaque(at, f"{receiver.path}.{name}", [receiver, *args.all()], public=True)
        if receiver.path.startswith(ARRAY_ESTIMATORS) and receiver.path not in NO_ARRAY_ESTIMATORS:
            return self._of_estimator(receiver, name, args, at)
        if receiver.path in PACKING and name in KEEPS_SHAPE | {"pin_memory"}:
            return receiver
        return None

    def _of_estimator(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        for value in args.all():
            self.run.use(value, UseKind.CALL, at, f"{receiver.path}.{name}")
            self.run.refused(value, at)
        self.run.run_callbacks(args, at)
        # fit() returns the estimator
        return receiver if name in ("fit", "partial_fit") else self.run.unknown(f"{receiver.path}.{name}", data=True)

    def drawn_from(self, receiver: Value, name: str, at: ast.AST) -> Value | None:
        """What a method of a distribution gives without a graph: a sample, a size; None of the other methods."""
        if name not in FRESH["Distribution"] and name not in PLAIN["Distribution"]:
            return None
        self.run.use(receiver, UseKind.METHOD, at, name)
        return Tensor(None) if name in FRESH["Distribution"] else NUMBER

    def _opaque_tensor_method(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        if name in ("item", "numpy", "tolist", "size", "dim", "numel", "stride", "nelement"):
            if name == "numpy":
                self.run.refused(receiver, at)
            self.run.use(receiver, UseKind.METHOD, at, name)
            return ARRAY if name in ("numpy", "tolist") else NUMBER
        return self.torch.tensor_method(receiver, name, args, at)

    def _unlisted_method(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method that may do anything with its arguments."""
        run = self.run
        results = run.run_callbacks(args, at, receiver)
        given = [*args.all(), receiver, *results]
        made = run.opaque(at, f"{receiver.origin}.{name}", given, public=receiver.public)
        run.may_be_put(args, made, at)
        if run.brings_model(args.all()):
            run.give_model(receiver)
        self.may_put_away(receiver, args, at)
        if receiver.data:
            made.data = made.node is None
            return made
        return run.unseen_call(made, name)

    def may_put_away(self, receiver: Unknown, args: Arguments, at: ast.AST) -> None:
        """A call of something, or of its method, of whose result nothing is made did something with what it got: it may
        keep that."""
        if not self.run.frame.file.is_statement(at):
            return
        self.run.put_away(receiver, args.all())


def _made_of_others(path: str) -> bool:
    """Whether what a public path of ``torch.distributions`` names computes with what it is made of, which may be of a
    class of the tree."""
    return path.rpartition(".")[2] in _MADE_OF_OTHERS
