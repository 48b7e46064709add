"""Functions of the tree are entered, and objects of its classes made."""

from __future__ import annotations

import ast
import builtins

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cells import Key
from codemods.graph.model.facts.layers import MODULES_WITH_PARAMETERS
from codemods.graph.model.facts.libraries import FRAMEWORK_EVALUATION
from codemods.graph.model.facts.python import UNFOLLOWED_METHODS
from codemods.graph.model.kinds import Escape, FunctionKind, GradSetting
from codemods.graph.model.memo import Asked
from codemods.graph.model.nodes import Frame, Unseen, Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.spelled import written_by
from codemods.graph.model.state import MADE
from codemods.graph.model.values import (
    NONE,
    Class,
    Const,
    Function,
    Instance,
    Library,
    Mapping,
    Plain,
    Sequence,
    Tuple,
    Unknown,
)
from codemods.graph.model.walks import keeps, may_walk
from codemods.graph.python.enumerations import members_of
from codemods.graph.python.frames import Frames
from codemods.graph.python.recursion import ends, only_computes
from codemods.graph.run.contents import BACKING
from codemods.graph.run.core import known_as
from codemods.terms.words import words

_EXCEPTIONS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
)

_CALLED_UNSEEN = (UNFOLLOWED_METHODS | words("__getitem__ __iter__ __next__ __getattr__ keys")) - words(
    "__set_name__ __set__"
)
"""Special methods that Python, torch or a library may call where the simulation does not."""

_WRITING = words(
    "__reduce__ __reduce_ex__ __getstate__ __setstate__ __copy__ __deepcopy__ __get__ __set__ __delete__ __set_name__ "
    "__delattr__ __delitem__ __missing__"
)
"""Special methods whose very purpose is to write."""

MAX_DEPTH = 24
MAX_RECURSION = 2
MAX_DIFFERENT = 8
"""How often a function is entered within itself, each time for another object or with another number."""


