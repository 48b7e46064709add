"""How long a campaign of many repositories takes to say where it stands, to report, and to begin again.

``python tests/benchmarks/batch_ledger.py [REPOSITORIES]`` makes a ledger of so many (10,000), the same every time,
measures, and does the same with a quarter of them: what grows faster than the list has a ratio well above 4.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from codemods.batch import sources
from codemods.batch.campaign.settings import Campaign, read
from codemods.batch.fleet import write_reports
from codemods.batch.ledger.ledger import Ledger
from codemods.batch.overview import status, status_text
from codemods.batch.places import Places, slug_of
from codemods.batch.planning import plan, plan_text
from codemods.batch.requests.standing import Standing
from codemods.batch.running import run
from codemods.batch.stages.job import FACTS
from codemods.batch.tool import digest
from codemods.rules import rule_names
from tests.batch.inline import Quiet

FINDINGS = 13


def campaign_of(folder: Path, count: int) -> Campaign:
    """A campaign over ``count`` addresses of no machine."""
    (folder / "list.txt").write_text("".join(f"https://host.invalid/owner/r{number:06}\n" for number in range(count)))
    file = folder / "campaign.toml"
    file.write_text(
        '[campaign]\nname = "many"\nwork = "work"\n[repositories]\nlist = "list.txt"\n'
        '[commit]\nauthor = "A Person <person@example.org>"\n'
    )
    return read(file)


def fill(campaign: Campaign) -> None:
    """Write the ledger and the facts of a campaign that is done: half changed, a quarter verified, some failed."""
    chance = random.Random(1)
    rules = rule_names()
    places = Places(campaign.work)
    campaign.work.mkdir()
    with Ledger.open(campaign.work) as ledger:
        by_key = {one.source.key: one for one in campaign.repositories}
        ledger.register(
            ((key, one.source.name, sources.redact(one.source.url), "") for key, one in by_key.items()), slug_of
        )
        rows = ledger.repositories()
        with ledger.transaction() as db:
            for row in rows:
                state = chance.choices(("unchanged", "rewritten", "verified", "failed"), (50, 25, 22, 3))[0]
                stage = {"failed": "clone", "verified": "verify"}.get(state, "rewrite")
                print_of = campaign.fingerprint(by_key[row["key"]])
                db.execute(
                    "UPDATE repositories SET state=?, stage=?, reason=?, fingerprint=?, tool=?, changed=?, "
                    "verification=?, cloned_at=?, base='b', head='h', files=40, lines=3000, why='every promise held', "
                    "rewrite_seconds=1, entries='[]' WHERE id=?",
                    (
                        *(state, stage, "no such host" if state == "failed" else "", print_of, digest()),
                        *(
                            0 if state == "unchanged" else 3,
                            "kept" if state == "verified" else "",
                            time.time(),
                            row["id"],
                        ),
                    ),
                )
                if state in ("rewritten", "verified"):
                    proof = "kept" if state == "verified" else ""
                    found = [(row["id"], chance.choice(rules), "train.py", n, proof) for n in range(FINDINGS)]
                    db.executemany(
                        "INSERT INTO findings (repository, rule, path, line, promise, fate, obstacle, message, proof) "
                        "VALUES (?, ?, ?, ?, 'exact', 'fixed', '', 'a message', ?)",
                        found,
                    )
                    if proof:
                        db.executemany(
                            "INSERT INTO verdicts (repository, rule, path, line, promise, verdict, why) "
                            "VALUES (?, ?, ?, ?, 'exact', ?, 'the same')",
                            found,
                        )
                if state == "verified" and chance.random() < 0.5:
                    # Published, and asked for once.
                    standing = chance.choice(("open", "merged", "closed"))
                    request = Standing(standing, True, chance.choice(("green", "red", "")), "", 1, "h" * 40)
                    opened = time.time() - 86_400 * chance.randrange(10, 60)
                    db.execute(
                        "UPDATE repositories SET state='published', pull_request=?, request=?, pushed='h', "
                        "opened_at=?, ended_at=?, followed_at=? WHERE id=?",
                        (
                            *(f"https://host.invalid/owner/r/pull/{row['id']}", request.json(), opened),
                            *(None if standing == "open" else opened + 86_400 * 5, time.time(), row["id"]),
                        ),
                    )
                for each, folder in (("rewrite", "rewrite"), ("verify", "verify")):
                    if state != "failed" and (each == "rewrite" or state == "verified"):
                        place = places.of(row["slug"], folder)
                        place.mkdir(parents=True)
                        (place / FACTS).write_text(json.dumps({"stage": each}))
                if state in ("rewritten", "verified"):
                    places.clone(row["slug"]).mkdir(parents=True)


def timed(work: Callable[[], object]) -> float:
    """Seconds of CPU, the better of two: what else the machine does is not counted."""
    best = float("inf")
    for _ in range(2):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def measure(count: int) -> dict[str, float]:
    """Seconds of CPU by what was done."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        campaign = campaign_of(folder, count)
        fill(campaign)

        def nothing(*_: object) -> object:
            raise AssertionError("there is nothing left to do")

        return {
            "read the campaign": timed(lambda: read(campaign.file)),
            "status": timed(lambda: status_text(status(campaign))),
            "plan": timed(lambda: plan_text(campaign, plan(campaign))),
            "report, all of it": timed(lambda: write_reports(campaign, folder / "out")),
            "report, page and text": timed(lambda: write_reports(campaign, folder / "out", ["html", "markdown"])),
            "report, tables": timed(lambda: write_reports(campaign, folder / "out", ["csv"])),
            "begin again": timed(lambda: run(campaign, nothing, Quiet())),  # type: ignore[arg-type]
        }


def main() -> int:
    """Measure and print; 1 where something takes longer than it may, or grows faster than the list."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    small, large = measure(count // 4), measure(count)
    worst = 0
    for what, seconds in large.items():
        ratio = seconds / small[what]
        worst = max(worst, ratio > 8)
        print(f"{what}: {seconds:.2f} CPU s for {count:,}, {ratio:.1f} times that for a quarter of them")
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
