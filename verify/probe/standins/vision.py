"""torchvision's data sets on a machine that lacks their data, and torchvision itself beside a torch without CUDA.

The real constructor always goes first, with ``download=False``. Only where it fails for want of data are items made up;
``__getitem__``, transforms and everything else stay torchvision's (or the script's, in a subclass).
"""

from __future__ import annotations

import functools
import inspect
import os
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..guarding.guard import Write
from . import folders, table

#: Operators that torchvision describes to torch without asking whether its compiled half could be loaded.
_OPERATORS = ("nms", "qnms")
_SCHEMA = "{}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
#: A library of operators lives as long as its object.
_libraries: list[Any] = []


def define_operators(write: Write) -> None:
    """Let a torchvision that was built for CUDA be imported beside a CPU torch, which cannot load its operators.

    Call it between the import of ``torchvision.extension`` and that of the rest; writes a ``note`` where it helped.
    """
    import torch

    extension = sys.modules["torchvision.extension"]
    if getattr(extension, "_has_ops", lambda: True)() or hasattr(torch.ops.torchvision, "nms"):
        return
    library = torch.library.Library("torchvision", "DEF")
    for name in _OPERATORS:
        library.define(_SCHEMA.format(name))
    _libraries.append(library)
    write(
        {"event": "note", "text": "torchvision does not fit this torch: its own operators (nms, roi_align) are missing"}
    )


def patch(folder: str, write: Write) -> None:
    """Watch the constructors of ``torchvision.datasets``; images lie below ``folder``. Writes ``standin`` events."""
    datasets = sys.modules["torchvision.datasets"]
    record = _record(write)
    kinds: dict[str, Any] = {name: _class(datasets, name) for name in (*dir(datasets), *table.ARRAYS, *table.IMAGES)}
    for name, kind in kinds.items():
        if not inspect.isclass(kind) or "__init__" not in vars(kind):
            continue
        if name in table.ARRAYS:
            constructor = _tried(kind.__init__, _in_arrays(record))
        elif name in table.IMAGES:
            constructor = _tried(kind.__init__, _in_folder(name, folder, record))
        elif "download" in inspect.signature(kind.__init__).parameters:
            constructor = _tried(kind.__init__, lambda *_: False)
        else:
            continue
        kind.__init__ = constructor  # type: ignore[method-assign]


def _class(datasets: Any, name: str) -> Any:
    if name == "_VOCBase":  # the module exports its two children only
        return getattr(sys.modules.get("torchvision.datasets.voc"), name, None)
    return getattr(datasets, name, None)


