"""Repositories that a forge is asked for, by its own client: those of an owner, of a topic, of a search."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from codemods.batch import forges
from codemods.batch.errors import CampaignError, Failed

#: As many as GitHub answers a search with.
MOST = 1000


def is_query(text: str) -> bool:
    """Whether ``text`` asks a forge: ``https://HOST/OWNER``, ``topic:NAME`` or ``search:WORDS``."""
    parts = urlsplit(text)
    owner = parts.scheme in ("https", "http") and parts.path.strip("/") and "/" not in parts.path.strip("/")
    return bool(owner) or text.partition(":")[0] in ("topic", "search")


def ask(text: str, say: Callable[[str], None] = lambda _: None) -> list[str]:
    """Return the addresses that ``text``, see :func:`is_query`, comes to, in order; archived ones and forks left out.

    ``say`` is told where there may be more, as forges answer only with so many. Raises :class:`CampaignError` where
    there is no client, it fails, or there are none.
    """
    kind, _, words = text.partition(":")
    try:
        if kind in ("topic", "search"):
            if not shutil.which("gh") and shutil.which("glab"):
                return _checked(text, _of_gitlab(kind, words.strip()), MOST, say)
            client = forges.client_for("gh", "github.com")
            asked = ["--topic", words.strip()] if kind == "topic" else words.split()
            more = ["--archived=false", "--limit", str(MOST), "--json", "url"]
            found = _addresses([client, "search", "repos", *more, *asked])
        else:
            parts = urlsplit(text)
            found = _of_owner(parts.hostname or "", parts.path.strip("/"))
    except Failed as error:
        raise CampaignError(f"{text}: {error}") from None
    return _checked(text, found, MOST if kind in ("topic", "search") else 10 * MOST, say)


def _checked(text: str, found: list[str], most: int, say: Callable[[str], None]) -> list[str]:
    if not found:
        raise CampaignError(f"{text}: no repository was found, or you may not see it")
    if len(found) >= most:
        say(f"{text}: {len(found):,} repositories are listed, and there may be more: ask for less at a time")
    return sorted(found)


def _of_gitlab(kind: str, words: str) -> list[str]:
    """Projects of a topic, or whose name or description has ``words``, at the GitLab that glab knows."""
    asked = urlencode({"topic" if kind == "topic" else "search": words, "archived": "false", "simple": "false"})
    rows = _pages(MOST, lambda page: ["glab", "api", f"projects?{asked}&per_page=100&page={page}"])
    return [str(row["http_url_to_repo"]) for row in rows if not row.get("forked_from_project")]


def _of_owner(host: str, owner: str) -> list[str]:
    client = forges.client_for("auto", host)
    if not client:
        raise Failed(f"only the forge's client can list these: install gh (GitHub) or glab (GitLab), for {host}")
    if client == "gh":
        # It takes no host here: https://cli.github.com/manual/gh_help_environment
        at = ["env", f"GH_HOST={host}"] if host != "github.com" else []
        words = [*at, "gh", "repo", "list", owner, "--no-archived", "--source", "--limit", str(10 * MOST)]
        return _addresses([*words, "--json", "url"])
    at = ["env", f"GITLAB_HOST={host}"] if host != "gitlab.com" else []
    # With what lies in subgroups only where it is told to.
    words = [*at, "glab", "repo", "list", "--group", owner, "--include-subgroups", "--archived=false"]
    rows = _pages(10 * MOST, lambda page: [*words, "--per-page", "100", "--page", str(page), "--output", "json"])
    return [str(row["http_url_to_repo"]) for row in rows]


def _pages(most: int, command: Callable[[int], list[str]]) -> list[dict[str, Any]]:
    """The projects that glab lists page by page, up to ``most``; ``command`` asks for a page."""
    found: list[dict[str, Any]] = []
    for page in range(1, 1 + most // 100):
        rows = _rows(command(page), "http_url_to_repo")
        found += rows
        if len(rows) < 100:
            break
    return found


def _addresses(command: list[str]) -> list[str]:
    return [str(row["url"]) for row in _rows(command, "url")]


def _rows(command: list[str], name: str) -> list[dict[str, Any]]:
    """A client's answer: rows that all have ``name``. Raises :class:`Failed` for anything else."""
    rows = forges.ask_client(command, Path.cwd(), list)
    try:
        return [{**row, name: row[name]} for row in rows]
    except (KeyError, TypeError):
        raise Failed(f"{command[0]} answered {str(rows)[:100]!r}") from None
