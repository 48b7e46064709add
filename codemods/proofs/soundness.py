"""Whether a rewritten program is sound: what two simulations show of it, before the edits and after them.

Independent of rules: a rule proves that its own edit is right in the program that it read, and this compares the
program that came of all edits together with the one before. A backward must not come to a freed graph, or to weights
that have changed, where it did not before; it must not lose parameters that it gave gradients to; and nothing that has
become a number may be asked for what only tensors have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from codemods.graph.model.facts.layers import LOSS_MODULES, MODULES_WITH_PARAMETERS
from codemods.graph.model.facts.memory import SHARING_MEMORY
from codemods.graph.model.kinds import WRITTEN, AliasForm, NodeKind, WalkKind
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.trace import Alteration, Trace
from codemods.graph.model.values import Tensor
from codemods.proofs.early_changes import changed_before, changes_of
from codemods.proofs.reach import reached_surely
from codemods.proofs.saving import savers
from codemods.source.line_map import LineMap
from codemods.terms.findings import Finding, Promise, as_advice

Site = tuple[str, int]
"""A path and a line."""

Leaf = tuple[str, int, str]
"""Where a parameter was made, and what it is called there."""


@dataclass
class Conduct:
    """What runs show of a program, by lines of its files: plain data, which travels between processes.

    ``leaves`` are those that each backward comes to, ``sound`` those that it comes to without raising; ``raises`` are
    backwards that come to something too late, with the lines of the backward that freed it or of what changed it, and
    whether that is sure; ``misuses`` see :class:`~codemods.graph.model.trace.Trace`; ``stepped`` are the leaves that an
    optimizer changes, ``blind`` tells that some optimizer's cannot be seen; ``caught`` are backwards whose errors code
    around them swallows.
    """

    leaves: dict[Site, frozenset[Leaf]] = field(default_factory=dict)
    sound: dict[Site, frozenset[Leaf]] = field(default_factory=dict)
    raises: dict[tuple[Site, Site], bool] = field(default_factory=dict)
    misuses: dict[tuple[str, int, str], bool] = field(default_factory=dict)
    stepped: frozenset[Leaf] = frozenset()
    blind: bool = False
    caught: frozenset[Site] = frozenset()

    def add(self, other: Conduct) -> None:
        """Take in what other runs show."""
        for mine, theirs in ((self.leaves, other.leaves), (self.sound, other.sound)):
            for site, leaves in theirs.items():
                mine[site] = mine.get(site, frozenset()) | leaves
        for pair, sure in other.raises.items():
            self.raises[pair] = self.raises.get(pair, False) or sure
        for misuse, sure in other.misuses.items():
            self.misuses[misuse] = self.misuses.get(misuse, False) or sure
        self.stepped |= other.stepped
        self.blind |= other.blind
        self.caught |= other.caught


class Breach(NamedTuple):
    """Where the rewritten program does what the one before did not: a path, a line of the new text, and what."""

    path: str
    line: int
    what: str


def conduct_of(trace: Trace) -> Conduct:
    """What one run shows."""
    made = Conduct(misuses=dict(trace.misuses))
    leaves: dict[Site, set[Leaf]] = defaultdict(set)
    sound: dict[Site, set[Leaf]] = defaultdict(set)
    changes = trace.once(changes_of) if trace.walks else {}
    written = list(_written(trace)) if trace.walks else []
    for walk in trace.walks:
        site = _site(walk.place)
        # autograd.grad leaves gradients nowhere: it takes those of its inputs
        given = walk.seen if walk.kind is WalkKind.BACKWARD else walk.inputs or ()
        mine = {_leaf(node) for node in given if node.leaf}
        leaves[site] |= mine
        late = dict(_late(walk))
        readers = [*changed_before(walk, changes), *_overwritten(walk, written)]
        reached = reached_surely(walk, [node for node, _ in readers])
        for node, change in readers:
            cause = _site(change.place)
            late[cause] = late.get(cause, False) or id(node) in reached
        for other, sure in late.items():
            made.raises[site, other] = made.raises.get((site, other), False) or sure
        if not any(late.values()):
            sound[site] |= mine
    made.leaves = {site: frozenset(found) for site, found in leaves.items()}
    made.sound = {site: frozenset(found) for site, found in sound.items()}
    made.stepped = frozenset(_leaf(leaf) for step in trace.steps for leaf in (step.owned.leaves if step.owned else ()))
    made.caught = frozenset(_site(walk.place) for walk in trace.walks if walk.caught)
    made.blind = any(step.owned is None or step.owned.more for step in trace.steps)
    return made


def _overwritten(walk: Walk, written: list[tuple[Node, Alteration]]) -> Iterator[tuple[Node, Alteration]]:
    """Those of ``written`` that a walk comes through after the write."""
    for node, change in written:
        if change.place.clock <= walk.place.clock and walk in node.walks:
            yield node, change


def _written(trace: Trace) -> Iterator[tuple[Node, Alteration]]:
    """The nodes that are walked and whose saved input was written in place, each with the write."""
    for change in trace.alterations:
        value = change.value
        if not isinstance(value, Tensor) or change.how not in WRITTEN:
            continue
        for memory in _of_the_memory(value):
            for node in _keepers(memory, change.place.clock):
                if node.walks and node.certain:
                    yield node, change


def _of_the_memory(value: Tensor) -> Iterator[Node]:
    """The nodes of the tensors that surely share the memory of ``value`` and count its changes."""
    if value.node is not None:
        yield value.node
    for alias in value.aliases:
        given = alias.given
        # what ``.data`` gives counts for itself
        if (
            alias.source is None
            and alias.form is not AliasForm.DATA
            and isinstance(given, Tensor)
            and given.node is not None
        ):
            yield given.node


def _keepers(node: Node, clock: int) -> Iterator[Node]:
    """The nodes of before ``clock`` that keep the memory of a tensor for their backward."""
    yield from (keeper for keeper in savers(node) if keeper.birth < clock)
    for child in node.children:
        if child.birth > clock:
            continue
        if child.kind is NodeKind.OP and (child.label == "getitem" or child.label in SHARING_MEMORY):
            # of what it is taken from, it keeps the index alone
            yield from _keepers(child, clock)
        elif child.saves and (child.kind is NodeKind.OP or child.label in MODULES_WITH_PARAMETERS | LOSS_MODULES):
            yield child


def _late(walk: Walk) -> Iterator[tuple[Site, bool]]:
    """The backwards that have freed what this one walks, and whether that is sure; what is sure comes last."""
    freed = [(n, w) for n, w in walk.again if n.saves and w.retains is False and w.creates is False]
    if not freed:
        return
    reached = reached_surely(walk, [n for n, _ in freed if n.certain])
    yield from sorted((_site(w.place), id(n) in reached and walk.follows(w)) for n, w in freed)


def _site(place: Place) -> Site:
    return place.path, place.line


def _leaf(node: Node) -> Leaf:
    return node.place.path, node.place.line, node.label


def ending(findings: Sequence[Finding], conduct: Conduct, *, unsafe: bool) -> list[Finding]:
    """Return ``findings``; repairs of a backward that would raise all the same are advice, and those of one whose error
    is swallowed change what a program learns that runs.

    ``conduct`` is that of the program in which they were found; ``unsafe`` tells whether a ``behaviour`` is applied.
    """
    causes: dict[Site, dict[Site, bool]] = defaultdict(dict)
    for (walk, cause), sure in conduct.raises.items():
        causes[walk][cause] = sure
    findings = _running(findings, conduct.caught)
    while True:
        mended = {pair for f in findings if f.fixable(unsafe=unsafe) for pair in f.mends}
        why: dict[tuple[str, str, int], str] = {}
        for finding in findings:
            walks = {walk for walk, _ in finding.mends} if finding.promise is Promise.REPAIR else ()
            # of an error that is not sure to be met, another that is not may come first
            surely = any(conduct.raises.get(pair, True) for pair in finding.mends)
            left = sorted(
                (walk, cause)
                for walk in walks
                for cause, sure in causes[walk].items()
                if sure >= surely and (walk, cause) not in mended
            )
            if left:
                (_, line), (_, cause_line) = left[0]
                why[finding.key] = f"the backward of line {line} would still raise, because of line {cause_line}"
        if not why:
            return list(findings)
        findings = as_advice(findings, why)


def _running(findings: Sequence[Finding], caught: frozenset[Site]) -> list[Finding]:
    mending = {f.key for f in findings if f.promise is Promise.REPAIR and any(walk in caught for walk, _ in f.mends)}
    return [
        replace(f, promise=Promise.BEHAVIOUR, message=f"{f.message}; the program catches the error and runs")
        if f.promise is Promise.REPAIR and (f.key in mending or not mending.isdisjoint(f.partners))
        else f
        for f in findings
    ]


def breaches(
    old: Conduct,
    new: Conduct,
    made: Iterable[Finding],
    *,
    before: Mapping[str, str],
    after: Mapping[str, str],
) -> list[Breach]:
    """Return what is wrong with a program after the edits of the findings ``made``, by its lines then.

    ``before`` and ``after`` are the texts by path of which ``old`` and ``new`` tell.
    """
    return list(_Comparison(old, new, tuple(made), before, after).breaches())


_FAILS_ALIKE = {"detach": ("data",)}
"""What takes another's place, and fails on None as that did."""


