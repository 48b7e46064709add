from __future__ import annotations

import ast
import subprocess
import sys
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.source.errors import Unparsable
from codemods.source.syntax import explain_syntax_error, parse

DEEP = "nested too deeply"
NAME = "used as a name"


def explained(text: str) -> tuple[int, str]:
    with pytest.raises(Unparsable) as caught:
        parse(text, "old.py")
    assert caught.value.path == "old.py"
    return caught.value.line, caught.value.reason


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('import torch\n\nprint "loss", loss\n', 3, "Python 2 print statement"),
        ('if x:\r\n    print "a %s" % x,\r\n', 2, "Python 2 print statement"),
        ('if x: print "a"\n', 1, "Python 2 print statement"),
        ("x = 1; print x\n", 1, "Python 2 print statement"),
        ("print `x`\n", 1, "Python 2 backticks"),
        ('exec "x = 1"\n', 1, "Python 2 exec statement"),
        ("exec code in names\n", 1, "Python 2 exec statement"),
        ("try:\n    pass\nexcept ValueError, e:\n    pass\n", 3, "Python 2 except clause (`except X, name`)"),
        ("try:\n    pass\nexcept (A, B), e:\n    pass\n", 3, "Python 2 except clause (`except X, name`)"),
        ("x = `y`\n", 1, "Python 2 backticks"),
        ("if a <> b: pass\n", 1, "Python 2 inequality (`<>`)"),
        ('\nraise ValueError, "x"\n', 2, "Python 2 raise statement (`raise E, value`)"),
        ("raise E(1), None, tb\n", 1, "Python 2 raise statement (`raise E, value`)"),
        ("os.chmod(p, 0777)\n", 1, "Python 2 octal number (`0777`)"),
        ("x = 10L\n", 1, "Python 2 long number (`10L`)"),
        ("x = 0xFFL\n", 1, "Python 2 long number (`10L`)"),
        ("x = ur'a'\n", 1, "Python 2 string prefix (`ur''`)"),
        ('x = UR"a"\n', 1, "Python 2 string prefix (`ur''`)"),
        ("def f(self, (a, b)):\n    pass\n", 1, "Python 2 tuple parameter"),
        ("f = lambda (a, b): a\n", 1, "Python 2 tuple parameter"),
        ("if x:\n\ty = 1\n        z = 2\n", 3, "tabs and spaces mixed in the indentation, as only Python 2 allows"),
    ],
)
def test_recognises_python_2(text: str, line: int, reason: str) -> None:
    assert explained(text) == (line, reason)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        # Arguments of that name are read; what stands in the way is what comes after them.
        ("x = x.cuda(async=True) y\n", 1, ""),
        ("def f(x):\n    x.cuda(async=True)\ndef g(x, async=True):\n    pass\n", 3, NAME),
        ("def load(async=False):\n    pass\n", 1, NAME),
        ("async = 3\n", 1, NAME),
        ("from . import async\n", 1, NAME),
        ("x.async\n", 1, NAME),
        ("await = 3\n", 1, NAME),
        ("x = [\n1,\n", 1, "never closed"),
        ("def f():\nx = 1\n", 2, "expected an indented block"),
        ("x = = 1\n", 1, "invalid syntax"),
        ("x = f(a, b c, async_=True)\n", 1, "comma"),
        ("x = 1\n<<<<<<< HEAD\ny = 1\n=======\n", 2, "merge conflict marker"),
        ("%matplotlib inline\n", 1, "IPython magic"),
        ("import a\n!pip install torch\n", 2, "shell command"),
        ("<!DOCTYPE html>\n<html>\n", 1, "HTML"),
        ("import {{ project.name }}\n", 1, "template placeholder"),
        ("{% if x %}\nx = 1\n", 1, "template placeholder"),
        ('x = f"{{a}}" (\n', 1, "never closed"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:ab\n", 1, "Git LFS pointer"),
        ("x = 1\r\ny\0\n", 2, "null byte"),
        ("x = 1\ny = '\ud800'\n", 2, "cannot stand in Python source"),
        ("(" * 300 + ")" * 300, 1, DEEP),
        ("\n" + "[" * 5000, 2, DEEP),
        ("-" * 100_000 + "1", 0, DEEP),
        ("".join(" " * i + "if x:\n" for i in range(150)) + " " * 150 + "pass\n", 101, DEEP),
        ("x = " + "1" * 5000 + "\n", 1, "4300"),
    ],
)
def test_says_what_else_stands_there(text: str, line: int, reason: str) -> None:
    found, said = explained(text)
    assert found == line
    assert reason in said
    assert "Python 2" not in said


@pytest.mark.parametrize(
    "text",
    [
        'print("a")\nprint\nprint.x\n',
        "print >>f, 'a'\n",
        "exec('a')\n",
        "x = 0o777\ny = 0\n",
        "x.cuda(non_blocking=True)\n",
    ],
)
def test_what_python_reads_is_no_error(text: str) -> None:
    assert isinstance(parse(text, "a.py"), ast.Module)


def test_line_ends_and_form_feeds_are_those_of_the_parser() -> None:
    assert explained("x = '''\u2028\x0c'''\r\x0cy = 1\r\nz = =\n") == (3, "invalid syntax")
    tree = parse("# coding: klingon\r\nx = 1\rif x:\r\n\ty = 2", "a.py")
    assert [node.lineno for node in tree.body] == [2, 3]


def test_the_users_warnings_are_not_ours() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse("x = '\\d'\ny = 1 is 1\nz = 1if x else 2\n", "a.py")


def test_recursion_limit_is_a_clean_reason() -> None:
    assert explain_syntax_error("x", RecursionError("maximum recursion depth exceeded")) == (0, parse_reason())
    assert explain_syntax_error("x", MemoryError()) == (0, parse_reason())
    assert explain_syntax_error("x", ValueError("odd")) == (0, "odd")


def parse_reason() -> str:
    return explained("-" * 100_000 + "1")[1]


def test_a_megabyte_in_one_line_is_explained_at_once() -> None:
    line = "x = '" + "{% ;print " * 100_000 + "'\n y = = 2\n"
    script = (
        "import sys; from codemods.source.syntax import parse\n"
        "try: parse(sys.stdin.read(), 'a')\n"
        "except Exception as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", script], input=line, capture_output=True, text=True, timeout=60)
    assert done.stdout == "a:2: unexpected indent\n"
    one_line = "(" + "{% ;print `, async=1 " * 50_000 + "\n"
    done = subprocess.run([sys.executable, "-c", script], input=one_line, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("a:1: ")


PIECES = [*"aL0`<>'\"(){}[],:=%!# \t\n\r\x0c", "print ", "raise ", "except ", "async", "ur'", "lambda ", "def "]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_parsed_or_explained(text: str) -> None:
    result: ast.Module | Unparsable
    try:
        result = parse(text, "a.py")
    except Unparsable as error:
        result = error
    if isinstance(result, Unparsable):
        assert result.reason
        assert 0 <= result.line <= text.count("\n") + text.count("\r") + 2
