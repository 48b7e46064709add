"""Where a campaign stands, as its ledger has it; told also while it runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from codemods.batch.campaign.settings import Campaign
from codemods.batch.ledger.ledger import Ledger
from codemods.batch.ledger.lock import owner
from codemods.batch.pending import by_other_tool, next_stage
from codemods.batch.planning import some
from codemods.batch.progress import outcome
from codemods.batch.requests.standing import summary
from codemods.source.diffs import printable


def status(campaign: Campaign, *, upstream: bool = False) -> dict[str, Any]:
    """Where the campaign stands; with ``upstream`` the remotes are asked whether they have moved."""
    ledger = Ledger.read(campaign.work)
    if ledger is None:
        states = Counter("skipped" if one.skip else "planned" for one in campaign.repositories)
        return {
            "campaign": campaign.name,
            "states": dict(states),
            "repositories": [],
            "begun": False,
            "unlisted": [],
            "requests": "",
            "at_work": owner(campaign.work),
        }
    with ledger:
        rows, unlisted = ledger.repositories(), ledger.unlisted()
    by_key = campaign.by_key
    moved: dict[int, Any] = {}
    if upstream:
        from codemods.batch.requests.upstream import look

        moved = look([(row, by_key[row["key"]]) for row in rows if row["base"] and row["key"] in by_key])
    told = []
    for row in rows:
        repository = by_key.get(row["key"])
        answer = moved.get(row["id"])
        now = answer.commit if answer is not None and answer.commit else row["upstream"]
        told.append(
            {
                "slug": row["slug"],
                "url": row["url"],
                "state": row["state"],
                "stage": row["stage"],
                "outcome": outcome(row),
                "log": row["log"],
                "next": next_stage(row, repository) if repository is not None else "",
                "under_way": bool(row["attempt"]) and row["begun_at"] is not None,
                "waiting": bool(row["attempt"]) and row["begun_at"] is None,
                "verification": row["verification"],
                "base": row["base"],
                "head": row["head"],
                "upstream": now,
                "moved": bool(row["base"] and now and now != row["base"]),
                "upstream_trouble": (answer.trouble or (answer.gone and answer.moved(row["base"])))
                if answer is not None
                else "",
                "other_settings": bool(
                    repository and row["fingerprint"] and row["fingerprint"] != campaign.fingerprint(repository)
                ),
                "other_tool": by_other_tool(row),
                "pull_request": row["pull_request"],
            }
        )
    new = len(by_key.keys() - {row["key"] for row in rows})
    states = Counter(one["state"] for one in told)
    states["planned"] += new
    return {
        "campaign": campaign.name,
        "states": {k: v for k, v in states.items() if v},
        "repositories": told,
        "begun": True,
        "unlisted": unlisted,
        "requests": summary(rows),
        "at_work": owner(campaign.work),
    }


def status_text(told: dict[str, Any], *, verbose: bool = False) -> str:
    """The status for people: numbers, what failed, what has moved; with ``verbose`` every repository."""
    lines = [f"{told['campaign']}: " + ", ".join(f"{count} {state}" for state, count in sorted(told["states"].items()))]
    if not told["states"]:
        return f"{told['campaign']}: names no repositories\n"
    if not told["begun"]:
        at_work = f"at work: {printable(told['at_work'])}\n" if told["at_work"] else ""
        return f"{lines[0]}\nnothing was done yet\n{at_work}"
    repositories = told["repositories"]
    for one in repositories:
        trouble = one["state"] in ("failed", "refused")
        if trouble or verbose:
            lines.append(f"  {printable(one['slug'])}: {printable(one['outcome'])}")
            if trouble and one["log"]:
                lines.append(f"      log: {one['log']}")
        if one["moved"]:
            lines.append(f"  {printable(one['slug'])}: moved upstream, {one['base'][:10]} to {one['upstream'][:10]}")
        if one["upstream_trouble"]:
            lines.append(f"  {printable(one['slug'])}: upstream: {printable(one['upstream_trouble'])}")
        if one["pull_request"] and verbose:
            lines.append(f"      {one['pull_request']}")
    lines += _outdated_lines(repositories)
    if told["requests"]:
        lines.append(told["requests"])
    if told["unlisted"]:
        lines.append(f"{len(told['unlisted'])} that the campaign does not name any more: {some(told['unlisted'])}")
    left = sum(bool(one["next"]) for one in repositories)
    under_way = ", ".join(printable(one["slug"]) for one in repositories if one["under_way"])
    if told["at_work"]:
        waiting = sum(one["waiting"] for one in repositories)
        parts = [f"under way: {under_way}"] * bool(under_way) + [f"{waiting} waiting for a worker"] * bool(waiting)
        lines.append("; ".join([f"at work: {printable(told['at_work'])}", *parts]))
    if left:
        lines.append(f"{left} still to do" + ("" if told["at_work"] else ": codemod batch run"))
    return "\n".join(lines) + "\n"


def _outdated_lines(repositories: list[dict[str, Any]]) -> list[str]:
    """How many were done with other settings, or by another codemod, and what does them again."""
    lines = []
    published = sum(one["other_settings"] and one["state"] == "published" for one in repositories)
    if published:
        them = "it" if published == 1 else "them"
        lines.append(f"{published} published with other settings; codemod batch update does {them} again")
    other = sum(one["other_settings"] for one in repositories) - published
    if other:
        them = "it" if other == 1 else "them"
        lines.append(f"{other} done with other settings; codemod batch retry --changed does {them} again")
    older = sum(one["other_tool"] and not one["other_settings"] for one in repositories)
    if older:
        them = "it" if older == 1 else "them"
        lines.append(
            f"{older} done by a codemod with other rules; codemod batch retry --changed looks at {them} again, and "
            "verifies and publishes anew what comes out otherwise"
        )
    return lines
