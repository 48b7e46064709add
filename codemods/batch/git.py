"""git, as other people's repositories are handled with it: it asks nobody, and executes nothing that they bring.

Hooks, filters, smudging, submodules and monitors are off, whatever the configuration of this machine says: of that only
the identity, credential helpers and proxies are taken. Which addresses may be reached is told by
``GIT_ALLOW_PROTOCOL`` (https://git-scm.com/docs/git#Documentation/git.txt-codeGITALLOWPROTOCOLcode).
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.batch.errors import CampaignError, Exhausted, Failed, Refused, is_full
from codemods.batch.sources import Source, redact

_POLL = 0.2  # seconds
_QUICK = 300.0  # seconds, for what reaches no network
_CONFIG = {
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": ":",
    "core.symlinks": "false",
    "core.autocrlf": "false",
    "core.protectNTFS": "true",
    "core.protectHFS": "true",
    "core.askPass": "",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "advice.detachedHead": "false",
    "transfer.credentialsInUrl": "die",
    "init.defaultBranch": "main",
}
#: For git on the far side, where that is a repository of this machine: its hooks and commands are not run there either.
_FAR = {
    "core.hooksPath": os.devnull,
    "core.alternateRefsCommand": ":",
    "core.fsmonitor": "false",
    "receive.denyCurrentBranch": "refuse",
    "receive.autogc": "false",
    "uploadpack.allowFilter": "true",
}
#: Of the user's own configuration: how to prove who they are, and the way out of their network.
_TAKEN = r"^(credential\..*|http\.(.*\.)?(proxy|proxyauthmethod|sslcainfo|sslcapath))$"
#: Answers git with what stands in the environment, so that it stands in no argument, file or message.
_HELPER = '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$CODEMOD_USER" "$CODEMOD_PASSWORD"; }; f'
#: The tree as it is in the repository, byte for byte: these rules go before those that a repository brings.
ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"


@dataclass(frozen=True)
class Git:
    """git for one repository. ``source`` gives credentials and says whether it lies on this machine.

    ``log`` is told each command and what git said, without credentials. ``reaching`` is false for who only reads what
    is there: a repository from which objects are left out names commands that would fetch them.
    """

    source: Source | None = None
    log: Callable[[str], None] = lambda _: None
    reaching: bool = True

    def far(self, service: str) -> tuple[str, ...]:
        """The option that starts ``upload-pack`` or ``receive-pack`` here without what its repository brings.

        None is needed for another machine: what runs there is its own affair.
        """
        if self.source is None or self.source.local is None:
            return ()
        words = [word for key, value in [*_FAR.items(), *_trusted()] for word in ("-c", f"{key}={value}")]
        return (f"--{service}={shlex.join(['env', 'GIT_ALLOW_PROTOCOL=none', executable(), *words, service])}",)

    def run(
        self,
        *arguments: str | os.PathLike[str],
        cwd: Path,
        input: bytes | None = None,
        timeout: float = _QUICK,
        index: Path | None = None,
        growing: tuple[Path, int] | None = None,
    ) -> bytes:
        """Return what ``git`` with ``arguments`` prints. ``growing`` is a folder and the bytes that it may come to.

        Raises :class:`Failed` with git's own last words, or where it takes more than ``timeout`` seconds;
        :class:`Refused` where the folder grows beyond its limit; :class:`Exhausted` where the disk is full.
        """
        command = [executable(), *(os.fspath(argument) for argument in arguments)]
        shown = redact(shlex.join(["git", *command[1:]]), self._secrets)
        self.log(f"$ {shown}")
        environment = self._environment(index)
        try:
            status, out, err = _execute(command, cwd, environment, input, timeout, growing)
        except (FileNotFoundError, NotADirectoryError):
            raise Failed(f"{cwd}: no such folder") from None
        said = redact(err.decode("utf-8", "replace").strip(), self._secrets)
        if said:
            self.log(said)
        name = f"git {next((word for word in command[1:] if not word.startswith('-')), '')}"
        if status == "late":
            raise Failed(f"{name} took more than {timeout:.0f} seconds")
        if status == "large":
            assert growing is not None
            raise Refused(f"larger than {human(growing[1])}, the limit of this campaign")
        if status != 0:
            # What the other side says of its own disk is not about ours.
            if is_full("\n".join(line for line in said.splitlines() if not line.startswith("remote:"))):
                raise Exhausted(f"{name}: no space left on the device")
            raise Failed(f"{name}: {_last_words(said) or f'ended with status {status}'}")
        return out

    @property
    def _secrets(self) -> tuple[str, ...]:
        return self.source.secrets if self.source is not None else ()

    def _environment(self, index: Path | None) -> dict[str, str]:
        # GIT_TRACE and its kin would write headers, passwords among them, into logs.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        if "GIT_SSH_COMMAND" in os.environ:
            environment["GIT_SSH_COMMAND"] = os.environ["GIT_SSH_COMMAND"]
        else:
            environment["GIT_SSH_COMMAND"] = "ssh -oBatchMode=yes"
        local = self.source is not None and self.source.local is not None
        environment |= {
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ALLOW_PROTOCOL": "none" if not self.reaching else "file" if local else "https:http:ssh:git",
            "SSH_ASKPASS_REQUIRE": "never",
        }
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        pairs = [*_CONFIG.items(), *_own_configuration(), *_trusted()]
        if self.source is not None and (self.source.user or self.source.password):
            environment["CODEMOD_USER"] = _plain(self.source.user)
            environment["CODEMOD_PASSWORD"] = _plain(self.source.password)
            # An empty one first: the user's own helpers are not asked, and store nothing.
            pairs += [("credential.helper", ""), ("credential.helper", _HELPER)]
        environment["GIT_CONFIG_COUNT"] = str(len(pairs))
        for number, (key, value) in enumerate(pairs):
            environment[f"GIT_CONFIG_KEY_{number}"] = key
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        return environment


def _execute(
    command: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    data: bytes | None,
    timeout: float,
    growing: tuple[Path, int] | None,
) -> tuple[int | str, bytes, bytes]:
    """Return the status (or ``late`` or ``large``, where it had to be ended), the output and what was said of it."""
    end = time.monotonic() + timeout
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        status: int | str | None = None
        while True:
            try:
                left = end - time.monotonic()
                out, err = process.communicate(data, timeout=max(0.0, min(left, _POLL) if growing else left))
                return (process.returncode if status is None else status), out, err
            except subprocess.TimeoutExpired:
                data = None  # communicate has it
                if status is not None:
                    process.kill()
                elif time.monotonic() >= end:
                    status = "late"
                elif growing is not None and size_of(growing[0]) > growing[1]:
                    status = "large"
                if status is not None:
                    # Asked to go, git ends its own children and removes what it began.
                    process.send_signal(signal.SIGTERM)
                    end = time.monotonic() + 5
            except BaseException:
                process.kill()
                raise


def size_of(folder: Path) -> int:
    """The bytes of all files below ``folder``; what vanishes meanwhile is not counted."""
    total = 0
    stack = [str(folder)]
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


@functools.cache
def executable() -> str:
    """The path of git; raises :class:`CampaignError` where there is none."""
    path = shutil.which("git")
    if path is None:
        raise CampaignError("git is not installed, or not on PATH")
    return path


@functools.cache
def _own_configuration() -> tuple[tuple[str, str], ...]:
    return _configured("--global", _TAKEN)


@functools.cache
def _trusted() -> tuple[tuple[str, str], ...]:
    """The folders of other users that this user, or who set up the machine, has told git to be safe."""
    return _configured("--includes", r"^safe\.directory$")


def _configured(scope: str, pattern: str) -> tuple[tuple[str, str], ...]:
    command = [executable(), "config", scope, "-z", "--get-regexp", pattern]
    answer = subprocess.run(command, capture_output=True, check=False, cwd="/", env=_users())
    entries = answer.stdout.decode("utf-8", "surrogateescape").split("\0")
    return tuple((key, value) for key, _, value in (entry.partition("\n") for entry in entries) if key)


def _users() -> dict[str, str]:
    """The environment in which the user's own configuration is read; nothing is traced."""
    kept = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in kept}


