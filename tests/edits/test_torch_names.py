"""``{torch}`` becomes what the file calls torch at that place, or torch is imported where imports go."""

from __future__ import annotations

import pytest

from codemods.edits.apply import apply_edits
from codemods.terms.edits import (
    AddDecorator,
    AddHelper,
    InsertStatements,
    MoveStatement,
    RemoveStatement,
    ReplaceExpression,
    WrapBlock,
    WrapExpression,
)
from tests.edits.tools import check, check_refused, expression, statement

CODE = "{torch}.no_grad()"


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("import torch\n\n\ndef f(): pass\n", "torch.no_grad"),
        ("import torch as th\n\n\ndef f(): pass\n", "th.no_grad"),
        ("import os, torch.nn\n\n\ndef f(): pass\n", "torch.no_grad"),
        ("from torch import no_grad\n\n\ndef f(): pass\n", "no_grad"),
        ("from torch import nn, no_grad as ng\n\n\ndef f(): pass\n", "ng"),
        ("import torch\nfrom torch import no_grad\n\n\ndef f(): pass\n", "torch.no_grad"),
        ("import torch\nimport torch.nn\n\n\ndef f(): pass\n", "torch.no_grad"),
        ("if x:\n    import torch\nelse:\n    import torch\n\n\ndef f(): pass\n", "torch.no_grad"),
        ("try:\n    import torch\nexcept ImportError:\n    raise\n\n\ndef f(): pass\n", "torch.no_grad"),
        ("try:\n    import torch\nexcept ImportError:\n    sys.exit(1)\n\n\ndef f(): pass\n", "torch.no_grad"),
        ("try:\n    x\nfinally:\n    import torch\n\n\ndef f(): pass\n", "torch.no_grad"),
        ("def g():\n    import torch as th\n\n    def f(): pass\n", "th.no_grad"),
        ("def g():\n    import torch as th\n    if x:\n        for a in b:\n            def f(): pass\n", "th.no_grad"),
        ("class A:\n    import torch as th\n\n    def f(self): pass\n", "th.no_grad"),
        ("import torch as th\n\n\nclass A:\n    torch = 1\n\n    def f(self): pass\n", "th.no_grad"),
        ("import torch\nimport torch as th\n\n\nclass A:\n    torch = 1\n\n    def f(self): pass\n", "th.no_grad"),
        ("import torch\n\n\ndef g(th):\n    def f(): pass\n", "torch.no_grad"),
        ("import torch\n\n\ndef g(x=[torch for torch in y]): pass\n\n\ndef f(): torch = 1\n", "torch.no_grad"),
    ],
)
def test_existing_imports_are_used(before: str, name: str) -> None:
    indent = before[: before.index("def f")].rpartition("\n")[2]
    after = before.replace("def f", f"@{name}()\n{indent}def f")
    check(before, after, AddDecorator(statement(before, "def f"), CODE))


@pytest.mark.parametrize(
    "marked",
    [
        # Next to the other imports.
        "import os\n+import torch\n\ndef f(): pass\n",
        "import os; import re\n+import torch\ndef f(): pass\n",
        "# file\nimport os\n+import torch\n\n# c\nx = 1\ndef f(): pass\n",
        "import os\nimport numpy\n+import torch\n\nx = 1\nimport z\ndef f(): pass\n",
        "import os\n\n# torch\n+import torch\nfrom torch import nn\nimport z\ndef f(): pass\n",
        "import os\n+import torch\nimport torch.nn as nn\ndef f(): pass\n",
        "import os\n+import torch\nfrom torch.nn import functional as F\ndef f(): pass\n",
        "from .torch import no_grad\n+import torch\ndef f(): pass\n",
        "from torchvision import no_grad\n+import torch\ndef f(): pass\n",
        # At the top.
        "+import torch\n+\n+\ndef f(): pass\n",
        "+import torch\n+\nx = 1\ndef f(): pass\n",
        "#!sh\n# file\n\n+import torch\n+\nx = 1\ndef f(): pass\n",
        '"""doc"""\n+\n+import torch\n+\n+\ndef f(): pass\n',
        '"""doc"""\n+\n+import torch\n\n\ndef f(): pass\n',
        "from __future__ import annotations\n+\n+import torch\n\n\ndef f(): pass\n",
        # Where an import is not certain to have been made.
        "+import torch\n+\ntry:\n    import torch\nexcept ImportError:\n    pass\ndef f(): pass\n",
        "+import torch\n+\nif x:\n    import torch\ndef f(): pass\n",
        "+import torch\n+\nwith suppress(E):\n    import torch\ndef f(): pass\n",
        "+import torch\n+\n+\ndef f(): pass\n\n\nimport torch\n",
        "+import torch\n+\n+\ndef g():\n    import torch\n\n\ndef f(): pass\n",
        "+import torch\n+\n+\nclass A:\n    import torch\n\n    class B:\n        def f(): pass\n",
    ],
)
def test_torch_is_imported(marked: str) -> None:
    """New lines are marked with a plus."""
    lines = marked.splitlines(keepends=True)
    before = "".join(line for line in lines if not line.startswith("+"))
    after = "".join(line.removeprefix("+") for line in lines)
    indent = before[: before.index("def f")].rpartition("\n")[2]
    after = after.replace("def f", f"@torch.no_grad()\n{indent}def f")
    check(before, after, AddDecorator(statement(before, "def f"), CODE))