class Functions(Frames):
    """The part of the engine that enters functions and classes of the tree."""

    def call_function(self, function: Function, args: Arguments, at: ast.AST, receiver: Value | None = None) -> Value:
        """Enter a function of the tree; what it returns on all its paths, joined."""
        run = self.run
        definition = function.definition
        caller = run.frame
        deep = run.tired or caller.depth >= MAX_DEPTH
        within = run.active.count(definition)
        again = within >= MAX_RECURSION
        if again and not deep and within < MAX_DIFFERENT:
            again = not self._goes_down(function, args, receiver)
        if deep or again:
            return self._not_entered(function, args, receiver, at, deep=deep, again=again)
        if receiver is not None and not run.entering_root and _is_abstract(definition):
            # whoever calls it means the method of a subclass that cannot be seen
            for value in args.all():
                run.escape(value, Escape.SUBCLASS_METHOD)
            return run.unseen_call(run.opaque(at, "abstract", args.all()), "abstract")
        run.entered[definition] = function.file
        asked = self._asked_in_a_forward(function, args, receiver)
        told = self._new_frame(function, receiver, at) if asked is None or not caller.inside_module else None
        if asked is not None:
            remembered = self.remembered.recall(asked, args, at, told)
            if remembered is not None:
                run.called[definition] = function.file
                if told is not None:
                    self._end_again(told, remembered)
                return remembered
        frame = told or self._new_frame(function, receiver, at)
        saved_grad = run.s.grad
        bound = [receiver] if receiver is not None and function.kind is not FunctionKind.STATIC_METHOD else []
        given = Arguments(args.call, [*bound, *args.positional], args.keywords, args.more, args.uncounted)
        self.bind(function, frame, given, at)
        self._set_grad(function)
        frame.grad = run.s.grad
        walks = len(run.trace.walks)
        if asked is None:
            result = self.run_body(frame, definition)
        else:
            result = self.remembered.run_and_remember(
                asked, args, frame, lambda: (self.run_body(frame, definition), self.raises_here)
            )
        if isinstance(definition, ast.AsyncFunctionDef) and not isinstance(caller.file.parent(at), ast.Await):
            for walk in run.trace.walks[walks:]:
                run.walked_later(walk, frame.birth)
        if not caller.inside_module:
            self._note_left(frame, result)
        result = self._handed_out_again(function, receiver, result)
        frame.end = run.tick()
        if function.caching:
            run.trace.caching.append((frame.birth, frame.end))
        if function.grad_mode is not GradSetting.UNSET or run.s.grad is not saved_grad:
            self._leave_grad(function, saved_grad)
        return result

    def _asked_in_a_forward(self, function: Function, args: Arguments, receiver: Value | None) -> Asked | None:
        """What a call within a forward, or a forward as a whole, is remembered by; None if it must not be.

        A forward as a whole is run if it gets what a backward has been through, or what was there before one: rules ask
        where that is read.
        """
        run = self.run
        if run.frame.inside_module:
            return self.remembered.asked_for(function, args, receiver)
        whole = receiver is not None and run.is_module(receiver) and not run.entering_root and not function.caching
        if not whole or isinstance(function.definition, ast.AsyncFunctionDef):
            return None
        asked = self.remembered.asked_for(function, args, receiver)
        walked = run.trace.walks[-1].place.clock if run.trace.walks else -1
        stale = asked is not None and any(not n.leaf and (n.walks or n.birth < walked) for n in asked.nodes)
        return None if stale else asked

    def _end_again(self, frame: Frame, result: Value) -> None:
        """End the call of a remembered forward: it leaves nothing but what it returned."""
        frame.grad = self.run.s.grad
        frame.left = tuple(node for node in self.run.reach([result]) if node.birth >= frame.birth)
        frame.end = self.run.tick()

    def _not_entered(
        self,
        function: Function,
        args: Arguments,
        receiver: Value | None,
        at: ast.AST,
        *,
        deep: bool,
        again: bool,
    ) -> Value:
        """What a call gives that goes too deep, or calls ``again`` what is running already."""
        run = self.run
        if run.tired or not again:
            why = "the budget is spent" if run.tired else "nested too deeply"
            run.left_out(function.file.path, function.definition, why)
        if again and not deep and self._computes(function):
            if ends(function) and self._nothing_new(function, args, receiver):
                # it goes as deep as what it gets does: of what it returns there, the running calls say all
                self.raises_here = True
                return NONE
            return run.unseen_call(run.opaque(at, "unentered", args.all()), "unentered")
        given = [*args.all(), *([] if receiver is None else [receiver]), function]
        run.escape_all(given, Escape.NOT_ENTERED)
        return run.unseen_call(run.opaque(at, "unentered", given, of=receiver), "unentered")

    def _computes(self, function: Function) -> bool:
        key = (function.definition, function.cls is not None)
        if key not in self.run.computing:
            self.run.computing[key] = only_computes(function)
        return self.run.computing[key]

    def _new_frame(self, function: Function, receiver: Value | None, at: ast.AST) -> Frame:
        """The frame of a function that is entered from the running one."""
        run = self.run
        caller, definition = run.frame, function.definition
        place = run.place(at)
        frame = Frame(run.new_oid(), function.file, function, place, caller.depth + 1)
        frame.inside_module = caller.inside_module or (
            receiver is not None and run.is_module(receiver) and not run.entering_root
        )
        frame.root, run.entering_root = run.entering_root, False
        if not frame.root and definition not in run.active:
            # a function that only calls itself is called by nobody
            run.called[definition] = function.file
        frame.receiver = receiver
        frame.module_globals = function.module_globals
        frame.birth = run.tick()
        run.trace.frames.append(frame)
        return frame

    def _set_grad(self, function: Function) -> None:
        """Switch gradients as the decorators of a function say, or the framework that calls it."""
        if function.grad_mode is not GradSetting.UNSET:
            self.run.s.grad = function.grad_mode.value
        elif (
            function.cls is not None
            and function.cls.family == "lightning"
            and getattr(function.definition, "name", "") in FRAMEWORK_EVALUATION
        ):
            self.run.s.grad = False

    def _handed_out_again(self, function: Function, receiver: Value | None, result: Value) -> Value:
        """What a function returns, where something that decorates it may keep it: what an earlier call
        returned as well."""
        run = self.run
        marker = self.remembered.cache_of(function.definition)
        if marker is not None:
            result = self.remembered.kept_result(result, marker)
            owner = receiver.oid if isinstance(receiver, Instance) else run.kept_under(function)
            cell = (owner, f"[result of {getattr(function.definition, 'name', '')}]")
            former = run.s.get(cell)
            if isinstance(former, Value) and any(not node.leaf for node in run.nodes_of(former)):
                result = run.join(result, former)
            run.s.set(cell, result)
            run.escape_all([result], Escape.DECORATOR_HANDS_OUT)
        if function.wrapped:
            run.escape_all([result], Escape.DECORATOR_KEEPS)
        return result

    def _goes_down(self, function: Function, args: Arguments, receiver: Value | None) -> bool:
        """Whether a function that runs is called within itself for an object, or with a number, that none of its
        running calls has: of both there are only so many."""
        definition = function.definition
        if self.run.spent > self.run.budget // 3 or isinstance(definition, ast.Lambda):
            return False
        running = [frame for frame in self.run.frame.outward() if frame.definition is definition]
        # a constructor has a new object each time
        own = isinstance(receiver, Instance) and getattr(definition, "name", "") != "__init__"
        if own and all(isinstance(f.receiver, Instance) and f.receiver is not receiver for f in running):
            return True
        names = [a.arg for a in definition.args.args[receiver is not None :]]
        given = {**dict(zip(names, args.positional, strict=False)), **args.keywords}
        for name, value in given.items():
            before = [getattr(self.run.s.peek((f.fid, name)), "value", None) for f in running]
            if all(type(b) is int for b in before):
                # the last one is run with a number that is not known: whatever it may give counts
                number = type(getattr(value, "value", None)) is int and getattr(value, "value", None) not in before
                if number or isinstance(value, Plain):
                    return True
        return False

    def _nothing_new(self, function: Function, args: Arguments, receiver: Value | None) -> bool:
        """Whether of all that a function gets within itself nothing is known that was not known of what it got: it is
        part of that."""
        if receiver is not None or args.more or not args.all() or isinstance(function.definition, ast.Lambda):
            return False
        frame = next((frame for frame in self.run.frame.outward() if frame.definition is function.definition), None)
        if frame is None:
            return False
        names = [a.arg for a in function.definition.args.args]
        given = {**dict(zip(names, args.positional, strict=False)), **args.keywords}
        for name, value in given.items():
            before = self.run.s.peek((frame.fid, name))
            alike = isinstance(value, Unknown) and isinstance(before, Unknown) and value.data == before.data
            if value is not before and not (alike and (before.node is None) == (value.node is None)):
                return False
        return True

    def _note_left(self, frame: Frame, result: Value) -> None:
        """Note the graphs made in a call that has ended which are still there."""
        run = self.run
        kept: dict[Key, list[Value]] = {}
        # most calls make no node, and to look through all that was written takes long
        for owner, name in run.written if run.newest >= frame.birth else ():
            if owner < frame.fid:
                content = run.s.peek((owner, name))
                values = [v for v in (content if isinstance(content, tuple) else (content,)) if isinstance(v, Value)]
                if any(node.birth >= frame.birth for node in run.reach(values)):
                    kept[owner, name] = values
        start = _begin(frame)
        lists = self._lists_of_objects() if any(owner not in run.instances for owner, _ in kept) else {}
        found: list[Value] = [result, *frame.yields]
        for (owner, name), values in kept.items():
            holder, attribute = (owner, str(name)) if owner in run.instances else lists.get(owner, (0, ""))
            if holder <= start:
                found += values
            else:
                nodes = (node for node in run.reach(values) if node.birth >= frame.birth)
                frame.held[attribute] = (*frame.held.get(attribute, ()), *nodes)
        if run.newest >= frame.birth:
            frame.left = tuple(node for node in run.reach(found) if node.birth >= frame.birth)
        frame.left_unseen = any(
            isinstance(o, Unseen) and run.unseen_since.get(o, -1) >= frame.birth
            for o in run.shadow_of([result, *run.elements(result)])
        )

    def _lists_of_objects(self) -> dict[int, tuple[int, str]]:
        """The lists and dicts, by identity, that attributes of objects of the tree hold: the object, and the name."""
        held: dict[int, tuple[int, str]] = {}
        for (owner, name), content in self.run.s.cells().items():
            if owner in self.run.instances and isinstance(name, str) and isinstance(content, Value):
                for option in self.run.options(content):
                    if isinstance(option, (Sequence, Mapping)):
                        held[option.oid] = (owner, name)
        return held

    def _leave_grad(self, function: Function, saved: bool | None) -> None:
        # a statement torch.set_grad_enabled(...) in a callee stays in force; a decorator or context does not
        lightning = function.cls is not None and function.cls.family == "lightning"
        if function.grad_mode is not GradSetting.UNSET or lightning:
            self.run.s.grad = saved

    def instantiate(self, info: ClassInfo, args: Arguments, at: ast.AST, *, plainly: bool = False) -> Value:
        """``Class(...)``: a new object, its ``__init__`` entered; ``plainly`` if its metaclass is not asked."""
        run = self.run
        maker = info.of_metaclass("__call__")
        if isinstance(maker, Function) and not plainly:
            return self.call_function(maker, args, at, receiver=Class(info))
        behind = [meta for cls in info.mro() if cls.metaclass is not None for meta in cls.metaclass.mro()]
        self.asks_unseen([*info.mro(), *behind])
        if info.family == "function" and not _is_of_old_form(info):
            return run.unknown(info.name)
        if members := members_of(Class(info)):
            return self._member_of(info, members, args, at)
        if info.family == "optimizer":
            return self.torch.make_optimizer(args, at, info)
        leaf = None
        if info.layer in MODULES_WITH_PARAMETERS:
            leaf = run.leaf(at, info.layer)
        made = Instance(run.new_oid(), info, leaf)
        run.attributes[made.oid] = {}
        run.instances.add(made.oid)
        run.s.set((made.oid, MADE), True)
        if info.container and info.container != "record":
            run.s.set((made.oid, BACKING), self._backing(info, Arguments(), at))
        maker = info.find("__new__")
        if isinstance(maker, Function) and maker.definition not in run.active:
            given = Arguments(args.call, [Class(info), *args.positional], args.keywords, args.more)
            found = self.call_function(maker, given, at)
            own = [o for o in run.options(found) if isinstance(o, Instance) and info in o.cls.mro()]
            if len(own) != 1:
                return found
            made = own[0]
        init = info.find("__init__")
        if info.derives(_EXCEPTIONS):
            self.set_attribute(made, "args", Tuple(tuple(args.positional)), at)
        if isinstance(init, Function):
            self.call_function(init, args, at, receiver=made)
        elif info.layer:
            self.torch.begin_layer(made, args, at)
        else:
            self._fill_fields(made, args, at)
        if info.calls_differently and run.nodes_of(rest := Tuple(tuple(args.all()))):
            # what a metaclass makes of its arguments is not followed
            return run.join(made, run.taken(at, rest, info.name))
        return made

    def _member_of(self, info: ClassInfo, members: list[Value], args: Arguments, at: ast.AST) -> Value:
        """``Phase("train")``: the member of an enumeration that has a value, else what ``_missing_`` gives."""
        run = self.run
        asked: list[Value] = []
        asked += (m for m in members if isinstance(m, Const) and _is_same(args.get(0, "value"), m.value.of))
        missing = info.find("_missing_")
        if not asked and isinstance(missing, Function):
            asked = [*members, self.call_function(missing, args, at, receiver=Class(info))]
        if not asked and any(known_as(member) in run.names_kept for member in members):
            return run.lost(info.name)
        return run.one_of(asked or members) or run.unknown(info.name)

    def new_object(self, info: ClassInfo) -> Instance:
        """``object.__new__(cls)``."""
        made = Instance(self.run.new_oid(), info)
        self.run.attributes[made.oid] = {}
        self.run.instances.add(made.oid)
        self._unsettle_by(info.mro())
        return made

    def asks_unseen(self, classes: list[ClassInfo]) -> None:
        """Note what special methods of an object's ``classes`` do: when Python calls them is not followed."""
        if any(map(_acts_unseen, classes)):
            self.run.trace.complete = False
        self._unsettle_by(classes)

    def _unsettle_by(self, classes: list[ClassInfo]) -> None:
        """Note what special methods write that are called where nothing here says so."""
        for info in classes:
            if info.oid in self.run.unsettling:
                continue
            self.run.unsettling.add(info.oid)
            for name, member in info.members.items():
                if name in _CALLED_UNSEEN and isinstance(member, Function):
                    self.run.unsettle(written_by(member.file, member.definition))

    def _fill_fields(self, made: Instance, args: Arguments, at: ast.AST) -> None:
        """What a class without ``__init__`` makes of its arguments: fields of a record, what a container holds, or
        something that a base does which cannot be seen."""
        info = made.cls
        if info.container and info.container != "record":
            self.run.s.set((made.oid, BACKING), self._backing(info, args, at))
            return
        fields = info.fields(given=True)
        for name, factory in info.factories.items():
            if name not in args.keywords and name not in fields[: len(args.positional)]:
                self.set_attribute(made, name, self.call_value(factory, Arguments(), at), at)
        values = {**dict(zip(fields, args.positional, strict=False)), **args.keywords}
        passed = {name: values.pop(name, info.find(name) or NONE) for name in info.passed_on()}
        for name, value in values.items():
            self.set_attribute(made, name, value, at)
        self.torch.keep_anywhere(made, [*args.positional[len(fields) :], *args.more], at)
        after = info.find("__post_init__")
        if isinstance(after, Function):
            self.call_function(after, Arguments(None, list(passed.values())), at, receiver=made)

    def _backing(self, info: ClassInfo, args: Arguments, at: ast.AST) -> Value:
        """What an object of a class derived from a container holds at its begin."""
        kind = info.container
        if kind == "deque":
            args = Arguments(args.call, args.positional[:1])
        filled = kind if kind != "deque" else "list"
        return self.call_value(Library(f"builtins.{filled}"), args, at)


