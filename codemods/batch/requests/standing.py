"""Where a pull request stands, as the forges' own clients tell it."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from codemods.batch.errors import Failed
from codemods.batch.ledger.ledger import Row
from codemods.terms.counting import plain_count_text

OPEN, MERGED, CLOSED = "open", "merged", "closed"
CHANGES = "changes requested"
#: The fields that gh is asked for: https://cli.github.com/manual/gh_pr_view
GITHUB_FIELDS = (
    "state,isDraft,reviewDecision,statusCheckRollup,comments,reviews,headRefOid,mergeable,author,createdAt,mergedAt,"
    "closedAt"
)
#: The states in which a check is over: https://docs.github.com/en/graphql/reference/enums#checkconclusionstate
_GREEN = frozenset({"SUCCESS", "NEUTRAL", "SKIPPED"})
_WAITING = frozenset({"", "PENDING", "EXPECTED", "STALE"})
#: And GitLab's: https://docs.gitlab.com/api/pipelines/
_PIPELINES = {"success": "green", "skipped": "green", "failed": "red", "canceled": "red"}


@dataclass(frozen=True)
class Standing:
    """Where a request stands: ``state`` is open, merged or closed; ``checks`` green, red, waiting, or empty for none.

    ``review`` is approved, changes requested, or empty; ``comments`` counts those of others, what their reviews say
    included. ``head`` is the commit that its branch is at, ``conflict`` whether it can no longer be merged as it is.
    """

    state: str
    draft: bool = False
    checks: str = ""
    review: str = ""
    comments: int = 0
    head: str = ""
    conflict: bool = False

    def text(self) -> str:
        """The standing as a phrase: ``open, checks red, 2 comments``."""
        parts = [f"{'draft, ' if self.draft and self.state == OPEN else ''}{self.state}"]
        if self.state == OPEN:
            parts += [f"checks {self.checks}"] if self.checks else []
            parts += [self.review] if self.review else []
            parts += ["in conflict"] if self.conflict else []
        if self.comments:
            parts.append(plain_count_text(self.comments, "comment"))
        return ", ".join(parts)

    def json(self) -> str:
        """It as the ledger keeps it."""
        return json.dumps(asdict(self))


class Comment(NamedTuple):
    """A comment on a request: when (seconds since 1970), by whom, and on which line of which file, if on one."""

    at: float | None
    author: str
    path: str
    line: int | None
    text: str


class Answer(NamedTuple):
    """What a forge says of a request: where it stands, when it was opened and came to its end, and who said what."""

    standing: Standing
    opened_at: float | None
    ended_at: float | None
    comments: tuple[Comment, ...]


_KNOWN = frozenset(field.name for field in fields(Standing))


def standing_of(row: Row) -> Standing | None:
    """Where the request of a repository stood when it was asked last; None where it never was."""
    if not row["request"]:
        return None
    told = json.loads(row["request"])
    # What a later release has added is nothing to this one.
    return Standing(**{name: value for name, value in told.items() if name in _KNOWN})


def summary(rows: Iterable[Row]) -> str:
    """How many requests stand where, in one line; empty where there are none."""
    opened = [row for row in rows if row["pull_request"]]
    standings = [standing_of(row) for row in opened]
    known = [one for one in standings if one is not None]
    states = Counter(one.state for one in known)
    parts = [f"{states[state]} {state}" for state in (MERGED, OPEN, CLOSED) if states[state]]
    waiting = [one for one in known if one.state == OPEN]
    for count, what in (
        (sum(one.checks == "red" for one in waiting), "with red checks"),
        (sum(one.review == CHANGES for one in waiting), "with changes requested"),
        (sum(one.conflict for one in waiting), "in conflict"),
        (len(opened) - len(known), "not asked yet"),
    ):
        parts += [f"{count} {what}"] if count else []
    return f"pull requests: {', '.join(parts)}" if parts else ""


def of_github(answer: Mapping[str, Any]) -> Answer:
    """Read what ``gh pr view --json`` says. Raises :class:`Failed` for a state that we do not know."""
    state = {"OPEN": OPEN, "MERGED": MERGED, "CLOSED": CLOSED}.get(str(answer.get("state")))
    if state is None:
        raise Failed(f"gh answered an unknown state: {answer.get('state')!r}")
    ends = []
    checks = answer.get("statusCheckRollup") or ()
    for check in checks:
        if any(_is_after(other, check) for other in checks):
            continue
        # A status has a state, the run of a check a conclusion once it is over.
        over = check.get("state") or (check.get("conclusion") if check.get("status") == "COMPLETED" else "") or ""
        ends.append("waiting" if over in _WAITING else "green" if over in _GREEN else "red")
    review = {"APPROVED": "approved", "CHANGES_REQUESTED": CHANGES}.get(str(answer.get("reviewDecision")), "")
    said = _said_on_github(answer)
    standing = Standing(
        state,
        bool(answer.get("isDraft")),
        _worst(ends),
        review,
        len(said),
        str(answer.get("headRefOid") or ""),
        answer.get("mergeable") == "CONFLICTING",
    )
    return Answer(standing, *_times(answer, "createdAt", "mergedAt", "closedAt"), tuple(said))


def _is_after(later: Mapping[str, Any], check: Mapping[str, Any]) -> bool:
    """Whether ``later`` is the same check, run once more.

    Runs beside each other may be of two events, a push and a request: both count. One that was cancelled made way.
    """
    names = ("__typename", "name", "workflowName")
    if check.get("__typename") != "CheckRun" or any(later.get(name) != check.get(name) for name in names):
        return False
    begun, again, over = (
        _seconds(one) for one in (check.get("startedAt"), later.get("startedAt"), check.get("completedAt"))
    )
    if begun is None or again is None or over is None or again <= begun:
        return False
    return over <= again or check.get("conclusion") == "CANCELLED"


def _said_on_github(answer: Mapping[str, Any]) -> list[Comment]:
    me = str((answer.get("author") or {}).get("login", ""))
    said = []
    for one in answer.get("comments") or ():
        # A deleted account has no login.
        author = str((one.get("author") or {}).get("login", ""))
        if not one.get("viewerDidAuthor"):
            said.append(Comment(_seconds(one.get("createdAt")), author, "", None, str(one.get("body", ""))))
    for one in answer.get("reviews") or ():
        author = str((one.get("author") or {}).get("login", ""))
        # One without words is told by the decision, or only holds remarks on lines.
        if one.get("body") and author != me:
            said.append(Comment(_seconds(one.get("submittedAt")), author, "", None, str(one["body"])))
    return said


def has_remarks(answer: Mapping[str, Any]) -> bool:
    """Whether somebody has reviewed a request of GitHub's, so that there may be remarks on its lines."""
    return any(one.get("state") != "PENDING" for one in answer.get("reviews") or ())


