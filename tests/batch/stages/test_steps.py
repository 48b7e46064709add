"""Own steps: run in the sandbox, told in the request, and held against the rewrite."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.batch.campaign.settings import Runs, Steps, read
from codemods.batch.errors import Refused
from codemods.batch.places import Places
from codemods.batch.stages.steps import Result, run_steps, told
from tests.batch.inline import run_inline
from tests.batch.tools import CLEAN, TRAIN, campaign_file, repository

NO_FLAG = "! grep -q retain_graph train.py"


def test_they_see_the_tree_as_it_was_and_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    steps = Steps(before=("grep old a.txt; echo x > b.txt", "grep new a.txt"), after=("grep new a.txt",))
    results = run_steps(steps, Runs(), tmp_path, {"a.txt": b"new"})
    assert [(one.when, one.why) for one in results] == [
        ("before", ""), ("before", "ended with status 1"), ("after", ""),
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_one_that_fails_only_after_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(Refused, match=r"after rewriting 'grep old a.txt' ended with status 1"):
        run_steps(Steps(after=("grep old a.txt",)), Runs(), tmp_path, {"a.txt": b"new"})
    assert run_steps(Steps(("false",), ("false",)), Runs(), tmp_path, {})
    with pytest.raises(Refused, match="did not finish"):
        run_steps(Steps(after=("sleep 100",)), Runs(timeout=1), tmp_path, {})


def test_what_one_printed_that_failed_stands_in_the_log(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(Refused):
        run_steps(Steps(("echo fine",), ("echo 3 tests failed; exit 3",)), Runs(), tmp_path, {}, said.append)
    assert said == [
        "$ echo fine  # before rewriting: passed",
        "$ echo 3 tests failed; exit 3  # after rewriting: ended with status 3",
        "3 tests failed\n",
    ]


def test_what_they_print_is_not_told() -> None:
    assert told([]) == ""
    assert told([Result("make `x`", "after", "")]).endswith("- `` make `x` `` after rewriting: passed\n")


def test_in_a_campaign(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "one", {"train.py": TRAIN})
    repository(tmp_path / "repos" / "fine", {"train.py": CLEAN})
    plain = read(campaign_file(tmp_path))
    campaign = read(campaign_file(tmp_path, f'[steps]\nbefore = ["echo hunter2"]\nafter = ["{NO_FLAG}"]\n'))
    assert plain.fingerprint(plain.repositories[0]) != campaign.fingerprint(campaign.repositories[0])
    run_inline(campaign)
    places = Places(campaign.work)
    text = (places.of("one", "rewrite") / "pull-request.md").read_text()
    assert "- `echo hunter2` before rewriting: passed\n" in text
    assert f"- `{NO_FLAG}` after rewriting: passed\n" in text
    assert "Own steps" not in (places.of("fine", "rewrite") / "pull-request.md").read_text()
