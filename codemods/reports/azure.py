"""Lines that Azure Pipelines takes for commands and shows as issues of the build.

The form: https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands#logissue-log-an-error-or-warning
"""

from __future__ import annotations

from codemods.reports import Detail, Report
from codemods.reports._listed import Listed, listed
from codemods.source.diffs import printable


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return a command a finding; ``detail`` and ``colour`` change nothing."""
    return "".join(f"{_command(one)}\n" for one in listed(report))


def _command(one: Listed) -> str:
    # There are but errors and warnings.
    named = {"type": "error" if one.level == "error" else "warning", "sourcepath": one.path}
    if one.line:
        named["linenumber"] = str(one.line)
    if one.column:
        named["columnnumber"] = str(one.column)
    named["code"] = one.rule
    properties = "".join(f"{name}={printable(_escaped(value))};" for name, value in named.items())
    return f"##vso[task.logissue {properties}]{printable(_escaped(one.text, '%'))}"


def _escaped(text: str, characters: str = "%;]") -> str:
    """Return ``text`` with what would end a property spelt as the agent reads it back."""
    spelt = {"%": "%AZP25", ";": "%3B", "]": "%5D"}
    shown = "".join(spelt[one] if one in characters else one for one in text)
    return shown.replace("\r", "%0D").replace("\n", "%0A")
