"""Files that are not there are made where a program asks for them, as far as that brings it further."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from textwrap import dedent
from typing import Any

import pytest

from tests.verify.probe.tools import Finished, probe
from verify.measured.records import Record
from verify.probe.calls.readers import form_of


def tried(script: str) -> tuple[Record, Finished]:
    """Run ``script`` and try what could be in the files that it lacks."""
    tree = ast.parse(dedent(script))
    also = [["train.py", node.lineno] for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return probe(script, try_files=True, also=also)


def made(record: Record) -> dict[str, str]:
    return {each["path"]: each["told"] for each in record.made}


ROWS = """
kinds = {}
with open("data/kinds.dat") as handle:
    for line in handle:
        name, kind, size = line.strip().split(";")
        kinds[name] = int(kind) + float(size)
print(len(kinds), sum(kinds.values()) > 0)
"""
GRAPH = """
import json
def read(path):
    return json.load(open(path))
def used(path):
    data = read(path)
    nodes = {node for a, b in data["edges"] for node in (a, b)}
    kinds = [data["kinds"][str(node)] for node in nodes]
    return data["name"].upper(), kinds
print(len(used("graphs/one.json")[1]))
"""
GUARDED = """
import os, sys
assert os.path.isdir("corpus"), "where is the corpus?"
path = os.path.join("corpus", "words.txt")
if not os.path.exists(path):
    sys.exit("where are the words?")
print(len(open(path).read().split()) > 10)
"""
LISTED = """
import os
names = sorted(os.listdir("data/train"))
sizes = [os.path.getsize(os.path.join("data/train", name)) for name in names if name.endswith(".jpg")]
print(len(sizes) > 4, min(sizes) > 0)
"""
MATCHED = """
import glob, json
total = 0
for name in glob.glob("graphs/*.json"):
    with open(name) as handle:
        total += len(json.load(handle)["edges"])
