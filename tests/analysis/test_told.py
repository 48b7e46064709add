"""What is remembered of single files is what asking them again would say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemods.analysis import told, workers
from codemods.analysis.analyse import Analysis, analyse
from codemods.analysis.job import concerns
from codemods.source.files import SourceFile, read_source
from codemods.source.gates import Gate
from codemods.source.options import Options

TEXTS = {
    "main.py": [
        "import torch\nfrom part import step\nfor x in range(3):\n    step(x)\n",
        "from part import step\nstep(1)\n",
        "import part\n",
        "import (\n",
    ],
    "part.py": [
        "import torch\nnet = torch.nn.Linear(1, 1)\ntotal = 0\ndef step(x):\n    global total\n"
        "    loss = net(torch.ones(1))\n    total += loss\n    loss.backward()\n",
        "def step(x):\n    return x\n",
        "from other import *\n",
        "",
    ],
    "other.py": ["from torch.autograd import Variable\n", "def step(x):\n    return x.data\n", "print 'x'\n"],
}


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    told.forget()
    yield
    told.forget()


def targets(folder: Path, chosen: dict[str, str]) -> list[SourceFile]:
    (folder / "pyproject.toml").touch()
    for name, text in chosen.items():
        (folder / name).write_text(text)
    return [read_source(folder / name, name) for name in sorted(chosen)]


def anew(given: list[SourceFile], overlay: dict[str, str]) -> Analysis:
    told.forget()
    workers._memory.clear()
    return analyse(given, options=Options(cache=False), jobs=1, overlay=overlay)


_EDIT = st.sampled_from([(name, text) for name, texts in TEXTS.items() for text in texts])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(_EDIT, min_size=1, max_size=5))
def test_after_any_edits_the_same_is_found_as_from_nothing(tmp_path: Path, edits: list[tuple[str, str]]) -> None:
    given_files = targets(tmp_path, {name: texts[0] for name, texts in TEXTS.items()})
    overlay: dict[str, str] = {}
    seen = []
    told.forget()
    for name, text in edits:
        overlay[name] = text
        found = analyse(given_files, options=Options(cache=False), jobs=1, overlay=dict(overlay))
        seen.append((dict(overlay), found))
    for texts, found in seen:
        again = anew(given_files, texts)
        assert (found.findings, found.skipped, found.notes) == (again.findings, again.skipped, again.notes)


def test_a_file_that_stays_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_files = targets(tmp_path, {name: texts[0] for name, texts in TEXTS.items()})
    asked: list[bytes] = []
    within = Gate.within

    def counting(gate: Gate, raw: bytes) -> Gate | None:
        asked.append(raw)
        return within(gate, raw)

    monkeypatch.setattr(Gate, "within", counting)
    analyse(given_files, options=Options(cache=False), jobs=1)
    assert len(asked) == len(set(asked)) == 3
    asked.clear()
    text = TEXTS["part.py"][0] + "# more\n"
    analyse(given_files, options=Options(cache=False), jobs=1, overlay={"part.py": text})
    assert asked == [text.encode()]


def test_the_same_text_under_another_name_is_another_file(tmp_path: Path) -> None:
    # what an import means depends on where it stands
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "helper.py").write_text("from torch import *\n")
    text = "from helper import torch\nx = torch.ones(1).data\n"
    given_files = targets(tmp_path, {"main.py": text})
    (inner / "main.py").write_text(text)
    given_files += [read_source(inner / name, f"inner/{name}") for name in ("helper.py", "main.py")]
    first = analyse(given_files, options=Options(cache=False), jobs=1)
    again = anew(given_files, {})
    assert (first.findings, first.skipped) == (again.findings, again.skipped)


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "_MEMORY", 5)
    given_files = targets(tmp_path, {name: texts[0] for name, texts in TEXTS.items()})
    analyse(given_files, options=Options(cache=False), jobs=1)
    assert len(told._memory) <= 5


def test_readable_says_what_was_found_elsewhere() -> None:
    assert not told.was_read("x = 1\n")
    told.found_readable("x = 1\n", False)
    assert told.was_read("x = 1\n")
    assert not told.readable("x = 1\n")
    assert told.readable("x = 2\n")


def test_what_a_rule_asks_for_is_told_per_file(tmp_path: Path) -> None:
    from codemods.analysis.project import projects_of

    given_files = targets(tmp_path, {"a.py": "import torch\nx.backward()\n", "b.py": "x = 1\n"})
    (project,) = projects_of(given_files, {})
    assert told.told(concerns, project, "a.py") is not None
    assert told.told(concerns, project, "b.py") is None