def _is_same(one: Value | None, other: Value) -> bool:
    """Whether two values are one constant."""
    return (
        isinstance(one, Const)
        and isinstance(other, Const)
        and type(one.value) is type(other.value)
        and bool(one.value == other.value)
    )


def _is_of_old_form(info: ClassInfo) -> bool:
    """Whether a class derived from ``autograd.Function`` has a ``forward`` that is called on an object of it."""
    forward = info.find("forward")
    return isinstance(forward, Function) and forward.kind is FunctionKind.FUNCTION


def _acts_unseen(info: ClassInfo) -> bool:
    """Whether a special method of a class may back-propagate, or keep something, that is not called where Python calls
    it."""
    return any(
        isinstance(method, ast.FunctionDef)
        and method.name in UNFOLLOWED_METHODS
        and (may_walk(info.file, method) or (method.name not in _WRITING and info.file.once(keeps, method)))
        for method in getattr(info.node, "body", ())
    )


def _begin(frame: Frame) -> int:
    """The identity from which on everything was made in the program that a call belongs to: 0 in a script."""
    while not frame.root and frame.call is not None:
        frame = frame.call.frame
    return frame.fid if frame.root else 0


def _is_abstract(definition: ast.AST) -> bool:
    """Whether a method does nothing but raise ``NotImplementedError``."""
    if isinstance(definition, ast.Lambda):
        return False
    body = list(getattr(definition, "body", ()))
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return False
    raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
