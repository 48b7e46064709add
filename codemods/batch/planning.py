"""What a campaign would do, and where it stands: told without doing anything."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from codemods.batch.campaign.settings import Campaign, Repository, Runs, is_version
from codemods.batch.environments import interpreters
from codemods.batch.errors import Exhausted, Failed, Refused
from codemods.batch.git import Git
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.pending import next_stage, require_repositories
from codemods.batch.places import Places, slug_of
from codemods.batch.prospects import (
    DOUBTFUL,
    LACKING,
    NO_SCRIPT,
    PROVEN,
    READY,
    STOOD_IN,
    STOPPED,
    UNCHANGED,
    UNJUDGED,
    UNREAD,
    UNSEEN,
    Prospect,
    prospects,
    without,
)
from codemods.batch.sources import of_path, redact
from codemods.batch.stages.inspection import inspect, read_tree
from codemods.batch.stages.job import PARTLY
from codemods.batch.stages.verifying import require_for_runs
from codemods.source.diffs import printable
from codemods.source.entries import Entry as Script
from codemods.source.entries import find_entries
from codemods.terms.counting import listed, plain_count_text

#: So many names, and pieces that are missing, stand in a line for people.
_SHOWN = 5
#: The outlooks, the best first, as they are told.
_OUTLOOKS = {
    PROVEN: "proven by a run, in part at least",
    READY: "ready to be run, as far as the code tells",
    STOOD_IN: "ready with stand-ins for loggers, bars, plots and environments",
    DOUBTFUL: "perhaps in part: stand-ins for modules that are not installed",
    LACKING: "not to be run without",
    UNJUDGED: "run already, and not judged",
    NO_SCRIPT: "without a script that trains",
    UNCHANGED: "with nothing to change",
    UNSEEN: "not seen before they are cloned",
    UNREAD: "not to be read, or too large, or not safe to write",
    STOPPED: "failed or refused",
}
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
        told, found = _plan(campaign, repository, row, slug)
        plans.append(told)
        seen.append((told, repository.runs, found))
    _tell_prospects(seen)
    return plans


def _tell_prospects(seen: list[tuple[dict[str, Any], Runs, tuple[Prospect, ...]]]) -> None:
    """Tell in each plan what its scripts lack; each interpreter is asked once for all."""
    from verify.running.interpreter import lacking_modules

    wanted: dict[tuple[str, str], set[str]] = {}
    for _, runs, found in seen:
        asked = interpreters.of(runs), runs.image
        wanted.setdefault(asked, set()).update(name for one in found for name in one.modules)
    lacking = {asked: set(lacking_modules(asked[0], names, asked[1])) for asked, names in wanted.items() if names}
    for told, runs, found in seen:
        left = without(found, lacking.get((interpreters.of(runs), runs.image), set()) - _brought(runs))
        told["lacks"] = [{"command": one.command, "what": one.text()} for one in left if one.text()]
        if left:
            # Of the best script: the others are tried after it.
            best = min(left, key=lambda one: list(_OUTLOOKS).index(one.outlook))
            told["missing"], told["files"] = best.missing(), list(best.files)
            if told["prospect"] == READY:
                told["prospect"] = best.outlook


def _brought(runs: Runs) -> set[str]:
    """The modules that the campaign's requirements bring; what a repository requires itself is seen when it is run."""
    from verify.running.missing import PACKAGES

    bare = is_version(runs.python)
    if not (runs.requirements or bare):
        return set()
    from codemods.batch.environments.environments import names_of

    names = names_of(runs.requirements) | ({"torch"} if bare else set())
    known = {module for module, package in PACKAGES.items() if package.lower() in names}
    return known | {name.replace("-", "_") for name in names}


def _plan(
    campaign: Campaign, repository: Repository, row: Row | None, slug: str
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
        "missing": [],
        "files": [],
        "lacks": [],
    }
    if row is None and not repository.skip and repository.source.is_missing:
        told["trouble"], told["prospect"] = f"{repository.source.local}: no such folder", UNREAD
        return told, ()
    if told["verify"] or repository.skip:
        return told, ()
    known = told["prospect"] = _known(campaign, repository, row)
    if known and known != UNJUDGED:
        # What is done is not read again: of thousands that takes a while.
        _entries_of(repository, row, told, {})
        return told, ()
    clone = Places(campaign.work).clone(slug)
    place = clone if clone.is_dir() else repository.source.local
    if place is None:
        told["prospect"] = known or UNSEEN
        _entries_of(repository, row, told, {})
        return told, ()
    commit = repository.ref or "HEAD"
    try:
        files, readme, paths = read_tree(place, commit)
        inspect(Git(of_path(place), reaching=False), place, campaign.limits, repository.source.local, commit)
    except (Failed, Refused, Exhausted) as error:
        told["trouble"] = f"{'will be refused' if isinstance(error, Refused) else 'cannot be read'}: {error}"
        told["prospect"] = UNREAD
        return told, ()
    entries = _entries_of(repository, row, told, files, readme)
    told["prospect"] = known or (READY if entries else NO_SCRIPT)
    return told, prospects(files, paths, entries, repository.runs) if files else ()


