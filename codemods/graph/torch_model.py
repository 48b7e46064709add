"""What torch does, on symbols: tensor methods, library calls, modules and optimizers."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph import facts
from codemods.graph.arguments import Arguments
from codemods.graph.core import ITEMS, MAX_OPTIONS, REST, Core
from codemods.graph.program import ClassInfo
from codemods.graph.values import (
    ARRAY,
    DATA,
    INDEX,
    NONE,
    NUMBER,
    Const,
    Function,
    GradMode,
    Instance,
    Join,
    Library,
    Mapping,
    Method,
    Module,
    Node,
    Optimizer,
    Parameters,
    Partial,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    Value,
)

_ALIASES = {
    "torch.autograd.variable": "torch.autograd",
    "torch.nn.modules": "torch.nn",
    "torch.functional": "torch",
    "torch.nn.parameter": "torch.nn",
    "torch.optim.adam": "torch.optim",
    "torch.optim.sgd": "torch.optim",
}


def canonical(path: str) -> str:
    """The public name of something that ``path`` names, e.g. ``torch.nn.modules.loss.MSELoss`` ->
    ``torch.nn.MSELoss``."""
    if not path.startswith("torch."):
        return path
    if path.startswith("torch.nn.modules."):
        return "torch.nn." + path.rpartition(".")[2]
    head, _, last = path.rpartition(".")
    if head.startswith("torch.optim.") and head != "torch.optim.lr_scheduler" and last[:1].isupper():
        return "torch.optim." + last
    return f"{_ALIASES.get(head, head)}.{last}"


class TorchModel(Core):
    """The part of the engine that knows torch, by the tables of :mod:`codemods.graph.facts`."""

    # what the layers above supply

    def call_value(self, function: Value, args: Arguments, at: ast.AST) -> Value:
        """Call any value."""
        raise NotImplementedError

    def call_method(self, receiver: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """Call a method of any value."""
        raise NotImplementedError

    def iterate(self, value: Value, at: ast.AST) -> list[Value]:
        """The values of the two turns of a loop over ``value``."""
        raise NotImplementedError

    def get_attribute(self, receiver: Value, name: str, at: ast.AST) -> Value:
        """Read an attribute of any value."""
        raise NotImplementedError

    # tensors

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
            self.escape(tensor, "its grad_fn is read")
            return self.unknown("grad_fn")
        if name in facts.PLAIN_ATTRIBUTES:
            if name == "requires_grad":
                self.mark("requires_grad-read", at, self.nodes_of(tensor))
            elif name == "is_leaf":
                self.mark("is_leaf-read", at, self.nodes_of(tensor))
            return NUMBER
        if name in ("T", "mT", "H", "real", "imag"):
            return self.tensor_op(at, name, [tensor], saves=False)
        return None

    def tensor_method(self, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method call on a tensor."""
        if name == "backward":
            return self.backward_method(tensor, args, at)
        scalar = isinstance(tensor, Tensor) and (tensor.scalar or bool(tensor.node and tensor.node.scalar))
        if name in facts.DETACHING:
            self.use(tensor, "detach", at)
            return self.alias("detach", tensor, self.detached(tensor, scalar=scalar), at)
        if name in facts.PLAIN_METHODS:
            self.use(tensor, f"method:{name}", at)
            return ARRAY if name in ("numpy", "tolist") else NUMBER
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
        if name in ("register_hook", "retain_grad", "register_post_accumulate_grad_hook"):
            self.mark("hook", at, self.nodes_of(tensor) or None)
            return self.opaque(at, name, [])
        if name in facts.WITHOUT_GRADIENT:
            self.use(tensor, f"method:{name}", at)
            return INDEX
        inputs = [tensor, *args.all()]
        if name in facts.WITH_INDICES and (not args.empty or name in ("sort", "topk", "kthvalue", "cummax", "cummin")):
            first = args.get(0, "other")
            if isinstance(first, Tensor):
                return self.tensor_op(at, name, inputs)
            if not self.nodes_of(tensor):
                # the indices forget where they come from: the reading is noted here
                self.use(tensor, f"method:{name}", at)
            return Tuple((self.tensor_op(at, name, inputs), INDEX))
        if name in ("split", "chunk", "unbind", "tensor_split"):
            piece = self.tensor_op(at, name, [tensor], saves=False)
            return self.new_sequence([], rest=piece)
        if name in facts.FACTORIES and name.startswith("new"):
            return self.fresh_tensor(args, at)
        reduces = name in (facts.REDUCTIONS | facts.WITH_INDICES) and self._reduces(name, args, start=0)
        base = name[:-1] if name.endswith("_") and not name.startswith("_") else name
        if name == "copy_":
            return self.tensor_op(at, name, args.all() or [tensor], saves=False)
        if base in ("zero", "fill", "normal", "uniform", "random", "exponential") and name.endswith("_"):
            return Tensor(None) if base == "zero" else DATA
        keeps = scalar and (base in facts.SAVES_NOTHING or not args.positional) and base not in ("expand", "repeat")
        keeps = keeps and base not in ("unsqueeze", "view", "reshape", "unbind")
        single = base in ("view", "reshape", "unsqueeze") and scalar
        result = self.tensor_op(
            at, name, inputs, saves=base not in facts.SAVES_NOTHING, scalar=reduces or keeps or single
        )
        if isinstance(tensor, Tensor) and tensor.aliases:
            if base in facts.VIEWS:
                return replace(result, aliases=tensor.aliases)
            if base in facts.MAY_COPY:
                return replace(result, aliases=tuple(alias.perhaps() for alias in tensor.aliases))
        return result

    @staticmethod
    def _reduces(name: str, args: Arguments, *, start: int) -> bool:
        if "dim" in args.keywords or "axis" in args.keywords or args.more:
            return False
        given = len(args.positional) - start
        return given == 0 or (name in ("norm", "dist") and given == 1)

    def backward_method(self, value: Value, args: Arguments, at: ast.AST) -> Value:
        """``value.backward(gradient, retain_graph, create_graph)`` (docs: Tensor.backward)."""
        if not isinstance(at, ast.Call):
            return NONE
        gradient = args.get(0, "gradient")
        self._walk_with(
            at,
            [value],
            args,
            "backward",
            retain_at=1,
            create_at=2,
            with_gradient=gradient is not None and not self._is_none(gradient),
        )
        return NONE

    @staticmethod
    def _is_none(value: Value) -> bool:
        return isinstance(value, Const) and value.value is None

    def _walk_with(
        self,
        at: ast.Call,
        values: list[Value],
        args: Arguments,
        kind: str,
        *,
        retain_at: int,
        create_at: int,
        with_gradient: bool = False,
    ) -> None:
        argument: str | int | None = None
        retains: bool | None = False
        for name in ("retain_graph", "retain_variables"):
            if name in args.keywords:
                argument = name
        if argument is None and len(args.positional) > retain_at:
            argument = retain_at
        if argument is not None:
            given = args.keywords[argument] if isinstance(argument, str) else args.positional[argument]
            retains = self.truth(given) if isinstance(given, Const) else None
            if isinstance(given, Const) and given.value is None:
                retains = False
            elif not self._literal(at, argument):
                retains = None if retains is not False else False
        create = args.get(create_at, "create_graph")
        creates: bool | None = False if create is None else (self.truth(create) if isinstance(create, Const) else None)
        if args.more:
            retains = None
        walk = self.walk(
            at, values, kind, retains=retains, creates=creates, argument=argument, with_gradient=with_gradient
        )
        if kind == "backward" and "inputs" in args.keywords:
            walk.inputs = self._gradients_of(args.keywords["inputs"])

    @staticmethod
    def _literal(call: ast.Call, argument: str | int) -> bool:
        if isinstance(argument, int):
            return argument < len(call.args) and isinstance(call.args[argument], ast.Constant)
        return any(k.arg == argument and isinstance(k.value, ast.Constant) for k in call.keywords)

    def fresh_tensor(self, args: Arguments, at: ast.AST, *, index: bool = False, scalar: bool = False) -> Tensor:
        """What a factory makes: no history, a leaf if it asks for gradients."""
        asks = args.keywords.get("requires_grad")
        if asks is not None and self.truth(asks) is not False:
            self.mark("requires_grad", at)
            return Tensor(self.leaf(at, "input"), scalar)
        return Tensor(None, scalar, index=index)

    # library calls

    def call_library(self, path: str, args: Arguments, at: ast.AST) -> Value:
        """A call of something outside the tree, by its full name."""
        path = canonical(path)
        head, _, last = path.rpartition(".")
        if path in facts.GRAD_OFF:
            if args.positional and isinstance(args.positional[0], (Function, Method)):
                return self._decorated(args.positional[0], False)
            mode = args.get(0, "mode")
            if path.endswith("inference_mode") and mode is not None:
                truth = self.truth(mode)
                return GradMode(None if truth is None else not truth)
            return GradMode(False)
        if path in facts.GRAD_ON:
            if args.positional and isinstance(args.positional[0], (Function, Method)):
                return self._decorated(args.positional[0], True)
            self.mark("enable_grad", at)
            return GradMode(True)
        if path in facts.GRAD_SWITCH:
            mode = args.get(0, "mode")
            truth = self.truth(mode) if mode is not None else None
            if truth is not False:
                self.mark("set_grad_enabled", at)
            previous = self.s.grad
            self.s.grad = truth
            return GradMode(truth, previous, switched=True)
        if path in facts.BACKWARD_FUNCTIONS and isinstance(at, ast.Call):
            tensors = args.get(0, "tensors")
            gradients = args.get(1, "grad_tensors")
            self._walk_with(
                at,
                self._flat(tensors),
                args,
                "backward",
                retain_at=2,
                create_at=3,
                with_gradient=gradients is not None and not self._is_none(gradients),
            )
            return NONE
        if path in facts.GRAD_FUNCTIONS and isinstance(at, ast.Call):
            return self._autograd_grad(args, at)
        if path.startswith(facts.FUNCTIONAL_GRADIENTS):
            self.mark("functional-gradient", at)
            for value in args.all():
                self.escape(value, "a functional gradient may use it")
            return self.opaque(at, path, args.all())
        if path in ("torch.autograd.Variable", "torch.Variable"):
            return self._variable(args, at)
        if path == "torch.nn.Parameter":
            return self._parameter(args, at)
        if path.startswith("torch.nn.functional."):
            return self.functional(last, args, at)
        if path in facts.TRANSPARENT_WRAPPERS and args.all():
            return args.all()[0]
        if path in ("torch.nn.parallel.data_parallel", "torch.nn.parallel.parallel_apply") and args.positional:
            inputs = self._flat(args.positional[1]) if len(args.positional) > 1 else []
            return self.call_value(args.positional[0], Arguments(args.call, inputs), at)
        if path.startswith("torch.nn.utils.rnn."):
            return self.opaque_tensor(at, last, args)
        if path.startswith(("torch.nn.utils.", "torch.nn.init.")):
            if last.startswith("clip_grad"):
                self.mark_owned("gradients-changed", at, args.get(0, "parameters"))
                return NUMBER
            filled = args.get(0, "tensor") if path.startswith("torch.nn.init.") else None
            if filled is not None:
                self.alter(filled, "values", at)
            if last in ("parameters_to_vector",):
                return self.tensor_op(at, last, args.all())
            return args.all()[0] if args.all() else NONE
        if head == "torch.nn" or head == "torch.nn.modules":
            return self.make_module(last, args, at)
        if path.startswith(("torch.optim.lr_scheduler.", "torch.optim.swa_utils")):
            return self.unknown(path)
        if head == "torch.optim":
            return self.make_optimizer(args, at)
        if path.startswith("torch.utils.checkpoint.checkpoint"):
            reentrant = args.keywords.get("use_reentrant")
            if reentrant is None or self.truth(reentrant) is not False:
                self.mark("reentrant-checkpoint", at, [n for v in args.all() for n in self.nodes_of(v)])
            rest = Arguments(args.call, args.positional[1:], {}, args.more)
            return self.call_value(args.positional[0], rest, at) if args.positional else self.unknown(path)
        if path.startswith(("torch.utils.data.", "torchvision.datasets.", "torchvision.transforms.", "torchtext.")):
            return self.unknown(path, data=True)
        if path.startswith("torch.utils.tensorboard."):
            return self.unknown(path)
        if head in ("torch", "torch.linalg", "torch.fft", "torch.special", "torch.cuda", "torch.sparse"):
            return self.torch_function(last, args, at)
        if path in ("torch.cuda.amp.GradScaler", "torch.amp.GradScaler"):
            return Library("torch.amp.GradScaler()")
        if path.startswith("torch.amp.GradScaler()."):
            return self._scaler(last, args, at)
        return self._other_library(path, args, at)

    def _decorated(self, function: Value, mode: bool) -> Value:
        if isinstance(function, Function):
            return replace(function, grad_mode=mode)
        return function

    def _flat(self, value: Value | None) -> list[Value]:
        if value is None:
            return []
        inner = self.elements(value)
        return inner or [value]

    def _autograd_grad(self, args: Arguments, at: ast.Call) -> Value:
        outputs = args.get(0, "outputs")
        before = list(args.all())
        creates = args.get(4, "create_graph")
        explicit = "retain_graph" in args.keywords or len(args.positional) > 3
        self._walk_with(at, self._flat(outputs), args, "grad", retain_at=3, create_at=4, with_gradient=True)
        walk = self.trace.walks[-1]
        walk.inputs = self._gradients_of(args.get(1, "inputs"))
        if not explicit and walk.creates is not False:
            walk.retains = None if walk.creates is None else True
        result: Value
        if creates is not None and self.truth(creates) is not False:
            node = self.node(at, "op", [n for v in before for n in self.nodes_of(v)], label="autograd.grad")
            result = Tensor(node)
        else:
            result = DATA
        inputs = args.get(1, "inputs")
        if isinstance(inputs, Tuple):
            return Tuple((result,) * len(inputs.items))
        return self.new_sequence([], rest=result)

    def _gradients_of(self, inputs: Value | None) -> tuple[Node, ...] | None:
        """What gradients are taken of; None where some of it cannot be seen."""
        if inputs is None:
            return None
        nodes = tuple(self.nodes_of(inputs))
        given = [o for v in self._flat(inputs) for o in self.options(v)]
        return nodes if nodes and all(self.nodes_of(o) for o in given) else None

    def _variable(self, args: Arguments, at: ast.AST) -> Value:
        given = args.get(0, "data")
        asks = args.get(1, "requires_grad")
        volatile = args.get(2, "volatile")
        if asks is not None and self.truth(asks) is not False:
            self.mark("requires_grad", at)
            return self.alias("variable", given if given is not None else NONE, Tensor(self.leaf(at, "input")), at)
        self.use(given, "detach", at)
        given = given if given is not None else NONE
        made = self.detached(given, scalar=isinstance(given, Tensor) and given.scalar)
        made = self.alias("variable", given, made, at)
        if volatile is not None and self.truth(volatile) is True and isinstance(at, ast.Call):
            made = replace(made, shadow=(*made.shadow, self.place(at)))
        return made

    def _parameter(self, args: Arguments, at: ast.AST) -> Value:
        asks = args.get(1, "requires_grad")
        if asks is not None and self.truth(asks) is False:
            return DATA
        return Tensor(self.leaf(at, "parameter"))

    def functional(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """A function of ``torch.nn.functional``."""
        if name == "one_hot":
            return INDEX
        if args.positional and self.truth(args.keywords.get("inplace", NONE)) is True:
            self.alter(args.positional[0], "attached" if self.nodes_of(args.positional[0]) else "values", at)
        scalar = name in facts.SCALAR_FUNCTIONS and self._is_reduced(args)
        made = self.tensor_op(at, name, args.all(), scalar=scalar)
        if name == "multi_head_attention_forward" or self._returns_indices(args):
            return Tuple((made, INDEX))
        return made

    def _returns_indices(self, args: Arguments) -> bool:
        flag = args.keywords.get("return_indices")
        return flag is not None and self.truth(flag) is True

    def _is_reduced(self, args: Arguments) -> bool:
        reduction = args.keywords.get("reduction")
        reduce = args.keywords.get("reduce")
        if reduce is not None and self.truth(reduce) is not True:
            return False
        return reduction is None or (isinstance(reduction, Const) and reduction.value in ("mean", "sum", "batchmean"))

    def opaque_tensor(self, at: ast.AST, label: str, args: Arguments) -> Value:
        """A helper of torch whose result is attached exactly if an argument is, in a shape that is not followed."""
        nodes = [n for v in args.all() for n in self.nodes_of(v)]
        node = self.node(at, "op", nodes, saves=False, label=label)
        made = self.unknown(label, node)
        made.shadow = self.shadow_of(args.all())
        if node is not None:
            node.shadow = made.shadow
        return made

    def torch_function(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """A function of ``torch`` itself."""
        if name in ("as_tensor", "asarray"):
            return self.tensor_op(at, name, args.all(), saves=False)
        if name in ("tensor",):
            for value in args.all():
                self.use(value, "detach", at)
            return self.fresh_tensor(
                args, at, scalar=bool(args.positional) and isinstance(args.positional[0], (Const, Plain))
            )
        if name in ("load",):
            return self.unknown("torch.load")
        if name in facts.FACTORIES:
            return self.fresh_tensor(
                args, at, index=name in ("LongTensor", "IntTensor", "ByteTensor", "BoolTensor", "randint", "randperm")
            )
        if name in facts.WITHOUT_GRADIENT:
            for value in args.all():
                self.use(value, f"torch.{name}", at)
            return INDEX
        if name in facts.DETACHING:
            return DATA
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
        if name in facts.WITH_INDICES:
            others = args.positional[1:] + [v for k, v in args.keywords.items() if k in ("dim", "k")]
            if others and not isinstance(others[0], Tensor):
                return Tuple((self.tensor_op(at, name, inputs), INDEX))
            if others and name in ("max", "min"):
                return self.tensor_op(at, name, inputs)
            return self.tensor_op(at, name, inputs, scalar=not others and name not in ("sort", "topk"))
        if name in ("split", "chunk", "unbind", "tensor_split", "meshgrid", "broadcast_tensors"):
            return self.new_sequence([], rest=self.tensor_op(at, name, inputs, saves=False))
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
        if name == "where" and len(args.positional) == 1:
            return Tuple((INDEX, INDEX))
        scalar = name in facts.REDUCTIONS and self._reduces(name, args, start=1)
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
        return self.tensor_op(at, name, inputs, saves=name not in facts.SAVES_NOTHING, scalar=scalar)

    def is_scalar(self, value: Value) -> bool:
        """Whether it is a number or a tensor proven to have one element."""
        if isinstance(value, Const):
            return isinstance(value.value, (int, float, complex)) or value.value is None
        if isinstance(value, Plain):
            return value.kind != "array"
        if isinstance(value, Tensor):
            return value.scalar or bool(value.node is not None and value.node.scalar)
        if isinstance(value, Unknown):
            return value.node is not None and value.node.scalar
        if isinstance(value, Join):
            return all(self.is_scalar(option) for option in value.options)
        return False

    def _other_library(self, path: str, args: Arguments, at: ast.AST) -> Value:
        top = path.partition(".")[0]
        last = path.rpartition(".")[2]
        if top in ("tqdm", "rich", "alive_progress", "progressbar", "fastprogress") and args.positional:
            return args.positional[0]
        if path in ("functools.partial",) and args.positional:
            return Partial(args.positional[0], tuple(args.positional[1:]), tuple(args.keywords.items()))
        if path in ("functools.reduce",) and len(args.positional) > 1:
            return self.opaque(at, path, [v for a in args.positional[1:] for v in self._flat(a)])
        if path in ("collections.deque",):
            return self.new_sequence(self.elements(args.positional[0]) if args.positional else [], kind="deque")
        if path in ("collections.OrderedDict",):
            return self.new_mapping()
        if path in ("collections.defaultdict",):
            made = self.new_mapping()
            if args.positional:
                self.s.set((made.oid, "factory"), args.positional[0])
            return made
        if path.startswith("itertools.") and args.positional:
            if last in ("chain", "cycle", "islice", "repeat", "from_iterable"):
                owners = [v for v in args.positional if isinstance(v, Parameters)]
                if owners:
                    return self.new_sequence(list(args.positional))
                return self.new_sequence([], rest=self._one_of([v for a in args.positional for v in self._flat(a)]))
            return self.unknown(path, self._mix(at, path, args))
        if top in facts.NUMERIC_LIBRARIES:
            for value in args.all():
                self.use(value, f"call:{path}", at)
            self.run_callbacks(args, at)
            if top == "numpy" or top == "math":
                return ARRAY if top == "numpy" else NUMBER
            return self.unknown(path, data=top in facts.DATA_LIBRARIES)
        if any(path == known or path.startswith(known + ".") for known in facts.MODEL_LIBRARIES):
            return self.blob(at, path)
        if (
            path.startswith(tuple(f"{known}." for known in facts.LAYER_LIBRARIES))
            and last[:1].isupper()
            and "Memory" not in last
            and not any(self.is_module(v) for v in args.positional)
        ):
            return self.blob(at, path)
        if last == "from_pretrained" and ("Tokenizer" not in path and "Processor" not in path and "Config" not in path):
            return self.blob(at, path) if "Model" in path or "For" in path else self.unknown(path)
        self.run_callbacks(args, at)
        for value in args.all():
            self.use(value, f"call:{path}", at)
        result = self.unknown(path, self._mix(at, path, args))
        result.shadow = self.shadow_of(args.all())
        if result.node is None and any(isinstance(o, (Tensor, Unknown)) for v in args.all() for o in self.options(v)):
            # what looks like a function may be a module that was imported
            self.unseen_call(result, path)
        if last.rpartition("_")[2] == "loss" or "Loss" in last:
            return result
        if any(v is not None and self.is_module(v) for v in args.positional) and not self.nodes_of(result):
            # a wrapper around a module: most often still a module
            return args.positional[0] if self.is_module(args.positional[0]) else result
        return result

    def _one_of(self, values: list[Value]) -> Value | None:
        result: Value | None = None
        for value in values:
            result = value if result is None else self.join(result, value)
        return result

    def _mix(self, at: ast.AST, label: str, args: Arguments) -> Node | None:
        parents = [n for value in args.all() if not isinstance(value, Parameters) for n in self.nodes_of(value)]
        made = self.node(at, "call", parents, certain=False, label=label)
        if made is not None:
            made.shadow = self.shadow_of(args.all())
        return made

    def run_callbacks(self, args: Arguments, at: ast.AST) -> None:
        """Run the functions of the tree that are handed to code that cannot be seen."""
        if any(
            isinstance(o, (Parameters, Optimizer)) or self.is_module(o) for v in args.all() for o in self.options(v)
        ):
            self.mark("handed-out", at)
        given = args.keywords.get("args")
        extra = list(given.items) if isinstance(given, Tuple) else []
        for value in args.all():
            for option in self.options(value):
                if isinstance(option, (Function, Method)) and (
                    not isinstance(option, Method) or option.function is not None
                ):
                    first = len(self.trace.frames)
                    result = self.call_value(option, Arguments(args.call, list(extra)), at)
                    for frame in self.trace.frames[first : first + 1]:
                        frame.handed = True
                    self.escape(result, "returned to code that cannot be seen")

    def scaled(self, value: Value, at: ast.AST) -> Value:
        """What a gradient scaler makes of a loss; of one that cannot be seen, a backward on it shows that it has a
        graph."""
        if isinstance(value, Unknown) and value.node is None:
            return value
        return self.tensor_op(at, "scale", [value], scalar=self.is_scalar(value))

    def _scaler(self, name: str, args: Arguments, at: ast.AST) -> Value:
        if name == "scale" and args.positional:
            return self.scaled(args.positional[0], at)
        if name == "step":
            self.stepped(at, args.get(0, "optimizer"))
            return NONE
        if name == "unscale_":
            self.mark_owned("gradients-changed", at, args.get(0, "optimizer"))
        return NUMBER if name != "update" else NONE

    # modules

    def blob(self, at: ast.AST, name: str) -> Module:
        """A module whose class cannot be seen."""
        return Module(self.new_oid(), "", self.leaf(at, name))

    def make_module(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """``torch.nn.Name(...)``."""
        oid = self.new_oid()
        if name in facts.MODULE_CONTAINERS:
            made = Module(oid, name)
            items: list[Value] = []
            for value in args.positional:
                if isinstance(value, (Sequence, Tuple, Mapping)):
                    items += self.elements(value)
                else:
                    items.append(value)
            more = [o for value in args.more for v in self._flat(value) for o in self.options(v)]
            if len(more) > MAX_OPTIONS and all(self.is_module(o) for o in more):
                # one after the other, each once: a join of so many would forget that they are modules
                items += list(dict.fromkeys(more))
                more = []
            self.s.set((oid, ITEMS), tuple(items))
            if more:
                self.s.set((oid, REST), self._one_of(more))
            return made
        if name in facts.MODULES_WITH_PARAMETERS:
            return Module(oid, name, self.leaf(at, name))
        if name in facts.LOSS_MODULES:
            return Module(oid, name, scalar_output=self._is_reduced(args) or not args.keywords)
        affine = args.keywords.get("affine")
        if name.startswith("InstanceNorm") and affine is not None and self.truth(affine) is not False:
            return Module(oid, name, self.leaf(at, name))
        if name in facts.MODULES_WITHOUT_PARAMETERS or name in ("Module",):
            return Module(oid, name)
        if name[:1].isupper():
            return Module(oid, name, self.leaf(at, name))
        return self.unknown(f"torch.nn.{name}")

    def call_module(self, module: Module, args: Arguments, at: ast.AST, owner: Value | None = None) -> Value:
        """The forward of a module of the library, or of one that cannot be seen."""
        first = self.clock + 1
        grad = self.s.grad
        result = self._module_output(module, args, at)
        self.forwarded(at, owner or module, first, grad, "forward", args)
        return result

    def _module_output(self, module: Module, args: Arguments, at: ast.AST) -> Value:
        name = module.name
        if name == "Sequential" and module.oid not in self.running:
            self.running.add(module.oid)
            children = list(self.s.get((module.oid, ITEMS)) or ())
            rest = self.s.get((module.oid, REST))
            value: Value = args.positional[0] if args.positional else DATA
            inner = [*children[:12], *([rest] if isinstance(rest, Value) else [])]
            if len(children) > 12:
                leaves = [leaf for child in children[12:] for leaf in self.parameter_leaves(child)]
                value = Tensor(self.node(at, "module", [*self.nodes_of(value), *leaves], label="Sequential"))
            try:
                for child in inner:
                    value = self.call_value(child, Arguments(args.call, [value]), at)
            finally:
                self.running.discard(module.oid)
            return value
        inputs = self.parents_of(args.all())
        leaves = self.parameter_leaves(module)
        scalar = module.scalar_output
        made = self.node(at, "module", [*inputs, *leaves], scalar=scalar, label=name or "module")
        shadow = self.shadow_of(args.all())
        if made is not None:
            made.shadow = shadow
            self.drawn(args.all(), made)
            if name in facts.RECURRENT and args.positional and isinstance(args.positional[0], Tensor):
                self.trace.unpacked.add(made)
        if name in facts.TUPLE_OUTPUT:
            second: Value
            if name in facts.PAIR_STATE:
                if name == "LSTMCell":
                    return Tuple((Tensor(made), Tensor(made)))
                second = Tuple((Tensor(made), Tensor(made)))
            else:
                second = Tensor(made)
            return Tuple((Tensor(made), second))
        if not name:
            output = self.unknown("output", made)
            output.shadow = shadow
            return output
        return Tensor(made, scalar, shadow=shadow)

    def module_method(self, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method that every ``nn.Module`` has, called on a module."""
        if name == "module":
            # net.module(x) of a DataParallel
            return self.call_value(module, args, at)
        if name in ("parameters", "named_parameters", "buffers", "named_buffers"):
            return Parameters(module, named=name.startswith("named"))
        if name == "requires_grad_":
            on = args.get(0, "requires_grad")
            truth = True if on is None else self.truth(on)
            self.freeze(module, None if truth is None else not truth)
            return module
        if name in ("zero_grad",):
            self.mark_owned("zero_grad", at, module)
            return NONE
        if name == "load_state_dict":
            self.mark_owned("parameters-loaded", at, module)
        if name in ("eval", "train", "load_state_dict"):
            self._set_mode(module, name, args)
        if name in facts.TRANSPARENT_MODULE_METHODS:
            return module
        if name in ("children", "modules", "named_children", "named_modules"):
            children = self._submodules(module, deep=name.endswith("modules"))
            if isinstance(module, Module) and not module.name and module.leaf is not None and not children[1:]:
                # parts of a module that cannot be seen have parameters among its own
                children = [Module(self.new_oid(), "", module.leaf) for _ in range(2)]
            if name.startswith("named"):
                children = [Tuple((Plain("text"), child)) for child in children]
            return self.new_sequence(children[:32], kind="modules") if children else self.unknown(name)
        if name in (
            "state_dict",
            "load_state_dict",
            "register_buffer",
            "register_parameter",
            "add_module",
            "named_buffers",
        ):
            if name in ("register_buffer", "register_parameter", "add_module") and len(args.positional) > 1:
                key = args.positional[0]
                if isinstance(module, Module) and module.name in facts.MODULE_CONTAINERS:
                    self.s.set(
                        (module.oid, ITEMS), ((self.s.get((module.oid, ITEMS)) or ()) + (args.positional[1],))[:64]
                    )
                elif isinstance(key, Const) and isinstance(key.value, str):
                    self.set_attribute(module, key.value, args.positional[1], at)
            return self.unknown(name)
        if name in ("append", "extend", "insert") and isinstance(module, Module):
            given = (
                args.positional[-1:]
                if name != "extend"
                else self._flat(args.positional[0] if args.positional else None)
            )
            items = (self.s.get((module.oid, ITEMS)) or ()) + tuple(given)
            self.s.set((module.oid, ITEMS), items[:64])
            return module
        if name == "forward" and isinstance(module, Module):
            return self.call_module(module, args, at)
        if name.startswith("register_") and name.endswith("hook"):
            self.mark("module-hook", at)
            if name == "register_forward_pre_hook" and isinstance(module, Instance) and args.positional:
                known = self.s.get((module.oid, "pre-hooks")) or ()
                self.s.set((module.oid, "pre-hooks"), (*known, args.positional[0]))
                return self.unknown(name)
            self.run_callbacks(args, at)
            return self.unknown(name)
        if name in ("get_parameter", "get_submodule", "half", "extra_repr", "named_buffers", "_get_name"):
            return self.unknown(name)
        # a method of a class that cannot be seen: it may run a forward of its own
        first = self.clock + 1
        grad = self.s.grad
        nodes = [n for v in args.all() for n in self.nodes_of(v)] + self.parameter_leaves(module)
        # ``transformer.encoder(x)`` runs what its module is made of
        label = module.name if isinstance(module, Module) and module.name else name
        result = self.unknown(name, self.node(at, "call", nodes, certain=False, label=label))
        for value in args.all():
            self.use(value, f"call:{name}", at)
        self.mark("unseen-module-method", at)
        self.forwarded(at, module, first, grad, name, args)
        return result

    def _submodules(self, module: Value, *, deep: bool) -> list[Value]:
        """The modules in a module, each once; ``deep`` for itself and all below."""
        found: list[Value] = [module] if deep else []
        seen = {getattr(module, "oid", None)}
        queue = [module]
        while queue:
            for child in self.children_of(queue.pop(0)):
                for option in self.options(child):
                    if self.is_module(option) and getattr(option, "oid", None) not in seen:
                        seen.add(getattr(option, "oid", None))
                        found.append(option)
                        if deep:
                            queue.append(option)
        return found

    def set_attribute(self, receiver: Value, name: str, value: Value, at: ast.AST) -> None:
        """Write an attribute of any value."""
        raise NotImplementedError

    def _set_mode(self, module: Value, name: str, args: Arguments) -> None:
        oid = getattr(module, "oid", None)
        if not isinstance(oid, int):
            return
        on = args.get(0, "mode")
        mode = "loaded" if name == "load_state_dict" else name
        if name == "train" and on is not None:
            mode = {True: "train", False: "eval", None: "train"}[self.truth(on)]
        if mode == "loaded" and self.s.get((oid, "mode")) == "eval":
            return
        self.s.set((oid, "mode"), mode)

    # optimizers

    def make_optimizer(self, args: Arguments, at: ast.AST, cls: ClassInfo | None = None) -> Optimizer:
        """``torch.optim.Name(params, ...)``, or one of a class of the tree."""
        given = args.get(0, "params")
        params = tuple(self._flat(given)) if given is not None else ()
        owned = self.owned(given) if given is not None else None
        if owned is not None:
            self.mark("optimized", at, owned.leaves)
        return Optimizer(self.new_oid(), params, owned, cls)

    def optimizer_method(self, optimizer: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of an optimizer."""
        if name == "step":
            closure = args.get(0, "closure")
            if closure is not None and not self._is_none(closure):
                # LBFGS evaluates its closure several times
                result = self.call_value(closure, Arguments(args.call), at)
                self.call_value(closure, Arguments(args.call), at)
                self.stepped(at, optimizer)
                return result
            self.stepped(at, optimizer)
            return NONE
        if name == "zero_grad":
            self.mark_owned("zero_grad", at, optimizer)
            return NONE
        if name == "add_param_group":
            self.mark("optimized", at, self.owned(args.get(0, "param_group")).leaves)
        return self.unknown(f"optimizer.{name}")

    # containers are made in many places

    def new_sequence(self, items: list[Value], rest: Value | None = None, kind: str = "list") -> Sequence:
        """A fresh list, deque or set."""
        made = Sequence(self.new_oid(), kind)
        self.born[made.oid] = self.clock
        self.s.set((made.oid, ITEMS), tuple(items))
        if rest is not None:
            self.s.set((made.oid, REST), rest)
        return made

    def new_mapping(self) -> Mapping:
        """A fresh dict."""
        made = Mapping(self.new_oid())
        self.born[made.oid] = self.clock
        self.attributes[made.oid] = {}
        return made
