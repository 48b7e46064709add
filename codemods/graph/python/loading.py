"""Modules of the tree: loaded once for all runs, and what they call their members."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Protocol

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cells import Key
from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.modules import Modules, Quiet
from codemods.graph.model.nodes import Carrier, Frame, Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.spelled import spelled
from codemods.graph.model.state import State
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Const, Imported, Join, Library, Namespace, Plain, TreeModule, Unknown
from codemods.graph.model.walks import TOLD_APART, answering
from codemods.graph.python.functions import Functions
from codemods.graph.run.core import BudgetEnded
from codemods.graph.run.joins import MAX_MODULES
from codemods.source.walking import children
from codemods.terms.words import words

_LOAD_BUDGET = 60_000
NEVER_OF_THE_TREE = frozenset({"torch", "torchvision", "numpy", "__future__", "typing"})
"""What these names mean is known, also in a tree that holds a copy of them."""

_OF_A_RUN = words(
    "s trace frame dead spent budget active memos looked_at written entering_root unknowns thrown trying class_bodies"
)
_OF_A_FRAME = words("raises_here narrowed returns breaks continues raises")
"""What belongs to one run, and to the function that is being run: it is put aside while a module is loaded."""


class Importer(Protocol):
    """Where the machine gets files from."""

    modules: Modules
    """What imports have left so far."""
    imports: dict[str, list[str]]
    """The files of the tree that a file imports, by its path."""
    quiet: dict[str, Quiet]
    """Files whose import is known to change nothing but what they bind themselves, by their paths."""

    def file(self, relative: str) -> ParsedFile | None:
        """The parsed file at a path below the root, None if it does not parse."""
        ...

    def mentions(self, relative: str, word: str) -> bool:
        """Whether a word stands in a file; it need not be parsed for that."""
        ...

    def import_module(self, module: str, importer: ParsedFile) -> str | None:
        """The file of ``import module``, the folder of a package without ``__init__``, or None outside the tree."""
        ...

    def package(self, module: str, importer: ParsedFile) -> str | None:
        """The same for a package of which ``importer`` imports a module."""
        ...

    def import_relative(self, module: str | None, level: int, importer: ParsedFile) -> str | None:
        """The same for relative imports."""
        ...

    def member_file(self, package: str, name: str) -> str | None:
        """The file or folder ``name`` in a package's folder."""
        ...

    def members(self, package: str) -> dict[str, str]:
        """All files and folders in a package's folder, by their names."""
        ...


