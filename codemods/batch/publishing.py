"""Branches to their remotes, and pull requests for them: only what the ledger says may be, and each once."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from codemods.batch import forges
from codemods.batch.artifacts import PULL_REQUEST
from codemods.batch.campaign import Campaign, Repository
from codemods.batch.errors import CampaignError, Failed, Refused
from codemods.batch.git import Git
from codemods.batch.job import PARTLY
from codemods.batch.ledger import Ledger, Row
from codemods.batch.lock import owned
from codemods.batch.places import Places
from codemods.batch.running import chosen
from codemods.batch.sources import Source, parse, redact
from codemods.batch.upstream import look, remote_refs
from codemods.source.secrets import Secrets, tokens

Say = Callable[[str], None]
#: How the title of a request begins that holds what no run has kept.
UNVERIFIED = "UNVERIFIED"
#: What the configuration of a clone of ours holds; whatever else stands there was put there by somebody.
_CONFIGURED = frozenset(
    {
        *("core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.symlinks"),
        *("core.ignorecase", "core.precomposeunicode", "extensions.partialclone", "extensions.objectformat"),
        *("remote.origin.url", "remote.origin.fetch", "remote.origin.tagopt"),
    }
)


@dataclass(frozen=True)
class _Target:
    """A branch to be published: where from, and where to."""

    row: Row
    repository: Repository
    remote: Source
    clone: Path
    body: Path
    title: str


def publish(
    campaign: Campaign,
    say: Say,
    *,
    dry_run: bool = False,
    only: Collection[str] = (),
    most: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Publish what may be published, and return how many could not be, each of which was said.

    A repository is left out silently if there is nothing to publish, or all of it is published. With ``dry_run``
    nothing is asked or changed anywhere: the commands are said. Raises :class:`CampaignError` where nothing was run,
    or the campaign is at work.
    """
    if not (campaign.work / "ledger.sqlite").is_file():
        raise CampaignError(f"{campaign.work}: nothing was done yet; codemod batch run {campaign.file.name}")
    with owned(campaign.work), Ledger.open(campaign.work) as ledger:
        chosen(ledger, only)
        rows = ledger.repositories()
        by_key = {one.source.key: one for one in campaign.repositories}
        failures = done = changed = left = 0
        for row in rows:
            if (only and row["slug"] not in only) or row["key"] not in by_key:
                continue
            repository = by_key[row["key"]]
            why = obstacle(row, campaign, repository)
            if why:
                left += 1
                if only or row["verification"] == "broken":
                    say(f"{row['slug']}: not published: {why}")
                continue
            if not row["head"]:
                continue
            if most is not None and done >= most:
                break
            try:
                target = _target(campaign, row, repository, ledger)
                client = forges.client_for(campaign.publishing.client, forges.place_of(target.repository.source)[0])
                if _finished(row, client):
                    continue
                done += 1
                if dry_run:
                    _say_commands(campaign, target, client, say)
                    continue
                if changed:
                    sleep(campaign.publishing.throttle)
                changed += _publish(campaign, ledger, target, client, say)
            except (Failed, Refused) as error:
                failures += 1
                say(f"{row['slug']}: not published: {error}")
        if not done and not failures:
            say(f"nothing left to publish; {left} may not be: codemod batch status says where each stands")
        return failures


def obstacle(row: Row, campaign: Campaign, repository: Repository) -> str:
    """Say why a repository may not be published; empty if it may."""
    if row["verification"] == "broken":
        return f"a promise was broken: {row['why']}"
    if row["attempt"]:
        return "it is not finished"
    if row["state"] in ("planned", "cloned", "failed", "refused", "skipped"):
        return f"it is {row['state']}" + (f": {row['reason']}" if row["reason"] else "")
    if not row["head"]:
        return "there is nothing to change"
    if row["fingerprint"] != campaign.fingerprint(repository):
        return "it was done with other settings; codemod batch retry --changed does it again"
    if campaign.publishing.require == "kept" and row["verification"] != "kept":
        return f"it is not verified{': ' + row['why'] if row['why'] else ''}"
    return ""


def _finished(row: Row, client: str) -> bool:
    return bool(row["state"] == "published" and row["pushed"] == row["head"] and (row["pull_request"] or not client))


def _target(campaign: Campaign, row: Row, repository: Repository, ledger: Ledger) -> _Target:
    places = Places(campaign.work)
    template = campaign.publishing.remote
    remote = repository.source
    if template:
        _, path = forges.place_of(repository.source)
        owner, _, name = (path or row["slug"]).rpartition("/")
        try:
            text = template.format(name=name, owner=owner, slug=row["slug"])
            remote = parse(text, campaign.file.parent)
        except (KeyError, IndexError, ValueError, CampaignError) as error:
            raise Failed(f"remote = {redact(template)!r} names no address: {error}") from None
    elif remote.local is not None:
        raise Refused(
            "it lies on this machine, and what lies here is pushed to only where the campaign names it: "
            'remote = "path/{name}" under [publish]'
        )
    stage = "verify" if row["verification"] in ("kept", PARTLY) else "rewrite"
    return _Target(
        row,
        repository,
        remote,
        places.clone(row["slug"]),
        places.of(row["slug"], stage) / PULL_REQUEST,
        _title(campaign, row, ledger),
    )


