"""Calls functions that the run did not reach, at its end: with what is alive then, as the program itself would.

Arguments come from the nearest call in sight, read where its names mean something (the frames that are alive, the
modules), else from what is called like the parameters there. What cannot be had is said and not invented; whether what
was found fits, the call itself shows: the original is called first, and an error there proves nothing of a rewrite.
"""

from __future__ import annotations

import inspect
import os
import sys
import typing
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

from ..guarding.guard import Write
from ..lines import errors
from ..lines.sites import Tree
from ..state import returned
from . import recipes
from .madeup import Made, Unmade

#: Stops all writing; returns what watches lines anew, and returns the list that gets those which run.
Silence = typing.Callable[[], typing.Callable[..., typing.List[Any]]]  # noqa: UP006
_TAKE = "__codemod_take__"
#: Each function is called so often: what the first call leaves behind meets the second.
_CALLS = 2


class Drive:
    """Calls the functions ``wanted`` (as :class:`verify.reaching.drives.Drive` has them); writes ``driven`` events.

    With ``strict`` an error ends the run like any other, else it is only told.
    """

    def __init__(self, config: dict[str, Any], tree: Tree, write: Write) -> None:
        self._wanted = config.get("drive") or []
        self._strict = bool(config.get("strict"))
        self._make_up = bool(config.get("make_up"))
        self._root = config["root"]
        self._tree = tree
        self._write = write
        self._modules: dict[str, ModuleType] = {}
        self._frames: list[FrameType] = []

    @property
    def waiting(self) -> bool:
        """Whether there is anything to call."""
        return bool(self._wanted)

    def run(
        self,
        frames: list[FrameType],
        came_back: Callable[[int, list[Any], int, Any, tuple[Any, ...]], None],
        silence: Silence,
    ) -> BaseException | None:
        """Call all of them, ``frames`` being alive, the innermost first; return the error that ends the run, if any.

        ``came_back(number, site, call, values, before)`` is told what was returned and what the arguments are
        afterwards, and what they were. ``silence`` stops all writing in a forked process, see :mod:`.madeup`.
        """
        wanted, self._wanted = self._wanted, []
        self._frames = [frame for frame in frames if self._tree.relative(frame.f_code.co_filename) is not None]
        for number, one in enumerate(wanted):
            event: dict[str, Any] = {"event": "driven", "path": one["path"], "name": one["name"], "how": "", "call": 0}
            event.update(reason="", error=None, recipe=None)
            try:
                function, arguments, named = self._prepared(one, event, silence)
            except Unmade as reason:
                self._write({**event, "reason": str(reason)})
                continue
            except Exception as error:
                self._write({**event, "reason": f"{type(error).__name__} while its arguments were made"})
                continue
            given = (arguments, named, _owner(function))
            for call in range(1, _CALLS + 1):
                event["call"] = call
                self._write({**event, "event": "drive"})
                known = returned.before(given)
                try:
                    result = recipes.call(function, arguments, named)
                except BaseException as error:
                    if self._strict:
                        return error
                    event["error"] = errors.uncaught(error, error.__traceback__, self._tree)
                    self._write(event)
                    break
                came_back(number, [one["path"], 1, one["name"]], call, (result, *given), known)
                self._write(event)
        return None

    # What is called.

    def _prepared(
        self, one: dict[str, Any], event: dict[str, Any], silence: Silence
    ) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """What is at hand, else what can be made up; ``event`` is told which."""
        if one.get("recipe") is None:
            try:
                *call, event["how"] = self._call(one)
                return tuple(call)  # type: ignore[return-value]
            except Unmade:
                if not self._make_up:
                    raise
        made = Made(self, one, silence)
        recipe = one.get("recipe") or made.found()
        event.update(recipe=recipe, how=made.told(recipe))
        return made.call(recipe)

    def _call(self, one: dict[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]:
        """(function, arguments, named arguments, how they were found)."""
        for site in one["sites"]:
            for scope in self._scopes(site):
                try:
                    function = eval(site["function"], scope)
                    if not self._means(function, one):
                        continue
                    arguments, named = eval(site["arguments"], {**scope, _TAKE: _take})
                except Exception:
                    continue
                return function, arguments, named, f"as {site['path']}:{site['line']} calls it"
        function = self.found(one)
        return (function, *self._by_name(function), "with what is called like its parameters")

    def _means(self, function: Any, one: dict[str, Any]) -> bool:
        """Whether calling ``function`` runs the function that is wanted."""
        name = one["name"]
        if inspect.isclass(function):
            code = getattr(getattr(function, "__init__", None), "__code__", None)
        else:
            if not hasattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__"):
                function = getattr(type(function), "forward", None)
            plain = inspect.unwrap(getattr(function, "__func__", function))
            code = getattr(plain, "__code__", None)
        if code is None or code.co_name != name.rpartition(".")[2]:
            return False
        return bool(self._tree.relative(code.co_filename) == one["path"])

    def found(self, one: dict[str, Any]) -> Callable[..., Any]:
        """The function itself; a method of an object that is alive. Raises :class:`Unmade` where it is not there."""
        owner, _, last = one["name"].rpartition(".")
        thing = self.kind(one)
        if not owner:
            function = getattr(thing, last, None)
        elif last == "__init__":
            function = thing
        else:
            kind = inspect.getattr_static(thing, last, None)
            if isinstance(kind, (staticmethod, classmethod)):
                function = getattr(thing, last)
            else:
                function = getattr(self.instance(thing), last, None)
        if not callable(function):
            raise Unmade(f"{one['name']} is not made where it stands")
        found: Callable[..., Any] = function
        return found

    def kind(self, one: dict[str, Any]) -> Any:
        """The class that the function stands in; its module, where it is none's."""
        thing: Any = self._module(one["path"])
        for part in one["name"].split(".")[:-1]:
            thing = getattr(thing, part, None)
        return thing

    def arguments(self, site: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call of the program's, where its names mean something. Raises what that raises."""
        error: Exception = Unmade("nothing is alive that the call needs")
        for scope in self._scopes(site):
            try:
                found: tuple[tuple[Any, ...], dict[str, Any]] = eval(site["arguments"], {**scope, _TAKE: _take})
            except Exception as each:
                error = each
                continue
            return found
        raise error

    def instance(self, kind: Any) -> Any:
        """An object of the class ``kind`` that is alive. Raises :class:`Unmade` where none is."""
        if not isinstance(kind, type):
            raise Unmade("its class is not made where it stands")
        for thing in self._alive():
            if type(thing) is kind:
                return thing
        for thing in self._alive():
            if isinstance(thing, kind):
                return thing
        raise Unmade(f"no {kind.__name__} is alive at the end of the run")

    def _alive(self) -> Iterator[Any]:
        """What the frames and modules hold, and what that holds."""
        found = [value for scope in self._everything() for value in list(scope.values())]
        yield from found
        for value in found:
            if not isinstance(value, (ModuleType, type)) and hasattr(value, "__dict__"):
                modules = getattr(value, "modules", None)
                yield from list(vars(value).values())
                if callable(modules) and isinstance(value, _module_type()):
                    yield from list(modules())

    # What it is called with.

    def _by_name(self, function: Callable[..., Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            raise Unmade("its parameters are not known") from None
        arguments: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            value = self._value(parameter)
            if value is parameter.empty:
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                arguments.append(value)
            else:
                named[parameter.name] = value
        return tuple(arguments), named

    def _value(self, parameter: inspect.Parameter) -> Any:
        """What stands for ``parameter``: what is called like it, or its default (the marker for none)."""
        if parameter.default is not parameter.empty:
            return parameter.empty
        return self.alive(parameter.name)

    def alive(self, name: str) -> Any:
        """What is called ``name`` at the end of the run. Raises :class:`Unmade` where nothing is."""
        for scope in self._everything():
            if name in scope and not isinstance(scope[name], ModuleType):
                return scope[name]
        raise Unmade(f"nothing is alive that its parameter {name} could be")

    # Where names mean something.

    def _scopes(self, site: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Where the names of a call mean something: its own frame, else its module with what else is alive."""
        for frame in self._frames:
            code = frame.f_code
            if code.co_name == site["inside"] and self._tree.relative(code.co_filename) == site["path"]:
                yield {**frame.f_globals, **frame.f_locals}
        try:
            own = vars(self._module(site["path"]))
        except Unmade:
            own = {}
        others: dict[str, Any] = {}
        for scope in reversed(list(self._everything())):
            others.update(scope)
        yield {**others, **own} if site["inside"] == "<module>" else {**own, **others}

    def _everything(self) -> Iterator[dict[str, Any]]:
        for frame in self._frames:
            yield frame.f_locals
        main = sys.modules.get("__main__")
        if main is not None:
            yield vars(main)
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and module is not main and self._tree.relative(file) is not None:
                yield vars(module)

    def _module(self, path: str) -> ModuleType:
        """The module that stands in ``path``: the one that was loaded, else what its definitions make."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            known = isinstance(file, str) and (os.path.isabs(file) or name == "__main__")
            if known and self._tree.relative(str(file)) == path:
                return module
        if path not in self._modules:
            self._modules[path] = _defined(os.path.join(self._root, *path.split("/")))
        return self._modules[path]


def _defined(file: str) -> ModuleType:
    """A module of what ``file`` imports, defines and assigns; it runs no loop, no call and no other statement."""
    import ast

    try:
        with open(file, "rb") as stream:
            tree = ast.parse(stream.read(), file)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unmade(f"its file cannot be loaded: {type(error).__name__}") from None
    module = ModuleType("codemod_" + os.path.basename(file).partition(".")[0])
    module.__file__ = file
    folder, words = os.path.dirname(file), sys.argv
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    sys.path.insert(0, folder)
    # Arguments are parsed at the top of many scripts.
    sys.argv = [file]
    missing = ""
    try:
        for statement in tree.body:
            if not isinstance(statement, kinds):
                continue
            try:
                exec(compile(ast.Module([statement], []), file, "exec"), vars(module))
            except (Exception, SystemExit) as error:
                missing = missing or f"{type(error).__name__}: {error}"
    finally:
        sys.path.remove(folder)
        sys.argv = words
    if not any(inspect.isfunction(value) or isinstance(value, type) for value in vars(module).values()):
        raise Unmade(f"its file cannot be loaded: {missing[:200]}")
    return module


def _owner(function: Any) -> Any:
    """The object whose method ``function`` is, or None; of a module that is called, itself."""
    owner = getattr(function, "__self__", None)
    return owner if owner is not None or inspect.isroutine(function) or isinstance(function, type) else function


def _take(*arguments: Any, **named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return arguments, named


def _module_type() -> Any:
    torch = sys.modules.get("torch")
    return getattr(getattr(torch, "nn", None), "Module", ()) if torch is not None else ()
