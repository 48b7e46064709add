"""Modules of ``torch.nn``, and modules whose class cannot be seen: made, called, asked for their parts.

Of modules whose class stands in the tree the code itself is run; they come here only for what they inherit.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import (
    BASE_LAYERS,
    LOSS_MODULES,
    MODULE_CONTAINERS,
    MODULES_WITH_PARAMETERS,
    MODULES_WITHOUT_PARAMETERS,
    OF_INDICES,
    PACKING,
    PADDING_MASKS,
    PAIR_STATE,
    RECURRENT,
    TUPLE_OUTPUT,
    WRAPPING_LAYERS,
)
from codemods.graph.model.facts.libraries import KEEPING_NOTHING
from codemods.graph.model.facts.memory import INPLACE_OF_LAYER, SHARING_LAYERS
from codemods.graph.model.kinds import Escape, Marked, ModuleMode, NodeKind
from codemods.graph.model.nodes import Place, Unseen, Value
from codemods.graph.model.trace import Forward
from codemods.graph.model.values import (
    DATA,
    Const,
    Function,
    Hook,
    Instance,
    Library,
    Mapping,
    Method,
    Module,
    Partial,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.run.contents import ANY, ITEMS, REST
from codemods.graph.run.joins import MAX_OPTIONS
from codemods.graph.torch.tensors import Tensors

LAYER = "[layer]"
"""Where an object keeps what it is by the class of ``torch.nn`` that its own one derives from."""

AS_NAMED = "[as named]"
"""Where a container of modules keeps its parts as they were when the last of them came in under a known name, or when
it was made."""


class Layers(Tensors):
    """The part of the engine that knows modules."""

    # what the layers above supply

    def module_method(self, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method that every ``nn.Module`` has, called on a module."""
        raise NotImplementedError

    # made

    def blob(self, at: ast.AST, name: str) -> Module:
        """A module whose class cannot be seen."""
        return Module(self.run.new_oid(), "", self.run.leaf(at, name))

    def make_module(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """``torch.nn.Name(...)``."""
        run = self.run
        oid = run.new_oid()
        if name in MODULE_CONTAINERS:
            made = Module(oid, name)
            items: list[Value] = []
            several: list[Value] = []
            for value in args.positional:
                if isinstance(value, (Sequence, Tuple, Mapping)):
                    once, more = run.apart(value)
                    items += once
                    several += more
                else:
                    items.append(value)
            more = [o for value in args.more for v in run.flat(value) for o in run.options(v)]
            if len(more) > MAX_OPTIONS and all(run.is_module(o) for o in more):
                # one after the other, each once: a join of so many would forget that they are modules
                items += list(dict.fromkeys(more))
                more = []
            more += several
            run.s.set((oid, ITEMS), tuple(items))
            if more:
                run.s.set((oid, REST), run.one_of(more))
            else:
                run.s.set((oid, AS_NAMED), run.s.get((oid, ITEMS)))
                for key, value in run.keywords_in(args.get(0, "modules")).items():
                    run.s.set((oid, ("key", key)), value)
            return made
        if name in MODULES_WITH_PARAMETERS:
            bound = args.get({"Embedding": 3, "EmbeddingBag": 2}.get(name, -1), "max_norm")
            scales = name.startswith("Embedding") and bound is not None and not run.is_none(bound)
            return Module(oid, name, run.leaf(at, name), inplace=scales)
        if name in LOSS_MODULES:
            scalar = self.is_reduced(args) or not args.keywords
            plain = not args.more and len(args.positional) <= 1
            return Module(oid, name, scalar_output=scalar, dimensionless_output=scalar and plain)
        affine = args.keywords.get("affine")
        if name.startswith("InstanceNorm") and affine is not None and run.truth(affine) is not False:
            return Module(oid, name, run.leaf(at, name))
        if name in MODULES_WITHOUT_PARAMETERS or name in ("Module",):
            flag = args.get(INPLACE_OF_LAYER.get(name, -1), "inplace")
            writes = name in INPLACE_OF_LAYER and (bool(args.more) or run.may_be_true(flag))
            surely = writes and not args.more and flag is not None and run.truth(flag) is True
            return Module(oid, name, inplace=writes, overwrites=surely and "Dropout" not in name)
        if name[:1].isupper():
            return Module(oid, name, run.leaf(at, name))
        return run.unknown(f"torch.nn.{name}")

    def named_part(self, modules: Value, name: object) -> Value | None:
        """What a ``ModuleDict``, or a ``Sequential`` of a dict, holds under a name, as long as all that came in came
        under known names since it was made."""
        if not isinstance(modules, Module) or modules.name not in MODULE_CONTAINERS:
            return None
        found = self.run.s.get((modules.oid, ("key", name)))
        return found if self._all_named(modules) and isinstance(found, Value) else None

    def _all_named(self, modules: Module | Instance) -> bool:
        unchanged = self.run.s.get((modules.oid, ITEMS)) is self.run.s.get((modules.oid, AS_NAMED))
        return unchanged and self.run.s.get((modules.oid, REST)) is None

    def put_named(self, modules: Module | Instance, name: Value | None, part: Value) -> None:
        """Put a module into a container of modules under a name."""
        known = self._all_named(modules) and isinstance(name, Const) and isinstance(name.value, str)
        self.put_part(modules, part)
        if known and isinstance(name, Const):
            self.run.s.set((modules.oid, ("key", name.value)), part)
            self.run.s.set((modules.oid, AS_NAMED), self.run.s.get((modules.oid, ITEMS)))

    # derived from

    def layer_of(self, value: Value) -> Module | None:
        """What an object is by the class of ``torch.nn`` that its own one derives from: the two have one identity, and
        so the same parts and parameters."""
        if not isinstance(value, Instance) or value.cls.layer not in BASE_LAYERS:
            return None
        found = self.run.s.get((value.oid, LAYER))
        return found if isinstance(found, Module) else Module(value.oid, value.cls.layer, value.leaf)

    def begin_layer(self, derived: Instance, args: Arguments, at: ast.AST) -> None:
        """What ``__init__`` of that class does to the object."""
        name = derived.cls.layer
        model = args.get(0, "module") if name in WRAPPING_LAYERS else None
        if model is not None:
            self.run.interpreter.set_attribute(derived, "module", model, at)
        if name not in BASE_LAYERS or derived.leaf is not None:
            return
        made = self.make_module(name, args, at)
        assert isinstance(made, Module)
        if name in MODULE_CONTAINERS:
            for cell in (ITEMS, REST):
                held = self.run.s.get((made.oid, cell))
                if held is not None:
                    self.run.s.set((derived.oid, cell), held)
        self.run.s.set((derived.oid, LAYER), replace(made, oid=derived.oid))

    def put_part(self, container: Module | Instance, *parts: Value) -> None:
        """Put modules after those that a container of modules holds."""
        self.run.s.set((container.oid, ITEMS), (self.run.s.get((container.oid, ITEMS)) or ()) + parts)

    def begin_base(self, args: Arguments, at: ast.AST) -> None:
        """``Base.__init__(self, ...)`` of a class that is not in the tree."""
        if args.positional and isinstance(args.positional[0], Instance):
            made, rest = args.positional[0], Arguments(args.call, args.positional[1:], args.keywords, args.more)
            self.begin_layer(made, rest, at)
            self.keep_anywhere(made, rest.all(), at)

    def keep_anywhere(self, made: Instance, given: list[Value], at: ast.AST) -> None:
        """What a base that cannot be seen gets when an object is made: it may lie under any name then."""
        run = self.run
        rest = Tuple(tuple(given))
        if not run.nodes_of(rest) and not run.held_in([rest]):
            return
        kept = run.taken(at, rest, made.cls.name)
        if made.cls.distribution():
            # nobody but its own methods comes by it
            run.s.set((made.oid, ANY), kept)
            run.attributes.setdefault(made.oid, {})[ANY] = None
        else:
            run.interpreter.set_attribute(made, ANY, kept, at)

    # called

    def call_module(self, module: Module, args: Arguments, at: ast.AST, owner: Value | None = None) -> Value:
        """The forward of a module of the library, or of one that cannot be seen."""
        first = self.run.clock + 1
        grad = self.run.s.grad
        args = self.run_pre_hooks(module, args, at)
        result = self.run_hooks(module, args, self.layer_output(module, args, at), at)
        self.forwarded(at, owner or module, first, grad, "forward", args)
        return result

    def hooks_of(self, module: Module | Instance, *, before: bool) -> list[Hook]:
        """The hooks that run before or after a forward of a module.

        Parts of a module that cannot be seen run in its forward, so their hooks do as well.
        """
        opaque = isinstance(module, Module) and not module.name
        return [
            hook
            for hook in self.run.hooks
            if hook.before is before
            and (hook.oid in (module.oid, 0) or (opaque and (hook.leaf is None or hook.leaf is module.leaf)))
        ]

    def run_pre_hooks(self, module: Module | Instance, args: Arguments, at: ast.AST) -> Arguments:
        """What a forward gets when the hooks have had it that run before."""
        for hook in self.hooks_of(module, before=True):
            if not self._runs(hook):
                self.run.escape_all(args.all(), Escape.HOOK)
                continue
            given = self._given_to(hook, module, args, at)
            instead = self.run.interpreter.call_value(hook.function, Arguments(None, given), at)
            if hook.keywords and not self.run.is_none(instead):
                # a pair: which values it puts where is not followed
                args = replace(args, more=[*args.more, instead])
            elif not self.run.is_none(instead):
                given = list(instead.items) if isinstance(instead, Tuple) else [instead]
                joined = [self.run.join(old, new) for old, new in zip(args.positional, given, strict=False)]
                args = replace(args, positional=[*joined, *args.positional[len(joined) :]])
        return args

    def run_hooks(self, module: Module | Instance, args: Arguments, result: Value, at: ast.AST) -> Value:
        """What a forward gives when the hooks have had it that are registered on the module."""
        run = self.run
        if not run.hooks or run.s.grad is False:
            return result
        for hook in self.hooks_of(module, before=False):
            if self._runs(hook):
                given = Arguments(None, [*self._given_to(hook, module, args, at), result])
                instead = run.interpreter.call_value(hook.function, given, at)
                result = result if run.is_none(instead) else run.join(result, instead)
            else:
                run.escape_all([*args.all(), result] if hook.keywords is None else [result], Escape.HOOK)
        return result

    def _given_to(self, hook: Hook, module: Module | Instance, args: Arguments, at: ast.AST) -> list[Value]:
        """What a hook gets before the result."""
        given: list[Value] = [module, Tuple(tuple(args.positional))]
        if hook.keywords:
            named = Arguments(None, [], args.keywords, args.more)
            given.append(self.run.interpreter.call_value(Library("builtins.dict"), named, at))
        return given

    def _runs(self, registered: Hook) -> bool:
        """Whether a hook is a function of the tree, or something like one, whose arguments are known; that it runs is
        noted."""
        hook: Value | None = registered.function
        while isinstance(hook, (Partial, Instance)):
            hook = hook.function if isinstance(hook, Partial) else hook.cls.find("__call__")
        function = hook.function if isinstance(hook, Method) else hook
        if isinstance(function, Function):
            self.run.trace.hooks.add(function.definition)
        return isinstance(hook, (Function, Method)) and registered.keywords is not None

    def layer_output(self, module: Module, args: Arguments, at: ast.AST) -> Value:
        """What the forward of a module makes of its inputs, without the hooks."""
        run = self.run
        name = module.name
        given: Value = args.get(0, "input") or run.one_of(args.all()) or DATA
        if name == "Sequential" and module.oid not in run.running:
            run.running.add(module.oid)
            children = list(run.s.get((module.oid, ITEMS)) or ())
            rest = run.s.get((module.oid, REST))
            value = given
            try:
                for child in [*children, *([rest] if isinstance(rest, Value) else [])]:
                    value = run.interpreter.call_value(child, Arguments(args.call, [value]), at)
            finally:
                run.running.discard(module.oid)
            return value
        if module.inplace and module.leaf is not None:
            # rows that are too long are scaled in the table itself
            run.mark_owned(Marked.PARAMETERS_CHANGED, at, module)
        elif module.inplace:
            run.write(given, [given], at, sure=module.overwrites)
        elif not name:
            run.may_alter(args.all(), at)
        shadow = run.shadow_of(args.all())
        computed = args.all()
        if name in OF_INDICES and not args.more:
            # whole numbers have no graph, whatever they come from
            computed = computed[1:]
            mine = run.shadow_of(computed)
            shadow = tuple(o for o in shadow if o in mine or not isinstance(o, Unseen))
        inputs = run.parents_of(computed) + run.held_in(computed)
        leaves = run.parameter_leaves(module)
        scalar = module.scalar_output
        made = run.node(
            at,
            NodeKind.MODULE,
            [*inputs, *leaves],
            scalar=scalar,
            dimensionless=module.dimensionless_output,
            label=name or "module",
        )
        mask = args.get(PADDING_MASKS.get(name, -1), "src_key_padding_mask")
        if name in PADDING_MASKS and (args.more or (mask is not None and not run.is_none(mask))):
            run.mark(Marked.PADDED, at, inputs)
        known = module.leaf is not None and module.leaf.label.startswith(KEEPING_NOTHING)
        if made is not None:
            made.shadow = shadow
            # what unseen code made of one may keep a graph
            made.public = known and module.within is None
            run.drawn(args.all(), made)
            if name in RECURRENT and args.positional and isinstance(args.positional[0], Tensor):
                run.trace.unpacked.add(made)
        if name in TUPLE_OUTPUT:
            first: Value = Tensor(made)
            second: Value
            options = run.options(args.get(0, "input") or DATA)
            packed = [o for o in options if isinstance(o, Unknown) and o.path in PACKING]
            if packed:
                # what comes of a packed sequence is one
                sequence = run.unknown(packed[0].path, made, public=True)
                first = sequence if len(packed) == len(options) else run.join(first, sequence)
            if name in PAIR_STATE:
                if name == "LSTMCell":
                    return Tuple((Tensor(made), Tensor(made)))
                second = Tuple((Tensor(made), Tensor(made)))
            else:
                second = Tensor(made)
            return Tuple((first, second))
        if not name:
            output = run.unknown("output", made)
            output.shadow = shadow
            # of data, and with nothing recorded, a model that keeps no graph makes data
            output.data = known and not inputs and made is None and not any(isinstance(o, Unseen) for o in shadow)
            return output
        tensor = Tensor(made, scalar, shadow=shadow)
        return run.may_share(given, tensor) if name in SHARING_LAYERS else tensor

    def forwarded(
        self,
        at: ast.AST,
        module: Value,
        first: int,
        grad: bool | None,
        method: str,
        args: Arguments,
        closed: Function | None = None,
    ) -> None:
        """Record a forward, unless it is part of another one; ``closed`` is a method that let no graph out."""
        run = self.run
        if not run.frame.inside_module:
            while run.trace.forwards and run.trace.forwards[-1].first >= first:
                run.trace.forwards.pop()
            seen = module.module if isinstance(module, Unknown) and module.module is not None else module
            mode = run.s.get((getattr(seen, "oid", 0), "mode")) or self._mode_of_parts(seen)
            volatile = tuple(o for o in run.shadow_of(args.all()) if isinstance(o, Place))
            run.trace.forwards.append(
                Forward(run.place(at), module, first, run.clock + 1, grad, method, args, volatile, mode, closed)
            )

    def _mode_of_parts(self, module: Value) -> ModuleMode | None:
        """Loaded, for a module that no mode was set for as a whole, if a part of it was loaded or evaluates."""
        modes = (self.run.s.peek((getattr(part, "oid", 0), "mode")) for part in self.submodules(module, deep=True)[1:])
        return ModuleMode.LOADED if any(mode in (ModuleMode.LOADED, ModuleMode.EVAL) for mode in modes) else None

    def submodules(self, module: Value, *, deep: bool) -> list[Value]:
        """The modules in a module, each once; ``deep`` for itself and all below."""
        found: list[Value] = [module] if deep else []
        seen = {getattr(module, "oid", None)}
        queue = [module]
        while queue:
            for child in self.run.children_of(queue.pop(0)):
                for option in self.run.options(child):
                    if self.run.is_module(option) and getattr(option, "oid", None) not in seen:
                        seen.add(getattr(option, "oid", None))
                        found.append(option)
                        if deep:
                            queue.append(option)
        return found
