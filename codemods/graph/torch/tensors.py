"""Tensors: their attributes and methods, and the functions of ``torch`` and ``torch.nn.functional``.

What each does to the graph stands in the tables of :mod:`codemods.graph.model.facts`; what ends a graph, in
:mod:`codemods.graph.model.cutting`. Whatever stands in neither carries on what goes in.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.model import facts
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cutting import FRESH, INTEGERS, PARTS, SOMETIMES
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import ARRAY, DATA, INDEX, NUMBER, Const, Plain, Tensor, Tuple, Unknown
from codemods.graph.torch.backward import Backward


class Tensors(Backward):
    """The part of the engine that knows what torch does with tensors."""

    # attributes and methods

    def tensor_attribute(self, tensor: Tensor | Unknown, name: str, at: ast.AST) -> Value | None:
        """An attribute of a tensor, None if tensors have none of that name."""
        if name == "data":
            if isinstance(tensor, Tensor):
                self.use(tensor, "data", at)
                made = self.detached(
                    tensor, scalar=tensor.scalar or bool(tensor.node and tensor.node.scalar), index=tensor.index
                )
                return self.alias("data", tensor, made, at)
            return None
        if name == "grad":
            # nobody knows which tensor it is where it has no history: another name may have asked for gradients
            self.mark("grad-read", at, self.nodes_of(tensor) or None)
            return DATA
        if name in ("grad_fn", "_saved_tensors"):
            self.mark("graph-read", at)
            self.use(tensor, "history-read", at)
            self.escape(tensor, "its grad_fn is read")
            return self.unknown("grad_fn")
        if name in facts.PLAIN_METHODS:
            if name in ("requires_grad", "is_leaf"):
                self.use(tensor, "history-read", at)
            if name == "requires_grad":
                self.mark("requires_grad-read", at, self.nodes_of(tensor))
            elif name == "is_leaf":
                self.mark("is_leaf-read", at, self.nodes_of(tensor))
            return NUMBER
        if name in ("T", "mT", "H", "mH", "real", "imag"):
            return self.sharing(tensor, self.tensor_op(at, name, [tensor], saves=False))
        return None

    def tensor_method(self, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method call on a tensor."""
        if name == "backward":
            return self.backward_method(tensor, args, at)
        scalar = isinstance(tensor, Tensor) and (tensor.scalar or bool(tensor.node and tensor.node.scalar))
        if name == "__setitem__" or name.strip("_") in facts.IN_PLACE_OPERATORS:
            self.alter(tensor, "attached" if any(self.nodes_of(v) for v in args.all()) else "values", at)
        if name in facts.DETACHING:
            self.use(tensor, "detach", at)
            return self.alias("detach", tensor, self.detached(tensor, scalar=scalar), at)
        if name in facts.PLAIN_METHODS:
            if name == "numpy" and self.s.grad is not False and self.trying and self.nodes_of(tensor):
                self.mark("error-caught", at)
            self.use(tensor, f"method:{name}", at)
            return ARRAY if name in ("numpy", "tolist") else NUMBER
        if name in FRESH["Tensor"] and not name.startswith("new"):
            self.use(tensor, f"method:{name}", at)
            return Tensor(None)
        if name in ("requires_grad_", "requires_grad"):
            on = args.get(0, "requires_grad")
            if on is not None and self.truth(on) is False:
                if isinstance(tensor, Tensor) and tensor.node is not None and tensor.node.leaf:
                    self.freeze(tensor, True)
                return tensor
            self.mark("requires_grad", at)
            if not self.nodes_of(tensor):
                if isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and self.thawed(at.func.value):
                    return tensor
                return Tensor(self.leaf(at, "input"), scalar)
            if isinstance(tensor, Tensor) and tensor.node is not None and tensor.node.leaf:
                self.freeze(tensor, False)
            return tensor
        if name in facts.HOOKING_METHODS:
            self.use(tensor, f"method:{name}", at)
            self.mark("hook", at, self.nodes_of(tensor) or None)
            return self.opaque(at, name, [])
        if name in facts.OF_COROUTINES:
            # what a function that is ``async`` returns, handed on by an exception
            self.escape(tensor, "what runs the coroutine gets it")
            return tensor
        if name in facts.WITHOUT_GRADIENT:
            self.use(tensor, f"method:{name}", at)
            return INDEX
        inputs = [tensor]
        if name in facts.LIKE_ANOTHER:
            for value in args.all():
                self.use(value, f"method:{name}", at)
        else:
            inputs += args.all()
        several = self._elements_of(f"Tensor.{name}", inputs, args.positional, args.keywords, at)
        if several is not None:
            return several
        if name in ("split", "chunk", "unbind", "tensor_split"):
            piece = self.tensor_op(at, name, [tensor], saves=False)
            return self.new_sequence([], rest=self.sharing(tensor, piece))
        if name in facts.FACTORIES and name.startswith("new"):
            self.use(tensor, f"method:{name}", at)
            return self._handed_on(name, args, at) or self.fresh_tensor(args, at)
        reduces = name in (facts.REDUCTIONS | facts.WITH_INDICES) and self._reduces(name, args, start=0)
        base = name[:-1] if name.endswith("_") and not name.startswith("_") else name
        keeps = scalar and (base in facts.SAVES_NOTHING or not args.positional) and base not in ("expand", "repeat")
        keeps = keeps and base not in ("unsqueeze", "view", "reshape", "unbind")
        single = base in ("view", "reshape", "unsqueeze") and scalar
        result = self.tensor_op(
            at,
            name,
            inputs,
            saves=base not in facts.SAVES_NOTHING and name not in facts.OVERWRITES,
            scalar=reduces or keeps or single,
            dimensionless=(reduces and self._drops_all(name, args))
            or (base in facts.KEEPS_SHAPE and self.is_dimensionless(tensor))
            or (base in facts.ELEMENTWISE and all(self.is_dimensionless(v) for v in inputs)),
        )
        if isinstance(tensor, Tensor) and tensor.aliases:
            if base in facts.VIEWS:
                return replace(result, aliases=tensor.aliases)
            if base in facts.MAY_SHARE:
                return self.may_share(tensor, result)
        return result

    @staticmethod
    def _reduces(name: str, args: Arguments, *, start: int) -> bool:
        if "dim" in args.keywords or "axis" in args.keywords or args.more:
            return False
        given = len(args.positional) - start
        return given == 0 or (name in ("norm", "dist") and given == 1)

    @staticmethod
    def _drops_all(name: str, args: Arguments) -> bool:
        """Whether a reduction without a dimension leaves none."""
        return name in facts.REDUCTIONS | {"max", "min", "median"} and "keepdim" not in args.keywords

    # functions

    def torch_function(self, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
        """A function of ``torch`` itself, or of ``head``, a module below it."""
        if name in ("as_tensor", "asarray"):
            given = args.get(0, "data" if name == "as_tensor" else "obj")
            if isinstance(given, Tensor) and len(args.all()) == 1:
                # of a tensor nothing is made
                return given
            return self.tensor_op(at, name, args.all(), saves=False)
        if name in ("tensor",):
            for value in args.all():
                self.use(value, "detach", at)
            return self.fresh_tensor(
                args, at, scalar=bool(args.positional) and isinstance(args.positional[0], (Const, Plain))
            )
        if name in ("load",):
            return self.unknown("torch.load", public=True)
        if name in facts.DRAWN_OF and any(self.nodes_of(value) for value in args.all()):
            return self.tensor_op(at, name, args.all(), saves=False)
        if name in facts.FACTORIES:
            return self._handed_on(name, args, at) or self.fresh_tensor(
                args, at, index=name in ("LongTensor", "IntTensor", "ByteTensor", "BoolTensor", "randint", "randperm")
            )
        if name in INTEGERS.get(head, ()):
            for value in args.all():
                self.use(value, f"torch.{name}", at)
            return INDEX
        if name in FRESH.get(head, ()):
            for value in args.all():
                self.use(value, f"torch.{name}", at)
            return Tensor(None)
        if name in (
            "is_tensor",
            "is_floating_point",
            "manual_seed",
            "device",
            "numel",
            "save",
            "equal",
            "set_default_dtype",
            "get_rng_state",
            "set_rng_state",
            "typename",
            "set_printoptions",
            "set_num_threads",
            "is_available",
            "synchronize",
            "empty_cache",
            "set_device",
            "device_count",
            "memory_allocated",
            "current_device",
            "set_default_tensor_type",
            "finfo",
            "iinfo",
            "Generator",
            "Size",
            "max_memory_allocated",
        ):
            if name in ("is_tensor", "equal", "numel", "save"):
                for value in args.all():
                    self.use(value, f"torch.{name}", at)
            return NUMBER
        inputs = args.all()
        several = self._elements_of(f"{head}.{name}", inputs, args.positional[1:], args.keywords, at)
        if several is not None:
            return several
        if head == "torch" and name in facts.WITH_INDICES:
            single = not args.positional[1:] and "other" not in args.keywords and not args.more
            return self.tensor_op(at, name, inputs, scalar=single, dimensionless=single and self._drops_all(name, args))
        if name in ("split", "chunk", "unbind", "tensor_split", "meshgrid", "broadcast_tensors"):
            piece = self.tensor_op(at, name, inputs, saves=False)
            return self.new_sequence([], rest=self.sharing(inputs[0], piece) if inputs else piece)
        if name in (
            "svd",
            "qr",
            "eig",
            "eigh",
            "symeig",
            "lstsq",
            "slogdet",
            "lu",
            "std_mean",
            "var_mean",
            "triangular_solve",
        ):
            return self.opaque_tensor(at, name, args)
        if name == "where" and len(args.positional) == 1 and not args.keywords:
            return Tuple((INDEX, INDEX))
        scalar = name in facts.REDUCTIONS and self._reduces(name, args, start=1)
        dimensionless = scalar and self._drops_all(name, args)
        if name in facts.ELEMENTWISE:
            dimensionless = bool(args.positional) and all(self.is_dimensionless(v) for v in args.all())
        if name in (
            "abs",
            "sqrt",
            "exp",
            "log",
            "neg",
            "clamp",
            "relu",
            "sigmoid",
            "tanh",
            "square",
            "pow",
            "mul",
            "add",
            "sub",
            "div",
        ):
            scalar = bool(args.positional) and all(self.is_scalar(v) for v in args.positional)
        made = self.tensor_op(
            at, name, inputs, saves=name not in facts.SAVES_NOTHING, scalar=scalar, dimensionless=dimensionless
        )
        return self.may_share(inputs[0], made) if inputs and name in facts.MAY_SHARE else made

    def functional(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """A function of ``torch.nn.functional``."""
        if name in INTEGERS["torch.nn.functional"]:
            for value in args.all():
                self.use(value, f"torch.{name}", at)
            return INDEX
        if args.positional and self.may_be_true(args.get(facts.INPLACE_AT.get(name, -1), "inplace")):
            self.alter(args.positional[0], "attached" if self.nodes_of(args.positional[0]) else "values", at)
        if name in ("embedding", "embedding_bag") and len(args.positional) > 1:
            bound = args.get(3, "max_norm")
            if bound is not None and not self.is_none(bound):
                # rows that are too long are scaled in the table itself
                self.alter(args.positional[1], "values", at)
        scalar = name in facts.SCALAR_FUNCTIONS and self.is_reduced(args)
        dimensionless = scalar and not args.more and len(args.positional) <= facts.REDUCE_AT
        made = self.tensor_op(at, name, args.all(), scalar=scalar, dimensionless=dimensionless)
        if name == "multi_head_attention_forward":
            return Tuple((made, made))
        if self._gives_several(f"torch.nn.functional.{name}", args.positional[1:], args.keywords) is True:
            return Tuple((made, INDEX))
        return self.may_share(args.all()[0], made) if args.all() and name in facts.MAY_SHARE else made

    def _elements_of(
        self, path: str, inputs: list[Value], others: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value | None:
        """What a function gives that may give several, some of them cut; None if it gives one.

        ``others`` are the positional arguments behind the first tensor.
        """
        parts = PARTS.get(path)
        gives = self._gives_several(path, others, keywords) if parts is not None else False
        if parts is None or gives is False:
            return None
        if gives is None:
            return self.opaque(at, path if path.startswith("torch.") else f"torch.{path}", inputs, public=True)
        name = path.rpartition(".")[2]
        made = self.tensor_op(at, name, inputs)
        if made.node is None:
            # what is cut forgets where it comes from: the reading is noted here
            for value in inputs:
                self.use(value, f"method:{name}", at)
        cut = {"": made, "i": INDEX, "f": Tensor(None), "p": NUMBER}
        names = tuple(part for part, _ in parts if part.isidentifier())
        return Tuple(tuple(cut[sort] if sort else replace(made) for _, sort in parts), names)

    def _gives_several(self, path: str, others: list[Value], keywords: dict[str, Value]) -> bool | None:
        """Whether it gives several, by what stands behind the first tensor; None where that cannot be seen."""
        parts = PARTS.get(path)
        if parts is None:
            return False
        if path not in SOMETIMES:
            return True
        if parts[0][0] == "values":
            second = others[0] if others else keywords.get("dim")
            if second is None:
                return False
            if all(isinstance(option, (Const, Plain)) for option in self.options(second)):
                return True
            return False if isinstance(second, Tensor) else None
        flags = [
            self.truth(keywords[k]) for k in ("return_indices", "return_inverse", "return_counts") if k in keywords
        ]
        if None in flags:
            return None
        return flags.count(True) == len(parts) - 1

    def is_reduced(self, args: Arguments) -> bool:
        """Whether a loss gives one number, by its ``reduction`` and ``reduce``."""
        reduction = args.keywords.get("reduction")
        reduce = args.keywords.get("reduce")
        if reduce is not None and self.truth(reduce) is not True:
            return False
        return reduction is None or (isinstance(reduction, Const) and reduction.value in ("mean", "sum", "batchmean"))

    def fresh_tensor(self, args: Arguments, at: ast.AST, *, index: bool = False, scalar: bool = False) -> Tensor:
        """What a factory makes: no history, a leaf if it asks for gradients."""
        asks = args.keywords.get("requires_grad")
        if asks is not None and self.truth(asks) is not False:
            self.mark("requires_grad", at)
            return Tensor(self.leaf(at, "input"), scalar)
        return Tensor(None, scalar, index=index)

    def _handed_on(self, name: str, args: Arguments, at: ast.AST) -> Value | None:
        """What a constructor makes of its only argument where that may be a tensor: an alias with its history."""
        if name not in facts.HANDING_ON or len(args.positional) != 1 or args.keywords or args.more:
            return None
        given = args.positional[0]
        tensors = [o for o in self.options(given) if isinstance(o, (Tensor, Unknown))]
        if not tensors:
            self.use(given, "detach", at)
            return None
        made = self.tensor_op(at, name, [given], saves=False, scalar=self.is_scalar(given))
        if isinstance(given, Tensor):
            return replace(made, index=given.index, aliases=given.aliases)
        return made

    def opaque_tensor(self, at: ast.AST, label: str, args: Arguments) -> Value:
        """A helper of torch whose result is attached exactly if an argument is, in a shape that is not followed."""
        nodes = [n for v in args.all() for n in self.nodes_of(v)]
        node = self.node(at, "op", nodes, saves=False, label=label)
        made = self.unknown(label, node, public="." in label)
        made.shadow = self.shadow_of(args.all())
        if node is not None:
            node.shadow = made.shadow
        return made
