"""Pull requests by a forge's own command-line client: GitHub's gh, GitLab's glab. They know who the user is there."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from codemods.batch.errors import Failed
from codemods.batch.sources import Source, redact

_TIMEOUT = 120.0
#: How much of a client's output is shown.
_WORDS = 600
#: GitHub takes no longer text, and nobody reads one.
_LONGEST = 60_000
Json = TypeVar("Json", dict, list)  # type: ignore[type-arg]


@dataclass(frozen=True)
class Request:
    """A pull request to be opened: where (``repository`` is ``owner/name`` with its host), from and to which branch."""

    repository: str
    host: str
    branch: str
    base: str
    title: str
    body: Path
    draft: bool
    fork: str = ""
    """``owner/name`` of the fork that the branch is in, empty for the repository itself."""
    reviewers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """Whose fork that is."""
        return self.fork.rpartition("/")[0]


def place_of(source: Source) -> tuple[str, str]:
    """The host and ``owner/name`` of a repository on a forge; empty for one on this machine."""
    if source.local is not None:
        return "", ""
    if "://" in source.url:
        parts = urlsplit(source.url)
        host, path = parts.hostname or "", parts.path
    else:
        host, _, path = source.url.rpartition("@")[2].partition(":")
    return host, path.strip("/").removesuffix(".git")


def client_for(choice: str, host: str) -> str:
    """The client to be used for ``host``: ``choice``, or by ``auto`` the one that fits and is installed; or none.

    Raises :class:`Failed` for a chosen one that is not installed.
    """
    if choice == "none" or not host:
        return ""
    if choice == "auto":
        fitting = "glab" if "gitlab" in host else "gh" if "github" in host else ""
        return fitting if fitting and shutil.which(fitting) else ""
    if shutil.which(choice) is None:
        raise Failed(f"{choice} is not installed")
    return choice


def create_command(client: str, request: Request) -> list[str]:
    """The command that opens ``request``."""
    head = f"{request.owner}:{request.branch}" if request.owner else request.branch
    draft = ["--draft"] if request.draft else []
    base = ["--base" if client == "gh" else "--target-branch", request.base] if request.base else []
    more = [word for name in request.reviewers for word in ("--reviewer", name)]
    more += [word for name in request.labels for word in ("--label", name)]
    more += draft
    if client == "gh":
        words = ["gh", "pr", "create", "--repo", _named(request), "--head", head, *base]
        return [*words, "--title", request.title, "--body-file", str(request.body), *more]
    fork = ["--head", request.fork] if request.fork else []
    words = ["glab", "mr", "create", "--repo", _named(request), "--source-branch", request.branch, *fork, *base]
    return [*words, "--title", request.title, "--description", text_of(request.body), "--yes", *more]


def shown(client: str, request: Request) -> str:
    """The command for people, without the text of a whole request in it."""
    words = create_command(client, request)
    if client == "glab":
        words[words.index("--description") + 1] = f"@{request.body}"
    return shlex.join(words)


def open_request(client: str, request: Request, cwd: Path) -> str:
    """Open ``request``, unless it is open already; return its address. Raises :class:`Failed`."""
    found = _existing(client, request, cwd)
    if found:
        return found
    with body_file(request.body, cwd) as body:
        out = run_client(create_command(client, replace(request, body=body)), cwd)
    lines = [word for word in out.split() if word.startswith(("https://", "http://"))]
    return lines[-1] if lines else out.strip()[-300:]


def _existing(client: str, request: Request, cwd: Path) -> str:
    if client == "gh":
        # gh takes no owner here: requests from other forks with a branch of the same name are told apart by it.
        words = ["gh", "pr", "list", "--repo", _named(request), "--head", request.branch, "--state", "open"]
        for row in ask_client([*words, "--json", "url,headRepositoryOwner"], cwd, list):
            owner = (row.get("headRepositoryOwner") or {}).get("login", "")
            if not request.owner or owner.lower() == request.owner.lower():
                return str(row.get("url", ""))
        return ""
    words = ["glab", "mr", "list", "--repo", _named(request), "--source-branch", request.branch, "--output", "json"]
    rows = ask_client(words, cwd, list)
    return str(rows[0].get("web_url", "")) if rows else ""


def _named(request: Request) -> str:
    """The repository as the client takes it: gh ``host/owner/name``, glab a whole address for another host."""
    if request.host in ("github.com", "gitlab.com"):
        return request.repository
    return f"https://{request.host}/{request.repository}"


def ask_client(command: Sequence[str], cwd: Path, kind: type[Json]) -> Json:
    """What a forge's client answers, in JSON: an object or a list. Raises :class:`Failed` for anything else."""
    text = run_client(list(command), cwd)
    try:
        answer = json.loads(text or "[]")
    except ValueError:
        answer = None
    if not isinstance(answer, kind):
        client = next(word for word in command if word in ("gh", "glab"))
        raise Failed(f"{client} answered {text.strip()[:100]!r}")
    return answer


def api(client: str, host: str, where: str, cwd: Path, kind: type[Json], method: str = "GET") -> Json:
    """What the interface of a forge, reached by its client, answers at ``where``; raises as :func:`ask_client`."""
    return ask_client([client, "api", "--hostname", host, "--method", method, where], cwd, kind)


@contextlib.contextmanager
def body_file(body: Path, cwd: Path) -> Iterator[Path]:
    """A file with the text of a request, no longer than forges take it."""
    if body.stat().st_size <= _LONGEST:
        yield body
        return
    shorter = cwd / "scratch-body.md"
    try:
        shorter.write_text(text_of(body), encoding="utf-8")
        yield shorter
    finally:
        shorter.unlink(missing_ok=True)


def text_of(body: Path) -> str:
    """The text of a request, no longer than forges take it."""
    text = body.read_text(encoding="utf-8", errors="replace")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "\n\n(the rest is left out)\n"


def run_client(command: list[str], cwd: Path) -> str:
    """What a forge's client prints. Raises :class:`Failed` with what it says where it fails, without credentials."""
    environment = {**os.environ, "GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "NO_COLOR": "1", "CLICOLOR": "0"}
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} took more than {_TIMEOUT:.0f} seconds") from None
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        said = redact(" ".join((done.stderr.strip() or done.stdout).split()))
        # The refusal stands at the beginning, or behind the warnings.
        said = said if len(said) <= _WORDS else f"{said[: _WORDS // 2]} … {said[-_WORDS // 2 :]}"
        raise Failed(f"{' '.join(command[:3])}: {said or f'status {done.returncode}'}")
    return done.stdout
