"""Questions about an open pull request, and changes to it, by its forge's own client."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlsplit

from codemods.batch import forges
from codemods.batch.errors import Failed
from codemods.batch.requests.standing import (
    GITHUB_FIELDS,
    OPEN,
    Answer,
    has_remarks,
    is_approved_on_gitlab,
    notes_of_gitlab,
    of_github,
    of_gitlab,
    remarks_of_github,
)

METHODS = ("merge", "squash", "rebase")


@dataclass(frozen=True)
class Place:
    """Where a request is: the client that knows it, its host, ``owner/name``, number and address."""

    client: str
    host: str
    path: str
    number: str
    url: str

    @property
    def repository(self) -> tuple[str, str]:
        """The option that names its repository. With it clients look at no folder that they are started in."""
        # gh takes HOST/OWNER/NAME, glab an address.
        return ("--repo", f"{'https://' if self.client == 'glab' else ''}{self.host}/{self.path}")


def locate(choice: str, address: str) -> Place:
    """Where the request with ``address`` is; ``choice`` is the campaign's client.

    Raises :class:`Failed` for an address that is none, and where there is no client for it.
    """
    parts = urlsplit(address)
    client = forges.client_for(choice, parts.hostname or "")
    if not client:
        raise Failed(f"{address}: no client for {parts.hostname or 'it'}: install gh or glab, or name one by client")
    form = r"/(?P<path>.+?)/pull/(?P<number>\d+)/?"
    if client == "glab":
        form = r"/(?P<path>.+?)(?:/-)?/merge_requests/(?P<number>\d+)/?"
    match = re.fullmatch(form, parts.path)
    if match is None:
        raise Failed(f"{address}: no address of a {'pull' if client == 'gh' else 'merge'} request")
    return Place(client, parts.netloc, match["path"], match["number"], address)


def ask(place: Place, cwd: Path) -> Answer:
    """Where a request stands, and what people said of it. Raises :class:`Failed`."""
    if place.client == "gh":
        told = forges.ask_client(_words(place, "view", "--json", GITHUB_FIELDS), cwd, dict)
        answer = of_github(told)
        if not has_remarks(told):
            return answer
        where = f"repos/{place.path}/pulls/{place.number}/comments?per_page=100"
        me = str((told.get("author") or {}).get("login", ""))
        remarks = forges.api("gh", place.host, where, cwd, list)
        said = (*answer.comments, *remarks_of_github(remarks, me))
    else:
        told = forges.ask_client(_words(place, "view", "--output", "json"), cwd, dict)
        answer = of_gitlab(told)
        at = f"projects/{quote(place.path, safe='')}/merge_requests/{place.number}"
        if answer.standing.state == OPEN and not answer.standing.review and _approved(place, at, cwd):
            answer = answer._replace(standing=replace(answer.standing, review="approved"))
        if not answer.standing.comments:
            return answer
        notes = forges.api("glab", place.host, f"{at}/notes?per_page=100", cwd, list)
        said = notes_of_gitlab(notes, str((told.get("author") or {}).get("username", "")))
    return answer._replace(standing=replace(answer.standing, comments=len(said)), comments=said)


def _approved(place: Place, at: str, cwd: Path) -> bool:
    try:
        return is_approved_on_gitlab(forges.api("glab", place.host, f"{at}/approvals", cwd, dict))
    except Failed:
        # Not every GitLab has approvals: then nobody is known to have given one.
        return False


def close(place: Place, comment: str, cwd: Path) -> None:
    """Close a request, with a word of why. Raises :class:`Failed` with what the forge says."""
    if place.client == "gh":
        _run(place, "close", cwd, *(("--comment", comment) if comment else ()))
        return
    if comment:
        _run(place, "note", cwd, "--message", comment)
    _run(place, "close", cwd)


def merge(place: Place, method: str, head: str, cwd: Path) -> None:
    """Merge a request at once, if its branch is at ``head``; ``method`` is one of :data:`METHODS`.

    Raises :class:`Failed` with what the forge says: its rules are never overridden.
    """
    if place.client == "gh":
        _run(place, "merge", cwd, f"--{method}", "--match-head-commit", head)
    else:
        how = () if method == "merge" else (f"--{method}",)
        _run(place, "merge", cwd, *how, "--sha", head, "--auto-merge=false", "--yes")


def make_ready(place: Place, cwd: Path) -> None:
    """Make a draft a request that can be merged. Raises :class:`Failed`."""
    if place.client == "gh":
        _run(place, "ready", cwd)
    else:
        _run(place, "update", cwd, "--ready")


def edit(place: Place, request: forges.Request, cwd: Path, *, draft: bool) -> None:
    """Give a request the title, text, reviewers and labels of ``request``. Raises :class:`Failed`."""
    if place.client == "gh":
        with forges.body_file(request.body, cwd) as body:
            words = ["--title", request.title, "--body-file", str(body)]
            words += [word for name in request.reviewers for word in ("--add-reviewer", name)]
            words += [word for name in request.labels for word in ("--add-label", name)]
            _run(place, "edit", cwd, *words)
        return
    # A draft is one by its title there.
    title = f"Draft: {request.title}" if draft else request.title
    words = ["--title", title, "--description", forges.text_of(request.body)]
    words += [word for name in request.reviewers for word in ("--reviewer", f"+{name}")]
    words += [word for name in request.labels for word in ("--label", name)]
    _run(place, "update", cwd, *words)


def _run(place: Place, verb: str, cwd: Path, *words: str) -> None:
    forges.run_client(_words(place, verb, *words), cwd)


def _words(place: Place, verb: str, *words: str) -> list[str]:
    kind = "pr" if place.client == "gh" else "mr"
    return [place.client, kind, verb, place.number, *place.repository, *words]
