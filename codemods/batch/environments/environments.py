"""An interpreter with what a repository requires: made by uv beside the torch at hand, once, and kept.

Only wheels are installed, so that nothing of a package is executed by it. The packages of the interpreter that has
torch are seen through: what a repository asks of torch itself is set aside, and said.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemods.batch.errors import CampaignError, Failed
from codemods.batch.sources import redact
from codemods.source.home import needs
from codemods.source.writing import replace_file

if TYPE_CHECKING:
    from packaging.requirements import Requirement

TIMEOUT = 900.0
_FACTS, _LOCK = "environment.json", "lock.txt"
#: torch and what is built for one release of it: another would not fit the torch at hand.
_AT_HAND = ("torch", "torchvision", "torchaudio", "triton", "functorch", "torchtext", "torchdata")
#: What torch brings along.
_OF_TORCH = re.compile(r"torch|triton|nvidia-.*|cuda-.*")
_OFFLINE = re.compile(r"failed to fetch|error sending request|dns error|could not connect|network", re.IGNORECASE)
_QUESTION = """
import json, os, platform, sys, sysconfig
from importlib import metadata
standard = sysconfig.get_path("stdlib")
places = [path for path in sys.path if os.path.isdir(path) and path not in (standard, standard + "/lib-dynload")]
found = {}
for one in metadata.distributions():
    name = one.metadata["Name"]
    if name:
        found.setdefault(name.lower().replace("_", "-").replace(".", "-"), one.version)
print(json.dumps({"version": platform.python_version(), "prefix": sys.prefix, "packages": found,
    "places": places}))
