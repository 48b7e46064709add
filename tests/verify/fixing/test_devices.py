"""What stayed behind on another device is made where it is used."""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

import pytest

from tests.verify.fixing.test_candidates import at, changed, offered
from verify.diagnosis.model import Clue, Kind

MODEL = """
class Tagger(nn.Module):
    def start(self, batch):
        return {made}
    def forward(self, words):
        return self.lstm(self.embed(words), self.start(len(words)))
"""
CLUES = (
    Clue("cause", at(3, "start")),
    Clue("carrier"),
    Clue("other", name="words", function="forward"),
    Clue("consumer", at(5, "forward")),
)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("torch.zeros(1, batch, 4)", "torch.zeros(1, batch, 4, device={0})"),
        ("torch.ones(2,), torch.tensor([1])", "torch.ones(2, device={0}), torch.tensor([1], device={0})"),
        ("torch.arange(9, dtype=torch.long)", "torch.arange(9, dtype=torch.long, device={0})"),
    ],
)
def test_what_a_module_makes_is_made_where_its_parameters_are(made: str, wanted: str) -> None:
    device = "next(self.parameters()).device"
    assert changed(Kind.OTHER_DEVICE, MODEL.format(made=made), *CLUES) == [f"return {wanted.format(device)}"]


def test_what_is_made_beside_the_other_operand_is_made_where_that_is() -> None:
    text = "def noisy(x):\n    noise = torch.randn(x.shape)\n    return x + noise\n"
    clues = (Clue("cause", at(2)), Clue("carrier", name="noise", function="f"), Clue("other", name="x", function="f"))
    found = changed(Kind.OTHER_DEVICE, text, *clues, Clue("consumer", at(3)))
    assert found == ["noise = torch.randn(x.shape, device=x.device)"]


@pytest.mark.parametrize(
    "made",
    [
        "torch.zeros(1, device=self.device)",
        "torch.zeros(1, **self.how)",
        "torch.zeros(torch.tensor(3))",
        "torch.zeros_like(batch)",
        "np.zeros(3)",
        "batch.clone()",
    ],
)
def test_what_is_told_where_or_makes_nothing_new_is_left_alone(made: str) -> None:
    assert offered(Kind.OTHER_DEVICE, MODEL.format(made=made), *CLUES) == []


@pytest.mark.parametrize(("old", "new"), [("nn.Module", "object"), ("start(self, batch)", "__init__(self)")])
def test_parameters_are_those_of_a_module_that_is_made(old: str, new: str) -> None:
    text = MODEL.format(made="torch.zeros(3)").replace(old, new, 1)
    assert offered(Kind.OTHER_DEVICE, text, *CLUES) == []


META = (
    Clue("carrier", name="self.bias", function="forward", text="is on meta (argument 2)"),
    Clue("other", text="is on cpu (argument 1)"),
)


@pytest.mark.parametrize(
    ("made", "line", "added"),
    [
        ('self.bias = torch.ones(3, device="meta")', 3, 'self.bias = torch.ones(3, device="cpu")'),
        ('with torch.device("meta"):\n    self.bias = torch.ones(3)', 4, 'with torch.device("cpu"):'),
        ('self.bias = torch.ones(3).to(torch.device("meta"))', 3, 'self.bias = torch.ones(3).to(torch.device("cpu"))'),
    ],
)
def test_what_has_no_values_is_made_where_the_other_operand_is(made: str, line: int, added: str) -> None:
    text = "class Net(nn.Module):\n    def __init__(self):\n" + indent(made, " " * 8) + "\n"
    clues = (Clue("cause", at(line, "__init__")), *META)
    assert changed(Kind.OTHER_DEVICE, text, *clues)[0] == added


@pytest.mark.parametrize(
    ("made", "carrier"),
    [
        ("self.bias = torch.ones(3, device=place)", "is on meta (argument 2)"),
        ('self.bias = torch.ones(3, name="meta?")', "is on meta (argument 2)"),
        ('self.bias = load("meta")', "is on cuda:0 (argument 2)"),
    ],
)
def test_a_word_that_says_no_meta_stays(made: str, carrier: str) -> None:
    text = f"class Net(nn.Module):\n    def __init__(self):\n        {made}\n"
    clues = (Clue("cause", at(3, "__init__")), replace(META[0], text=carrier), META[1])
    assert not [each for each in offered(Kind.OTHER_DEVICE, text, *clues) if "not on meta" in each.title]
