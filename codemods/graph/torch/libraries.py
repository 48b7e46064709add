"""Calls of libraries by their path: torch first, then the others that training code calls."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace

from codemods.graph.model import facts
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.trace import Handing
from codemods.graph.model.values import (
    ARRAY,
    NONE,
    NUMBER,
    Function,
    GradMode,
    Instance,
    Library,
    Method,
    Module,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.torch.layers import Layers

_KNOWN = frozenset(
    (
        *(name.partition(".")[0] for name in facts.MODEL_LIBRARIES | facts.CARRYING_LIBRARIES),
        *facts.NUMERIC_LIBRARIES,
        *facts.TORCH_LIBRARIES,
        *facts.DATA_LIBRARIES,
        *facts.LOGGING_LIBRARIES,
        *facts.LOOKING_LIBRARIES,
        *facts.BAR_LIBRARIES,
        *sys.stdlib_module_names,
    )
)
"""Python's modules, and libraries whose functions write to no tensor unless their names say so."""

_OF_TENSORS = frozenset(
    (
        "torch",
        "torch.linalg",
        "torch.special",
        "torch.fft",
        "torch.autograd",
        "torch.nn.functional",
        "torch.distributed",
    )
)
"""Where the functions stand whose first argument is a tensor, or a list of such."""


