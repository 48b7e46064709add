"""A fork of the user's own, where they may not push: asked of the forge by its client, and made by it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from codemods.batch import forges
from codemods.batch.errors import Failed
from codemods.batch.requests.upstream import remote_refs
from codemods.batch.sources import Source

#: GitLab's level of those who may push: https://docs.gitlab.com/api/access_requests/#valid-access-levels
_DEVELOPER = 30
#: Forges make forks after they have answered; so long they are waited for, in seconds.
_PATIENCE, _PAUSE = 120, 5


def fork_of(client: str, source: Source, cwd: Path) -> str:
    """``owner/name`` of the user's fork of ``source``, made where there is none; empty where they may push to it.

    Raises :class:`Failed` in the forge's words.
    """
    host, path = forges.place_of(source)

    def ask(where: str, kind: type[forges.Json], method: str = "GET") -> forges.Json:
        return forges.api(client, host, where, cwd, kind, method)

    return _of_github(ask, path) if client == "gh" else _of_gitlab(ask, path)


def at(source: Source, path: str) -> Source:
    """The repository ``owner/name`` beside ``source``: the same way to the same host, by the same credentials."""
    old = forges.place_of(source)[1]
    head, _, tail = source.url.rpartition(old)
    return replace(source, url=f"{head}{path}{tail}", local=None)


def wait_for(fork: Source, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until ``fork`` has commits. Raises :class:`Failed`, in git's words, where it never can be reached."""
    for turn in range(_PATIENCE // _PAUSE + 1):
        try:
            if remote_refs(fork):
                return
            why = "it has no commits"
        except Failed as error:
            why = str(error)
        if turn < _PATIENCE // _PAUSE:
            sleep(_PAUSE)
    raise Failed(f"the fork {forges.place_of(fork)[1]} cannot be pushed to: {why}")


class _Ask(Protocol):
    """Asks a forge: where, for an object or a list, and how."""

    def __call__(self, where: str, kind: type[forges.Json], method: str = "GET") -> forges.Json: ...


def _of_github(ask: _Ask, path: str) -> str:
    told = _told(ask(f"repos/{path}", dict), "full_name")
    if (told.get("permissions") or {}).get("push"):
        return ""
    # Where there is one, it is what comes back: https://docs.github.com/en/rest/repos/forks#create-a-fork
    return str(_told(ask(f"repos/{path}/forks", dict, "POST"), "full_name")["full_name"])


def _of_gitlab(ask: _Ask, path: str) -> str:
    where = f"projects/{quote(path, safe='')}"
    told = _told(ask(where, dict), "path_with_namespace")
    rights = (told.get("permissions") or {}).values()
    if any((right or {}).get("access_level", 0) >= _DEVELOPER for right in rights):
        return ""
    owned = ask(f"{where}/forks?owned=true&per_page=100", list)
    mine = owned[0] if owned else ask(f"{where}/fork", dict, "POST")
    return str(_told(mine, "path_with_namespace")["path_with_namespace"])


def _told(answer: Any, name: str) -> dict[str, Any]:
    if not isinstance(answer, dict) or not isinstance(answer.get(name), str):
        raise Failed(f"the forge answered {json.dumps(answer)[:100]}")
    return answer
