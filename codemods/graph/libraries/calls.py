"""Calls of libraries, looked up by their public path."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import replace

from codemods.graph.libraries.table import handlers_of
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.libraries import (
    BAR_LIBRARIES,
    DATA_LIBRARIES,
    LOGGING_LIBRARIES,
    LOOKING_LIBRARIES,
    MODEL_LIBRARIES,
    NUMERIC_LIBRARIES,
    TORCH_LIBRARIES,
)
from codemods.graph.model.facts.memory import COLLECTIVES, IN_PLACE_OPERATORS
from codemods.graph.model.facts.operations import TAKES_NUMBERS
from codemods.graph.model.facts.python import CARRYING_LIBRARIES, PUTTING_METHODS
from codemods.graph.model.kinds import Altered, Escape, Marked, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.trace import Handing
from codemods.graph.model.values import (
    NONE,
    Instance,
    Module,
    Tensor,
    Tuple,
    Unknown,
    options_of,
)
from codemods.graph.torch.model import Torch
from codemods.terms.words import words

_KNOWN = frozenset(
    (
        *(name.partition(".")[0] for name in MODEL_LIBRARIES | CARRYING_LIBRARIES),
        *NUMERIC_LIBRARIES,
        *TORCH_LIBRARIES,
        *DATA_LIBRARIES,
        *LOGGING_LIBRARIES,
        *LOOKING_LIBRARIES,
        *BAR_LIBRARIES,
        *sys.stdlib_module_names,
    )
)
"""Python's modules, and libraries whose functions write to no tensor unless their names say so."""

_OF_TENSORS = words("torch torch.linalg torch.special torch.fft torch.autograd torch.nn.functional torch.distributed")
"""Where the functions stand whose first argument is a tensor, or a list of such."""


def _begins_object(head: str, args: Arguments) -> bool:
    """Whether ``Base.__init__(self, ...)`` of a class that is not in the tree, nor a builtin, gets an object of it."""
    return bool(args.positional) and isinstance(args.positional[0], Instance) and not head.startswith("builtins.")


def _answered_by_objects(values: Iterable[Value]) -> bool:
    """Whether an object of the tree answers a function of torch that gets it (docs: Extending PyTorch)."""
    return any(
        isinstance(option, Instance) and option.cls.find("__torch_function__") is not None
        for value in values
        for option in options_of(value)
    )


