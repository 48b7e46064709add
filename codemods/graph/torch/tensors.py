"""Tensors: their attributes and methods, and the functions of ``torch`` and ``torch.nn.functional``.

What each does to the graph stands in the tables of :mod:`codemods.graph.model.facts`; what ends a graph, in
:mod:`codemods.graph.model.cutting`. Whatever stands in neither carries on what goes in.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cutting import FRESH, INTEGERS
from codemods.graph.model.facts.memory import IN_PLACE_OPERATORS, INPLACE_AT, MAY_SHARE, OVERWRITES, VIEWS
from codemods.graph.model.facts.operations import (
    ELEMENTWISE,
    KEEPS_SHAPE,
    LIKE_ANOTHER,
    OF_SIZES,
    PLAIN_METHODS,
    REDUCE_AT,
    REDUCTIONS,
    SCALAR_FUNCTIONS,
    WITH_INDICES,
)
from codemods.graph.model.facts.saved import SAVES_NOTHING
from codemods.graph.model.kinds import AliasForm, Altered, Escape, Marked, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import NUMBER, SHAPE, TEXT, Tensor, Tuple, Unknown
from codemods.graph.torch.operations import OF_SEVERAL, OF_TENSORS, OF_TORCH
from codemods.graph.torch.operations.methods import is_one
from codemods.graph.torch.results import Results

_SCALAR_OF_SCALARS = frozenset({
    "abs", "sqrt", "exp", "log", "neg", "clamp", "relu", "sigmoid", "tanh", "square", "pow", "mul", "add", "sub", "div",
})  # fmt: skip
"""Functions of torch that make one number of numbers."""


_REDUCING = REDUCTIONS | WITH_INDICES

_OTHER_SIZES = frozenset({"expand", "repeat", "unsqueeze", "view", "reshape", "unbind"})
"""Methods whose result may have another size, or another number of dimensions."""


class Tensors(Results):
    """The part of the engine that knows what torch does with tensors."""

    # attributes and methods

    def tensor_attribute(self, tensor: Tensor | Unknown, name: str, at: ast.AST) -> Value | None:
        """An attribute of a tensor, None if tensors have none of that name."""
        run = self.run
        if name == "data":
            if isinstance(tensor, Tensor):
                run.use(tensor, UseKind.DATA, at)
                made = run.detached(
                    tensor, scalar=tensor.scalar or bool(tensor.node and tensor.node.scalar), index=tensor.index
                )
                return run.alias(AliasForm.DATA, tensor, made, at)
            return None
        if name == "__dict__":
            run.use(tensor, UseKind.IDENTITY, at, name)
            return None
        if name == "grad":
            # nobody knows which tensor it is where it has no history: another name may have asked for gradients
            run.mark(Marked.GRADIENT_READ, at, run.nodes_of(tensor) or None)
            run.wants_gradient(tensor, at)
            return run.gradient()
        if name in ("grad_fn", "_saved_tensors"):
            run.mark(Marked.GRAPH_READ, at)
            run.use(tensor, UseKind.HISTORY_READ, at)
            run.escape(tensor, Escape.GRAPH_READ)
            return run.lost("grad_fn")
        if name in PLAIN_METHODS:
            if name in ("requires_grad", "is_leaf"):
                run.use(tensor, UseKind.HISTORY_READ, at)
            if name == "requires_grad":
                run.mark(Marked.REQUIRES_GRAD_READ, at, run.nodes_of(tensor))
            elif name == "is_leaf":
                run.mark(Marked.IS_LEAF_READ, at, run.nodes_of(tensor))
            return SHAPE if name == "shape" else NUMBER
        if name in ("T", "mT", "H", "mH", "real", "imag"):
            return run.sharing(tensor, run.tensor_op(at, name, [tensor], saves=False))
        return None

    def tensor_method(self, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method call on a tensor."""
        handler = OF_TENSORS.get(name)
        if handler is not None:
            return handler(self, tensor, name, args, at)
        if name in ("__str__", "__repr__"):
            self.run.use(tensor, UseKind.FORMAT, at)
            return self.run.text_of(TEXT, tensor)
        if name == "__setitem__" or name.strip("_") in IN_PLACE_OPERATORS:
            self.run.write(tensor, args.all(), at)
        inputs = [tensor]
        if name in LIKE_ANOTHER or name in OF_SIZES:
            for value in args.all():
                self.run.use(value, UseKind.METHOD, at, name)
        else:
            inputs += args.all()
        several = self.elements_of(f"Tensor.{name}", inputs, args.positional, args.keywords, at)
        return several if several is not None else self._computed(tensor, name, inputs, args, at)

    def _computed(self, tensor: Value, name: str, inputs: list[Value], args: Arguments, at: ast.AST) -> Value:
        """What a method computes that gives one tensor, by the tables of facts."""
        scalar = is_one(tensor)
        reduces = name in _REDUCING and self.reduces(name, args, start=0)
        base = name[:-1] if name.endswith("_") and not name.startswith("_") else name
        keeps = scalar and (base in SAVES_NOTHING or not args.positional) and base not in _OTHER_SIZES
        single = scalar and base in ("view", "reshape", "unsqueeze")
        result = self.run.tensor_op(
            at,
            name,
            inputs,
            saves=base not in SAVES_NOTHING and name not in OVERWRITES,
            scalar=reduces or keeps or single,
            dimensionless=(reduces and self.drops_all(name, args))
            or (base in KEEPS_SHAPE and self.run.is_dimensionless(tensor))
            or (base in ELEMENTWISE and all(self.run.is_dimensionless(v) for v in inputs)),
        )
        if isinstance(tensor, Tensor) and tensor.aliases:
            if base in VIEWS:
                return replace(result, aliases=tensor.aliases)
            if base in MAY_SHARE:
                return self.run.may_share(tensor, result)
        return result

    # functions

    def torch_function(self, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
        """A function of ``torch`` itself, or of ``head``, a module below it."""
        handler = OF_TORCH.get(name)
        found = handler(self, head, name, args, at) if handler is not None else self._cut(head, name, args, at)
        if found is None:
            found = self.elements_of(f"{head}.{name}", args.all(), args.positional[1:], args.keywords, at)
        if found is None and (of_several := OF_SEVERAL.get(name)) is not None:
            found = of_several(self, head, name, args, at)
        return found if found is not None else self._one_result(name, args, at)

    def _cut(self, head: str, name: str, args: Arguments, at: ast.AST) -> Value | None:
        """What a function gives that ends a graph; None of others."""
        integers = name in INTEGERS.get(head, ())
        if not integers and name not in FRESH.get(head, ()):
            return None
        for value in args.all():
            self.run.use(value, UseKind.TORCH, at, name)
        return self.run.index_of(args.all()) if integers else Tensor(None)

    def _one_result(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """What a function computes that gives one tensor, by the tables of facts."""
        inputs = self._computed_from(name, args, at)
        scalar = name in REDUCTIONS and self.reduces(name, args, start=1)
        dimensionless = scalar and self.drops_all(name, args)
        if name in ELEMENTWISE:
            dimensionless = bool(args.positional) and all(self.run.is_dimensionless(v) for v in inputs)
        if name in _SCALAR_OF_SCALARS:
            scalar = bool(args.positional) and all(self.run.is_scalar(v) for v in args.positional)
        made = self.run.tensor_op(
            at, name, inputs, saves=name not in SAVES_NOTHING, scalar=scalar, dimensionless=dimensionless
        )
        return self.run.may_share(inputs[0], made) if inputs and name in MAY_SHARE else made

    def _computed_from(self, name: str, args: Arguments, at: ast.AST) -> list[Value]:
        """What of the arguments of a function may have a graph that its result is part of."""
        given = args.all()
        tensor = args.get(0, "input")
        if name not in OF_SIZES or tensor is None or args.more:
            return given
        for value in given:
            if value is not tensor:
                self.run.use(value, UseKind.TORCH, at, name)
        return [tensor]

    def functional(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """A function of ``torch.nn.functional``."""
        run = self.run
        if name in INTEGERS["torch.nn.functional"]:
            for value in args.all():
                run.use(value, UseKind.TORCH, at, name)
            return run.index_of(args.all())
        flag = args.get(INPLACE_AT.get(name, -1), "inplace")
        if args.positional and run.may_be_true(flag):
            # dropout writes only where it draws
            sure = flag is not None and run.truth(flag) is True and "dropout" not in name
            run.write(args.positional[0], args.positional[:1], at, sure=sure)
        if name in ("embedding", "embedding_bag") and len(args.positional) > 1:
            bound = args.get(3, "max_norm")
            if bound is not None and not run.is_none(bound):
                # rows that are too long are scaled in the table itself
                run.alter(args.positional[1], Altered.VALUES, at)
        scalar = name in SCALAR_FUNCTIONS and self.is_reduced(args)
        dimensionless = scalar and not args.more and len(args.positional) <= REDUCE_AT
        made = run.tensor_op(at, name, self._computed_from(name, args, at), scalar=scalar, dimensionless=dimensionless)
        if name == "multi_head_attention_forward":
            return Tuple((made, made))
        if self.gives_several(f"torch.nn.functional.{name}", args.positional[1:], args.keywords) is True:
            return Tuple((made, run.index_of(args.all())))
        return run.may_share(args.all()[0], made) if args.all() and name in MAY_SHARE else made
