"""A campaign as its file describes it: which repositories, which rules, how to verify, commit and publish."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from codemods.batch import sources
from codemods.batch.campaign import schema
from codemods.batch.campaign.windows import Hours
from codemods.batch.errors import CampaignError
from codemods.batch.sources import Source
from codemods.source.files import is_there
from codemods.source.options import Options
from codemods.source.toml import NotToml, read_toml

#: What ``requirements`` says for those that each repository has itself.
OWN = "own"
_VERSION = re.compile(r"3\.\d{1,2}(\.\d{1,2})?")
ARTIFACTS = ("patch", "markdown", "sarif")


def is_version(python: str) -> bool:
    """Whether ``python`` of a campaign is a version, such as ``3.10``, and no path or command."""
    return _VERSION.fullmatch(python) is not None


@dataclass(frozen=True)
class Runs:
    """How a repository is verified; see docs/verify.md for what the settings of a run mean.

    ``commands`` are tried as they stand, each where its script exists; without any, up to ``entries`` entry scripts are
    looked for. ``folder`` is where commands are started, relative to the repository. ``requirements`` are lines as pip
    takes them, for an environment that is made beside ``python``; ``own_requirements``: those of the repository;
    ``image``: of the containers in which it is run, instead, with an interpreter of theirs.
    ``reach``: seconds in which a way is looked for to what the commands do not reach, None for verify's own choice;
    ``within``: seconds after which no run of the repository begins.
    """

    run: bool = True
    commands: tuple[str, ...] = ()
    folder: str = "."
    entries: int = 3
    stand_ins: tuple[str, ...] = ()
    steps: int = 20
    batches: int | None = None
    timeout: float = 120.0
    device: str = "auto"
    python: str = ""
    image: str = ""
    memory: int | None = None
    memory_limit: int | None = None
    disk: int | None = None
    isolation: str = "auto"
    env: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    own_requirements: bool = False
    reach: float | None = None
    within: float = 3600.0


@dataclass(frozen=True)
class Steps:
    """Commands of the campaign's own, as a shell takes them, ``before`` and ``after`` a repository is rewritten."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commits:
    """The branch that a repository is rewritten on; a commit a ``rule``, a ``file`` or ``one`` for all."""

    branch: str = "codemod"
    style: str = "per-rule"
    author: str = ""


@dataclass(frozen=True)
class Publishing:
    """Where branches go. ``remote``: empty for where the repository came from, else an address with ``{name}``.

    With ``fork`` it is a fork of the user's where they may not push to where it came from.

    ``require`` says what may be published: ``kept``: only rewrites that a run has kept; ``not-broken``: all of a
    repository where nothing is known to break. ``throttle`` is in seconds between two repositories. With
    ``quote_output`` texts that leave this machine quote what scripts printed and raised; else only the errors' types.
    ``per_day`` and ``hours`` say how much is published in a day, and when. With ``keep`` clones stay once their branch
    is published.
    """

    remote: str = ""
    fork: bool = False
    require: str = "kept"
    client: str = "auto"
    draft: bool = True
    base: str = ""
    title: str = ""
    throttle: float = 10.0
    quote_output: bool = False
    reviewers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    per_day: int | None = None
    hours: Hours | None = None
    keep: bool = False


