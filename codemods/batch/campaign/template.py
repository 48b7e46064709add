"""The campaign file that ``codemod batch init`` writes: every key that matters, with what it means."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from codemods.batch import sources
from codemods.batch.campaign import queries
from codemods.batch.errors import CampaignError
from codemods.source.errors import os_reason

TEMPLATE = """\
# A campaign of `codemod batch`: what is done to many repositories, and how. docs/batch.md says more.
# Keys that are commented out show their defaults.

[campaign]
name = "{name}"
# The one folder that anything is written in: clones, results, the ledger. Relative to this file.
work = "{name}-work"
# What is written beside each branch: "patch", and any form that `codemod check --format` knows.
# artifacts = ["patch", "markdown", "sarif"]

[repositories]
# Where they are. Addresses with credentials work, but are better left to git's credential helper.
urls = [
{urls}    # "https://github.com/owner/name",
    # "git@github.com:owner/name.git",
]
paths = [{paths}]   # repositories on this machine, relative to this file
globs = [{globs}]   # the repositories among the folders that fit, such as "~/courses/2019/*"
{list}   # a file with one address a line; # begins a comment

# One repository on other terms than the rest, in a list above or not:
# [[repository]]
# source = "https://github.com/owner/name"
# ref = "develop"
# skip = "its owners asked us to"
# verify.commands = ["main.py --epochs 1"]

# Several on terms of their own, by their address or owner/name; what stands later counts more:
# [[group]]
# match = ["https://github.com/acme/*", "*/vision-*"]
# verify.python = "3.10"
# verify.requirements = "vision.txt"

[rules]
# As on the command line and in [tool.codemod]: see `codemod rules`.
# select = []
# ignore = []
# exclude = ["third_party/"]
# unsafe = false
# target-torch = "current"

[verify]
# Each repository's scripts are run briefly, original and rewritten, in isolation: see docs/verify.md.
# run = true
# commands = ["train.py --epochs 1"]   # tried where the script exists; else entry scripts are looked for
# entries = 3                          # how many of those are run
# env = []      # variables that runs need, "NAME" or "NAME=VALUE"; by default they get none that could be a secret
# stand-ins = ["data/x.npy=float32:1000,3,32,32"]
# steps = 20
# timeout = 120     # seconds, each run
# reach = 480       # seconds in which ways are looked for to changes that the scripts do not reach; 0: none are
# within = 3600     # seconds after which no run of a repository begins; it is judged by those made
# memory = "8G"     # each run, by default half of the machine's
# device = "auto"   # "cuda": on a cluster, runs ask for a GPU
# requirements = "requirements.txt"   # uv makes an environment of these beside python; "own": of each one's own
# python = ""       # the interpreter that has torch, by default the one that codemod runs in; "3.10": uv finds it
# image = "acme/torch:2"   # instead: run in containers of this image, by docker or podman; python is one in it

[steps]
# Commands of your own, run in the sandbox on each repository that changes; their result stands in the request's text.
# before = ["python -m pytest -q"]
# after = ["python -m pytest -q"]   # one that fails only now has the repository refused

[commit]
# branch = "codemod"
# style = "per-rule"    # or "per-file", or "one"
# author = "Name <name@example.org>"   # by default git's user.name and user.email

[publish]
# "kept": only rewrites that a run has kept. "not-broken": also those that no run reached, and unverified repositories.
# What a run found broken is never published, whatever stands here.
# require = "kept"
# remote = "https://github.com/me/{{name}}.git"   # by default where the repository came from
# fork = false      # true: where you may not push, a fork of yours is made, and published to
# client = "auto"   # "gh", "glab" or "none": who opens the pull requests
# draft = true
# reviewers = []    # asked for each request, such as "ada" or "acme/ml"; a [[repository]] may name others,
# labels = []       # and labels of its own
# throttle = 10     # seconds between two repositories
# per-day = 20      # at most so many in a day,
# hours = "22:00-06:00"   # and only then, in local time
# keep = false      # true: clones stay once their branch is published
# quote-output = false   # true: commits and requests quote what scripts printed, secrets of theirs included

