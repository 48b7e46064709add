"""Texts that a CI server reads along: what it would take for a command is quoted.

Reports quote what programs print and what stands in sources. A server looks for commands in all that a job prints:
GitHub in lines that begin with ``::name ::``, Azure Pipelines, TeamCity and older GitHub runners behind ``##``.
(Sections of GitLab and Travis need control characters, which no report of ours prints.)
"""

from __future__ import annotations

import re

_AT_FIRST = re.compile(r"^(\s*)::(?=[^\n]*::)", re.MULTILINE)
_ANYWHERE = re.compile(r"##(\w*)\[")


def quoted(text: str) -> str:
    """Return ``text``, a report, with a backslash in each command; JSON and XML are spelt in another way instead.

    Their parsers read the same as before. It is to be the whole of what is printed: layout may bring any word of a
    sentence to the beginning of a line.
    """
    page = text.startswith("<?xml")
    if "::" in text:
        # No line of JSON begins so, and a report for people may begin with a bracket as JSON does.
        text = _AT_FIRST.sub(r"\1&#58;:" if page else r"\1\\::", text)
    if "##" in text:
        if page:
            return text.replace("##", "#&#35;")
        if text.startswith(("{", "[")):
            return text.replace("##", "#\\u0023")
        text = _ANYWHERE.sub(r"##\1\\[", text)
    return text