def identity(author: str) -> tuple[str, str]:
    """Who commits: ``author`` as ``Name <mail>``, else what git is configured to, for the user and not a repository.

    Raises :class:`CampaignError` where nobody is.
    """
    if author:
        name, _, mail = author.rpartition(" <")
        return name.strip(), mail.removesuffix(">")
    values = []
    for key, variable in (("user.name", "GIT_AUTHOR_NAME"), ("user.email", "GIT_AUTHOR_EMAIL")):
        value = os.environ.get(variable, "")
        if not value:
            command = [executable(), "config", "--includes", "--get", key]
            # Outside of any repository: whose campaign it is does not depend on where it is started.
            answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env=_users())
            value = answer.stdout.strip()
        if not value:
            raise CampaignError(
                f'who commits? git has no {key}: set it, or write author = "Name <mail>" under [commit]'
            )
        values.append(value.replace("<", "").replace(">", "").replace("\n", " "))
    return values[0], values[1]


def human(size: float) -> str:
    """A size for people: ``2 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "bytes" or size == int(size) else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def _plain(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text).replace("\n", "").replace("\0", "")


def _last_words(said: str) -> str:
    """What git said last; where the other side refused, in its own words."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    refused = [line for line in lines if line.startswith("! [")]
    if refused:
        told = [line.removeprefix("remote:").strip() for line in lines if line.startswith("remote:")]
        words = [*(line for line in told if line), *refused]
        return "; ".join(dict.fromkeys(" ".join(line.split()) for line in words))[:400]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "remote:"))]
    fatal = [line for line in lines if line.startswith("fatal:")]
    line = fatal[0] if fatal else (telling or lines or [""])[-1]
    return line.removeprefix("fatal: ").removeprefix("error: ")[:300]
