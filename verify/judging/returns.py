"""Functions whose returned values are compared: those that hold a change by hand, and those that call these."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from verify.judging.ways import parsed
from verify.running.against import RULE
from verify.running.rewriting import Rewriter, Version
from verify.syntax import Function, covers, functions, last_name

#: A change shows in what its callers return, too: so many calls around it.
_OUTWARD = 4
_MOST = 200


def returning(rewriter: Rewriter, version: Version, texts: Callable[[], Mapping[str, str]]) -> list[tuple[str, str]]:
    """The path below the root and the full name of each function whose returned values tell of changes by hand.

    ``texts`` gives those of the tree, by path below the root. A rule has proved what it does to the values that
    functions return; of a change by hand nothing else shows what it makes of one that nobody prints, keeps or learns
    from.
    """
    changed = [group for group in version.groups if all(finding.rule == RULE for finding in group.findings)]
    if not changed:
        return []
    lines: dict[str, set[int]] = {}
    after: dict[str, set[int]] = {}
    for group in changed:
        places = (group.touched.before(), lines), (group.touched.after(version.old, version.new), after)
        for touched, wanted in places:
            for path, line in touched:
                wanted.setdefault(rewriter.relative(path) or path, set()).add(line)
    new = {rewriter.relative(path) or path: text for path, text in version.new.items()}
    old = texts()
    found = {*_holding(dict(parsed(old)), lines), *_holding(dict(parsed(new)), after)}
    every = [(path, *each) for path, tree in parsed({**old, **new}) for each in functions(tree, nested=True)]
    inner = {_called(name) for _, name in found}
    for _ in range(_OUTWARD):
        outer = {(path, name) for path, name, function in every if not inner.isdisjoint(_callees(function))} - found
        if len(found) + len(outer) > _MOST:
            outer = {each for each in outer if each[0] in lines or each[0] in after}
        found |= outer
        inner = {_called(name) for _, name in outer}
    return sorted(found)


def _holding(trees: Mapping[str, ast.AST], lines: Mapping[str, set[int]]) -> Iterator[tuple[str, str]]:
    for path, wanted in lines.items():
        for name, function in functions(trees[path], nested=True) if path in trees else ():
            if any(covers(function, line) for line in wanted):
                yield path, name


def _called(name: str) -> str:
    """By what the function ``name`` is called: a constructor by its class."""
    *_, owner, last = ["", *name.split(".")]
    return owner if last == "__init__" else last


def _callees(function: Function) -> set[str]:
    """The names that ``function`` reads, as far as they may be called there or by whom they are given to."""
    return {last_name(node) for node in ast.walk(function) if isinstance(node, (ast.Name, ast.Attribute))}
