"""What a campaign claims, in branches, messages, requests and reports, held against the rows of its ledger.

``python tests/batch/claims.py CAMPAIGN`` prints where they part; it looks at branches in clones, and in those bare
repositories below ``--root`` that lie where the addresses of the sources end (``ROOT/owner/name.git``).
"""

from __future__ import annotations

import argparse
import csv
import html
import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from codemods.batch.artifacts import PULL_REQUEST
from codemods.batch.campaign.settings import Campaign, read
from codemods.batch.ledger.ledger import FILE
from codemods.batch.places import Places
from codemods.batch.progress import outcome
from codemods.source.diffs import printable

Row = dict[str, Any]
_SITE = re.compile(r"- (?P<place>.+?)(?: \((?P<verdict>kept|broken|partly reached|not reached|not judged)\))?")
_ADDRESS = re.compile(r"https?://([^/]+)/(.+?)/(?:-/merge_requests|pull)/(\d+)")
_HEAD = re.compile(r"\*\*([\d,]+) places? in ([\d,]+) files?\*\*")


class Claims:
    """The ledger of a campaign, read without the code that wrote it, and what it is compared with."""

    def __init__(self, campaign: Campaign, root: Path | None = None, forge: Path | None = None) -> None:
        self.campaign = campaign
        self.places = Places(campaign.work)
        self.root = root
        self.forge = json.loads(forge.read_text())["repos"] if forge is not None else {}
        self.database = sqlite3.connect(f"{(campaign.work / FILE).as_uri()}?mode=ro", uri=True)
        self.checked = Counter[str]()

    def rows(self, statement: str, *values: object) -> list[Row]:
        cursor = self.database.execute(statement, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def disagreements(self) -> list[str]:
        """Where something that is told is not what the ledger has."""
        found = []
        for row in self.rows("SELECT * FROM repositories WHERE listed ORDER BY id"):
            fixed = self.rows("SELECT * FROM findings WHERE repository=? AND fate='fixed'", row["id"])
            checks: tuple[Callable[[Row, list[Row]], Iterator[str]], ...]
            checks = (self._state, self._branch, self._messages, self._text, self._request)
            found += [f"{row['slug']}: {text}" for check in checks for text in check(row, fixed)]
        return [*found, *self._report(), *self._tables()]

    def _equal(self, what: str, told: object, known: object) -> Iterator[str]:
        self.checked[what.partition(" of ")[0]] += 1
        if told != known:
            yield f"{what}: {told!r} is told, the ledger has {known!r}"

    def _state(self, row: Row, fixed: list[Row]) -> Iterator[str]:
        last = self.rows(
            "SELECT after FROM events WHERE repository=? AND stage IN "
            "('clone', 'rewrite', 'verify', 'publish') ORDER BY id DESC LIMIT 1",
            row["id"],
        )
        if last:
            yield from self._equal("the last event", last[0]["after"], row["state"])
        whole = bool(fixed) and all(one["proof"] == "kept" for one in fixed)
        yield from self._equal("verified", row["verification"] == "kept", whole and row["verification"] != "broken")
        if row["state"] == "verified":
            yield from self._equal("the state verified", True, whole)
        yield from self._equal("nothing to change", row["state"] == "unchanged", row["changed"] == 0)
        if row["state"] == "published":
            yield from self._equal("what is published", row["pushed"], row["head"])
            yield from self._equal("broken and published", row["verification"] == "broken", False)

    def _where(self, row: Row) -> Path | None:
        clone = self.places.clone(row["slug"])
        if self.root is not None and row["pushed"]:
            return self.root / f"{'/'.join(row['url'].rstrip('/').removesuffix('.git').split('/')[-2:])}.git"
        return clone if clone.is_dir() else None

    def _git(self, place: Path, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "core.quotePath=false", "-c", "safe.directory=*", "-C", str(place), *words],
            capture_output=True,
            check=True,
        )
        return _plain(done.stdout)

    def _branch(self, row: Row, fixed: list[Row]) -> Iterator[str]:
        place = self._where(row)
        if not row["head"] or place is None:
            return
        branch, ends = self.campaign.commits.branch, f"{row['base']}..{row['head']}"
        yield from self._equal("the branch", self._git(place, "rev-parse", branch).strip(), row["head"])
        yield from self._equal("commits", int(self._git(place, "rev-list", "--count", ends)), row["commits"])
        names = [name for name in self._git(place, "diff", "--name-only", "-z", ends).split("\0") if name]
        yield from self._equal("changed files", len(names), row["changed"])
        yield from self._equal("files with findings", {_name(one) for one in fixed} - set(names), set())

    def _messages(self, row: Row, fixed: list[Row]) -> Iterator[str]:
        """Each place that a commit names, and what it says of its proof."""
        place = self._where(row)
        if not row["head"] or place is None or self.campaign.commits.style != "per-rule":
            return
        known = Counter((_at(one), one["proof"]) for one in fixed)
        told: Counter[tuple[str, str]] = Counter()
        for message in self._git(place, "log", "-z", "--format=%B", f"{row['base']}..{row['head']}").split("\0"):
            sites = [match for line in message.splitlines() if (match := _SITE.fullmatch(line))]
            if any(re.fullmatch(r"- and \d+ more", match[0]) for match in sites):
                return
            told.update((match["place"], match["verdict"] or "") for match in sites)
            for share in re.finditer(r"Verified by running(?: \((\d+)\s+of\s+(\d+)\))?:\s+(\w+)", message):
                yield from self._equal("a verdict that is called verified", share[3], "kept")
        yield from self._equal("places in commits", told - known, Counter())
        yield from self._equal("places that no commit names", known - told, Counter())

    def _text(self, row: Row, fixed: list[Row]) -> Iterator[str]:
        if not row["head"]:
            return
        stage = "verify" if row["verification"] in ("kept", "partly kept", "broken") else "rewrite"
        text = _plain((self.places.of(row["slug"], stage) / PULL_REQUEST).read_bytes())
        head = _HEAD.search(text)
        told = tuple(int(one.replace(",", "")) for one in head.groups()) if head else None
        yield from self._equal("places in the text", told, (len(fixed), row["changed"]))
        runs = re.search(r"- Run before and after: (.*)\.", text)
        proofs = Counter(one["proof"] or "not run" for one in fixed)
        if runs is not None:
            parts = dict(reversed(part.split(" ", 1)) for part in runs[1].split(", "))
            counts = {verdict: int(many.replace(",", "")) for verdict, many in parts.items()}
            yield from self._equal("verdicts in the text", counts, proofs)
        yield from self._equal("places of this machine in the text", str(self.campaign.file.parent) in text, False)
        yield from self._equal("UNVERIFIED in the text", "UNVERIFIED" in text, runs is None)
        rules = Counter(one["rule"] for one in fixed)
        rows = re.findall(r"^\| `([\w-]+)` \| [^|]* \| ([\d,]+) \|", text, re.MULTILINE)
        yield from self._equal("places of rules", {rule: int(n.replace(",", "")) for rule, n in rows}, rules)

    def _request(self, row: Row, fixed: list[Row]) -> Iterator[str]:
        if not row["pull_request"] or not self.forge:
            return
        match = _ADDRESS.fullmatch(row["pull_request"])
        assert match is not None, row["pull_request"]
        host, path, number = match.groups()
        request = self.forge[f"{host}/{path}"]["requests"][int(number) - 1]
        proven = sum(one["proof"] == "kept" for one in fixed)
        begin = f"UNVERIFIED ({proven} of {len(fixed)} kept by a run): " if proven else "UNVERIFIED: "
        begin = "" if proven == len(fixed) else begin
        rules = ", ".join(sorted({one["rule"] for one in fixed}))
        yield from self._equal("the title", request["title"], f"{begin}Autograd graph fixes ({rules})")
        stage = "verify" if row["verification"] in ("kept", "partly kept") else "rewrite"
        body = (self.places.of(row["slug"], stage) / PULL_REQUEST).read_text(errors="replace")
        yield from self._equal("the request's text", request["body"][:50_000], body[:50_000])
        yield from self._equal("requests of it", len(self.forge[f"{host}/{path}"]["requests"]), 1)

    def _report(self) -> Iterator[str]:
        file = self.campaign.work / "report" / "report.md"
        if not file.is_file():
            return
        text = file.read_text().replace("`", "")
        one = self.rows(
            "SELECT count(*) AS n, sum(files) AS files, sum(lines) AS lines, sum(changed > 0) AS changed, "
            "sum(verification = 'kept') AS verified FROM repositories WHERE listed"
        )[0]
        of = "FROM findings f JOIN repositories r ON r.id = f.repository WHERE r.listed"
        findings = self.rows(
            f"SELECT count(*) AS n, sum(fate='fixed') AS fixed, sum(fate='fixed' AND proof='kept') AS proven {of}"
        )[0]
        sentence, _, rest = text.splitlines()[2].partition("branch was kept in ")
        told = [int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", sentence)]
        known = [one["n"], one["files"], one["lines"], findings["n"], findings["fixed"], one["changed"]]
        known.append(findings["proven"])
        yield from self._equal("the headline", told, [value or 0 for value in known])
        kept = re.match(r"([\d,]+)", rest)
        yield from self._equal("verified repositories", int(kept[1]) if kept else None, one["verified"])
        states = dict(re.findall(r"^\| (\w+) \| (\d+) \| [\d.,%<> ]+ \|$", text, re.MULTILINE))
        known_states = self.rows("SELECT state, count(*) AS n FROM repositories WHERE listed GROUP BY state")
        yield from self._equal("states", states, {row["state"]: str(row["n"]) for row in known_states})
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
        yield from self._rules({row[0]: row[1:] for row in cells if len(row) == 9})
        yield from self._repositories({row[0]: row[1:5] for row in cells if len(row) == 6})
        file = file.with_suffix(".html")
        if file.is_file():
            lines = re.findall(r"<tr><td>(.*)</td></tr>", file.read_text())
            rows = [[_shown(cell) for cell in re.split(r"</td><td[^>]*>", line)] for line in lines]
            yield from self._rules({row[0]: row[1:] for row in rows if len(row) == 9})
            yield from self._repositories({row[0]: row[1:5] for row in rows if len(row) == 6})

    def _rules(self, told: dict[str, list[str]]) -> Iterator[str]:
        """What a table says of each rule, counted one finding and verdict after the other."""
        known: dict[str, list[int]] = {}
        repositories: dict[str, set[int]] = {}
        of = "JOIN repositories r ON r.id = o.repository WHERE r.listed"
        for row in self.rows(f"SELECT o.* FROM findings o {of}"):
            repositories.setdefault(row["rule"], set()).add(row["repository"])
            counts = known.setdefault(row["rule"], [0] * 8)
            counts[1] += 1
            counts[2] += row["fate"] == "fixed"
        for rule, those in repositories.items():
            known[rule][0] = len(those)
        verdicts = ("kept", "broken", "partly reached", "not reached", "not judged")
        for row in self.rows(f"SELECT o.* FROM verdicts o {of}"):
            known[row["rule"]][3 + verdicts.index(row["verdict"])] += 1
        told = {rule: row for rule, row in told.items() if rule != "rule" and not rule.startswith("---")}
        yield from self._equal("rules", {rule: [_number(cell) for cell in row] for rule, row in told.items()}, known)

    def _repositories(self, told: dict[str, list[str]]) -> Iterator[str]:
        """What a table says of each repository: its outcome, findings, fixed ones, and those that were kept."""
        for row in self.rows("SELECT * FROM repositories WHERE listed"):
            findings = self.rows("SELECT * FROM findings WHERE repository=?", row["id"])
            fixed = [one for one in findings if one["fate"] == "fixed"]
            known = [len(findings), len(fixed), sum(one["proof"] == "kept" for one in fixed)]
            line = told.get(row["slug"], [""])
            yield from self._equal(f"the outcome of {row['slug']}", outcome(row).split(":")[0] in line[0], True)
            yield from self._equal(f"the figures of {row['slug']}", [_number(cell) for cell in line[1:]], known)

    def _tables(self) -> Iterator[str]:
        file = self.campaign.work / "report" / "repositories.csv"
        if not file.is_file():
            return
        with open(file, newline="", encoding="utf-8") as stream:
            for told in csv.DictReader(stream):
                (row,) = self.rows("SELECT * FROM repositories WHERE slug=?", told["slug"])
                fixed = self.rows("SELECT proof FROM findings WHERE repository=? AND fate='fixed'", row["id"])
                proven = sum(one["proof"] == "kept" for one in fixed)
                known = (row["state"], row["verification"], str(len(fixed)), str(proven))
                seen = (told["state"], told["verification"], told["fixed"], told["proven"])
                yield from self._equal(f"a row of repositories.csv, {told['slug']}", seen, known)


def _number(cell: str) -> int:
    return int(cell.replace(",", ""))


def _shown(cell: str) -> str:
    """What a cell of a page shows, without its mark."""
    return html.unescape(re.sub(r"<span aria-hidden.*?</span>|<[^>]*>", "", cell)).strip()


def _at(finding: Row) -> str:
    cell = f"cell {finding['cell']}:" if finding["cell"] is not None else ""
    return f"{printable(_name(finding))}:{cell}{finding['line']}"


def _name(finding: Row) -> str:
    return str(finding["path"])


def _plain(data: bytes) -> str:
    """As the ledger has names: ``\\xff`` for a byte that is no UTF-8."""
    return data.decode("utf-8", "backslashreplace")


def main() -> int:
    """Print where what is told parts from the ledger; 1 where it does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaign", type=Path)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--forge", type=Path, help="state.json of tests/batch/forge.py")
    words = parser.parse_args()
    claims = Claims(read(words.campaign), words.root, words.forge)
    found = claims.disagreements()
    print("\n".join(found) or "all agree")
    print(f"{sum(claims.checked.values())} compared: {dict(claims.checked)}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
