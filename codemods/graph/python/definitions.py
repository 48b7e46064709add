"""``def``, ``class`` and ``lambda``: functions with their decorators, classes with their members."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.gradients import GRAD_OFF, GRAD_ON, WEIGHT_CACHES
from codemods.graph.model.facts.python import PASSING_DECORATORS
from codemods.graph.model.families import family_of
from codemods.graph.model.kinds import FunctionKind, GradSetting, UnseenKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.values import Class, Const, Function, GradMode, Instance, Library, Method, Unknown
from codemods.graph.model.walks import keeps
from codemods.graph.python.assignments import Assignments
from codemods.graph.python.enumerations import set_members
from codemods.graph.python.old_forms import note_old_base
from codemods.source.walking import walk
from codemods.terms.words import words

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_SWITCHES = words("no_grad set_grad_enabled _set_grad_enabled inference_mode enable_grad requires_grad requires_grad_")


#: What decorators make of a method, by their last names.
_KINDS = {
    **{kind.value: kind for kind in (FunctionKind.STATIC_METHOD, FunctionKind.CLASS_METHOD, FunctionKind.PROPERTY)},
    "cached_property": FunctionKind.PROPERTY,
}


class Definitions(Assignments):
    """The part of the engine that defines functions and classes."""

    # functions

    def _do_FunctionDef(self, s: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.store_name(s.name, self._decorate(s, self.define_function(s)), s)

    _do_AsyncFunctionDef = _do_FunctionDef  # noqa: N815

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Value:
        """The value of a ``def`` or lambda."""
        frame = self.run.frame
        closure = 0
        if frame.function is not None:
            closure = frame.fid
            frame.captured = True
            self.run.closures[frame.fid] = frame.function.closure
        for scope, _ in frame.scopes:
            self.run.closures[scope] = closure
            closure = scope
        defaults = tuple(self.evaluate(d) for d in node.args.defaults)
        kw_defaults = tuple(
            (arg.arg, self.evaluate(d))
            for arg, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if d is not None
        )
        return Function(
            node, frame.file, closure, defaults=defaults, kw_defaults=kw_defaults, module_globals=frame.module_globals
        )

    def _decorate(self, s: ast.FunctionDef | ast.AsyncFunctionDef, value: Value) -> Value:
        for expression in reversed(s.decorator_list):
            if not isinstance(value, Function):
                break
            decorator = self.evaluate(expression)
            if isinstance(decorator, GradMode):
                if decorator.switched:
                    self.run.s.grad = decorator.previous
                value = replace(value, grad_mode=GradSetting(decorator.enabled))
            elif isinstance(decorator, Library):
                path = canonical(decorator.path)
                if path in GRAD_OFF:
                    value = replace(value, grad_mode=GradSetting.OFF)
                elif path in GRAD_ON:
                    value = replace(value, grad_mode=GradSetting.ON)
                elif (kind := _KINDS.get(path.rpartition(".")[2])) is not None:
                    value = replace(value, kind=kind)
                elif path in ("functools.singledispatch", "functools.singledispatchmethod"):
                    # which of its forms is called is not followed
                    return self.run.lost(s.name, UnseenKind.CALL)
            elif isinstance(decorator, Method) and decorator.name in ("setter", "deleter"):
                value = replace(value, kind=FunctionKind(decorator.name))
            elif isinstance(decorator, Unknown) and decorator.path in WEIGHT_CACHES:
                value = replace(value, caching=True)
            elif (made := self._applied_decorator(decorator, value, s)) is not None:
                value = made
            elif self.may_switch(expression) or (isinstance(decorator, Unknown) and not decorator.public):
                # a decorator that cannot be seen may switch gradients off
                value = replace(value, grad_mode=GradSetting.UNKNOWN)
            elif self._may_keep(decorator):
                value = replace(value, wrapped=True)
        return value

    def _may_keep(self, decorator: Value) -> bool:
        """Whether what decorates a function may keep or back-propagate what that returns."""
        if isinstance(decorator, Method) and decorator.function is not None:
            decorator = decorator.function
        if isinstance(decorator, Function):
            return decorator.file.once(keeps, decorator.definition)
        path = decorator.path if isinstance(decorator, (Library, Unknown)) else ""
        return path.partition(".")[0] not in PASSING_DECORATORS

    def _applied_decorator(self, decorator: Value, value: Function, s: ast.AST) -> Value | None:
        """What a decorator of the tree makes of a function: another function around it, or an object in its place. None
        where it is not known, or where the decorator hands the same results out again."""
        if isinstance(decorator, Class) and decorator.info.family == "plain":
            placed = self.call_value(decorator, Arguments(None, [value]), s)
            return placed if isinstance(placed, Instance) else None
        if not isinstance(decorator, Function) or self.remembered.cache_of(value.definition) is not None:
            return None
        spec = decorator.definition.args
        if not spec.args or decorator.definition in self.run.active or value.kind is not FunctionKind.FUNCTION:
            return None
        made = self.call_value(decorator, Arguments(None, [value]), s)
        return replace(made, cls=value.cls) if isinstance(made, Function) else None

    def may_switch(self, expression: ast.expr) -> bool:
        """Whether a decorator or a context manager is of the tree, and its code names what switches gradients."""
        found = [self.run.values.get(expression)]
        if isinstance(expression, ast.Call):
            found.append(self.evaluate(expression.func))
        for value in found:
            made = value.function if isinstance(value, Method) else value
            if isinstance(made, Function):
                if made.file.once(_touches_grad_mode, made.definition):
                    return True
            elif isinstance(made, (Class, Instance)):
                cls = made.info if isinstance(made, Class) else made.cls
                if any(c.file.once(_touches_grad_mode, c.node) for c in cls.mro()):
                    return True
        return False

    # classes

    def _do_ClassDef(self, s: ast.ClassDef) -> None:
        self.store_name(s.name, self._define_class(s), s)

    def _define_class(self, s: ast.ClassDef) -> Value:
        run = self.run
        named = [b for b in s.bases if not isinstance(b, ast.Starred)]
        bases = tuple(map(self.evaluate, named))
        for expression, value in zip(named, bases, strict=True):
            note_old_base(self.run, expression, value)
        info = ClassInfo(s.name, s, run.frame.file, bases, oid=run.new_oid())
        info.family = family_of(bases, {m.name for m in s.body if isinstance(m, _FUNCTIONS)})
        behind = next((self.evaluate(k.value) for k in s.keywords if k.arg == "metaclass"), None)
        info.metaclass = behind.info if isinstance(behind, Class) else None
        if info.metaclass is not None:
            # the class itself is an object of it
            self.asks_unseen(info.metaclass.mro())
        decorators = [self.evaluate(expression) for expression in s.decorator_list]
        self._subclassed(info, s)
        run.class_bodies.append((run.frame, info.members))
        try:
            self._class_body(info, s)
        finally:
            run.class_bodies.pop()
        set_members(info)
        for name, member in list(info.members.items()):
            hook = member.cls.find("__set_name__") if isinstance(member, Instance) else None
            if isinstance(hook, Function):
                self.call_function(hook, Arguments(None, [Class(info), Const(name)]), s, receiver=member)
        made: Value = Class(info)
        for decorator in reversed(decorators):
            function = decorator.function if isinstance(decorator, Method) else decorator
            if isinstance(decorator, Instance):
                function = decorator.cls.find("__call__")
            if isinstance(function, Function) and function.definition not in run.active:
                # it may put the class into a table, and most often hands it on
                handed = self.call_value(decorator, Arguments(None, [made]), s)
                made = handed if isinstance(handed, Class) else made
        return made

    def _class_body(self, info: ClassInfo, s: ast.ClassDef) -> None:
        for statement in s.body:
            if isinstance(statement, _FUNCTIONS):
                self._method(info, statement)
            elif isinstance(statement, ast.ClassDef):
                info.members[statement.name] = self._define_class(statement)
            elif isinstance(statement, ast.Assign):
                self._class_variable(info, statement)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self.evaluate(statement.value)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                if isinstance(statement.target, ast.Name):
                    name = statement.target.id
                    info.members[name] = self.evaluate(statement.value)
                    self._note_factory(info, name, statement.value)
            elif isinstance(statement, (ast.If, ast.Try, ast.With)):
                for inner in walk(statement):
                    if isinstance(inner, _FUNCTIONS):
                        made = self._decorate(inner, self.define_function(inner))
                        info.members[inner.name] = replace(made, cls=info) if isinstance(made, Function) else made

    def _method(self, info: ClassInfo, statement: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        value = self._decorate(statement, self.define_function(statement))
        if isinstance(value, Function):
            value = replace(value, cls=info)
            if value.kind is FunctionKind.SETTER:
                info.setters[statement.name] = value
            if value.kind is FunctionKind.DELETER:
                info.deleters[statement.name] = value
            if value.kind in (FunctionKind.SETTER, FunctionKind.DELETER):
                return
        info.members[statement.name] = value

    def _class_variable(self, info: ClassInfo, statement: ast.Assign) -> None:
        alias = info.members.get(statement.value.id) if isinstance(statement.value, ast.Name) else None
        value = alias if alias is not None else self.evaluate(statement.value)
        if isinstance(value, Function):
            value = replace(value, cls=info)
        for target in statement.targets:
            if isinstance(target, ast.Name):
                info.members[target.id] = value

    def _subclassed(self, info: ClassInfo, s: ast.ClassDef) -> None:
        """Call ``__init_subclass__`` of a base with the keywords of a class."""
        given = {k.arg: self.evaluate(k.value) for k in s.keywords if k.arg is not None and k.arg != "metaclass"}
        if info.metaclass is not None and any(map(self.run.nodes_of, given.values())):
            # what a metaclass makes of them is not followed
            self.run.trace.complete = False
        hook = info.find("__init_subclass__", after=info)
        if isinstance(hook, Function):
            self.call_function(hook, Arguments(None, [], given), s, receiver=Class(info))

    def _note_factory(self, info: ClassInfo, name: str, expression: ast.expr) -> None:
        """``field(default_factory=list)`` of a dataclass: each object gets one of its own."""
        if isinstance(expression, ast.Call):
            function = self.evaluate(expression.func)
            for keyword in expression.keywords:
                if keyword.arg == "default_factory" and isinstance(function, (Library, Class, Function)):
                    info.factories[name] = self.evaluate(keyword.value)


def _touches_grad_mode(definition: ast.AST) -> bool:
    """Whether the code of a function or a class names anything that switches gradients on or off."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _SWITCHES)
        or (isinstance(node, ast.Name) and node.id in _SWITCHES)
        for node in walk(definition)
    )
