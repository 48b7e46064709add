"""Texts that leave the machine: nothing of what a program said, all of what we say."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.verify.reports import tools
from verify.measured.records import Caught, Census, Holder, Tensors, Variables
from verify.measured.results import Outcome, Rewrite, Verdict, Verification
from verify.measured.values import Site, Trouble, Values
from verify.reports import render
from verify.reports.discreet import discreet
from verify.reports.evidence import evidence_of

SECRET = "hunter2-" + "x" * 150
TROUBLE = Trouble("ValueError", f"no access with {SECRET}\nand {SECRET} either", "other")


def told() -> Verification:
    """A program that prints a secret, raises it, and is quoted by each of our sentences, also where they are cut."""
    record = tools.record()
    record.error, record.traceback = TROUBLE, f"Traceback\nValueError: {TROUBLE.message}"
    ran = tools.run("original", record, outcome=Outcome.RAISED, output=f"using {SECRET}\n")
    line = f"ValueError: {TROUBLE.message.splitlines()[0]}"
    rewrite = Rewrite((tools.finding(),), Verdict.KEPT, f"the original stops with {line[:60]}… at train.py:9")
    made = tools.entry(ran, ran, (rewrite,), notes=(f"stops: {line[:90]}", "pip install x", "--expose /home/ada/data"))
    return tools.verification(
        made, reason=f"stops before its first backward: {line[:100]}", advice=("/home/ada/bin/python lacks x",)
    )


def test_nothing_that_a_program_said_is_told() -> None:
    evidence = evidence_of(told())
    texts = [evidence.markdown, evidence.html, *(f"{proof.why}" for proof in evidence.proofs.values())]
    for text in [*texts, render(discreet(told()), "json"), render(discreet(told()), "text")]:
        assert "hunter2" not in text
        assert "no access" not in text
    assert [proof.why for proof in evidence.proofs.values()] == ["the original stops with ValueError at train.py:9"]
    assert discreet(told()).reason == "stops before its first backward: ValueError"


def test_messages_that_begin_alike_are_taken_out_each() -> None:
    """Neither is left in part because the other was looked for first."""
    record = tools.record()
    record.error = Trouble("ValueError", "no access with hunter2-one", "other")
    record.caught = [Caught(None, Trouble("ValueError", "no access with hunter2-two-and-more", "other"))]
    ran = tools.run("original", record, outcome=Outcome.RAISED)
    one, other = "ValueError: no access with hunter2-one", "ValueError: no access with hunter2-two-and-more"
    for text in (f"{one}; {other}", f"{other}; {one}", f"{one[:-1]}…; {other[:-4]}…", f"{one}; {one}; {other}"):
        shown = discreet(tools.verification(tools.entry(ran, None), reason=f"stops: {text}"))
        assert "hunter" not in shown.reason
        assert shown.reason == "stops: " + "; ".join(["ValueError"] * (text.count(";") + 1))
    same = discreet(tools.verification(tools.entry(ran, None), reason="ValueError: ours"))
    assert same.reason == "ValueError: ours"


def test_nor_what_lies_on_this_machine() -> None:
    shown = discreet(dataclasses.replace(told(), settings={"python": "/home/ada/bin/python", "steps": 9}))
    assert (shown.advice, shown.settings) == ((), {"steps": 9})
    assert shown.entries[0].notes == ("stops: ValueError", "pip install x")


def test_quoted_it_is_told() -> None:
    evidence = evidence_of(told(), quoted=True)
    assert "no access with hunter2" in evidence.markdown
    assert all("no access" in proof.why for proof in evidence.proofs.values())


@pytest.mark.parametrize("make", [tools.exact, tools.repaired, tools.broken, tools.not_reached, tools.many])
def test_our_own_words_stay(make: object) -> None:
    made: Verification = make()  # type: ignore[operator]
    for ours, shown in zip(made.rewrites, discreet(made).rewrites, strict=True):
        assert shown.verdict is ours.verdict
        assert shown.findings == ours.findings
        assert shown.why.split(":")[0] == ours.why.split(":")[0]


def test_what_torch_says_of_the_graph_is_told_in_our_words() -> None:
    text = evidence_of(tools.repaired()).markdown
    assert "RuntimeError: Trying to backward through the graph a second time" in text
    odd = tools.repaired()
    trouble = Trouble("RuntimeError", f"Trying to backward through the graph a second time {SECRET}", "freed")
    for run in (odd.entries[0].original,):
        run.records[0].error = trouble
    assert "hunter2" not in evidence_of(odd).markdown


@pytest.mark.parametrize(
    "name", [f"E {SECRET}", "hunter2", "Leaked_hunter2", "hunter2Error", "print", "hunter2.__dict__"]
)
def test_a_type_can_be_called_anything(name: str) -> None:
    text = told_of(name)
    assert name not in text
    assert "hunter2" not in text
    assert "an exception of its own" in text


@pytest.mark.parametrize(
    "name", ["KeyError", "ModuleNotFoundError", "SystemExit", "torch.OutOfMemoryError", "LinAlgError", "HTTPError"]
)
def test_a_type_that_is_known_is_told(name: str) -> None:
    text = told_of(name)
    assert name.rpartition(".")[2] in text
    assert "an exception of its own" not in text


def told_of(name: str) -> str:
    record = tools.record()
    record.error = Trouble(name, "x", "other")
    ran = tools.run("original", record, outcome=Outcome.RAISED)
    return evidence_of(tools.verification(tools.entry(ran, None))).markdown


def test_why_something_is_made_up_is_told_by_the_type_of_the_error() -> None:
    made = tools.repaired()
    (entry, *others) = made.entries
    gone = {
        "place": "train.py:3",
        "span": ["train.py", 3, 0, 3, 9],
        "why": "FileNotFoundError: hunter2",
        "told": "a text",
    }
    standins = [
        {"what": "MNIST", "why": "RuntimeError: hunter2 is not\nthere", "shape": None},
        {"what": "the argument name", "why": "asked for, and not given; made up", "shape": None},
        {"what": "transforms.Normalize", "why": "left out, it does not fit the made-up images: ValueError: hunter2"},
    ]
    record = dataclasses.replace(entry.original.records[0], left=[gone], standins=standins)
    original = dataclasses.replace(entry.original, records=(record,))
    found = discreet(dataclasses.replace(made, entries=(dataclasses.replace(entry, original=original), *others)))
    page = render(found, "markdown")
    assert "hunter2" not in page
    for words in ("(FileNotFoundError)", "(RuntimeError)", "asked for, and not given", "images: ValueError)"):
        assert words in page


#: A key as it stands in the environment, and as a module or a parameter can be called by it.
KEY = "tokensecret_81726354"
NAMED: dict[str, dict[str, Any]] = {
    "module": {"standins": [{"what": f"the module {KEY}", "why": "not installed", "shape": None}]},
    "file": {"standins": [{"what": f"data/{KEY}.npy", "why": "declared, and not there", "shape": None}]},
    "optimizer": {"optimizers": (KEY,)},
    "holder": {"census": Census(20, {1: 1}, True, (Holder(f"self.{KEY}", "Trainer.forward", 8, 8),))},
    "function": {"site": Site("train.py", 41, f"run_{KEY}")},
    "variable": {"variables": Variables((KEY,), Values("x", 1), {})},
    "path": {"changed": {f"logs/{KEY}": "file 644"}},
}


@pytest.mark.parametrize("where", NAMED)
def test_a_name_that_stands_in_no_source_is_not_told(where: str, tmp_path: Path) -> None:
    record = tools.record(loaded=("train.py",), **NAMED[where])
    rewrite = Rewrite((tools.finding(),), Verdict.KEPT, f"compared: variable {KEY} and run_{KEY}; graph growth 8 nodes")
    made = tools.entry(tools.run("original", record), tools.run("rewritten", record), (rewrite,))
    told = dataclasses.replace(tools.verification(made), root=str(tmp_path))
    (tmp_path / "train.py").write_text("import torch\n")
    page = evidence_of(told).markdown
    assert "tokensecret" not in page
    assert "81726354" not in page
    assert "compared: variable … and …; graph growth 8 nodes" in page
    # What anybody can read there is no secret.
    (tmp_path / "train.py").write_text(f"import {KEY}\n")
    assert discreet(told).rewrites[0].why == rewrite.why


@pytest.mark.parametrize(
    "name",
    ["weight_ih_l0", "encoder.layers.12.running_mean", "<module>", "train_0001", "cifar (512 x, 10 classes)"],
)
def test_names_of_torch_and_of_ours_are_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("class Encoder:\n    encoder = layers = train = None\n")
    tensors = Tensors((name,), ("float32",), None)
    record = tools.record(loaded=("train.py",), standins=[{"what": name, "why": "", "shape": None}])
    record.steps[0] = dataclasses.replace(record.steps[0], tensors=tensors)
    why = f"{name} differs by 3e-08"
    made = tools.entry(tools.run("original", record), None, (Rewrite((tools.finding(),), Verdict.KEPT, why),))
    told = dataclasses.replace(tools.verification(made), root=str(tmp_path))
    assert discreet(told).rewrites[0].why == why
