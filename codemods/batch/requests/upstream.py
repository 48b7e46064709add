"""Whether repositories have moved since they were cloned: ``git ls-remote``, several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from codemods.batch.campaign.settings import Repository
from codemods.batch.errors import Exhausted, Failed, Refused
from codemods.batch.git import Git
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.sources import Source, redact

#: They wait for networks, not for processors.
_AT_ONCE = 8
_TIMEOUT = 60.0


class Answer(NamedTuple):
    """The commit that a remote has now, empty where it did not say, and then why.

    ``gone`` is the branch that was cloned where there is none of that name any more: the commit is that of the
    remote's own choice by now.
    """

    commit: str
    trouble: str
    gone: str = ""

    def moved(self, base: str) -> str:
        """How the remote has moved since ``base`` was cloned, in a phrase; empty where it has not."""
        if self.gone:
            return f"its branch {self.gone} is gone"
        return f"moved upstream, from {base[:10]} to {self.commit[:10]}" if self.commit not in ("", base) else ""


def look(pairs: Sequence[tuple[Row, Repository]]) -> dict[int, Answer]:
    """Ask the remotes of repositories for the branch (or tag) that each was cloned from, by the number of each."""
    if not pairs:
        return {}
    with ThreadPoolExecutor(min(_AT_ONCE, len(pairs))) as pool:
        answers = pool.map(lambda pair: _ask(*pair), pairs)
        return {row["id"]: answer for (row, _), answer in zip(pairs, answers, strict=True)}


def _ask(row: Row, repository: Repository) -> Answer:
    try:
        refs = remote_refs(repository.source)
    except (Failed, Refused, Exhausted) as error:
        return Answer("", str(error))
    name = repository.ref or row["base_branch"]
    wanted = (f"refs/heads/{name}", f"refs/tags/{name}^{{}}", f"refs/tags/{name}") if name else ("HEAD",)
    commit = next((refs[ref] for ref in wanted if ref in refs), "")
    if not commit and name and not repository.ref and "HEAD" in refs:
        # Renamed, as from master to main. A branch that the campaign asks for is what it wants, or nothing.
        return Answer(refs["HEAD"], "", name)
    return Answer(commit, "" if commit else f"it has no {name or 'HEAD'} any more")


def remote_refs(source: Source) -> dict[str, str]:
    """The refs of a remote: commits by name. Raises :class:`Failed`."""
    git = Git(source)
    out = git.run("ls-remote", *git.far("upload-pack"), "--", source.address, cwd=Path("/"), timeout=_TIMEOUT)
    pairs = (line.split("\t", 1) for line in out.decode("utf-8", "replace").splitlines() if "\t" in line)
    return {name: commit for commit, name in pairs}


def our_branch(ledger: Ledger, row: Row, remote: Source, branch: str) -> tuple[str, str]:
    """Return the commit that ``branch`` of ``remote`` has, and the one that we pushed last; either may be empty.

    What a push left that was killed before the ledger was told is ours too. Raises :class:`Failed`.
    """
    there = remote_refs(remote).get(f"refs/heads/{branch}", "")
    if there and there == row["pushing"] != row["pushed"]:
        ledger.note(row["id"], pushed=there, remote=redact(remote.url))
        return there, there
    return there, row["pushed"]


def require_ours(branch: str, pushed: str, there: str) -> None:
    """Raise :class:`Refused` unless the ``branch`` of a remote, at ``there``, is what we have ``pushed``, or nothing.

    What somebody has added, a reviewer's commit or a merge of the base, is theirs, and stays.
    """
    if there == pushed:
        return
    if not there:
        raise Refused(f"somebody has removed the branch {branch} from the remote")
    if not pushed:
        raise Refused(f"the remote has a branch {branch} that this campaign has not made")
    raise Refused(
        f"somebody has pushed to {branch} ({pushed[:10]} was ours, {there[:10]} is there): it is left as it is"
    )
