"""Which files of a tree may concern a rule, and which programs come to one of them: by their texts, before any is
parsed.

A tree that comes to torch through no import ends here, at the cost of reading it. What an import that leads out of the
tree brings is not known, and matters only where a rule could fire on it: with torch in its name, or as a star, or by a
name that is computed, and the name torch in the code beside it. All others bring objects that are unknown,
and these are nothing to mend.

Files that such code imports count as well as those that import it: a program with torch may hand its tensors to a
module without. What a program without torch makes of that module counts, too: it may show that the code means something
else there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import PurePosixPath

from codemods.analysis.job import concerns
from codemods.analysis.outline import imports, may_act, may_switch
from codemods.analysis.project import Project
from codemods.analysis.told import told
from codemods.graph.model.facts.libraries import TORCH_LIBRARIES
from codemods.graph.model.program import Tree
from codemods.graph.python.loading import NEVER_OF_THE_TREE
from codemods.source.gates import code_of

_LIBRARY = re.compile(
    rb"\n[ \t]*(?:import|from)[ \t]+(?:" + "|".join(sorted({"torch", *TORCH_LIBRARIES})).encode() + rb")\b"
)
_CONTINUED = re.compile(rb"\\\r?\n")
_IMPORTED = re.compile(
    rb"(?:^|[;:])[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)|import[ \t]+([^\n;]+))", re.MULTILINE
)
_COMPUTED = re.compile(rb"\b(?:importlib|__import__|importorskip)\b")


def concerned(project: Project) -> tuple[list[str], list[str]]:
    """The files in which the words of some rule stand; those that import one of them and may act, or switch gradients
    off; and programs that import one through others: what says that it is one, and what nothing imports. Files that no
    tensor can come to are left out."""
    torch = {relative for relative in project.paths if told(_brings_torch, project, relative)}
    if not torch:
        return [], []
    direct = {relative for relative in project.paths if told(concerns, project, relative) is not None}
    imported = _Imports(project)
    if not torch.issuperset(direct):
        direct &= imported.by(imported.leading_to(torch))
    if not direct:
        return [], []
    others = [r for r in project.paths if r not in direct and told(_may_lead, project, r)]
    importers = [r for r in others if any(found in direct for found in told(_imported_by, project, r))]
    far = {r for r in others if b"__main__" in project.raw(r) or not imported.imported(r)}.difference(importers)
    if far:
        # a program most often comes to its training loop through modules that only define
        importers += far & imported.leading_to(direct)
    targets = {relative for relative, shown in project.display.items() if shown in project.targets}
    if len(targets) < len(project.paths):
        # no other run says anything of the targets
        targets = imported.leading_to(targets)
    return sorted(direct & targets), sorted(targets.intersection(importers))


def _may_lead(project: Project, relative: str) -> bool:
    raw = project.raw(relative)
    return may_switch(raw) or may_act(raw)


def _imported_by(project: Project, relative: str) -> list[str]:
    """What a file imports: files, and folders that end with a slash."""
    return list(imports(project.files.tree, relative, project.raw(relative)))


# torch


def _brings_torch(project: Project, relative: str) -> bool:
    """Whether a file imports torch or a library of it, or may do so through an import that leads out of the tree."""
    tree, raw = project.files.tree, project.raw(relative)
    if _LIBRARY.search(b"\n" + raw) is not None:
        return True
    code = code_of(raw) if b"torch" in raw else b""
    importer = PurePosixPath(relative)
    for module, names, modules in _IMPORTED.findall(_CONTINUED.sub(b" ", code)):
        starred = b"*" in names and b"torch" in code
        for name in [module] if module else [part.split()[0] for part in modules.split(b",") if part.split()]:
            if (starred or b"torch" in name + names) and not _of_tree(tree, name.decode(errors="replace"), importer):
                return True
    return _COMPUTED.search(code) is not None


def _of_tree(tree: Tree, module: str, importer: PurePosixPath) -> bool:
    """Whether an import leads to a file of the tree."""
    name = module.lstrip(".")
    if name != module:
        return tree.resolve_relative(name or None, len(module) - len(name), importer) is not None
    return module.partition(".")[0] not in NEVER_OF_THE_TREE and tree.resolve(module, importer) is not None


class _Imports:
    """Which files of a tree import which, by a look at their texts."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @functools.cached_property
    def _found(self) -> dict[str, list[str]]:
        return {r: told(_imported_by, self._project, r) for r in self._project.paths}

    @functools.cached_property
    def _importers(self) -> dict[str, list[str]]:
        importers: dict[str, list[str]] = {}
        for relative, found in self._found.items():
            for name in found:
                importers.setdefault(name, []).append(relative)
        return importers

    @functools.cached_property
    def _in_folder(self) -> dict[str, list[str]]:
        inside: dict[str, list[str]] = {}
        for relative in self._found:
            inside.setdefault(_folder(relative), []).append(relative)
        return inside

    def imported(self, relative: str) -> bool:
        """Whether a file of the tree imports another one: one that none does is a program, if it acts."""
        return relative in self._importers

    def leading_to(self, wanted: Collection[str]) -> set[str]:
        """``wanted``, and the files that import one of them, directly or through others."""

        def following(relative: str) -> Iterator[str]:
            yield from self._importers.get(relative, ())
            yield from self._importers.get(_folder(relative), ())

        return _closure(wanted, following)

    def by(self, files: Collection[str]) -> set[str]:
        """``files``, and what they import, directly or through others."""

        def following(relative: str) -> Iterator[str]:
            for name in self._found[relative]:
                yield from [name] if name in self._found else self._in_folder.get(name, ())

        return _closure(files, following)


def _folder(relative: str) -> str:
    return relative[: relative.rfind("/") + 1]


def _closure(begun: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    reached = set(begun)
    stack = list(reached)
    while stack:
        for name in following(stack.pop()):
            if name not in reached:
                reached.add(name)
                stack.append(name)
    return reached
