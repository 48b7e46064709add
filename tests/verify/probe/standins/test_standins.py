"""Made-up data in real child processes: declared files, and torchvision's data sets."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verify.probe.tools import forked, plain, probe, probe_command
from verify.measured.records import Record
from verify.running.standins import parse

needs_torchvision = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed"
)

DECLARED = [
    "data/x.npy=float32:40,3",
    "data/y.npy=int64:40<10",
    "flags.npy=bool:40",
    "d.npz[images]=uint8:4,8,8",
    "d.npz[labels]=int32:40",
    "one.pt=float16:5,2",
    "both.pt[x]=float64:6",
    "both.pt[y]=int64:40<3",
    "raw.bin=int16:100<7",
    "table.csv=float32:6,3",
    "input.txt=text:500",
    "img/*.png=uint8:3,8,6,3",
]

READING = """
import json
import random
import numpy as np
import torch

random.seed(0); np.random.seed(0); torch.manual_seed(0)
npz = np.load("d.npz")
one, both = torch.load("one.pt"), torch.load("both.pt", weights_only=True)
arrays = {
    "x": np.load("data/x.npy"), "y": np.load("data/y.npy"), "flags": np.load("flags.npy"),
    "images": npz["images"], "labels": npz["labels"], "one": one.numpy(), "bx": both["x"].numpy(),
    "by": both["y"].numpy(), "raw": np.fromfile("raw.bin", dtype="<i2"),
    "table": np.loadtxt("table.csv", delimiter=","),
}
print(json.dumps({
    name: [str(array.dtype), list(array.shape), float(array.min()), float(array.max()), float(array.sum())]
    for name, array in arrays.items()
}))
print(json.dumps(open("input.txt").read()))
print(random.random(), np.random.rand(), torch.rand(1).item())
"""


@pytest.fixture(scope="module")
def reading() -> tuple[Record, str, str]:
    """A script that reads one declared file of each kind: its record, what it printed, and its errors."""
    record, done = probe(READING, stand_ins=[parse(text) for text in DECLARED])
    return record, done.stdout, done.stderr


def test_declared_files_have_the_declared_types_and_shapes(reading: tuple[Record, str, str]) -> None:
    assert reading[0].error is None, reading[2]
    read = json.loads(reading[1].splitlines()[0])
    assert {name: (dtype, shape) for name, (dtype, shape, *_rest) in read.items()} == {
        "x": ("float32", [40, 3]),
        "y": ("int64", [40]),
        "flags": ("bool", [40]),
        "images": ("uint8", [4, 8, 8]),
        "labels": ("int32", [40]),
        "one": ("float16", [5, 2]),
        "bx": ("float64", [6]),
        "by": ("int64", [40]),
        "raw": ("int16", [100]),
        "table": ("float64", [6, 3]),
    }


def test_whole_numbers_stay_below_their_bound_and_floats_look_normal(reading: tuple[Record, str, str]) -> None:
    read = json.loads(reading[1].splitlines()[0])
    bounds = {"y": 10, "labels": 2, "by": 3, "raw": 7, "images": 256, "flags": 2}
    assert all(0 <= read[name][2] < read[name][3] < bound for name, bound in bounds.items())
    assert all(-6 < read[name][2] < 0 < read[name][3] < 6 for name in ("x", "bx", "table"))


def test_text_is_words_in_lines(reading: tuple[Record, str, str]) -> None:
    text = json.loads(reading[1].splitlines()[1])
    assert len(text) == 500
    assert len(text.splitlines()) > 3
    assert all(word.isalpha() for word in text.split())


def test_each_file_is_recorded_and_said(reading: tuple[Record, str, str]) -> None:
    paths = {text.partition("=")[0].partition("[")[0] for text in DECLARED}
    assert {standin["what"] for standin in reading[0].standins} == paths
    assert len(reading[0].standins) == len(paths)
    assert all(f"{path}: stand-in data" in reading[2] for path in paths)


def test_the_same_bytes_come_in_every_run_and_draw_on_no_generator(
    reading: tuple[Record, str, str], tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "train.py").write_text(READING)
    _run(tree, tmp_path, *(parse(text) for text in DECLARED))
    # The second process finds the files of the first, and has no probe to move its generators.
    again = subprocess.run([sys.executable, "train.py"], cwd=tree, capture_output=True, text=True, check=True)
    assert again.stdout == reading[1]


def test_pictures_are_pictures(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    _run(tmp_path / "tree", tmp_path, parse("img/*.png=uint8:12,8,6,3"), parse("grey.jpg=uint8:5,4"))
    names = sorted(os.listdir(tmp_path / "tree" / "img"))
    assert names == [f"{index:02d}.png" for index in range(12)]
    pictures = [image.open(tmp_path / "tree" / "img" / name) for name in names]
    assert {(picture.size, picture.mode) for picture in pictures} == {((6, 8), "RGB")}
    assert len({picture.tobytes() for picture in pictures}) == 12
    grey = image.open(tmp_path / "tree" / "grey.jpg")
    assert (grey.size, grey.mode) == ((4, 5), "L")


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "x.bin").write_bytes(b"mine")
    records = _run(tree, tmp_path, parse("x.bin=uint8:8"))
    assert (tree / "x.bin").read_bytes() == b"mine"
    assert [record.standins for record in records] == [[]]
    assert records[0].notes == ["x.bin: is there; its stand-in was not needed"]


def test_nothing_is_written_through_a_link_out_of_the_tree(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    tree.mkdir()
    outside.mkdir()
    (tree / "data").symlink_to(outside)
    (tree / "gone.bin").symlink_to(outside / "gone.bin")
    records = _run(tree, tmp_path, parse("data/x.bin=uint8:8"), parse("gone.bin=uint8:8"))
    assert list(outside.iterdir()) == []
    assert (tree / "gone.bin").stat().st_size == 8
    assert [standin["what"] for standin in records[0].standins] == ["gone.bin"]
    assert len(records[0].notes) == 1
    assert "leads out of the tree" in records[0].notes[0]


def test_a_process_that_needs_no_data_loads_nothing_for_it() -> None:
    script = "import sys\nprint([name for name in sys.modules if 'standins.' in name or name == 'zipfile'])\n"
    assert probe(script, data=True)[1].stdout == plain(script).stdout


def test_without_declarations_nothing_is_made(tmp_path: Path) -> None:
    records = _run(tmp_path / "tree", tmp_path)
    assert os.listdir(tmp_path / "tree") == ["train.py"]
    assert [(record.standins, record.notes) for record in records] == [([], [])]


def _run(tree: Path, folder: Path, *stand_ins: dict[str, Any]) -> list[Record]:
    tree.mkdir(exist_ok=True)
    script = tree / "train.py"
    if not script.exists():
        # The probe of a process that never imports torch waits for a reason to write.
        script.write_text("import sys\n")
    records, done = probe_command([sys.executable, "train.py"], tree, folder, stand_ins=list(stand_ins))
    assert done.returncode == 0, done.stderr
    return records


#: Constructors on a machine without the data; the shape of an item after ToTensor, and the number of classes.
SETS = {
    "MNIST('d', train=True, download=True, transform=tensor)": ([1, 28, 28], 10),
    "MNIST('d', False, tensor)": ([1, 28, 28], 10),
    "FashionMNIST('d', transform=tensor, download=True)": ([1, 28, 28], 10),
    "KMNIST('d', transform=tensor)": ([1, 28, 28], 10),
    "EMNIST('d', 'letters', transform=tensor, download=True)": ([1, 28, 28], 27),
    "EMNIST('d', split='byclass', train=False, transform=tensor)": ([1, 28, 28], 62),
    "QMNIST('d', train=False, transform=tensor)": ([1, 28, 28], 10),
    "USPS('d', transform=tensor, download=True)": ([1, 16, 16], 10),
    "CIFAR10('d', transform=tensor, download=True)": ([3, 32, 32], 10),
    "CIFAR100('d', False, tensor)": ([3, 32, 32], 100),
    "SVHN('d', 'extra', transform=tensor)": ([3, 32, 32], 10),
    "STL10('d', transform=tensor)": ([3, 96, 96], 10),
    "ImageFolder('d/train', tensor)": ([3, 256, 256], 2),
    "ImageNet('d', 'val', transform=tensor)": ([3, 256, 256], 1000),
    "Flowers102('d', 'val', tensor, download=True)": ([3, 500, 667], 102),
    "Food101('d', transform=tensor)": ([3, 384, 512], 101),
    "EuroSAT('d', tensor, download=True)": ([3, 64, 64], 10),
    "GTSRB('d', transform=tensor)": ([3, 48, 48], 43),
    "GTSRB('d', 'test', tensor)": ([3, 48, 48], 43),
    "OxfordIIITPet('d', transform=tensor)": ([3, 375, 500], 37),
}

MAKING = """
import json
import random
import numpy
import torch
random.seed(0); numpy.random.seed(0); torch.manual_seed(0)
from torchvision import datasets, transforms

