"""What rules share that find a mistake at one site: a finding for each at which every run saw it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from codemods.graph.model.nodes import Place
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Storing
from codemods.graph.model.values import Tensor
from codemods.proofs.observations import Decision, Observation, Shows, Site
from codemods.proofs.paired_flags import Late, mended
from codemods.proofs.syntax import FUNCTIONS
from codemods.rules.base import Rule
from codemods.terms.edits import Edit, WrapExpression
from codemods.terms.findings import Finding, Promise


class SiteRule(Rule):
    """A rule of single sites: ``observe`` notes faults by :meth:`fault` and all else by :meth:`fine`."""

    promise = Promise.ADVICE
    likely: Promise | None = None
    """What the edits of an advising rule promise once a run has shown that they hold."""
    uncovers: tuple[str, ...] = ()
    """Rules that may find something once this is mended."""

    def fault(
        self,
        file: ParsedFile,
        node: ast.AST,
        message: str,
        remedy: str,
        *trail: tuple[Place, str],
        edits: Iterable[Edit] = (),
        promise: Promise | None = None,
        late: Iterable[Late] = (),
    ) -> Observation:
        """A mistake at ``node``, what to do about it, the places that show it, and the edits of ``file`` that mend it;
        without any it is advice. ``promise`` is another than that of the rule, ``late`` what a repair fixes."""
        return self.seen(
            file,
            node,
            Shows.FAULT,
            message=message,
            remedy=remedy,
            trail=[(place.path, place.line, note) for place, note in trail],
            edits=tuple(edits),
            promise=promise or self.promise,
            late=tuple(late),
        )

    def fine(self, file: ParsedFile, node: ast.AST) -> Observation:
        """The same place in a run in which nothing is wrong with it, or nothing is proven."""
        return self.seen(file, node, Shows.NEEDED)

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        """One finding a site, with the edits that all runs ask for."""
        if not site.faulty:
            return
        facts: dict[str, Any] = site.facts
        asked = {seen.facts["edits"] for seen in site.observations}
        edits = tuple((site.path, edit) for edit in asked.pop()) if len(asked) == 1 else ()
        promise = facts["promise"] if edits else Promise.ADVICE
        yield self.finding(
            site,
            facts["message"],
            facts["remedy"],
            edits,
            promise=promise,
            opt_in=self.opt_in,
            mends=mended(promise, site),
            uncovers=self.uncovers,
            likely=self.likely if edits else None,
        )


def detached(file: ParsedFile, storing: Storing) -> list[Edit]:
    """The edit that stores a tensor without its graph; none for anything else."""
    stored = storing.value_expr
    if not isinstance(storing.value, Tensor) or not isinstance(stored, ast.expr):
        return []
    return [WrapExpression(file.span(stored), "", ".detach()")]


def written(file: ParsedFile, node: ast.expr) -> str:
    """An expression as its file writes it, in one line."""
    text = ast.get_source_segment(file.text, node) or ""
    return ast.unparse(node) if "\n" in text or not text else text


def under(file: ParsedFile, node: ast.AST, *kinds: type[ast.AST]) -> bool:
    """Whether a node stands in a statement of these kinds, within its function."""
    return any(isinstance(outer, kinds) for outer in file.outward(node, *FUNCTIONS))
