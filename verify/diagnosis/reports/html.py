"""A diagnosis as one page that needs nothing else: no network, no script, light and dark, on paper and on a phone."""

from __future__ import annotations

from markupsafe import Markup

from codemods.reports._markup import environment
from verify.diagnosis.model import Diagnosis, Fault
from verify.diagnosis.pictures import svg
from verify.diagnosis.reports.text import headline


def render(diagnosis: Diagnosis, *, colour: bool = False) -> str:
    """Return the page; ``colour`` changes nothing."""
    step = "" if diagnosis.graph is None else svg.draw(diagnosis.graph, "The graph of a step")
    return (
        environment("verify.diagnosis.reports")
        .get_template("doctor.html")
        .render(
            diagnosis=diagnosis,
            headline=headline(diagnosis),
            tone={0: "good", 1: "bad"}.get(diagnosis.status, "unknown"),
            faults=[(fault, _picture(fault)) for fault in diagnosis.faults],
            step=Markup(step),
        )
    )


def _picture(fault: Fault) -> Markup:
    # Every text in it is escaped where it is drawn.
    return Markup("" if fault.graph is None else svg.draw(fault.graph, fault.headline))
