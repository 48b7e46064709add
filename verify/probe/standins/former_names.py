"""What names of Python's library and others meant that their releases have no more, by module."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import os
import re
import sys
from typing import Any, NamedTuple


class _ArgSpec(NamedTuple):
    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def _getargspec(function: Any) -> _ArgSpec:
    return _ArgSpec(*inspect.getfullargspec(function)[:4])


def _strtobool(val: str) -> int:
    value = val.lower()
    if value in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if value in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"invalid truth value {val!r}")


def _load_source(name: str, pathname: str, file: Any = None) -> Any:
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = SourceFileLoader(name, pathname)
    spec = spec_from_loader(name, loader)
    assert spec is not None
    # Data classes and pickles look up the module of a class by its name.
    module = sys.modules[name] = module_from_spec(spec)
    loader.exec_module(module)
    return module


@functools.total_ordering
class _LooseVersion:
    """Numbers and words, each compared with what has its place; a text beside it is read as a version.

    (A development version comes before its release for ``packaging``, and behind it here.)
    """

    def __init__(self, vstring: str | None = None) -> None:
        if vstring:
            self.parse(vstring)

    def parse(self, vstring: str) -> None:
        self.vstring = vstring
        parts = re.findall(r"\d+|[a-z]+|[^\da-z.]+", vstring)
        self.version = [int(part) if part.isdigit() else part for part in parts]

    def __str__(self) -> str:
        return self.vstring

    def __eq__(self, other: object) -> bool:
        return self.version == _LooseVersion(str(other)).version

    def __lt__(self, other: object) -> bool:
        return self.version < _LooseVersion(str(other)).version


def _resource(package: str, name: str) -> str:
    file = getattr(importlib.import_module(package), "__file__", None)
    return os.path.join(os.path.dirname(file or ""), name)


def _distribution(requirement: Any) -> Any:
    """What is installed of it. Its version is not looked at: programs with old names ask for old releases."""
    from importlib.metadata import distribution

    return distribution(importlib.import_module("packaging.requirements").Requirement(str(requirement)).name)


def _require(*requirements: Any) -> list[Any]:
    """Who asks in order to know whether something is installed is told."""
    named = [one for each in requirements for one in ([each] if isinstance(each, str) else each)]
    return [_distribution(one) for one in named if one.strip()]


def _to_numpy_matrix(*arguments: Any, **named: Any) -> Any:
    import numpy as np

    return np.asmatrix(importlib.import_module("networkx").to_numpy_array(*arguments, **named))


def _to_scipy_sparse_matrix(*arguments: Any, **named: Any) -> Any:
    # Of arrays ``*`` is another product.
    made = importlib.import_module("networkx").to_scipy_sparse_array(*arguments, **named)
    return getattr(importlib.import_module("scipy.sparse"), f"{made.format}_matrix")(made)


def _in1d(ar1: Any, ar2: Any, *arguments: Any, **named: Any) -> Any:
    import numpy as np

    return np.isin(np.ravel(ar1), ar2, *arguments, **named)


def _assignment(X: Any) -> Any:  # noqa: N803
    import numpy as np

    return np.transpose(importlib.import_module("scipy.optimize").linear_sum_assignment(X))


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
    "row_stack": "vstack",
    "trapz": "trapezoid",
}
_SAMPLES = ("make_blobs", "make_circles", "make_classification", "make_moons", "make_regression", "make_swiss_roll")
#: What a name of a module meant, as a path or as itself. Sources: What's New in Python 3.8 to 3.12; the release notes
#: of NumPy 1.20 and 2.0, SciPy 1.0 to 1.14, scikit-learn 0.20 to 0.24, scikit-image 0.18, NetworkX 3.0,
#: torchvision 0.13, Pillow 10, Matplotlib 3.9, setuptools 82.
FORMER: dict[str, dict[str, Any]] = {
    "collections": {name: f"collections.abc.{name}" for name in _ABSTRACT},
    "inspect": {"getargspec": _getargspec},
    "fractions": {"gcd": "math.gcd"},
    "imp": {"reload": "importlib.reload", "load_source": _load_source},
    "distutils": {},
    "distutils.version": {"LooseVersion": _LooseVersion, "StrictVersion": "packaging.version.Version"},
    "distutils.util": {"strtobool": _strtobool},
    "pkg_resources": {
        "parse_version": "packaging.version.parse",
        "get_distribution": _distribution,
        "DistributionNotFound": "importlib.metadata.PackageNotFoundError",
        "resource_filename": _resource,
        "require": _require,
        "declare_namespace": lambda *_: None,
    },
    "time": {"clock": "time.process_time"},
    "numpy": {
        **{name: f"builtins.{name}" for name in ("bool", "int", "float", "complex", "object", "str")},
        **{name: f"builtins.{now}" for name, now in (("long", "int"), ("unicode", "str"))},
        **dict.fromkeys(("Inf", "Infinity", "PINF", "infty"), "numpy.inf"),
        **dict.fromkeys(("NaN", "NAN"), "numpy.nan"),
        **{name: f"numpy.{now}" for name, now in _NUMPY.items()},
        "in1d": _in1d,
        "mat": "numpy.asmatrix",
        "math": "math",
        "asscalar": operator.methodcaller("item"),
    },
    "scipy.misc": {
        **dict(zip(("imread", "imsave", "imresize", "toimage"), (_imread, _imsave, _imresize, _toimage), strict=True)),
        **{name: f"scipy.special.{name}" for name in ("comb", "factorial", "logsumexp")},
    },
    "scipy": {"interp": "numpy.interp"},
    "scipy.integrate": {
        "simps": "scipy.integrate.simpson",
        "trapz": "scipy.integrate.trapezoid",
        "cumtrapz": "scipy.integrate.cumulative_trapezoid",
    },
    "scipy.signal": {
        name: f"scipy.signal.windows.{name}" for name in ("gaussian", "hann", "hamming", "blackman", "kaiser")
    },
    "sklearn.cross_validation": {"train_test_split": "sklearn.model_selection.train_test_split"},
    "sklearn.datasets.samples_generator": {name: f"sklearn.datasets.{name}" for name in _SAMPLES},
    "sklearn.utils.linear_assignment_": {"linear_assignment": _assignment},
    "sklearn.externals": {"joblib": "joblib", "six": "six"},
    "skimage.measure": {
        "compare_psnr": "skimage.metrics.peak_signal_noise_ratio",
        "compare_ssim": "skimage.metrics.structural_similarity",
    },
    "networkx": {
        "from_numpy_matrix": "networkx.from_numpy_array",
        "to_numpy_matrix": _to_numpy_matrix,
        "from_scipy_sparse_matrix": "networkx.from_scipy_sparse_array",
        "to_scipy_sparse_matrix": _to_scipy_sparse_matrix,
    },
    "PIL.Image": {"ANTIALIAS": "PIL.Image.LANCZOS", "LINEAR": "PIL.Image.BILINEAR", "CUBIC": "PIL.Image.BICUBIC"},
    "matplotlib.cm": {"get_cmap": "matplotlib.pyplot.get_cmap"},
    "torchvision.models.utils": {"load_state_dict_from_url": "torch.hub.load_state_dict_from_url"},
}
#: Modules that are gone altogether; what is in a folder that is left is not.
GONE = frozenset(name for name in FORMER if "." in name) | {"imp", "distutils", "pkg_resources"}
