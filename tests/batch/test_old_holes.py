"""What campaigns once got wrong, and no other test looks at."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import Limits, read
from codemods.batch.errors import Refused
from codemods.batch.git import Git, size_of
from codemods.batch.ledger.ledger import FILE, Ledger
from codemods.batch.ledger.schema import VIEWS
from codemods.batch.requests.publishing import publish
from codemods.batch.sources import of_path, parse
from codemods.batch.stages.cloning import clone
from tests.batch.forge import Forge, served
from tests.batch.inline import run_inline, verified
from tests.batch.tools import CLEAN, TRAIN, campaign_file, git, repository
from tests.commands import codemod


@pytest.mark.parametrize("served_at", [True, False], ids=["http", "path"])
def test_what_is_too_large_is_not_fetched(tmp_path: Path, served_at: bool) -> None:
    forge = Forge(tmp_path / "forge")
    work = forge.origin("o/n", {"train.py": TRAIN}, "127.0.0.1")
    (work / "weights.bin").write_bytes(os.urandom(6 << 20))
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "weights")
    git(work, "push", "-q", "origin", "main")
    place = forge.root / "o" / "n.git"
    git(place, "config", "uploadpack.allowFilter", "true")
    with served(forge.root) as address:
        source = parse(f"http://{address}/o/n", tmp_path) if served_at else of_path(place)
        with pytest.raises(Refused, match=r"weights.bin is .*the limit"):
            clone(Git(source), source, "", tmp_path / "clone", Limits(file_size=1 << 20))
    assert size_of(tmp_path / "clone") < 1 << 20


def test_what_is_not_too_large_is_fetched(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"train.py": TRAIN, "weights.bin": os.urandom(1 << 20)})
    assert clone(Git(of_path(source)), of_path(source), "", tmp_path / "clone", Limits())["tree_files"] == 2


def test_a_refusal_of_the_remote_is_told_by_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge = Forge(tmp_path / "forge")
    forge.origin("o/n", {"train.py": TRAIN}, "127.0.0.1")
    for name, value in forge.environment().items():
        monkeypatch.setenv(name, value)
    hook = forge.root / "o" / "n.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'Commits must be signed, see https://x.example.org' >&2\nexit 1\n")
    hook.chmod(0o755)
    with served(forge.root) as address:
        file = campaign_file(tmp_path, '[publish]\nclient = "gh"\nthrottle = 0\n', verify=True)
        file.write_text(file.read_text().replace('globs = ["repos/*"]', f'urls = ["http://{address}/o/n"]'))
        campaign = read(file)
        run_inline(campaign, verified("kept"))
        said: list[str] = []
        assert publish(campaign, said.append, sleep=lambda _: None) == 1
    assert "Commits must be signed, see https://x.example.org" in said[0]
    assert forge.request_count("127.0.0.1/o/n") == 0


def test_by_rule_goes_over_verdicts_and_findings_once(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        steps = [row["detail"] for row in ledger.query(f"EXPLAIN QUERY PLAN {VIEWS['by_rule']}")]
    for table in ("v", "f"):
        assert sum(step.split()[:2] == ["SCAN", table] for step in steps) <= 1, steps
    assert not [step for step in steps if "CORRELATED" in step]


def test_a_broken_ledger_is_a_sentence_on_the_command_line(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "one", {"a.py": CLEAN})
    file = campaign_file(tmp_path)
    run_inline(read(file))
    ledger = tmp_path / "work" / FILE
    data = bytearray(ledger.read_bytes())
    data[4096 : 4096 * 3] = b"\xff" * 8192
    ledger.write_bytes(bytes(data))
    for verb in ("status", "report", "run"):
        done = codemod("batch", verb, str(file))
        assert done.status == 2, done.stderr
        assert "internal error" not in done.stderr
        assert "Traceback" not in done.stderr
        assert "ledger.sqlite cannot be " in done.stderr


def test_git_itself_would_have_fetched_it(tmp_path: Path) -> None:
    """The limit of a clone is ours and no default of git's."""
    source = repository(tmp_path / "source", {"weights.bin": os.urandom(2 << 20)})
    subprocess.run(["git", "clone", "-q", f"file://{source}", str(tmp_path / "clone")], check=True)
    assert size_of(tmp_path / "clone") > 2 << 20
