"""The rule ``legacy-call``."""

from __future__ import annotations

import ast
import enum
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from codemods.graph.model.facts.outdated import (
    GONE_CALLS,
    OLD_METHODS,
    REMOVED_CALLS,
    RENAMED_ARGUMENTS,
    RENAMED_CALLS,
    SIZE_AVERAGE_AT,
)
from codemods.graph.model.kinds import OldKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import OldForm, Trace
from codemods.graph.model.values import Join, Library, Tensor, Unknown
from codemods.proofs.observations import Decision, Observation, Shows, Site, sites
from codemods.proofs.syntax import answered, bare_method, method
from codemods.rules.base import Rule
from codemods.source.gates import Form, form
from codemods.source.walking import walk
from codemods.terms.edits import (
    DropArgument,
    Edit,
    InsertStatements,
    KeepPart,
    RemoveStatement,
    RenameArgument,
    ReplaceExpression,
    WrapExpression,
)
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span

_MASKED = frozenset(m for m in OLD_METHODS if m.startswith("masked"))

_ASYNC = re.compile(r"\basync\s*=(?!=)")

_SIX = {
    "inf": "from torch import inf",
    "nan": "from torch import nan",
    "string_classes": "string_classes = (str, bytes)",
    "int_classes": "int_classes = int",
    "container_abcs": "import collections.abc as container_abcs",
}
"""What ``torch._six`` held until 2.0, and where that is (its source in PyTorch 1.13)."""


#: Names of calls that other libraries, and torch itself elsewhere, have as well; with their module they are torch's.
_COMMON = frozenset({"uniform", "normal", "constant", "eye", "dirac", "orthogonal", "sparse", "eig", "solve"})


def _word(path: str) -> bytes | Form:
    """What stands in a text that calls the function of torch at ``path``."""
    module, _, name = path.rpartition(".")
    if path.startswith("torchvision."):
        # Its transforms go by many names.
        return form(rf"\.{name}\s*[(),]", word=f".{name}")
    if name in _COMMON:
        return f"{module.rpartition('.')[2]}.{name}(".encode()
    # torch.linalg.lstsq and numpy.fft.rfft are something else
    return form(rf"(?<!def )(?<!linalg\.)(?<!fft\.)\b{name}\(", word=f"{name}(")


_OF_LIBRARY = (OldKind.CALL, OldKind.BASE, OldKind.LOSS, OldKind.VERBOSE)


_REFUSALS = ("AttributeError", "TypeError", "RuntimeError")
"""What old forms raise today."""

_Form = enum.Enum("_Form", "CALL BASE LOSS VERBOSE KEYWORD NEXT MASK SIX")


