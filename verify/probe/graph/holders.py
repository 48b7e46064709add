"""Who keeps old graph nodes alive: the names of tensors, found from the user's frames and modules outward."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import re
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..lines.sites import Tree
from ..values.plain import steps_of
from . import origins
from .nodes import Graph, live_tensors, old, reached, roots

_DEEPEST = 6
_MOST_THINGS = 50_000
_MOST_NAMED = 5
#: What differs in the names of things that belong together: keys of a dictionary, numbers at the end of attributes.
_KEYED = re.compile(r"\['[^']*'\]|(?<=\w)\d+(?=$|[.\[])")
_MANY_KEYS = 5
#: A way through the inside of a library: nobody types two private attributes.
_INSIDE = re.compile(r"\._[^\W_].*\._[^\W_]")
#: Naming is for people; a run does not wait longer for a walk. So many names are looked at however long it took.
_SECONDS = 3.0
_FEWEST = 32

if TYPE_CHECKING:
    #: A name, the value, how far from a variable, and the function or module of that variable.
    _Thing = tuple[str, Any, int, str]


def holders(graph: Graph, boundaries: int, tree: Tree, frames: list[types.FrameType]) -> list[dict[str, Any]]:
    """The variables that keep nodes of most old steps alive, as the census event has them; the largest first.

    ``frames`` are the user's frames, innermost first. Elements of one container count as one holder, ``losses[*]``.
    Where no variable leads to it in time, or only by way of what a library keeps to itself, as with a trainer, it is
    ``self`` of a class of the user's.
    """
    found = _holding(graph, boundaries, variables(tree, frames, _end()))
    if not found or _INSIDE.search(found[0]["name"]):
        found = _holding(graph, boundaries, objects(tree, _end())) or found
    return found[:_MOST_NAMED] or _nameless(graph, boundaries)


def _end() -> float:
    """When a walk is to end that begins now."""
    return time.perf_counter() + _SECONDS


def _holding(graph: Graph, boundaries: int, values: Iterator[tuple[str, Any, str]]) -> list[dict[str, Any]]:
    """Those of (name, value, function) that keep old nodes alive."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for name, tensor, function in _named(values):
        groups.setdefault((re.sub(r"\[\d+\]", "[*]", name), function), []).append(tensor)
    groups = _joined(groups)
    found: list[dict[str, Any]] = []
    known: set[Any] = set()
    # A time of its own: the walk may have used up all that it had, and the nearest names came first.
    until = _end()
    for number, ((name, function), tensors) in enumerate(groups.items()):
        if number >= _FEWEST and time.perf_counter() > until:
            break
        one = _holder(graph, boundaries, name, function, tensors)
        # One graph under several names (a module's state, by way of everything that holds the module) is named once.
        held = frozenset(id(tensor) for tensor in tensors)
        if one["births"] and held not in known:
            known.add(held)
            found.append(one)
    found.sort(key=lambda holder: (-holder["births"], -holder["nodes"], len(holder["name"])))
    return found


def _holder(graph: Graph, boundaries: int, name: str, function: str, tensors: list[Any]) -> dict[str, Any]:
    """What ``name`` keeps alive by its ``tensors``, and the line that made the last of them, where lines are known: in
    a diagnosis."""
    ages = graph.ages_of(reached(roots(tensors)))
    return {
        "name": name,
        "function": function,
        "nodes": sum(ages.values()),
        "births": old(ages, boundaries),
        "tensors": len(tensors),
        "made": origins.nearest(tensors[-1].grad_fn),
    }


def _joined(groups: dict[tuple[str, str], list[Any]]) -> dict[tuple[str, str], list[Any]]:
    """``groups``, with those as one that differ in a key of a dictionary alone, where there are many."""
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, function in groups:
        alike.setdefault((_KEYED.sub(_any, name), function), []).append((name, function))
    found: dict[tuple[str, str], list[Any]] = {}
    for pattern, members in alike.items():
        if len(members) >= _MANY_KEYS:
            found[pattern] = [tensor for member in members for tensor in groups[member]]
        else:
            found.update((member, groups[member]) for member in members)
    return found


def _any(match: re.Match[str]) -> str:
    return "[*]" if match[0].startswith("[") else "*"


def _named(values: Iterator[tuple[str, Any, str]]) -> Iterator[tuple[str, Any, str]]:
    """(name, tensor with a graph, function) of ``values``."""
    import torch

    for name, value, function in values:
        if issubclass(type(value), torch.Tensor):
            if not value.is_leaf:
                yield name, value, function
            elif value.grad is not None and not value.grad.is_leaf:
                yield name + ".grad", value.grad, function


