"""A stand-in for ``gh`` and ``glab``: answers in the shapes of theirs, off a file that tests write.

Which flags there are, which fields can be asked for, what is printed where, and how refusals read was taken from the
manuals of both and from what they were recorded to print. It is started as they are: by its name on ``PATH``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

ME = "campaigner"
#: https://cli.github.com/manual/gh_pr_view
FIELDS = frozenset(
    re.findall(
        r"\w+",
        "additions assignees author autoMergeRequest baseRefName baseRefOid body changedFiles closed closedAt comments "
        "commits createdAt deletions files headRefName headRefOid headRepository headRepositoryOwner id labels "
        "isCrossRepository isDraft latestReviews maintainerCanModify mergeCommit mergeStateStatus mergeable mergedAt "
        "mergedBy milestone number potentialMergeCommit projectCards reactionGroups reviewDecision reviewRequests "
        "reviews state statusCheckRollup title updatedAt url",
    )
)
#: The flags of each command that take a value, and those that take none.
FLAGS = {
    ("gh", "create"): ({"repo", "head", "base", "title", "body-file", "body", "label", "reviewer"}, {"draft"}),
    ("gh", "list"): ({"repo", "head", "state", "json"}, set()),
    ("gh", "view"): ({"repo", "json"}, set()),
    ("gh", "edit"): ({"repo", "title", "body-file", "add-label", "add-reviewer"}, set()),
    ("gh", "close"): ({"repo", "comment"}, {"delete-branch"}),
    ("gh", "ready"): ({"repo"}, {"undo"}),
    ("gh", "merge"): ({"repo", "match-head-commit"}, {"merge", "squash", "rebase", "auto", "admin", "delete-branch"}),
    ("gh", "api"): ({"hostname", "method"}, {"paginate"}),
    ("glab", "create"): (
        {"repo", "source-branch", "target-branch", "head", "title", "description", "label", "reviewer"},
        {"yes", "draft"},
    ),
    ("glab", "list"): ({"repo", "source-branch", "output"}, set()),
    ("glab", "view"): ({"repo", "output"}, {"comments"}),
    ("glab", "update"): ({"repo", "title", "description", "label", "reviewer"}, {"draft", "ready"}),
    ("glab", "close"): ({"repo"}, set()),
    ("glab", "note"): ({"repo", "message"}, set()),
    ("glab", "merge"): ({"repo", "sha"}, {"squash", "rebase", "yes", "auto-merge", "remove-source-branch"}),
    ("glab", "api"): ({"hostname", "method"}, {"paginate"}),
}

Request = dict[str, Any]


class Client:
    """One command of one client."""

    def __init__(self, name: str, words: list[str]) -> None:
        self.name = name
        self.folder = Path(os.environ["FORGE"])
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            log.write(json.dumps([name, *words]) + "\n")
        self.state = json.loads((self.folder / "state.json").read_text())
        self.verb = "api" if words[0] == "api" else words[1]
        if words[0] not in ("api", "pr" if name == "gh" else "mr") or (name, self.verb) not in FLAGS:
            self.refuse(f'unknown command "{words[0]}" for "{name}"')
        self.rest: list[str] = []
        self.flags: dict[str, list[str]] = {}
        self.read(words[1:] if words[0] == "api" else words[2:])
        down = self.state.get("down")
        if down:
            self.refuse(down)

    def read(self, words: list[str]) -> None:
        valued, plain = FLAGS[self.name, self.verb]
        at = iter(words)
        for word in at:
            flag, _, value = word.removeprefix("--").partition("=")
            if not word.startswith("--"):
                self.rest.append(word)
            elif flag in plain:
                self.flags.setdefault(flag, []).append(value or "true")
            elif flag in valued:
                self.flags.setdefault(flag, []).append(value or next(at))
            else:
                self.refuse(f"unknown flag: --{flag}")

    def refuse(self, said: str, status: int = 1) -> NoReturn:
        print(said, file=sys.stderr)
        sys.exit(status)

    def flag(self, name: str) -> str:
        return self.flags.get(name, [""])[-1]

    @property
    def repo(self) -> str:
        """``host/owner/name``; gh and glab take a name alone for github.com and gitlab.com."""
        given = re.sub(r"^https?://", "", self.flag("repo")).removesuffix(".git")
        known = self.state["repos"]
        return given if given in known else f"{'github' if self.name == 'gh' else 'gitlab'}.com/{given}"

    def known(self) -> dict[str, Any]:
        if self.repo not in self.state["repos"]:
            what = self.repo.partition("/")[2]
            if self.name == "gh":
                self.refuse(f"GraphQL: Could not resolve to a Repository with the name '{what}'. (repository)")
            self.refuse("404 Project Not Found")
        told: dict[str, Any] = self.state["repos"][self.repo]
        return told

    def found(self) -> Request:
        number = self.rest[0]
        for one in self.known()["requests"]:
            if str(one["number"]) == number:
                refusal = one.get("refuse", {}).get(self.verb)
                if refusal:
                    self.refuse(refusal)
                told: Request = one
                return told
        said = f"GraphQL: Could not resolve to a PullRequest with the number of {number}. (repository.pullRequest)"
        return self.refuse(said if self.name == "gh" else f"failed to get merge request {number}: 404 Not found")

    def save(self) -> None:
        # As a whole or not at all: a client that is killed costs no forge what it knows.
        place = self.folder / f"state-{os.getpid()}.json"
        place.write_text(json.dumps(self.state, indent=1))
        place.replace(self.folder / "state.json")

    def head(self, request: Request) -> str:
        """The commit that a request's branch is at; what it was at last where the branch is gone."""
        # A fork's branch is the fork's.
        where = (
            self.state["repos"].get(f"{self.repo.partition('/')[0]}/{request['fork']}") if request.get("fork") else None
        )
        place = (where or self.known()).get("git")
        if place:
            command = ["git", "-C", place, "rev-parse", "--verify", "-q", f"refs/heads/{request['branch']}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            request["head"] = done.stdout.strip() or request.get("head", "")
        return str(request.get("head", ""))

    def url(self, request: Request) -> str:
        middle = "pull" if self.name == "gh" else "-/merge_requests"
        return f"https://{self.repo}/{middle}/{request['number']}"

    # What both can do, each in its own words.

    def create(self) -> None:
        known = self.known()
        labels = self.flags.get("label", [])
        missing = [one for one in labels if one not in known.get("labels", [])]
        if missing and self.name == "gh":
            self.refuse(f"could not add label: '{missing[0]}' not found")
        branch = self.flag("head").rpartition(":")[2] if self.name == "gh" else self.flag("source-branch")
        body = Path(self.flag("body-file")).read_text() if self.flag("body-file") else self.flag("description")
        request: Request = {
            "number": len(known["requests"]) + 1,
            "branch": branch,
            "base": self.flag("base") or self.flag("target-branch"),
            "title": self.flag("title"),
            "body": body,
            "draft": "draft" in self.flags,
            "state": "open",
            "labels": labels,
            "reviewers": self.flags.get("reviewer", []),
            "created": self.state["now"],
        }
        owner, colon, _ = self.flag("head").partition(":")
        if self.name == "glab" and self.flag("head"):
            request["fork"] = self.flag("head")
        elif colon:
            request["fork"] = f"{owner}/{self.repo.rpartition('/')[2]}"
        elif not known.get("push", True):
            self.refuse(f"GraphQL: Head sha can't be blank, Head ref must be a branch ({branch})")
        known["requests"].append(request)
        self.head(request)
        self.save()
        if self.name == "glab":
            print(f"\nCreating merge request for {branch} into {request['base']}\n", file=sys.stderr)
        print(self.url(request))

    def list(self) -> None:
        branch = self.flag("head") or self.flag("source-branch")
        rows = [one for one in self.known()["requests"] if one["branch"] == branch and one["state"] == "open"]
        if self.name == "gh":
            told = [(self.url(one), one.get("fork", self.repo.partition("/")[2]).partition("/")[0]) for one in rows]
            print(json.dumps([{"url": url, "headRepositoryOwner": {"id": "M", "login": owner}} for url, owner in told]))
        else:
            print(json.dumps([gitlab(self, one) for one in rows]))

    def view(self) -> None:
        request = self.found()
        if self.name == "glab":
            print(json.dumps(gitlab(self, request)))
            return
        wanted = self.flag("json").split(",")
        for name in wanted:
            if name not in FIELDS:
                self.refuse(f'Unknown JSON field: "{name}"')
        told = github(self, request)
        print(json.dumps({name: told[name] for name in wanted}))

    def edit(self) -> None:
        request = self.found()
        request["title"] = self.flag("title") or request["title"]
        request["body"] = Path(self.flag("body-file")).read_text()
        request["labels"] = sorted({*request["labels"], *self.flags.get("add-label", [])})
        request["reviewers"] = sorted({*request["reviewers"], *self.flags.get("add-reviewer", [])})
        self.save()
        print(self.url(request))

    def update(self) -> None:
        request = self.found()
        if "ready" in self.flags:
            request["draft"] = False
        if self.flag("title"):
            # GitLab knows a draft by its title.
            request["draft"] = self.flag("title").startswith("Draft: ")
            request["title"] = self.flag("title").removeprefix("Draft: ")
            request["body"] = self.flag("description")
        added = [one.removeprefix("+") for one in self.flags.get("reviewer", [])]
        request["reviewers"] = sorted({*request["reviewers"], *added})
        request["labels"] = sorted({*request["labels"], *self.flags.get("label", [])})
        self.save()
        print(f"- Updating merge request !{request['number']}\n\u2713 updated\n{self.url(request)}")

    def ready(self) -> None:
        request = self.found()
        request["draft"] = False
        self.save()
        print(f'\u2713 Pull request {self.repo}#{request["number"]} is marked as "ready for review"', file=sys.stderr)

    def note(self) -> None:
        request = self.found()
        request.setdefault("comments", []).append({"author": ME, "body": self.flag("message")})
        self.save()
        print(f"{self.url(request)}#note_1")

    def close(self) -> None:
        request = self.found()
        number, title = request["number"], request["title"]
        if request["state"] == "merged":
            self.refuse(f"X Pull request {self.repo}#{number} ({title}) can't be closed because it was already merged")
        if self.flag("comment"):
            request.setdefault("comments", []).append({"author": ME, "body": self.flag("comment")})
        request["state"], request["closed"] = "closed", self.state["now"]
        self.save()
        if self.name == "gh":
            print(f"\u2713 Closed pull request {self.repo}#{number} ({title})", file=sys.stderr)
        else:
            print(f"- Closing merge request...\n\u2713 Closed merge request !{number}.\n")

    def merge(self) -> None:
        request = self.found()
        name = f"{self.repo.partition('/')[2]}#{request['number']}"
        if self.name == "gh":
            if not {"merge", "squash", "rebase"} & self.flags.keys():
                self.refuse("--merge, --rebase, or --squash required when not running interactively")
            if request["draft"]:
                self.refuse("GraphQL: Pull Request is still a draft (mergePullRequest)")
            if request.get("conflict"):
                self.refuse(
                    f"X Pull request {name} is not mergeable: the merge commit cannot be cleanly created.\n"
                    "To have the pull request merged after all the requirements have been met, add the `--auto` flag."
                )
            if self.flag("match-head-commit") not in ("", self.head(request)):
                self.refuse("GraphQL: Head branch was modified. Review and try the merge again. (mergePullRequest)")
        else:
            if self.flag("sha") not in ("", self.head(request)):
                self.refuse("409 {message: SHA does not match HEAD of source branch: " + self.head(request) + "}")
            if request["draft"] or request.get("conflict"):
                self.refuse("merge request is not mergeable: 405 {message: 405 Method Not Allowed}")
        request["state"], request["merged"] = "merged", self.state["now"]
        request["method"] = next((one for one in ("squash", "rebase") if one in self.flags), "merge")
        self.save()

    def api(self) -> None:
        path, _, query = self.rest[0].partition("?")
        about = re.fullmatch(r"(?:repos/([^/]+/[^/]+)|projects/([^/]+))(/forks?)?", path)
        if about is not None:
            self.flags["repo"] = [f"{self.flag('hostname')}/{unquote(about[1] or about[2])}"]
            self.about(about[3] or "", query)
            return
        approvals = re.fullmatch(r"projects/([^/]+)/merge_requests/(\d+)/approvals", path)
        if approvals is not None:
            self.flags["repo"] = [f"{self.flag('hostname')}/{unquote(approvals[1])}"]
            self.rest = [approvals[2]]
            print(json.dumps(approved(self.found())))
            return
        assert "per_page=100" in query
        if self.name == "gh":
            match = re.fullmatch(r"repos/(.+)/pulls/(\d+)/comments", path)
        else:
            match = re.fullmatch(r"projects/([^/]+)/merge_requests/(\d+)/notes", path)
        assert match, path
        self.flags["repo"] = [f"{self.flag('hostname')}/{unquote(match[1])}"]
        self.rest = [match[2]]
        request = self.found()
        print(json.dumps(remarks(request) if self.name == "gh" else notes(request)))

    def about(self, what: str, query: str) -> None:
        """What the interfaces tell of a repository and its forks; one more of which is made."""
        known, method = self.known(), self.flag("method") or "GET"
        if known.get("refuse"):
            self.refuse(known["refuse"])
        mine = f"{self.flag('hostname')}/{ME}/{self.repo.split('/')[-1]}"
        if not what:
            print(json.dumps(project(self, self.repo, known)))
        elif method == "GET":
            assert self.name == "glab"
            assert "owned=true" in query
            forks = [mine] if mine in self.state["repos"] else []
            print(json.dumps([project(self, one, self.state["repos"][one]) for one in forks]))
        else:
            assert what == ("/forks" if self.name == "gh" else "/fork")
            if mine not in self.state["repos"]:
                place = self.folder / "git" / ME / f"{mine.split('/')[-1]}.git"
                subprocess.run(["git", "clone", "-q", "--bare", known["git"], str(place)], check=True)
                subprocess.run(["git", "-C", str(place), "config", "http.receivepack", "true"], check=True)
                self.state["repos"][mine] = {"requests": [], "git": str(place), "labels": [], "fork": True}
                self.save()
            elif self.name == "glab":
                self.refuse("409 {message: {name: [has already been taken], path: [has already been taken]}}")
            print(json.dumps(project(self, mine, self.state["repos"][mine])))


def project(client: Client, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """A repository as ``GET /repos/OWNER/NAME`` and ``GET /projects/ID`` tell it."""
    path = name.partition("/")[2]
    push = bool(known.get("push", True))
    if client.name == "gh":
        rights = {"admin": False, "maintain": False, "push": push, "triage": push, "pull": True}
        return {
            "id": 1,
            "name": path.rpartition("/")[2],
            "full_name": path,
            "owner": {"login": path.partition("/")[0], "id": 1, "type": "User"},
            "fork": known.get("fork", False),
            "clone_url": f"https://{name}.git",
            "permissions": rights,
        }
    access = {"access_level": 40, "notification_level": 3} if push else None
    return {
        "id": 1,
        "path_with_namespace": path,
        "http_url_to_repo": f"https://{name}.git",
        "import_status": "scheduled" if known.get("fork") else "none",
        "permissions": {"project_access": access, "group_access": None},
    }


def github(client: Client, request: Request) -> dict[str, Any]:
    """A request as ``gh pr view --json`` tells it."""
    said = request.get("comments", [])
    mergeable = "CONFLICTING" if request.get("conflict") else "MERGEABLE"
    return {
        "state": request["state"].upper(),
        "isDraft": request["draft"],
        "reviewDecision": request.get("review", ""),
        "statusCheckRollup": request.get("checks", []),
        "headRefOid": client.head(request),
        "headRefName": request["branch"],
        "baseRefName": request["base"],
        "mergeable": mergeable if request["state"] == "open" else "UNKNOWN",
        "author": {"id": "MDQ6VXNlcjE=", "is_bot": False, "login": ME, "name": ""},
        "createdAt": request["created"],
        "mergedAt": request.get("merged"),
        "closedAt": request.get("merged") or request.get("closed"),
        "url": client.url(request),
        "comments": [
            {
                "id": "IC_kwDOA",
                "author": {"login": one["author"]},
                "authorAssociation": "MEMBER",
                "body": one["body"],
                "createdAt": one.get("at", client.state["now"]),
                "includesCreatedEdit": False,
                "isMinimized": False,
                "minimizedReason": "",
                "reactionGroups": [],
                "url": client.url(request) + "#issuecomment-1",
                "viewerDidAuthor": one["author"] == ME,
            }
            for one in said
        ],
        "reviews": [
            {
                "id": "PRR_kwDOA",
                "author": {"login": one["author"]},
                "authorAssociation": "MEMBER",
                "body": one.get("body", ""),
                "submittedAt": client.state["now"],
                "includesCreatedEdit": False,
                "reactionGroups": [],
                "state": one.get("state", "COMMENTED"),
                "commit": {"oid": client.head(request)},
            }
            for one in [*request.get("reviews", []), *({"author": one["author"]} for one in request.get("remarks", []))]
        ],
    }


def remarks(request: Request) -> list[dict[str, Any]]:
    """Remarks on lines as GitHub's interface tells them."""
    return [
        {
            "id": 10 + number,
            "user": {"login": one["author"], "id": 1, "type": "User"},
            "body": one["body"],
            "path": one["path"],
            "line": one["line"],
            "original_line": one["line"],
            "side": "RIGHT",
            "commit_id": request.get("head", ""),
            "created_at": "2026-11-02T10:00:00Z",
            "author_association": "MEMBER",
        }
        for number, one in enumerate(request.get("remarks", []))
    ]


def gitlab(client: Client, request: Request) -> dict[str, Any]:
    """A request as ``glab mr view --output json`` tells it, which is as GitLab's interface does."""
    status = request.get("pipeline")
    pipeline = {"id": 7, "iid": 1, "sha": client.head(request), "status": status, "source": "merge_request_event"}
    people = [*request.get("comments", []), *request.get("remarks", [])]
    return {
        "id": 1000 + request["number"],
        "iid": request["number"],
        "project_id": 3,
        "title": f"{'Draft: ' if request['draft'] else ''}{request['title']}",
        "description": request["body"],
        "state": {"open": "opened"}.get(request["state"], request["state"]),
        "created_at": request["created"],
        "merged_at": request.get("merged"),
        "closed_at": request.get("closed"),
        "target_branch": request["base"],
        "source_branch": request["branch"],
        "author": {"id": 1, "username": ME, "name": "A Person", "state": "active"},
        "reviewers": [{"id": 2, "username": name} for name in request["reviewers"]],
        "labels": request["labels"],
        "draft": request["draft"],
        "work_in_progress": request["draft"],
        "merge_status": "cannot_be_merged" if request.get("conflict") else "can_be_merged",
        "detailed_merge_status": request.get("detailed", "draft_status" if request["draft"] else "mergeable"),
        "sha": client.head(request),
        "user_notes_count": len(people),
        "has_conflicts": bool(request.get("conflict")),
        "blocking_discussions_resolved": True,
        "head_pipeline": {**pipeline, "detailed_status": {"text": status}} if status else None,
        "web_url": client.url(request),
    }


def approved(request: Request) -> dict[str, Any]:
    """Who has approved a request, as GitLab's interface tells it."""
    people = [{"user": {"id": 2, "username": name, "state": "active"}} for name in request.get("approved_by", [])]
    return {"id": 5, "iid": request["number"], "approvals_required": 0, "approvals_left": 0, "approved_by": people}


def notes(request: Request) -> list[dict[str, Any]]:
    """Notes as GitLab's interface tells them; some are its own."""
    told: list[dict[str, Any]] = [
        {"id": 1, "system": True, "author": {"username": ME}, "body": "requested review from @ada", "created_at": "x"}
    ]
    for number, one in enumerate([*request.get("comments", []), *request.get("remarks", [])]):
        place = {"new_path": one["path"], "old_path": one["path"], "new_line": one["line"]} if "path" in one else None
        told.append(
            {
                "id": 2 + number,
                "type": "DiffNote" if place else None,
                "body": one["body"],
                "author": {"id": 5, "username": one["author"], "state": "active"},
                "created_at": "2026-11-02T10:00:00.520Z",
                "system": False,
                "noteable_type": "MergeRequest",
                "resolvable": bool(place),
                **({"position": place} if place else {}),
            }
        )
    return told


if __name__ == "__main__":
    client = Client(Path(sys.argv[0]).name, sys.argv[1:])
    getattr(client, client.verb)()