class LegacyCall(Rule):
    """Calls that old PyTorch knew and today's refuses or warns about.

    Why it hurts: They stop a script that is otherwise sound, often before its first step, with a SyntaxError,
    AttributeError, TypeError or RuntimeError, and have nothing to do with what it computes.

    The rewrite:

    * ``x.cuda(async=True)`` is no Python any more: ``async`` is a reserved word since 3.7. It becomes
      ``non_blocking=True``, in files that are read in spite of it.
    * ``x.cuda(device_id=0)`` -> ``device=0``.
    * ``iter(loader).next()``, refused since the iterator of a ``DataLoader`` has ``__next__`` only -> ``next(...)``.
    * ``x.masked_fill(mask.byte(), v)`` and its relatives, which take boolean masks only -> ``mask.bool()``.
    * ``verbose=`` of learning-rate schedulers, which is gone, is dropped.
    * ``transforms.Scale`` and ``RandomSizedCrop`` of torchvision, called or derived from -> ``Resize``,
      ``RandomResizedCrop``.
    * ``torch.matrix_rank`` -> ``torch.linalg.matrix_rank``; ``from torch._six import inf`` and the like -> where these
      are today.
    * ``clip_grad_norm`` -> ``clip_grad_norm_``, ``init.xavier_uniform`` -> ``init.xavier_uniform_`` and the like, and
      ``size_average=False``, ``reduce=False`` -> ``reduction="sum"``, ``"none"``: these still run, with a warning each.
    * Calls whose successor takes other arguments or returns something else (``torch.symeig``, ``torch.solve``,
      ``torch.rfft``, ...) are named, with the successor, and not changed.

    Left alone: what runs today under its old name without a warning (``F.sigmoid``, ``F.tanh``); functions and classes
    of the tree that have arguments of these names; ``size_average=flag``; iterators that are not made by ``iter()``.

    Promise: repair where the old form is refused today: the rewritten one does what it did where it ran. Exact where it
    still runs, with a warning.

    Sources: https://pytorch.org/blog/pytorch-0_4_0-migration-guide/ and the release notes of PyTorch; each form was
    tried on torch 2.13.
    """

    name = "legacy-call"
    promise = Promise.EXACT
    summary = "calls of old PyTorch that today's refuses or warns about"
    gate = (
        form(r"\basync\s*=(?!=)", word="async"),
        form(r"\.cuda\([^)]*\bdevice_id\s*=", word="device_id"),
        b".next()",
        b".byte()",
        form(r"\bverbose\s*=", word="verbose", beside="lr_scheduler"),
        b"torch._six",
        b"size_average",
        form(r"\breduce\s*=\s*(?:True|False)\b", word="reduce"),
        b"Loss(False",
        b"Loss(True",
        b"Loss(None",
        *(_word(path) for path in (*RENAMED_CALLS, *REMOVED_CALLS)),
    )

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        for old in trace.old:
            if old.kind is OldKind.METHOD:
                yield from self._method(old)
            elif old.kind in _OF_LIBRARY and isinstance(old.value, Library):
                alone = old.kind is OldKind.BASE or trace.called.get(old.place.node) == old.value.path
                fits = alone and (old.kind in (OldKind.LOSS, OldKind.VERBOSE) or _is_its_name(old))
                yield self._note(old, _Form[old.kind.name], Shows.FAULT if fits else Shows.UNSURE, path=old.value.path)
        done: set[int] = set()
        for frame in trace.frames:
            if id(frame.file) not in done:
                done.add(id(frame.file))
                yield from self._imports(frame.file)
                yield from self._reserved(frame.file)

    def _reserved(self, file: ParsedFile) -> Iterator[Observation]:
        """Every ``async=``, wherever it stands: one that is left would keep the whole file from running."""
        if not file.holds(_ASYNC):
            return
        for node in file.once(_asynchronous, file.tree):
            yield self.seen(file, node, Shows.FAULT, _Form.KEYWORD, argument="async", today="non_blocking")

    def _note(self, old: OldForm, form: _Form, shows: Shows = Shows.FAULT, **more: str) -> Observation:
        return self.seen(old.place.frame.file, old.place.node, shows, form, **more)

    def _method(self, old: OldForm) -> Iterator[Observation]:
        call = old.place.node
        assert isinstance(call, ast.Call)
        assert isinstance(old.subject, ast.Attribute)
        name = old.subject.attr
        names = {k.arg for k in call.keywords}
        if name == "next":
            if not call.args and not names:
                yield self._note(old, _Form.NEXT, Shows.FAULT if _is_iterator(old.value) else Shows.UNSURE)
        elif name in _MASKED:
            if call.args and bare_method(call.args[0]) == "byte":
                yield self._note(old, _Form.MASK, Shows.FAULT if _is_tensor(old.value) else Shows.UNSURE)
        elif "device_id" in names and name == "cuda":
            yield self._note(old, _Form.KEYWORD, argument="device_id", today="device")

    def _imports(self, file: ParsedFile) -> Iterator[Observation]:
        if "torch._six" not in file.text:
            return
        for node in file.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "torch._six" and not node.level:
                yield self.seen(file, node, Shows.FAULT, _Form.SIX)

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        lines: dict[tuple[str, Span, str, Promise], list[_Change]] = defaultdict(list)
        for old, make in _MAKES.items():
            for site in sites(observations, old):
                file = decision.files(site.path) if site.faulty else None
                change = make(site, file) if file is not None else None
                if file is None or change is None:
                    continue
                node = file.find(site.span, ast.expr, ast.stmt)
                if change.raises and node is not None and answered(file, node, *_REFUSALS):
                    continue
                statement = node if isinstance(node, ast.stmt) else file.enclosing(node, ast.stmt) if node else None
                header = Span(site.span.line, 0, site.span.line, 0)
                key = file.span(statement) if statement is not None and not hasattr(statement, "body") else header
                kept = Promise.REPAIR if change.raises else Promise.EXACT
                promise = kept if change.edits else Promise.ADVICE
                lines[(site.path, key, change.since, promise)].append(change)
        for (path, _, since, promise), changes in sorted(lines.items(), key=lambda item: item[0][:2]):
            yield Finding(
                self.name, path, min(change.span for change in changes), promise,
                "; ".join(dict.fromkeys(change.message for change in changes)),
                "; ".join(dict.fromkeys(change.remedy for change in changes)),
                tuple(TrailStep(path, change.span.line, "written for an older PyTorch") for change in changes[:3]),
                tuple((path, edit) for change in changes for edit in change.edits),
                since=since, yields=True,
            )  # fmt: skip


