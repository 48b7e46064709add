"""From recorded evidence to faults, without a run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from verify.diagnosis import graphs, learning, resources
from verify.diagnosis.evidence import Sources, size
from verify.diagnosis.model import Diagnosis, Kind
from verify.diagnosis.reports import json as as_json
from verify.diagnosis.reports import text as as_text
from verify.fixing import report
from verify.fixing.repairs import Fixed, Refused
from verify.measured.records import Caught, Record
from verify.measured.results import Outcome, Run
from verify.measured.values import Site, Trouble

SOURCE = "a = 1\nstate = net(x, state)  # kept\nloss.backward()\noptimizer.step()\n"


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    (tmp_path / "t.py").write_text(SOURCE)
    return Sources(tmp_path)


def run_of(*events: dict[str, Any], **fields: Any) -> Run:
    record = Record(diagnoses=list(events), **fields)
    return Run("original", ("t.py",), Outcome.OK, 0, 1.0, 0, (record,), "")


SECOND: dict[str, Any] = {
    "what": "second",
    "site": ["t.py", 3, "f"],
    "index": 1,
    "freed": ["t.py", 3, "f"],
    "freed_index": 0,
    "producer": ["t.py", 2, "f"],
    "consumer": ["t.py", 2, "f"],
    "operation": "TanhBackward0",
    "crosses": True,
    "twice": False,
    "stepped": None,
    "fresh": False,
    "number": 4,
    "user": 9,
    "names": [{"name": "self.state", "function": "forward"}, {"name": "net.state", "function": "<module>"}],
    "same": True,
}


def test_a_second_backward_names_all_stations(sources: Sources) -> None:
    (fault,) = graphs.second_backwards(run_of(SECOND, SECOND), sources)
    assert fault.kind is Kind.SECOND_BACKWARD
    assert [clue.role for clue in fault.clues] == ["cause", "carrier", "consumer", "freed by"]
    assert fault.clues[0].source == "state = net(x, state)"
    assert (fault.clues[1].name, fault.clues[1].function) == ("self.state", "forward")
    assert "net.state" in fault.clues[1].text
    assert "self.state.detach()" in fault.remedy


def test_two_losses_of_one_graph_have_another_remedy(sources: Sources) -> None:
    (fault,) = graphs.second_backwards(run_of({**SECOND, "crosses": False}), sources)
    assert "add them" in fault.remedy
    in_one_turn = {**SECOND, "stepped": False, "consumer": ["t.py", 1, "f"]}
    assert "add them" in graphs.second_backwards(run_of(in_one_turn), sources)[0].remedy
    stepped = {**in_one_turn, "stepped": True}
    assert "add them" not in graphs.second_backwards(run_of(stepped), sources)[0].remedy
    assert "anew in every step" in graphs.second_backwards(run_of(stepped), sources)[0].remedy
    fake = {**stepped, "freed": ["t.py", 1, "f"], "fresh": True}
    assert "two losses of one step" in graphs.second_backwards(run_of(fake), sources)[0].remedy


def test_a_line_that_walks_one_loss_in_every_turn_has_a_remedy_of_its_own(sources: Sources) -> None:
    event = {**SECOND, "twice": True, "names": [], "consumer": None}
    assert "anew in every turn" in graphs.second_backwards(run_of(event), sources)[0].remedy
    old = {**event, "freed": ["t.py", 4, "f"]}
    assert "anew in every turn" in graphs.second_backwards(run_of(old), sources)[0].remedy
    apart = {**old, "fresh": True}
    assert "once for each loss" in graphs.second_backwards(run_of(apart), sources)[0].remedy


def test_one_loss_twice_has_no_carrier(sources: Sources) -> None:
    event = {**SECOND, "twice": True, "crosses": False, "names": [], "consumer": None}
    (fault,) = graphs.second_backwards(run_of(event), sources)
    assert fault.clue("carrier") is None
    assert fault.clue("consumer") is not None


def test_a_graph_made_by_a_library_is_said_to_be(sources: Sources) -> None:
    (fault,) = graphs.second_backwards(run_of({**SECOND, "producer": None}), sources)
    assert "library code" in fault.clues[0].text


def test_names_that_two_runs_do_not_share_are_said_to_be(sources: Sources) -> None:
    (fault,) = graphs.second_backwards(run_of({**SECOND, "same": False}), sources)
    assert fault.clue("note") is not None


def test_a_graph_of_an_earlier_step_is_no_matter_of_the_optimizer(sources: Sources) -> None:
    hit = {
        "reader": ["t.py", 2, "f"],
        "operation": "AddmmBackward0",
        "operand": "mat2",
        "number": 3,
        "version": 2,
        "expected": 1,
        "changed": ["t.py", 4, "f"],
        "by": "aten::add_.Tensor",
        "names": [{"name": "net.weight", "function": "f"}],
        "old": False,
    }
    event = {"what": "inplace", "site": ["t.py", 3, "f"], "hits": [hit]}
    (fault,) = graphs.changes_in_place(run_of(event), sources)
    assert fault.clues[0].site == Site("t.py", 4, "f")
    assert "add_" in fault.clues[0].text
    assert "after the step" in fault.remedy
    (older,) = graphs.changes_in_place(run_of({**event, "hits": [{**hit, "old": True}]}), sources)
    assert "detach" in older.remedy


def learned(**row: Any) -> dict[str, Any]:
    optimizer = {
        "index": 0,
        "name": "SGD",
        "site": ["t.py", 4, "f"],
        "steps": 20,
        "parameters": 4,
        "uncleared": 0,
        "silent": [],
        "silent_count": 0,
        **row,
    }
    backward = {"site": ["t.py", 3, "f"], "calls": 20, "rootless": 0, "reaches": True, "leaves": 4}
    return {"what": "learning", "optimizers": [optimizer], "outside": [], "backwards": [backward]}


SILENT = [{"name": "net.weight", "place": 0, "reached": False, "shape": [2, 2]}]


def test_where_all_learn_nothing_is_said(sources: Sources) -> None:
    run = run_of(learned())
    assert learning.no_gradient(run, None, sources) == []
    assert learning.not_in_optimizer(run, sources) == []
    assert learning.never_cleared(run, sources) == []
    assert learning.cut_off(run, None, sources) == []


def test_a_silent_parameter_needs_some_steps(sources: Sources) -> None:
    assert learning.no_gradient(run_of(learned(silent=SILENT, silent_count=1, steps=2)), None, sources) == []
    (fault,) = learning.no_gradient(run_of(learned(silent=SILENT, silent_count=1)), None, sources)
    assert fault.headline == "1 of 4 parameters of SGD never get a gradient"


def test_the_line_that_ends_a_graph_is_the_cause(sources: Sources) -> None:
    cut = {"site": ["t.py", 2, "f"], "call": "argmax", "reason": "argmax", "leaves": ["net.weight"]}
    flow = {"what": "flow", "loss": ["t.py", 3, "f"], "born": None, "cuts": [cut], "left": [], "used": ["net.weight"]}
    run = run_of(learned(silent=SILENT, silent_count=1))
    (fault,) = learning.no_gradient(run, run_of({**flow, "unused": []}), sources)
    assert fault.clues[0].role == "cause"
    assert fault.site == Site("t.py", 2, "f")


def test_a_refused_loss_is_cut_off(sources: Sources) -> None:
    message = "element 0 of tensors does not require grad and does not have a grad_fn"
    caught = Caught(Site("t.py", 3, "f"), Trouble("RuntimeError", message, "other"))
    (fault,) = learning.cut_off(run_of(caught=[caught]), None, sources)
    assert fault.kind is Kind.LOSS_CUT_OFF
    assert fault.site == Site("t.py", 3, "f")


def test_gradients_that_are_cleared_now_and_then_are_cleared(sources: Sources) -> None:
    assert learning.never_cleared(run_of(learned(uncleared=10)), sources) == []
    assert len(learning.never_cleared(run_of(learned(uncleared=19)), sources)) == 1


def stored(**row: Any) -> dict[str, Any]:
    entry = {"name": "kept", "kind": "list", "length": 20, "added": 1.0, "tensor_bytes": 0.0, "plain_bytes": 0.0}
    return {"what": "stores", "looks": [2, 4, 8, 12], "containers": [{**entry, "graph": False, **row}]}


def test_a_list_of_numbers_is_no_fault() -> None:
    assert resources.stores(run_of(stored(plain_bytes=24.0))) == []
    assert resources.stores(run_of(stored(tensor_bytes=1e6, graph=True))) == []


def test_tensors_and_other_things_that_pile_up_are_told_apart() -> None:
    (tensors,) = resources.stores(run_of(stored(tensor_bytes=1e6)))
    (plain,) = resources.stores(run_of(stored(plain_bytes=1e6)))
    assert (tensors.kind, plain.kind) == (Kind.GROWING_TENSORS, Kind.GROWING_CONTAINER)


def short(*events: dict[str, Any]) -> Run:
    run = run_of(*events)
    return replace(run, outcome=Outcome.MEMORY, peak=1 << 30, notes=("stopped: it held 1.1 GiB, the limit is 1 GiB",))


def held(what: str, *lines: tuple[int, int], **bytes_of: int) -> dict[str, Any]:
    rows = [{"site": ["t.py", line, "f"], "bytes": size} for line, size in lines]
    fixed = {"parameters": 0, "gradients": 0, "state": 0, **bytes_of}
    return {
        "what": what,
        "site": ["t.py", 2, "f"],
        "nodes": 9,
        "saved": sum(s for _, s in lines),
        "lines": rows,
        **fixed,
    }


def alive(steps: int, freed: int | None = None) -> dict[str, Any]:
    box = {"site": ["t.py", 2, "f"], "nodes": 8, "steps": steps, "freed": freed}
    return {"what": "graph", "for": "memory", "boxes": [{**box, "holders": [{"name": "kept[*]", "function": "f"}]}]}


@pytest.mark.parametrize(
    ("events", "remedy", "carrier"),
    [
        ([held("exhausted", (2, 900 << 20)), alive(1)], "smaller batches", None),
        ([held("exhausted", (2, 900 << 20)), alive(6)], "graphs pile up", "kept[*]"),
        ([held("exhausted", (2, 900 << 20)), alive(2)], "delete what holds it", "kept[*]"),
        # what a backward has freed holds next to nothing
        ([held("exhausted", (2, 900 << 20)), alive(6, freed=3)], "smaller batches", None),
        ([held("exhausted", (2, 9 << 20), parameters=300 << 20, state=600 << 20)], "the model and its optimizer", None),
        # a batch that takes the memory in one operation
        ([held("near", parameters=5 << 20)], "smaller batches", None),
    ],
)
def test_what_memory_is_short_of(
    events: list[dict[str, Any]], remedy: str, carrier: str | None, sources: Sources
) -> None:
    (fault,) = resources.memory(short(*events), sources)
    assert fault.headline == "memory runs out: it held 1.1 GiB, the limit is 1 GiB"
    assert (fault.site, remedy in fault.remedy) == (Site("t.py", 2, "f"), True)
    assert next((clue.name for clue in fault.clues if clue.role == "carrier"), None) == carrier


def paced(*seconds: float) -> Run:
    return run_of({"what": "pace", "seconds": [9.0, 9.0, *seconds], "lines": []})


def test_steps_are_slower_only_beyond_doubt(sources: Sources) -> None:
    rising = [0.01 + 0.002 * number for number in range(18)]
    assert resources.slows(paced(*rising)) is not None
    assert resources.slows(paced(*rising[:6])) is None
    assert resources.slows(paced(*([0.01, 0.05] * 9))) is None
    assert resources.slows(paced(*([0.0001 * number for number in range(18)]))) is None
    assert resources.slower(paced(*rising), paced(*([0.01] * 18)), sources) == []


def test_reports_have_what_the_diagnosis_has(sources: Sources) -> None:
    faults = tuple(graphs.second_backwards(run_of(SECOND), sources))
    diagnosis = Diagnosis("t.py", "/tree", faults, ("a remark",), ("errors",), ("data",), 1, 2, ())
    assert diagnosis.status == 1
    shown = as_text.render(diagnosis)
    assert "t.py: 1 fault" in shown
    assert "self.state in forward" in shown
    content = json.loads(as_json.render(diagnosis))
    assert content["faults"][0]["kind"] == "second-backward"
    jsonschema.validate(content, as_json.schema())
    assert content["faults"][0]["clues"][0]["site"] == {"path": "t.py", "line": 2, "function": "f"}
    assert all(len(line) <= 120 for line in shown.splitlines())


def test_the_schema_knows_all_faults_and_refuses_what_lacks_a_field() -> None:
    schema = as_json.schema()
    assert set(schema["$defs"]["fault"]["properties"]["kind"]["enum"]) == {kind.value for kind in Kind}
    content = as_json.content(Diagnosis("t.py", "/tree", (), (), (), (), 1, 2, ()))
    jsonschema.validate(content, schema)
    for field in content:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({key: value for key, value in content.items() if key != field}, schema)


def test_a_program_without_faults_is_told_what_was_watched() -> None:
    diagnosis = Diagnosis("t.py", "/tree", (), (), ("errors",), ("what comes after step 20",), 20, 20, ())
    assert diagnosis.status == 0
    shown = as_text.render(diagnosis)
    assert "nothing found in 20 steps" in shown
    assert "watched: errors" in shown
    assert "not watched: what comes after step 20" in shown


def test_sizes() -> None:
    assert [size(n) for n in (12, 2048, 3 << 20, 5 << 30)] == ["12 bytes", "2 KiB", "3 MiB", "5 GiB"]


def test_nothing_that_a_program_says_drives_a_terminal(sources: Sources) -> None:
    said = "\x1b]0;title\x07\x1b[2J \u202e"
    faults = tuple(graphs.second_backwards(run_of(SECOND), sources))
    clues = tuple(replace(clue, name=said, source=said) for clue in faults[0].clues)
    fault = replace(faults[0], headline=said, clues=clues, remedy=said)
    for found in ((fault,), ()):
        told = {"reason": said, "advice": (said,), "traceback": f"one\n{said}"}
        diagnosis = Diagnosis(said, "/tree", found, (said,), (said,), (said,), 1, 2, (), **told)
        plain, painted = (as_text.render(diagnosis, colour=colour) for colour in (False, True))
        assert "one\n^[]0;title^G^[[2J \\u202e" in plain
        assert re.sub(r"\x1b\[\d+m", "", painted) == plain
        assert plain.replace("\n", "").isprintable()
        told_by_fix = report.text(Fixed(diagnosis, diagnosis, (), (Refused(said, said),), {}), written=False)
        assert told_by_fix.replace("\n", "").isprintable()