def _known(campaign: Campaign, repository: Repository, row: Row | None) -> str:
    """What the ledger has of a repository that is done with the settings of now; empty where nothing is known."""
    if row is None:
        return ""
    if row["state"] in ("failed", "refused"):
        return STOPPED
    if row["fingerprint"] != campaign.fingerprint(repository):
        return ""
    if row["state"] == "unchanged":
        return UNCHANGED
    if row["entries"] == "[]":
        return NO_SCRIPT
    return {"kept": PROVEN, PARTLY: PROVEN, "not judged": UNJUDGED}.get(row["verification"], "")


def _entries_of(
    repository: Repository, row: Row | None, told: dict[str, Any], files: dict[str, str], readme: str = ""
) -> list[Script]:
    """The scripts that will be run, as far as that is known; they and where they are from are ``told``."""
    runs = repository.runs
    if runs.commands:
        told["verify"] = "configured"
        entries = [Script(command, runs.folder, "configured") for command in runs.commands]
    elif row is not None and row["entries"] not in ("", "[]"):
        told["verify"] = "found"
        entries = [Script(*entry) for entry in json.loads(row["entries"])]
    else:
        entries = find_entries(files, readme, most=max(1, runs.entries)) if files else []
        missing = "looked for once it is cloned" if told["prospect"] == UNSEEN else "no script that trains was found"
        told["verify"] = "found" if entries else missing
    told["entries"] = [{"command": one.command, "folder": one.folder, "why": one.why} for one in entries]
    return entries


def _entry_text(entry: dict[str, str]) -> str:
    place = f" in {printable(entry['folder'])}" if entry["folder"] != "." else ""
    return f"{printable(entry['command'])}{place} ({entry['why']})"


def plan_text(campaign: Campaign, plans: list[dict[str, Any]], *, verbose: bool = False) -> str:
    """The plan for people: what can be proven and what not; each repository where they are few, or ``verbose``."""
    each = verbose or len(plans) <= _FEW
    lines = [line for one in plans if each for line in _plan_lines(one)]
    seen = _prospect_lines(plans) if len(plans) > 1 else []
    seen += [f"no repository fits {printable(one)}" for one in campaign.idle]
    seen += [] if each else ["each of them: --verbose"]
    rules = ", ".join(campaign.options.select) or "all rules"
    if campaign.options.ignore:
        rules += f" but {', '.join(campaign.options.ignore)}"
    publish = campaign.publishing
    todo = sum(bool(one["next"]) for one in plans)
    own = any(one.runs.own_requirements for one in campaign.repositories)
    settings = [
        f"{plain_count_text(len(plans), 'repository')}, {todo} with something to do; work in {campaign.work}",
        f"rules: {rules}; branch {campaign.commits.branch}, commits {campaign.commits.style}"
        if campaign.commits.style != "one"
        else f"rules: {rules}; branch {campaign.commits.branch}, one commit",
        f"publish requires: {publish.require}; to {publish.remote or 'where each came from'}; "
        f"{'draft pull requests' if publish.draft else 'pull requests'} by {publish.client}",
        *["what each repository requires itself is installed first, as far as it can be had"] * own,
        *map(_image_line, dict.fromkeys(one.runs.image for one in campaign.repositories if one.runs.image)),
    ]
    return "\n\n".join("\n".join(block) for block in (lines, seen, settings) if block) + "\n"


def _image_line(image: str) -> str:
    from verify.isolation import engines

    engine = engines.find()
    known = "" if engine.identity(image) else ", which is not here yet: run fetches it"
    return f"runs in containers of {image}, by {engine.name}{known}"


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
    """How many can be verified, and what the others lack: a line an outlook."""
    lines = []
    for outlook, told in _OUTLOOKS.items():
        those = [one for one in plans if one["prospect"] == outlook]
        if not those:
            continue
        lines.append(f"{len(those)} {told}: {some([one['slug'] for one in those])}")
        if outlook == UNREAD:
            lines += [f"    {printable(one['slug'])}: {printable(one['trouble'])}" for one in those[:_SHOWN]]
        missing = Counter(piece for one in those for piece in one["missing"])
        lines += [f"    {count} × {printable(what)}" for what, count in missing.most_common(_SHOWN)]
        if len(missing) > _SHOWN:
            lines.append(f"    and {len(missing) - _SHOWN} more")
        reading = sum(bool(one["files"]) for one in those)
        if reading:
            lines.append(f"    {reading} with data that are not there, for many of which stand-ins are made")
    skipped = sum(bool(one["skip"]) for one in plans)
    return [*lines, f"{skipped} left out"] if skipped else lines


def some(names: list[str]) -> str:
    """The first of ``names``, and how many more there are."""
    return listed([printable(name) for name in names], _SHOWN)