@dataclass(frozen=True)
class _Change:
    """One old form and its edits; without edits it is only named."""

    span: Span
    message: str
    remedy: str
    edits: tuple[Edit, ...]
    since: str = ""
    raises: bool = True
    """Whether it is refused today, and does not only warn."""


def _asynchronous(tree: ast.Module) -> list[ast.Call]:
    """The calls of a file that are given ``async=``."""
    return [
        node
        for node in walk(tree)
        if isinstance(node, ast.Call) and method(node) in OLD_METHODS and any(k.arg == "async" for k in node.keywords)
    ]


def _is_its_name(old: OldForm) -> bool:
    """Whether what is called can be named otherwise where it is called: a variable may hold another function the next
    time."""
    file, node = old.place.frame.file, old.subject
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id not in file.once(_variables, file.tree)


def _variables(tree: ast.Module) -> frozenset[str]:
    """The names that a file gives to anything but by imports."""
    nodes = list(walk(tree))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    names |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return frozenset(names | {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))})


def _is_iterator(value: Value) -> bool:
    """Whether a value was made by ``iter()`` of something that is no object of the tree, or by what that calls."""
    if isinstance(value, Join):
        return all(_is_iterator(option) for option in value.options)
    return isinstance(value, Unknown) and value.path in ("builtins.iter", "torch.utils.data.DataLoader.__iter__")


def _is_tensor(value: Value) -> bool:
    if isinstance(value, Join):
        return any(_is_tensor(option) for option in value.options)
    return isinstance(value, Tensor) or (isinstance(value, Unknown) and value.node is not None)


# what becomes of it


def _call(site: Site, file: ParsedFile) -> _Change | None:
    call = file.find(site.span, ast.Call)
    if not isinstance(call, ast.Call):
        return None
    change = _renamed(site, file, call.func)
    old, today = RENAMED_ARGUMENTS.get(site.facts["path"], ("", ""))
    if change.edits and any(keyword.arg == old for keyword in call.keywords):
        return replace(change, edits=(*change.edits, RenameArgument(site.span, old, today)))
    return change


def _base(site: Site, file: ParsedFile) -> _Change | None:
    base = file.find(site.span, ast.Attribute, ast.Name)
    return _renamed(site, file, base) if isinstance(base, ast.expr) else None


def _renamed(site: Site, file: ParsedFile, named: ast.expr) -> _Change:
    path = site.facts["path"]
    today = RENAMED_CALLS.get(path)
    if today is None:
        successor = REMOVED_CALLS[path]
        message = f"{path} was removed; {successor} replaces it, with other arguments or results"
        return _Change(site.span, message, f"see {successor}", ())
    refused = path in GONE_CALLS
    (module, _, name), (home, _, successor) = path.rpartition("."), today.rpartition(".")
    message = f"{name} is {'gone' if refused else 'deprecated'} in favour of {today}"
    if isinstance(named, ast.Attribute) and home == module:
        owner = ast.unparse(named.value)
        edit: Edit = KeepPart(file.span(named), file.span(named.value), f".{successor}")
        return _Change(site.span, message, f"write `{owner}.{successor}`", (edit,), "0.4", refused)
    if not today.startswith("torch."):
        return _Change(site.span, message, f"import {successor} from {home}", ())
    code = f"{{torch}}{today.removeprefix('torch')}"
    since = "1.8" if refused else "0.4"
    return _Change(site.span, message, f"write `{today}`", (ReplaceExpression(file.span(named), code),), since, refused)


