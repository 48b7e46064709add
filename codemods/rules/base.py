"""The shape of a rule.

A rule reads traces of simulated runs and notes *observations* about sites, one run at a time, so that runs can be
spread over processes and forgotten. From the observations of all runs it then decides what the findings are: a site is
a mistake only if it is one wherever it ran.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator
from typing import Any

from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.proofs.observations import Decision, Observation, Shows, Site, sites
from codemods.source.gates import Form
from codemods.terms.edits import Edit
from codemods.terms.findings import Finding, Promise, TrailStep


class Rule:
    """One mistake with the autograd graph.

    The docstring of a rule is its documentation; ``name`` is that of its module and its fixture folder.
    """

    name: str
    promise: Promise
    summary: str
    opt_in: bool = False
    since: str = ""
    """The first PyTorch that understands what the rule writes; a finding may say otherwise."""
    gate: tuple[bytes | Form, ...] = (b".backward(", b"manual_backward(", b"autograd.grad(", b"autograd.backward(")
    """A file whose code is without any of these words and forms cannot concern the rule (unless it imports one that
    has them)."""

    def observe(self, trace: Trace) -> Iterable[Observation]:
        """What one run shows."""
        raise NotImplementedError

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        """The findings that follow from the observations of all runs: here, those of each site by itself."""
        for site in sites(observations):
            yield from self.decide_site(site, decision)

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        """The findings that follow from all that was observed at one site."""
        raise NotImplementedError

    def seen(
        self, file: ParsedFile, node: ast.AST, shows: Shows, kind: enum.Enum | None = None, /, **facts: Any
    ) -> Observation:
        return Observation(self.name, file.path, file.span(node), shows, kind, facts)

    def finding(
        self,
        site: Site,
        message: str,
        remedy: str = "",
        edits: Iterable[tuple[str, Edit]] = (),
        *,
        promise: Promise = Promise.ADVICE,
        trail: Iterable[TrailStep] | None = None,
        **more: Any,
    ) -> Finding:
        """A finding of this rule at ``site``, by default with the trail that was observed; ``more`` are its further
        fields."""
        steps = site.trail if trail is None else tuple(trail)
        return Finding(self.name, site.path, site.span, promise, message, remedy, steps, tuple(edits), **more)