[limits]
# jobs = 8               # repositories at a time, by default one a core
# files = 20000          # more are refused, as are
# file-size = "100M"     # larger files,
# size = "2G"            # larger repositories,
# links = "refuse"       # and links that lead out of the repository; "leave" passes over them
# clone-timeout = 600    # seconds
# rewrite-timeout = 900
# look-again = 86400     # seconds after which `run` asks whether a repository has moved
"""


_TABLES = (b"[campaign]", b"[repositories]")
"""What a campaign's file has one of, at least."""


def write(
    file: Path, named: Sequence[str] = (), *, force: bool = False, say: Callable[[str], None] = lambda _: None
) -> int:
    """Write a campaign file to begin with; return how many repositories it names.

    ``named`` are addresses, paths of repositories, folders with repositories in them, and what a forge is asked for
    (:mod:`codemods.batch.campaign.queries`): these are listed in a file beside, and ``say`` is told where that may not
    be all.
    Raises :class:`CampaignError` where there is a file already (with ``force`` a campaign is written over, and nothing
    else), or one of these is none of that.
    """
    asked = [text for text in named if queries.is_query(text)]
    urls, paths, globs, count = _sorted(file, [text for text in named if text not in asked])
    # In a file of its own: an owner may have thousands, and people strike out some.
    listed = {address: text for text in asked for address in queries.ask(text, say)}
    list_file = file.parent / f"{file.stem}-repositories.txt"
    text = TEMPLATE.format(
        name=file.stem,
        urls="".join(f"    {_quoted(url)},\n" for url in urls),
        paths=", ".join(map(_quoted, paths)),
        globs=", ".join(map(_quoted, globs)),
        list=f"list = {_quoted(list_file.name)}" if listed else '# list = "repositories.txt"',
    )
    for written in (file, list_file) if listed else (file,):
        if written.exists() and not written.is_file():
            what = "is a directory" if written.is_dir() else "is no file"
            raise CampaignError(f"cannot write {written}: {what}")
    if file.exists() and not any(table in file.read_bytes() for table in _TABLES):
        raise CampaignError(f"{file} exists and is no campaign; name another file")
    for written in (file, list_file) if listed else (file,):
        if written.exists() and not force:
            raise CampaignError(f"{written} exists; --force writes over it")
    try:
        if listed:
            list_file.write_text("".join(f"{address}  # {text}\n" for address, text in listed.items()), "utf-8")
        with open(file, "w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise CampaignError(f"{file} exists; --force writes over it") from None
    except OSError as error:
        raise CampaignError(f"cannot write {file}: {os_reason(error)}") from None
    return count + len(listed)


def _sorted(file: Path, named: Sequence[str]) -> tuple[list[str], list[str], list[str], int]:
    """Return addresses, paths and patterns of ``named``, and how many repositories these are."""
    base = Path(os.path.abspath(file)).parent
    urls, paths, globs, count = list[str](), list[str](), list[str](), 0
    for text in named:
        source = sources.parse(text, Path.cwd())
        if source.is_missing:
            raise CampaignError(f"{text}: no such folder")
        if source.local is None:
            # Without whatever credentials it has: the file is for people.
            urls.append(source.url)
            count += 1
        elif sources.is_repository(source.local):
            paths.append(_from(source.local, base))
            count += 1
        else:
            pattern = f"{glob.escape(_from(source.local, base))}/*"
            found = sources.expand(pattern, base)
            if not found:
                raise CampaignError(f"{text}: neither a repository nor a folder with repositories in it")
            globs.append(pattern)
            count += len(found)
    return urls, paths, globs, count


def _from(place: Path, base: Path) -> str:
    return place.relative_to(base).as_posix() if place.is_relative_to(base) else str(place)


def _quoted(text: str) -> str:
    """``text`` as TOML writes it. Raises :class:`CampaignError` for what TOML cannot hold."""
    if not text.isprintable():
        raise CampaignError(f"{text.encode('utf-8', 'backslashreplace').decode()}: a name that no TOML file can hold")
    return json.dumps(text, ensure_ascii=False)