def remarks_of_github(rows: Sequence[Mapping[str, Any]], me: str) -> tuple[Comment, ...]:
    """Read what ``gh api repos/OWNER/NAME/pulls/N/comments`` says: remarks on lines, but for those of ``me``."""
    return tuple(
        Comment(
            _seconds(row.get("created_at")),
            str((row.get("user") or {}).get("login", "")),
            str(row.get("path", "")),
            row.get("line") or row.get("original_line"),
            str(row.get("body", "")),
        )
        for row in rows
        if (row.get("user") or {}).get("login") != me
    )


def of_gitlab(answer: Mapping[str, Any]) -> Answer:
    """Read what ``glab mr view --output json`` says. Raises :class:`Failed` for a state that we do not know."""
    state = {"opened": OPEN, "locked": OPEN, "merged": MERGED, "closed": CLOSED}.get(str(answer.get("state")))
    if state is None:
        raise Failed(f"glab answered an unknown state: {answer.get('state')!r}")
    pipeline = answer.get("head_pipeline") or answer.get("pipeline") or {}
    standing = Standing(
        state,
        bool(answer.get("draft")),
        _PIPELINES.get(str(pipeline.get("status")), "waiting") if pipeline else "",
        CHANGES if answer.get("detailed_merge_status") == "requested_changes" else "",
        int(answer.get("user_notes_count") or 0),
        str(answer.get("sha") or ""),
        bool(answer.get("has_conflicts")),
    )
    return Answer(standing, *_times(answer, "created_at", "merged_at", "closed_at"), ())


def is_approved_on_gitlab(answer: Mapping[str, Any]) -> bool:
    """Read what ``glab api projects/ID/merge_requests/N/approvals`` says: whether somebody has approved a request."""
    return bool(answer.get("approved_by"))


def notes_of_gitlab(rows: Sequence[Mapping[str, Any]], me: str) -> tuple[Comment, ...]:
    """Read what ``glab api projects/ID/merge_requests/N/notes`` says: what people wrote, but for ``me``."""
    said = []
    for row in rows:
        author = str((row.get("author") or {}).get("username", ""))
        if not row.get("system") and author != me:
            at = row.get("position") or {}
            line = at.get("new_line") or at.get("old_line")
            text = str(row.get("body", ""))
            said.append(Comment(_seconds(row.get("created_at")), author, str(at.get("new_path") or ""), line, text))
    return tuple(said)


def _worst(ends: list[str]) -> str:
    return next((end for end in ("red", "waiting", "green") if end in ends), "")


def _times(answer: Mapping[str, Any], opened: str, *ended: str) -> tuple[float | None, float | None]:
    ends = (_seconds(answer.get(name)) for name in ended)
    return _seconds(answer.get(opened)), next((end for end in ends if end is not None), None)


def _seconds(text: Any) -> float | None:
    """A time as forges write it (ISO 8601) in seconds since 1970; None for none, or for what is no time."""
    if not isinstance(text, str) or text.startswith("0001"):
        return None
    try:
        # Python 3.10 takes no Z.
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
