"""What a campaign would do, and where it stands: told without doing anything."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from codemods.batch import interpreters
from codemods.batch.campaign import Campaign, Repository, Runs
from codemods.batch.errors import Exhausted, Failed, Refused
from codemods.batch.ledger import Ledger, Row
from codemods.batch.lock import owner
from codemods.batch.pending import by_other_tool, next_stage, require_repositories
from codemods.batch.places import Places, slug_of
from codemods.batch.progress import outcome
from codemods.batch.prospects import (
    LACKING,
    NO_SCRIPT,
    READY,
    STOOD_IN,
    UNSEEN,
    Prospect,
    interpreter_of,
    prospects,
    without,
)
from codemods.batch.readtree import read_tree
from codemods.batch.sources import Source, redact
from codemods.batch.standing import summary
from codemods.batch.verifying import require_for_runs
from codemods.source.diffs import printable
from codemods.source.entries import Entry as Script
from codemods.source.entries import find_entries

#: So many names stand in a line for people.
_SHOWN = 5
#: Of more repositories the plan tells only how many there are of a kind.
_FEW = 8


def plan(campaign: Campaign) -> list[dict[str, Any]]:
    """Return what would be done with each repository, in the campaign's order; nothing is written.

    Entry scripts are looked for in those that are on this machine: clones of an earlier run, and local sources; what
    these lack to be run is read in them, and asked of the interpreter. Raises
    :class:`~codemods.batch.errors.CampaignError` for a campaign that names none, or an interpreter that is not there.
    """
    require_repositories(campaign)
    require_for_runs(campaign)
    ledger = Ledger.read(campaign.work)
    rows: dict[str, Row] = {}
    if ledger is not None:
        with ledger:
            rows = {row["key"]: row for row in ledger.each("SELECT * FROM repositories")}
    places = Places(campaign.work)
    taken = {row["slug"].lower() for row in rows.values()}
    plans = []
    seen: list[tuple[dict[str, Any], Runs, tuple[Prospect, ...]]] = []
    for repository in campaign.repositories:
        row = rows.get(repository.source.key)
        if row is None:
            slug = slug_of(repository.source.name, repository.source.key, taken.__contains__)
            taken.add(slug.lower())
        else:
            slug = row["slug"]
        told, found = _plan(repository, row, slug, places)
        plans.append(told)
        seen.append((told, repository.runs, found))
    _tell_prospects(seen)
    return plans


def _tell_prospects(seen: list[tuple[dict[str, Any], Runs, tuple[Prospect, ...]]]) -> None:
    """Tell in each plan what its scripts lack; each interpreter is asked once for all."""
    from verify.running.runner import lacking_modules

    wanted: dict[str, set[str]] = {}
    for _, runs, found in seen:
        wanted.setdefault(interpreter_of(runs), set()).update(name for one in found for name in one.modules)
    lacking = {python: set(lacking_modules(python, names)) for python, names in wanted.items() if names}
    for told, runs, found in seen:
        left = without(found, lacking.get(interpreter_of(runs), set()) - _brought(runs))
        told["lacks"] = [{"command": one.command, "what": one.text()} for one in left if one.text()]
        if told["prospect"] == READY and left and not any(one.ready for one in left):
            told["prospect"] = STOOD_IN if any(one.stood_in for one in left) else LACKING
            # Of the best script: the others are tried after it.
            told["missing"] = left[0].text()


def _brought(runs: Runs) -> set[str]:
    """The modules that the campaign's requirements bring; what a repository requires itself is seen when it is run."""
    from verify.running.missing import PACKAGES

    bare = interpreters.is_version(runs.python)
    if not (runs.requirements or bare):
        return set()
    from codemods.batch.environments import names_of

    names = names_of(runs.requirements) | ({"torch"} if bare else set())
    known = {module for module, package in PACKAGES.items() if package.lower() in names}
    return known | {name.replace("-", "_") for name in names}


def _plan(
    repository: Repository, row: Row | None, slug: str, places: Places
) -> tuple[dict[str, Any], tuple[Prospect, ...]]:
    state = row["state"] if row is not None else "skipped" if repository.skip else "planned"
    told: dict[str, Any] = {
        "slug": slug,
        "url": redact(repository.source.url),
        "ref": repository.ref,
        "state": state,
        "next": "" if repository.skip else (next_stage(row, repository) if row is not None else "clone"),
        "skip": repository.skip,
        "verify": "off" if not repository.runs.run else "",
        "entries": [],
        "trouble": "",
        "prospect": "",
        "missing": "",
    }
    if told["verify"] or repository.skip:
        return told, ()
    place = places.clone(slug) if places.clone(slug).is_dir() else repository.source.local
    files, readme, paths = dict[str, str](), "", set[str]()
    if place is not None:
        try:
            files, readme, paths = read_tree(place, repository.ref or "HEAD")
        except (Failed, Refused, Exhausted) as error:
            told["trouble"] = f"not a git repository with commits: {error}"
    entries = _entries_of(repository, row, told, files, readme)
    told["entries"] = [_entry(entry.command, entry.folder, entry.why) for entry in entries]
    if not told["verify"]:
        told["verify"] = "looked for once it is cloned" if place is None else "no script that trains was found"
    if told["trouble"] or place is None:
        told["prospect"] = UNSEEN
        return told, ()
    told["prospect"] = READY if entries else NO_SCRIPT
    return told, prospects(files, paths, entries, repository.runs) if files else ()