@pytest.mark.parametrize(
    "before",
    [
        "def g(torch):\n    def f(): pass\n",
        "import torch\n\n\ndef g(torch):\n    def f(): pass\n",
        "import torch\n\n\ndef g():\n    def f(): pass\n    import torch\n",
        "import torch\n\ntorch = g()\n\n\ndef f(): pass\n",
        "import torch\n\n\ndef h():\n    global torch\n    torch = 1\n\n\ndef f(): pass\n",
        "import torch\nimport other as torch\n\n\ndef f(): pass\n",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n\n\ndef f(): pass\n",
        "for torch in x: pass\n\n\ndef f(): pass\n",
        "def torch(): pass\n\n\ndef f(): pass\n",
        "match x:\n    case {**torch}: pass\n\n\ndef f(): pass\n",
    ],
)
def test_torch_gets_another_name_where_torch_is_something_else(before: str) -> None:
    after = apply_edits(before, [AddDecorator(statement(before, "def f"), CODE)])
    assert "@_torch.no_grad()" in after
    assert after.count("import torch as _torch\n") == 1
    assert after.index("import torch as _torch") < after.index("@_torch")


def test_the_other_name_is_free() -> None:
    before = "def f(torch, _torch): return {torch}\n"
    edit = WrapExpression(expression(before, "torch"), "{torch}.a(", ")")
    check(before, "import torch as __torch\n\n\ndef f(torch, _torch): return {__torch.a(torch)}\n", edit)


def test_places_within_functions() -> None:
    before = "def f(x=a):\n    b\n    import torch as th\n    c\n    if d:\n        e\n"
    edits = [
        WrapExpression(expression(before, "a"), "{torch}.a(", ")"),
        WrapExpression(expression(before, "c"), "{torch}.c(", ")"),
        ReplaceExpression(expression(before, "e"), "{torch}.e + {torch}.f"),
        InsertStatements(statement(before, "import"), "after", "{torch}.g"),
        InsertStatements(statement(before, "def"), "last-in", "{torch}.h"),
        WrapBlock(statement(before, "if"), statement(before, "if"), "with {torch}.i:"),
    ]
    after = (
        "import torch\n\n\ndef f(x=torch.a(a)):\n    b\n    import torch as th\n    th.g\n    th.c(c)\n"
        "    with th.i:\n        if d:\n            th.e + th.f\n    th.h\n"
    )
    check(before, after, *edits)


def test_the_start_of_a_body_stands_before_its_imports() -> None:
    before = "def f():\n    import torch as th\n    return th\n"
    edit = InsertStatements(statement(before, "def"), "first-in", "{torch}.h")
    check(before, "import torch\n\n\ndef f():\n    torch.h\n    import torch as th\n    return th\n", edit)


def test_torch_is_imported_once_for_all() -> None:
    before = "a\nb\n"
    edits = [WrapExpression(expression(before, name), "{torch}.f(", ", {torch}.g)") for name in "ba"]
    check(before, "import torch\n\ntorch.f(a, torch.g)\ntorch.f(b, torch.g)\n", *edits)


def test_an_import_stands_before_its_first_use() -> None:
    before = "import os\na\nfrom torch import nn\nb\n"
    later = WrapExpression(expression(before, "b"), "{torch}.f(", ")")
    check(before, "import os\na\nimport torch\nfrom torch import nn\ntorch.f(b)\n", later)
    sooner = WrapExpression(expression(before, "a"), "{torch}.f(", ")")
    check(before, "import os\nimport torch\ntorch.f(a)\nfrom torch import nn\ntorch.f(b)\n", later, sooner)


def test_names_from_torch_serve_only_where_all_are_there() -> None:
    before = "from torch import no_grad\na\n"
    target = expression(before, "a")
    check(before, "from torch import no_grad\nno_grad(a)\n", WrapExpression(target, "{torch}.no_grad(", ")"))
    after = "import torch\nfrom torch import no_grad\ntorch.no_grad(a, torch.x)\n"
    check(before, after, WrapExpression(target, "{torch}.no_grad(", ", {torch}.x)"))
    after = "import torch\nfrom torch import no_grad\ntorch.no_grad(a, torch)\n"
    check(before, after, WrapExpression(target, "{torch}.no_grad(", ", {torch})"))


