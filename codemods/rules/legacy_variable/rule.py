"""The rule ``legacy-variable``."""

from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Iterable, Iterator

from codemods.graph.model.kinds import AliasForm, Altered, OldKind
from codemods.graph.model.nodes import Frame, Node, Place, all_descendants
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import DATA, Tensor, nodes_of
from codemods.graph.python.old_forms import first_element
from codemods.proofs.observations import Decision, Observation, Shows, Site, link_of, sites
from codemods.proofs.syntax import suspends
from codemods.rules.base import Rule
from codemods.rules.legacy_variable import old_forms as forms
from codemods.rules.legacy_variable import unit_gradients as gradients
from codemods.rules.legacy_variable.aliases import (
    Changes,
    History,
    has_dimension,
    history_of,
    old_forms,
    one_element,
    reduced,
    walked,
)
from codemods.rules.legacy_variable.changes import Change, Line, changes_at, within, without_unseen
from codemods.rules.legacy_variable.data_read import data as data_read
from codemods.rules.surplus_retain_graph import SurplusRetainGraph
from codemods.source.gates import form
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span

_SURPLUS = SurplusRetainGraph.name

_VARIABLE = frozenset(("torch.autograd.Variable", "torch.Variable"))


class _Form(enum.Enum):
    VARIABLE = "Variable(x)"
    DATA = "x.data"
    ITEM = "x.data[0]"
    TYPE = "type(x) is Variable"
    VOLATILE = "x.volatile = True"
    GRADIENT = "backward(torch.ones(1))"
    RETAIN = "retain_variables"


