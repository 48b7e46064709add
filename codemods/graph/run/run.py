"""One simulated run as a whole: the first of the engine's three parts."""

from __future__ import annotations

from codemods.graph.run.escaping import Escaping


class Run(Escaping):
    """State, trace, clock and budget of a simulated run; makes nodes, joins paths, records uses, marks and escapes."""