def _entries_of(
    repository: Repository, row: Row | None, told: dict[str, Any], files: dict[str, str], readme: str
) -> list[Script]:
    """The scripts that will be run, as far as that is known; where they are from is ``told``."""
    runs = repository.runs
    if runs.commands:
        told["verify"], told["trouble"] = "configured", ""
        return [Script(command, runs.folder, "configured") for command in runs.commands]
    if row is not None and row["entries"] not in ("", "[]"):
        told["verify"], told["trouble"] = "found", ""
        return [Script(*entry) for entry in json.loads(row["entries"])]
    found = find_entries(files, readme, most=max(1, runs.entries))
    if found:
        told["verify"] = "found"
    return found


def _entry(command: str, folder: str, why: str) -> dict[str, str]:
    return {"command": command, "folder": folder, "why": why}


def _entry_text(entry: dict[str, str]) -> str:
    place = f" in {printable(entry['folder'])}" if entry["folder"] != "." else ""
    return f"{printable(entry['command'])}{place} ({entry['why']})"


def plan_text(campaign: Campaign, plans: list[dict[str, Any]], *, verbose: bool = False) -> str:
    """The plan for people: what can be proven and what not; each repository where they are few, or ``verbose``."""
    lines: list[str] = []
    for one in plans if verbose or len(plans) <= _FEW else ():
        lines += _plan_lines(one)
    if len(plans) > 1:
        lines += ["", *_prospect_lines(plans)]
    lines += [f"no repository belongs to {printable(one)}" for one in campaign.idle]
    if len(plans) > _FEW and not verbose:
        lines.append("each of them: --verbose")
    rules = ", ".join(campaign.options.select) or "all rules"
    if campaign.options.ignore:
        rules += f" but {', '.join(campaign.options.ignore)}"
    publish = campaign.publishing
    todo = sum(bool(one["next"]) for one in plans)
    lines += [
        "",
        f"{len(plans)} {'repository' if len(plans) == 1 else 'repositories'}, {todo} with something to do; "
        f"work in {campaign.work}",
        f"rules: {rules}; branch {campaign.commits.branch}, commits {campaign.commits.style}"
        if campaign.commits.style != "one"
        else f"rules: {rules}; branch {campaign.commits.branch}, one commit",
        f"publish requires: {publish.require}; to {publish.remote or 'where each came from'}; "
        f"{'draft pull requests' if publish.draft else 'pull requests'} by {publish.client}",
    ]
    return "\n".join(lines) + "\n"


def _plan_lines(one: dict[str, Any]) -> list[str]:
    lines = [f"{printable(one['slug'])}  {printable(one['url'])}" + (f" ({one['ref']})" if one["ref"] else "")]
    if one["skip"]:
        return [*lines, f"    left out: {printable(one['skip'])}"]
    if one["trouble"]:
        return [*lines, f"    {printable(one['trouble'])}"]
    lines.append(f"    {one['state']}; " + (f"next: {one['next']}" if one["next"] else "nothing more to do"))
    if one["entries"]:
        lines.append(f"    to be run: {'; '.join(map(_entry_text, one['entries']))}")
    else:
        lines.append(f"    to be run: nothing: {one['verify']}")
    return [*lines, *(f"    {printable(lack['command'])} lacks {printable(lack['what'])}" for lack in one["lacks"])]


def _prospect_lines(plans: list[dict[str, Any]]) -> list[str]:
    """How many can be verified, and why the others cannot: a line a reason."""
    lines = []
    for prospect, told in (
        (READY, "can be run as far as their text tells"),
        (STOOD_IN, "can be run with stand-ins for what only loggers, bars and plots are asked for"),
        (LACKING, "lack what their scripts need"),
        (NO_SCRIPT, "have no script that trains"),
        (UNSEEN, "are not seen before they are cloned"),
    ):
        those = [one for one in plans if one["prospect"] == prospect]
        if those:
            lines.append(f"{len(those)} {told}: {_some([one['slug'] for one in those])}")
        if prospect == LACKING:
            modules = Counter(one["missing"] for one in those)
            lines += [f"    {count} × {printable(what)}" for what, count in modules.most_common(_SHOWN)]
    skipped = sum(bool(one["skip"]) for one in plans)
    return [*lines, f"{skipped} left out"] if skipped else lines


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
    by_key = {one.source.key: one for one in campaign.repositories}
    moved: dict[int, Any] = {}
    if upstream:
        from codemods.batch.upstream import look

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
                "under_way": bool(row["attempt"]),
                "verification": row["verification"],
                "base": row["base"],
                "head": row["head"],
                "upstream": now,
                "moved": bool(row["base"] and now and now != row["base"]),
                "upstream_trouble": answer.trouble if answer is not None else "",
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
        lines.append(f"{len(told['unlisted'])} that the campaign does not name any more: {_some(told['unlisted'])}")
    left = sum(bool(one["next"]) for one in repositories)
    under_way = ", ".join(printable(one["slug"]) for one in repositories if one["under_way"])
    if told["at_work"]:
        lines.append(f"at work: {printable(told['at_work'])}" + (f"; under way: {under_way}" if under_way else ""))
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


def _some(slugs: list[str]) -> str:
    more = f" and {len(slugs) - _SHOWN} more" if len(slugs) > _SHOWN else ""
    return ", ".join(printable(slug) for slug in slugs[:_SHOWN]) + more


def source_of(campaign: Campaign, row: Row) -> Source | None:
    """The source of a row, with whatever credentials the campaign file has for it."""
    return next((one.source for one in campaign.repositories if one.source.key == row["key"]), None)
