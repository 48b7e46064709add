"""Folders as the image data sets of torchvision look for them, with made-up images.

They lie beside the records, not where the script looks: that may be outside of the run's copy of the tree. A few images
serve all names; the others are links to them.
"""

from __future__ import annotations

import functools
import json
import os
import random
from collections.abc import Callable, Mapping
from typing import Any

from . import formats, table

_DISTINCT = 16
_VOC_OBJECT = (
    "<object><name>{name}</name><pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult><bndbox>"
    "<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
)
_VOC_ANNOTATION = (
    "<annotation><folder>VOC</folder><filename>{file}</filename><size><width>{width}</width><height>{height}</height>"
    "<depth>3</depth></size><segmented>0</segmented>{objects}</annotation>"
)
#: The classes of Pascal VOC (host.robots.ox.ac.uk/pascal/VOC/voc2012).
_VOC_CLASSES = (
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
)


def make(name: str, dataset: Any, arguments: Mapping[str, Any], folder: str) -> str | None:
    """Return the root folder to give the constructor of ``name`` (a key of ``table.IMAGES``), made if need be.

    ``dataset`` is the object whose constructor failed, ``arguments`` are those it had. None where the data set does not
    read images. Raises OSError where ``folder`` cannot be written.
    """
    build: Callable[[str, table.Images, str], None]
    part = str(getattr(dataset, "split", getattr(dataset, "_split", "")))
    if name == "DatasetFolder":
        suffix = _image_suffix(arguments.get("extensions"))
        if suffix is None:
            return None
        # Folders called train and val are two parts; where they lie differs from copy to copy of the tree.
        part = os.path.basename(os.path.normpath(str(arguments["root"]))) + suffix
        build = functools.partial(_image_folder, suffix=suffix)
    elif name == "_VOCBase":
        part = f"{dataset.year}-{dataset.image_set}-{dataset._SPLITS_DIR}"
        build = functools.partial(_voc, dataset=dataset)
    else:
        build = _BUILDERS[name]
    root = os.path.join(folder, "images", str(os.getpid()), f"{name}-{part}")
    if not os.path.isdir(root):
        os.makedirs(root)
        build(root, table.IMAGES[name], part)
    return root


def _image_suffix(extensions: Any) -> str | None:
    extensions = (extensions,) if isinstance(extensions, str) else extensions
    images = [suffix for suffix in extensions or (".png",) if suffix.lower().lstrip(".") in ("png", "jpg", "jpeg")]
    return "." + images[0].lstrip(".") if images else None


def _images(
    folder: str, names: list[str], form: table.Images, part: str, first: int = 0, below: int = 256, channels: int = 3
) -> None:
    """Images called ``names`` (paths below ``folder``) of values from ``first`` to ``below`` - 1."""
    os.makedirs(folder, exist_ok=True)
    count = form.height * form.width * channels
    shifted = bytes((value + first) % 256 for value in range(256))
    originals: list[str] = []
    for index, name in enumerate(names):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if index >= _DISTINCT:
            os.symlink(originals[index % _DISTINCT], path)
            continue
        data = formats.elements("uint8", count, below - first, f"{part}: image {index}").translate(shifted)
        with open(path, "wb") as file:
            file.write(formats.png(form.height, form.width, channels, data))
        originals.append(path)


