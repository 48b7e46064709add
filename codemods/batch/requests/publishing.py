"""Branches to their remotes, and pull requests for them: only what the ledger says may be, and each once."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.batch import forges
from codemods.batch.artifacts import PULL_REQUEST
from codemods.batch.campaign import windows
from codemods.batch.campaign.settings import Campaign, Repository
from codemods.batch.errors import CampaignError, Failed, Refused
from codemods.batch.git import Git
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.pending import chosen
from codemods.batch.places import Places
from codemods.batch.requests import forks, pull_request
from codemods.batch.requests.following import look as look_at_request
from codemods.batch.requests.following import opened
from codemods.batch.requests.secrecy import require_nothing_secret
from codemods.batch.requests.standing import OPEN, Standing
from codemods.batch.requests.told import published_since
from codemods.batch.requests.upstream import look, our_branch, require_ours
from codemods.batch.sources import Source, parse, redact
from codemods.batch.stages.job import PARTLY
from codemods.terms.words import words

Say = Callable[[str], None]
#: git's word for a remote that lacks what a shallow clone lacks, too.
_SHALLOW = "shallow update not allowed"
#: How the title of a request begins that holds what no run has kept.
UNVERIFIED = "UNVERIFIED"
#: What the configuration of a clone of ours holds; whatever else stands there was put there by somebody.
_CONFIGURED = words(
    "core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.symlinks core.ignorecase "
    "core.precomposeunicode extensions.partialclone extensions.objectformat remote.origin.url remote.origin.fetch "
    "remote.origin.tagopt"
)


@dataclass(frozen=True)
class Target:
    """A branch to be published: where from, and where to."""

    row: Row
    repository: Repository
    remote: Source
    clone: Path
    body: Path
    title: str


@dataclass
class _Course:
    """How far publishing has come: of the repositories, how many were taken, changed, left out, and failed."""

    done: int = 0
    changed: int = 0
    left: int = 0
    failures: int = 0


def publish(
    campaign: Campaign,
    say: Say,
    *,
    dry_run: bool = False,
    only: Collection[str] = (),
    most: int | None = None,
    keep: bool = False,
    at_once: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> int:
    """Publish what may be published, and return how many could not be, each of which was said.

    A repository is left out silently if there is nothing to publish, or all of it is published. With ``dry_run``
    nothing is asked or changed anywhere: the commands are said. With ``keep`` clones stay that are not needed any more,
    with ``at_once`` the campaign's hours and its number a day do not count. Raises :class:`CampaignError` where nothing
    was run, or the campaign is at work.
    """
    with opened(campaign) as ledger:
        chosen(ledger, only)
        course = _Course()
        for row in ledger.repositories():
            repository = campaign.by_key.get(row["key"])
            if (only and row["slug"] not in only) or repository is None:
                continue
            if not _due(campaign, row, repository, say, course, asked=bool(only)):
                continue
            if most is not None and course.done >= most:
                break
            try:
                target = target_of(campaign, row, repository, ledger)
                client = forges.client_for(campaign.publishing.client, forges.place_of(target.repository.source)[0])
                if is_finished(row, client):
                    if not (keep or campaign.publishing.keep):
                        # As after a kill between the ledger and this.
                        Places(campaign.work).drop(row["slug"], "clone")
                    continue
                wait = "" if at_once or dry_run else closed(campaign, ledger, clock())
                if wait:
                    say(wait)
                    return course.failures
                course.done += 1
                if dry_run:
                    _say_commands(campaign, target, client, say)
                    continue
                if course.changed:
                    sleep(campaign.publishing.throttle)
                _require_results(target)
                if client and campaign.publishing.fork and not (row["fork"] or row["pushed"]):
                    target = _to_fork(campaign, ledger, target, client, sleep)
                course.changed += _publish(campaign, ledger, target, client, say)
                if not (keep or campaign.publishing.keep):
                    Places(campaign.work).drop(row["slug"], "clone")
            except (Failed, Refused) as error:
                course.failures += 1
                say(f"{row['slug']}: not published: {error}")
        if not course.done and not course.failures:
            left = f"; {course.left} may not be: codemod batch status says where each stands" if course.left else ""
            say(f"nothing left to publish{left}")
        return course.failures


def _due(campaign: Campaign, row: Row, repository: Repository, say: Say, course: _Course, *, asked: bool) -> bool:
    why = obstacle(row, campaign, repository)
    if why:
        course.left += 1
        if asked or row["verification"] == "broken":
            say(f"{row['slug']}: not published: {why}")
    return not why and bool(row["head"])


def closed(campaign: Campaign, ledger: Ledger, now: float) -> str:
    """Say why nothing may be published at the moment: the campaign's hours, and its number a day; empty if it may."""
    hours, per_day = campaign.publishing.hours, campaign.publishing.per_day
    until = windows.closed_until(hours, now)
    if hours is not None and until:
        return f"nothing is published outside of {hours.text()}: from {until} on, or with --now"
    done = published_since(ledger, windows.begun(hours, now)) if per_day is not None else 0
    if per_day is not None and done >= per_day:
        return f"{done} published today, as many as per-day allows; the rest tomorrow, or with --now"
    return ""


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
        again = "update" if row["state"] == "published" else "retry --changed"
        return f"it was done with other settings; codemod batch {again} does it again"
    if campaign.publishing.require == "kept" and row["verification"] != "kept":
        return f"it is not verified{': ' + row['why'] if row['why'] else ''}"
    return ""