@dataclass(frozen=True)
class Limits:
    """What a repository may be and take; sizes in bytes, times in seconds. ``jobs``: None for one a core."""

    jobs: int | None = None
    files: int = 20_000
    file_size: int = 100 << 20
    size: int = 2 << 30
    links: str = "refuse"
    clone_timeout: float = 600.0
    rewrite_timeout: float = 900.0
    look_again: float = 86_400.0


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of the campaign: its source, and what of the campaign is otherwise for it.

    ``skip`` says why it is left out; ``ref`` is the branch or tag to start from, empty for the remote's own choice.
    ``reviewers`` and ``labels`` are those of its request, None for the campaign's.
    """

    source: Source
    runs: Runs
    ref: str = ""
    skip: str = ""
    reviewers: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Campaign:
    """A campaign file, read and checked. ``work`` is the one folder that anything is written in."""

    file: Path
    name: str
    work: Path
    repositories: tuple[Repository, ...]
    options: Options
    exclude: tuple[str, ...] = ()
    runs: Runs = field(default_factory=Runs)
    commits: Commits = field(default_factory=Commits)
    publishing: Publishing = field(default_factory=Publishing)
    limits: Limits = field(default_factory=Limits)
    artifacts: tuple[str, ...] = ARTIFACTS
    steps: Steps = field(default_factory=Steps)
    idle: tuple[str, ...] = ()
    """The patterns, of globs and groups, that no repository fits, each as people would look for it."""

    def fingerprint(self, repository: Repository) -> str:
        """What the results of ``repository`` depend on besides its code, so that a change of it is noticed."""
        known = self._fingerprints.get((repository.runs, repository.ref))
        if known is None:
            options, commits = self._settled
            settled = [options, self.exclude, _told(repository.runs), commits, self.artifacts]
            if self.publishing.quote_output:
                settled.append("quote-output")
            if self.steps != Steps():
                settled.append(asdict(self.steps))
            text = json.dumps([*settled, repository.ref, self.publishing.require], sort_keys=True)
            known = hashlib.sha256(text.encode()).hexdigest()[:16]
            self._fingerprints[repository.runs, repository.ref] = known
        return known

    @functools.cached_property
    def by_key(self) -> dict[str, Repository]:
        """The repositories by the keys of their sources."""
        return {one.source.key: one for one in self.repositories}

    @functools.cached_property
    def _settled(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return asdict(self.options), asdict(self.commits)

    @functools.cached_property
    def _fingerprints(self) -> dict[tuple[Runs, str], str]:
        # Ten thousand repositories mostly share their settings.
        return {}


def read(file: Path) -> Campaign:
    """Read and check the campaign file ``file``.

    Raises :class:`CampaignError` for a file that cannot be read or is not TOML, an unknown key, a value that does not
    fit, an unknown rule, and an address that is none. Nothing is cloned or looked for on a network.
    """
    from codemods.batch.artifacts import unknown
    from codemods.rules import UnknownRule, require_known

    tables, singles, groups = schema.check(str(file), _load(file))
    base = Path(os.path.abspath(file)).parent
    campaign, rules = tables["campaign"], dict(tables["rules"])
    exclude = rules.pop("exclude", ())
    options = Options(**rules)
    try:
        require_known((*options.select, *options.ignore))
    except UnknownRule as error:
        raise CampaignError(f"{file}: {error}") from None
    runs = Runs(**_placed(tables["verify"], base))
    name = campaign.get("name") or file.stem
    work = base / os.path.expanduser(campaign.get("work") or f"{file.stem}-work")
    if os.path.abspath(work) in (str(base), os.path.expanduser("~"), "/"):
        raise CampaignError(f"{file}: work must be a folder that is used for nothing else, not {work}")
    if tables["publish"].get("remote") and tables["publish"].get("fork"):
        raise CampaignError(f"{file}: [publish] has remote and fork: where branches go is one or the other")
    repositories, idle = _repositories(file, base, tables["repositories"], (singles, groups), runs)
    artifacts = campaign.get("artifacts", ARTIFACTS)
    if wrong := unknown(artifacts):
        raise CampaignError(f"{file}: artifacts: {wrong}")
    return Campaign(
        file=Path(os.path.abspath(file)),
        name=name,
        work=Path(os.path.abspath(work)),
        repositories=repositories,
        idle=idle,
        options=options,
        exclude=tuple(exclude),
        runs=runs,
        commits=Commits(**tables["commit"]),
        publishing=Publishing(**tables["publish"]),
        limits=Limits(**tables["limits"]),
        artifacts=artifacts,
        steps=Steps(**tables["steps"]),
    )


def _load(file: Path) -> dict[str, Any]:
    try:
        return read_toml(file)
    except NotToml as error:
        hint = "" if is_there(file) else f"; codemod batch init {file} writes one"
        raise CampaignError(f"{error}{hint}") from None


def _repositories(
    file: Path,
    base: Path,
    table: Mapping[str, Any],
    others: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    runs: Runs,
) -> tuple[tuple[Repository, ...], tuple[str, ...]]:
    """The repositories that ``table`` and the ``[[repository]]`` tables name, and the patterns that none fits."""
    singles, groups = others
    found: dict[str, Repository] = {}
    try:
        several = [sources.parse(text, base) for text in (*table.get("urls", ()), *table.get("paths", ()))]
        fitting = {pattern: sources.expand(pattern, base) for pattern in table.get("globs", ())}
        several += itertools.chain(*fitting.values())
        if "list" in table:
            several += sources.read_list(base / os.path.expanduser(table["list"]))
        named = [(sources.parse(entry["source"], base), entry) for entry in singles]
    except CampaignError as error:
        text = str(error)
        raise CampaignError(text if text.startswith(str(base)) else f"{file}: {text}") from None
    own = [_Group(_patterns(one["match"], base), {**one, "verify": _placed(one["verify"], base)}) for one in groups]
    for source in several:
        key = source.key
        if key not in found:
            found[key] = _grouped(Repository(source, runs), own)
    for source, entry in named:
        # One that is in a list already keeps its place there, and the credentials that either has.
        known = found.get(source.key) or _grouped(Repository(source, runs), own)
        source = known.source if not source.secrets else source
        placed = {**entry, "verify": _placed(entry["verify"], base)}
        found[source.key] = replace(_with(known, placed), source=source, skip=entry.get("skip", ""))
    idle = [f"globs: {pattern}" for pattern, these in fitting.items() if not these]
    idle += [f"[[group]] number {n}: {', '.join(one.patterns)}" for n, one in enumerate(own, 1) if not one.members]
    return tuple(found.values()), tuple(idle)


@dataclass
class _Group:
    """A ``[[group]]``: the patterns of its repositories, what it says of them, and how many there are."""

    patterns: list[str]
    entry: Mapping[str, Any]
    members: int = 0


def _with(repository: Repository, entry: Mapping[str, Any]) -> Repository:
    """``repository`` on the terms of a table of its own, or of a group."""
    changed = {name: entry[name] for name in ("reviewers", "labels", "ref") if name in entry}
    return replace(repository, runs=replace(repository.runs, **entry["verify"]), **changed)


def _grouped(repository: Repository, groups: Sequence[_Group]) -> Repository:
    """``repository`` with the settings of its groups; the last group wins."""
    if not groups:
        return repository
    plain = repository.source.url.removesuffix("/").removesuffix(".git")
    names = (plain, repository.source.name.replace("+", "/"))
    for group in groups:
        if any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in group.patterns):
            group.members += 1
            repository = _with(repository, group.entry)
    return repository


def _patterns(texts: Sequence[str], base: Path) -> list[str]:
    """Patterns of addresses: a path (with ``~``, ``./`` or ``/`` at its beginning) is one of a file's address."""
    made = []
    for text in texts:
        if text.startswith(("~", "./", "../", "/")):
            text = Path(os.path.abspath(base / os.path.expanduser(text))).as_uri().replace("%2A", "*")
            text = text.replace("%3F", "?").replace("%5B", "[").replace("%5D", "]")
        made.append(text.removesuffix("/").removesuffix(".git"))
    return made