def _lines(path: str, lines: list[str]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def _image_folder(root: str, form: table.Images, part: str, suffix: str) -> None:
    _images(root, [f"{index % form.classes}/{index:04d}{suffix}" for index in range(table.ITEMS)], form, part)


def _eurosat(root: str, form: table.Images, part: str) -> None:
    _image_folder(os.path.join(root, "eurosat", "2750"), form, part, ".jpg")


def _flowers(root: str, form: table.Images, part: str) -> None:
    _images(root, [f"image_{index:05d}.jpg" for index in range(table.ITEMS)], form, part)


def _food(root: str, form: table.Images, part: str) -> None:
    base = os.path.join(root, "food-101")
    names: dict[str, list[str]] = {}
    for index in range(table.ITEMS):
        kind = f"class_{index % form.classes:03d}"
        names.setdefault(kind, []).append(f"{kind}/{index}")
    paths = [name + ".jpg" for kind in names.values() for name in kind]
    _images(os.path.join(base, "images"), paths, form, part)
    _lines(os.path.join(base, "meta", part + ".json"), [json.dumps(names)])


def _gtsrb(root: str, form: table.Images, part: str) -> None:
    base = os.path.join(root, "gtsrb")
    if part == "train":
        paths = [f"{index % form.classes:05d}/{index:05d}.ppm" for index in range(table.ITEMS)]
        _images(os.path.join(base, "GTSRB", "Training"), paths, form, part)
        return
    paths = [f"{index:05d}.ppm" for index in range(table.ITEMS)]
    _images(os.path.join(base, "GTSRB", "Final_Test", "Images"), paths, form, part)
    rows = [f"{path};{index % form.classes}" for index, path in enumerate(paths)]
    _lines(os.path.join(base, "GT-final_test.csv"), ["Filename;ClassId", *rows])


def _pets(root: str, form: table.Images, part: str) -> None:
    base = os.path.join(root, "oxford-iiit-pet")
    names = [f"breed_{index % form.classes}_{index}" for index in range(table.ITEMS)]
    _images(os.path.join(base, "images"), [name + ".jpg" for name in names], form, part)
    # Trimaps: 1 the animal, 2 the background, 3 neither.
    trimaps = [name + ".png" for name in names]
    _images(os.path.join(base, "annotations", "trimaps"), trimaps, form, part, first=1, below=4, channels=1)
    rows = [f"{name} {index % form.classes + 1} {index % 2 + 1} 1" for index, name in enumerate(names)]
    _lines(os.path.join(base, "annotations", part + ".txt"), rows)


def _imagenet(root: str, form: table.Images, part: str) -> None:
    import torch

    synsets = [f"n{index:08d}" for index in range(form.classes)]
    # Every class has a folder, so that there are as many items as classes.
    _images(os.path.join(root, part), [f"{synset}/{synset}_0.JPEG" for synset in synsets], form, part)
    names = {synset: (f"class {index}",) for index, synset in enumerate(synsets)}
    torch.save((names, synsets), os.path.join(root, "meta.bin"))


def _celeba(root: str, form: table.Images, part: str) -> None:
    stream = random.Random(part)
    base = os.path.join(root, "celeba")
    names = [f"{index + 1:06d}.jpg" for index in range(table.ITEMS)]
    _images(os.path.join(base, "img_align_celeba"), names, form, part)
    number = {"train": 0, "valid": 1, "test": 2}.get(part, 0)
    attributes = " ".join(f"attribute_{index}" for index in range(form.classes))
    lists: dict[str, Any] = {
        "list_eval_partition.txt": ("", lambda: [number]),
        "identity_CelebA.txt": ("", lambda: [stream.randint(1, table.CELEBA_PEOPLE)]),
        "list_bbox_celeba.txt": ("image_id x_1 y_1 width height", lambda: [50, 60, 90, 110]),
        "list_landmarks_align_celeba.txt": (
            "lefteye_x lefteye_y righteye_x righteye_y nose_x nose_y leftmouth_x leftmouth_y rightmouth_x rightmouth_y",
            lambda: [69, 111, 108, 111, 88, 136, 72, 152, 105, 152],
        ),
        "list_attr_celeba.txt": (attributes, lambda: [stream.choice((-1, 1)) for _ in range(form.classes)]),
    }
    for file, (header, row) in lists.items():
        lines = [str(len(names)), header] if header else []
        lines += ["{} {}".format(name, " ".join(map(str, row()))) for name in names]
        _lines(os.path.join(base, file), lines)


def _voc_base(dataset: Any) -> str:
    from torchvision.datasets import voc

    test = dataset.year == "2007" and dataset.image_set == "test"
    return str(voc.DATASET_YEAR_DICT["2007-test" if test else dataset.year]["base_dir"])


def _voc(root: str, form: table.Images, part: str, dataset: Any) -> None:
    stream = random.Random(part)
    base = os.path.join(root, _voc_base(dataset))
    names = [f"2000_{index:06d}" for index in range(table.ITEMS)]
    _images(os.path.join(base, "JPEGImages"), [name + ".jpg" for name in names], form, part)
    # Masks hold class indices, 0 for the background.
    masks = [name + ".png" for name in names]
    _images(os.path.join(base, "SegmentationClass"), masks, form, part, below=form.classes + 1, channels=1)
    for name in names:
        left, top = stream.randint(1, form.width // 2), stream.randint(1, form.height // 2)
        right, bottom = stream.randint(left + 10, form.width), stream.randint(top + 10, form.height)
        thing = _VOC_OBJECT.format(name=stream.choice(_VOC_CLASSES), left=left, top=top, right=right, bottom=bottom)
        text = _VOC_ANNOTATION.format(file=name + ".jpg", width=form.width, height=form.height, objects=thing)
        _lines(os.path.join(base, "Annotations", name + ".xml"), [text])
    _lines(os.path.join(base, "ImageSets", dataset._SPLITS_DIR, dataset.image_set + ".txt"), names)


_BUILDERS: dict[str, Callable[[str, table.Images, str], None]] = {
    "ImageNet": _imagenet,
    "CelebA": _celeba,
    "EuroSAT": _eurosat,
    "Flowers102": _flowers,
    "Food101": _food,
    "GTSRB": _gtsrb,
    "OxfordIIITPet": _pets,
}