"""
_NEEDED = needs("`requirements` under [verify]", "uv and packaging", "environments")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Environment:
    """An interpreter, and what was done to the requirements it was made of, a sentence each."""

    python: str
    told: tuple[str, ...] = ()


def uv() -> str:
    """The path of uv, beside this interpreter or on PATH; raises :class:`CampaignError` where there is none."""
    with contextlib.suppress(ImportError):
        from uv import find_uv_bin

        with contextlib.suppress(FileNotFoundError):
            return str(find_uv_bin())
    path = shutil.which("uv")
    if path is None:
        raise CampaignError(_NEEDED)
    return path


def require_uv() -> None:
    """Raise :class:`CampaignError` where this machine has no uv, or cannot read requirements."""
    uv()
    _parsed((), [])


def at_hand(python: str) -> dict[str, str]:
    """The versions of the packages that an interpreter has, by name. Raises :class:`Failed` for one that is none."""
    packages: dict[str, str] = _ask(python)["packages"]
    return packages


def names_of(lines: Sequence[str]) -> set[str]:
    """The names of the packages that ``lines`` require, as an index has them."""
    return {canonical(requirement.name) for requirement in _parsed(lines, [])}


def ready(python: str, lines: Sequence[str], folder: Path, cache: Path, tell: Tell = lambda _: None) -> Environment:
    """Return the environment of ``lines`` beside the packages of ``python``, made in ``folder`` where there is none.

    Several processes may ask at once: one makes it. Raises :class:`Failed` in uv's words where it cannot be made, and
    :class:`CampaignError` where there is no uv.
    """
    base = _ask(python)
    named = hashlib.sha256(json.dumps([base["version"], base["prefix"], base["packages"], sorted(lines)]).encode())
    place = folder / named.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{place.name}.lock"):
        if not (place / _FACTS).is_file():
            tell("making its environment")
            shutil.rmtree(place, ignore_errors=True)
            # Its path stands in its own files, so that it is made where it will be; its facts come last.
            try:
                told = _make(python, base, lines, place, cache)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
            facts = {"told": told, "torch": base["packages"].get("torch", "")}
            replace_file(place / _FACTS, json.dumps(facts).encode())
        told = json.loads((place / _FACTS).read_text(encoding="utf-8"))["told"]
    return Environment(str(_interpreter(place)), tuple(told))


def _make(python: str, base: Mapping[str, Any], lines: Sequence[str], place: Path, cache: Path) -> list[str]:
    told: list[str] = []
    at_hand: dict[str, str] = base["packages"]
    wanted = _parsed(lines, told)
    _uv(["venv", "--quiet", "--no-project", "--python", python, str(place)], cache)
    packages = next((place / "lib").glob("python*/site-packages"))
    # Behind its own: what is required goes before what is at hand.
    (packages / "_at_hand.pth").write_text("".join(f"{path}\n" for path in base["places"]), encoding="utf-8")
    asked = [one for one in wanted if not (canonical(one.name) in _AT_HAND and canonical(one.name) in at_hand)]
    chosen = _resolved(asked, Resolver(place, cache, at_hand), told) if asked else {}
    own = {name: version for name, version in chosen.items() if at_hand.get(name, "").partition("+")[0] != version}
    if "torch" in at_hand:
        own = {name: version for name, version in own.items() if not _OF_TORCH.fullmatch(name)}
    for one in wanted:
        name = canonical(one.name)
        version = own.get(name, at_hand.get(name, ""))
        if version and not one.specifier.contains(version.partition("+")[0], prereleases=True):
            told.append(f"{one.name}{one.specifier} is asked for, {version} is taken")
    if own:
        lock = place / _LOCK
        lock.write_text("".join(f"{name}=={version}\n" for name, version in sorted(own.items())), encoding="utf-8")
        _uv([*_pip("install", place), "--no-deps", "--requirement", str(lock)], cache)
    return [*told, *_defused(packages)]


@dataclass(frozen=True)
class Resolver:
    """uv's resolver for the interpreter in ``place``; versions that are ``at_hand`` are preferred."""

    place: Path
    cache: Path
    at_hand: Mapping[str, str]

    def resolve(self, wanted: Sequence[str]) -> dict[str, str]:
        """Versions by name that fit ``wanted`` together; raises :class:`Failed`."""
        kept = [f"{name}=={self.at_hand[name].partition('+')[0]}" for name in _AT_HAND if name in self.at_hand]
        # Of another index, or of one's own making: then nothing is asked that depends on it.
        never = [f"{text.partition('=')[0]}; python_version < '0'" for text in kept]
        try:
            return self._resolve(wanted, kept)
        except Failed:
            return self._resolve(wanted, never)

    def alone(self, wanted: str) -> bool:
        """Whether there is a wheel for ``wanted`` at all."""
        try:
            self.resolve([wanted])
        except Failed:
            return False
        return True

    def _resolve(self, wanted: Sequence[str], overrides: Sequence[str]) -> dict[str, str]:
        asked, over, lock = (self.place / f"{name}.txt" for name in ("asked", "overrides", "resolved"))
        asked.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        over.write_text("\n".join(overrides) + "\n", encoding="utf-8")
        # uv keeps to what such a file says already, as far as it fits.
        known = (f"{name}=={version}" for name, version in self.at_hand.items() if "+" not in version)
        lock.write_text("\n".join(known) + "\n", encoding="utf-8")
        words = [*_pip("compile", self.place), "--no-header", "--no-annotate", "--override", str(over)]
        _uv([*words, "--output-file", str(lock), str(asked)], self.cache)
        pairs = (line.partition(";")[0].split("==") for line in lock.read_text(encoding="utf-8").splitlines())
        return {canonical(pair[0].partition("[")[0]): pair[1].strip() for pair in pairs if len(pair) == 2}


