"""What the user named in a tree of Python files: every place where a name stands, and which of these mean the same.

Places that mean the same have one key. A key that libraries, strings or calls by keyword might share with the user is
kept as it is: in doubt nothing is renamed.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from codemods.graph.model.program import Tree

Key = tuple[str, ...]
"""A variable of a scope, an attribute, a keyword or a module: what is renamed as one."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PUBLIC_OBJECTS = """
    builtins.str builtins.bytes builtins.list builtins.dict builtins.set builtins.tuple builtins.int builtins.float
    builtins.object builtins.BaseException builtins.type builtins.property collections.deque collections.OrderedDict
    collections.Counter argparse.ArgumentParser argparse.Namespace logging.Logger logging.Handler pathlib.Path
    random.Random re.Pattern re.Match threading.Thread threading.Lock queue.Queue subprocess.Popen io.TextIOWrapper
    csv.DictWriter datetime.datetime datetime.timedelta types.FunctionType types.ModuleType inspect.Parameter
    enum.Enum torch.Tensor torch.nn.Module torch.nn.ModuleList torch.nn.ModuleDict torch.nn.LSTM torch.nn.Linear
    torch.nn.Conv2d torch.nn.BatchNorm2d torch.nn.MultiheadAttention torch.nn.Transformer torch.nn.Embedding
    torch.nn.utils.rnn.PackedSequence torch.nn.DataParallel torch.optim.Optimizer torch.optim.LBFGS
    torch.optim.lr_scheduler.LRScheduler torch.optim.lr_scheduler.ReduceLROnPlateau torch.utils.data.DataLoader
    torch.utils.data.Dataset torch.utils.data.Sampler torch.utils.data.TensorDataset torch.distributions.Distribution
    torch.distributions.Normal torch.distributions.Categorical torch.autograd.Function torch.amp.GradScaler
    torch.Generator torch.cuda.Event torch.Size torch.dtype torch.device torch.finfo numpy.ndarray
    numpy.random.RandomState numpy.random.Generator
"""
"""Objects of which any unseen receiver may be one."""
_PUBLIC_ELSEWHERE = """
    forward step params closure save_for_backward saved_tensors needs_input_grad training_step validation_step
    test_step predict_step configure_optimizers training_epoch_end validation_epoch_end test_epoch_end hparams
    save_hyperparameters manual_backward backward optimizers trainer current_epoch global_step logger log log_dict
    train_dataloader val_dataloader test_dataloader prepare_data setup reset step render action_space
    observation_space sample shape seed spec add_scalar add_scalars add_histogram add_image add_images add_text
    add_graph add_figure add_hparams flush close set_description set_postfix update write accelerator prepare
    gather print backward_step module config from_pretrained save_pretrained generate encode decode tokenize
    batch_size vocab stoi itos freqs batch data target transform parse_args add_argument
    scale unscale_ get_scale fit predict score transform fit_transform image line scatter heatmap plot
"""
"""Attributes of objects of libraries that need not be installed here."""
_STAY = frozenset(("src", "lib", "setup", "conftest"))
"""Files and folders whose names mean something to Python's tools."""
_IDENTIFIERS = re.compile(r"-{0,2}[A-Za-z_][\w.-]*\Z")
_WORD = re.compile(r"[^\W\d]\w*")
_NEWLINE = re.compile(rb"\r\n|\r|\n")


class Occurrence(NamedTuple):
    """A name in a file, from the byte ``start`` on."""

    path: str
    start: int
    name: str
    key: Key