def test_imports_that_go_do_not_count() -> None:
    before = "import torch as th\nimport os\na\n"
    target, torch = expression(before, "a"), statement(before, "import torch")
    edit = WrapExpression(target, "{torch}.f(", ")")
    check(before, "import torch\nimport os\ntorch.f(a)\n", edit, RemoveStatement(torch))
    move = MoveStatement(torch, statement(before, "a"), "after")
    check(before, "import torch\nimport os\ntorch.f(a)\nimport torch as th\n", edit, move)


def test_braces_are_left_alone() -> None:
    before = "import torch\na\n"
    edit = ReplaceExpression(expression(before, "a"), "{'{x}': f'{torch}{{torch}}', **{}}")
    check(before, "import torch\n{'{x}': f'torch{torch}', **{}}\n", edit)


HELPER = "def h(x):\n    with {torch}.no_grad():\n        return x"
MADE = "def h(x):\n    with torch.no_grad():\n        return x\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\n\n\ndef f(): pass\n", f"import torch\n\n\n{MADE}\n\ndef f(): pass\n"),
        ("import torch\nx = 1\n", f"import torch\n\n\n{MADE}\n\nx = 1\n"),
        ("import torch\n\n# c\nx = 1\n", f"import torch\n\n\n{MADE}\n\n# c\nx = 1\n"),
        ("import torch\n", f"import torch\n\n\n{MADE}"),
        ('"""doc"""\nx = 1\n', f'"""doc"""\n\nimport torch\n\n\n{MADE}\n\nx = 1\n'),
        ("x = 1\n", f"import torch\n\n\n{MADE}\n\nx = 1\n"),
        ("import os\n\nx = 1\nimport re\n", f"import os\nimport torch\n\n\n{MADE}\n\nx = 1\nimport re\n"),
        (
            "import torch\ntry:\n    import a\nexcept E:\n    a = 1\nx = 1\n",
            f"import torch\ntry:\n    import a\nexcept E:\n    a = 1\n\n\n{MADE}\n\nx = 1\n",
        ),
        ("import torch\nif x:\n\tpass\n", "import torch\n\n\n" + MADE.replace("    ", "\t") + "\n\nif x:\n\tpass\n"),
        ("import torch; import os\nx = 1\n", f"import torch; import os\n\n\n{MADE}\n\nx = 1\n"),
    ],
)
def test_helper_is_added(before: str, after: str) -> None:
    check(before, after, AddHelper("h", HELPER))


def test_helper_is_added_to_nothing() -> None:
    assert apply_edits("", [AddHelper("h", HELPER)]) == f"import torch\n\n\n{MADE}"
    assert apply_edits("# file\n", [AddHelper("h", "def h(): pass")]) == "# file\n\n\ndef h(): pass\n"


def test_a_helper_at_the_top_has_no_blank_lines_above() -> None:
    check("x = 1\n", "def h(): pass\n\n\nx = 1\n", AddHelper("h", "def h(): pass"))


def test_imports_and_helpers_stand_above_what_uses_them() -> None:
    before = "import os\nx\n"
    after = f"import os\nimport torch\n\n\n{MADE}\n\nh(torch)\nx\n"
    check(before, after, InsertStatements(statement(before, "import"), "after", "h({torch})"), AddHelper("h", HELPER))


def test_helpers_are_kept_apart() -> None:
    before = "import torch\nx = 1\n"
    after = f"import torch\n\n\n{MADE}\n\ndef g():\n    pass\n\n\nx = 1\n"
    check(before, after, AddHelper("h", HELPER), AddHelper("g", "def g():\n    pass\n"))


def test_a_helper_that_is_there_is_not_added_again() -> None:
    before = f"import torch\n\n\n{MADE}\n\nx = h(1)\n"
    check(before, before, AddHelper("h", HELPER))


@pytest.mark.parametrize("before", ["def h(): pass\n", "class h: pass\n", "h = 1\n", "x = h\n", "from a import h\n"])
def test_a_name_that_is_taken_is_refused(before: str) -> None:
    check_refused(before, "another h|the name h", AddHelper("h", HELPER))


def test_helpers_that_contradict_or_do_not_parse_are_refused() -> None:
    check_refused("a\n", "two helpers", AddHelper("h", HELPER), AddHelper("h", "def h(): pass"))
    check_refused("a\n", "does not parse", AddHelper("h", "def h(:"))