def is_finished(row: Row, client: str) -> bool:
    """Whether a branch is published, and its request opened where there is a ``client`` for that."""
    return bool(row["state"] == "published" and row["pushed"] == row["head"] and (row["pull_request"] or not client))


def target_of(campaign: Campaign, row: Row, repository: Repository, ledger: Ledger) -> Target:
    """What is to be published of a repository, and where to. Raises :class:`Failed` or :class:`Refused`."""
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
    elif row["fork"]:
        remote = forks.at(remote, row["fork"])
    elif remote.local is not None:
        raise Refused(
            "it lies on this machine, and what lies here is pushed to only where the campaign names it: "
            'remote = "path/{name}" under [publish]'
        )
    stage = "verify" if row["verification"] in ("kept", PARTLY) else "rewrite"
    return Target(
        row,
        repository,
        remote,
        places.clone(row["slug"]),
        places.of(row["slug"], stage) / PULL_REQUEST,
        _title(campaign, row, ledger),
    )


def results_gone(target: Target) -> bool:
    """Whether what is needed to publish a branch is not in the work folder any more."""
    pushed = target.row["pushed"] == target.row["head"]
    return not target.body.is_file() or not (pushed or target.clone.is_dir())


def _require_results(target: Target) -> None:
    if results_gone(target):
        again = f"update --only {target.row['slug']}" if target.row["state"] == "published" else "run"
        raise Failed(f"its results are not in the work folder any more; codemod batch {again} makes them again")


def _to_fork(campaign: Campaign, ledger: Ledger, target: Target, client: str, sleep: Callable[[float], None]) -> Target:
    """``target``, published to a fork where its own remote may not be pushed to. Raises :class:`Failed`."""
    # Nothing is made at the forge for what may not leave this machine.
    _require_publishable(ledger, campaign, target)
    path = forks.fork_of(client, target.repository.source, campaign.work)
    if not path:
        return target
    remote = forks.at(target.repository.source, path)
    forks.wait_for(remote, sleep)
    ledger.note(target.row["id"], fork=path)
    return replace(target, remote=remote, row={**target.row, "fork": path})


def _title(campaign: Campaign, row: Row, ledger: Ledger) -> str:
    """The title of a request, which says where a run has not kept all that it holds."""
    rules, fixed, proven = ledger.fixed(row["id"])
    title = campaign.publishing.title or f"Autograd graph fixes ({', '.join(rules)})"
    if row["verification"] == "kept":
        return title
    return f"{UNVERIFIED} ({proven} of {fixed} kept by a run): {title}" if proven else f"{UNVERIFIED}: {title}"


def _push_words(branch: str, target: Target, pushed: str) -> list[str]:
    ref = f"refs/heads/{branch}"
    # Only over what we have put there ourselves; over nothing, where we have not.
    lease = f"--force-with-lease={ref}:{pushed}"
    far = Git(target.remote).far("receive-pack")
    return ["push", "--quiet", "--no-verify", "--recurse-submodules=no", *far, lease, "--", target.remote.address]


def _push(campaign: Campaign, target: Target, pushed: str) -> None:
    branch = campaign.commits.branch
    words = (*_push_words(branch, target, pushed), f"{target.row['head']}:refs/heads/{branch}")
    try:
        Git(target.remote).run(*words, cwd=target.clone)
    except Failed as error:
        if _SHALLOW not in str(error):
            raise
        # A fork that is older than what the branch starts from: it gets the history between.
        source, limits = target.repository.source, campaign.limits
        git = Git(source)
        more = ("--quiet", "--no-tags", "--no-write-fetch-head", "--unshallow", *git.far("upload-pack"))
        room = (target.clone, 2 * limits.size)
        git.run("fetch", *more, "--", source.address, cwd=target.clone, timeout=limits.clone_timeout, growing=room)
        Git(target.remote).run(*words, cwd=target.clone)


def _say_commands(campaign: Campaign, target: Target, client: str, say: Say) -> None:
    branch = campaign.commits.branch
    words = [*_push_words(branch, target, target.row["pushed"]), f"{target.row['head']}:refs/heads/{branch}"]
    say(f"{target.row['slug']}:")
    say("  " + redact(shlex.join(["git", "-C", str(target.clone), *words]), target.remote.secrets))
    if client:
        say("  " + forges.shown(client, _request(campaign, target)))
        if campaign.publishing.fork and not target.row["fork"]:
            say("  (by a fork of yours, if you may not push there)")
    else:
        say(f"  (no pull request by a client; its text: {target.body})")