def variables(
    tree: Tree, frames: list[types.FrameType], until: float, exact: bool = False
) -> Iterator[tuple[str, Any, str]]:
    """(name, value, function) for all that the user's variables lead to, nearest first, until a time of perf_counter.

    ``exact``: names that are the same in every run, which the items of a set and keys that are objects do not have.
    """
    return _walk(_variables(tree, frames), tree, until, exact)


def named(tree: Tree, values: list[tuple[str, Any]], until: float) -> Iterator[tuple[str, Any, str]]:
    """The same for all that ``values``, by their names, lead to; names are the same in every run."""
    return _walk(((name, value, 0, "<module>") for name, value in values), tree, until, True)


def objects(tree: Tree, until: float) -> Iterator[tuple[str, Any, str]]:
    """The same from the objects of the user's own classes, wherever they are: ``self`` in a class."""
    return _walk((("self", thing, 0, type(thing).__qualname__) for thing in _own(tree)), tree, until, False)


def _own(tree: Tree) -> Iterator[Any]:
    known: dict[type, bool] = {}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in known:
            known[kind] = own_class(kind, tree)
        if known[kind]:
            yield thing


def own_class(kind: type, tree: Tree) -> bool:
    """Whether code of the user's defines the class ``kind``."""
    name = type.__getattribute__(kind, "__dict__").get("__module__")
    file = getattr(sys.modules.get(name), "__file__", None) if isinstance(name, str) else None
    if name == "__main__":
        # Python takes its name away when the script is over.
        file = file or tree.main
    return isinstance(file, str) and tree.relative(file) is not None


def _walk(start: Iterator[_Thing], tree: Tree, until: float, exact: bool) -> Iterator[tuple[str, Any, str]]:
    import torch

    queue: collections.deque[_Thing] = collections.deque(start)
    seen: set[int] = set()
    things = 0
    while queue and things < _MOST_THINGS:
        things += 1
        if things % 256 == 0 and time.perf_counter() > until:
            return
        name, value, depth, function = queue.popleft()
        yield name, value, function
        if depth < _DEEPEST and id(value) not in seen and not issubclass(type(value), torch.Tensor):
            seen.add(id(value))
            try:
                found = _exact(value, tree) if exact else _children(value, tree, _telling)
                queue.extend((name + path, child, depth + 1, function) for path, child in found)
            except Exception:
                # Objects with attributes of their own making; the next one may still tell.
                continue


def _variables(tree: Tree, frames: list[types.FrameType]) -> Iterator[_Thing]:
    for frame in frames:
        # Globals come with their modules, below.
        if frame.f_locals is not frame.f_globals:
            for name, value in list(frame.f_locals.items()):
                yield name, value, 0, frame.f_code.co_name
    yield from _globals(tree, frames)
    for module_name, module in list(sys.modules.items()):
        filename = getattr(module, "__file__", None)
        if module_name == "__main__":
            # Python takes its name away when the script is over.
            filename = filename or tree.main
        if isinstance(filename, str) and tree.relative(filename) is not None and module_name != "__mp_main__":
            prefix = "" if module_name == "__main__" else module_name + "."
            for name, value in list(vars(module).items()):
                if not name.startswith("__"):
                    yield prefix + name, value, 0, "<module>"


