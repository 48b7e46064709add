"""Which repositories a campaign has, and what each of them needs next."""

from __future__ import annotations

from collections.abc import Collection

from codemods.batch import sources
from codemods.batch.campaign.settings import Campaign, Repository
from codemods.batch.errors import CampaignError
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.places import slug_of
from codemods.batch.tool import digest

#: Why a repository is done again when nothing but our own analysis changed.
OTHER_TOOL = "by another codemod"


def next_stage(row: Row, repository: Repository) -> str:
    """The stage that a repository needs next; empty where it needs none."""
    if row["state"] == "planned":
        return "clone"
    if row["state"] == "cloned":
        return "rewrite"
    if row["state"] == "rewritten" and row["changed"] and repository.runs.run and not row["verification"]:
        return "verify" if row["entries"] not in ("", "[]") else ""
    return ""


def by_other_tool(row: Row) -> bool:
    """Whether a repository was rewritten by a codemod with other rules, so that this one may come to something else."""
    done = row["state"] in ("unchanged", "rewritten", "verified") or row["verification"] == "broken"
    return bool(done and row["tool"] != digest())


def require_repositories(campaign: Campaign) -> None:
    """Raise :class:`CampaignError` for a campaign that names no repositories."""
    if not campaign.repositories:
        why = f"none fits {'; '.join(campaign.idle)}" if campaign.idle else "fill in urls, paths, globs or list"
        raise CampaignError(f"{campaign.file}: names no repositories: {why}")


def register(ledger: Ledger, campaign: Campaign) -> tuple[dict[int, Repository], list[str]]:
    """Bring the ledger's list up to date with the campaign's.

    Return its repositories by their numbers, and the names of those that it does not list any more.
    """
    listed = campaign.by_key.items()
    gone = ledger.register(
        ((key, one.source.name, sources.redact(one.source.url), one.skip) for key, one in listed), slug_of
    )
    rows = ledger.each("SELECT id, key FROM repositories WHERE listed")
    return {row["id"]: campaign.by_key[row["key"]] for row in rows}, gone


def chosen(ledger: Ledger, only: Collection[str]) -> list[int]:
    """The numbers of the repositories named ``only``, of all where none is. Raises :class:`CampaignError`."""
    if not only:
        return ledger.numbers()
    found = ledger.numbers_of(only)
    for name, number in found.items():
        if number is None:
            import difflib

            known = [row["slug"] for row in ledger.each("SELECT slug FROM repositories WHERE listed")]
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            told = f"; did you mean {near[0]}?" if near else ""
            raise CampaignError(f"no repository {name!r} in this campaign{told}")
    return sorted(number for number in found.values() if number is not None)