class _Comparison:
    def __init__(
        self,
        old: Conduct,
        new: Conduct,
        made: tuple[Finding, ...],
        before: Mapping[str, str],
        after: Mapping[str, str],
    ) -> None:
        self.old, self.new, self.made = old, new, made
        self._before, self._after = before, after
        self._maps: dict[str, LineMap] = {}
        self._places: dict[str, dict[str, list[int]]] = {}

    def breaches(self) -> Iterator[Breach]:
        yield from self._raises()
        yield from self._misuses()
        yield from self._losses()

    def _raises(self) -> Iterator[Breach]:
        mended = {pair for finding in self.made for pair in finding.mends}
        walks = {walk for walk, _ in mended}
        known = dict.fromkeys(self.old.raises, 1)
        known.update((pair, 2) for pair, sure in self.old.raises.items() if sure)
        for (walk, cause), sure in sorted(self.new.raises.items()):
            pairs = [(w, c) for w in self._origins(walk) for c in self._origins(cause)]
            walked = [pair for pair in pairs if pair[0] in self.old.leaves]
            if pairs and not walked:
                # no run came here before
                continue
            if sure and any(walk in walks for walk, _ in pairs):
                yield Breach(*walk, "the backward there still comes too late")
            elif any(pair in mended and known.get(pair, 0) <= 1 + sure for pair in pairs):
                yield Breach(*walk, "the backward there may still come too late")
            elif max((known.get(pair, 0) for pair in pairs), default=0) < 1 + sure:
                yield Breach(*walk, "the backward there comes to a graph that is freed or changed by then")

    def _misuses(self) -> Iterator[Breach]:
        for (path, line, name), sure in sorted(self.new.misuses.items()):
            asked = [name, *_FAILS_ALIKE.get(name, ())]
            known = [self.old.misuses.get((path, at, n)) for _, at in self._origins((path, line)) for n in asked]
            if not any(level is not None and level >= sure for level in known):
                graphless = name == "autograd.grad"
                what = (
                    "a gradient is taken of what has no graph"
                    if graphless
                    else f"what is a number or None there is asked for {name}"
                )
                yield Breach(path, line, what)

    def _losses(self) -> Iterator[Breach]:
        """The parameters that a backward gave gradients to and no longer does."""
        given: dict[Site, set[Leaf]] = defaultdict(set)
        unplaced: dict[str, set[Leaf]] = defaultdict(set)
        lines: dict[Site, int] = {}
        for site, leaves in self.new.leaves.items():
            found = {origin for leaf in leaves for origin in self._leaf_origins(leaf)}
            origins = [origin for origin in self._origins(site) if origin in self.old.leaves]
            for origin in origins:
                given[origin] |= found
                lines[origin] = site[1]
            if not origins:
                unplaced[site[0]] |= found
        everywhere = {leaf for leaves in (*given.values(), *unplaced.values()) for leaf in leaves}
        behaves = any(finding.promise is Promise.BEHAVIOUR for finding in self.made)
        cuts = {cut for finding in self.made for cut in finding.cuts}
        for site, leaves in sorted(self.old.sound.items()):
            if site not in given and site[0] not in unplaced:
                # no run comes here any more
                continue
            kept = given[site] if site in given else unplaced[site[0]]
            lost = {leaf for leaf in leaves - kept if (site, leaf[:2]) not in cuts and (None, leaf[:2]) not in cuts}
            if behaves:
                lost = {leaf for leaf in lost - everywhere if self.old.blind or leaf in self.old.stepped}
            if lost:
                path, line, name = min(lost)
                at = lines.get(site, site[1])
                what = f"{name or 'a parameter'} of line {line} of {path}"
                yield Breach(site[0], at, f"the backward there no longer comes to {what}")

    # lines of the new text in the old one

    def _origins(self, site: Site) -> list[Site]:
        path, line = site
        if path not in self._after or self._before.get(path) == self._after[path]:
            return [site]
        if path not in self._maps:
            self._maps[path] = LineMap(self._before[path], self._after[path])
        lines = self._maps[path]
        found = list(lines.origins(line))
        if not found:
            # a statement that an edit has moved elsewhere
            found = [number for number, text in enumerate(lines.old, 1) if text == lines.new[line - 1] and text]
        return [(path, origin) for origin in found]

    def _leaf_origins(self, leaf: Leaf) -> list[Leaf]:
        path, line, name = leaf
        return [(path, origin, name) for _, origin in self._origins((path, line))]
