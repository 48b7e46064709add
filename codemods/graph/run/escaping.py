"""What code gets that cannot be seen: values that escape, what comes back, functions that may be called there."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.gradients import BACKWARD_FUNCTIONS, BACKWARD_METHODS
from codemods.graph.model.kinds import Escape, Marked, NodeKind, UnseenKind, UseKind
from codemods.graph.model.nodes import Node, Place, Shadow, Unseen, Use, Value, Walk
from codemods.graph.model.paths import canonical
from codemods.graph.model.trace import Handing
from codemods.graph.model.values import (
    Function,
    Instance,
    Library,
    Mapping,
    Method,
    Namespace,
    Optimizer,
    Parameters,
    Partial,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.model.walks import keeps, may_walk
from codemods.graph.run.contents import ANY, REST
from codemods.graph.run.uses import Uses

_WRITING = ("builtins.setattr", "builtins.delattr", "builtins.object.__setattr__", "operator.setitem")
_WALKING = BACKWARD_FUNCTIONS | {"torch.autograd.grad", "torch.Tensor.backward"}


class Escaping(Uses):
    """The part of the engine that hands values to what cannot be seen, and takes them back."""

    # code that cannot be seen

    def escape(self, value: Value | None, how: Escape) -> None:
        """Record that a value goes where code that cannot be seen may back-propagate it."""
        for node in self.nodes_of(value):
            node.escapes.append(how)

    def escape_all(self, values: Iterable[Value], how: Escape) -> None:
        """The same for all that can be come to from ``values``."""
        for node in self.reach(values, asked=True):
            node.escapes.append(how)

    def poison(self, args: Arguments, at: ast.AST) -> None:
        """Record that graphs are handed to a call that cannot be seen."""
        for value in args.all():
            for node in self.nodes_of(value):
                node.uses.append(Use(UseKind.CALLED_UNSEEN, self.place(at)))

    def opaque(
        self, at: ast.AST, label: str, inputs: Iterable[Value], *, public: bool = False, of: Value | None = None
    ) -> Unknown:
        """What a call that cannot be seen makes of ``inputs``: perhaps attached, if one of them is.

        ``label`` is a full public name, or what the program calls it: that has no dots, and says nothing. ``of`` is
        what is called, among them, where its code is Python's own or of the tree.
        """
        given = list(inputs)
        if not public:
            self.may_alter(given, at)
        label = label if public else label.rpartition(".")[2]
        for value in given:
            self.use(value, UseKind.CALL if public else UseKind.UNSEEN_CALL, at, label)
        parents = [n for value in given for n in self.nodes_of(value)] + self.held_in(given)
        # functions of torch take no gradients but where that is their purpose: these are known by their names
        models = not (public and label.startswith("torch.")) and self.brings_model(
            value for value in given if value is not of
        )
        if parents or models:
            self.trace.handings.append(Handing(self.place(at), tuple(given), models))
        node = self.node(at, NodeKind.CALL, parents, certain=False, label=label)
        made = self.unseen_result(label, node, given, at, public=public)
        if models:
            self.give_model(made)
        return made

    def unseen_result(
        self, label: str, node: Node | None, given: Iterable[Value], at: ast.AST, *, public: bool = False
    ) -> Unknown:
        """What code that cannot be seen made of ``given``, with what is not known of them."""
        made = self.unknown(label, node, public=public)
        made.shadow = tuple(o for o in self._given_away(given, at) if isinstance(o, Unseen))
        if made.node is not None:
            made.node.shadow = made.shadow
        return made

    def mixed(self, at: ast.AST, label: str, args: Arguments) -> Node | None:
        """The node of a library's result, made of its arguments without parameters; None if they have no history."""
        given = [value for value in args.all() if not isinstance(value, Parameters)]
        parents = [n for value in given for n in self.nodes_of(value)] + self.held_in(given)
        made = self.node(at, NodeKind.CALL, parents, certain=False, label=label)
        shadow = self._given_away(args.all(), at)
        if made is not None:
            made.shadow = shadow
        return made

    def _given_away(self, values: Iterable[Value], at: ast.AST) -> Shadow:
        """The shadow of the values that unseen code gets at ``at``."""
        shadow = self.shadow_of(values)
        for origin in shadow:
            if isinstance(origin, Place):
                self.trace.given_away.setdefault(id(origin.node), []).append(self.place(at))
        return shadow

    def lost(self, name: str = "item", kind: UnseenKind = UnseenKind.LOST) -> Unknown:
        """Something that is there, but that the simulation cannot name: it may carry any graph made before."""
        made = self.unknown(name)
        made.shadow = (Unseen(kind, name),)
        return made

    def gradient(self) -> Value:
        """What a read of ``.grad``, which has just been marked, gives: no graph, unless the program itself put one into
        a ``.grad``. A name for it shows what each backward adds, so that its reads are reads of the gradient."""
        if self.attached_gradients:
            return self.lost("grad")
        made = Tensor(None, gradient=True)
        self.gradients[made] = self.trace.marks[-1]
        return made

    def gradient_named(self, value: Tensor, at: ast.AST) -> None:
        """Record a read of a gradient by what a program calls it, or of a view of it."""
        for tensor in (value, *value.bases, *(alias.given for alias in value.aliases)):
            if isinstance(tensor, Tensor) and (read := self.gradients.get(tensor)) is not None:
                self.mark(read.kind, at, read.of, exact=read.exact, by=read.by)
                return

    def unseen_call(self, made: Unknown, name: str) -> Unknown:
        """What code that cannot be seen made: it may carry a graph that nothing here tells of."""
        origin = self.new_unseen(name)
        made.shadow = (origin, *made.shadow)
        if made.node is not None:
            made.node.shadow = made.shadow
        return made

    def new_unseen(self, name: str) -> Unseen:
        """A graph that code which cannot be seen may have made now."""
        origin = Unseen(UnseenKind.CALL, name)
        self.unseen_since[origin] = self.clock
        return origin

    def may_be_put(self, args: Arguments, made: Unknown, at: ast.AST) -> None:
        """Code that cannot be seen, and of whose result nothing is made, may have put some of its arguments into
        others: lists and dicts hold what it made, too."""
        if made.node is None or not self.frame.file.is_statement(at):
            return
        for value in args.all():
            for option in self.options(value):
                if isinstance(option, (Sequence, Mapping)):
                    self.lengths.pop(option.oid, None)
                    rest = self.s.get((option.oid, REST))
                    self.s.set((option.oid, REST), self.join(rest, made) if isinstance(rest, Value) else made)

    def walked_later(self, walk: Walk, since: int) -> None:
        """What a generator does after its ``yield``, and a function that code which cannot be seen calls, happens at
        another time than it is run here: what was made up to ``since`` may be walked once others have walked it."""
        for node in walk.seen if since else ():
            if node.birth <= since and not node.leaf:
                node.escapes.append(Escape.WALKED_ELSEWHERE)
                self.trace.complete = False

    def may_call(self, values: Iterable[Value]) -> None:
        """Note the functions and objects among ``values``, which code gets that cannot be seen."""
        for value in values:
            for option in self.options(value):
                if isinstance(option, Partial):
                    self.may_call([option.function, *option.args])
                elif isinstance(option, Method):
                    option = option.function or option.receiver
                if isinstance(option, Function):
                    self.trace.called_unseen.add(option.definition)
                elif isinstance(option, Instance):
                    self.trace.called_unseen.update(info.node for info in option.cls.mro())
                elif isinstance(option, (Tuple, Sequence)):
                    self.may_call(self.elements(option))

    def hand_over(self, args: Arguments, at: ast.AST) -> None:
        """Note what code that cannot be seen gets."""
        if any(
            isinstance(o, (Parameters, Optimizer)) or self.is_module(o) for v in args.all() for o in self.options(v)
        ):
            self.mark(Marked.HANDED_OUT, at)
        self.trace.handed.update(o.oid for v in args.all() for o in self.options(v) if isinstance(o, Instance))
        self.may_call(args.all())

    def run_callbacks(self, args: Arguments, at: ast.AST, *beside: Value) -> list[Value]:
        """Run the functions of the tree that are handed to code that cannot be seen; what they return and put into what
        they get there.

        They may get what is handed over with them, and what is ``beside`` that.
        """
        results: list[Value] = []
        holders = set(self.holders)
        self.hand_over(args, at)
        if any(_walks_by_itself(option) for value in args.all() for option in self.options(value)):
            self.escape_all(args.all(), Escape.CALLED_LATER)
        packed = args.keywords.get("args")
        extra = list(packed.items) if isinstance(packed, Tuple) else []
        keywords = self.keywords_in(args.keywords.get("kwargs"))
        more: list[Value] = []
        for place, value in enumerate(args.all()):
            for option in self.options(value):
                if _writes_by_itself(option):
                    # stack.callback(setattr, obj, name, value)
                    self.called_back(
                        option, Arguments(args.call, extra or args.positional[place + 1 :], args.keywords), at
                    )
                    continue
                if isinstance(option, Unknown) and option.owner is not None:
                    # a method of something that cannot be seen: it may keep what it is called with
                    self.put_away(option.owner, [*extra, *keywords.values(), *self._others(args, at, *beside)])
                kept = isinstance(option, Method) and isinstance(option.receiver, (Sequence, Mapping, Unknown))
                if kept and not more:
                    more = self._others(args, at, *beside)
                if (
                    isinstance(option, (Function, Partial))
                    or (isinstance(option, Method) and option.function is not None)
                    or (isinstance(option, Instance) and isinstance(option.cls.find("__call__"), Function))
                    or (kept and more)
                ):
                    if not extra and not keywords:
                        more = more or self._others(args, at, *beside)
                    positional = more if kept and not extra else list(extra)
                    rest = [] if kept or extra else more
                    given = Arguments(args.call, positional, dict(keywords), rest)
                    results.append(self.called_back(option, given, at))
        results += [value for oid in sorted(self.holders - holders) for value in self._kept_on(oid)]
        return results

    def put_away(self, receiver: Unknown, values: Iterable[Value]) -> None:
        """Let something that cannot be seen keep ``values``, under a name that cannot be seen."""
        for value in values:
            unseen = any(isinstance(origin, Unseen) for origin in self.shadow_of([value]))
            if unseen or self.nodes_of(value):
                # what may have a graph is no data, nor is what it is in
                receiver.data = receiver.data and not unseen
                old = self.s.get((receiver.oid, ANY))
                self.put_into(receiver, ANY, self.join(old, value) if isinstance(old, Value) else value)

    def called_back(self, function: Value, args: Arguments, at: ast.AST) -> Value:
        """Run a function of the tree as a library calls it: nobody knows how often, and who gets what it returns."""
        first, walks, now = len(self.trace.frames), len(self.trace.walks), self.clock
        with self.at_another_time():
            result = self.interpreter.call_value(function, args, at)
        for frame in self.trace.frames[first : first + 1]:
            frame.handed = True
        for walk in self.trace.walks[walks:]:
            self.walked_later(walk, now)
        self.escape_all([result], Escape.RETURNED)
        return result

    def leave_all(self, stack: Unknown) -> None:
        """Leave the contexts that a stack of them has entered."""
        for leave in reversed(self.to_leave.pop(stack.oid, [])):
            leave()

    def stops_with(self, value: Value) -> None:
        """Let a ``StopIteration`` be raised that hands on what a generator or coroutine returns (docs: its
        ``value``)."""
        stop = self.unknown("StopIteration")
        self.put_into(stop, "value", value)
        self.thrown.append(stop)

    def run_walking(self, args: Arguments, at: ast.AST) -> None:
        """Run those functions of the tree that back-propagate or keep something, which a library gets that keeps all
        else to itself."""
        walking = [value for value in args.all() if self.walking(value)]
        if walking:
            self.run_callbacks(Arguments(args.call, walking), at)

    def walking(self, value: Value) -> bool:
        """Whether it is a function, method or object of the tree whose call back-propagates or keeps something, by its
        look."""
        for option in self.options(value):
            while isinstance(option, Partial):
                option = option.function
            called = option.function if isinstance(option, Method) else option
            if isinstance(called, Instance):
                called = called.cls.find("__call__")
            if not isinstance(called, Function):
                continue
            if may_walk(called.file, called.definition) or called.file.once(keeps, called.definition):
                return True
        return False

    def _others(self, args: Arguments, at: ast.AST, *beside: Value) -> list[Value]:
        """What a function that is handed over may get of the arguments beside it."""
        given = (*args.all(), *beside)
        others = Tuple(tuple(v for v in given if not isinstance(v, (Function, Method, Partial))))
        return [self.taken(at, others)] if self.nodes_of(others) or self.held_in([others]) else []

    def keywords_in(self, value: Value | None) -> dict[str, Value]:
        """What is known to stand in a dict under texts."""
        if not isinstance(value, Mapping):
            return {}
        found = {k[1]: self.s.get((value.oid, k)) for k in self.mapping_keys(value) if isinstance(k, tuple)}
        return {k: v for k, v in found.items() if isinstance(k, str) and isinstance(v, Value)}


def _writes_by_itself(value: Value) -> bool:
    """Whether it is a function of Python, or a method of an object, that writes attributes or elements."""
    if isinstance(value, Method) and value.function is None:
        if isinstance(value.receiver, Namespace):
            return value.name in ("update", "__setitem__", "setdefault")
        return isinstance(value.receiver, Instance) and value.name == "__setattr__"
    return isinstance(value, Library) and value.path in _WRITING


def _walks_by_itself(value: Value) -> bool:
    """Whether a call of what torch has made back-propagates: ``loss.backward``, as others may call it."""
    while isinstance(value, Partial):
        value = value.function
    if isinstance(value, Method):
        return value.function is None and value.name in BACKWARD_METHODS
    return isinstance(value, Library) and canonical(value.path) in _WALKING
