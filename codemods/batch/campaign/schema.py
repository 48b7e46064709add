"""The keys of a campaign file: the values that each takes, and the message for a wrong one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from codemods.batch.campaign import windows
from codemods.batch.errors import CampaignError
from codemods.source.config import KEYS
from codemods.source.keys import FLAG, NATURAL, Key, KeyProblem, nearest, one_of, read_table, size, text, texts
from codemods.source.options import DEVICES, ISOLATIONS, STYLES

_AUTHOR = re.compile(r"[^<>\n]+ <[^<>\s]+>")


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TypeError
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 10**9:
        raise TypeError
    return float(value)


def _branch(value: Any) -> str:
    name = text(value)
    # What `git check-ref-format --branch` refuses, without starting git for it.
    bad = re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(/|$)|\.$|(^|/)\.|^-|^/|/$|^@$|^HEAD$", name)
    if bad:
        raise ValueError
    return name


def _author(value: Any) -> str:
    name = text(value)
    if not _AUTHOR.fullmatch(name):
        raise ValueError
    return name


def _stand_ins(value: Any) -> tuple[str, ...]:
    from verify.running.standins import parse

    for one in texts(value):
        parse(one)
    return texts(value)


def _variables(value: Any) -> tuple[str, ...]:
    if not all(one.partition("=")[0] for one in texts(value)):
        raise ValueError
    return texts(value)


def _image(value: Any) -> str:
    name = text(value)
    # It is a word of a command line, among options.
    if not re.fullmatch(r"[\w.:/@-]+", name, re.ASCII) or name.startswith("-"):
        raise ValueError
    return name


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


TEXT = Key("a text", text)
TEXTS = Key("a list of texts", texts)
COUNT = Key("a whole number from 1", _count)
SECONDS = Key("a number of seconds", _seconds)
SIZE = Key('a size such as "500M" or "8G"', size)

_RUN: Mapping[str, Key] = {
    "commands": TEXTS,
    "folder": TEXT,
    "entries": NATURAL,
    "stand-ins": Key('a list of stand-ins, as "data/x.npy=float32:1000,3,32,32"', _stand_ins),
    "steps": COUNT,
    "batches": NATURAL,
    "timeout": SECONDS,
    "reach": SECONDS,
    "within": SECONDS,
    "device": one_of(*DEVICES),
    "python": TEXT,
    "image": Key("the name of a container's image", _image),
    "requirements": Key('the path of a file, or "own"', text),
    "memory": SIZE,
    "memory-limit": SIZE,
    "disk": SIZE,
    "isolation": one_of(*ISOLATIONS),
    "env": Key('a list of variables, as "WANDB_MODE=offline" or "DATA_ROOT"', _variables),
    "expose": TEXTS,
}

_RULES = (
    *("select", "ignore", "unsafe", "exclude"),
    *("hidden-state", "total-style", "no-grad-style", "target-torch", "python2"),
)

SECTIONS: Mapping[str, Mapping[str, Key]] = {
    "campaign": {"name": TEXT, "work": TEXT, "artifacts": TEXTS},
    "repositories": {"urls": TEXTS, "paths": TEXTS, "globs": TEXTS, "list": TEXT},
    # One home for what these may be: the settings of every other command.
    "rules": {name: KEYS[name] for name in _RULES},
    "steps": {"before": TEXTS, "after": TEXTS},
    "verify": {"run": FLAG, **_RUN},
    "commit": {
        "branch": Key("the name of a branch", _branch),
        "style": one_of(*STYLES),
        "author": Key('a text like "Name <name@example.org>"', _author),
    },
    "publish": {
        "remote": TEXT,
        "fork": FLAG,
        "require": one_of("kept", "not-broken"),
        "client": one_of("auto", "gh", "glab", "none"),
        "draft": FLAG,
        "base": TEXT,
        "title": TEXT,
        "throttle": SECONDS,
        "quote-output": FLAG,
        "reviewers": TEXTS,
        "labels": TEXTS,
        "per-day": COUNT,
        "hours": Key('hours such as "22:00-06:00"', lambda value: windows.parse(text(value))),
        "keep": FLAG,
    },
    "limits": {
        "jobs": COUNT,
        "files": COUNT,
        "file-size": SIZE,
        "size": SIZE,
        "links": one_of("refuse", "leave"),
        "clone-timeout": SECONDS,
        "rewrite-timeout": SECONDS,
        "look-again": SECONDS,
    },
}
REPOSITORY: Mapping[str, Key] = {
    "source": TEXT,
    "ref": Key("the name of a branch or tag", _branch),
    "skip": Key("a text that says why", text),
    "reviewers": TEXTS,
    "labels": TEXTS,
    "verify": Key("a table", _table),
}
#: Of a group: how its repositories are told, and what is otherwise for them.
GROUP: Mapping[str, Key] = {
    "match": TEXTS,
    **{name: key for name, key in REPOSITORY.items() if name not in ("source", "skip")},
}


class Checked(NamedTuple):
    """A campaign file's tables: ``sections`` by name, and those that may repeat; keys with underscores."""

    sections: dict[str, dict[str, Any]]
    repositories: list[dict[str, Any]]
    groups: list[dict[str, Any]]


def check(file: str, data: Mapping[str, Any]) -> Checked:
    """Return the tables of a campaign file.

    Raises :class:`CampaignError` for the first thing that is wrong, with the nearest key that there is.
    """
    sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    several: dict[str, list[dict[str, Any]]] = {"repository": [], "group": []}
    for name, table in data.items():
        if name in several:
            if not isinstance(table, list):
                raise CampaignError(f"{file}: a {name} of its own is a table [[{name}]], with two brackets")
            several[name] = [_one_of_several(file, name, number, entry) for number, entry in enumerate(table, 1)]
        elif name not in SECTIONS:
            raise CampaignError(f"{file}: unknown table [{name}]{nearest(name, (*SECTIONS, *several))}")
        elif not isinstance(table, dict):
            raise CampaignError(f"{file}: {name} must be a table, [{name}]")
        else:
            sections[name] = _section(file, f"[{name}]", table, SECTIONS[name])
    return Checked(sections, several["repository"], several["group"])


def _one_of_several(file: str, kind: str, number: int, entry: Any) -> dict[str, Any]:
    where = f"[[{kind}]] number {number}"
    if not isinstance(entry, dict):
        raise CampaignError(f"{file}: {where} must be a table")
    checked = _section(file, where, entry, REPOSITORY if kind == "repository" else GROUP)
    if kind == "repository" and "source" not in checked:
        raise CampaignError(f"{file}: {where} needs a source: a URL or a path")
    if kind == "group" and not checked.get("match"):
        raise CampaignError(f"{file}: {where} needs match: patterns of addresses or names")
    checked["verify"] = _section(file, f"verify of {where}", checked.get("verify", {}), SECTIONS["verify"])
    return checked


def _section(file: str, where: str, table: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    try:
        return read_table(where, table, keys, _shown)
    except KeyProblem as error:
        raise CampaignError(f"{file}: {error}") from None


def _shown(value: Any) -> str:
    from codemods.batch.sources import redact

    text = redact(repr(value))
    return text if len(text) <= 80 else text[:77] + "..."