def _globals(tree: Tree, frames: list[types.FrameType]) -> Iterator[_Thing]:
    """Globals of code that belongs to no module with a file: cells of a notebook, what ``exec`` runs."""
    known = {id(vars(module)) for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
    if tree.main is not None:
        known.add(id(vars(sys.modules["__main__"])))
    for frame in frames:
        if id(frame.f_globals) not in known:
            known.add(id(frame.f_globals))
            for name, value in list(frame.f_globals.items()):
                if not name.startswith("__"):
                    yield name, value, 0, "<module>"


def _telling(value: Any) -> bool:
    """Whether ``value`` can hold or be a tensor: long lists of numbers would take up the time of a walk."""
    return type(value) not in _PLAIN


def _children(value: Any, tree: Tree, wanted: Callable[[Any], bool] = lambda _: True) -> Iterator[tuple[str, Any]]:
    """What ``value`` holds, by the path from it; of the items of a container those ``wanted``. Runs no code of the
    user's: base classes iterate."""
    kind = type(value)
    for base in _SEQUENCES:
        if issubclass(kind, base):
            yield from ((f"[{i}]", item) for i, item in enumerate(list(base.__iter__(value))) if wanted(item))
    if issubclass(kind, dict):
        yield from ((f"[{_key(key)}]", child) for key, child in list(dict.items(value)) if wanted(child))
    if kind is types.FunctionType:
        if value.__closure__ and tree.relative(value.__code__.co_filename) is not None:
            for i in range(len(value.__closure__)):
                try:
                    yield f".<closure {value.__code__.co_freevars[i]}>", value.__closure__[i].cell_contents
                except ValueError:
                    continue
    elif kind is types.MethodType:
        yield ".__self__", value.__self__
    elif kind is functools.partial:
        yield from ((f".args[{i}]", value.args[i]) for i in range(len(value.args)))
        yield from ((f".keywords[{key!r}]", child) for key, child in value.keywords.items())
    elif kind is types.GeneratorType:
        if value.gi_frame is not None:
            yield from ((f".<generator {name}>", child) for name, child in value.gi_frame.f_locals.items())
    elif issubclass(kind, type):
        if tree.relative(getattr(sys.modules.get(value.__module__), "__file__", None) or "") is not None:
            attributes = type.__getattribute__(value, "__dict__")
            yield from _attributes(attributes)
            # What a dataclass is made, compared and printed by; an attribute that is no field looks the same else.
            yield from ((".<fields>", fields) for fields in (attributes.get("__match_args__"),) if fields)
    elif not issubclass(kind, types.ModuleType):
        with contextlib.suppress(AttributeError):
            yield from _attributes(object.__getattribute__(value, "__dict__"))
        yield from slots(value)


def _exact(value: Any, tree: Tree) -> Iterator[tuple[str, Any]]:
    """The children by names that are the same in every run."""
    kind = type(value)
    if issubclass(kind, dict):
        items = list(dict.items(value))
        for i in range(len(items)):
            key, child = items[i]
            # Others print their address, or run code of the user's to be printed.
            yield f"[{key!r}]" if type(key) in (str, int, float, bool) else f"[key {i}]", child
    elif not issubclass(kind, (set, frozenset)) and not _is_absent(value):
        yield from _children(value, tree)
        yield from steps_of(value)


def _is_absent(value: Any) -> bool:
    """Whether it stands for something that is not there; what knows that is loaded where such things are made."""
    modules = sys.modules.get(__name__.replace("graph.holders", "standins.modules"))
    return modules is not None and modules.is_absent(value)


def _attributes(attributes: Any) -> Iterator[tuple[str, Any]]:
    for name, child in list(attributes.items()):
        if name in ("_modules", "_buffers") and isinstance(child, dict):
            # What torch.nn.Module shows as attributes of its own.
            yield from ((f".{key}", each) for key, each in list(child.items()))
        elif not name.startswith("__"):
            yield "." + name, child


def slots(value: Any) -> Iterator[tuple[str, Any]]:
    """What ``value`` holds in slots, by the path from it."""
    for base in type(value).__mro__:
        for name, member in list(vars(base).items()):
            if isinstance(member, types.MemberDescriptorType) and base.__module__ != "builtins":
                try:
                    yield "." + name, member.__get__(value)
                except AttributeError:
                    continue


def _key(key: Any) -> str:
    """How a key is typed. Others than plain values may take long to print (tensors), or run code of the user's."""
    return f"{key!r:.40}" if type(key) in _PLAIN else f"<{type(key).__name__}>"


_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_SEQUENCES: tuple[Any, ...] = (list, tuple, collections.deque, set, frozenset)


def _nameless(graph: Graph, boundaries: int) -> list[dict[str, Any]]:
    """The same by type, where no variable of the user's leads to the tensors."""
    stale = [tensor for tensor in live_tensors() if old(graph.ages_of(roots([tensor])), boundaries)]
    known = {id(tensor) for tensor in stale}
    groups: dict[str, dict[int, Any]] = {}
    # Not gc.get_referrers, which looks at every object again for each tensor.
    for thing in gc.get_objects():
        if thing is not stale:
            for each in gc.get_referents(thing):
                if id(each) in known:
                    groups.setdefault(_kind(thing), {})[id(each)] = each
    found = [
        _holder(graph, boundaries, f"something of type {name}", "", list(group.values()))
        for name, group in groups.items()
    ]
    found.sort(key=lambda holder: (-holder["births"], -holder["nodes"]))
    return found[:1]


def _kind(thing: Any) -> str:
    """The type of ``thing``; of a container with the attribute that it is, where an object has it."""
    kind = type(thing)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind not in (list, dict, set, collections.deque):
        return name
    for owner in gc.get_referrers(thing):
        attributes = owner if type(owner) is dict else _attributes_of(owner)
        keys = [key for key, value in list(attributes.items()) if value is thing] if type(attributes) is dict else []
        holder = (
            next((each for each in gc.get_referrers(owner) if _attributes_of(each) is owner), None) if keys else None
        )
        holder = owner if keys and type(owner) is not dict else holder
        if holder is not None and isinstance(keys[0], str):
            return f"{name}, {keys[0]} of {type(holder).__module__}.{type(holder).__qualname__}"
    return name


def _attributes_of(thing: Any) -> Any:
    try:
        return object.__getattribute__(thing, "__dict__")
    except (AttributeError, TypeError):
        return None
