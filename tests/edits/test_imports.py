"""Imports that an edit leaves without a use go; all others stay."""

from __future__ import annotations

import pytest

from codemods.edits.apply import apply_edits
from codemods.terms.edits import RemoveStatement, ReplaceExpression
from tests.edits.tools import check, expression, statement

USE = "y = Variable(x)\n"


def _edit(before: str) -> ReplaceExpression:
    return ReplaceExpression(expression(before, "Variable(x)"), "x")


@pytest.mark.parametrize(
    ("imports", "left"),
    [
        ("from torch.autograd import Variable\n", ""),
        ("import os\nfrom torch.autograd import Variable\nimport re\n", "import os\nimport re\n"),
        ("import os\n\nfrom torch.autograd import Variable\n\nimport re\n", "import os\n\nimport re\n"),
        ("# c\nfrom torch.autograd import Variable\nimport re\n", "# c\nimport re\n"),
        ("from torch.autograd import Variable  # c\nimport re\n", "import re\n"),
        ("from torch.autograd import Variable, grad\n", "from torch.autograd import grad\n"),
        ("from torch.autograd import grad, Variable\n", "from torch.autograd import grad\n"),
        ("from torch.autograd import a, Variable, b\n", "from torch.autograd import a, b\n"),
        ("from torch.autograd import (Variable, grad)\n", "from torch.autograd import (grad)\n"),
        ("from torch.autograd import (grad, Variable)\n", "from torch.autograd import (grad)\n"),
        ("from a import (\n    b,\n    Variable,\n    c,\n)\n", "from a import (\n    b,\n    c,\n)\n"),
        ("from a import (\n    b,  # b\n    Variable,  # c\n)\n", "from a import (\n    b,  # b\n)\n"),
        ("from a import (\n    b,  # b\n    Variable\n)\n", "from a import (\n    b  # b\n)\n"),
        ("from a import (\n    Variable,\n    c\n)\n", "from a import (\n    c\n)\n"),
        ("from a import b, \\\n    Variable\n", "from a import b\n"),
        ("from a import Variable, \\\n    b\n", "from a import b\n"),
        ("import os, Variable\n", "import os\n"),
        ("import Variable, os\n", "import os\n"),
        ("import os; from torch.autograd import Variable; import re\n", "import os; import re\n"),
        ("from torch import autograd as Variable\n", ""),
        ("import Variable.a\n", ""),
        # Both, since neither has a use.
        ("from a import Variable\nfrom b import Variable\n", ""),
        # Comments and docstrings are no uses.
        ("from torch.autograd import Variable\n# Variable\n'A Variable'\n", "# Variable\n'A Variable'\n"),
    ],
)
def test_unused_imports_are_removed(imports: str, left: str) -> None:
    before = f"{imports}{USE}"
    check(before, f"{left}y = x\n", _edit(before))


@pytest.mark.parametrize(
    "imports",
    [
        "from torch.autograd import Variable as Variable\n",
        "import Variable as Variable\n",
        "from torch.autograd import Variable  # noqa: F401\n",
        "from a import (  # NOQA\n    Variable,\n)\n",
        "from a import (\n    b,\n    Variable,  # noqa\n)\n",
        "from a import Variable  # pylint: disable=unused-import\n",
        "from .autograd import Variable\n",
        "from a import *\n",
        "try:\n    from a import Variable\nexcept ImportError:\n    from b import Variable\n",
        "if a:\n    from a import Variable\n",
        "class A:\n    from a import Variable\n",
        # Other uses.
        "from a import Variable\n__all__ = ['Variable']\n",
        "from a import Variable\n__all__ += 'Variable', 'b'\n",
        "from a import Variable\nz: 'list[Variable]' = []\n",
        "from a import Variable\ndef f(a: 'Variable'): pass\n",
        "from a import Variable\ndef f(*, a: 'b.c | Variable'): pass\n",
        "from a import Variable\ndef f() -> 'Variable[int]': pass\n",
        "from a import Variable\nz = cast('Variable', a)\n",
        "from a import Variable\nz = []  # type: List[Variable]\n",
        "from a import Variable\nz = Variable\n",
        "from a import Variable\nVariable.a = 1\n",
        "from a import Variable\ndef f():\n    global Variable\n",
        "from a import Variable\ndel Variable\n",
        "from a import Variable\nf'{Variable}'\n",
        "from a import Variable\n@Variable\ndef f(): pass\n",
    ],
)
def test_other_imports_stay(imports: str) -> None:
    before = f"{imports}{USE}"
    check(before, f"{imports}y = x\n", _edit(before))


def test_imports_that_were_unused_stay() -> None:
    before = f"import os\nfrom torch.autograd import Variable, grad\n{USE}"
    check(before, "import os\nfrom torch.autograd import grad\ny = x\n", _edit(before))


def test_imports_in_functions_are_removed() -> None:
    before = "def f(x):\n    from torch.autograd import Variable\n\n    y = Variable(x)\n"
    check(before, "def f(x):\n    y = x\n", _edit(before))


def test_imports_stay_while_one_use_is_left() -> None:
    before = f"from torch.autograd import Variable\n{USE}z = Variable(y)\n"
    check(before, "from torch.autograd import Variable\ny = x\nz = Variable(y)\n", _edit(before))
    other = ReplaceExpression(expression(before, "Variable(y)"), "y")
    check(before, "y = x\nz = y\n", _edit(before), other)


def test_names_that_other_files_need_stay() -> None:
    before = f"from torch.autograd import Variable\n{USE}"
    after = apply_edits(before, [_edit(before)], exported={"Variable"})
    assert after == "from torch.autograd import Variable\ny = x\n"


def test_an_import_makes_room_for_another() -> None:
    before = f"import os\n\nfrom torch.autograd import Variable\n\n{USE}"
    edit = ReplaceExpression(expression(before, "Variable(x)"), "{torch}.f(x)")
    check(before, "import os\n\nimport torch\n\ny = torch.f(x)\n", edit)


def test_an_import_that_an_edit_removes_is_removed_once() -> None:
    before = f"from torch.autograd import Variable\n{USE}"
    check(before, "y = x\n", _edit(before), RemoveStatement(statement(before, "from")))
