"""What a script needs, as far as its text shows: modules, required arguments, files by their names."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codemods.source.syntax import FAILURES
from verify.syntax import last_name

_MOST_FILES = 400
#: Functions that read the file which they are given first.
_READERS = frozenset(
    {"open", "load", "loadtxt", "genfromtxt", "fromfile", "read_csv", "read_json", "read_table", "read_parquet"}
    | {"read_pickle", "read_excel", "loadmat", "imread", "File", "ImageFolder", "DatasetFolder", "listdir"}
)
_CATCHES = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass
class Wants:
    """``modules`` from outside the tree, ``required`` options, ``defaults`` of options, ``files`` that are read.

    ``compared``: by the name of an attribute, as ``args.mode``, the first text that it is compared with.
    """

    modules: set[str] = field(default_factory=set)
    required: list[str] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    compared: dict[str, str] = field(default_factory=dict)


def wants_of(script: Path, root: Path, cwd: Path) -> Wants:
    """Read ``script`` and what it imports from the tree ``root``; files that cannot be read are skipped.

    A module counts where it is imported whenever its file is: not in a function, nor under a condition or a ``try``
    that catches its absence; and only if nothing in the tree has its name, because folders can be put on the path in
    many ways.
    """
    wants = Wants()
    names = _names(root)
    waiting, seen = [script], {script}
    written: set[str] = set()
    while waiting and len(seen) < _MOST_FILES:
        file = waiting.pop()
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, *FAILURES):
            continue
        for module, level in _imports(tree.body, main=file == script):
            top = module.partition(".")[0]
            if level == 0 and top not in names:
                wants.modules.add(top)
            for found in _files(module, level, file, (script.parent, cwd, root)):
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
        _read_calls(tree, wants, written)
        wants.compared = {**compared_texts([tree]), **wants.compared}
    wants.files = [path for path in dict.fromkeys(wants.files) if path not in written]
    return wants


def _names(root: Path) -> set[str]:
    """The names of all modules and packages of the tree, in any folder."""
    found: set[str] = set()
    for _, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found.update(folders)
        found.update(name.partition(".")[0] for name in files if name.endswith((".py", ".so", ".pyd")))
    return found


def _imports(body: Sequence[ast.stmt], *, main: bool) -> Iterator[tuple[str, int]]:
    """Modules that are imported whenever the statements run, with the number of leading dots."""
    for statement in body:
        match statement:
            case ast.Import(names=names):
                yield from ((alias.name, 0) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                if module:
                    yield module, level
                prefix = f"{module}." if module else ""
                # What is imported from a package can be a module of it.
                yield from ((prefix + alias.name, max(level, 0)) for alias in names if level or "." not in prefix + "x")
                if module and not level:
                    yield from ((f"{module}.{alias.name}", 0) for alias in names)
            case ast.ClassDef(body=inner) | ast.With(body=inner):
                yield from _imports(inner, main=main)
            case ast.Try(body=inner, handlers=handlers, finalbody=final):
                if not any(map(_catches, handlers)):
                    yield from _imports(inner, main=main)
                yield from _imports(final, main=main)
            case ast.If(test=test, body=inner) if main and _is_main(test):
                yield from _imports(inner, main=main)


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _CATCHES for kind in kinds)


def _is_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__"), comparators=[ast.Constant(value="__main__"), *_]):
            return True
        case _:
            return False


def _files(module: str, level: int, file: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """The files of the tree that an import executes, as far as they are found from ``folders``."""
    if level:
        folders = [file.parents[level - 1]] if level <= len(file.parents) else []
    parts = module.split(".")
    for folder in dict.fromkeys(folders):
        for count in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:count])
            yield from (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())


def _read_calls(tree: ast.Module, wants: Wants, written: set[str]) -> None:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = last_name(node.func)
        texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if name == "add_argument":
            _read_argument(node, texts, wants)
        elif texts and name in _READERS and isinstance(node.args[0], ast.Constant) and not _writes(node, texts):
            if _is_path(texts[0]):
                wants.files.append(texts[0])
        else:
            # What is written, or asked for, before it is read is not missed.
            written.update(texts)


def compared_texts(trees: Iterable[ast.AST]) -> dict[str, str]:
    """By the name of an attribute, as ``args.mode``, the first text that it is compared with in ``trees``."""
    texts: dict[str, str] = {}
    for tree in trees:
        found = [
            node for node in ast.walk(tree) if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute)
        ]
        for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
            match node.left, node.ops, node.comparators:
                case ast.Attribute(attr=name), [ast.Eq()], [ast.Constant(value=str(text))]:
                    among: Sequence[object] = (text,)
                case ast.Attribute(attr=name), [ast.In()], [
                    ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts)
                ]:
                    among = [one.value for one in elts if isinstance(one, ast.Constant)]
                case _:
                    continue
            first = next((one for one in among if isinstance(one, str) and one), None)
            if first is not None:
                texts.setdefault(name, first)
    return texts


def _writes(call: ast.Call, texts: Sequence[str]) -> bool:
    modes = [
        *texts[1:2],
        *(k.value.value for k in call.keywords if k.arg == "mode" and isinstance(k.value, ast.Constant)),
    ]
    return any(isinstance(mode, str) and not {*mode}.isdisjoint("wax+") and len(mode) <= 3 for mode in modes)


def _is_path(text: str) -> bool:
    return bool(text) and "\n" not in text and "://" not in text and len(text) < 1000 and "\0" not in text


def _read_argument(call: ast.Call, texts: Sequence[str], wants: Wants) -> None:
    values = {keyword.arg: keyword.value for keyword in call.keywords}
    long = next((text for text in texts if text.startswith("--")), texts[0] if texts else "")
    if not long.startswith("-"):
        return
    required, default = values.get("required"), values.get("default")
    if isinstance(required, ast.Constant) and required.value is True:
        wants.required.append(long)
    if isinstance(default, ast.Constant) and isinstance(default.value, str):
        wants.defaults[long] = default.value
