"""What --stand-in declares: read, refused with a reason, and never outside of the tree."""

from pathlib import Path
from typing import Any

import pytest

from verify.running.standins import parse


def declared(path: str, dtype: str, shape: list[int], key: str | None = None, below: int | None = None) -> Any:
    return {"path": path, "key": key, "dtype": dtype, "shape": shape, "below": below}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("data/x.npy=float32:1000,3,32,32", declared("data/x.npy", "float32", [1000, 3, 32, 32])),
        ("y.npy=int64:1000<10", declared("y.npy", "int64", [1000], below=10)),
        (
            " y.npy = int64 : 1000 < 10 ".replace(" = ", "=").replace(" : ", ":"),
            declared("y.npy", "int64", [1000], None, 10),
        ),
        ("./data/../x.bin=uint16:5".replace("uint16", "int16"), declared("x.bin", "int16", [5])),
        ("d.npz[images]=uint8:10,28,28", declared("d.npz", "uint8", [10, 28, 28], "images")),
        ("d.pt[y]=int64:10<3", declared("d.pt", "int64", [10], "y", 3)),
        ("d.pt=float32:10,3", declared("d.pt", "float32", [10, 3])),
        ("input.txt=text:100000", declared("input.txt", "text", [100000])),
        ("table.csv=float64:10,4", declared("table.csv", "float64", [10, 4])),
        ("img/*.png=uint8:8,32,32,3", declared("img/*.png", "uint8", [8, 32, 32, 3])),
        ("flags.npy=bool:7", declared("flags.npy", "bool", [7])),
        ("x.unheard=float32:4", declared("x.unheard", "float32", [4])),
        ("x.npy=uint8:4<256", declared("x.npy", "uint8", [4], below=256)),
        ("x.npy=float32:4<1", declared("x.npy", "float32", [4], below=1)),
    ],
)
def test_declarations_are_read(text: str, result: dict[str, Any]) -> None:
    assert parse(text) == result


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x.npy", "is not a declaration"),
        ("x.npy=float32", "is not a declaration"),
        ("x.npy=float32:", "is not a declaration"),
        ("=float32:3", "is not a declaration"),
        ("x.npy=float32:3,,3", "is not a shape"),
        ("x.npy=float31:3", "float31 is not one of"),
        ("x.h5=float32:3", r"for \.h5 files"),
        ("x.PKL=float32:3", r"for \.pkl files"),
        ("x.npy[k]=float32:3", "hold arrays by name"),
        ("x.npz=float32:3", "name the array"),
        ("x.npy=text:3", "text takes"),
        ("x.txt=text:3,4", "text takes"),
        ("x.npy=float32:0", "without data"),
        ("x.npy=int64:3<0", "without data"),
        ("x.npy=bool:3<2", "two values already"),
        ("x.npy=uint8:3<257", "holds no numbers up to 256"),
        ("x.npy=int8:3<129", "holds no numbers up to 128"),
        ("x.npy=float64:1000000,1000", "larger than 1 GiB"),
        ("x.csv=float32:2,3,4", "rows and columns"),
        ("x.png=float32:8,8,3", "an image is"),
        ("x.png=uint8:8,8,2", "an image is"),
        ("*/x.npy=float32:2,3", r"one \* may stand"),
        ("*.npy=float32:2", "first dimension is the number of files"),
        ("../x.npy=float32:2", "outside the tree"),
        ("/elsewhere/x.npy=float32:2", "outside the tree"),
    ],
)
def test_what_cannot_be_made_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text)


def test_an_absolute_path_in_the_tree_is_made_relative(tmp_path: Path) -> None:
    assert parse(f"{tmp_path}/data/x.npy=float32:2", tmp_path)["path"] == "data/x.npy"
    with pytest.raises(ValueError, match="outside the tree"):
        parse(f"{tmp_path.parent}/x.npy=float32:2", tmp_path)
