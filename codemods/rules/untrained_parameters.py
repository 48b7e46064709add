"""The rule ``untrained-parameters``."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator

from codemods.graph.model.facts.layers import MODULES_WITH_PARAMETERS, MODULES_WITHOUT_PARAMETERS
from codemods.graph.model.kinds import WalkKind
from codemods.graph.model.nodes import Frame, Node, Place
from codemods.graph.model.program import ParsedFile, receiver_name
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Instance
from codemods.proofs.blocks import suites_around
from codemods.proofs.observations import Observation
from codemods.proofs.syntax import DEFINITIONS, argument, everywhere, is_own, method, true
from codemods.proofs.turns import loops_around
from codemods.rules._sites import SiteRule, written
from codemods.source.gates import form
from codemods.source.walking import walk
from codemods.terms.edits import Edit, KeepPart, ReplaceExpression, WrapExpression
from codemods.terms.findings import Promise
from codemods.terms.words import words

_MOVING = ("to", "cuda", "half", "double", "bfloat16")
"""What gives another tensor where it moves one or changes its type, and otherwise the same."""


_LAYERS = MODULES_WITH_PARAMETERS | MODULES_WITHOUT_PARAMETERS


class UntrainedParameters(SiteRule):
    """Parameters that a backward fills with gradients and that no optimizer trains: moved where they are made, in a
    plain list, or in a layer that was put in when the optimizer was made already.

    Why it hurts: ``self.weight = nn.Parameter(...).to(device)`` keeps what ``to`` returns. On the CPU that is the
    parameter itself; where it moves, it is a result computed from it, and no ``nn.Parameter``: ``parameters()`` and
    ``state_dict()`` do not have it, no optimizer gets it, it is never trained or saved, and a later ``model.to`` leaves
    it behind. The script runs on the CPU as it should, and on a GPU it trains less than it looks.

    Of layers in a plain list or dict (``self.layers = [nn.Linear(4, 4)]``) a module knows as little, on any device. And
    an optimizer keeps the parameters that it was given: of a layer that replaces another one later
    (``model.fc = nn.Linear(512, 10)``) it has none. All of this runs, and the loss falls, by the other layers.

    Left alone: parameters that ask for no gradients; such as are made on their device or moved inside
    (``nn.Parameter(x.to(device))``); attributes that are given anything else in their class; objects that are no
    modules; lists that are read anywhere but in the class, handed on as a whole, or whose class names parameters
    itself; layers that no backward reaches; whatever only may be of ``torch.nn``.

    The rewrite: ``nn.Parameter(x.to(device))``; ``nn.ModuleList([...])`` around a list of which every entry is a layer.

    Advice: keep the layers of a dict in an ``nn.ModuleDict``; make the optimizer when the model is complete.

    Promise: behaviour. Mended, the optimizer trains more than it did.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html
    """

    name = "untrained-parameters"
    promise = Promise.BEHAVIOUR
    summary = "parameters get gradients and no optimizer trains them"
    gate = (
        form(r"Parameter\(.*\)\s*\.(?:to|cuda|half|double|bfloat16)\(", word="Parameter("),
        b".backward(",
        b"autograd.backward(",
    )

    def observe(self, trace: Trace) -> Iterable[Observation]:
        for file, statement, made, module in _made(trace):
            proven = module and trace.called.get(made) == "torch.nn.Parameter"
            if not (proven and _trainable(made) and _given_once(file, statement)):
                yield self.fine(file, statement)
                continue
            name = ast.unparse(statement.targets[0])
            yield self.fault(
                file,
                statement,
                f"if this moves the tensor, `{name}` is no parameter any more: it is neither trained nor saved",
                "move what is in it: `nn.Parameter(data.to(device))`",
                edits=_moved_within(file, statement, made),
            )
        if trace.complete and any(loops_around(step.place) for step in trace.steps):
            reached = {
                leaf for walk in trace.walks if walk.kind is WalkKind.BACKWARD for leaf in walk.seen if leaf.leaf
            }
            yield from self._in_plain_containers(trace, reached)
            yield from self._made_too_late(trace, reached)

    def _in_plain_containers(self, trace: Trace, reached: set[Node]) -> Iterable[Observation]:
        told: set[ast.stmt] = set()
        layers = _layers(trace, reached)
        for place in (place for leaf in reached if trace.called.get(leaf.place.node) for place in leaf.place.chain()):
            file = place.frame.file
            kept = _container(file, place.node) if _in_constructor(place.frame) else None
            if kept is None or kept[1] in told:
                continue
            name, statement, kind = kept
            told.add(statement)
            if not _only_read_within(trace, file, statement, name):
                yield self.fine(file, statement)
                continue
            yield self.fault(
                file,
                statement,
                f"`self.{name}` is a plain {kind}: the module does not know the layers in it, so no optimizer trains "
                "them, and they are not saved",
                f"keep them in an `nn.{'ModuleList' if kind == 'list' else 'ModuleDict'}`",
                (place, "its parameters get gradients nonetheless"),
                edits=_registered(file, statement, name, layers) if kind == "list" else [],
            )

    def _made_too_late(self, trace: Trace, reached: set[Node]) -> Iterable[Observation]:
        owned = [step.leaves for step in trace.steps]
        trained = {leaf for leaves in owned for leaf in leaves or ()}
        for leaf in reached:
            statement, frame = leaf.place.statement, leaf.place.frame
            if not isinstance(statement, ast.Assign) or _in_constructor(frame):
                continue
            target = statement.targets[0]
            if not isinstance(target, (ast.Attribute, ast.Subscript)):
                continue
            late = None not in owned and leaf not in trained
            made = _optimizer_before(trace, leaf, ast.unparse(target)) if late else None
            if made is None or _extended(trace):
                yield self.fine(frame.file, statement)
                continue
            yield self.fault(
                frame.file,
                statement,
                f"the optimizer was made before `{ast.unparse(target)}` was replaced: it has the parameters of the old "
                "layer, and nothing trains the new one",
                "make the optimizer after this line",
                (made, "the optimizer gets the parameters that exist here"),
            )


def _in_constructor(frame: Frame) -> bool:
    definition = frame.definition
    return (
        isinstance(definition, DEFINITIONS)
        and definition.name == "__init__"
        and isinstance(frame.receiver, Instance)
        and frame.receiver.cls.family == "module"
    )


def _container(file: ParsedFile, made: ast.AST) -> tuple[str, ast.Assign | ast.AnnAssign, str] | None:
    """The attribute of ``self`` that is a list or dict and holds what is ``made``, the statement that gives it, and
    which of both it is."""
    outer = file.parent(made)
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and method(outer) == "append":
        name = _of_self(outer.func.value)
        begun = [one for one in _given(file, made, name) if isinstance(one.value, ast.List) and not one.value.elts]
        return (name, begun[0], "list") if name and len(begun) == 1 else None
    if not isinstance(outer, (ast.List, ast.ListComp, ast.Dict, ast.DictComp)):
        return None
    if isinstance(outer, ast.List) and not all(isinstance(one, ast.Call) for one in outer.elts):
        return None
    statement = file.parent(outer)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not outer:
        return None
    name = _of_self(_targets(statement)[0])
    return (name, statement, "list" if isinstance(outer, (ast.List, ast.ListComp)) else "dict") if name else None


def _of_self(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""


def _given(file: ParsedFile, inner: ast.AST, name: str) -> list[ast.Assign | ast.AnnAssign]:
    """The statements of the class around ``inner`` that give an attribute a value."""
    return [
        node
        for node in walk(file.enclosing(inner, ast.ClassDef) or inner)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        if any(_of_self(target) == name for target in _targets(node))
    ]


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


_OWN = words("parameters named_parameters children modules state_dict")
"""What a module gives of the layers that it knows."""

_REGISTERING = _OWN | words(
    "add_module register_module register_parameter setattr __setattr__ _modules __dict__ vars grad data"
)
"""A class that uses one of these names may pass on its parameters, or train them, by itself."""


def _only_read_within(trace: Trace, file: ParsedFile, statement: ast.stmt, name: str) -> bool:
    """Whether the layers in the attribute ``name`` are only gone through by methods of its class."""
    own = file.enclosing(statement, ast.ClassDef)
    if own is None or len(_given(file, statement, name)) != 1:
        return False
    for node in walk(own):
        word = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        word = node.name if isinstance(node, DEFINITIONS) else word
        if word in _REGISTERING and not _asks_itself(file, node):
            return False
        if trace.called.get(node, "").startswith("torch.optim."):
            return False
        if isinstance(node, ast.Attribute) and node.attr == name and not _gone_through(file, node):
            return False
    within = set(walk(own))
    return not any(
        (isinstance(node, ast.Attribute) and node.attr == name and node not in within)
        or (isinstance(node, ast.Constant) and node.value == name)
        for _, node in everywhere(trace)
    )


def _asks_itself(file: ParsedFile, node: ast.AST) -> bool:
    """Whether a method asks its own module for the layers that it knows."""
    if not isinstance(node, ast.Attribute) or node.attr not in _OWN or not isinstance(node.ctx, ast.Load):
        return False
    return is_own(node, receiver_name(file.enclosing(node, *DEFINITIONS)))


def _gone_through(file: ParsedFile, node: ast.Attribute) -> bool:
    """Whether an attribute is given, added to, or read element by element."""
    outer = file.parent(node)
    if isinstance(outer, (ast.Assign, ast.AnnAssign)):
        return outer.value is not node
    if isinstance(outer, (ast.For, ast.comprehension)):
        return outer.iter is node
    if isinstance(outer, ast.Subscript):
        return outer.value is node and not isinstance(outer.slice, ast.Slice) and _stays(file, outer)
    if isinstance(outer, ast.Attribute):
        return outer.attr in ("append", "items", "values")
    through = ("enumerate", "zip", "reversed", "len")
    return isinstance(outer, ast.Call) and isinstance(outer.func, ast.Name) and outer.func.id in through


def _stays(file: ParsedFile, element: ast.Subscript) -> bool:
    """Whether an element is replaced or called where it is read: what is kept or handed on may be registered then."""
    user = file.parent(element)
    if isinstance(user, ast.Assign) and user.value is element and isinstance(user.targets[0], ast.Name):
        name, around = user.targets[0].id, file.enclosing(user, *DEFINITIONS)
        reads = (n for n in walk(around or user) if isinstance(n, ast.Name) and n.id == name and n not in user.targets)
        return all(isinstance(call := file.parent(n), ast.Call) and call.func is n for n in reads)
    read_on = isinstance(user, (ast.Attribute, ast.Subscript)) or (isinstance(user, ast.Call) and user.func is element)
    return read_on or not isinstance(element.ctx, ast.Load)


def _extended(trace: Trace) -> bool:
    """Whether an optimizer may be given more parameters once it is made, which the trace does not tell."""
    words = {
        node.attr if isinstance(node, ast.Attribute) else node.value
        for _, node in everywhere(trace)
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    }
    return "add_param_group" in words or {"param_groups", "params"} <= words


def _moved_within(file: ParsedFile, statement: ast.Assign, made: ast.Call) -> list[Edit]:
    """The edits that move the data of a parameter instead of the parameter."""
    outer = statement.value
    assert isinstance(outer, ast.Call)
    assert isinstance(outer.func, ast.Attribute)
    given = [written(file, one) for one in outer.args]
    given += [
        f"{one.arg}={written(file, one.value)}" if one.arg else f"**{written(file, one.value)}"
        for one in outer.keywords
    ]
    data = _data(made)
    assert data is not None
    return [
        KeepPart(file.span(outer), file.span(made)),
        WrapExpression(file.span(data), "", f".{outer.func.attr}({', '.join(given)})"),
    ]


def _layers(trace: Trace, reached: set[Node]) -> dict[ast.AST, str]:
    """The calls that are seen to make a layer, with how a file calls ``torch.nn`` where it is one of that."""
    found: dict[ast.AST, str] = {
        call: ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        for call, path in trace.called.items()
        if isinstance(call, ast.Call) and path.startswith("torch.nn.") and path.rpartition(".")[2] in _LAYERS
    }
    for leaf in reached:
        for inner, outer in itertools.pairwise(leaf.place.chain()):
            if _in_constructor(inner.frame):
                found.setdefault(outer.node, "")
    return found


def _registered(
    file: ParsedFile, statement: ast.Assign | ast.AnnAssign, name: str, layers: dict[ast.AST, str]
) -> list[Edit]:
    """The edit that makes a list of layers known to its module; none if anything else may be in it."""
    begun = statement.value
    entries: list[ast.AST] = [begun.elt] if isinstance(begun, ast.ListComp) else [*getattr(begun, "elts", ())]
    for node in walk(file.enclosing(statement, ast.ClassDef) or file.tree):
        if not isinstance(node, ast.Attribute) or node.attr != name:
            continue
        outer = file.parent(node)
        if isinstance(outer, ast.Subscript) and not isinstance(outer.ctx, ast.Load):
            return []
        if isinstance(outer, ast.Attribute):
            call = file.parent(outer)
            if outer.attr != "append" or not isinstance(call, ast.Call):
                return []
            entries += call.args
    if begun is None or not entries or not layers.keys() >= set(entries) or not _begun(file, statement):
        return []
    module = next(filter(None, (layers[entry] for entry in entries)), "{torch}.nn")
    if isinstance(begun, ast.List) and not begun.elts:
        return [ReplaceExpression(file.span(begun), f"{module}.ModuleList()")]
    return [WrapExpression(file.span(begun), f"{module}.ModuleList(", ")")]


def _begun(file: ParsedFile, statement: ast.stmt) -> bool:
    """Whether the module is ready to take layers: its base has been set up in the same suite."""
    suite, at = next(suites_around(file, statement))
    return any(isinstance(node, ast.Attribute) and node.attr == "__init__" for one in suite[:at] for node in walk(one))


def _optimizer_before(trace: Trace, leaf: Node, target: str) -> Place | None:
    """Where an optimizer took the parameters of the module that ``target`` is a part of, before that was replaced."""
    for node, path in trace.called.items():
        if not path.startswith("torch.optim.") or path.startswith("torch.optim.lr_scheduler."):
            continue
        owners = [
            ast.unparse(part.func.value)
            for part in walk(node)
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and method(part) == "parameters"
        ]
        if not any(target.startswith((f"{owner}.", f"{owner}[")) for owner in owners):
            continue
        before = (ran for ran in trace.ran if ran.frame is leaf.place.frame and ran.last <= leaf.place.clock)
        ran = next((ran for ran in before if node in walk(ran.statement)), None)
        if ran is not None:
            return Place(node, ran.statement, ran.frame, ran.loops, ran.first)
    return None


def _made(trace: Trace) -> Iterator[tuple[ParsedFile, ast.Assign, ast.Call, bool]]:
    """The statements of constructors that move what they make, each once, with the call that makes it; whether the
    object is a module."""
    seen: set[ast.AST] = set()
    for frame in trace.frames:
        definition = frame.definition
        if not isinstance(definition, DEFINITIONS) or definition.name != "__init__" or definition in seen:
            continue
        seen.add(definition)
        module = isinstance(frame.receiver, Instance) and frame.receiver.cls.is_module
        for statement in walk(definition):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                made = _moved(statement)
                if made is not None:
                    yield frame.file, statement, made, module


def _moved(statement: ast.Assign) -> ast.Call | None:
    """The call that makes a parameter in ``self.name = made.to(...)``."""
    target, outer = statement.targets[0], statement.value
    if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return None
    if not isinstance(outer, ast.Call) or not isinstance(outer.func, ast.Attribute) or outer.func.attr not in _MOVING:
        return None
    made = outer.func.value
    return made if isinstance(made, ast.Call) and _data(made) is not None else None


def _data(made: ast.Call) -> ast.expr | None:
    """What a parameter is made of, None where that is not written in the call."""
    return argument(made, 0, "data")


def _trainable(made: ast.Call) -> bool:
    """Whether it asks for gradients, and its data is not where it shall be before it is moved."""
    asked = [*made.args[1:2], *(k.value for k in made.keywords if k.arg == "requires_grad")]
    return all(map(true, asked)) and not any(
        (isinstance(node, ast.keyword) and node.arg in ("device", "dtype"))
        or (isinstance(node, ast.Attribute) and node.attr in _MOVING)
        for node in walk(_data(made) or made)
    )


def _given_once(file: ParsedFile, statement: ast.Assign) -> bool:
    """Whether nothing else in the class gives the attribute a value, or registers it."""
    name = statement.targets[0].attr if isinstance(statement.targets[0], ast.Attribute) else ""
    within, around = file.enclosing(statement, *DEFINITIONS), file.enclosing(statement, ast.ClassDef)
    if around is None or not isinstance(within, DEFINITIONS) or within.name != "__init__":
        return False
    nodes = list(walk(around))
    given = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Store)]
    return len(given) == 1 and not any(isinstance(n, ast.Constant) and n.value == name for n in nodes)


RULE = UntrainedParameters
