"""IPython's syntax in cells: what is one, what stands for it, and the way back."""

from __future__ import annotations

import ast

import pytest

from codemods.source.magics import original, program

STEM = "_ipython_1_"

MAGICS = [
    ("%matplotlib inline\n", ["matplotlib"]),
    ("x = 1\n!pip install -q 'a b\ny = 2", ["!"]),
    ("files = !ls -l\n", ["!"]),
    ("a, b = !ls", ["!"]),
    ("d['k'] = %pwd\n", ["pwd"]),
    ("if x:\n    !ls\n    %cd ..\n", ["!", "cd"]),
    ("!ls \\\n   -l \\\n  -a\ny = 1\n", ["!"]),
    ("x = %timeit -o \\\n f(y)\n", ["timeit"]),
    ("np.sum?\nnp??\n", ["?", "?"]),
    ("?np\n", ["?"]),
    (",f a b\n;f a\n/f 1\n", [",", ";", "/"]),
    ("%%time\nx = 1\n", ["time"]),
    ("\n\n%%capture out\n%%time\nx = 1\n", ["capture", "time"]),
    ("%%wandb\nx = 1\n", ["wandb"]),
    ("pip install torch", ["pip"]),
    ("cd ..\n", ["cd"]),
    ("ls", ["ls"]),
    ("%time f(x)\nx\n%time g(y)\n", ["time", "time"]),
    ("%time if x: f()\n", ["time"]),
    ("  %env A=1\n  x = 1\n", ["env"]),
    ("!ls\r\nx = 1\r\n", ["!"]),
]
PYTHON = [
    "x = 5 % y\n",
    "x = (5\n     % y)\n",
    "f(a,\n  '%s')\n",
    "x != 1\n",
    "'''\n!ls\n%time\nnp?\n'''\n",
    'x = "\\"\\n!ls" # !ls\n',
    "s = '?'\n# why?\n",
    "x = f'{y!r}'\n",
    "await f()\nasync with a as b:\n    pass\n",
    "ls = 1\n",
    "ls(1)",
    "cd = ls",
    "a == b\n",
    "x = [\n  1,\n]\n",
    "def f():\n    return 1\n",
    "env",
]


@pytest.mark.parametrize(("cell", "names"), MAGICS)
def test_a_magic_has_a_stand_in_of_as_many_lines(cell: str, names: list[str]) -> None:
    found = program(cell, STEM)
    assert found is not None
    assert [magic.name for magic in found.magics] == names
    assert found.text.count("\n") == cell.count("\n")
    ast.parse(f"{found.header}\n{found.text}\n")
    assert original(found.text, found) == cell


@pytest.mark.parametrize("cell", [cell for cell in PYTHON if cell != "env"])
def test_python_stays_as_it_is(cell: str) -> None:
    found = program(cell, STEM)
    assert found is not None
    assert (found.text, found.magics, found.header) == (cell, (), "")
    ast.parse(cell)


@pytest.mark.parametrize("name", ["bash", "html", "writefile x.py", "sh -e", "HTML", "javascript", "python3", "R"])
def test_what_is_no_python_of_the_notebook_is_nothing(name: str) -> None:
    assert program(f"%%{name}\nx = 1\n", STEM) is None


def test_code_in_a_magic_shows_what_it_reads() -> None:
    found = program("%timeit -n 3 step(model, 'data', out.loss)\n", STEM)
    assert found is not None
    assert found.text == "_ipython_1_0_(step, model, out)\n"


def test_timed_code_is_read_at_its_columns() -> None:
    found = program("%time loss = f(x)\n", STEM)
    assert found is not None
    assert found.text == "if 1: loss = f(x)\n"
    beside = program("if 1: pass\n%time loss = f(x)\n", STEM)
    assert beside is not None
    assert beside.text == "if 1: pass\n_ipython_1_0_(loss, f, x)\n"


def test_an_indented_cell_gets_a_header() -> None:
    found = program("\n  x = 1\n  y = 2\n", STEM)
    assert found is not None
    assert found.header == "if True:"


@pytest.mark.parametrize("cut", ["", "_ipython_1_0_", "_ipython_1_0_(1 + 1)", "_ipython_1_0_()\n_ipython_1_0_()"])
def test_a_magic_taken_apart_has_no_way_back(cut: str) -> None:
    found = program("!ls", STEM)
    assert found is not None
    assert original(cut, found) is None
