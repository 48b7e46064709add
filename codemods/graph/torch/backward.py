"""Backward passes, and the optimizers and gradient scalers that step by what they leave.

``walk`` is the one place where graphs are freed; all forms of ``backward`` and ``autograd.grad`` come down to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import Escape, Marked, NodeKind, WalkKind
from codemods.graph.model.nodes import Node, Place, Unseen, Value, Walk
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.trace import Step
from codemods.graph.model.values import (
    DATA,
    NONE,
    NUMBER,
    Const,
    Function,
    Mapping,
    Method,
    Optimizer,
    Parameters,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.model.walks import may_walk
from codemods.graph.run.run import Run
from codemods.source.walking import mentions_data

_BROADCASTING = frozenset(("Add", "Sub", "Mult", "Div", "neg", "scale", "add", "sub", "mul", "div"))
"""Labels of operations that combine tensors element by element: no operand has more elements than the result."""


class Backward:
    """The part of the model that runs backward and steps."""

    def __init__(self, run: Run) -> None:
        self.run = run

    # backward passes

    def walk(
        self,
        call: ast.Call,
        values: Iterable[Value],
        kind: WalkKind,
        *,
        retains: bool | None,
        creates: bool | None,
        argument: str | int | None = None,
        with_gradient: bool = False,
        inputs: tuple[Node, ...] | None = (),
    ) -> Walk:
        """Run backward through the graphs of ``values``: what it walks is freed unless it is retained."""
        run = self.run
        run.tick()
        roots: list[Node] = []
        for value in values:
            for option in run.options(value):
                if _may_have_graph(option):
                    # backward proves that it is attached, whatever it is
                    made_it = (e for e, v in run.values.items() if v is option and not isinstance(e, ast.Name))
                    run.walked_at.update(made_it)
                    roots += run.nodes_of(self.with_graph(option, call))
            roots += run.nodes_of(value)
        place = run.place(call)
        walk = Walk(place, call, tuple(dict.fromkeys(roots)), kind, retains, creates, argument)
        walk.grad = run.s.grad
        walk.with_gradient = with_gradient
        walk.inputs = inputs
        walk.cells = run.s.moment()
        seen: set[int] = set()
        for root in walk.roots:
            if not root.certain:
                self._prove_made(root)
            root.certain = True
            if not with_gradient and kind is WalkKind.BACKWARD:
                root.scalar = True
                self._prove_terms(root)
            self._prove_source(root)
            walk.seen += root.ancestors(seen)
        for node in walk.seen:
            if node.walks and not node.leaf and walk.goes_through(node):
                before = next((w for w in reversed(node.walks) if w.goes_through(node)), None)
                walk.again += [(node, before)] if before is not None else []
            node.walks.append(walk)
        run.trace.walks.append(walk)
        for at in place.chain():
            run.walked_later(walk, at.frame.yielded)
        walk.caught = run.catching > 0
        run.s.set(walk.ran, True)
        return walk

    def with_graph(self, value: Value, at: ast.AST) -> Value:
        """A value of which no graph is known, with one, where a backward proves that it is there or will do so."""
        if not _may_have_graph(value):
            return value
        label = value.path if isinstance(value, Unknown) else ""
        node = Node(self.run.birth(), NodeKind.CALL, (), self.run.place(at), saves=True, certain=False, label=label)
        self.run.trace.nodes.append(node)
        if isinstance(value, Unknown):
            node.shadow = value.shadow
            value.node = node
        elif isinstance(value, Tensor):
            node.shadow = value.shadow
            old, value = value, replace(value, node=node)
            self.run.replace_everywhere(old, value)
        return value

    def _prove_made(self, root: Node) -> None:
        """What was computed of a value before a backward proved its graph has one as well."""
        stack = [root]
        while stack:
            for child in stack.pop().children:
                if child.kind is NodeKind.OP and not child.certain and child not in self.run.perhaps_off:
                    child.certain = True
                    stack.append(child)

    @staticmethod
    def _prove_source(node: Node) -> None:
        """Where a graph can only have come from one input, that one is proven with it: a loss that is scaled or
        divided."""
        while (
            node.kind is NodeKind.OP
            and len(node.parents) == 1
            and (node.label in ("scale", "neg") or node.label.endswith(":number"))
        ):
            parent = node.parents[0]
            parent.certain = True
            parent.scalar = parent.scalar or node.scalar
            node = parent

    @staticmethod
    def _prove_terms(root: Node) -> None:
        """A tensor of one element is computed, element by element, from tensors of one element."""
        stack = [root]
        while stack:
            node = stack.pop()
            if node.kind is not NodeKind.OP or node.label.removesuffix(":number") not in _BROADCASTING:
                continue
            for parent in node.parents:
                if not parent.scalar and not parent.leaf:
                    parent.scalar = True
                    stack.append(parent)

    def backward_method(self, value: Value, args: Arguments, at: ast.AST) -> Value:
        """``value.backward(gradient, retain_graph, create_graph)`` (docs: Tensor.backward)."""
        if not isinstance(at, ast.Call):
            return NONE
        gradient = args.get(0, "gradient")
        self.walk_with(
            at,
            [value],
            args,
            WalkKind.BACKWARD,
            retain_at=1,
            create_at=2,
            with_gradient=gradient is not None and not self.run.is_none(gradient),
        )
        if gradient is not None:
            origins = (origin for origin in self.run.shadow_of([gradient]) if isinstance(origin, Node))
            self.run.trace.walks[-1].weighed = (*self.run.nodes_of(gradient), *origins)
        return NONE

    def wrapped_backward(self, args: Arguments, at: ast.AST) -> Value:
        """``self.manual_backward(loss)`` and its like: the first argument is back-propagated."""
        if isinstance(at, ast.Call) and args.positional:
            rest = Arguments(args.call, args.positional[1:], args.keywords, args.more)
            self.walk_with(at, args.positional[:1], rest, WalkKind.BACKWARD, retain_at=99, create_at=99)
        return NONE

    def walk_with(
        self,
        at: ast.Call,
        values: list[Value],
        args: Arguments,
        kind: WalkKind,
        *,
        retain_at: int,
        create_at: int,
        with_gradient: bool = False,
        inputs: Value | None = None,
    ) -> None:
        """Run backward through ``values`` as the arguments say, whose flags are at ``retain_at`` and ``create_at``;
        ``inputs`` are what gradients are taken of, if not of all."""
        argument: str | int | None = None
        given: Value | None = None
        retains: bool | None = False
        for name in ("retain_graph", "retain_variables"):
            if name in args.keywords:
                argument = name
        if argument is None and len(args.positional) > retain_at:
            argument = retain_at
        if argument is not None:
            given = args.keywords[argument] if isinstance(argument, str) else args.positional[argument]
            retains = self.run.truth(given) if isinstance(given, Const) else None
            if isinstance(given, Const) and given.value is None:
                retains = False
            elif not self._literal(at, argument):
                retains = None if retains is not False else False
        create = args.get(create_at, "create_graph")
        creates: bool | None = (
            False if create is None else (self.run.truth(create) if isinstance(create, Const) else None)
        )
        if args.more:
            retains = None
        wanted = args.keywords.get("inputs") if kind is WalkKind.BACKWARD else inputs
        walk = self.walk(
            at, values, kind, retains=retains, creates=creates, argument=argument, with_gradient=with_gradient,
            inputs=() if kind is WalkKind.BACKWARD and wanted is None else self._gradients_of(wanted),
        )  # fmt: skip
        if given is not None:
            walk.asked = self.run.truth(given)
            walk.asked_by = self._said_by(walk.place, given)

    def _said_by(self, place: Place, given: Value) -> tuple[Place, str] | None:
        """The call among those that led to ``place`` that has ``given`` as a literal, and by which keyword."""
        for caller in place.chain()[1:]:
            for keyword in caller.node.keywords if isinstance(caller.node, ast.Call) else ():
                literal = keyword.arg is not None and isinstance(keyword.value, ast.Constant)
                if literal and self.run.values.get(keyword.value) is given:
                    return caller, str(keyword.arg)
        return None

    def autograd_grad(self, args: Arguments, at: ast.Call) -> Value:
        """``torch.autograd.grad(outputs, inputs, ...)``."""
        run = self.run
        outputs = args.get(0, "outputs")
        before = list(args.all())
        creates = args.get(4, "create_graph")
        explicit = "retain_graph" in args.keywords or len(args.positional) > 3
        inputs = args.get(1, "inputs")
        for value in run.flat(inputs):
            run.wants_graph(value, "autograd.grad", at)
        self.walk_with(
            at, run.flat(outputs), args, WalkKind.GRAD, retain_at=3, create_at=4, with_gradient=True, inputs=inputs
        )
        walk = run.trace.walks[-1]
        if not explicit and walk.creates is not False:
            walk.retains = None if walk.creates is None else True
        result: Value
        if creates is not None and run.truth(creates) is not False:
            node = run.node(at, NodeKind.OP, [n for v in before for n in run.nodes_of(v)], label="autograd.grad")
            result = Tensor(node)
        else:
            result = DATA
        if isinstance(inputs, Tuple):
            return Tuple((result,) * len(inputs.items))
        return run.new_sequence([], rest=result)

    def _gradients_of(self, inputs: Value | None) -> tuple[Node, ...] | None:
        """What gradients are taken of; None where some of it cannot be seen."""
        if inputs is None:
            return None
        nodes = tuple(self.run.nodes_of(inputs))
        given = [o for v in self.run.flat(inputs) for o in self.run.options(v)]
        return nodes if nodes and all(self.run.nodes_of(o) for o in given) else None

    @staticmethod
    def _literal(call: ast.Call, argument: str | int) -> bool:
        if isinstance(argument, int):
            return argument < len(call.args) and isinstance(call.args[argument], ast.Constant)
        return any(k.arg == argument and isinstance(k.value, ast.Constant) for k in call.keywords)

    # optimizers

    def make_optimizer(self, args: Arguments, at: ast.AST, cls: ClassInfo | None = None) -> Optimizer:
        """``torch.optim.Name(params, ...)``, or one of a class of the tree."""
        given = args.get(0, "params")
        params = tuple(self.run.flat(given)) if given is not None else ()
        owned = self.run.owned(given) if given is not None else None
        if given is not None:
            self._optimized(given, at)
        return Optimizer(self.run.new_oid(), params, owned, cls)

    def _optimized(self, given: Value | None, at: ast.AST) -> None:
        """Record what an optimizer takes: anything, where some of it cannot be seen and is no module's."""
        owned = self.run.owned(given)
        parts = [option for value in self.run.flat(given) for option in self.run.options(value)]
        groups = [part for part in (given, *parts) if isinstance(part, Mapping)]
        cells = [(part.oid, key) for part in groups for key in self.run.mapping_keys(part) if key != ("key", "params")]
        if any(not node.leaf for cell in cells for node in self.run.nodes_of(self.run.s.peek(cell))):
            # what a group holds beside parameters is read by any optimizer's code
            self.run.trace.complete = False
        seen = not owned.more or all(isinstance(part, Parameters) or self.run.is_module(part) for part in parts)
        self.run.mark(Marked.OPTIMIZED, at, owned.leaves if seen else None)

    def optimizer_method(self, optimizer: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of an optimizer."""
        run = self.run
        hooks = (getattr(optimizer, "oid", 0), "step-hooks")
        if name.startswith("register_step_") and args.all():
            run.s.set(hooks, (*(run.s.get(hooks) or ()), args.all()[0]))
            run.hand_over(args, at)
            # how often it is called, and up to when, depends on steps and handles that are not followed
            run.escape_all(args.all(), Escape.CALLED_LATER)
        if name == "step":
            for hook in run.s.get(hooks) or ():
                run.called_back(hook, Arguments(None, [optimizer, Tuple(()), run.new_mapping()]), at)
                run.escape_all([hook], Escape.CALLED_LATER)
            own = optimizer.cls.find("step") if isinstance(optimizer, Optimizer) and optimizer.cls else None
            if isinstance(own, Function) and own.definition not in run.active and may_walk(own.file, own.definition):
                run.interpreter.call_value(Method(optimizer, own, name), args, at)
            closure = args.get(0, "closure")
            if closure is not None and not run.is_none(closure):
                result = run.interpreter.call_value(closure, Arguments(args.call), at)
                if not (isinstance(optimizer, Optimizer) and optimizer.once):
                    # LBFGS evaluates its closure several times
                    run.interpreter.call_value(closure, Arguments(args.call), at)
                self.stepped(at, optimizer)
                return result
            self.stepped(at, optimizer)
            return NONE
        if name == "zero_grad":
            run.mark_owned(Marked.CLEARED, at, optimizer)
            return NONE
        if name == "add_param_group":
            self._optimized(args.get(0, "param_group"), at)
        return run.unknown(f"optimizer.{name}")

    def stepped(self, at: ast.AST, optimizer: Value | None) -> None:
        """Record an optimizer step."""
        self.run.tick()
        own = optimizer.cls.find("step") if isinstance(optimizer, Optimizer) and optimizer.cls else None
        unnoticed = isinstance(own, Function) and own.file.once(mentions_data, own.file.tree)
        owned = self.run.owned(optimizer) if optimizer is not None else None
        self.run.trace.steps.append(Step(self.run.place(at), optimizer, owned, unnoticed))

    # gradient scalers

    def scaled(self, value: Value, at: ast.AST) -> Value:
        """What a gradient scaler makes of a loss; of one that cannot be seen, a backward on it shows that it has a
        graph."""
        if isinstance(value, Unknown) and value.node is None:
            return value
        dimensionless = self.run.is_dimensionless(value)
        return self.run.tensor_op(at, "scale", [value], scalar=self.run.is_scalar(value), dimensionless=dimensionless)

    def scaler_method(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of ``torch.amp.GradScaler``."""
        if name == "scale" and args.positional:
            return self.scaled(args.positional[0], at)
        if name == "step":
            self.stepped(at, args.get(0, "optimizer"))
            return NONE
        if name == "unscale_":
            self.run.mark_owned(Marked.GRADIENTS_CHANGED, at, args.get(0, "optimizer"))
        return NUMBER if name != "update" else NONE


def _may_have_graph(value: Value) -> bool:
    """Whether it may have a graph, of which none is known."""
    if isinstance(value, Unknown):
        return value.node is None
    return isinstance(value, Tensor) and value.node is None and any(isinstance(o, Unseen) for o in value.shadow)
