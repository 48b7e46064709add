"""Methods of things that cannot be seen: what a method's name and arguments say of them."""

from __future__ import annotations

import ast

from codemods.graph.model import facts
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cutting import FRESH, INTEGERS, PLAIN
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import (
    ARRAY,
    NONE,
    NUMBER,
    Const,
    Function,
    GradMode,
    Hook,
    Instance,
    Method,
    Module,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.python.builtin_calls import BuiltinCalls
from codemods.graph.run.contents import ANY

_OF_TENSORS = facts.DETACHING | PLAIN["Tensor"] | FRESH["Tensor"] | INTEGERS["Tensor"]
"""Methods that cut a graph and that no distribution has (ran: torch 2.13)."""

_MADE_OF_OTHERS = frozenset({
    "Independent", "MixtureSameFamily", "TransformedDistribution", "CatTransform", "ComposeTransform",
    "IndependentTransform", "StackTransform",
})  # fmt: skip
"""The distributions and transforms that take other distributions and transforms (docs: torch.distributions)."""


class Unknowns(BuiltinCalls):
    """The part of the engine that calls methods of what cannot be seen."""

    def unknown_method(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method call on something that cannot be seen."""
        if name == "enter_context" and args.positional:
            # an ExitStack hands on what it enters
            if receiver.path in facts.EXIT_STACKS:
                self._enter_later(args.positional[0])
            elif any(isinstance(o, GradMode) for o in self.options(args.positional[0])):
                self.s.grad = None
            return self.entered_value(args.positional[0], at)
        stored = self.s.get((receiver.oid, name))
        if isinstance(stored, Value):
            return self.call_value(stored, args, at)
        if receiver.module is not None:
            return self.module_method_of_unknown(receiver, name, args, at)
        if name in ("parse_args", "parse_known_args") and receiver.path in facts.COMMAND_LINES:
            options = self._namespace()
            if name == "parse_known_args" or receiver.path == "optparse.OptionParser":
                return Tuple((options, self.unknown("list of words", data=True, public=True)))
            return options
        if name == "backward":
            if (
                args.positional
                and receiver.node is None
                and (self.nodes_of(args.positional[0]) or (len(args.positional) == 1 and not self._is_gradient(args)))
            ):
                return self.wrapped_backward(args, at)
            return self.backward_method(receiver, args, at)
        if name in facts.BACKWARD_METHODS:
            return self.wrapped_backward(args, at)
        if name in facts.HOOKING_METHODS:
            # of a node of the graph, perhaps
            self.mark("hook", at)
        if self._is_of_module(name, args) and (
            receiver.node is None and (not receiver.data or name in ("parameters", "named_parameters"))
        ):
            receiver.module = Module(self.new_oid(), "", self.leaf(at, receiver.path or "module"))
            return self.module_method_of_unknown(receiver, name, args, at)
        if name in ("register_forward_hook", "register_forward_pre_hook") and args.all():
            # a part of some module that cannot be seen
            self.hooks.append(Hook(receiver.oid, None, args.all()[0], before=name == "register_forward_pre_hook"))
        if name == "step" and receiver.path.startswith("torch.optim.lr_scheduler"):
            for value in args.all():
                # ReduceLROnPlateau compares it with earlier ones
                self.use(value, "scheduler", at)
            return NONE
        if name == "step" and (args.empty or any(isinstance(v, (Function, Method)) for v in args.all())):
            return self.optimizer_method(receiver, "step", args, at)
        if name == "zero_grad":
            self.mark("zero_grad", at, by=receiver)
            return NONE
        if name in ("items", "keys", "values") and args.empty and receiver.node is not None:
            return self.unknown(name, self.part(at, receiver, name))
        if facts.logs(f"{receiver.path}."):
            for value in args.all():
                self.use(value, f"call:{receiver.path}.{name}", at)
            self.run_callbacks(args, at)
            return self.unknown(f"{receiver.path}.{name}", public=True)
        if receiver.path.startswith("torch.distributions."):
            if name in FRESH["Distribution"] | PLAIN["Distribution"]:
                self.use(receiver, f"method:{name}", at)
                return Tensor(None) if name in FRESH["Distribution"] else NUMBER
            # only tensors have such methods: what a distribution gave
            if name not in _OF_TENSORS and (receiver.node is not None or not _made_of_others(receiver.path)):
                return self.opaque(at, f"{receiver.path}.{name}", [receiver, *args.all()], public=True)
        if receiver.path in facts.PACKING and name in facts.KEEPS_SHAPE | {"pin_memory"}:
            return receiver
        if receiver.node is not None:
            return self._opaque_tensor_method(receiver, name, args, at)
        # methods of tensors and arrays by their public names; of an object of the tree its own are entered
        if name in ("data_ptr", "item", "numpy", "tolist", "size", "dim", "numel"):
            return ARRAY if name in ("numpy", "tolist") else NUMBER
        if name in facts.DETACHING:
            return Tensor(None)
        if name == "requires_grad_":
            return self.tensor_method(Tensor(None), name, args, at)
        if name in (
            "cuda",
            "to",
            "cpu",
            "float",
            "long",
            "double",
            "contiguous",
            "clone",
            "half",
            "int",
            "byte",
            "bool",
            "type",
        ):
            if name in ("cuda", "to", "cpu"):
                return receiver
            return Tensor(None, shadow=receiver.shadow)
        if facts.PREPARING.get(receiver.path) == name and args.positional:
            values = args.positional
            return values[0] if len(values) == 1 else Tuple(tuple(values))
        if name in ("get", "pop", "setdefault"):
            return self._item_of(receiver, name, args, at)
        if name in ("append", "add", "put", "push", "store", "update", "extend", "insert", "appendleft"):
            self.store_in_unknown(receiver, name, args, at)
        results = self.run_callbacks(args, at)
        given = [*args.all(), receiver, *results]
        made = self.opaque(at, f"{receiver.origin}.{name}", given, public=receiver.public)
        self.may_be_put(args, made, at)
        self._may_put_away(receiver, args, at)
        if receiver.data:
            made.data = made.node is None
            return made
        return self.unseen_call(made, name)

    def _may_put_away(self, receiver: Unknown, args: Arguments, at: ast.AST) -> None:
        """A method of whose result nothing is made did something with what it got: the object may keep it."""
        if not isinstance(self.frame.file.parent(at), ast.Expr):
            return
        for value in args.all():
            if self.nodes_of(value):
                old = self.s.get((receiver.oid, ANY))
                self.put_into(receiver, ANY, self.join(old, value) if isinstance(old, Value) else value)

    def _item_of(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        """``get``, ``pop`` or ``setdefault`` of something that cannot be seen."""
        given = args.positional
        if name == "setdefault" and len(given) > 1:
            self.set_item(receiver, given[0], given[1], at, None)
        key = f"[{given[0].value!r}]" if given and isinstance(given[0], Const) else ""
        stored = self.s.get((receiver.oid, key)) if key else None
        if isinstance(stored, Value):
            found: Value = self.unknown_attribute(receiver, key, at)
        elif self.held_in([receiver]):
            found = self.taken(at, receiver, name)
        else:
            found = self.unknown_attribute(receiver, f"[{name}]", at)
        return self.join(found, given[1]) if len(given) > 1 else found

    def entered_value(self, context: Value, at: ast.AST) -> Value:
        """What ``with context as name`` binds."""
        if isinstance(context, Sequence) and context.kind == "generator":
            return self.one_of(self.elements(context)) or self.unknown("entered")
        if isinstance(context, Instance):
            enter = context.cls.find("__enter__")
            if isinstance(enter, Function):
                return self.call_function(enter, Arguments(), at, receiver=context)
        return context

    def _enter_later(self, context: Value) -> None:
        """Enter a context until its ``ExitStack`` is left."""
        modes = {option.enabled for option in self.options(context) if isinstance(option, GradMode)}
        if modes:
            self.s.grad = modes.pop() if len(modes) == 1 and isinstance(context, GradMode) else None

    def _is_gradient(self, args: Arguments) -> bool:
        """Whether the argument of ``x.backward(...)`` on something unseen is proven to be no loss: it has no graph."""
        return all(
            isinstance(o, (Plain, Const))
            or (isinstance(o, Tensor) and not o.shadow)
            or (isinstance(o, Unknown) and o.data)
            for value in args.positional
            for o in self.options(value)
        )

    def _is_of_module(self, name: str, args: Arguments) -> bool:
        """Whether only a module has such a method, with such arguments (docs: torch.nn.Module)."""
        if name in ("eval", "train"):
            mode = [o for v in args.all() for o in self.options(v)]
            plain = all(isinstance(o, Plain) or (isinstance(o, Const) and isinstance(o.value, bool)) for o in mode)
            return plain and len(args.all()) <= (name == "train") and not args.more
        return name in ("parameters", "named_parameters", "load_state_dict", "named_modules", "requires_grad_")

    def module_method_of_unknown(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of something that behaves like a module: itself where a module would return itself."""
        assert receiver.module is not None
        if name == "module":
            return self.call_value(receiver, args, at)
        result = self.module_method(receiver.module, name, args, at)
        if receiver.path == "torch.load" and self.s.get((receiver.module.oid, "mode")) is None:
            self.s.set((receiver.module.oid, "mode"), "loaded")
        return receiver if result is receiver.module else result

    def _namespace(self) -> Unknown:
        """What the command line gives: plain data, of which the file says what are numbers."""
        made = self.unknown("argparse.Namespace", data=True, public=True)
        for option in self.frame.file.once(_numbers_asked_for, self.frame.file.tree):
            self.s.set((made.oid, option), NUMBER)
        return made

    def _opaque_tensor_method(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
        if name in ("item", "numpy", "tolist", "size", "dim", "numel", "stride", "nelement"):
            self.use(receiver, f"method:{name}", at)
            return ARRAY if name in ("numpy", "tolist") else NUMBER
        return self.tensor_method(receiver, name, args, at)


def _numbers_asked_for(tree: ast.Module) -> frozenset[str]:
    """The options of a command line that are numbers or flags, and never None, by the calls of ``add_argument`` (docs:
    argparse)."""
    numbers: set[str] = set()
    others: set[str] = set()
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        given = {k.arg: k.value for k in call.keywords}
        if call.func.attr == "set_defaults":
            others.update(name or "" for name in given)
        elif call.func.attr == "add_argument":
            name = _destination(call.args, given)
            (numbers if _is_number_option(given) else others).add(name)
    return frozenset(numbers - others)


def _destination(flags: list[ast.expr], given: dict[str | None, ast.expr]) -> str:
    named = given.get("dest")
    texts = [f.value for f in ([named] if named else flags) if isinstance(f, ast.Constant) and isinstance(f.value, str)]
    long = next((text for text in texts if text.startswith("--")), texts[0] if texts else "")
    return long.lstrip("-").replace("-", "_")


def _is_number_option(given: dict[str | None, ast.expr]) -> bool:
    if None in given or "nargs" in given:
        return False
    action, kind, default = (given.get(name) for name in ("action", "type", "default"))
    if action is not None:
        return isinstance(action, ast.Constant) and action.value in ("store_true", "store_false") and default is None
    if kind is not None and not (isinstance(kind, ast.Name) and kind.id in ("int", "float")):
        return False
    if isinstance(default, ast.UnaryOp):
        default = default.operand
    return isinstance(default, ast.Constant) and type(default.value) in (int, float)


def _made_of_others(path: str) -> bool:
    """Whether what a public path of ``torch.distributions`` names computes with what it is made of, which may be of a
    class of the tree."""
    return path.rpartition(".")[2] in _MADE_OF_OTHERS
