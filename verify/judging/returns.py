"""Functions of which is compared what they return, and what they hold then that another turn of a loop would read:
those that hold a change by hand, and those that call these."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from codemods.rewriting.parts import SUITES
from verify.judging.ways import parsed
from verify.running.against import RULE
from verify.running.rewriting import Rewriter, Version
from verify.syntax import FUNCTIONS, LOOPS, Function, bound, covers, functions, last_name, names, parameters, read

#: A change shows in what its callers return, too: so many calls around it.
_OUTWARD = 4
_MOST = 200


def returning(
    rewriter: Rewriter, version: Version, texts: Callable[[], Mapping[str, str]]
) -> list[tuple[str, str, list[str]]]:
    """The path below the root and the full name of each function whose returned values tell of changes by hand, and
    those of its variables that a turn of a loop reads from before.

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
    kept: dict[tuple[str, str], set[str]] = {each: set() for each in found}
    for path, name, function in every:
        if (path, name) in kept:
            kept[path, name] |= carried(function)
    return [(path, name, sorted(kept[path, name])) for path, name in sorted(found)]


def carried(function: Function) -> set[str]:
    """The variables of ``function`` that a turn of one of its loops reads from before: a function that ends sooner here
    than elsewhere leaves them for turns which nobody has seen."""
    loops = [node for node in ast.walk(function) if isinstance(node, LOOPS)]
    return {name for loop in loops for name in _open([loop], set())} & (bound(function) | parameters(function))


def _open(suite: Sequence[ast.stmt], known: set[str]) -> set[str]:
    """What the statements of ``suite`` read that is not in ``known`` and that none of them surely binds before; what
    they surely bind is added to ``known``."""
    found: set[str] = set()
    for node in suite:
        suites = [each for name in SUITES if (each := getattr(node, name, None))]
        inside = {id(child) for suite in suites for child in suite}
        header = [each for each in ast.iter_child_nodes(node) if id(each) not in inside]
        found |= {name for each in header for name in read(each)} - known
        if isinstance(node, ast.AugAssign):
            found |= names(node.target) - known
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found |= read(node) - known
            continue
        known |= {name for each in header for name in bound(each)}
        ends = []
        for each in suites:
            statements = [child for one in each for child in ([one] if isinstance(one, ast.stmt) else one.body)]
            ends.append(set(known))
            found |= _open(statements, ends[-1])
        if isinstance(node, (ast.With, ast.AsyncWith)) or (isinstance(node, ast.If) and len(ends) > 1):
            known |= set.intersection(*ends)
    return found


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