def _tried(original: Callable[..., None], stand_in: Callable[..., bool]) -> Callable[..., None]:
    """``original`` without downloads; where it fails for want of data, ``stand_in(self, original, bound, error)``.

    ``stand_in`` returns False where it cannot help; the error is then the script's.
    """

    @functools.wraps(original)
    def constructor(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = inspect.signature(original).bind(self, *args, **kwargs)
        except TypeError:
            # Python's own words for it are the constructor's.
            return original(self, *args, **kwargs)
        for arguments in _arguments(bound):
            if arguments.get("download"):
                arguments["download"] = False
        restore = _random_states()
        try:
            original(*bound.args, **bound.kwargs)
        except (RuntimeError, OSError, ImportError) as error:
            restore()
            # A missing library is no missing data, but ImageNet asks for scipy before it looks for its archives.
            if isinstance(error, ImportError) and original.__qualname__ != "ImageNet.__init__":
                raise
            if not stand_in(self, original, bound, error):
                raise
        return None

    return constructor


def _arguments(bound: inspect.BoundArguments) -> Iterator[dict[str, Any]]:
    """The arguments by name, and those that a ``**kwargs`` collects."""
    yield bound.arguments
    for parameter in bound.signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD and parameter.name in bound.arguments:
            yield bound.arguments[parameter.name]


def _random_states() -> Callable[[], None]:
    """Return what puts the generators of torch, numpy and random back to where they are now."""
    import torch

    state, python_state = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None

    def restore() -> None:
        torch.set_rng_state(state)
        random.setstate(python_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)

    return restore


def _record(write: Write) -> Callable[..., None]:
    """Return what tells once that a data set is made up: its name, its error, an item's shape, how many classes."""
    told: set[str] = set()

    def record(name: str, error: BaseException, shape: Any, classes: int) -> None:
        text = table.described(name, shape, classes)
        # Parts of one data set are one matter.
        if text in told:
            return
        told.add(text)
        why = "{}: {}".format(type(error).__name__, str(error).strip().split("\n")[0])
        write({"event": "standin", "what": text, "why": why[:200], "shape": [table.ITEMS, *shape]})
        print(f"codemod: stand-in data: {text}", file=sys.stderr)

    return record


def _in_arrays(record: Callable[..., None]) -> Callable[..., bool]:
    def stand_in(self: Any, original: Any, bound: inspect.BoundArguments, error: BaseException) -> bool:
        # FashionMNIST runs MNIST's constructor, and a script's own class runs that of its base.
        names = [kind.__name__ for kind in type(self).__mro__ if kind.__module__.split(".")[0] == "torchvision"]
        name = next(name for name in names if name in table.ARRAYS)
        form = table.ARRAYS[name]
        _fill(self, name, form)
        record(name, error, form.item, _classes(self, name, form))
        return True

    return stand_in


def _classes(self: Any, name: str, form: table.Arrays) -> int:
    return table.EMNIST_CLASSES[self.split] if name == "EMNIST" else form.classes


def _fill(self: Any, name: str, form: table.Arrays) -> None:
    """Give ``self`` items; its constructor has set its split and transforms before it failed."""
    import torch

    classes = _classes(self, name, form)
    part = getattr(self, "train", getattr(self, "split", True))
    stream = torch.Generator().manual_seed(0 if part in (True, "train") else 1)
    data = torch.randint(0, 256, (table.ITEMS, *form.item), generator=stream, dtype=torch.uint8)
    targets = torch.randint(0, classes, (table.ITEMS,), generator=stream)
    if name == "EMNIST" and self.split == "letters":
        targets += 1
    if name == "QMNIST":
        facts = torch.zeros(table.ITEMS, table.QMNIST_COLUMNS - 1, dtype=torch.int64)
        targets = torch.cat([targets[:, None], facts], dim=1)
    if name == "STL10" and "unlabeled" in self.split:
        targets[0 if self.split == "unlabeled" else table.ITEMS // 2 :] = -1
    self.data = _as(form.data, data)
    setattr(self, form.attribute, _as(form.targets, targets))
    if form.named:
        self.classes = [str(index) for index in range(classes)]
        if name != "STL10":
            self.class_to_idx = {label: index for index, label in enumerate(self.classes)}


def _as(kind: str, tensor: Any) -> Any:
    if kind == "tensor":
        return tensor
    return tensor.numpy() if kind == "numpy" else tensor.tolist()


def _in_folder(name: str, folder: str, record: Callable[..., None]) -> Callable[..., bool]:
    """Make the folder that the constructor looks for, and run it there."""
    form = table.IMAGES[name]

    def stand_in(self: Any, original: Any, bound: inspect.BoundArguments, error: BaseException) -> bool:
        made = folders.make(name, self, bound.arguments, folder)
        if made is None:
            return False
        if name == "Flowers102":
            _fill_flowers(self, made, bound, form.classes)
            record(name, error, (form.height, form.width, 3), form.classes)
            return True
        bound.arguments["root"] = made
        if name == "CelebA":
            # It compares checksums of the lists; an attribute of the object hides the method for this one call.
            self._check_integrity = lambda: True
        try:
            original(*bound.args, **bound.kwargs)
        except (RuntimeError, OSError):
            return False
        finally:
            vars(self).pop("_check_integrity", None)
        shown = type(self).__name__ if name in ("DatasetFolder", "_VOCBase") else name
        record(shown, error, (form.height, form.width, 3), form.classes)
        return True

    return stand_in


def _fill_flowers(self: Any, folder: str, bound: inspect.BoundArguments, classes: int) -> None:
    """Its labels lie in a file of MATLAB's, which nothing here can write."""
    names = sorted(os.listdir(folder))
    self._image_files = [os.path.join(folder, name) for name in names]
    self._labels = [index % classes for index in range(len(names))]
    self.loader = bound.arguments.get("loader") or sys.modules["torchvision.datasets.folder"].default_loader
