"""Which texts concern a rule: words count in code, not in comments and strings."""

from __future__ import annotations

import io
import time
import tokenize

import pytest

from codemods.rules import all_rules, rule
from codemods.source.gates import Gate, code_of, form

SILENT = [
    "# loss.backward()\n",
    '"""Call loss.backward() first."""\n',
    "'loss.backward()'\n",
    'r"\\" loss.backward()"\n',
    "b'''\nloss.backward()\n'''\n",
    'x = "a" "loss.backward()"\n',
    "'''it's \"\"\" loss.backward()'''\n",
    '"""a quote \\""" loss.backward()"""\n',
    "'a\\\nloss.backward()'\n",
    'x = "" # " loss.backward()\n',
]

SPEAKING = [
    "loss.backward()\n",
    '"" ; loss.backward()\n',
    '""""""; loss.backward()\n',
    "x = '#'; loss.backward()\n",
    'x = "\\\\"; loss.backward()\n',
    "x = '''a''b'''; loss.backward()\n",
    'f"{loss.backward()}"\n',
    'rF"""\n{loss.backward()}"""\n',
    "x = 'unfinished\nloss.backward()\n",
    '"""unfinished\nloss.backward()\n',
]


@pytest.mark.parametrize("text", SILENT)
def test_comments_and_strings_concern_nobody(text: str) -> None:
    assert Gate([b".backward("]).within(text.encode()) is None


@pytest.mark.parametrize("text", SPEAKING)
def test_code_concerns(text: str) -> None:
    assert Gate([b".backward("]).within(text.encode()) is not None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_stay_where_they_are(end: str) -> None:
    text = 'a = """x\ny"""  # z\nb = f"""{c}\n"""\n'.replace("\n", end).encode()
    lines = code_of(text).splitlines()
    assert len(lines) == len(text.splitlines())
    assert lines[2].startswith(b"b = ")


def test_names_are_those_that_python_sees() -> None:
    raw = open(__file__, "rb").read()  # noqa: SIM115

    def names(text: bytes) -> list[str]:
        return [t.string for t in tokenize.tokenize(io.BytesIO(text).readline) if t.type == tokenize.NAME]

    assert names(code_of(raw)) == names(raw)


def test_strings_without_an_end_take_no_time() -> None:
    start = time.process_time()
    code_of(b'"""' + b"a\\b'" * 200_000)
    code_of(b"'a" * 200_001 + b"\n")
    assert time.process_time() - start < 2


def test_forms() -> None:
    gate = Gate([form(r"\bword\b", word="word", beside="other")])
    assert gate.within(b"words = other") is None
    assert gate.within(b"word = 1") is None
    found = gate.within(b"word = 1  # other")
    assert found is not None
    assert found(b"word")
    assert not found(b"words")


def test_a_gate_within_a_file_knows_only_what_stands_there() -> None:
    found = Gate([b".step(", b".backward("]).within(b"loss.backward()\n'.step('\n")
    assert found is not None
    assert found.words == [b".backward("]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("legacy-variable", "class VariableTracker(Base): pass"),
        ("legacy-variable", "x = self.data.view(3)"),
        ("legacy-variable", "from torch.utils.data import DataLoader"),
        ("legacy-call", "x.run(is_async=True)"),
        ("legacy-call", "tool(verbose=True)"),
        ("legacy-call", "torch.linalg.lstsq(a, b)"),
        ("legacy-call", "np.fft.rfft(x)"),
        ("legacy-call", "def matrix_rank(x): pass"),
        ("input-requires-grad", "p.requires_grad_(False)"),
        ("input-requires-grad", "requires_grad = flag"),
        ("grad-in-evaluation", "def load_state_dict(self): pass"),
    ],
)
def test_what_only_looks_like_it(name: str, text: str) -> None:
    assert Gate(rule(name).gate).within(text.encode()) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("legacy-variable", "from torch.autograd import Variable"),
        ("legacy-variable", "x = y.data\nz = 1"),
        ("legacy-variable", "x = y.data\r\nz = 1"),
        ("legacy-variable", "print(loss.data[0])"),
        ("legacy-variable", "x = h.data.view(3)"),
        ("legacy-call", "x.cuda(async = True)"),
        ("legacy-call", "x.cuda(\n    device_id=0)"),
        ("legacy-call", "lr_scheduler.StepLR(opt, 3, verbose=True)"),
        ("legacy-call", "torch.lstsq(b, a)"),
        ("legacy-call", "nn.L1Loss(False)"),
        ("input-requires-grad", "x.requires_grad_()"),
        ("input-requires-grad", "x.requires_grad_(requires_grad=True)"),
        ("input-requires-grad", "x.requires_grad = True"),
        ("grad-in-evaluation", "net.load_state_dict(torch.load(path))"),
    ],
)
def test_what_concerns_a_rule(name: str, text: str) -> None:
    assert Gate(rule(name).gate).within(text.encode()) is not None


def test_every_rule_has_a_gate() -> None:
    assert all(one.gate for one in all_rules().values())