def _title(campaign: Campaign, row: Row, ledger: Ledger) -> str:
    """The title of a request, which says where a run has not kept all that it holds."""
    rules, fixed, proven = ledger.fixed(row["id"])
    title = campaign.publishing.title or f"Autograd graph fixes ({', '.join(rules)})"
    if row["verification"] == "kept":
        return title
    return f"{UNVERIFIED} ({proven} of {fixed} kept by a run): {title}" if proven else f"{UNVERIFIED}: {title}"


def _push_words(branch: str, target: _Target) -> list[str]:
    ref = f"refs/heads/{branch}"
    # Only over what we have put there ourselves; over nothing, where we have not.
    lease = f"--force-with-lease={ref}:{target.row['pushed']}"
    far = Git(target.remote).far("receive-pack")
    return ["push", "--quiet", "--no-verify", "--recurse-submodules=no", *far, lease, "--", target.remote.address]


def _say_commands(campaign: Campaign, target: _Target, client: str, say: Say) -> None:
    branch = campaign.commits.branch
    words = [*_push_words(branch, target)[:-1], redact(target.remote.address, target.remote.secrets)]
    say(f"{target.row['slug']}:")
    say("  " + shlex.join(["git", "-C", str(target.clone), *words, f"{target.row['head']}:refs/heads/{branch}"]))
    if client:
        say("  " + forges.shown(client, _request(campaign, target)))
    else:
        say(f"  (no pull request by a client; its text: {target.body})")


def _publish(campaign: Campaign, ledger: Ledger, target: _Target, client: str, say: Say) -> bool:
    """Publish one repository; return whether anything was changed at the remote."""
    row, branch = target.row, campaign.commits.branch
    answer = look([(row, target.repository)])[row["id"]]
    if not answer.commit:
        raise Failed(answer.trouble)
    ledger.note(row["id"], upstream=answer.commit)
    if answer.commit != row["base"]:
        raise Refused(
            f"moved upstream, from {row['base'][:10]} to {answer.commit[:10]}; codemod batch retry --all --only "
            f"{row['slug']} does it again"
        )
    git = Git(target.remote, lambda _: None)
    here = git.run("rev-parse", "--verify", f"refs/heads/{branch}", cwd=target.clone).decode().strip()
    if here != row["head"]:
        raise Refused(
            f"the branch in {target.clone} is not the one that was made ({here[:10]}, not {row['head'][:10]})"
        )
    _require_own_configuration(git, target.clone)
    _require_nothing_secret(git, target)
    there = remote_refs(target.remote).get(f"refs/heads/{branch}", "")
    changed = False
    if there == row["head"]:
        say(f"{row['slug']}: {branch} is pushed already")
    elif there and there != row["pushed"]:
        raise Refused(f"the remote has a branch {branch} that this campaign has not made")
    else:
        git.run(*_push_words(branch, target), f"{row['head']}:refs/heads/{branch}", cwd=target.clone)
        changed = True
    ledger.note(row["id"], pushed=row["head"], remote=redact(target.remote.url))
    address = row["pull_request"]
    if client and not address:
        address = forges.open_request(client, _request(campaign, target), campaign.work)
        changed = True
    ledger.change(row["id"], "published", stage="publish", pull_request=address)
    say(f"{row['slug']}: {branch} is pushed" + (f", {address}" if address else f"; the request's text: {target.body}"))
    return changed


def _require_nothing_secret(git: Git, target: _Target) -> None:
    """Raise :class:`Refused` where what is to be published holds the value of a variable that looks secret, or a token.

    A token that the repository has already is its own affair.
    """
    row = target.row
    given = dict(text.split("=", 1) for text in target.repository.runs.env if "=" in text)
    secrets = Secrets((os.environ, given))
    commits = git.run("log", "-p", "--format=%an%n%ae%n%B", f"{row['base']}..{row['head']}", cwd=target.clone)
    published = {
        "the title": target.title,
        "the text of the request": target.body.read_text(encoding="utf-8", errors="replace"),
        "the branch": commits.decode("utf-8", "replace"),
    }
    for where, text in published.items():
        name = secrets.found(text)
        if name:
            raise Refused(f"{where} holds the value of the variable {name}, which looks secret")
        for token in tokens(text):
            if not _is_there(git, target, token):
                raise Refused(f"{where} holds what looks like a token, {token[:4]}…, which the repository has not")


def _is_there(git: Git, target: _Target, text: str) -> bool:
    try:
        git.run("grep", "-q", "-F", "-e", text, target.row["base"], cwd=target.clone)
    except Failed:
        return False
    return True


def _require_own_configuration(git: Git, clone: Path) -> None:
    """Raise :class:`Refused` where a clone's configuration has what we did not write: it could name commands to run."""
    names = git.run("config", "--local", "--list", "--name-only", "-z", cwd=clone).decode("utf-8", "replace")
    for name in names.split("\0"):
        if name and name not in _CONFIGURED and not re.fullmatch(r"branch\..*\.(remote|merge)", name):
            raise Refused(f"the configuration of {clone} has {name}, which codemod has not written")


def _request(campaign: Campaign, target: _Target) -> forges.Request:
    host, path = forges.place_of(target.repository.source)
    _, fork = forges.place_of(target.remote)
    return forges.Request(
        repository=path,
        host=host,
        branch=campaign.commits.branch,
        base=campaign.publishing.base or target.row["base_branch"],
        title=target.title,
        body=target.body,
        draft=campaign.publishing.draft,
        fork=fork if fork != path else "",
    )