class Libraries(Layers):
    """The part of the engine that knows what libraries do."""

    def call_library(self, path: str, args: Arguments, at: ast.AST) -> Value:
        """A call of something outside the tree, by its full name."""
        path = canonical(path)
        head, _, last = path.rpartition(".")
        if last == "__init__" and head.startswith("torch.nn."):
            self.begin_base(args, at)
            return NONE
        self._fill(head, last, args, at)
        if head == "operator" and last in facts.IN_PLACE_OPERATORS and args.positional:
            self.alter(args.positional[0], "values", at)
        if head in _OF_TENSORS and last not in facts.TAKES_NUMBERS and args.positional:
            for value in self.flat(args.positional[0]):
                self.wants_tensor(value, path, at)
        if path == "torch.save" and args.positional:
            whole = (o for o in self.options(args.positional[0]) if isinstance(o, Instance))
            self.trace.saved.update(o.cls for o in whole if o.cls.is_module)
        if path in facts.GRAD_OFF:
            if args.positional and isinstance(args.positional[0], (Function, Method)):
                return self.decorated(args.positional[0], False)
            mode = args.get(0, "mode")
            if path.endswith("inference_mode") and mode is not None:
                truth = self.truth(mode)
                return GradMode(None if truth is None else not truth)
            return GradMode(False)
        if path in facts.GRAD_ON:
            if args.positional and isinstance(args.positional[0], (Function, Method)):
                return self.decorated(args.positional[0], True)
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
            self.walk_with(
                at,
                self.flat(tensors),
                args,
                "backward",
                retain_at=2,
                create_at=3,
                with_gradient=gradients is not None and not self.is_none(gradients),
            )
            return NONE
        if path in facts.GRAD_FUNCTIONS and isinstance(at, ast.Call):
            return self.autograd_grad(args, at)
        if last == "functional_call" and args.positional and path.startswith(("torch.func.", "torch.nn.utils.")):
            # the parameters that it is given may be anything
            inputs = self.flat(args.get(2, "args"))
            made = self.call_value(args.positional[0], Arguments(args.call, inputs), at)
            return self.unseen_call(self.opaque(at, path, [made, *args.all()], public=True), path)
        if last == "vmap" and path.startswith(("torch.", "functorch.")) and args.positional:
            # what it makes of a function does the same to more of it
            return args.positional[0]
        if path.startswith(facts.FUNCTIONAL_GRADIENTS):
            self.mark("functional-gradient", at)
            for value in args.all():
                self.escape(value, "a functional gradient may use it")
            return self.unseen_call(self.opaque(at, path, args.all(), public=True), path)
        if path in ("torch.autograd.Variable", "torch.Variable"):
            return self._variable(args, at)
        if path == "torch.nn.Parameter":
            return self._parameter(args, at)
        if path.startswith("torch.nn.functional."):
            return self.functional(last, args, at)
        if path in ("copy.copy", "copy.deepcopy") and args.positional:
            followed = self.standard_call(path, args, at)
            if followed is not None:
                return followed
        if path in facts.TRANSPARENT_WRAPPERS and args.all():
            module = args.all()[0]
            if path in facts.LEAVING_WEIGHTS and isinstance(module, Module) and module.leaf is not None:
                self.renewed.add(module.leaf)
            return module
        if last.startswith("register_") and last.endswith("hook") and path.startswith("torch."):
            # one for several tensors, or for all modules
            self.mark("hook", at)
        if last == "saved_tensors_hooks":
            self.mark("saved-hooks", at)
            self.run_callbacks(args, at)
        if path in facts.WEIGHT_CACHES:
            return self.unknown(path, public=True)
        if path in facts.CALLING_LATER:
            self.escape_all(args.all(), "it may be back-propagated later")
        if path in facts.GRAD_MODE_QUESTIONS:
            self.mark("grad-mode-read", at)
            return NUMBER
        if path in ("torch.nn.parallel.data_parallel", "torch.nn.parallel.parallel_apply") and args.positional:
            inputs = self.flat(args.positional[1]) if len(args.positional) > 1 else []
            return self.call_value(args.positional[0], Arguments(args.call, inputs), at)
        if path.startswith("torch.nn.utils.rnn."):
            return self.opaque_tensor(at, path, args)
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
        if path == f"torch.nn.{facts.SOME}" or (path.startswith("torch.nn.") and last == "from_pretrained"):
            return self.blob(at, path)
        if head == "torch.nn" or head == "torch.nn.modules":
            return self.make_module(last, args, at)
        if path.startswith("torch.distributions.") and last[:1].isupper() and not self.parents_of(args.all()):
            return self.opaque_tensor(at, path, args)
        if path.startswith(("torch.optim.lr_scheduler.", "torch.optim.swa_utils")):
            return self.unknown(path, public=True)
        if head == "torch.optim":
            once = path.startswith("torch.optim.") and last != "LBFGS"
            return replace(self.make_optimizer(args, at), once=once)
        if path.startswith("torch.utils.checkpoint.checkpoint"):
            self.mark("recomputed", at)
            reentrant = args.keywords.get("use_reentrant")
            if reentrant is None or self.truth(reentrant) is not False:
                self.mark("reentrant-checkpoint", at, [n for v in args.all() for n in self.nodes_of(v)])
            if last == "checkpoint_sequential":
                given = args.get(2, "input")
                for function in self.flat(args.get(0, "functions")):
                    given = self.call_value(function, Arguments(args.call, [given] if given is not None else []), at)
                return given if given is not None else self.unknown(path, public=True)
            own = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")
            named = {name: value for name, value in args.keywords.items() if name not in own}
            rest = Arguments(args.call, args.positional[1:], named, args.more)
            return self.call_value(args.positional[0], rest, at) if args.positional else self.unknown(path, public=True)
        if path.startswith(("torch.utils.data.", "torchvision.datasets.", "torchvision.transforms.", "torchtext.")):
            return self.unknown(path, data=True, public=True)
        if path.startswith("torch.utils.tensorboard."):
            return self.unknown(path, public=True)
        if head in (
            "torch",
            "torch.linalg",
            "torch.fft",
            "torch.special",
            "torch.cuda",
            "torch.sparse",
            "torch.nested",
        ):
            return self.torch_function(head, last, args, at)
        if path in ("torch.cuda.amp.GradScaler", "torch.amp.GradScaler"):
            return Library("torch.amp.GradScaler()")
        if path.startswith("torch.amp.GradScaler()."):
            return self.scaler_method(last, args, at)
        return self._other_library(path, args, at)

    def _fill(self, head: str, last: str, args: Arguments, at: ast.AST) -> None:
        """Record what a function writes to: ``out=``, the tensors of a collective, what ``torch.relu_`` is given."""
        filled = [args.keywords.get("out")]
        in_place = last.endswith("_") and (not last.startswith("_") or last.startswith("_foreach_"))
        if args.positional and (in_place or (head == "torch.distributed" and last in facts.COLLECTIVES)):
            filled.append(args.positional[0])
        for value in filled:
            for tensor in self.flat(value):
                self.alter(tensor, "values", at)
        if in_place and head == "torch" and self.s.grad is not False and self.parents_of(args.all()[1:]):
            for tensor in self.options(args.positional[0]) if args.positional else ():
                if isinstance(tensor, Tensor):
                    self.write_through(tensor, self.tensor_op(at, last, args.all()), at)

    def decorated(self, function: Value, mode: bool | None) -> Value:
        """A function that sets the mode while it runs."""
        if isinstance(function, Function):
            return replace(function, grad_mode=mode)
        if isinstance(function, Method) and function.function is not None:
            return replace(function, function=replace(function.function, grad_mode=mode))
        return function

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
            return Tensor(None)
        return Tensor(self.leaf(at, "parameter"))

    def standard_call(self, path: str, args: Arguments, at: ast.AST) -> Value | None:
        """A call of one of Python's own libraries; None where nothing is known of it."""
        raise NotImplementedError

    def _carried(self, path: str, args: Arguments, at: ast.AST) -> Unknown:
        """What a library makes that knows nothing of tensors: it hands on what it is given."""
        for value in args.all():
            self.use(value, f"call:{path}", at)
        results = self.run_callbacks(args, at)
        made = self.taken(at, Tuple((*args.all(), *results)), path)
        made.data, made.public = False, True
        self.may_be_put(args, made, at)
        return made

    def _other_library(self, path: str, args: Arguments, at: ast.AST) -> Value:
        top = path.partition(".")[0]
        last = path.rpartition(".")[2]
        if top in facts.BAR_LIBRARIES and args.positional:
            self.bars.update(getattr(o, "oid", 0) for o in self.options(args.positional[0]))
            return args.positional[0]
        if top in facts.CARRYING_LIBRARIES:
            followed = self.standard_call(path, args, at)
            if followed is not None:
                return followed
            if path not in facts.NUMBERS_OF:
                return self._carried(path, args, at)
        if top in facts.NUMERIC_LIBRARIES or path in facts.NUMBERS_OF:
            for value in args.all():
                self.use(value, f"call:{path}", at)
            self.run_callbacks(args, at)
            if top == "numpy" or top == "math":
                return ARRAY if top == "numpy" else NUMBER
            return self.unknown(path, data=top in facts.DATA_LIBRARIES, public=True)
        if path in facts.HANDING_BACK:
            handed = [args.get(i, name) for i, name in enumerate(("models", "optimizers"))]
            values = [value for value in handed if value is not None]
            return values[0] if len(values) == 1 else Tuple(tuple(values))
        if any(path == known or path.startswith(known + ".") for known in facts.MODEL_LIBRARIES):
            return self.blob(at, path)
        if (
            path.startswith(tuple(f"{known}." for known in facts.LAYER_LIBRARIES))
            and last[:1].isupper()
            and last not in facts.REMEMBERING
            and not any(self.is_module(v) for v in args.positional)
        ):
            return self.blob(at, path)
        pretrained = last == "from_pretrained" and top in facts.PRETRAINED_LIBRARIES
        if pretrained and not any(word in path for word in ("Tokenizer", "Processor", "Config")):
            return self.blob(at, path) if "Model" in path or "For" in path else self.unknown(path, public=True)
        results = self.run_callbacks(args, at)
        for value in args.all():
            self.use(value, f"call:{path}", at)
        if top not in _KNOWN:
            self.may_alter(args.all(), at)
        self.trace.handings.append(Handing(self.place(at), tuple(args.all())))
        given = Arguments(args.call, [*args.all(), *results])
        result = self.unknown(path, self.mixed(at, path, given), public=True)
        result.shadow = self.shadow_of(args.all())
        self.may_be_put(args, result, at)
        if result.node is None and any(isinstance(o, (Tensor, Unknown)) for v in args.all() for o in self.options(v)):
            # what looks like a function may be a module that was imported
            self.unseen_call(result, path)
        if last.rpartition("_")[2] == "loss" or "Loss" in last:
            # a library's name may only keep it from being taken for a module
            return result
        if any(v is not None and self.is_module(v) for v in args.positional) and not self.nodes_of(result):
            # a wrapper around a module: most often still a module
            return args.positional[0] if self.is_module(args.positional[0]) else result
        return result
