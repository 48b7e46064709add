"""Entry scripts of a repository that nobody described: found by looking, in its files and in its README."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_COMMAND = re.compile(
    r"^[\s>$#`*-]*(?:CUDA_VISIBLE_DEVICES=\S+\s+)?python[\d.]*\s+(?:-u\s+)?(?P<rest>(?:-m\s+[\w.]+|\S+\.py)\b[^\n`]*)"
)
_CHANGE = re.compile(r"^[\s>$`*-]*cd\s+([\w./-]+)\s*(?:&&|;|`|$)")
#: What a shell would act on, and what stands for something that the reader has to fill in.
_NOT_LITERAL = re.compile(r"[|;&<>$`(){}\[\]*?~\\]|\.\.\.|path[/_]to|your[_-]|XXX")
#: Asks for the arguments, and trains nothing.
_HELP = re.compile(r"\s(-h|--help)(\s|$)")
#: A path that only leads anywhere from the script's own folder.
_FROM_HERE = re.compile(r"""^\s*sys\.path\.(?:append|insert)\(\s*(?:-?\d+\s*,\s*)?['"]\.\.(?:/|['"])""", re.MULTILINE)
#: From the root such a file would lie outside of the tree. What is joined to something may be anywhere.
_BESIDE = re.compile(r"""^(?!\s*\#)(?!.*(?:__file__|join\()).*(?<![\w+])['"]\.\./[\w.]""", re.MULTILINE)
_MAIN = re.compile(r"""^if\s+__name__\s*==\s*['"]__main__['"]""", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:from\s+([.\w]+)\s+import\s+([\w ,*()]+)|import\s+([\w., ]+))", re.MULTILINE)
_TOP_LEVEL = re.compile(r"^\s*(?:from\s+(\w+)[\w.]*\s+import\b|import\s+(\w+))", re.MULTILINE)
_ACTING = re.compile(r"^(?:for|while|with)\b", re.MULTILINE)
#: A call that is a statement of the module, to its last line.
_CALL = re.compile(r"^([A-Za-z_]\w*)[\w.]*\(.*(?:\n(?:[ \t)\]}].*)?$)*", re.MULTILINE)
_DEFINED = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)
_TRAINS = re.compile(r"\.backward\s*\(|\.fit\s*\(")
_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_NO_ENTRY = re.compile(r"(^|/)(tests?|docs?|third_party|thirdparty)/|(^|/)(test_[^/]*|setup|conftest|__init__)\.py$")


#: Characters that are read of a README.
_README = 200_000


@dataclass(frozen=True)
class Entry:
    """A script that trains, as a command from ``folder``, and what spoke for it."""

    command: str
    folder: str
    why: str


def find_entries(
    files: Mapping[str, str], readme: str = "", concerned: Collection[str] = (), *, most: int = 1
) -> list[Entry]:
    """Return up to ``most`` scripts among ``files`` (texts by path) that are worth running, the best first.

    One counts that may act by itself and leads to a call of ``backward``, in itself or in what it imports, and to one
    of ``concerned``, the files that change. Most counts that the README shows how it is called, then that it changes
    and trains itself, that it is called train or main, and that it lies near the root. Arguments are taken from the
    README where they are literal.

    Where no script is found, as in a library, the tests that train are: pytest runs them one file at a time.
    """
    imports = {path: _imported(text) for path, text in files.items()}
    known = {part.removesuffix(".py") for path in files for part in path.split("/")}
    by_module: dict[str, list[str]] = defaultdict(list)
    for path in files:
        place = PurePosixPath(path)
        by_module[place.parent.name if place.name == "__init__.py" else place.stem].append(path)
    told = _commands(readme, files)

    def trains(path: str) -> bool:
        reached = _reached(path, imports, by_module)
        leads = not concerned or not reached.isdisjoint(concerned)
        return leads and any(_TRAINS.search(files[other]) for other in reached)

    ranked = []
    for path, text in files.items():
        if _NO_ENTRY.search(path):
            continue
        acts = bool(_MAIN.search(text))
        if not acts and path not in told and not _acts(text, known):
            continue
        if not trains(path):
            continue
        stem = PurePosixPath(path).stem.lower()
        named = 2 if stem.startswith("train") else 1 if stem.startswith(("main", "run")) else 0
        own = path in concerned and _TRAINS.search(text) is not None
        command, folder = told.get(path) or _start(path, files)
        score = (path in told, own, named, acts, -path.count("/"))
        why = [word for word, true in (("named in the README", path in told), (f"called {stem}", named)) if true]
        why.append("trains" if _TRAINS.search(text) else "imports what trains")
        ranked.append((score, path, Entry(command, folder, ", ".join(why))))
    ranked.sort(key=lambda item: item[1])
    ranked.sort(key=lambda item: item[0], reverse=True)
    if not ranked:
        tests = sorted(path for path in files if _TEST.search(path) and trains(path))
        return [Entry(f"-m pytest -q {_word(path)}", ".", "a test that trains") for path in tests[:most]]
    return [entry for _, _, entry in ranked[:most]]


