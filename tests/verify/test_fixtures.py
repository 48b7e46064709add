"""Every fixture, run: before shows its fault, after keeps its promise, and what must stay as it is runs clean."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from codemods.cli._choices import settle_choices
from fixtures import Case, cases
from tests.commands import codemod
from tests.verify.zygote import ForkedPlace
from verify.reports import render
from verify.running.settings import STEPS, Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

ALL = list(cases())
LISTS = ("select", "ignore", "exclude")
PAIRS = [case for case in ALL if not case.keep]
FIRST = list({case.about["fault"]["kind"]: case for case in reversed(PAIRS)}.values())


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_pair(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any) -> None:
    report = verified(case, tmp_path, monkeypatch)
    entry = report["entries"][0]
    original, rewritten = entry["original"], entry["rewritten"]
    record_property("fixture", row(case, report))

    FAULTS[case.about["fault"]["kind"]](case.about["fault"], original, rewritten)
    assert rewritten["outcome"] == "ok", rewritten["output"]
    assert not rewritten["figures"]["leak"]
    wanted = case.about.get("verdict", "kept")
    assert [(r["verdict"], r["why"]) for r in report["rewrites"] if r["verdict"] != wanted] == []
    assert {(f["rule"], f["path"], f["line"]) for r in report["rewrites"] for f in r["findings"]} == {
        (rule, path, line) for rule, path, line, _ in case.findings
    }


@pytest.mark.parametrize("case", [case for case in ALL if case.keep and not case.advice], ids=str)
def test_noop(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = verified(case, tmp_path, monkeypatch)
    original = report["entries"][0]["original"]
    assert report["rewrites"] == []
    fault = case.about.get("fault", {})
    if fault.get("kind") == "raises":
        assert fault["error"] in original["error"]["message"]
    else:
        assert original["outcome"] == "ok", original["output"]


@pytest.mark.gpu
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_pair_on_the_gpu(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    report = verified(case, tmp_path, monkeypatch, device="cuda")
    entry = report["entries"][0]
    original, rewritten = entry["original"], entry["rewritten"]
    record_property("fixture", row(case, report))

    # An original may stop before it comes to the card.
    assert rewritten["figures"]["device"] != "cpu"
    FAULTS[case.about["fault"]["kind"]](case.about["fault"], original, rewritten)
    assert rewritten["outcome"] == "ok", rewritten["output"]
    assert not rewritten["figures"]["leak"]
    wanted = case.about.get("verdict", "kept")
    others = [(r["verdict"], r["why"]) for r in report["rewrites"] if r["verdict"] != wanted]
    # Equal numbers cannot be asked of kernels that add in any order.
    assert [other for other in others if "torch has no deterministic kernel for" not in other[1]] == []


def verified(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch, *, device: str | None = None) -> dict[str, Any]:
    """What ``verify`` says of the case, trained on ``device``; its status must agree with its verdicts."""
    write(case, folder, monkeypatch)
    steps = case.about.get("steps", STEPS)
    settings = Settings(steps=steps)
    if device is not None:
        settings = replace(settings, device=device, environment={"FIXTURES_DEVICE": device})
    result = verify(
        [script_command(case.entry, case.about.get("args", []), settings.python)],
        options=settle_choices(".", **_options(case)).options,
        settings=settings,
        jobs=1,
        place=ForkedPlace,
    )
    report: dict[str, Any] = json.loads(render(result, "json", colour=False))
    verdicts = {rewrite["verdict"] for rewrite in report["rewrites"]}
    fine = result.judged and verdicts <= {"kept", "not reached"} and verdicts != {"not reached"}
    assert (result.status == 0) == fine
    return report


def write(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the case into ``folder``, the working directory from now on."""
    for path, text in case.before.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    monkeypatch.chdir(folder)


def _options(case: Case) -> dict[str, Any]:
    """The options of the case as the command line would hand them on."""
    chosen: dict[str, Any] = dict.fromkeys(("config", "select", "ignore", "exclude"))
    words = iter(case.options)
    for word in words:
        name = word.removeprefix("--").replace("-", "_")
        chosen[name] = True if name == "unsafe" else [next(words)] if name in LISTS else next(words)
    return chosen


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_one_of_each_fault_by_the_command(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(case, tmp_path, monkeypatch)
    ran = codemod("verify", case.entry, *case.options, "--format", "json", "--", *case.about.get("args", []))
    report = json.loads(ran.stdout)
    assert {rewrite["verdict"] for rewrite in report["rewrites"]} == {"kept"}, report["rewrites"]
    assert ran.status == 0
    assert {path: (tmp_path / path).read_bytes() for path in case.before} == case.before


Shown = dict[str, Any]


def _raises(fault: Shown, original: Shown, rewritten: Shown) -> None:
    assert original["outcome"] == "raised"
    assert fault["error"] in original["error"]["message"]


def _grows(fault: Shown, original: Shown, rewritten: Shown) -> None:
    # A total that is reset every epoch grows within an epoch only, which is no leak.
    growing, flat = original["figures"], rewritten["figures"]
    assert growing["leak"] or max(growing["live"]) >= 1.5 * max(flat["live"])


def _wasted(fault: Shown, original: Shown, rewritten: Shown) -> None:
    assert original["figures"]["wasted"]
    assert not rewritten["figures"]["wasted"]


def _retains(fault: Shown, original: Shown, rewritten: Shown) -> None:
    assert original["outcome"] == "ok"
    nodes = [max(run["figures"]["live"]) for run in (original, rewritten)]
    saved = [statistics.median(run["figures"]["bytes"]) for run in (original, rewritten)]
    assert nodes[0] > nodes[1] or saved[0] > saved[1]


def _runs(fault: Shown, original: Shown, rewritten: Shown) -> None:
    assert original["outcome"] == "ok"


FAULTS: dict[str, Callable[[Shown, Shown, Shown], None]] = {
    "raises": _raises,
    "grows": _grows,
    "wasted-forwards": _wasted,
    "retains": _retains,
    "none": _runs,
}


def row(case: Case, report: dict[str, Any]) -> list[str]:
    """The line of the case in the table of all fixtures."""
    entry = report["entries"][0]
    verdicts = sorted({rewrite["verdict"] for rewrite in report["rewrites"]})
    promises = sorted({f["promise"] for rewrite in report["rewrites"] for f in rewrite["findings"]})
    return [
        str(case),
        case.about["fault"]["kind"],
        ", ".join(promises),
        ", ".join(verdicts),
        entry["rewrites"][0]["why"],
    ]
