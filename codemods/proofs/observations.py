"""What rules note about simulated runs, and what they may consult when they decide."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from codemods.graph.model.nodes import Place
from codemods.graph.model.program import ParsedFile
from codemods.proofs.syntax import DEFINITIONS
from codemods.source.options import Options
from codemods.terms.findings import Finding, TrailStep
from codemods.terms.spans import Span


class Shows(enum.Enum):
    """What one run shows of a site. A rule decides by what all runs show together."""

    FAULT = "fault"
    """A mistake."""
    NEEDED = "needed"
    """What stands there is needed: no finding."""
    UNSURE = "unsure"
    """Nothing is proven."""
    ADVICE = "advice"
    """A mistake that nothing safe can mend."""
    BRANCH = "branch"
    """A mistake on one of the paths of the run only."""
    NOTHING = "nothing"
    """What the rule looks for did not happen."""


@dataclass(frozen=True)
class Observation:
    """What one run shows about one site.

    ``path`` and ``span`` name the site, ``kind`` what of it is meant; ``facts`` hold what the
    rule wants to remember (only plain data: observations travel between processes).
    """

    rule: str
    path: str
    span: Span
    shows: Shows
    kind: enum.Enum | None = None
    facts: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)


@dataclass(frozen=True)
class Site:
    """All that was observed at one place."""

    path: str
    span: Span
    observations: tuple[Observation, ...]

    @property
    def shows(self) -> set[Shows]:
        """What the runs show of it."""
        return {o.shows for o in self.observations}

    @property
    def faulty(self) -> bool:
        """Whether at least one run shows a mistake here, and no run shows otherwise."""
        return self.shows == {Shows.FAULT}

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the first mistake that was observed."""
        for observation in self.observations:
            if observation.shows is Shows.FAULT:
                return observation.facts
        return self.observations[0].facts

    @property
    def trail(self) -> tuple[TrailStep, ...]:
        """The steps of the fact ``trail``, each once."""
        return trail_of(self.facts.get("trail", ()))

    def all(self, name: str) -> list[Any]:
        """What the fact of that name lists in all observations, each once."""
        return list(dict.fromkeys(one for o in self.observations for one in o.facts.get(name) or ()))

    def any(self, name: str) -> bool:
        """Whether any observation has a true fact of that name."""
        return any(o.facts.get(name) for o in self.observations)


@dataclass
class Decision:
    """What a rule may look at when it decides: parsed files by display path, the user's options, and what was ``found``
    by the selected rules whose names come before its own."""

    files: Callable[[str], ParsedFile | None]
    options: Options
    found: Sequence[Finding] = ()


def sites(observations: Iterable[Observation], kind: enum.Enum | None = None) -> list[Site]:
    """Observations of one kind, gathered by place, in order of path and position."""
    gathered: dict[tuple[str, Span], list[Observation]] = defaultdict(list)
    for observation in observations:
        if observation.kind is kind:
            gathered[(observation.path, observation.span)].append(observation)
    return [Site(path, span, tuple(found)) for (path, span), found in sorted(gathered.items())]


def trail_of(steps: Iterable[tuple[str, int, str]]) -> tuple[TrailStep, ...]:
    """A trail of what observations remember as plain data, each step once."""
    return tuple(dict.fromkeys(TrailStep(*step) for step in steps))


Link = tuple[str, Span | None, Span]
"""Where code runs, as plain data: the path, the function (None: at the top level, or in a lambda), the statement."""


def link_of(place: Place) -> Link | None:
    """The link of a place; None if it stands in no statement."""
    file, function = place.frame.file, place.frame.definition
    if place.statement is None:
        return None
    return file.path, file.span(function) if isinstance(function, DEFINITIONS) else None, file.span(place.statement)


def station(at: tuple[str, int], note: str) -> TrailStep:
    """A step of a trail at a path and line that an observation remembers."""
    path, line = at
    return TrailStep(path, line, note)
