"""The rules, a file or a folder each; a new one in this package is a new rule.

A module or package ``surplus_retain_graph`` holds the rule ``surplus-retain-graph`` and exposes it as ``RULE``: one
subclass of :class:`~codemods.rules.base.Rule`, or an instance of one. ``base`` and names with a
leading underscore hold no rule.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

from codemods.terms.errors import UserError

if TYPE_CHECKING:
    from codemods.rules.base import Rule


class UnknownRule(UserError, ValueError):
    """A name that no rule has; the message gives it with the nearest names there are."""


def rule_names() -> tuple[str, ...]:
    """Return the names of all rules in alphabetical order, without importing any of them."""
    return _names_in(*__path__)


@functools.cache
def _names_in(*folders: str) -> tuple[str, ...]:
    # asked for each rule and option: the folder is listed once
    modules = (module.name for module in pkgutil.iter_modules(folders))
    return tuple(sorted(name.replace("_", "-") for name in modules if name != "base" and not name.startswith("_")))


@functools.cache
def rule(name: str) -> Rule:
    """Return the rule called ``name``; raises :class:`UnknownRule` if there is none."""
    require_known([name])
    exposed = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").RULE
    found: Rule = exposed() if isinstance(exposed, type) else exposed
    if found.name != name:
        raise TypeError(f"rule {found.name!r} stands in the module of {name!r}")
    return found


def all_rules() -> dict[str, Rule]:
    """Return every rule by its name, in alphabetical order."""
    return {name: rule(name) for name in rule_names()}


def require_known(names: Iterable[str]) -> None:
    """Raise :class:`UnknownRule` for the first of ``names`` that no rule has."""
    known = rule_names()
    for name in names:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        # Half a name is no near match by edit distance, and yet what people type.
        near += [other for other in known if name and name.lower() in other and other not in near]
        hint = f"did you mean {' or '.join(near[:3])}?" if near else "`codemod rules` lists them"
        raise UnknownRule(f"no rule is called {name!r}; {hint}")
