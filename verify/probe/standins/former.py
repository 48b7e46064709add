"""Names that releases of Python, NumPy and others have no more: what took their place stands for them.

Old programs stop at such names long before they train.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import re
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from ..guarding.guard import Write
from ..guarding.hooks import when_imported


class _ArgSpec(NamedTuple):
    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def _getargspec(function: Any) -> _ArgSpec:
    return _ArgSpec(*inspect.getfullargspec(function)[:4])


def _image() -> Any:
    return importlib.import_module("PIL.Image")


def _imread(name: Any, flatten: bool = False, mode: str | None = None) -> Any:
    import numpy as np

    image = _image().open(name)
    image = image.convert("F" if flatten else mode or ("RGB" if image.mode == "P" else image.mode))
    return np.array(image)


def _imsave(name: Any, arr: Any, format: str | None = None) -> None:
    _toimage(arr).save(name, format)


def _imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> Any:
    import numpy as np

    image = _toimage(arr)
    if isinstance(size, (int, float)):
        scale = size / 100 if isinstance(size, int) else size
        width, height = int(image.width * scale), int(image.height * scale)
    else:
        height, width = size[:2]
    return np.array(image.resize((width, height), getattr(_image().Resampling, interp.upper())))


def _toimage(arr: Any, *_: Any, cmin: Any = None, cmax: Any = None, **__: Any) -> Any:
    import numpy as np

    arr = np.asarray(arr)
    if arr.ndim == 3 and arr.shape[0] in (3, 4) and arr.shape[2] not in (3, 4):
        arr = arr.transpose(1, 2, 0)
    if arr.dtype != np.uint8:
        low = arr.min() if cmin is None else cmin
        high = arr.max() if cmax is None else cmax
        arr = np.clip((arr - low) * (255.0 / ((high - low) or 1)) + 0.5, 0, 255).astype(np.uint8)
    return _image().fromarray(arr)


_ABSTRACT = (
    *("Callable", "Container", "Generator", "Hashable", "ItemsView", "Iterable", "Iterator", "KeysView", "Mapping"),
    *("MappingView", "MutableMapping", "MutableSequence", "MutableSet", "Sequence", "Set", "Sized", "ValuesView"),
)
_NUMPY = {
    "float_": "float64",
    "complex_": "complex128",
    "unicode_": "str_",
    "string_": "bytes_",
    "product": "prod",
    "cumproduct": "cumprod",
    "alltrue": "all",
    "sometrue": "any",
    "round_": "round",
    "in1d": "isin",
    "row_stack": "vstack",
    "trapz": "trapezoid",
}
#: What a name of a module meant, as a path or as itself. Sources: What's New in Python 3.8 to 3.11; the release notes
#: of NumPy 1.20 and 2.0, SciPy 1.0 to 1.3, scikit-learn 0.23, scikit-image 0.18, NetworkX 3.0, torchvision 0.13.
FORMER: dict[str, dict[str, Any]] = {
    "collections": {name: f"collections.abc.{name}" for name in _ABSTRACT},
    "inspect": {"getargspec": _getargspec},
    "fractions": {"gcd": "math.gcd"},
    "time": {"clock": "time.process_time"},
    "numpy": {
        **{name: f"builtins.{name}" for name in ("bool", "int", "float", "complex", "object", "str")},
        **{name: f"builtins.{now}" for name, now in (("long", "int"), ("unicode", "str"))},
        **dict.fromkeys(("Inf", "Infinity", "PINF", "infty"), "numpy.inf"),
        **dict.fromkeys(("NaN", "NAN"), "numpy.nan"),
        **{name: f"numpy.{now}" for name, now in _NUMPY.items()},
        "math": "math",
        "asscalar": operator.methodcaller("item"),
    },
    "scipy.misc": {
        **dict(zip(("imread", "imsave", "imresize", "toimage"), (_imread, _imsave, _imresize, _toimage), strict=True)),
        **{name: f"scipy.special.{name}" for name in ("comb", "factorial", "logsumexp")},
    },
    "sklearn.externals": {"joblib": "joblib", "six": "six"},
    "skimage.measure": {
        "compare_psnr": "skimage.metrics.peak_signal_noise_ratio",
        "compare_ssim": "skimage.metrics.structural_similarity",
    },
    "networkx": {"from_numpy_matrix": "networkx.from_numpy_array"},
    "torchvision.models.utils": {"load_state_dict_from_url": "torch.hub.load_state_dict_from_url"},
}
_STOPPED = re.compile(
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'"
    r"|cannot import name '(?P<imported>\w+)' from '(?P<origin>[\w.]+)'"
    r"|`np\.(?P<numpy>\w+)` was removed"
    r"|No module named '(?P<gone>[\w.]+)'"
)
_CALLED = re.compile(
    r"load\(\) missing 1 required positional argument: 'Loader'"
    r"|Unable to avoid copy while creating an array as requested"
)


def is_former(message: str) -> bool:
    """Whether ``message`` is that of an error about a name which a module had once."""
    match = _STOPPED.match(message)
    if match is None:
        return _CALLED.match(message) is not None
    if match["gone"]:
        return match["gone"] in FORMER and "." in match["gone"]
    module = match["module"] or match["origin"] or "numpy"
    return (match["name"] or match["imported"] or match["numpy"]) in FORMER.get(module, {})


def install(write: Write) -> None:
    """Have such names be found from now on. Writes a ``standin`` event for each that is asked for."""
    for module, names in FORMER.items():
        when_imported(module, functools.partial(_patch, module, names, write))
    for module, name, amend in (("yaml", "load", _loader), ("numpy", "array", _copy)):
        when_imported(module, functools.partial(_once_valid, module, name, amend, write))
    sys.meta_path.append(_Finder())


def _patch(name: str, names: dict[str, Any], write: Write) -> None:
    module = sys.modules[name]
    held = vars(module)
    before = held.get("__getattr__")

    def find(name: str) -> Any:
        if name not in names:
            if before is not None:
                return before(name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        value = names[name]
        if isinstance(value, str):
            place, _, last = value.rpartition(".")
            value = getattr(importlib.import_module(place), last) if place else importlib.import_module(value)
        held[name] = value
        meant = names[name] if isinstance(names[name], str) else "what it did"
        what = f"{module.__name__}.{name}"
        write({"event": "standin", "what": what, "why": f"no longer there; {meant} stands for it", "shape": None})
        return value

    held["__getattr__"] = find


#: Changes the named arguments of a call of a library that was valid once, and says what it made of it; nothing where it
#: still is.
_Amend = Callable[[Any, tuple[Any, ...], dict[str, Any]], str]


def _once_valid(module: str, name: str, amend: _Amend, write: Write) -> None:
    """Have the function ``name`` of ``module`` take what it took."""
    library: Any = sys.modules[module]
    original = getattr(library, name)
    told = False

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal told
        why = amend(library, arguments, named)
        if why and not told:
            told = True
            write({"event": "standin", "what": f"{module}.{name}", "why": why, "shape": None})
        return original(*arguments, **named)

    setattr(library, name, call)


def _loader(yaml: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """PyYAML 6 asks for a loader; before 5.1 the one was taken that may run code, now the full one is."""
    if named or len(arguments) != 1:
        return ""
    named["Loader"] = yaml.FullLoader
    return "without a loader; the full one"


def _copy(numpy: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """NumPy 2 raises where ``copy=False`` cannot be had; before, it copied there."""
    if named.get("copy", True) is not False:
        return ""
    named["copy"] = None
    return "copy=False means to copy where that must be, as before NumPy 2"


class _Finder:
    """Last in ``sys.meta_path``: makes modules that are gone altogether."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name in FORMER and "." in name else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Nothing stands in it but what :func:`install` puts there."""