class Libraries:
    """Calls of libraries, each by its handler."""

    def __init__(self, torch: Torch) -> None:
        self.torch = torch
        self.run = torch.run

    def call_library(self, path: str, args: Arguments, at: ast.AST) -> Value:
        """A call of something outside the tree, by its full name."""
        path = canonical(path)
        head, _, last = path.rpartition(".")
        if last == "__init__" and (head.startswith("torch.nn.") or _begins_object(head, args)):
            self.torch.begin_base(args, at)
            return NONE
        self._notice(path, head, last, args, at)
        if head in _OF_TENSORS and last not in TAKES_NUMBERS and last != "Variable":
            # Variable makes an empty tensor of None
            args = self._where_it_ran(args)
        if path.startswith("torch.") and _answered_by_objects(self.run.flat(Tuple(tuple(args.all())))):
            # it may keep or give anything
            self.run.escape_all(args.all(), Escape.CALLED_LATER)
            return self.run.unseen_call(self.run.opaque(at, last, args.all()), last)
        for handler in handlers_of(path):
            found = handler(self.torch, path, args, at)
            if found is not None:
                return found
        return self._unlisted_call(path, args, at)

    def _where_it_ran(self, args: Arguments) -> Arguments:
        """The arguments of a function that takes a tensor first, as they are where that has not raised."""
        positional, keywords = list(args.positional), dict(args.keywords)
        if positional:
            positional[0] = self.run.only_tensors(positional[0])
        elif "input" in keywords:
            keywords["input"] = self.run.only_tensors(keywords["input"])
        return replace(args, positional=positional, keywords=keywords)

    def _notice(self, path: str, head: str, last: str, args: Arguments, at: ast.AST) -> None:
        """Record what a call does beside what it gives."""
        run = self.run
        self._fill(head, last, args, at)
        if head == "operator" and last in IN_PLACE_OPERATORS and args.positional:
            run.alter(args.positional[0], Altered.VALUES, at)
        if head in _OF_TENSORS and last not in TAKES_NUMBERS and args.positional:
            for value in run.flat(args.positional[0]):
                run.wants_tensor(value, path, at)
        if path == "torch.save" and args.positional:
            whole = (o for o in run.options(args.positional[0]) if isinstance(o, Instance))
            run.trace.saved.update(o.cls for o in whole if o.cls.is_module)
        if last.startswith("register_") and last.endswith("hook") and path.startswith("torch."):
            # one for several tensors, or for all modules
            run.mark(Marked.HOOK, at)
            if last in ("register_module_forward_hook", "register_module_forward_pre_hook") and args.all():
                run.add_hook(0, None, args, before=last.endswith("pre_hook"))
            else:
                run.run_callbacks(args, at)
                if last.endswith("registration_hook"):
                    # it gets all buffers, modules or parameters that are registered from here on
                    run.trace.complete = False
        if run.interpreter.answers(path):
            run.escape_all(args.all(), Escape.STORED_ANYWHERE)
        if last == "saved_tensors_hooks":
            run.mark(Marked.SAVED_TENSORS_HOOKS, at)
            run.run_callbacks(args, at)

    def _fill(self, head: str, last: str, args: Arguments, at: ast.AST) -> None:
        """Record what a function writes to: ``out=``, the tensors of a collective, what ``torch.relu_`` is given."""
        run = self.run
        filled = [args.keywords.get("out")]
        in_place = last.endswith("_") and (not last.startswith("_") or last.startswith("_foreach_"))
        if args.positional and (in_place or (head == "torch.distributed" and last in COLLECTIVES)):
            filled.append(args.positional[0])
        for value in filled:
            for tensor in run.flat(value):
                run.alter(tensor, run.altered_by(last), at)
        if in_place and head == "torch" and run.s.grad is not False and run.parents_of(args.all()[1:]):
            for tensor in run.options(args.positional[0]) if args.positional else ():
                if isinstance(tensor, Tensor):
                    run.write_through(tensor, run.tensor_op(at, last, args.all()), at)

    def _unlisted_call(self, path: str, args: Arguments, at: ast.AST) -> Value:
        """A call of which only the name is known."""
        run = self.run
        top, last = path.partition(".")[0], path.rpartition(".")[2]
        results = run.run_callbacks(args, at)
        for value in args.all():
            run.use(value, UseKind.CALL, at, path)
        if top not in _KNOWN:
            run.may_alter(args.all(), at)
            if last in PUTTING_METHODS and path.count(".") > 1:
                for value in args.all():
                    run.use(value, UseKind.STORED_UNSEEN, at, path)
        models = top != "torch" and (run.brings_model(args.all()) or bool(run.parents_of(results)))
        run.trace.handings.append(Handing(run.place(at), tuple(args.all()), models))
        given = Arguments(args.call, [*args.all(), *results])
        result = run.unknown(path, run.mixed(at, path, given), public=True)
        result.shadow = run.shadow_of(args.all())
        run.may_be_put(args, result, at)
        if models:
            run.give_model(result)
        if result.node is None and any(isinstance(o, (Tensor, Unknown)) for v in args.all() for o in run.options(v)):
            # what looks like a function may be a module that was imported
            run.unseen_call(result, path)
        if last.rpartition("_")[2] == "loss" or "Loss" in last:
            # a library's name may only keep it from being taken for a module
            return result
        first = args.positional[0] if args.positional else NONE
        # a wrapper around a module: most often still a module
        return result if run.nodes_of(result) else self._wrapped(first, result, models=models)

    def _wrapped(self, module: Value, made: Unknown, *, models: bool) -> Value:
        """What a call made of a module: that module, inside of what it made; else what it made."""
        if isinstance(module, (Module, Instance)) and self.run.is_module(module):
            return replace(module, within=made) if models else module
        if isinstance(module, Unknown) and module.module is not None:
            made.module, made.within = module.module, made
        return made