def _loss(site: Site, file: ParsedFile) -> _Change | None:
    call = file.find(site.span, ast.Call)
    if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    given = {k.arg: k.value for k in call.keywords}
    if None in given or "reduction" in given:
        return None
    average: str | int | None = "size_average" if "size_average" in given else None
    at = SIZE_AVERAGE_AT.get(site.facts["path"].rpartition(".")[2])
    if average is None and at is not None and len(call.args) == at + 1:
        average = at
    reduce = "reduce" if "reduce" in given else None
    if average is None and reduce is None:
        return None
    values: list[ast.expr | None] = [
        call.args[average] if isinstance(average, int) else given.get(average),
        given.get(reduce),
    ]
    # ``0`` is false there and equals False, but is not the one that is looked for below
    literal = (True, False, None)
    if any(v is not None and not (isinstance(v, ast.Constant) and any(v.value is x for x in literal)) for v in values):
        return None
    averages, reduces = (v.value if isinstance(v, ast.Constant) else None for v in values)
    # as torch.nn._reduction.legacy_get_string has it
    word = "none" if reduces is False else "sum" if averages is False else "mean"
    named: str | int = average if average is not None else "reduce"
    target = values[0] if average is not None else values[1]
    assert target is not None
    edits: list[Edit] = [
        RenameArgument(site.span, named, "reduction"),
        ReplaceExpression(file.span(target), f"{_quote(file)}{word}{_quote(file)}"),
    ]
    if average is not None and reduce is not None:
        edits.append(DropArgument(site.span, reduce))
    message = "size_average= and reduce= are deprecated in favour of reduction="
    return _Change(site.span, message, f'write `reduction="{word}"`', tuple(edits), "0.4.1", False)


def _quote(file: ParsedFile) -> str:
    return '"' if file.text.count('"') >= file.text.count("'") else "'"


def _verbose(site: Site, file: ParsedFile) -> _Change | None:
    return _Change(
        site.span, "schedulers no longer take verbose=", "drop `verbose=`", (DropArgument(site.span, "verbose"),)
    )


def _keyword(site: Site, file: ParsedFile) -> _Change | None:
    argument, today = site.facts["argument"], site.facts["today"]
    why = "a reserved word since Python 3.7" if argument == "async" else "refused today"
    return _Change(
        site.span,
        f"{argument}= is {why}; PyTorch calls it {today}=",
        f"write `{today}=`",
        (RenameArgument(site.span, argument, today),),
        "0.4",
    )


def _next(site: Site, file: ParsedFile) -> _Change | None:
    call = file.find(site.span, ast.Call)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    iterator = file.span(call.func.value)
    return _Change(
        site.span,
        "iterators have no next() method in Python 3, that of a DataLoader included",
        f"write `next({ast.unparse(call.func.value)})`",
        (KeepPart(site.span, iterator), WrapExpression(iterator, "next(", ")")),
    )


def _mask(site: Site, file: ParsedFile) -> _Change | None:
    call = file.find(site.span, ast.Call)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    mask = call.args[0]
    if not isinstance(mask, ast.Call) or not isinstance(mask.func, ast.Attribute):
        return None
    return _Change(
        site.span,
        f"{call.func.attr} takes boolean masks only",
        f"write `{ast.unparse(mask.func.value)}.bool()`",
        (KeepPart(file.span(mask), file.span(mask.func.value), ".bool()"),),
        "1.2",
    )


def _six(site: Site, file: ParsedFile) -> _Change | None:
    statement = file.find(site.span, ast.ImportFrom)
    if not isinstance(statement, ast.ImportFrom):
        return None
    if any(alias.name not in _SIX or alias.asname not in (None, alias.name) for alias in statement.names):
        return _Change(site.span, "torch._six is gone", "import these names from where they are now", ())
    code = "\n".join(_SIX[alias.name] for alias in statement.names)
    edits = (InsertStatements(site.span, "after", code), RemoveStatement(site.span))
    return _Change(site.span, "torch._six is gone", f"write `{'; '.join(code.splitlines())}`", edits)


_MAKES = dict(zip(_Form, (_call, _base, _loss, _verbose, _keyword, _next, _mask, _six), strict=True))
"""What becomes of each form, in the order in which a line tells them."""

RULE = LegacyCall
