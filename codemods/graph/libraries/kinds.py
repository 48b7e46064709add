"""Libraries that are told by what they are: data, numbers, progress bars, layers, models."""

from __future__ import annotations

import ast

from codemods.graph.libraries.table import CALLS, whole
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import TRANSPARENT_WRAPPERS
from codemods.graph.model.facts.libraries import (
    BAR_LIBRARIES,
    DATA_LIBRARIES,
    KEEPING_TENSORS,
    LAYER_LIBRARIES,
    MODEL_LIBRARIES,
    NUMERIC_LIBRARIES,
    PRETRAINED_LIBRARIES,
    REMEMBERING,
)
from codemods.graph.model.facts.memory import ARRAY_WRITERS
from codemods.graph.model.facts.python import CALLING_LATER, CARRYING_LIBRARIES, NUMBERS_OF
from codemods.graph.model.kinds import Escape, PlainKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import (
    ARRAY,
    NONE,
    NUMBER,
    Const,
    Library,
    Partial,
    Plain,
    Reference,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.torch.model import Torch

_PREPARING = ("Tokenizer", "Processor", "Config")
"""Words in the names of classes that ``from_pretrained`` makes and that are no models."""

_WRAPPING = ("functools.wraps", "functools.update_wrapper")
"""What names one function after another, and calls neither (docs: functools). A script may hold a function that is
called through nothing else, so that there they are run."""


def _top(path: str) -> str:
    return path.partition(".")[0]


# progress bars


@CALLS.of(*whole(*(BAR_LIBRARIES - NUMERIC_LIBRARIES)))
def _bar(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    if not args.positional:
        return None
    engine.run.bars.update(getattr(o, "oid", 0) for o in engine.run.options(args.positional[0]))
    return args.positional[0]


# iterators that fetch ahead


@CALLS.of("prefetch_generator.BackgroundGenerator", "torch_xla.distributed.parallel_loader.MpDeviceLoader")
def _fetching(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    return args.get(0, "generator") or args.get(0, "loader")


# Python's own, and those that know nothing of tensors


@CALLS.of(*whole(*(NUMERIC_LIBRARIES - BAR_LIBRARIES)))
def _numeric(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return _looked_at(engine, path, args, at)


@CALLS.of(*whole(*(BAR_LIBRARIES & NUMERIC_LIBRARIES)))
def _numeric_bar(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return _bar(engine, path, args, at) or _looked_at(engine, path, args, at)


def _looked_at(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    """What a library makes that knows nothing of autograd: no history, but for what it hands on."""
    if path in KEEPING_TENSORS:
        return _carried(engine, path, args, at)
    for value in args.all():
        engine.run.use(value, UseKind.CALL, at, path)
        if _top(path) == "numpy":
            engine.run.refused(value, at)
    if path.rpartition(".")[2] in ARRAY_WRITERS or "out" in args.keywords:
        engine.run.array_written(args.keywords.get("out") or args.get(0, "dst") or NONE, at)
    results = Tuple(tuple(_called_back(engine, path, args, at)))
    if engine.run.nodes_of(results):
        # json.loads(text, object_hook=function)
        return engine.run.taken(at, results, path)
    if _top(path) == "numpy" and any(map(_is_object, args.all())):
        # an array of anything
        return engine.run.taken(at, Tuple(tuple(args.all())), path)
    if path in ("numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray") and args.positional:
        # nothing is copied that is an array already
        given = args.positional[0]
        return Plain(PlainKind.ARRAY, shares=given) if isinstance(given, Tensor) else _array_of(given)
    if _top(path) in ("numpy", "math"):
        return ARRAY if _top(path) == "numpy" else NUMBER
    return engine.run.unknown(path, data=_top(path) in DATA_LIBRARIES, public=True)


def _array_of(given: Value) -> Value:
    return given if isinstance(given, Plain) and given.kind is PlainKind.ARRAY else ARRAY


def _is_object(dtype: Value) -> bool:
    """Whether it says of an array that its elements are objects (docs: numpy.dtype)."""
    named = isinstance(dtype, Const) and dtype.value in ("object", "O")
    return named or (isinstance(dtype, Library) and dtype.path in ("builtins.object", "numpy.object_", "numpy.object"))


@CALLS.of("sys.exc_info", "sys.exception")
def _caught(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    caught = next((frame.caught for frame in engine.run.frame.outward() if frame.caught is not None), None)
    caught = caught or engine.run.lost("exception")
    return caught if path == "sys.exception" else Tuple((engine.run.unknown(path), caught, engine.run.unknown(path)))


@CALLS.of("warnings.catch_warnings")
def _recorded(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    # a list of what was warned of
    return None if args.empty else engine.run.lost("warnings")


@CALLS.of("gc.get_objects", "gc.get_referents", "gc.get_referrers", "unittest.mock.patch", "unittest.mock.patch.*")
def _anywhere(engine: Torch, path: str, args: Arguments, at: ast.AST) -> None:
    # it reads what objects hold, or replaces that for a while
    engine.run.trace.complete = False


@CALLS.of("torch.autograd.graph.register_multi_grad_hook")
def _of_several_gradients(engine: Torch, path: str, args: Arguments, at: ast.AST) -> None:
    for value in engine.run.flat(args.get(0, "tensors") or NONE):
        engine.run.use(value, UseKind.GRADIENT_READ, at)
        engine.run.wants_gradient(value, at)


@CALLS.of("importlib.import_module")
def _imported(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    return engine.run.interpreter.import_named(args)


@CALLS.of("operator.methodcaller")
def _method_caller(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    # any method may be called by it, a backward, too
    named = bool(args.positional) and isinstance(args.positional[0], Const)
    return _called_with_last(path, args) if named else engine.run.unknown(path)


@CALLS.of("operator.attrgetter", "operator.itemgetter")
def _getter(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return _called_with_last(path, args)


def _called_with_last(path: str, args: Arguments) -> Partial:
    """What ``operator`` makes a function of: it gets an object after what it was made with."""
    return Partial(Library(f"{path}()"), tuple(args.positional), tuple(args.keywords.items()))


@CALLS.of("types.FunctionType", "types.LambdaType")
def _function_of_code(engine: Torch, path: str, args: Arguments, at: ast.AST) -> None:
    # what the code does is not followed
    engine.run.trace.complete = False


@CALLS.of(*whole(*CARRYING_LIBRARIES))
def _carrying(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    if path in CALLING_LATER:
        engine.run.escape_all(args.all(), Escape.CALLED_LATER)
    if path == "weakref.finalize" and any(map(engine.run.nodes_of, args.all())):
        # it also hands out what it was given, by a method that tensors have
        engine.run.trace.complete = False
    if path == "weakref.ref":
        engine.run.run_callbacks(args, at)
        return Reference(args.positional[0]) if args.positional else engine.run.unknown(path, public=True)
    followed = engine.run.interpreter.standard_call(path, args, at)
    if followed is not None:
        return followed
    if path in TRANSPARENT_WRAPPERS and args.all():
        return args.all()[0]
    return _looked_at(engine, path, args, at) if path in NUMBERS_OF else _carried(engine, path, args, at)


def _carried(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Unknown:
    """The result of a library that knows nothing of tensors: it passes on its arguments."""
    for value in args.all():
        engine.run.use(value, UseKind.CALL, at, path)
    results = _called_back(engine, path, args, at)
    made = engine.run.taken(at, Tuple((*args.all(), *results)), path)
    made.data, made.public = False, True
    engine.run.may_be_put(args, made, at)
    return made


def _called_back(engine: Torch, path: str, args: Arguments, at: ast.AST) -> list[Value]:
    """What the functions among the arguments return, where the library may call them."""
    if _top(path) == "inspect" or (path in _WRAPPING and engine.run.loading):
        engine.run.hand_over(args, at)
        return []
    return engine.run.run_callbacks(args, at)


@CALLS.of(*(path for path in CALLING_LATER if _top(path) not in CARRYING_LIBRARIES))
def _later(engine: Torch, path: str, args: Arguments, at: ast.AST) -> None:
    engine.run.escape_all(args.all(), Escape.CALLED_LATER)


# models and layers


@CALLS.of(*whole(*MODEL_LIBRARIES))
def _model(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return engine.blob(at, path)


@CALLS.of(*(f"{library}.*" for library in LAYER_LIBRARIES))
def _layer(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    last = path.rpartition(".")[2]
    if not last[:1].isupper() or last in REMEMBERING or any(engine.run.is_module(v) for v in args.positional):
        return None
    return engine.blob(at, path)


@CALLS.of(*whole(*PRETRAINED_LIBRARIES))
def _pretrained(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    if not path.endswith(".from_pretrained") or any(word in path for word in _PREPARING):
        return None
    return engine.blob(at, path) if "Model" in path or "For" in path else engine.run.unknown(path, public=True)