tensor = transforms.ToTensor()
found = {{}}
for text in {texts!r}:
    made = eval("datasets." + text)
    labels = [int(made[index][1]) for index in (range(len(made)) if made[0][0].numel() < 4000 else (0, len(made) - 1))]
    found[text] = [list(made[0][0].shape), min(labels), max(labels), len(made)]
print(json.dumps(found))
print(random.random(), numpy.random.rand(), torch.rand(1).item())
"""


@pytest.fixture(scope="module")
def sets() -> tuple[Record, str, str]:
    record, done = probe(MAKING.format(texts=list(SETS)), data=True)
    return record, done.stdout, done.stderr


@needs_torchvision
@pytest.mark.slow
@pytest.mark.parametrize("text", SETS)
def test_a_data_set_without_data_gets_items_like_the_real_ones(sets: tuple[Record, str, str], text: str) -> None:
    assert sets[0].error is None, sets[2]
    shape, lowest, highest, length = json.loads(sets[1].splitlines()[0])[text]
    assert shape == SETS[text][0]
    assert lowest >= (1 if "letters" in text else 0)
    assert 0 < highest < SETS[text][1]
    assert length == (1000 if text.startswith("ImageNet") else 512)


@needs_torchvision
@pytest.mark.slow
def test_the_data_sets_are_recorded_said_and_draw_on_no_generator(sets: tuple[Record, str, str]) -> None:
    record, out, err = sets
    names = [standin["what"].partition(" ")[0] for standin in record.standins]
    assert {text.partition("(")[0] for text in SETS} == set(names)
    assert all(standin["what"] in err for standin in record.standins)
    unmoved = "import random, numpy, torch\nrandom.seed(0); numpy.random.seed(0); torch.manual_seed(0)\n"
    unmoved += "print(random.random(), numpy.random.rand(), torch.rand(1).item())\n"
    assert out.splitlines()[1:] == plain(unmoved).stdout.splitlines()


@needs_torchvision
@pytest.mark.slow
def test_parts_differ_and_what_the_script_passes_stays_its_own() -> None:
    script = """
    import os
    import torch
    from torchvision import datasets

    class Mine(datasets.CIFAR10):
        def __init__(self, root):
            super().__init__(root, train=True, download=True, target_transform=lambda label: -label - 1)
            self.mine = len(self.data)

    train, test = datasets.MNIST("d"), datasets.MNIST("d", train=False)
    print(torch.equal(train.data, test.data), torch.equal(train.data, datasets.MNIST("d").data))
    first, second = datasets.ImageFolder("d/train"), datasets.ImageFolder("d/val")
    print(first[0][0].tobytes() == second[0][0].tobytes(), first.classes == second.classes)
    mine = Mine("d")
    print(mine.mine, mine[0][1] < 0, os.path.exists("d"))
    print(len(datasets.CelebA("d", target_type=["attr", "identity"])[0][1]))
    print(len(datasets.VOCDetection("d")[0][1]["annotation"]["object"]))
    trimap = datasets.OxfordIIITPet("d", target_types="segmentation")[0][1]
    print(sorted(set(trimap.tobytes())))
    """
    record, done = forked(script, data=True)
    assert done.stdout == "False True\nFalse True\n512 True False\n2\n1\n[1, 2, 3]\n", done.stderr
    assert record.error is None


@needs_torchvision
@pytest.mark.slow
def test_real_data_and_the_scripts_own_mistakes_stay() -> None:
    script = """
    import torch
    from PIL import Image
    from pathlib import Path
    from torchvision import datasets

    for kind in ("cat", "dog", "emu"):
        Path("real", kind).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(Path("real", kind, "0.png"))
    print(datasets.ImageFolder("real").classes, len(datasets.FakeData(3)))
    mistakes = datasets.MNIST, lambda: datasets.SVHN("d", "trian"), lambda: datasets.DTD("d", download=True)
    for wrong in mistakes:
        try:
            wrong()
        except Exception as error:
            print(type(error).__name__, str(error).split(".")[0])
    """
    record, done = forked(script, data=True)
    assert done.stdout.splitlines() == [
        "['cat', 'dog', 'emu'] 3",
        "TypeError MNIST",
        "ValueError Unknown value 'trian' for argument split",
        "RuntimeError Dataset not found",
    ], done.stderr
    assert record.standins == []


@needs_torchvision
@pytest.mark.slow
def test_without_leave_no_data_set_is_made_up() -> None:
    record, done = forked("from torchvision import datasets\ndatasets.MNIST('d')\n", data=False)
    assert "Dataset not found" in done.stderr
    assert record.error is not None
    assert record.error.type == "RuntimeError"
    assert record.standins == []


LOGGED = """
import acme, torch
from torch.utils.tensorboard import SummaryWriter
print(tuple(map(int, acme.__version__.split("."))) > (1, 15), hasattr(acme, "__file__"))
writer = SummaryWriter("logs")
weight = torch.nn.Parameter(torch.ones(2))
loss = weight.sum()
loss.backward()
writer.add_scalar("loss", loss.item(), 1)
writer.close()
"""


def test_a_library_that_asks_an_absent_one_for_its_version_can_be_imported() -> None:
    record, done = forked(LOGGED, modules=["acme", "tensorboard", "google"], folders=[])
    assert done.stdout == "True False\n", done.stderr
    assert len(record.backwards) == 1