class Loading(Functions):
    """The part of the engine that loads modules of the tree."""

    def __init__(self, importer: Importer, budget: int = 150_000) -> None:
        super().__init__(budget)
        self.importer = importer
        modules = self.modules = importer.modules
        modules.clean()
        self.run.s = State.empty(modules.cells)
        self.run.clock, self.run.oids = modules.clock, modules.oids
        self.run.attributes = dict(modules.attributes)
        self.run.closures = dict(modules.closures)
        self.filled: set[int] = set()
        """The containers of imported files for which what may fill them was loaded."""
        self.passed: set[str] = set()
        """Files that were not loaded because their text does not name what something was asked of."""
        self.resolving: set[Key] = set()
        """The imported names that are being looked up."""
        self.stars: dict[int, list[str]] = dict(modules.stars)
        """Libraries that a module star-imports."""

    def answers(self, path: str) -> bool:
        """Whether the module of a library's function may hand what it gets to code of the tree."""
        if path.partition(".")[0] in TOLD_APART:
            return False
        files, known = self._loaded(), self.modules.answering
        for file in files:
            if file.path not in known:
                known[file.path] = answering(file)
        return any(path.startswith(f"{module}.") for file in files for module in known[file.path])

    def may_write(self, name: str) -> bool:
        """Whether a loaded file may write an attribute of that name in a way that is not followed."""
        return any(file.once(spelled, file.tree).may_write(name) for file in self._loaded())

    def _loaded(self) -> list[ParsedFile]:
        """The file that runs, the one that the run began in, and those that are imported."""
        loaded = self.run.looked_at & self.modules.loaded.keys()
        begun = [frame.file for frame in self.run.trace.frames[:1]]
        return [self.run.frame.file, *begun, *filter(None, map(self.importer.file, sorted(loaded)))]

    def module_value(self, name: str) -> Value:
        """What ``import name`` binds."""
        if name == "__main__" and self.script:
            return Unknown(self.script, "module", data=True)
        found = (
            None
            if name.partition(".")[0] in NEVER_OF_THE_TREE
            else self.importer.import_module(name, self.run.frame.file)
        )
        return Library(name) if found is None else TreeModule(found)

    @property
    def script(self) -> int:
        """Under which identity the script that runs has its variables; 0 where a run began elsewhere."""
        begun = self.run.trace.frames[0] if self.run.trace.frames else None
        named = self.run.s.peek((begun.fid, "__name__")) if begun is not None and begun.function is None else None
        return begun.fid if begun is not None and isinstance(named, Const) and named.value == "__main__" else 0

    def import_named(self, args: Arguments) -> Value | None:
        """``importlib.import_module(name, package)``: one of the modules of the tree that may be meant; None where
        there may be others."""
        name, package = args.get(0, "name"), args.get(1, "package")
        begin = name.begin if isinstance(name, Plain) else name.value if isinstance(name, Const) else None
        if not isinstance(begin, str):
            return None
        if begin.startswith("."):
            if begin.startswith("..") or not (isinstance(package, Const) and isinstance(package.value, str)):
                return None
            begin = package.value + begin
        if isinstance(name, Const):
            return self.module_value(begin)
        return self.run.one_of(self._modules_named(replace(name, begin=begin))) if isinstance(name, Plain) else None

    def _modules_named(self, name: Plain) -> list[Value]:
        """The modules of the tree whose full name may be ``name``, of which the package is known; none where there may
        be others."""
        package = name.begin.rpartition(".")[0]
        if not package or package.partition(".")[0] in NEVER_OF_THE_TREE:
            return []
        found = self.importer.package(package, self.run.frame.file)
        if found is None or not found.endswith(("/", "__init__.py")):
            return []
        folder = found.removesuffix("__init__.py").rstrip("/")
        inside = self.importer.members(folder).items()
        fitting = [TreeModule(path) for module, path in inside if name.may_be(f"{package}.{module}")]
        return list(fitting) if len(fitting) <= MAX_MODULES else []

    def named_in(self, space: Namespace) -> dict[str, Value]:
        if not isinstance(space.of, TreeModule):
            # what an import bound is no cell of this run
            bound = () if space.of is not None else self.modules.globals.get(space.oid, ())
            loaded = {name: value for name in bound if isinstance(value := self.run.s.get((space.oid, name)), Value)}
            return {**loaded, **self.run.cells_named(space)}
        names = self.modules.globals.get(space.oid, ())
        return {name: self.module_member(space.of, name) for name in names}

    def has_member(self, module: TreeModule, name: str) -> bool:
        """Whether a module of the tree has something of that name, as far as it can be read."""
        if module.path.endswith("/"):
            return name in self.importer.members(module.path.rstrip("/"))
        file = self.importer.file(module.path)
        if file is None or name[:2] == "__":
            return True
        fid = self.load_module(file)
        known = self.run.s.get((fid, name)) is not None or bool(self.stars.get(fid))
        folder = "" if str(file.relative.parent) == "." else str(file.relative.parent)
        return known or (file.relative.name == "__init__.py" and name in self.importer.members(folder))

    def load_module(self, file: ParsedFile) -> int:
        """Run a module's top level as an import does, once for all runs; return what owns its globals."""
        run = self.run
        key = file.relative.as_posix()
        modules = self.modules
        run.looked_at.add(key)
        known = modules.loaded.get(key)
        if known is not None:
            run.looked_at |= modules.needs.get(key, set())
            self.passed |= modules.passed.get(key, set())
            return known
        outer = {name: getattr(run, name) for name in _OF_A_RUN}
        within = {name: getattr(self, name) for name in _OF_A_FRAME}
        run.s = State.empty(modules.cells)
        run.trace = Trace(file.path)
        run.dead = self.raises_here = run.entering_root = False
        self.returns, self.breaks, self.continues, self.raises, self.narrowed = [], [], [], [], []
        run.active, run.memos, run.written, run.looked_at = [], {}, set(), set()
        run.spent, run.budget = 0, _LOAD_BUDGET
        run.unknowns, run.thrown, run.class_bodies, run.trying, run.catching = [], [], [], 0, 0
        first, passed, begun = run.oids, set(self.passed), run.clock
        before = self._effects(first)
        frame = self.module_frame(file)
        modules.loaded[key] = frame.fid
        modules.globals[frame.fid] = {}
        if outer["frame"] is not None:
            frame.depth = outer["frame"].depth + 1
        run.frame = frame
        run.s.set((frame.fid, "__name__"), Const(file.relative.stem))
        try:
            if frame.depth < 40:
                self.execute(file.tree.body)
                written = (owner for owner, _ in run.s.cells())
                if before == self._effects(first) and all(owner > first or owner < -begun for owner in written):
                    self.importer.quiet[key] = Quiet(frozenset(run.looked_at), frozenset(self.passed - passed))
        except (BudgetEnded, RecursionError):
            outer["trace"].notes.append(f"{file.path}: its top level takes too long to be followed")
        modules.keep_cells(run.s.cells().as_one())
        run.found_leaves.clear()
        modules.keep(run.trace.nodes, run.unknowns)
        modules.needs[key] = run.looked_at
        modules.passed[key] = self.passed - passed
        modules.made.append((first + 1, run.oids, key))
        # it outlives this run, which may end without another word
        modules.clock, modules.oids = run.clock, run.oids
        for oid in range(first, run.oids + 1):
            if oid in run.attributes:
                modules.attributes[oid] = run.attributes[oid]
            if oid in run.closures:
                modules.closures[oid] = run.closures[oid]
            if oid in self.stars:
                modules.stars[oid] = self.stars[oid]
        outer["looked_at"] |= run.looked_at
        for name, value in outer.items():
            setattr(run, name, value)
        for name, value in within.items():
            setattr(self, name, value)
        return frame.fid

    def fill_registry(self, oid: int) -> None:
        """Load what may put something into a container of an imported file: what was imported, not used so far, and
        names that file. Imports run at once; here they wait until something is asked of them."""
        if oid in self.filled:
            return
        self.filled.add(oid)
        key = next((key for first, last, key in self.modules.made if first <= oid <= last), None)
        if key is None:
            return
        path = PurePosixPath(key)
        name = path.parent.name if path.stem == "__init__" else path.stem
        asked: set[str] = set()
        while waiting := sorted(self.run.looked_at - asked):
            asked.update(waiting)
            for found in dict.fromkeys(found for one in waiting for found in self._imports_of(one)):
                if found in self.modules.loaded:
                    continue
                # most name it nowhere, and are not needed for anything else
                named = PurePosixPath(found).name == "__init__.py" or self.importer.mentions(found, name)
                if named and self._is_quiet(found):
                    self.run.looked_at |= self.importer.quiet[found].needs
                    self.passed |= self.importer.quiet[found].passed
                    continue
                file = self.importer.file(found) if named else None
                if file is not None:
                    self.load_module(file)
                else:
                    self.passed.add(found)

    def _effects(self, last: int) -> tuple[int, ...]:
        """How much there is of what code may leave behind elsewhere than in cells; of what is said of single objects,
        those up to the identity ``last``."""
        run = self.run
        kept = (
            run.entered,
            run.called,
            run.class_attributes,
            self.filled,
            run.hooks,
            run.names_kept,
        )
        of_objects = (run.holders, run.displaced, run.repeated, run.uncounted, run.named_as)
        return (*map(len, kept), *(sum(oid <= last for oid in oids) for oids in of_objects))

    def _is_quiet(self, path: str) -> bool:
        """Whether it is known that the import of a file fills nothing, nor do those that are run for it."""
        quiet = self.importer.quiet
        return path in quiet and all(one in quiet or one in self.modules.loaded for one in quiet[path].needs)

    def _imports_of(self, path: str) -> list[str]:
        """The files of the tree that a file's own statements import."""
        known = self.importer.imports
        if path not in known:
            file = self.importer.file(path)
            known[path] = [] if file is None else self._resolved(file)
        return known[path]

    def _resolved(self, file: ParsedFile) -> list[str]:
        found: list[str | None] = []
        for statement in file.once(_imports, file.tree):
            if isinstance(statement, ast.Import):
                found += [self.importer.import_module(alias.name, file) for alias in statement.names]
                continue
            module = statement.module or ""
            relative = self.importer.import_relative(statement.module, statement.level, file)
            origin = relative if statement.level else self.importer.import_module(module, file)
            found.append(origin)
            package = PurePosixPath(origin) if origin is not None else None
            if package is not None and (package.name == "__init__.py" or str(origin).endswith("/")):
                folder = package.parent if package.name == "__init__.py" else package
                below = "" if str(folder) == "." else str(folder)
                found += [self.importer.member_file(below, alias.name) for alias in statement.names]
        return [path for path in found if path is not None and path.endswith(".py")]

    def module_frame(self, file: ParsedFile) -> Frame:
        """A fresh frame for the top level of a file."""
        fid = self.run.new_oid()
        self.run.looked_at.add(file.relative.as_posix())
        frame = Frame(fid, file, None, None, 0)
        frame.module_globals = fid
        frame.birth = self.run.tick()
        self.run.trace.frames.append(frame)
        return frame

    def module_member(self, module: TreeModule, name: str) -> Value:
        """What a module of the tree calls ``name``."""
        run = self.run
        package: str | None
        if module.path.endswith("/"):
            package = module.path.rstrip("/")
        else:
            file = self.importer.file(module.path)
            if file is None:
                run.looked_at.add(module.path)
                return run.unknown(name)
            fid = self.load_module(file)
            value = run.s.get((fid, name))
            if isinstance(value, (Imported, Join)):
                if (fid, name) in self.resolving:
                    # two modules import a name from each other, or a package imports one of its own modules
                    value = None
                else:
                    self.resolving.add((fid, name))
                    try:
                        value = self.imported(value) or value
                    finally:
                        self.resolving.discard((fid, name))
            if isinstance(value, Value):
                run.read(value, Carrier(CarrierKind.GLOBAL, fid, name), run.frame.statement or ast.Pass())
                return value
            package = str(file.relative.parent) if file.relative.name == "__init__.py" else None
        if package is not None:
            found = self.importer.member_file("" if package == "." else package, name)
            if found is not None:
                return TreeModule(found)
        return run.unknown(name)

    def imported(self, value: Imported | Join) -> Value | None:
        """What an imported name stands for, on any of the paths; None if nothing in ``value`` is one."""
        if isinstance(value, Imported):
            return self.module_member(value.module, value.name)
        if not any(isinstance(option, Imported) for option in value.options):
            return None
        return self.run.one_of(
            [self.module_member(o.module, o.name) if isinstance(o, Imported) else o for o in value.options]
        )

    def set_module_member(self, module: TreeModule, name: str, value: Value, at: ast.AST) -> None:
        """Write a global of a module of the tree."""
        file = None if module.path.endswith("/") else self.importer.file(module.path)
        if file is not None:
            fid = self.load_module(file)
            self.run.s.set((fid, name), value)
            self.run.stored(value, Carrier(CarrierKind.GLOBAL, fid, name), at)


def _imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The import statements that run when a file is imported."""
    found: list[ast.Import | ast.ImportFrom] = []
    stack: list[ast.AST] = list(reversed(tree.body))
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append(node)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.expr)):
            stack += reversed(children(node))
    return found
