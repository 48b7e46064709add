"""Findings that go together with those for the ``retain_graph`` flags that they make needless."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.edits.model import DropArgument, Edit
from codemods.findings import Finding, Promise, Span, TrailStep
from codemods.graph.trace import Walk

SURPLUS = "surplus-retain-graph"


def flags(walks: list[Walk]) -> list[tuple[str, Span, Span, str | int]]:
    """The ``retain_graph`` arguments of walks, as plain data: path, spans of statement and call, argument."""
    found = []
    for walk in walks:
        file = walk.place.frame.file
        if walk.call is not None and walk.retain_argument is not None:
            statement = walk.place.statement or walk.call
            found.append((file.path, file.span(statement), file.span(walk.call), walk.retain_argument))
    return found


def paired(
    rule: str,
    site: tuple[str, Span],
    promise: Promise,
    message: str,
    remedy: str,
    steps: tuple[TrailStep, ...],
    edits: list[tuple[str, Edit]],
    dropped: list[tuple[str, Span, Span, str | int]],
    *,
    alone: bool,
    kept: str = "what is carried over from earlier steps",
    together: str = "the cut",
    uncovers: tuple[str, ...] = (),
) -> Iterator[Finding]:
    """A finding and those for the flags that go with it; ``alone`` where the rule of the flags is not asked for.

    ``kept`` says what the flags keep alive, ``together`` with what they go.
    """
    path, span = site
    drops: list[tuple[str, Edit]] = [(p, DropArgument(call, argument)) for p, _, call, argument in dropped]
    partners = () if alone else tuple((SURPLUS, p, statement.line) for p, statement, _, _ in dropped)
    found = Finding(rule, path, span, promise, message, remedy, steps, (*edits, *drops), partners, uncovers=uncovers)
    yield found
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
            ((rule, path, span.line),),
        )
