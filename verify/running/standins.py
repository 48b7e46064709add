"""What ``--stand-in`` declares: a data file that the script opens and that is not there.

The probe (:mod:`verify.probe.standins`) writes the file in the run's throw-away copy of the tree; nothing is written
where a file already is. What runs on such data can show that an error is gone, that memory is flat and that two
programs compute the same, and nothing about accuracy.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from codemods.terms.words import words

#: Bytes of one element; ``text`` is made of letters.
DTYPES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "text": 1,
}
#: More than this is a slip of the keyboard, or a disk filled.
LARGEST = 1 << 30
#: Formats with a structure of their own, of which a shape and a type say too little.
UNSUPPORTED = words(
    ".arrow .bz2 .feather .gz .h5 .hdf5 .json .jsonl .lmdb .mat .parquet .pickle .pkl .safetensors .tar .tfrecord .wav "
    ".xml .xz .yaml .zip"
)
KEYED = (".npz", ".pt", ".pth")

_DECLARATION = re.compile(
    r"(?P<path>[^=]+?)(\[(?P<key>[^\]]+)\])?=(?P<dtype>[a-z]+\d*):(?P<shape>[\d, ]+?)\s*(<\s*(?P<below>\d+))?"
)
_EXAMPLE = "data/x.npy=float32:1000,3,32,32 or data/y.npy=int64:1000<10"


def parse(text: str, root: Path | None = None) -> dict[str, Any]:
    """Read one declaration, ``PATH[KEY]=DTYPE:SHAPE<BELOW``, and return what the probe's configuration holds of it.

    * PATH is relative to the tree, and its suffix decides the format: ``.npy``, ``.npz``, ``.pt`` and ``.pth`` (saved
      by torch), ``.csv``, ``.tsv`` and ``.txt`` (a row a line, no header), ``.png``, ``.jpg``, ``.jpeg`` and ``.bmp``
      (height, width, channels), anything else the raw little-endian elements. A ``*`` in the file's name makes one file
      for each index of the first dimension.
    * ``[KEY]`` names an array of an ``.npz``, or of a ``.pt`` that holds a dictionary; one declaration a key.
    * DTYPE is a name of numpy's and torch's, or ``text`` for letters in lines (the shape is then their number).
    * ``<BELOW`` draws whole numbers from 0 to BELOW - 1, as class indices are. Without it they are drawn below 2, which
      is an index into anything that has classes, and ``uint8`` below 256. Floats are drawn from a normal distribution,
      with BELOW evenly between 0 and it.

    The result has ``path`` (with ``/``), ``key`` (or None), ``dtype``, ``shape`` (list) and ``below`` (or None). An
    absolute PATH is accepted below ``root``, the tree. Raises ValueError, saying what is wrong, for anything else.
    """
    match = _DECLARATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a declaration; one looks like {_EXAMPLE}")
    path = _relative(match["path"].strip(), root)
    suffix = PurePosixPath(path).suffix.lower()
    dtype, key = match["dtype"], match["key"]
    below = None if match["below"] is None else int(match["below"])
    try:
        shape = [int(size) for size in match["shape"].split(",")]
    except ValueError:
        raise ValueError(f"{text!r}: {match['shape']!r} is not a shape; one looks like 1000,3,32,32") from None
    if dtype not in DTYPES:
        raise ValueError(f"{text!r}: {dtype} is not one of {', '.join(DTYPES)}")
    if suffix in UNSUPPORTED:
        raise ValueError(f"{text!r}: no stand-in can be made for {suffix} files from a type and a shape")
    if key is not None and suffix not in KEYED:
        raise ValueError(f"{text!r}: only {', '.join(KEYED)} files hold arrays by name")
    if suffix == ".npz" and key is None:
        raise ValueError(f"{text!r}: name the array, as in {path}[images]={dtype}:{match['shape']}")
    if dtype == "text" and (len(shape) != 1 or below is not None or suffix in KEYED or suffix == ".npy"):
        raise ValueError(f"{text!r}: text takes a number of letters and a file of text, as in input.txt=text:100000")
    if 0 in shape or below == 0:
        raise ValueError(f"{text!r}: a file without data stands in for nothing")
    if below is not None and dtype == "bool":
        raise ValueError(f"{text!r}: bool has two values already")
    if below is not None and "float" not in dtype and below > _values(dtype):
        raise ValueError(f"{text!r}: {dtype} holds no numbers up to {below - 1}")
    if math.prod(shape) * DTYPES[dtype] > LARGEST:
        raise ValueError(f"{text!r}: larger than {LARGEST >> 30} GiB; a short run needs only the first items")
    _check_dimensions(text, path, suffix, dtype, shape)
    return {"path": path, "key": key, "dtype": dtype, "shape": shape, "below": below}


def _values(dtype: str) -> int:
    """How many whole numbers from 0 an integer type holds."""
    bits = 8 * DTYPES[dtype]
    return int(1 << bits if dtype == "uint8" else 1 << (bits - 1))


def _relative(path: str, root: Path | None) -> str:
    if os.path.isabs(path):
        if root is None or not Path(path).is_relative_to(root):
            raise ValueError(f"{path}: outside the tree; nothing is written there. Let the script take another path")
        path = str(Path(path).relative_to(root))
    path = os.path.normpath(path).replace(os.sep, "/")
    if path.startswith("../") or path in ("..", "."):
        raise ValueError(f"{path}: outside the tree; nothing is written there. Let the script take another path")
    return path


def _check_dimensions(text: str, path: str, suffix: str, dtype: str, shape: list[int]) -> None:
    dimensions = len(shape)
    if "*" in path:
        if "*" in path.rpartition("/")[0] or path.count("*") > 1:
            raise ValueError(f"{text!r}: one * may stand in the file's name")
        if dimensions == 1:
            raise ValueError(f"{text!r}: the first dimension is the number of files; add those of one file")
        dimensions -= 1
    if suffix in (".csv", ".tsv", ".txt") and dtype != "text" and dimensions > 2:
        raise ValueError(f"{text!r}: a {suffix} file has rows and columns only")
    if suffix in (".png", ".jpg", ".jpeg", ".bmp"):
        channels = shape[-1] if dimensions == 3 else 1
        if dtype != "uint8" or dimensions not in (2, 3) or channels not in (1, 3, 4):
            raise ValueError(f"{text!r}: an image is uint8:HEIGHT,WIDTH or uint8:HEIGHT,WIDTH,3")
