"""What the pages of both halves share: templates that escape by themselves, and texts as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from codemods.source.diffs import printable
from codemods.terms.findings import capitalised

if TYPE_CHECKING:
    from jinja2 import Environment

_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_STRESS = re.compile(r"(?<!\w)\*(\w[^*]*?)\*(?!\w)")
_LINK = re.compile(r"https?://[^\s<>]+[^\s<>.,;)]")
_ITEM = re.compile(r"(?:\*|\d+\.) +")


def environment(*packages: str) -> Environment:
    """Return a template environment that looks for templates in ``packages``, then in that of the reports.

    Everything is escaped, a name that is missing is an error, and what no page may hold (control characters) or what
    would deceive its reader (marks that turn the direction of writing) is spelt out.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loaders = [PackageLoader(package, "templates") for package in (*packages, "codemods.reports")]
    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["coded"] = coded
    made.filters["prose"] = prose
    return made


def visible(value: Any) -> Any:
    """Return a text without control characters, which no page may hold; lines stay lines."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return "\n".join(printable(line) for line in value.split("\n"))
    return value


def coded(text: str) -> Markup:
    """Return a sentence of ours as markup: what stands between backquotes is code, and an address a link."""
    parts, end = [], 0
    # Where one backquote is without its other, none is a mark.
    for match in () if text.count("`") % 2 else _CODE.finditer(text):
        parts += [_linked(text[end : match.start()]), Markup("<code>{}</code>").format(visible(match[2]))]
        end = match.end()
    return Markup("").join([*parts, _linked(text[end:])])


def prose(text: str) -> Markup:
    """Return some paragraphs of a docstring as markup: paragraphs, and lists of what begins with a star or a number."""
    return Markup("\n").join(_blocks(text if _LINK.match(text) else capitalised(text)))


def _blocks(text: str) -> Iterator[Markup]:
    for paragraph in text.split("\n\n"):
        items: list[str] = []
        for line in paragraph.split("\n"):
            if _ITEM.match(line) or not items:
                items.append(line)
            else:
                items[-1] += "\n" + line.strip()
        if all(_ITEM.match(item) for item in items):
            tag = Markup("ul" if items[0].startswith("*") else "ol")
            listed = Markup("").join(
                Markup("<li>{}</li>").format(coded(_ITEM.sub("", item, count=1))) for item in items
            )
            yield Markup("<{0}>{1}</{0}>").format(tag, listed)
        elif paragraph.strip():
            yield Markup("<p>{}</p>").format(coded(paragraph))


def _linked(text: str) -> Markup:
    parts, end = [], 0
    for match in _LINK.finditer(text):
        address = escape(visible(match[0]))
        parts += [_stressed(text[end : match.start()]), Markup('<a href="{0}">{0}</a>').format(address)]
        end = match.end()
    return Markup("").join([*parts, _stressed(text[end:])])


def _stressed(text: str) -> Markup:
    return Markup(_STRESS.sub(r"<em>\1</em>", str(escape(visible(text)))))
