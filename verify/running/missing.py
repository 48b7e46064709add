"""What a program lacks to run at all: modules, arguments, files, variables, the network; and what to do about each.

A run that dies shows only the first missing thing. The others are read from the script and from what it imports of the
tree: they are listed with it, and decide nothing.
"""

from __future__ import annotations

import enum
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codemods.terms.words import words
from verify.isolation.launcher.mounts import inside
from verify.isolation.view import homes
from verify.measured.results import Outcome, Run
from verify.measured.values import TroubleKind
from verify.probe.standins.former import is_former
from verify.probe.standins.modules import ENVIRONMENTS
from verify.running.asking import Wants, wants_of
from verify.running.settings import Command, Settings
from verify.running.standins import UNSUPPORTED, parse


class Lack(enum.Enum):
    """What a program can lack."""

    MODULE = "module"
    ARGUMENT = "argument"
    FILE = "file"
    VARIABLE = "variable"
    NETWORK = "network"
    INPUT = "input"


MODULE, ARGUMENT, FILE, VARIABLE, NETWORK, INPUT = Lack


#: What a module is called where packages are found, by those that are called otherwise.
PACKAGES = {
    "Bio": "biopython",
    "OpenGL": "PyOpenGL",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "GitPython",
    "hydra": "hydra-core",
    "librosa": "librosa",
    "pl_bolts": "lightning-bolts",
    "prettytable": "prettytable",
    "pytorch_lightning": "pytorch-lightning",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tensorboardX": "tensorboardX",
    "torch_geometric": "torch-geometric",
    "umap": "umap-learn",
    "yaml": "pyyaml",
}
#: Without these nothing is computed: one that does nothing would help nobody.
NEVER_MADE_UP = frozenset({"torch", "numpy"})
_LACKING = re.compile(rf"ModuleNotFoundError: No module named '(?P<name>{'|'.join(sorted(NEVER_MADE_UP))})'")
#: What a program tells people with, and computes nothing by: it runs as well with one that does nothing.
FOR_PEOPLE = words(
    "IPython aim alive_progress clearml colorama coloredlogs colorlog comet_ml gpustat humanize icecream livelossplot "
    "loguru matplotlib mlflow neptune plotly prettytable progressbar pynvml rich seaborn setproctitle swanlab tabulate "
    "tensorboard tensorboardX tensorboard_logger termcolor torchinfo torchsummary torchviz tqdm visdom wandb"
)
#: Stand-ins for these are as good as they are, for what a run is to show.
STOOD_IN_FOR = FOR_PEOPLE.union(ENVIRONMENTS)
_REQUIRED = (
    re.compile(r"error: the following arguments are required: (?P<names>.+)"),
    re.compile(r"Error: Missing (?:option|argument|parameter) '?(?P<names>[^'\n.]+)"),
    re.compile(r"ERROR: The function received no value for the required argument: (?P<names>\S+)"),
    re.compile(r"error: one of the arguments (?P<names>.+) is required"),
)
#: What ``input()`` says where nobody types.
_ASKED = "EOF when reading a line"
_OFFLINE = re.compile(
    r"Name or service not known|Temporary failure in name resolution|Network is unreachable|nodename nor servname"
    r"|Connection refused|Failed to resolve|Max retries exceeded|couldn't connect to|find the requested files in the "
    r"(?:local|disk) cache|outgoing traffic has been disabled",
    re.IGNORECASE,
)
_CACHES = (
    ".cache/torch",
    ".cache/huggingface",
    ".keras",
    "nltk_data",
    "scikit_learn_data",
    ".cache/clip",
    ".cache/kagglehub",
)
#: Letters of a text that is made up.
_TEXT = 20_000
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp")