class Named:
    """The names of a tree: ``occurrences`` of all that may be renamed, by the representative of their keys."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = {path: text for path, text in texts.items() if path.endswith(".py")}
        self.tree = Tree({path: Path(path) for path in texts}, {path: path for path in texts})
        self.files: dict[str, _File] = {}
        self.kept: set[Key] = set()
        self.own: list[Key] = []
        """The files and folders of the tree."""
        self.occurrences: list[Occurrence] = []
        self.words: set[str] = set()
        """All identifiers that stand anywhere, in any role."""
        self.kinds: dict[Key, str] = {}
        self._parents: dict[Key, Key] = {}
        self.strings: set[str] = set()
        self.fragments: set[str] = set()
        self.keywords: set[str] = set()
        self.loose = False
        self.attributes: dict[str, set[str]] = defaultdict(set)
        """How each attribute is defined in the tree: by a method, or by an assignment."""
        unread = []
        for path, text in self.texts.items():
            try:
                tree = ast.parse(text.encode())
            except (SyntaxError, ValueError, RecursionError):
                unread.append(text)
                continue
            self.files[path] = _File(self, path, text, tree)
        for text in [*unread, *(t for p, t in texts.items() if p not in self.texts)]:
            self.strings.update(_WORD.findall(text))
        for file in self.files.values():
            file.look()
        for file in self.files.values():
            file.bind()
        for file in self.files.values():
            file.resolve()
        self._keep()

    def find(self, key: Key) -> Key:
        """The representative of what is renamed together with ``key``."""
        root = key
        while (parent := self._parents.get(root, root)) != root:
            root = parent
        while self._parents.get(key, key) != root:
            self._parents[key], key = root, self._parents[key]
        return root

    def same(self, one: Key, other: Key) -> None:
        """Note that two keys are renamed together."""
        self._parents[self.find(one)] = self.find(other)

    def keep(self, key: Key) -> None:
        self.kept.add(key)

    def renamable(self) -> Iterator[tuple[Key, list[Occurrence]]]:
        """What may be renamed, with all its places, in order of the files."""
        kept = {self.find(key) for key in self.kept}
        found: dict[Key, list[Occurrence]] = {root: [] for key in self.own if (root := self.find(key)) not in kept}
        for occurrence in self.occurrences:
            root = self.find(occurrence.key)
            if root not in kept:
                found.setdefault(root, []).append(occurrence)
        yield from found.items()

    def is_attribute_of_users(self, name: str) -> bool:
        return (
            name in self.attributes
            and name not in public_attributes()
            and name not in self.strings
            and not name.startswith("__")
            and not (self.loose and any(name.startswith(f) or name.endswith(f) for f in self.fragments))
            and ("a", name) not in self.kept
        )

    def _keep(self) -> None:
        for key in {*self.own, *(o.key for o in self.occurrences)}:
            name = key[-1]
            known = name in self.strings and (key[0] in ("k", "m") or (key[0] == "v" and key[2] == "0"))
            of_others = key[0] == "a" and not self.is_attribute_of_users(name)
            if known or of_others or name.startswith("__") or name == "_":
                self.keep(key)


class _Scope:
    def __init__(self, number: int, node: ast.AST, outer: _Scope | None) -> None:
        self.number = str(number)
        self.node = node
        self.outer = outer
        self.bound: set[str] = set()
        self.declared: dict[str, str] = {}

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


class _File:
    """One file: its scopes, what they bind, and where its names stand."""

    def __init__(self, named: Named, path: str, text: str, tree: ast.Module) -> None:
        self.named = named
        self.path = path
        self.tree = tree
        self.data = text.encode()
        self.starts = [0, *(m.end() for m in _NEWLINE.finditer(self.data))]
        self.module = _Scope(0, tree, None)
        self.scopes: dict[ast.AST, _Scope] = {tree: self.module}
        self.scope_of: dict[ast.AST, _Scope] = {}
        self.library: dict[str, set[str]] = defaultdict(set)
        """Names that imports of libraries bind in a scope, by its number."""
        self.public: set[tuple[str, str]] = set()
        """Those of them, by scope and name, that are the library's own."""
        self.modules: dict[tuple[str, str], str] = {}
        """Names that stand for a module of the tree, by scope and name, with its path."""
        self.made: dict[tuple[str, str], set[str]] = defaultdict(set)
        """How names come to be: def, class, import, or other."""
        self.stars: list[str] = []
        self.first: dict[ast.AST, str] = {}

    # first look: words, strings, scopes

    def look(self) -> None:
        named = self.named
        named.words.update(_WORD.findall(self.data.decode()))
        called = {n.func.id for n in ast.walk(self.tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        if called & {"getattr", "setattr", "hasattr", "delattr", "vars", "globals", "__import__"} or (
            b"__dict__" in self.data or b"import_module" in self.data or b"sys.modules" in self.data
        ):
            named.loose = True
        if called & {"locals", "eval", "exec", "globals", "vars"}:
            named.strings.update(_WORD.findall(self.data.decode()))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                named.fragments.update(w for w in _WORD.findall(text) if len(text) < 40 and len(w) > 1)
                if _IDENTIFIERS.match(text):
                    whole = text.lstrip("-")
                    named.strings.update((whole.replace("-", "_"), *re.split(r"[.-]", whole)))
                elif len(text) < 80 and "," not in text and re.fullmatch(r"[\w.:\[\], |]+", text):
                    named.strings.update(_WORD.findall(text) if "[" in text or ":" in text else ())
                if "namedtuple" in called:
                    named.strings.update(_WORD.findall(text))
            elif isinstance(node, ast.keyword) and node.arg is not None:
                named.keywords.add(node.arg)
        self._scan(self.tree, self.module)

    def _scan(self, node: ast.AST, scope: _Scope) -> None:
        """Give every node the scope in which its names are looked up."""
        self.scope_of[node] = scope
        if isinstance(node, (*_SCOPES, ast.ClassDef)):
            inner = _Scope(len(self.scopes), node, scope)
            self.scopes[node] = inner
            for part, child in _parts(node):
                self._scan(child, scope if part == "outside" else inner)
            return
        for child in ast.iter_child_nodes(node):
            self._scan(child, scope)

    # second look: what binds

    def bind(self) -> None:
        for node, scope in self.scope_of.items():
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                scope.declared.update(dict.fromkeys(node.names, type(node).__name__))
        for node, scope in self.scope_of.items():
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                self._bound(self._walrus_scope(node, scope), node.id, "other")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._define(node, scope)
            elif isinstance(node, ast.arg):
                self._bound(scope, node.arg, "argument")
            elif isinstance(node, ast.ExceptHandler) and node.name:
                self._bound(scope, node.name, "other")
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    self._import(scope, alias)
            elif isinstance(node, ast.ImportFrom):
                self._import_from(scope, node)
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                self._bound(scope, node.name, "other")
            elif isinstance(node, ast.MatchMapping) and node.rest:
                self._bound(scope, node.rest, "other")
            elif isinstance(node, ast.MatchClass):
                self.named.kept.update(("a", name) for name in node.kwd_attrs)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                self.named.attributes[node.attr].add("other")

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: _Scope) -> None:
        self._bound(scope, node.name, "class" if isinstance(node, ast.ClassDef) else "def")
        if isinstance(node, ast.ClassDef):
            self._inherited(node, scope)
        elif scope.is_class:
            decorators = {ast.unparse(d) for d in node.decorator_list}
            given = [*node.args.posonlyargs, *node.args.args]
            if given and "staticmethod" not in decorators:
                self.first[node] = given[0].arg

    def _walrus_scope(self, node: ast.Name, scope: _Scope) -> _Scope:
        """Where ``node`` binds: ``:=`` in a comprehension binds around it."""
        comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        while isinstance(scope.node, comprehensions) and self._is_walrus(node) and scope.outer is not None:
            scope = scope.outer
        return scope

    def _is_walrus(self, node: ast.AST) -> bool:
        return node in self._walrus_targets()

    def _walrus_targets(self) -> set[ast.AST]:
        if not hasattr(self, "_walrus"):
            self._walrus = {n.target for n in ast.walk(self.tree) if isinstance(n, ast.NamedExpr)}
        return self._walrus  # type: ignore[return-value]

    def _bound(self, scope: _Scope, name: str, how: str) -> None:
        owner = self._declared_in(scope, name)
        owner.bound.add(name)
        self.made[(owner.number, name)].add(how)
        if owner.is_class:
            self.named.attributes[name].add("method" if how == "def" else "other")

    def _declared_in(self, scope: _Scope, name: str) -> _Scope:
        declared = scope.declared.get(name)
        if declared == "Global":
            return self.module
        if declared == "Nonlocal":
            outer = scope.outer
            while outer is not None and (outer.is_class or name not in outer.bound):
                outer = outer.outer
            return outer or self.module
        return scope

    def _import(self, scope: _Scope, alias: ast.alias) -> None:
        name = alias.asname or alias.name.partition(".")[0]
        found = self.named.tree.resolve(alias.name if alias.asname else name, PurePosixPath(self.path))
        if found is None or self.named.tree.resolve(alias.name, PurePosixPath(self.path)) is None:
            self._of_library(scope, name, alias)
        else:
            self.modules[(scope.number, name)] = found
        self._bound(scope, name, "import")

    def _of_library(self, scope: _Scope, name: str, alias: ast.alias) -> None:
        owner = self._declared_in(scope, name).number
        self.library[owner].add(name)
        if not alias.asname or alias.asname == alias.name:
            self.public.add((owner, name))

    def _import_from(self, scope: _Scope, node: ast.ImportFrom) -> None:
        source = self.source(node)
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*":
                if source is not None:
                    self.stars.append(source)
                continue
            member = None
            if source is None:
                self._of_library(scope, name, alias)
            else:
                member = self.named.tree.at(_folder(source) + alias.name) if _is_folder(source) else None
                if member is not None:
                    self.modules[(scope.number, name)] = member
            self._bound(scope, name, "import")

    def source(self, node: ast.ImportFrom) -> str | None:
        """The file or folder of the tree that ``from ... import`` reads, None for a library."""
        path = PurePosixPath(self.path)
        if node.level:
            return self.named.tree.resolve_relative(node.module, node.level, path)
        return self.named.tree.resolve(node.module or "", path)

    def _inherited(self, node: ast.ClassDef, scope: _Scope) -> None:
        """Keep what a class may have to call as its base does, where that base is of a library."""
        for base in node.bases:
            path = self.public_path(base, scope)
            if path is None:
                continue
            known = _members_of(path)
            if known is not None:
                self.named.kept.update(("a", name) for name in known)
                continue
            for inner in ast.walk(node):
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self.named.keep(("a", inner.name))
                    given = (*inner.args.posonlyargs, *inner.args.args, *inner.args.kwonlyargs)
                    self.named.kept.update(("k", argument.arg) for argument in given)
                elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    self.named.keep(("a", inner.attr))
            for statement in node.body:
                for target in getattr(statement, "targets", [getattr(statement, "target", None)]):
                    if isinstance(target, ast.Name):
                        self.named.keep(("a", target.id))

    def public_path(self, node: ast.expr, scope: _Scope) -> str | None:
        """The dotted path of something that an import of a library names."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        owner = self.lookup(scope, node.id)
        if owner is None:
            return f"builtins.{node.id}" if not names and hasattr(builtins, node.id) else None
        if node.id not in self.library[owner.number]:
            return None
        for statement in ast.walk(self.tree):
            for alias in getattr(statement, "names", ()) if isinstance(statement, (ast.Import, ast.ImportFrom)) else ():
                if (alias.asname or alias.name.partition(".")[0]) == node.id:
                    start = f"{statement.module}." if isinstance(statement, ast.ImportFrom) else ""
                    return ".".join([start + (alias.name if alias.asname or start else node.id), *names])
        return None

    # third look: what each place means

    def lookup(self, scope: _Scope, name: str) -> _Scope | None:
        """The scope whose variable a name is, None for what the file does not bind."""
        declared = scope.declared.get(name)
        if declared == "Global":
            return self.module if name in self.module.bound else None
        inner: _Scope | None = scope if declared is None else scope.outer
        while inner is not None:
            if name in inner.bound and (inner is scope or not inner.is_class):
                return inner
            inner = inner.outer
        return None

    def key(self, scope: _Scope, name: str) -> Key | None:
        """The key of a variable, None for what is not the user's."""
        owner = self.lookup(scope, name)
        if owner is None:
            return self.exported(name, set()) if self.stars else None
        if owner.is_class:
            return ("a", name)
        key: Key = ("v", self.path, owner.number, name)
        if (owner.number, name) in self.public:
            self.named.keep(key)
        if hasattr(builtins, name) and owner is self.module:
            self.named.keep(key)
        return key

    def exported(self, name: str, seen: set[str]) -> Key | None:
        """The key of a name that other files import from this one."""
        if name in self.module.bound:
            return ("v", self.path, "0", name)
        for star in self.stars:
            other = self.named.files.get(star)
            if star not in seen and other is not None:
                seen.add(star)
                found = other.exported(name, seen)
                if found is not None:
                    return found
        return None

    def resolve(self) -> None:
        for node, scope in self.scope_of.items():
            if isinstance(node, ast.Name):
                self._variable(node, scope)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._definition(node, scope)
            elif isinstance(node, ast.arg):
                self._argument(node, scope)
            elif isinstance(node, ast.ExceptHandler) and node.name and node.type is not None:
                self._search(rb"\bas\s+", node.name, self._end(node.type), self.key(scope, node.name), "variable")
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                self._words(node, {name: self.key(scope, name) for name in node.names})
            elif isinstance(node, ast.Attribute):
                self._attribute(node, scope)
            elif isinstance(node, ast.Call):
                self._keywords(node, scope)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    self._resolve_import(alias, scope)
            elif isinstance(node, ast.ImportFrom):
                self._resolve_from(node, scope)
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                self._words(node, {node.name: self.key(scope, node.name)})
            elif isinstance(node, ast.MatchMapping) and node.rest:
                self._words(node, {node.rest: self.key(scope, node.rest)})
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and scope.is_class:
                # a field of a dataclass is given by its name
                self.named.same(("a", node.target.id), ("k", node.target.id))
        module = PurePosixPath(self.path)
        parts = module.parts if module.name != "__init__.py" else module.parts[:-1]
        self.named.own += [self._module_key("/".join(parts[: i + 1])) for i in range(len(parts))]

    def _variable(self, node: ast.Name, scope: _Scope) -> None:
        key = self.key(scope, node.id)
        if key is not None:
            self._at(self._offset(node), node.id, key, "variable")

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: _Scope) -> None:
        word = "class" if isinstance(node, ast.ClassDef) else "def"
        key = self.key(self._declared_in(scope, node.name), node.name)
        self._search(rb"\b" + word.encode() + rb"[ \t\\\r\n]+", node.name, self._offset(node), key, word)

    def _argument(self, node: ast.arg, scope: _Scope) -> None:
        key = self.key(scope, node.arg)
        if key is None:
            return
        if node.arg in self.named.keywords or node.arg in self.named.strings:
            self.named.same(key, ("k", node.arg))
        if self.first.get(scope.node) == node.arg and scope.outer is not None:
            # code moves from method to method of a class, as long as they call their object alike
            self.named.same(key, ("o", self.path, scope.outer.number, node.arg))
        self._at(self._offset(node), node.arg, key, "variable")

    def _attribute(self, node: ast.Attribute, scope: _Scope) -> None:
        start = self._end(node) - len(node.attr.encode())
        found = self._module_of(node.value, scope)
        if found is not None:
            member = self.named.tree.at(_folder(found) + node.attr) if _is_folder(found) else None
            file = self.named.files.get(found if not found.endswith("/") else f"{found}__init__.py")
            key = file.exported(node.attr, set()) if file is not None else None
            if key is None and member is not None:
                key = self._module_key(member)
            if key is not None:
                self._at(start, node.attr, key, "variable")
        elif not self._is_library(node.value, scope):
            self._at(start, node.attr, ("a", node.attr), "variable")

    def _is_library(self, node: ast.expr, scope: _Scope) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        owner = self.lookup(scope, node.id)
        if owner is None:
            return hasattr(builtins, node.id)
        return node.id in self.library[owner.number] and self.made[(owner.number, node.id)] == {"import"}

    def _module_of(self, node: ast.expr, scope: _Scope) -> str | None:
        """The module of the tree that an expression names."""
        if isinstance(node, ast.Attribute):
            outer = self._module_of(node.value, scope)
            return self.named.tree.at(_folder(outer) + node.attr) if outer is not None and _is_folder(outer) else None
        if not isinstance(node, ast.Name):
            return None
        owner = self.lookup(scope, node.id)
        return self.modules.get((owner.number, node.id)) if owner is not None else None

    def _keywords(self, call: ast.Call, scope: _Scope) -> None:
        users = self._is_of_users(call.func, scope)
        for keyword in call.keywords:
            if keyword.arg is None:
                continue
            key = ("k", keyword.arg)
            self._at(self._offset(keyword), keyword.arg, key, "variable")
            if not users:
                self.named.keep(key)

    def _is_of_users(self, function: ast.expr, scope: _Scope) -> bool:
        """Whether a call surely goes to a function or class of the tree."""
        if isinstance(function, ast.Name):
            key = self.key(scope, function.id)
            return key is not None and key[0] == "v" and self.named.files[key[1]].defines(key[2], key[3], set())
        if not isinstance(function, ast.Attribute) or self._is_library(function.value, scope):
            return False
        found = self._module_of(function.value, scope)
        if found is not None:
            file = self.named.files.get(found)
            return file is not None and file.defines("0", function.attr, set())
        name = function.attr
        return self.named.is_attribute_of_users(name) and self.named.attributes[name] == {"method"}

    def defines(self, scope: str, name: str, seen: set[str]) -> bool:
        """Whether a name is nothing but a function or class of the tree, here or where it is imported from."""
        how = self.made[(scope, name)]
        if how and how <= {"def", "class"}:
            return True
        if how != {"import"} or name in self.library[scope] or self.path in seen:
            return False
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    source = self.source(node) if (alias.asname or alias.name) == name else None
                    other = self.named.files.get(source or "")
                    if other is not None:
                        return other.defines("0", alias.name, seen | {self.path})
        return False

    # imports

    def _resolve_import(self, alias: ast.alias, scope: _Scope) -> None:
        tree, path = self.named.tree, PurePosixPath(self.path)
        parts = alias.name.split(".")
        start = self._offset(alias)
        name = alias.asname or parts[0]
        variable = self.key(scope, name)
        if tree.resolve(alias.name, path) is not None:
            for i, part in enumerate(parts):
                found = tree.resolve(".".join(parts[: i + 1]), path)
                if found is not None:
                    key = self._module_key(found)
                    self._at(start, part, key, "module")
                    if i == 0 and not alias.asname and variable is not None:
                        self.named.same(variable, key)
                start += len(part.encode()) + 1
        if alias.asname and variable is not None:
            self._at(self._end(alias) - len(alias.asname.encode()), alias.asname, variable, "variable")

    def _resolve_from(self, node: ast.ImportFrom, scope: _Scope) -> None:
        source = self.source(node)
        path = PurePosixPath(self.path)
        if source is not None and node.module:
            start = self.data.index(node.module.encode(), self._offset(node))
            parts = node.module.split(".")
            for i, part in enumerate(parts):
                stem = ".".join(parts[: i + 1])
                found = (
                    self.named.tree.resolve_relative(stem, node.level, path)
                    if node.level
                    else self.named.tree.resolve(stem, path)
                )
                if found is not None:
                    self._at(start, part, self._module_key(found), "module")
                start += len(part.encode()) + 1
        for alias in node.names:
            if alias.name == "*":
                continue
            name = alias.asname or alias.name
            variable = self.key(scope, name)
            if source is None:
                if alias.asname and variable is not None:
                    self._at(self._end(alias) - len(alias.asname.encode()), alias.asname, variable, "variable")
                continue
            member = self.named.tree.at(_folder(source) + alias.name) if _is_folder(source) else None
            file = self.named.files.get(source if not source.endswith("/") else f"{source}__init__.py")
            exported = file.exported(alias.name, set()) if file is not None else None
            if exported is None and member is not None:
                exported = self._module_key(member)
            if exported is None:
                if variable is not None:
                    self.named.keep(variable)
                continue
            start = self._offset(alias)
            self._at(start, alias.name, exported, "variable")
            if variable is None:
                continue
            if alias.asname:
                self._at(self._end(alias) - len(alias.asname.encode()), alias.asname, variable, "variable")
            else:
                self.named.same(variable, exported)

    def _module_key(self, path: str) -> Key:
        stem = path.removesuffix("/").removesuffix("/__init__.py").removesuffix(".py")
        name = stem.rpartition("/")[2]
        key = ("m", stem, name)
        if name in _STAY or name.startswith("test") or name.endswith("_test") or not name.isidentifier():
            self.named.keep(key)
        if name in sys.stdlib_module_names:
            self.named.keep(key)
        return key

    # places

    def _offset(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _at(self, start: int, name: str, key: Key, kind: str) -> None:
        if self.data[start : start + len(name.encode())] != name.encode():
            self.named.keep(key)
            return
        self.named.occurrences.append(Occurrence(self.path, start, name, key))
        if kind != "variable":
            self.named.kinds.setdefault(key, kind)

    def _search(self, before: bytes, name: str, start: int, key: Key | None, kind: str) -> None:
        if key is None:
            return
        match = re.compile(before + rb"(" + re.escape(name.encode()) + rb")\b").search(self.data, start)
        if match is None:
            self.named.keep(key)
        else:
            self._at(match.start(1), name, key, kind)

    def _words(self, node: ast.AST, keys: Mapping[str, Key | None]) -> None:
        start = self._offset(node)
        text = self.data[start : self._end(node)].decode()
        for match in _WORD.finditer(text):
            key = keys.get(match[0])
            if key is not None:
                self._at(start + len(text[: match.start()].encode()), match[0], key, "variable")


def _is_folder(path: str) -> bool:
    return path.endswith(("/", "__init__.py"))


def _folder(path: str) -> str:
    return path.removesuffix("__init__.py")


def _parts(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The children of a scope, with whether they are evaluated outside of it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        arguments = node.args
        outside: list[ast.AST | None] = [*arguments.defaults, *arguments.kw_defaults]
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        outside += [a.annotation for a in given if a is not None]
        if not isinstance(node, ast.Lambda):
            outside += [*node.decorator_list, node.returns]
        for child in outside:
            if child is not None:
                yield "outside", child
        for argument in given:
            if argument is not None:
                yield "inside", ast.copy_location(_bare(argument), argument)
        for child in node.body if isinstance(node.body, list) else [node.body]:
            yield "inside", child
    elif isinstance(node, ast.ClassDef):
        for child in (*node.decorator_list, *node.bases, *node.keywords):
            yield "outside", child
        for child in node.body:
            yield "inside", child
    else:
        first = node.generators[0]  # type: ignore[attr-defined]
        yield "outside", first.iter
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                yield "inside", getattr(node, field)
        yield "inside", first.target
        for condition in first.ifs:
            yield "inside", condition
        for generator in node.generators[1:]:  # type: ignore[attr-defined]
            yield "inside", generator


def _bare(argument: ast.arg) -> ast.arg:
    return ast.arg(argument.arg)


_public: set[str] = set()


def public_attributes() -> set[str]:
    """The attributes that an object of a library may have."""
    if not _public:
        _public.update(_PUBLIC_ELSEWHERE.split())
        for path in _PUBLIC_OBJECTS.split():
            _public.update(_members_of(path) or ())
    return _public


def _members_of(path: str) -> Iterable[str] | None:
    """The attributes of a class of a library, None where it is not installed."""
    head, _, last = path.rpartition(".")
    try:
        owner: object = importlib.import_module(head)
    except Exception:
        outer, _, middle = head.rpartition(".")
        try:
            owner = getattr(importlib.import_module(outer), middle)
        except Exception:
            return None
    found = getattr(owner, last, None)
    return None if found is None else dir(found)