#: Settings of later releases: where they are not used, what was done without them is not stale.
_LATER = ("image", "requirements", "own_requirements", "reach", "within")


def _told(runs: Runs) -> dict[str, Any]:
    return {name: value for name, value in asdict(runs).items() if name not in _LATER or value != getattr(Runs, name)}


def _placed(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return ``table`` with its paths as ones from the folder of the campaign; an interpreter's bare name stays."""
    placed = dict(table)
    python = os.path.expanduser(table.get("python", ""))
    if os.path.dirname(python):
        placed["python"] = os.path.abspath(base / python)
    wanted = placed.pop("requirements", "")
    if wanted:
        placed["own_requirements"] = wanted == OWN
        placed["requirements"] = () if wanted == OWN else _lines(base / os.path.expanduser(wanted))
    if table.get("image"):
        if wanted or is_version(python):
            raise CampaignError(
                "[verify]: image goes with neither requirements nor a version of python: its own are used"
            )
        # What a table further away says of an environment is set aside, as an image is by one that is nearer.
        placed = {"python": "", "requirements": (), "own_requirements": False, **placed}
    elif wanted or is_version(python):
        placed.setdefault("image", "")
    if "expose" in table:
        placed["expose"] = tuple(os.path.abspath(base / os.path.expanduser(path)) for path in table["expose"])
    return placed


def _lines(file: Path) -> tuple[str, ...]:
    try:
        return tuple(file.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise CampaignError(f"requirements in [verify]: {file}: {error}") from None