def _publish(campaign: Campaign, ledger: Ledger, target: Target, client: str, say: Say) -> bool:
    """Publish one repository; return whether anything was changed at the remote."""
    row, branch = target.row, campaign.commits.branch
    standing = _standing(campaign, ledger, row, client)
    there, pushed = our_branch(ledger, row, target.remote, branch)
    changed = False
    if there == row["head"] == pushed:
        # All that is left is its request.
        say(f"{row['slug']}: {branch} is pushed already")
    else:
        _require_publishable(ledger, campaign, target)
        if there == row["head"]:
            say(f"{row['slug']}: {branch} is pushed already")
        else:
            require_ours(branch, pushed, there)
            ledger.note(row["id"], pushing=row["head"])
            _push(campaign, target, pushed)
            changed = True
        ledger.note(row["id"], pushed=row["head"], remote=redact(target.remote.url))
    address, opened_at = row["pull_request"], row["opened_at"]
    if not changed and client:
        # Pushed by an earlier run, which may have known other variables; its text goes out now.
        _search(Git(target.remote), target, branch=False)
    if client and not address:
        address, opened_at = forges.open_request(client, _request(campaign, target), campaign.work), time.time()
        changed = True
    elif standing is not None:
        place = pull_request.locate(campaign.publishing.client, address)
        pull_request.edit(place, _request(campaign, target), campaign.work, draft=standing.draft)
        changed = True
    ledger.change(row["id"], "published", stage="publish", pull_request=address, opened_at=opened_at)
    say(f"{row['slug']}: {branch} is pushed" + (f", {address}" if address else f"; the request's text: {target.body}"))
    return changed


def _standing(campaign: Campaign, ledger: Ledger, row: Row, client: str) -> Standing | None:
    """Where the request is that a branch is to be pushed for again; None where there is none.

    Raises :class:`Refused` for one that is not open any more: nobody waits for what is pushed there.
    """
    if not (client and row["pull_request"]):
        return None
    standing = look_at_request(campaign, ledger, row)
    if standing.state != OPEN:
        raise Refused(f"its request is {standing.state}: {row['pull_request']}")
    return standing


def _require_publishable(ledger: Ledger, campaign: Campaign, target: Target) -> None:
    """Raise :class:`Refused` (or :class:`Failed`) where a branch is not to be pushed as it is."""
    row = target.row
    answer = look([(row, target.repository)])[row["id"]]
    if not answer.commit:
        raise Failed(answer.trouble)
    ledger.note(row["id"], upstream=answer.commit)
    moved = answer.moved(row["base"])
    if moved:
        again = f"update --only {row['slug']}" if row["pushed"] else f"retry --all --only {row['slug']}"
        raise Refused(f"{moved}; codemod batch {again} does it again")
    git = Git(target.remote, lambda _: None)
    here = git.run("rev-parse", "--verify", f"refs/heads/{campaign.commits.branch}", cwd=target.clone).decode().strip()
    if here != row["head"]:
        raise Refused(
            f"the branch in {target.clone} is not the one that was made ({here[:10]}, not {row['head'][:10]})"
        )
    _require_own_configuration(git, target.clone)
    _search(git, target, branch=True)


def _search(git: Git, target: Target, *, branch: bool) -> None:
    """Raise :class:`Refused` where the request, or with ``branch`` what is to be pushed, holds a secret."""
    row = target.row
    published = {
        "the title": target.title,
        "the text of the request": target.body.read_text(encoding="utf-8", errors="replace"),
    }
    if branch:
        words = ("log", "-p", "--text", "--no-ext-diff", "--no-textconv")
        commits = git.run(*words, "--format=%an%n%ae%n%B", f"{row['base']}..{row['head']}", cwd=target.clone)
        published["the branch"] = commits.decode("utf-8", "replace")
    sources = (target.repository.source, target.remote)
    require_nothing_secret(published, target.repository.runs, sources, (git, target.clone, row["base"]))


def _require_own_configuration(git: Git, clone: Path) -> None:
    """Raise :class:`Refused` where a clone's configuration has what we did not write: it could name commands to run."""
    names = git.run("config", "--local", "--list", "--name-only", "-z", cwd=clone).decode("utf-8", "replace")
    for name in names.split("\0"):
        if name and name not in _CONFIGURED and not re.fullmatch(r"branch\..*\.(remote|merge)", name):
            raise Refused(f"the configuration of {clone} has {name}, which codemod has not written")


def _request(campaign: Campaign, target: Target) -> forges.Request:
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
        reviewers=_own(target.repository.reviewers, campaign.publishing.reviewers),
        labels=_own(target.repository.labels, campaign.publishing.labels),
    )


def _own(own: tuple[str, ...] | None, general: tuple[str, ...]) -> tuple[str, ...]:
    return general if own is None else own