print(total / len(glob.glob("graphs/*.json")) > 0)
"""


@pytest.mark.parametrize(
    ("script", "path", "told"),
    [
        (ROWS, "data/kinds.dat", "text (lines of ints, ints, ints)"),
        (GRAPH, "graphs/one.json", "json (edges: pairs, kinds: index, name: text)"),
        (GUARDED, "corpus/words.txt", "text (lines of ints, ints)"),
        (LISTED, "data/train", "folder (32 files .jpg)"),
        (MATCHED, "graphs/item_*.json", "json (edges: pairs)"),
    ],
)
def test_what_is_in_a_file_follows_from_its_reader(script: str, path: str, told: str) -> None:
    record, done = tried(script)
    assert done.returncode == 0, done.stderr
    assert "False" not in done.stdout
    found = {made_path: made_told for made_path, made_told in made(record).items() if fnmatch(made_path, path)}
    assert [sorted(re.findall(r"[\w.]+", each)) for each in found.values()] == [sorted(re.findall(r"[\w.]+", told))]
    assert any(each["what"] in found and "made up" in each["why"] for each in record.standins)


def test_what_was_found_is_given_without_trial() -> None:
    first, one = tried(ROWS)
    again, other = probe(ROWS, made=first.made)
    assert (other.stdout, made(again)) == (one.stdout, made(first))


def test_another_file_that_is_read_in_the_same_way_is_made_alike() -> None:
    script = "def read(path):\n    return [int(line) for line in open(path)]\n"
    record, _ = tried(script + "print(sum(read('a.dat')))\n")
    _, done = probe(script + "print(sum(read('b.dat')) > 0)\n", made=record.made)
    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    "script",
    [
        # It goes on as far without one.
        "try:\n    open('settings.dat').read()\nexcept OSError:\n    print('plain')\nprint(1)\nprint(2)\n",
        "import os\nif os.path.exists('last.ckpt'):\n    print(int(open('last.ckpt').read()))\n"
        "else:\n    print('new')\n    print('again')\n    print('on')\n",
        # It is none of the tree's.
        "try:\n    open('../beside.txt')\nexcept OSError:\n    print('plain')\n",
        # Code is nothing to make up.
        "import os, sys\nsys.path.append('plugins')\ntry:\n    import plugin\nexcept ImportError:\n    print('plain')\n"
        "print(os.path.exists('plugins/plugin.py'))\n",
    ],
)
def test_what_a_program_does_without_stays_missing(script: str) -> None:
    record, done = tried(script)
    assert not record.made
    assert done.returncode == 0, done.stderr


def test_a_file_that_nobody_could_read_ends_it_all_the_same() -> None:
    record, done = tried(
        "import hashlib\ndata = open('x.dat').read()\nassert hashlib.md5(data.encode()).digest()[0] > 255\n"
    )
    assert done.returncode == 1
    assert all(each["path"] == "x.dat" for each in record.made)


def test_without_a_trial_nothing_is_made() -> None:
    record, done = probe(ROWS)
    assert done.returncode == 1
    assert not record.made


def test_what_a_trial_writes_is_gone_after_it() -> None:
    script = """
    import json, os, sys
    if os.path.exists("cache.txt"):
        sys.exit("somebody left a cache")
    data = [int(line) for line in open("numbers.dat")]
    os.makedirs("out")
    json.dump(data, open("cache.txt", "w"))
    print(sum(data))
    """
    record, done = tried(script)
    assert done.returncode == 0, done.stderr
    assert set(made(record)) == {"numbers.dat"}


def test_what_a_trial_reads_is_still_there_to_be_read() -> None:
    script = """
    with open("there.txt", "w") as file:
        file.write("1\\n" * 99)
    there = open("there.txt")
    first = there.readline()
    numbers = [int(line) for line in open("numbers.dat")]
    print(len(there.readlines()))
    """
    record, done = tried(script)
    assert (done.stdout, set(made(record))) == ("98\n", {"numbers.dat"})


def test_a_folder_for_a_log_is_made() -> None:
    _, done = tried("with open('logs/run/log.txt', 'w') as log:\n    log.write('x')\nprint('written')\n")
    assert done.stdout == "written\n"


READER = """
import sys
class Data:
    def __init__(self):
        self.rows = [row.split("|") for row in self.lines]
    def label(self, row):
        return row["label"], row["text"][3]
    def read(self, path):
        with opened(path) as handle:
            for line in handle:
                first, second, third = line.split(",")
        return handle
"""


def shown(text: str, call: str, **more: Any) -> dict[str, Any]:
    """What the reader in ``text`` shows of a file, from the frame that ``opened`` is called in."""
    import linecache
    import sys

    frames: list[Any] = []

    def opened(path: str) -> Any:
        frames.append(sys._getframe(1))
        raise FileNotFoundError(path)

    name = f"reader_{hash(text)}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"opened": opened}
    exec(compile(text, name, "exec"), space)
    with pytest.raises(FileNotFoundError):
        eval(call, space)
    return form_of("open", "data/x.csv" if not more else more["path"], frames, more.get("between", ()))


def test_what_a_reader_shows() -> None:
    form = shown(READER, "Data.read(None, 'x')", path="data/x.dat")
    assert form["formats"][0] == "text"
    assert (form["separators"], form["columns"]) == ([","], 3)
    assert form["keys"] == ["label", "text"]


@pytest.mark.parametrize(
    ("statement", "path", "between", "kind"),
    [
        ("json.load(opened(path))", "a.dat", (), "json"),
        ("pickle.load(opened(path))", "a", (), "pickle"),
        ("numpy.load(opened(path))", "a.npy", (), "npy"),
        ("opened(path)", "a.csv", ("read_csv",), "table"),
        ("opened(path)", "a.txt", ("read_csv",), "table"),
        ("opened(path)", "a.png", (), "image"),
        ("opened(path)", "a", (), "text"),
    ],
)
def test_the_format_is_that_of_its_reader(statement: str, path: str, between: tuple[str, ...], kind: str) -> None:
    text = f"def read(path):\n    return {statement}\n"
    text = "import json, pickle\nclass numpy:\n    load = staticmethod(lambda x: x)\n" + text
    assert shown(text, "read('x')", path=path, between=between)["formats"][0] == kind
