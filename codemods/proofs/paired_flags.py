"""Findings together with those for the ``retain_graph`` flags that they make superfluous."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.nodes import Node, Walk
from codemods.graph.model.trace import Trace
from codemods.proofs.observations import Decision, Site
from codemods.terms.edits import DropArgument, Edit
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span

SURPLUS = "surplus-retain-graph"

Flag = tuple[str, Span, Span, str | int]
"""A ``retain_graph`` argument as plain data: its path, the spans of the statement and of the call, its name or
position."""

Late = tuple[tuple[str, int], tuple[str, int]]
Lost = tuple[tuple[str, int] | None, tuple[str, int]]
"""What findings say of backwards that come too late, and of parameters that one no longer comes to."""


def flags(walks: list[Walk]) -> list[Flag]:
    """The ``retain_graph`` arguments of walks."""
    found: list[Flag] = []
    for walk in walks:
        file = walk.place.frame.file
        if walk.call is not None and walk.retain_argument is not None:
            statement = walk.place.statement or walk.call
            found.append((file.path, file.span(statement), file.span(walk.call), walk.retain_argument))
    return found


def superfluous(trace: Trace, walk: Walk, gone: Container[Node] = (), *, besides: ast.Call | None = None) -> list[Flag]:
    """The flag of ``walk``, where it only keeps what is ``gone`` for later walks; those at the call ``besides`` do not
    count, as they go as well."""
    needed = any(
        before.call is walk.call and node.kind not in (NodeKind.PHI, NodeKind.PART) and node not in gone
        for later in trace.walks
        if besides is None or later.call is not besides
        for node, before in later.again
    )
    return flags([walk]) if walk.retains is True and not needed else []


def mended(promise: Promise, site: Site) -> tuple[Late, ...]:
    """What a ``repair`` fixes, from the fact ``late`` of the observations."""
    return tuple(site.all("late")) if promise is Promise.REPAIR else ()


def paired(
    rule: str,
    site: Site,
    decision: Decision,
    promise: Promise,
    message: str,
    remedy: str,
    steps: tuple[TrailStep, ...],
    edits: list[tuple[str, Edit]],
    dropped: list[Flag],
    *,
    kept: str = "what is carried over from earlier steps",
    together: str = "the cut",
    uncovers: tuple[str, ...] = (),
    mends: tuple[Late, ...] = (),
    cuts: tuple[Lost, ...] = (),
) -> Iterator[Finding]:
    """A finding and those for the flags that go with it, unless the rule of the flags is ignored.

    ``kept`` says what the flags keep alive, ``together`` with what they go.
    """
    alone = SURPLUS in decision.options.ignore
    drops: list[tuple[str, Edit]] = [(p, DropArgument(call, argument)) for p, _, call, argument in dropped]
    partners = () if alone else tuple((SURPLUS, p, statement.line) for p, statement, _, _ in dropped)
    yield Finding(
        rule, site.path, site.span, promise, message, remedy, steps, (*edits, *drops), partners,
        uncovers=uncovers, mends=mends, cuts=cuts,
    )  # fmt: skip
    if alone:
        return
    for (p, statement, _, _), drop in zip(dropped, drops, strict=True):
        yield Finding(
            SURPLUS,
            p,
            statement,
            promise,
            f"retain_graph=True only keeps alive {kept}",
            f"drop the argument, together with {together}",
            steps,
            (drop,),
            ((rule, site.path, site.span.line),),
        )


def advised(
    rule: str, site: Site, fact: str, message: str, remedy: str, steps: tuple[TrailStep, ...]
) -> Finding | None:
    """The advice that is given where not all runs came to the same ``fact``, with the reason that one of them saw; None
    where they did."""
    if site.faulty and all(o.facts.get(fact) == site.facts.get(fact) for o in site.observations):
        return None
    why = next((o.facts["why"] for o in site.observations if o.facts["why"]), "")
    message = f"{message}; {why}" if why else message
    return Finding(rule, site.path, site.span, Promise.ADVICE, message, remedy, steps)


def weakest(site: Site) -> Promise:
    """The promise of a rewrite about which the runs disagree."""
    return max((Promise(o.facts["promise"]) for o in site.observations), key=lambda promise: promise.rank)


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, where one flag that belongs to several others is one finding."""
    found: dict[tuple[str, str, Span, tuple[tuple[str, Edit], ...]], Finding] = {}
    for finding in findings:
        key = (finding.rule, finding.path, finding.span, finding.edits)
        known = found.get(key)
        if known is not None:
            partners = tuple(dict.fromkeys((*known.partners, *finding.partners)))
            promise = max(known.promise, finding.promise, key=lambda p: p.rank)
            finding = replace(known, partners=partners, promise=promise)
        found[key] = finding
    return list(found.values())