class LegacyVariable(Rule):
    """Forms from before PyTorch 0.4, when a ``Variable`` with a history was wrapped around each tensor.

    Why it hurts: Tensors have histories of their own today. What is left of the old forms is refused (``loss.data[0]``
    on a loss, ``retain_variables=``), ignored (``volatile=``), or does something that its name does not say:
    ``Variable(x)`` makes another tensor over the same memory, without the history of ``x``: it costs a call (some
    microseconds) and cuts a graph without saying so. ``loss.data[0]`` and ``retain_variables=`` end the run with
    IndexError and TypeError.

    The rewrite: What each becomes is what it does today, or, where it raises today, what it did where it ran:

    * ``Variable(x)`` -> ``x``; ``x.detach()`` where ``x`` has a history or that cannot be ruled out, or where one of
      the two objects is changed afterwards (``unsqueeze_``, ``requires_grad = True``) and the other is used.
      ``Variable(x, requires_grad=True)`` -> a new leaf, ``x.detach().requires_grad_()``. A statement that would then
      assign a name to itself goes.
    * ``volatile=`` is dropped, also where it is no literal. A literal ``volatile=True`` asked for what is
      ``torch.no_grad()`` today: on evaluation it is mended together with that by ``grad-in-evaluation``, which goes
      first; this rule's share of it is made together with that finding, or not at all. Elsewhere it goes only where
      nothing is recorded of what it stands for, and is ``advice`` where something is.
    * ``loss.data[0]``, also through ``.cpu()`` and ``.numpy()`` -> ``loss.item()``, where one element is proven: a
      reduced loss, something that ``backward()`` was called on. A vector's first element stays an index.
    * ``x.data`` that is only read -> ``x.detach()``, or ``x`` where that has no history, or where only a comparison
      comes of it (``x.data > 0``). It stays where it is written through, where ``x`` may be something
      else (a packed sequence, a data frame), and where it enters a graph while ``x`` changes in place before the
      backward: a parameter that an optimizer steps. There ``detach()`` would raise, because it shares the counter by
      which autograd notices such changes.
    * ``retain_variables=`` -> ``retain_graph=``, where ``surplus-retain-graph`` does not drop it.
    * ``type(x) == Variable``, which no tensor is any more -> ``isinstance(x, torch.Tensor)``; that changes what runs
      today, so it is ``behaviour``. The helper that repackages hidden state belongs to ``carried-hidden-state``.
      ``isinstance(x, Variable)`` still holds for every tensor and stays.
    * ``loss.backward(one)`` with ``one = torch.FloatTensor([1])``: a gradient of shape [1], which a loss had before 0.4
      and has no more. The constant becomes ``torch.tensor(1.0)`` where it is made, also where it is moved or negated on
      the way, if every use of it is proven to be such a gradient; that is a ``repair``. Where that is not proven, the
      backward that raises is ``advice``.

    Imports that nothing uses any more go with the last use.

    Left alone: ``Variable`` of other libraries and of the tree, calls with ``*args``, ``Variable()`` and
    ``Variable(None)``, which are empty tensors, and what may be None; numpy arrays (``Variable`` refuses them); a
    gradient of shape [1] for a loss that has that shape (``output.mean(0).view(1)``).

    Promise: exact where the old form runs today, and the rewritten code does what it does. Repair where it is refused
    today (``loss.data[0]``, ``retain_variables=``, a gradient without dimensions) and the rewritten code does what it
    did where it ran. A mended ``type(x) == Variable`` is ``behaviour``.

    Source: https://pytorch.org/blog/pytorch-0_4_0-migration-guide/
    """

    name = "legacy-variable"
    promise = Promise.EXACT
    since = "0.4"
    summary = "forms of PyTorch before 0.4 that are refused, ignored or misleading today"
    gate = (
        form(r"\bVariable\b", word="Variable"),
        b"volatile",
        b"retain_variables",
        # given a gradient: neither nothing nor a flag
        form(r"\.backward\(\s*(?:gradient\s*=\s*)?-?[\w.]+\s*[,()\[*/+-]", word=".backward("),
        # of an object's own field nothing is known
        form(
            r"(?<!\bself)\.data(?:[\[\]),]| [-*+/]|[ \t\r]*$|\.(?:"
            r"abs|clone|cpu|cuda|eq|float|item|long|max|mean|min|new|norm|numpy|size|squeeze|sum|tolist|topk|type|view))",
            word=".data",
        ),
    )

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not (trace.aliases or trace.old or trace.walks or trace.alterations):
            return
        yield from self._given(trace)
        changes = Changes(trace)
        recorded = _recorded(trace)
        reshaped = _reshaped(trace)
        for alias in trace.aliases:
            file, node = alias.place.frame.file, alias.place.node
            if alias.form is AliasForm.VARIABLE:
                if not isinstance(node, ast.Call) or trace.called.get(node) not in _VARIABLE:
                    # something else calls it: map(Variable, batch), partial(Variable, requires_grad=True)(x)
                    continue
                history = history_of(alias.given)
                fed = alias.grad is not False and (not trace.complete or id(node) in recorded)
                feeds = recorded.get(id(node), ()) if trace.complete else ()
                changed = changes.objects(alias)
                yield self.seen(
                    file, node, Shows.FAULT, _Form.VARIABLE, history=history, changed=changed, fed=fed, feeds=feeds
                )
            elif alias.form is AliasForm.DATA and isinstance(node, ast.Attribute):
                written = changes.tied(alias) or not _followed(alias.place.frame, trace)
                shows = Shows.NEEDED if written else Shows.FAULT
                # what was not looked at may bring something else here, and a gradient may have a history of its own
                gradient = alias.given is DATA or (isinstance(alias.given, Tensor) and alias.given.gradient)
                known = trace.complete and not gradient
                history = history_of(alias.given) if known else History.MAYBE
                yield self.seen(file, node, shows, _Form.DATA, history=history, changed=changes.objects(alias))
        for old in trace.old:
            file, node = old.place.frame.file, old.place.node
            if old.kind is OldKind.FIRST_ELEMENT:
                proven = one_element(old.value) or reduced(old.subject)
                if has_dimension(old.value, old.subject):
                    proven = False
                if any(reshaped.get(node, old.place.clock) < old.place.clock for node in nodes_of(old.value)):
                    # loss.data = loss.data.reshape(1)
                    proven = False
                subject = file.span(old.subject)
                shows = Shows.FAULT if proven else Shows.UNSURE
                yield self.seen(file, node, shows, _Form.ITEM, subject=subject, unreached=False)
            elif old.kind is OldKind.TYPE_IS_VARIABLE:
                yield self.seen(file, node, Shows.FAULT, _Form.TYPE)
        for change in trace.alterations:
            statement = change.place.statement
            if (
                change.how is Altered.VOLATILE
                and isinstance(change.value, Tensor)
                and isinstance(statement, ast.Assign)
            ):
                yield self.seen(change.place.frame.file, statement, Shows.FAULT, _Form.VOLATILE)
        yield from self._retained(trace)
        yield from self._unreached(trace)

    def _unreached(self, trace: Trace) -> Iterator[Observation]:
        """What stands in branches that this run did not take: a constant decides them, or another device."""
        seen = {id(alias.place.node) for alias in trace.aliases} | {id(old.place.node) for old in trace.old}
        done: set[int] = set()
        for frame in trace.frames:
            code = frame.definition or frame.file.tree
            if id(code) in done or isinstance(code, ast.Lambda):
                continue
            done.add(id(code))
            for node in old_forms(frame.file, code):
                if id(node) in seen:
                    continue
                if isinstance(node, ast.Call):
                    yield self.seen(
                        frame.file,
                        node,
                        Shows.FAULT,
                        _Form.VARIABLE,
                        history=History.UNSEEN,
                        changed=False,
                        fed=True,
                        feeds=(),
                    )
                elif (subject := first_element(node)) is not None:
                    proven = reduced(subject) or walked(subject, code)
                    span = frame.file.span(subject)
                    shows = Shows.FAULT if proven else Shows.UNSURE
                    yield self.seen(frame.file, node, shows, _Form.ITEM, subject=span, unreached=True)

    def _given(self, trace: Trace) -> Iterator[Observation]:
        """The backward passes that get a gradient."""
        top = trace.frames[0] if trace.frames else None
        for walk, call in gradients.given_gradients(trace):
            file = walk.place.frame.file
            program = top is not None and top.function is None and top.file is file
            shows = Shows.FAULT if gradients.is_dimensionless(walk) else Shows.NEEDED
            elsewhere = gradients.named_elsewhere(trace, file)
            yield self.seen(file, call, shows, _Form.GRADIENT, program=program, elsewhere=elsewhere)

    def _retained(self, trace: Trace) -> Iterator[Observation]:
        walks = [w for w in trace.walks if w.retain_argument == "retain_variables" and w.call is not None]
        if not walks:
            return
        surplus = {(o.path, o.span): o.shows for o in SurplusRetainGraph().observe(trace)}
        for walk in walks:
            assert walk.call is not None
            file = walk.place.frame.file
            dropped = surplus.get((file.path, file.span(walk.call))) is Shows.FAULT
            yield self.seen(file, walk.call, Shows.FAULT, _Form.RETAIN, dropped=dropped)

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        lines: dict[tuple[str, Span, int, bool], Line] = {}
        for change in self._changes(observations, decision):
            # what changes the program must be asked for, and does not keep the rest of its line waiting
            key = (change.file.path, change.statement, change.line, change.promise is Promise.BEHAVIOUR)
            lines.setdefault(key, Line()).changes.append(change)
        for (path, statement, _, _), line in sorted(lines.items(), key=lambda item: item[0][:3]):
            promise = max((change.promise for change in line.changes), key=lambda p: p.rank)
            yield self._finding(path, statement, promise, line)
        yield from self._gradients(observations, decision)

    def _changes(self, observations: list[Observation], decision: Decision) -> Iterator[Change]:
        items = [without_unseen(s) for s in sites(observations, _Form.ITEM)]
        numbers = [(s.path, s.span) for s in items]
        yield from changes_at([s for s in items if s.faulty], decision, forms.item)
        variable = functools.partial(forms.variable, found=decision.found)
        yield from changes_at(sites(observations, _Form.VARIABLE), decision, variable)
        data = [s for s in sites(observations, _Form.DATA) if not any(within(s, *number) for number in numbers)]
        yield from changes_at([s for s in data if s.faulty], decision, data_read)
        yield from changes_at(sites(observations, _Form.TYPE), decision, forms.type_asked)
        yield from changes_at(sites(observations, _Form.VOLATILE), decision, forms.volatile_set)
        owned = _SURPLUS not in decision.options.ignore and _SURPLUS in (decision.options.select or (_SURPLUS,))
        retained = [
            s
            for s in sites(observations, _Form.RETAIN)
            if not (owned and all(o.facts["dropped"] for o in s.observations))
        ]
        yield from changes_at(retained, decision, forms.retain)

    def _gradients(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        by_path: dict[str, list[Site]] = {}
        for site in sites(observations, _Form.GRADIENT):
            by_path.setdefault(site.path, []).append(site)
        for path, found in by_path.items():
            file = decision.files(path)
            if file is None:
                continue
            constants = gradients.Constants(file, found)
            for constant in constants.found:
                raising = [site for site in constant.sites if site.faulty]
                if raising:
                    yield self._gradient(file, constants, constant, raising)

    def _gradient(
        self, file: ParsedFile, constants: gradients.Constants, constant: gradients.Constant, raising: list[Site]
    ) -> Finding:
        message = (
            "backward() refuses a gradient of shape [1] for a loss without dimensions, as reduced ones are since 0.4"
        )
        trail = tuple(TrailStep(s.path, s.span.line, "given to a loss without dimensions here") for s in raising[:3])
        if not constants.proven(constant):
            message += "; what else reads it was not proven to be such a gradient"
            return Finding(
                self.name, file.path, raising[0].span, Promise.ADVICE, message, "give it `torch.tensor(1.0)`", trail
            )
        edits = tuple((file.path, edit) for edit in constants.edits(constant))
        remedy = "make the constant without dimensions"
        span = min(file.span(maker) for maker in constant.makers)
        return Finding(self.name, file.path, span, Promise.REPAIR, message, remedy, trail, edits)

    def _finding(self, path: str, statement: Span, promise: Promise, line: Line) -> Finding:
        edits = line.edits(statement) if promise is not Promise.ADVICE else []
        messages = list(dict.fromkeys(change.message for change in line.changes))
        remedies = list(dict.fromkeys(change.remedy for change in line.changes))
        span = min(change.span for change in line.changes)
        trail = tuple(
            TrailStep(path, c.span.line, f"written for PyTorch before 0.4: {c.old}") for c in line.changes[:3]
        )
        return Finding(
            self.name,
            path,
            span,
            promise,
            "; ".join(messages),
            "; ".join(remedies),
            tuple(dict.fromkeys(trail)),
            tuple((path, edit) for edit in edits),
            partners=tuple(dict.fromkeys(partner for change in line.changes for partner in change.partners)),
            yields=True,
        )


def _followed(frame: Frame, trace: Trace) -> bool:
    """Whether a run came to the end of a call, and into all that it calls: what is written there shows."""
    return frame not in trace.cut_short and (trace.complete or frame.end >= 0)


def _reshaped(trace: Trace) -> dict[Node, int]:
    """The nodes of tensors that get another shape in place, with the first moment of it."""
    changes = [change for change in trace.alterations if change.how is Altered.SHAPE]
    return {node: change.place.clock for change in reversed(changes) for node in nodes_of(change.value)}


def _recorded(trace: Trace) -> dict[int, tuple[forms.Chain, ...]]:
    """The calls of ``Variable(..., volatile=True)`` whose tensors enter a graph, or may, with where they do, and where
    parameters take part in what is made of it: it would be recorded from there on, whatever was not before."""
    drawn: dict[int, dict[Node, None]] = {}
    for node in trace.nodes:
        for origin in node.shadow:
            if isinstance(origin, Place):
                drawn.setdefault(id(origin.node), {})[node] = None
    # one call made many tensors, and many of them meet again: each node is looked at once a call, each place once
    known: dict[tuple[Frame, ast.stmt | None], forms.Chain] = {}

    def chain(place: Place) -> forms.Chain:
        key = (place.frame, place.statement)
        if key not in known:
            known[key] = _chain(place)
        return known[key]

    entered: dict[int, dict[forms.Chain, None]] = {}
    for call, nodes in drawn.items():
        learned = [n for n in all_descendants(nodes) if n in nodes or any(parent.leaf for parent in n.parents)]
        learned.sort(key=lambda n: n.birth)
        entered[call] = dict.fromkeys(chain(n.place) for n in learned)
    for call, places in trace.given_away.items():
        entered.setdefault(call, {}).update(dict.fromkeys(map(chain, places)))
    return {call: tuple(chains) for call, chains in entered.items()}


def _chain(place: Place) -> forms.Chain:
    """The statements of a place and of the calls that led there, innermost first, with the functions they stand in.

    A generator or a coroutine may run on where no statement of its callers is in force.
    """
    links = []
    for at in place.chain():
        file, function = at.frame.file, at.frame.definition
        if (link := link_of(at)) is not None:
            links.append(link)
        if isinstance(function, ast.AsyncFunctionDef) or (function is not None and file.once(suspends, function)):
            break
    return tuple(links)


RULE = LegacyVariable
