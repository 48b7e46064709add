"""Variables are read and bound, by import statements too."""

from __future__ import annotations

import ast
import builtins

from codemods.graph.model.facts.layers import (
    LOSS_MODULES,
    MODULE_CONTAINERS,
    MODULES_WITH_PARAMETERS,
    MODULES_WITHOUT_PARAMETERS,
)
from codemods.graph.model.facts.libraries import NUMBERS
from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.nodes import Carrier, Frame, Value
from codemods.graph.model.paths import of_python
from codemods.graph.model.values import NUMBER, Const, Imported, Join, Library, TreeModule, is_setting, may_carry
from codemods.graph.python.loading import NEVER_OF_THE_TREE, Loading
from codemods.graph.run.contents import ANY

_BUILTINS = frozenset(dir(builtins))


class Names(Loading):
    """The part of the engine that knows what names mean."""

    # variables

    def load_name(self, name: str, at: ast.AST) -> Value:
        """Read a variable."""
        frame: Frame | None = self.run.frame
        assert frame is not None
        if frame.scopes:
            for scope in frame.owners(name):
                if scope != frame.fid and (inner := self._held(scope, name, CarrierKind.LOCAL, at)) is not None:
                    return inner
        if self.run.class_bodies:
            owner, members = self.run.class_bodies[-1]
            if owner is frame and name in members:
                return members[name]
        found: Value | None = None
        if name not in frame.globals and name in frame.names:
            found = self._held(frame.fid, name, CarrierKind.LOCAL, at)
        fid = frame.function.closure if frame.function is not None else 0
        while fid and found is None:
            found = self._held(fid, name, CarrierKind.LOCAL, at)
            fid = self.run.closures.get(fid, 0)
        if found is None:
            found = self._held(frame.module_globals, name, CarrierKind.GLOBAL, at)
        if found is not None:
            return found
        if name in _BUILTINS:
            return Library(f"builtins.{name}")
        star = self.stars.get(frame.module_globals)
        if star:
            return Library(f"{star[-1]}.{name}")
        return self.run.unknown(name)

    def _held(self, owner: int, name: str, kind: CarrierKind, at: ast.AST) -> Value | None:
        """What a frame or a module holds under a name, as it is read."""
        value = self.run.s.get((owner, name))
        if isinstance(value, (Imported, Join)) and (found := self.imported(value)) is not None:
            return found
        if not isinstance(value, Value):
            return None
        if self.run.unsettled:
            value = self.run.settled((owner, name), value)
        if kind is CarrierKind.GLOBAL and is_setting(value) and self.may_be_called(owner, name):
            anywhere = self.run.s.get((owner, ANY))
            return self.run.join(value, anywhere) if isinstance(anywhere, Value) else value
        if may_carry(value):
            self.run.read(value, Carrier(kind, owner, name), at)
        return value

    def may_be_called(self, oid: int, name: str) -> bool:
        """Whether what was written to an object under a computed name may lie under ``name``."""
        return oid not in self.run.named_as or any(text.may_be(name) for text in self.run.named_as[oid])

    def store_name(self, name: str, value: Value, at: ast.AST) -> None:
        """Bind a variable of the running frame."""
        run = self.run
        frame = run.frame
        if frame.scopes and (scope := next(frame.owners(name))) != frame.fid:
            key = (scope, name)
            kind = CarrierKind.LOCAL
        elif frame.function is None or name in frame.globals:
            key = (frame.module_globals, name)
            kind = CarrierKind.GLOBAL
        elif name in frame.nonlocals:
            fid = frame.function.closure
            while fid and run.s.peek((fid, name)) is None:
                fid = run.closures.get(fid, 0)
            key = (fid or frame.fid, name)
            kind = CarrierKind.LOCAL
        else:
            key = (frame.fid, name)
            kind = CarrierKind.LOCAL
            frame.names.add(name)
        run.s.set(key, value)
        run.rebound[key] = run.rebound.get(key, 0) + 1
        if may_carry(value):
            run.stored(value, Carrier(kind, key[0], name), at)

    # imports

    def _do_Import(self, s: ast.Import) -> None:
        for alias in s.names:
            top = alias.name.partition(".")[0]
            if alias.asname:
                self.store_name(alias.asname, self.module_value(alias.name), s)
                continue
            self.store_name(top, self.module_value(top), s)

    def _do_ImportFrom(self, s: ast.ImportFrom) -> None:
        if s.level:
            found = self.importer.import_relative(s.module, s.level, self.run.frame.file)
        elif s.module and s.module.partition(".")[0] in NEVER_OF_THE_TREE:
            found = None
        else:
            found = self.importer.import_module(s.module or "", self.run.frame.file)
        if found is None and s.module == "__main__" and self.script:
            for alias in s.names:
                value = self.run.s.get((self.script, alias.name))
                self.store_name(
                    alias.asname or alias.name, value if isinstance(value, Value) else self.run.lost(alias.name), s
                )
            return
        if found is None:
            prefix = s.module or ""
            for alias in s.names:
                if alias.name == "*":
                    self.stars.setdefault(self.run.frame.module_globals, []).append(prefix)
                    self._star_library(prefix)
                else:
                    value = library_member(prefix, alias.name) if prefix else self.run.unknown(alias.name)
                    self.store_name(alias.asname or alias.name, value, s)
            return
        module = TreeModule(found)
        for alias in s.names:
            if alias.name == "*":
                self._import_star(module, s)
            else:
                self.store_name(alias.asname or alias.name, Imported(module, alias.name), s)

    def _star_library(self, prefix: str) -> None:
        """``from torch.nn import *`` and the like: the names that matter are known."""
        known: dict[str, frozenset[str]] = {
            "torch.nn": MODULES_WITH_PARAMETERS
            | MODULES_WITHOUT_PARAMETERS
            | LOSS_MODULES
            | MODULE_CONTAINERS
            | {"Module", "Parameter"},
            "torch.autograd": frozenset({"Variable", "Function", "grad", "no_grad", "backward"}),
            "torch": frozenset({"nn", "optim", "Tensor", "no_grad", "autograd", "cuda"}),
            "torch.optim": frozenset({"Adam", "SGD", "RMSprop", "AdamW", "Adagrad", "lr_scheduler"}),
        }
        for name in known.get(prefix, ()):
            self.store_name(name, Library(f"{prefix}.{name}"), self.run.frame.statement or ast.Pass())

    def _import_star(self, module: TreeModule, at: ast.stmt) -> None:
        file = None if module.path.endswith("/") else self.importer.file(module.path)
        if file is None:
            return
        fid = self.load_module(file)
        listed = self._listed(fid)
        for name in list(self.modules.globals[fid]):
            value = self.modules.cells.get((fid, name))
            if (name in listed if listed else not name.startswith("_")) and isinstance(value, Value):
                self.store_name(name, value, at)
        for name in sorted(listed - set(self.modules.globals[fid])):
            self.store_name(name, Imported(module, name), at)
        for prefix in self.stars.get(fid, ()):
            self.stars.setdefault(self.run.frame.module_globals, []).append(prefix)

    def _listed(self, fid: int) -> frozenset[str]:
        """The names in a module's ``__all__``; none where it has none, or not all of them can be seen."""
        value = self.modules.cells.get((fid, "__all__"))
        listed = self.run.elements(value) if isinstance(value, Value) else []
        names = [item.value for item in listed if isinstance(item, Const) and isinstance(item.value, str)]
        return frozenset(names if len(names) == len(listed) else ())


def library_member(library: str, name: str) -> Value:
    """What a library outside the tree calls ``name``."""
    path = of_python(f"{library}.{name}")
    return NUMBER if path in NUMBERS else Library(path)
