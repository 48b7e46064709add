"""What code may do beside computing: which functions it enters, what these write that is not their own, what draws."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.facts.operations import RANDOM_CALLS
from codemods.graph.model.trace import Trace
from codemods.proofs.syntax import DEFINITIONS, method, names
from codemods.source.walking import called, walk
from codemods.terms.words import words

CHANGING = words("append appendleft extend extendleft insert remove clear update add discard sort reverse rotate")
"""Methods of containers that change them, and are called for that alone."""

TAKING = words("pop popleft popitem setdefault")
"""Methods of containers that change them and give something."""

CONTAINER_CHANGES = CHANGING | TAKING

_MORE = "it may do more than compute, and in the loop would do so in every step"

_BUILTINS = words(
    "abs all any bool dict divmod enumerate filter float frozenset getattr hasattr int isinstance len list map max min "
    "pow range repr reversed round set slice sorted str sum super tuple type zip"
)
"""Functions of Python that give something and do nothing else."""

_MOVING_ON = words("__next__ send throw close read readline readlines write seek integers choices")
"""Methods of which the next call gives something else."""


class Effects:
    """What one run shows of what code does."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.entered = trace.once(entered_by)
        self._known: dict[ast.AST, str] = {}

    def of(self, body: ast.AST) -> str:
        """What a body, or a function of the tree that it enters, may do beside computing; empty if nothing."""
        return next(filter(None, map(self._alone, (body, *all_entered(self.trace, [body])))), "")

    def _alone(self, body: ast.AST) -> str:
        """The same of a body without what it enters."""
        if body not in self._known:
            self._known[body] = self._found(body)
        return self._known[body]

    def _found(self, body: ast.AST) -> str:
        if isinstance(body, DEFINITIONS) and (writes_elsewhere(body) or _fills_given(body)):
            return _MORE
        for node in walk(body):
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
                return _MORE
            if not isinstance(node, ast.Call):
                continue
            path = self.trace.called.get(node)
            name = path.rpartition(".")[2] if path else called(node)
            if name in RANDOM_CALLS:
                return "it draws random numbers: moving it would change their order"
            if path or node not in self.entered:
                method = isinstance(node.func, ast.Attribute) and (not path or path.startswith("builtins.object."))
                if not (_computes(path) if path and not method else _harmless(name, method=method)):
                    return _MORE
        return ""


def draws(code: ast.AST) -> bool:
    """Whether code calls what draws random numbers."""
    return any(isinstance(node, ast.Call) and called(node) in RANDOM_CALLS for node in walk(code))


def entered_by(trace: Trace) -> dict[ast.AST, dict[ast.AST, None]]:
    """The functions of the tree that each call entered, in order."""
    found: dict[ast.AST, dict[ast.AST, None]] = {}
    for frame in trace.frames:
        if frame.call is not None and frame.definition is not None:
            found.setdefault(frame.call.node, {})[frame.definition] = None
    return found


def all_entered(trace: Trace, bodies: Iterable[ast.AST]) -> list[ast.AST]:
    """The functions that some bodies enter, and those that these enter; each once."""
    entered = trace.once(entered_by)
    found: dict[ast.AST, None] = {}
    waiting = [*bodies]
    while waiting:
        inner = [d for node in walk(waiting.pop()) for d in entered.get(node, ()) if d not in found]
        found |= dict.fromkeys(inner)
        waiting += dict.fromkeys(inner)
    return [*found]


def writes_elsewhere(definition: ast.AST) -> set[str]:
    """What a function writes that is not its own: attributes as ``.name``, and variables of functions around it; also
    by filling what they hold."""
    found: set[str] = set()
    own = names(definition, ast.Store) | {n.arg for n in walk(definition) if isinstance(n, ast.arg)}
    for node in walk(definition):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.add(f".{node.attr}")
        elif isinstance(node, ast.Call):
            found |= written_by_name(node)
            if method(node) in CONTAINER_CHANGES and isinstance(node.func, ast.Attribute):
                found |= _outer(node.func.value, own)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found |= _outer(node.value, own)
    return found


def written_by_name(call: ast.Call) -> set[str]:
    """The attribute that ``setattr``, or a method of modules, writes: ``.name``."""
    if method(call) in ("train", "eval"):
        return {".training"}
    match call:
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return {f".{name}"}
    return set()


def _outer(container: ast.expr, own: set[str]) -> set[str]:
    """What code outside calls a container: a variable, or ``.name`` of an object; nothing for what is ``own``."""
    while isinstance(container, ast.Subscript):
        container = container.value
    if isinstance(container, ast.Attribute):
        return {f".{container.attr}"}
    return {container.id} - own if isinstance(container, ast.Name) else set()


def _computes(path: str) -> bool:
    """Whether a public function gives something and does nothing else."""
    library, _, name = path.rpartition(".")
    if library == "builtins":
        return name in _BUILTINS
    if path.startswith("torch.nn.utils.clip_grad"):
        # gradients, of which marks tell
        return True
    if path.startswith(("numpy.random.", "torch.set_", "torch.distributions.")) or name.endswith("_"):
        return False
    return path.startswith(("torch.", "numpy.", "math.", "operator.")) or path == "functools.reduce"


def _harmless(name: str, *, method: bool) -> bool:
    """Whether a method of something that has no public name does nothing but give a value; of functions, that is said
    of what the run shows of them: a module is a node."""
    return not method or not (name.endswith("_") or name in CONTAINER_CHANGES or name in _MOVING_ON)


def _fills_given(definition: ast.AST) -> bool:
    """Whether a function puts something into a container that it did not make."""
    made = names(definition, ast.Store)
    for node in walk(definition):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            root: ast.AST = node
            while isinstance(root, (ast.Subscript, ast.Attribute)):
                root = root.value
            if not (isinstance(root, ast.Name) and root.id in made):
                return True
    return False
