"""What leaves this machine is searched for secrets: values of variables that look it, credentials, tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from codemods.batch.campaign.settings import Runs
from codemods.batch.errors import Failed, Refused
from codemods.batch.git import Git
from codemods.batch.sources import Source
from codemods.source.secrets import Secrets, tokens

#: What is shorter is found in any text.
_SHORTEST = 6


def require_nothing_secret(
    texts: Mapping[str, str], runs: Runs, sources: Iterable[Source], there: tuple[Git, Path, str] | None = None
) -> None:
    """Raise :class:`Refused` where one of ``texts``, by what each is called, holds a secret.

    Secret are the values of variables of this process, and of those that ``runs`` are given, that look it; what the
    addresses of ``sources`` have of credentials; and what has the shape of a token, unless the commit in ``there``
    (git, a repository, the commit) has it already.
    """
    given = dict(text.split("=", 1) for text in runs.env if "=" in text)
    secrets = Secrets((os.environ, given))
    credentials = _credentials(sources)
    for where, text in texts.items():
        name = secrets.found(text)
        if name:
            raise Refused(f"{where} holds the value of the variable {name}, which looks secret")
        if any(one in text for one in credentials):
            raise Refused(f"{where} holds the credentials of an address of this campaign")
        for token in tokens(text):
            if there is None or not is_there(*there, token):
                raise Refused(f"{where} holds what looks like a token, {token[:4]}…, which the repository has not")


def is_there(git: Git, repository: Path, commit: str, text: str) -> bool:
    """Whether a file of ``commit`` holds ``text``."""
    try:
        git.run("grep", "-q", "-F", "-e", text, commit, cwd=repository)
    except Failed:
        return False
    return True


def _credentials(sources: Iterable[Source]) -> set[str]:
    parts = {
        part
        for one in sources
        for part in (one.password, unquote(one.password), *(word.partition("=")[2] for word in one.query.split("&")))
    }
    return {part for part in parts if len(part) >= _SHORTEST}