@dataclass(frozen=True)
class Instead:
    """The replacements for what programs lack.

    ``texts`` that they read in addition to the declared ones (in the form of :func:`verify.running.standins.parse`),
    ``places``: folders (by path below the tree) that a program writes into; ``modules`` that do nothing, and
    ``folders`` of the tree with modules that are not installed; whether ``transforms``
    that fail on made-up images are left out, required ``arguments`` made up, of those that are ``compared`` with
    a text one of these, ``former`` names of libraries found, and saved ``states`` that are not there done without;
    ``files`` that are made where the program asks for them, by the probe's ``made`` events. ``more`` is all that was
    found for the program although it came to no backward with it.
    """

    texts: tuple[dict[str, Any], ...] = ()
    places: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    transforms: bool = False
    arguments: bool = False
    former: bool = False
    compared: tuple[tuple[str, str], ...] = ()
    files: tuple[dict[str, Any], ...] = ()
    states: bool = False
    more: Instead | None = None

    def with_files(self, files: Iterable[dict[str, Any]]) -> Instead:
        """A copy with more files; of those that it has it keeps what is in them."""
        every = {(each["kind"], each["path"]): each for each in (*files, *self.files)}
        return self if len(every) == len(self.files) else replace(self, files=tuple(every.values()))

    def beside(self, *modules: str, folders: tuple[str, ...] = ()) -> Instead:
        """A copy with more modules and folders."""
        known, places = dict.fromkeys((*self.modules, *modules)), dict.fromkeys((*self.folders, *folders))
        return replace(self, modules=tuple(known), folders=tuple(places))

    def configuration(self, root: Path, declared: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The probe's configuration for a tree that programs see at ``root``."""
        return {
            "stand_ins": [*declared, *self.texts],
            "places": list(self.places),
            "modules": list(self.modules),
            "people": sorted(FOR_PEOPLE.intersection(self.modules)),
            "folders": [str(root / folder) for folder in self.folders],
            "transforms": self.transforms,
            "arguments": self.arguments,
            "former": self.former,
            "compared": dict(self.compared),
            "made": list(self.files),
            "states": self.states,
        }


@dataclass(frozen=True)
class Piece:
    """Something that is missing: its ``kind`` and its ``name`` (of a file the path, as written in the script)."""

    kind: Lack
    name: str


def ended_by(run: Run, *, late: bool = False) -> Piece | None:
    """The missing thing that ended ``run`` before its first backward, or whenever (``late``); None where nothing known
    did."""
    if (run.record.backwards and not late) or run.status == 0:
        return None
    record = next((record for record in run.records if record.error), None)
    if record is None or record.error is None:
        for pattern in _REQUIRED:
            match = pattern.search(run.output)
            if match is not None and run.status == 2:
                return Piece(ARGUMENT, match["names"].strip())
        # What starts the program tells of the error, and ends in its own way: pytest, a notebook's runner.
        lacking = _LACKING.search(run.output)
        return Piece(MODULE, lacking["name"]) if lacking is not None else None
    error, missing = record.error, record.missing
    if missing is not None:
        kinds = {"ModuleNotFoundError": MODULE, "ImportError": MODULE, "KeyError": VARIABLE}
        return Piece(kinds.get(error.type, FILE), missing)
    if error.type == "EOFError" and _ASKED in error.message:
        return Piece(INPUT, "")
    if error.kind == TroubleKind.OTHER and _OFFLINE.search(error.message):
        return Piece(NETWORK, error.message.strip().splitlines()[0])
    return None


def made_in(run: Run) -> Iterator[dict[str, Any]]:
    """The files and folders that were made in ``run``."""
    return (each for record in run.records for each in record.made)


def stuck(run: Run) -> bool:
    """Whether ``run`` stopped before its first backward in a way that a file which is not there could bring about: by
    an error of its own, or by leaving with a bad status."""
    kinds = {record.error.kind for record in run.records if record.error is not None}
    known = kinds <= {TroubleKind.OTHER, TroubleKind.MISSING}
    return known and run.outcome is Outcome.RAISED and not run.record.backwards


def outdated(run: Run) -> bool:
    """Whether ``run`` ended at a name that a newer release of a library has no more, but for those of torch."""
    return run.status != 0 and any(record.error and is_former(record.error.message) for record in run.records)


def unfit(run: Run) -> bool:
    """Whether a transform of torchvision ended ``run``, before its first backward, because it fails on made-up
    images."""
    made = any("made-up items" in str(standin.get("what")) for record in run.records for standin in record.standins)
    places = [line for record in run.records for line in record.traceback.splitlines() if line.startswith("  File ")]
    last = places[-1].replace(os.sep, "/") if places else ""
    return made and not run.record.backwards and "torchvision/transforms/" in last


def as_text(piece: Piece, command: Command, root: Path) -> dict[str, Any] | None:
    """The stand-in for a text file that ``command`` lacks; None where ``piece`` is not one, or is outside the tree."""
    place = os.path.normpath(command.cwd / piece.name)
    if piece.kind != FILE or not piece.name.endswith(".txt") or not inside(place, str(root)) or os.path.exists(place):
        return None
    return {**parse(f"{os.path.relpath(place, root)}=text:{_TEXT}"), "made_up": True}


def place_of(piece: Piece, command: Command, root: Path) -> str | None:
    """The folder below ``root`` in which ``command`` may want to write a file; None where ``piece`` is no such file."""
    place = os.path.dirname(os.path.normpath(command.cwd / piece.name))
    if piece.kind != FILE or not inside(place, str(root)) or os.path.exists(place):
        return None
    return os.path.relpath(place, root)


def folder_of(module: str, root: Path) -> str | None:
    """The folder below ``root`` that contains ``module``: as if to be installed, else the only one that does, as where
    a script is started from another folder than its own; None if there is none."""
    for folder in (".", "src"):
        place = root / folder / module
        if place.with_suffix(".py").is_file() or (place.is_dir() and any(place.glob("*.py"))):
            return folder
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        package = os.path.join(folder, module, "__init__.py")
        if f"{module}.py" in files or (module in folders and os.path.isfile(package)):
            found.append(os.path.relpath(folder, root))
    return found[0] if len(found) == 1 else None


def may_be_state(piece: Piece, run: Run) -> bool:
    """Whether ``piece`` may be the saved state of a model, an optimizer or the like."""
    text = "".join(record.traceback for record in run.records)
    return piece.kind == NETWORK or (piece.kind == FILE and "torch/serialization.py" in text.replace(os.sep, "/"))


def advice(
    piece: Piece, command: Command, root: Path, settings: Settings, lacks: Callable[[Collection[str]], Collection[str]]
) -> tuple[str, ...]:
    """What to do about ``piece``, and about everything else that ``command`` visibly lacks.

    ``lacks`` returns those of some modules that the interpreter lacks.
    """
    wants = Wants() if command.script is None else wants_of(command.script, root, command.cwd)
    modules = sorted({name.partition(".")[0] for name in lacks(wants.modules)})
    arguments = [name for name in wants.required if not _given(name, command.argv)]
    files = [
        path
        for path in wants.files
        if not (command.cwd / path).exists() and not _declared(path, root, command, settings)
    ]
    said: list[str] = []
    top = piece.name.partition(".")[0]
    if piece.kind == MODULE and piece.name in NEVER_MADE_UP and not lacks([top]):
        said.append(_of_another_python(top, command, settings.python))
    elif piece.kind == MODULE and top not in modules:
        modules.insert(0, top if lacks([top]) else piece.name)
    if modules:
        said.append(_of_modules(modules, settings))
    if piece.kind == ARGUMENT:
        said.append(f"give the arguments that it asks for after --: {piece.name}")
    elif arguments:
        said.append(f"it asks for arguments, to be given after --: {', '.join(arguments)}")
    if piece.kind == VARIABLE:
        said.append(
            f"it asks for the variable {piece.name}: pass yours on with --env {piece.name}, or --env {piece.name}=VALUE"
        )
    if piece.kind == INPUT:
        said.append("it asks for input, and nobody is there to type: have it take the answer as an argument")
    if piece.kind == NETWORK:
        said.append(_of_network())
    if piece.kind == FILE:
        said.append(_of_file(piece.name, command, root, settings, wants))
    others = [path for path in files if not (piece.kind == FILE and _same(path, piece.name, command))]
    if others:
        said.append(f"it also names what is missing: {', '.join(others)}")
    return tuple(said)


def _of_another_python(name: str, command: Command, python: str) -> str:
    program, *words = command.argv
    own = shlex.join([python, "-m", os.path.basename(program), *words])
    return (
        f"{program} starts a Python that lacks the module {name}, and {python} has it: install it in that one "
        f"(its own python -m pip install {name}), or have this one start the program: {own}"
    )


def _of_modules(names: Sequence[str], settings: Settings) -> str:
    packages = [PACKAGES.get(name, name.replace("_", "-")) for name in names]
    several = "modules" if len(names) > 1 else "the module"
    python = settings.python
    if settings.image:
        return f"the image {settings.image} lacks {several} {', '.join(names)}: take one that has {', '.join(packages)}"
    install = shlex.join([python, "-m", "pip", "install", *packages])
    return (
        f"{python} lacks {several} {', '.join(names)}: {install} (a package may have another name), "
        "or name another interpreter with --python"
    )


def _of_network() -> str:
    found = [
        f"--expose ~/{cache}"
        for home in homes(os.environ)[:1]
        for cache in _CACHES
        if os.path.exists(f"{home}/{cache}")
    ]
    kept = f"; if it has been downloaded already: {' '.join(found)}" if found else ""
    return f"it downloads, and runs have no network: --network lets it{kept}"


def _of_file(path: str, command: Command, root: Path, settings: Settings, wants: Wants) -> str:
    place = os.path.normpath(command.cwd / path)
    if os.path.exists(place) and any(inside(os.path.realpath(place), home) for home in homes(os.environ)):
        return f"{path} lies in your home folder, which runs find empty: --expose {shlex.quote(place)}"
    if os.path.exists(place):
        return f"{path} is there, but runs do not see it: --expose {shlex.quote(place)}"
    options = [
        option
        for option, default in wants.defaults.items()
        if default and inside(place, os.path.normpath(command.cwd / default))
    ]
    ways = [f"give its place with {options[0]}" if options else "give the path of the data as an argument"]
    declared = _declaration(place, root)
    if declared:
        ways.append(f"let a stand-in be made (of your shape): --stand-in {shlex.quote(declared)}")
    elif not inside(place, str(root)):
        ways.append("no stand-in is written outside of the tree")
    return f"{path} is not there: {', or '.join(ways[:2])}" if declared else f"{path} is not there: {'; '.join(ways)}"


def _declaration(place: str, root: Path) -> str:
    """A value of ``--stand-in`` for a file; empty where none can be made."""
    if not inside(place, str(root)):
        return ""
    relative = os.path.relpath(place, root)
    suffix = os.path.splitext(relative)[1].lower()
    if suffix in UNSUPPORTED:
        return ""
    made = {
        ".npz": "[x]=float32:100,3,32,32",
        ".txt": "=text:100000",
        ".csv": "=float32:100,10",
        ".tsv": "=float32:100,10",
    }
    text = relative + made.get(suffix, "=uint8:64,64,3" if suffix in _IMAGES else "=float32:100,3,32,32")
    if not suffix:
        text = f"{relative}/*.png=uint8:20,64,64,3"
    try:
        parse(text)
    except ValueError:
        return ""
    return text


def _declared(path: str, root: Path, command: Command, settings: Settings) -> bool:
    relative = os.path.relpath(os.path.normpath(command.cwd / path), root)
    return any(declared["path"] == relative for declared in settings.stand_ins)


def _given(name: str, argv: Sequence[str]) -> bool:
    return any(word == name or word.startswith(f"{name}=") for word in argv)


def _same(one: str, other: str, command: Command) -> bool:
    return os.path.normpath(command.cwd / one) == os.path.normpath(command.cwd / other)
