"""What torchvision's data sets look like, as far as their stand-ins must look alike."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Items of a made-up set: a few dozen batches for the short runs of verify.
ITEMS = 512


class Arrays(NamedTuple):
    """A set that keeps all its items in arrays.

    ``item`` is the shape of one item as the set stores it (uint8), ``classes`` the number of classes, ``data`` and
    ``targets`` what holds them ("tensor", "numpy" or "list"), ``attribute`` the name of the targets, ``named`` whether
    the constructor sets ``classes`` and ``class_to_idx`` from a file.
    """

    item: tuple[int, ...]
    classes: int
    data: str = "numpy"
    attribute: str = "targets"
    targets: str = "list"
    named: bool = False


_DIGITS = Arrays((28, 28), 10, data="tensor", targets="tensor")

#: Shapes, storage and class counts: the constructors in torchvision/datasets (mnist.py, usps.py, cifar.py, svhn.py,
#: stl10.py; release 0.28) and the data sets' own pages that their docstrings link.
ARRAYS: dict[str, Arrays] = {
    "MNIST": _DIGITS,
    "FashionMNIST": _DIGITS,
    "KMNIST": _DIGITS,
    "EMNIST": _DIGITS,
    "QMNIST": _DIGITS,
    "USPS": Arrays((16, 16), 10),
    "CIFAR10": Arrays((32, 32, 3), 10, named=True),
    "CIFAR100": Arrays((32, 32, 3), 100, named=True),
    "SVHN": Arrays((3, 32, 32), 10, attribute="labels", targets="numpy"),
    "STL10": Arrays((3, 96, 96), 10, attribute="labels", targets="numpy", named=True),
}

#: EMNIST has a split for each way of counting letters (arXiv:1702.05373, table II). The labels of ``letters`` begin
#: with 1.
EMNIST_CLASSES = {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 26, "digits": 10, "mnist": 10}
#: A label of QMNIST is a class and seven facts about the writer (arXiv:1905.10498).
QMNIST_COLUMNS = 8


class Images(NamedTuple):
    """A set that reads image files: height and width of one, and the number of classes or of attributes."""

    height: int
    width: int
    classes: int


#: Sets that keep files in folders: the real sizes where all images have one (CelebA, EuroSAT), else a usual one; from
#: where the others are. How many classes an ImageFolder would have, nobody knows; 2 are valid for every classifier.
IMAGES: dict[str, Images] = {
    "DatasetFolder": Images(256, 256, 2),
    "ImageNet": Images(256, 256, 1000),
    "CelebA": Images(218, 178, 40),
    "_VOCBase": Images(375, 500, 20),
    "EuroSAT": Images(64, 64, 10),
    "Flowers102": Images(500, 667, 102),
    "Food101": Images(384, 512, 101),
    "GTSRB": Images(48, 48, 43),
    "OxfordIIITPet": Images(375, 500, 37),
}
CELEBA_PEOPLE = 10177


def described(name: str, shape: Any, classes: int) -> str:
    """For people: ``CIFAR10 (512 made-up items of 32x32x3, 10 classes)``."""
    return "{} ({} made-up items of {}, {} classes)".format(name, ITEMS, "x".join(map(str, shape)), classes)
