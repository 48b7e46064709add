"""Where a repository is: its address, the name that it goes by, and what of the address nobody may read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from codemods.batch.errors import CampaignError
from codemods.source.errors import os_reason

#: What git reaches without running anything of the address's own choice, as ``ext::sh -c ...`` would.
SCHEMES = ("https", "http", "ssh", "git", "file")
#: A plain address, in which nothing is hidden, changed or left out: of thousands most are.
_PLAIN = re.compile(r"https?://[a-z0-9][a-z0-9.-]*(:\d+)?/[\w.~/+-]*", re.ASCII)
_SCP = re.compile(r"(?:(?P<user>[\w.-]+)@)?(?P<host>[\w.-]+|\[[\w:.]+\]):(?P<path>[^:].*)")
_CONTROL = re.compile(r"[\x00-\x1f]")
_USERINFO = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s@'\"]+@", re.IGNORECASE)
_SECRET_QUERY = re.compile(r"([?&][\w.-]*(?:token|key|secret|password|auth)[\w.-]*=)[^&\s'\"]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """A repository's address. ``url`` holds no credentials and may be shown; what it had of them is apart.

    ``local`` is the path of one on this machine.
    """

    url: str
    local: Path | None = None
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    query: str = field(default="", repr=False)

    @property
    def key(self) -> str:
        """What tells repositories apart, whoever asks for them: a digest of the address without credentials."""
        plain = self.url.removesuffix("/").removesuffix(".git")
        return hashlib.sha256(plain.encode("utf-8", "surrogateescape")).hexdigest()[:20]

    @property
    def is_missing(self) -> bool:
        """Whether it is to be on this machine, and is not."""
        return self.local is not None and not self.local.exists()

    @property
    def address(self) -> str:
        """What git is told. Credentials are not in it: they come from the environment."""
        return f"{self.url}?{self.query}" if self.query else self.url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must not be seen anywhere."""
        parts = [unquote(self.password), self.password, self.query, *self.query.split("&")]
        parts += [part.partition("=")[2] for part in self.query.split("&")]
        if self.user and self.user != "git":
            parts += [unquote(self.user), self.user]
        # A text of one or two letters stands in every log; nobody's password does.
        return tuple(dict.fromkeys(part for part in parts if len(part) > 2))

    @property
    def name(self) -> str:
        """``owner+name``, fit for a folder."""
        path = self.local.as_posix() if self.local is not None else _path_of(self.url)
        parts = [part for part in path.removesuffix("/").removesuffix(".git").split("/") if part not in ("", ".", "..")]
        tail = parts[-1:] if self.local is not None else parts[-2:]
        safe = "+".join(re.sub(r"[^A-Za-z0-9._+-]+", "-", part).strip("-.") for part in tail)
        return safe[:100].strip("-.+") or "repository"


def _path_of(url: str) -> str:
    match = None if "://" in url else _SCP.fullmatch(url)
    return match["path"] if match else urlsplit(url).path


def parse(text: str, base: Path) -> Source:
    """Return the source that ``text`` names: a URL, ``user@host:path``, or a path relative to ``base``.

    Raises :class:`CampaignError`, without any credentials in its text, for what git could only reach by executing it,
    and for a URL that is none.
    """
    given = text.strip()
    if not given or _CONTROL.search(given):
        raise CampaignError(f"{redact(text)!r} is not the address of a repository")
    if given.startswith("-"):
        raise CampaignError(f"{redact(given)!r} is not the address of a repository: it would be read as an option")
    if "::" in given.partition("/")[0]:
        raise CampaignError(f"{redact(given.split('::')[0])}:: addresses are not taken: git would execute them")
    if _PLAIN.fullmatch(given):
        return Source(given)
    if "://" in given:
        return _of_url(given)
    match = _SCP.fullmatch(given)
    if match is not None and not (base / given).exists():
        return Source(given)
    return of_path(base / os.path.expanduser(given))


def of_path(path: Path) -> Source:
    """The source that is a repository on this machine."""
    place = Path(os.path.abspath(path))
    return Source(place.as_uri(), place)


def _of_url(given: str) -> Source:
    try:
        parts = urlsplit(given)
        scheme, host = parts.scheme.lower(), parts.hostname
    except ValueError as error:
        raise CampaignError(f"{redact(given)}: not a URL: {error}") from None
    if scheme not in SCHEMES:
        raise CampaignError(f"{redact(given)}: must be one of {', '.join(SCHEMES)}, or a path")
    if scheme == "file":
        if host not in (None, "", "localhost"):
            raise CampaignError(f"{redact(given)}: a file URL names no machine")
        return of_path(Path(unquote(parts.path)))
    if not host:
        raise CampaignError(f"{redact(given)}: names no machine")
    place = parts.netloc.rpartition("@")[2]
    user, password = parts.username or "", parts.password or ""
    if scheme == "ssh":
        # Part of the address: ssh takes no password from it.
        place, user = (f"{user}@{place}" if user else place), ""
    return Source(urlunsplit((scheme, place, parts.path, "", "")), None, user, password, parts.query)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` without ``secrets``, and without whatever looks like credentials in a URL."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _USERINFO.sub(lambda m: m[0] if m[0].endswith("://git@") else f"{m[1]}***@", text)
    return _SECRET_QUERY.sub(r"\1***", text)


def expand(pattern: str, base: Path) -> list[Source]:
    """The folders that fit the glob ``pattern``, relative to ``base``, and are git repositories, in order."""
    import glob

    names = sorted(glob.glob(os.path.expanduser(pattern), root_dir=base, recursive=True))
    return [of_path(base / name) for name in names if is_repository(base / name)]


def is_repository(place: Path) -> bool:
    """Whether ``place`` looks like a git repository, with a work tree or bare."""
    if (place / ".git").exists():
        return True
    return (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir()


def read_list(file: Path) -> list[Source]:
    """The sources in a list file: one a line; empty lines and what follows ``#`` at a word's start are left out.

    Raises :class:`CampaignError` with the line for one that is no address.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CampaignError(f"{file}: byte 0x{error.object[error.start]:02x} is not UTF-8") from None
    except OSError as error:
        raise CampaignError(f"{file}: {os_reason(error)}") from None
    sources = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = re.sub(r"(?:^|\s)#.*", "", line).strip()
        if entry:
            try:
                sources.append(parse(entry, file.parent))
            except CampaignError as error:
                raise CampaignError(f"{file}:{number}: {error}") from None
    return sources