def _resolved(asked: Sequence[Requirement], resolver: Resolver, told: list[str]) -> dict[str, str]:
    """Versions for ``asked``: as they stand; else without the pins that nothing fits; else without any pin.

    What there is not at all is left out, and told.
    """
    texts = [str(one) for one in asked]
    with contextlib.suppress(Failed):
        return resolver.resolve(texts)
    known = {}
    for one in asked:
        fitting = next((text for text in (str(one), _relaxed(one)) if resolver.alone(text)), "")
        if fitting:
            known[fitting] = _relaxed(one)
        else:
            told.append(f"left out {one.name}: no wheel of it fits this interpreter")
    if not known:
        return {}
    with contextlib.suppress(Failed):
        return resolver.resolve(list(known))
    return resolver.resolve(list(known.values()))


def _relaxed(one: Requirement) -> str:
    """A requirement without upper bounds; a pin is a lower bound."""
    extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
    parts = []
    for each in one.specifier:
        if each.operator in ("==", "===", "~="):
            parts.append(f">={each.version.removesuffix('.*').partition('+')[0]}")
        elif each.operator in (">", ">=", "!="):
            parts.append(str(each))
    return f"{one.name}{extras}{','.join(parts)}"


def _parsed(lines: Sequence[str], told: list[str]) -> list[Requirement]:
    """The requirements among ``lines``; what else stands there (options, paths, addresses) is told, and not taken."""
    try:
        from packaging.requirements import InvalidRequirement, Requirement
    except ImportError:
        raise CampaignError(_NEEDED) from None

    found = []
    for line in lines:
        text = re.sub(r"(^|\s)#.*", "", line).split(" --hash")[0].strip().rstrip("\\").strip()
        if not text or text.startswith("--hash"):
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            told.append(f"left out {redact(text)[:100]!r}: no name of a package with versions")
            continue
        if requirement.url:
            told.append(f"left out {requirement.name}: it comes from an address of its own")
        elif requirement.marker is None or requirement.marker.evaluate():
            requirement.marker = None
            found.append(requirement)
    return found


def _defused(packages: Path) -> list[str]:
    """Remove what would be executed whenever the interpreter starts, also outside of any sandbox; say so."""
    told = []
    for file in sorted([*packages.glob("*.pth"), *packages.glob("sitecustomize*"), *packages.glob("usercustomize*")]):
        text = file.read_text(encoding="utf-8", errors="replace") if file.suffix == ".pth" and file.is_file() else ""
        if file.suffix == ".pth" and not re.search(r"^import\s", text, re.MULTILINE):
            continue
        shutil.rmtree(file) if file.is_dir() else file.unlink()
        told.append(f"{file.name} is removed: it would be executed by every start of the interpreter")
    return told


def _ask(python: str) -> dict[str, Any]:
    try:
        done = subprocess.run(
            # Without what only our own environment adds to its path.
            [python, "-I", "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=os.sep,
            check=False,
        )
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        raise Failed(f"{python} cannot be run as a Python interpreter") from None
    return answer


def _pip(command: str, place: Path) -> list[str]:
    # Nothing is built: a package that is would execute its own code, outside of any sandbox.
    return ["pip", command, "--quiet", "--only-binary", ":all:", "--python", str(_interpreter(place))]


def _interpreter(place: Path) -> Path:
    return place / "bin" / "python"


def _uv(words: Sequence[str], cache: Path) -> None:
    """Have uv do something; what it fetched before does where the network is gone. Raises :class:`Failed`."""
    environment = {**os.environ, "UV_CACHE_DIR": str(cache), "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    environment.pop("VIRTUAL_ENV", None)
    said = ""
    for more in ((), ("--offline",)):
        try:
            done = subprocess.run(
                [uv(), *words, *more],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT,
                cwd=cache.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"uv {' '.join(words[:2])} took more than {TIMEOUT:.0f} seconds") from None
        if not done.returncode:
            return
        said = said or done.stderr
        if not _OFFLINE.search(done.stderr):
            break
    told = " ".join(redact(said).replace("×", "").replace("╰─▶", "").split())
    raise Failed(f"uv {words[0]}: {told[:300] or 'failed'}")


def canonical(name: str) -> str:
    """The name of a package as an index has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with open(file, "a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
