"""What becomes of the forms that PyTorch had before 0.4: the changes of the rule ``legacy-variable``."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.graph.model.program import ParsedFile
from codemods.proofs.observations import Link, Site
from codemods.proofs.syntax import answered, argument
from codemods.rules.legacy_variable.aliases import History
from codemods.rules.legacy_variable.changes import Change, change_of, loses_comments, short_of, text_of
from codemods.rules.legacy_variable.histories import (
    is_cut,
    is_cut_here,
    is_fresh,
    is_plain,
    may_be_none,
)
from codemods.source.walking import walk
from codemods.terms.edits import (
    AddDecorator,
    Edit,
    KeepPart,
    RemoveStatement,
    RenameArgument,
    ReplaceExpression,
    WrapBlock,
)
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span

_VOLATILE = "volatile=True is ignored since PyTorch 0.4; it used to switch gradients off for all that came of it"
_NO_GRAD = "{torch}.no_grad()"
_UNDER_NO_GRAD = "put what should not be recorded under `torch.no_grad()`, then drop it"


Chain = tuple[Link, ...]
"""A place and the calls that led there, innermost first."""


def variable(site: Site, file: ParsedFile, found: Sequence[Finding]) -> Change | None:
    """What becomes of a call of ``Variable``; ``found`` is what other rules mend."""
    call = file.find(site.span, ast.Call)
    if not isinstance(call, ast.Call):
        return None
    histories = {o.facts["history"] for o in site.observations} - {History.UNSEEN} or {History.MAYBE}
    given = argument(call, 0, "data")
    known = {"data", "requires_grad", "volatile"}
    if given is None or History.UNSURE in histories or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if len(call.args) > 3 or any(k.arg not in known for k in call.keywords):
        return None
    if loses_comments(file, call, given) or may_be_none(file, given, called=History.MAYBE not in histories):
        return None
    plain = histories == {History.PLAIN} or is_plain(file, given)
    fresh = is_fresh(file, given)
    asks = argument(call, 1, "requires_grad")
    wants = ""
    if asks is not None and not (isinstance(asks, ast.Constant) and not asks.value):
        literal = isinstance(asks, ast.Constant) and asks.value is True
        wants = ".requires_grad_()" if literal else f".requires_grad_({ast.unparse(asks)})"
    apart = bool(wants) or site.any("changed")
    cuts = not plain or (apart and not fresh)
    suffix = (".detach()" if cuts and not is_cut(given) else "") + wants
    if is_cut_here(file, call):
        # its result has no history, even if it has one itself
        suffix, wants = "", ""
    volatile = argument(call, 2, "volatile")
    switched = isinstance(volatile, ast.Constant) and bool(volatile.value) and site.any("fed")
    partners = _switching_off(site, found) if switched else ()
    if switched and not partners:
        return change_of(
            file, call, _VOLATILE, _UNDER_NO_GRAD, KeepPart(site.span, file.span(given), suffix), promise=Promise.ADVICE
        )
    if wants:
        message = "Variable(..., requires_grad=True) makes a new leaf, which a tensor does by itself since PyTorch 0.4"
    elif not plain and suffix:
        message = "Variable() cuts its tensor off the graph; today that is detach()"
    else:
        message = "Variable() does nothing since PyTorch 0.4: it returns its tensor"
    if partners:
        message = _VOLATILE
    elif volatile is not None:
        message += "; volatile= is ignored"
    choice = _choice_of_one(file, call, given) if not suffix else None
    return change_of(
        file,
        call,
        message,
        f"write `{short_of(given)}{suffix}`",
        KeepPart(file.span(choice) if choice is not None else site.span, file.span(given), suffix),
        given=given if not suffix else None,
        partners=partners,
    )


def _choice_of_one(file: ParsedFile, call: ast.Call, given: ast.expr) -> ast.IfExp | None:
    """``x if x is None else Variable(x)``, which then chooses between ``x`` and itself."""
    choice = file.parent(call)
    if not isinstance(choice, ast.IfExp) or isinstance(file.parent(choice), ast.Assign):
        return None
    other = choice.orelse if choice.body is call else choice.body
    named = isinstance(given, ast.Name) and isinstance(other, ast.Name) and given.id == other.id
    plain = all(isinstance(n, (ast.Name, ast.Constant, ast.Compare)) for n in walk(choice.test))
    return choice if named and plain and not loses_comments(file, choice, given) else None


def _switching_off(site: Site, found: Sequence[Finding]) -> tuple[tuple[str, str, int], ...]:
    """The findings whose remedies switch gradients off wherever what is made at ``site`` would be recorded, in every
    run; none where they leave one such place out, or not all such places are known."""
    remedies = [
        (f.key, path, zone)
        for f in found
        if f.promise in (Promise.EXACT, Promise.EQUIVALENT)
        for path, edit in f.edits
        if (zone := _ungraded(edit)) is not None
    ]
    partners: dict[tuple[str, str, int], None] = {}
    for observation in site.observations:
        if not observation.facts["fed"]:
            continue
        if not observation.facts["feeds"]:
            return ()
        for chain in observation.facts["feeds"]:
            key = next((k for k, path, zone in remedies if any(_is_under(link, path, *zone) for link in chain)), None)
            if key is None:
                return ()
            partners[key] = None
    return tuple(partners)


def _ungraded(edit: Edit) -> tuple[Span, Span | None] | None:
    """The function (with None), or the first and last statement, that an edit puts under ``no_grad``."""
    if isinstance(edit, AddDecorator) and edit.code == _NO_GRAD:
        return edit.function, None
    if isinstance(edit, WrapBlock) and edit.header == f"with {_NO_GRAD}:":
        return edit.first, edit.last
    return None


def _is_under(link: Link, path: str, first: Span, last: Span | None) -> bool:
    """Whether a place in a function and a statement comes under a function, or a block."""
    where, function, statement = link
    if where != path:
        return False
    return function == first if last is None else statement.lies_in(first.to(last))


def item(site: Site, file: ParsedFile) -> Change | None:
    """``loss.data[0]``: the number of a tensor that has none to index today."""
    node = file.find(site.span, ast.Subscript)
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    outer = file.parent(node)
    if isinstance(outer, (ast.Attribute, ast.Subscript)):
        # something is done with it that no number can do
        return None
    if answered(file, node, "IndexError", "LookupError"):
        return None
    subject = site.facts["subject"]
    inner = file.find(subject, ast.expr)
    if not isinstance(inner, ast.expr) or loses_comments(file, node, inner):
        return None
    middle = text_of(file, Span(subject.end_line, subject.end_column, *site.span.end))
    return change_of(
        file,
        node,
        f"`{middle}` raises on a 0-dimensional tensor, which a loss is since PyTorch 0.4",
        f"write `{short_of(inner)}.item()`",
        KeepPart(site.span, subject, ".item()"),
        promise=Promise.REPAIR,
    )


def type_asked(site: Site, file: ParsedFile) -> Change | None:
    """A question for the type of a tensor, which is another today."""
    node = file.find(site.span, ast.Compare)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    asked = next(
        (
            side.args[0]
            for side in (node.left, node.comparators[0])
            if isinstance(side, ast.Call)
            and isinstance(side.func, ast.Name)
            and side.func.id == "type"
            and len(side.args) == 1
        ),
        None,
    )
    if asked is None:
        return None
    negation = {ast.Eq: "", ast.Is: "", ast.NotEq: "not ", ast.IsNot: "not "}.get(type(node.ops[0]))
    if negation is None:
        return None
    code = f"{negation}isinstance({ast.unparse(asked)}, {{torch}}.Tensor)"
    return change_of(
        file,
        node,
        "since PyTorch 0.4 no tensor has the type Variable: this comparison always has the same outcome",
        f"write `{code.format(torch='torch')}`",
        ReplaceExpression(site.span, code),
        promise=Promise.BEHAVIOUR,
    )


def volatile_set(site: Site, file: ParsedFile) -> Change | None:
    """``x.volatile = True``, which does nothing today."""
    statement = file.find(site.span, ast.Assign)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    if not isinstance(statement.value, (ast.Constant, ast.Name)):
        return None
    old = ast.unparse(statement)
    if isinstance(statement.value, ast.Constant) and statement.value.value:
        edit = RemoveStatement(site.span)
        return Change(
            file, site.span, site.span, site.span.line, old, _VOLATILE, _UNDER_NO_GRAD, edit, promise=Promise.ADVICE
        )
    message = "volatile is ignored since PyTorch 0.4"
    return Change(file, site.span, site.span, site.span.line, old, message, f"drop `{old}`", RemoveStatement(site.span))


def retain(site: Site, file: ParsedFile) -> Change | None:
    """``retain_variables=``, which is called ``retain_graph`` today."""
    call = file.find(site.span, ast.Call)
    if not isinstance(call, ast.Call) or not any(k.arg == "retain_variables" for k in call.keywords):
        return None
    if answered(file, call, "TypeError"):
        return None
    return change_of(
        file,
        call,
        "retain_variables= is refused since PyTorch 0.4",
        "write `retain_graph=`",
        RenameArgument(site.span, "retain_variables", "retain_graph"),
        promise=Promise.REPAIR,
    )