def _acts(text: str, known: Collection[str]) -> bool:
    """Whether a module does something besides defining what it has, where ``known`` are the names of the tree's files.

    A call of another library that is given nothing of the program's own only sets something up: a seed, a backend.
    """
    if _ACTING.search(text):
        return True
    outside: set[str] = set()
    own = set(_DEFINED.findall(text))
    for module, taken, modules in _IMPORT.findall(text):
        for entry in (taken or modules).split(","):
            name, _, alias = entry.strip(" ()").partition(" as ")
            root = (module or name).partition(".")[0]
            bound = alias.strip() or name.partition(".")[0]
            (own if not root or root in known else outside).add(bound)
    return any(
        call[1] not in outside or not own.isdisjoint(re.findall(r"\w+", call[0][len(call[1]) :]))
        for call in _CALL.finditer(text)
    )


def _start(path: str, files: Mapping[str, str]) -> tuple[str, str]:
    """How ``path`` is started, and in which folder: in its own where it looks for modules or files relative to that.

    From the root it is a module where it imports what is found from there only: a script finds its neighbours, a module
    what lies at the root; see sys.path in Python's documentation.
    """
    place = PurePosixPath(path)
    if _FROM_HERE.search(files[path]) or (place.parent.parts and _BESIDE.search(files[path])):
        return _word(place.name), str(place.parent)
    at_root = {name.partition("/")[0].removesuffix(".py") for name in files}
    beside = {
        name.removeprefix(f"{place.parent}/").partition("/")[0].removesuffix(".py")
        for name in files
        if name.startswith(f"{place.parent}/")
    }
    wanted = {name for names in _TOP_LEVEL.findall(files[path]) for name in names if name}
    dotted = re.search(r"^\s*from\s+\.", files[path], re.MULTILINE)
    if place.parent.parts and (dotted or (wanted & (at_root - beside) and not wanted & (beside - at_root))):
        return f"-m {'.'.join(place.with_suffix('').parts)}", "."
    return _word(path), "."


def _word(path: str) -> str:
    """``path`` as a shell takes it, and Python for no option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def _commands(readme: str, files: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Commands that the README shows, by the script that they run: the command, and the folder to run it in."""
    found: dict[str, tuple[str, str]] = {}
    explained: dict[str, tuple[str, str]] = {}
    folder = "."
    for line in readme.splitlines():
        change = _CHANGE.match(line)
        if change is not None:
            inside = str(PurePosixPath(change[1])).strip("/")
            known = any(path.startswith(inside + "/") for path in files)
            folder = inside if known and ".." not in inside else "."
            line = line[change.end() :]
        elif not line.strip() or line.startswith("#"):
            folder = "."
        match = _COMMAND.match(line)
        if match is None:
            continue
        rest = match["rest"].split(" #")[0].strip()
        head = rest.split()[0]
        for place in dict.fromkeys((folder, ".")):
            path = str(PurePosixPath(place, head)) if head.endswith(".py") else ""
            if path in files and _HELP.search(rest):
                explained.setdefault(path, (shlex.quote(head), place))
            elif path in files and path not in found:
                found[path] = (shlex.quote(head) if _NOT_LITERAL.search(rest) else rest, place)
    return explained | found


def _imported(text: str) -> set[str]:
    names: set[str] = set()
    for module, taken, modules in _IMPORT.findall(text):
        if module:
            names.add(".".join(module.split(".")[-2:]))
            names.update(name.strip(" ()").split(" ")[0] for name in taken.split(","))
        else:
            names.update(".".join(name.strip().split(" ")[0].split(".")[-2:]) for name in modules.split(","))
    return {name.lstrip(".") for name in names} - {""}


def _reached(path: str, imports: Mapping[str, set[str]], by_module: Mapping[str, list[str]]) -> set[str]:
    """The files that ``path`` leads to, itself included; modules are known by the last two parts of their names.

    Of several with one name a script gets the one that lies in the package named, else beside it.
    """
    seen = {path}
    stack = [path]
    while stack:
        current = stack.pop()
        for name in imports[current]:
            package, _, last = name.rpartition(".")
            others = by_module.get(last, ())
            if package:
                nearest = [other for other in others if _folder(other).name == package]
            else:
                nearest = [
                    other for other in others if current == path and _folder(other) == PurePosixPath(path).parent
                ]
            for other in nearest or others:
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
    return seen


def _folder(module: str) -> PurePosixPath:
    place = PurePosixPath(module)
    return place.parent.parent if place.name == "__init__.py" else place.parent


def read_readme(root: Path) -> str:
    """The beginning of the README in the folder ``root``, empty where there is none. Raises OSError for no folder."""
    for path in sorted(root.iterdir()):
        if path.name.lower().startswith("readme") and path.is_file():
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(_README)
    return ""
