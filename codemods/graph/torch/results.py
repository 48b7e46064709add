"""What comes out of operations on tensors: fresh tensors, several of them, numbers."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cutting import PARTS, SOMETIMES
from codemods.graph.model.facts.operations import HANDING_ON, REDUCTIONS
from codemods.graph.model.kinds import Marked, NodeKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import NUMBER, Const, Plain, Tensor, Tuple, Unknown
from codemods.graph.torch.backward import Backward

_LEAVING_NONE = REDUCTIONS | {"max", "min", "median"}


class Results(Backward):
    """The part of the engine that makes what torch gives."""

    def elements_of(
        self, path: str, inputs: list[Value], others: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value | None:
        """What a function gives that may give several, some of them cut; None if it gives one.

        ``others`` are the positional arguments after the first tensor.
        """
        parts = PARTS.get(path)
        gives = self.gives_several(path, others, keywords) if parts is not None else False
        if parts is None or gives is False:
            return None
        if gives is None:
            return self.run.opaque(at, path if path.startswith("torch.") else f"torch.{path}", inputs, public=True)
        name = path.rpartition(".")[2]
        made = self.run.tensor_op(at, name, inputs)
        if made.node is None:
            # what is cut forgets where it comes from: the reading is noted here
            for value in inputs:
                self.run.use(value, UseKind.METHOD, at, name)
        cut = {"": made, "i": self.run.index_of(inputs), "f": Tensor(None), "p": NUMBER}
        names = tuple(part for part, _ in parts if part.isidentifier())
        return Tuple(tuple(cut[sort] if sort else replace(made) for _, sort in parts), names)

    def gives_several(self, path: str, others: list[Value], keywords: dict[str, Value]) -> bool | None:
        """Whether it gives several, by what stands after the first tensor; None where that cannot be seen."""
        parts = PARTS.get(path)
        if parts is None:
            return False
        if path not in SOMETIMES:
            return True
        if parts[0][0] == "values":
            second = others[0] if others else keywords.get("dim")
            if second is None:
                return False
            if all(isinstance(option, (Const, Plain)) for option in self.run.options(second)):
                return True
            return False if isinstance(second, Tensor) else None
        flags = [
            self.run.truth(keywords[k]) for k in ("return_indices", "return_inverse", "return_counts") if k in keywords
        ]
        if None in flags:
            return None
        return flags.count(True) == len(parts) - 1

    def is_reduced(self, args: Arguments) -> bool:
        """Whether a loss gives one number, by its ``reduction`` and ``reduce``."""
        reduction = args.keywords.get("reduction")
        reduce = args.keywords.get("reduce")
        if reduce is not None and self.run.truth(reduce) is not True:
            return False
        return reduction is None or (isinstance(reduction, Const) and reduction.value in ("mean", "sum", "batchmean"))

    def fresh_tensor(self, args: Arguments, at: ast.AST, *, index: bool = False, scalar: bool = False) -> Tensor:
        """What a factory makes: no history, a leaf if it asks for gradients."""
        asks = args.keywords.get("requires_grad")
        if asks is not None and self.run.truth(asks) is not False:
            self.run.mark(Marked.REQUIRES_GRAD, at)
            return Tensor(self.run.leaf(at, "input"), scalar)
        return Tensor(None, scalar, index=index)

    def handed_on(self, name: str, args: Arguments, at: ast.AST) -> Value | None:
        """What a constructor makes of its only argument where that may be a tensor: an alias with its history."""
        if name not in HANDING_ON or len(args.positional) != 1 or args.keywords or args.more:
            return None
        given = args.positional[0]
        tensors = [o for o in self.run.options(given) if isinstance(o, (Tensor, Unknown))]
        if not tensors:
            self.run.use(given, UseKind.DETACH, at)
            return None
        made = self.run.tensor_op(at, name, [given], saves=False, scalar=self.run.is_scalar(given))
        if isinstance(given, Tensor):
            return replace(made, index=given.index, aliases=given.aliases)
        return made

    def opaque_tensor(self, at: ast.AST, label: str, args: Arguments) -> Value:
        """A helper of torch whose result is attached exactly if an argument is, in a shape that is not followed."""
        nodes = [n for v in args.all() for n in self.run.nodes_of(v)]
        node = self.run.node(at, NodeKind.OP, nodes, saves=False, label=label)
        made = self.run.unknown(label, node, public="." in label)
        made.shadow = self.run.shadow_of(args.all())
        if node is not None:
            node.shadow = made.shadow
        return made

    def drops_all(self, name: str, args: Arguments) -> bool:
        """Whether a reduction without a dimension leaves none."""
        return name in _LEAVING_NONE and "keepdim" not in args.keywords

    @staticmethod
    def reduces(name: str, args: Arguments, *, start: int) -> bool:
        """Whether a reduction is given no dimension; its other arguments begin at ``start``."""
        if "dim" in args.keywords or "axis" in args.keywords or args.more:
            return False
        given = len(args.positional) - start
        return given == 0 or (name in ("norm", "dist") and given == 1)
