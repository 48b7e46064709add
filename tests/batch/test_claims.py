"""What is claimed of a campaign is what its ledger has, row by row, and what is not is noticed."""

from __future__ import annotations

import os
import sqlite3
import textwrap
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import Campaign, read
from codemods.batch.fleet import write_reports
from codemods.batch.ledger.ledger import FILE
from codemods.batch.places import Places
from tests.batch.claims import Claims
from tests.batch.inline import run_inline
from tests.batch.tools import CLEAN, TRAIN, campaign_file, commit, git, repository

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """One that was run, with all its verdicts: kept, in part, not at all; odd names; nothing to change."""
    folder = tmp_path_factory.mktemp("claims")
    repos = folder / "repos"
    repository(repos / "kept", {"train.py": TRAIN})
    other = "def main():\n" + textwrap.indent(TRAIN, "    ")
    stops = f"number = int('x')\n{TRAIN}"
    repository(repos / "part", {"train.py": TRAIN, "other.py": stops})
    repository(repos / "stops", {"train.py": stops})
    repository(repos / "fine", {"lib.py": CLEAN})
    odd = repository(repos / "odd", {"lib.py": CLEAN})
    for name in (b"caf\xe9.py", b"new\nSigned-off-by: Ada <ada@example.org>.py"):
        with open(os.fsencode(odd) + b"/" + name, "wb") as file:
            file.write(other.encode())
    commit(odd, {})
    made = read(campaign_file(folder, '[publish]\nrequire = "not-broken"\n', verify=True))
    run_inline(made)
    write_reports(made)
    return made


def test_all_that_is_told_is_in_the_ledger(campaign: Campaign) -> None:
    claims = Claims(campaign)
    assert claims.disagreements() == []
    states = {row["slug"]: (row["state"], row["verification"]) for row in claims.rows("SELECT * FROM repositories")}
    assert states == {
        "kept": ("verified", "kept"),
        "part": ("rewritten", "partly kept"),
        "stops": ("rewritten", "not judged"),
        "fine": ("unchanged", ""),
        "odd": ("rewritten", ""),
    }
    # Something of each kind was looked at.
    assert {
        "the branch",
        "places in commits",
        "verdicts in the text",
        "the headline",
        "states",
    } <= claims.checked.keys()


@pytest.mark.parametrize(
    ("statement", "noticed"),
    [
        ("UPDATE findings SET proof='' WHERE rowid=(SELECT min(rowid) FROM findings WHERE proof='kept')", "verified"),
        ("UPDATE findings SET proof='kept' WHERE proof<>'kept'", "places in commits"),
        ("DELETE FROM findings WHERE rowid=(SELECT max(rowid) FROM findings WHERE fate='fixed')", "places"),
        ("UPDATE repositories SET state='verified' WHERE slug='part'", "the state verified"),
        ("UPDATE repositories SET commits=commits+1 WHERE slug='kept'", "commits"),
        ("UPDATE repositories SET changed=0 WHERE slug='stops'", "nothing to change"),
        ("UPDATE repositories SET lines=lines+1 WHERE slug='fine'", "the headline"),
        ("UPDATE verdicts SET verdict='broken' WHERE rowid=(SELECT min(rowid) FROM verdicts)", "rules"),
        ("UPDATE findings SET fate='left' WHERE rowid=(SELECT min(rowid) FROM findings)", "the figures of"),
    ],
)
def test_a_claim_that_is_wrong_is_noticed(campaign: Campaign, tmp_path: Path, statement: str, noticed: str) -> None:
    claims = Claims(campaign)
    with sqlite3.connect(tmp_path / FILE) as other:
        claims.database.backup(other)
        other.execute(statement)
        other.commit()
        claims.database = other
        found = claims.disagreements()
    assert any(noticed in text for text in found), found


def test_odd_names_are_spelled_alike_everywhere_and_write_no_line_of_their_own(campaign: Campaign) -> None:
    places = Places(campaign.work)
    told = git(places.clone("odd"), "log", "--format=%B", "main..codemod")
    text = (places.of("odd", "rewrite") / "pull-request.md").read_text()
    for one in (told, text, (campaign.work / "report" / "findings.csv").read_text()):
        assert "caf\\xe9.py" in one
        assert "udce9" not in one
    assert not [line for one in (told, text) for line in one.splitlines() if line.startswith("Signed-off-by")]
