"""From a span to libcst's node: every statement and expression is found, and what means something else is not."""

from __future__ import annotations

import ast

import pytest

from codemods.edits.positions import span_of
from codemods.edits.source import Source
from codemods.terms.edits import EditError

_CODE = '''\
@d(a)
class A(B, metaclass=C):
    """doc"""

    @(e)
    # c
    async def f(self, /, a=(1), *b: 'B', c=[*d], **e) -> (None): return (await a), (yield); pass

    x: int = 1; y = (x := 2),
if (a): b
elif not(c) : d
else:
    for (i, j) in zip(*k, (l)): continue
    while (a and b or not c in d is not e < f): break
    # c
with (a) as b, (c): del b[0], c
async def g():
    async with a as (b, c): return
    async for i in (x async for x in y): yield (i)
try: raise (a) from b
except (A, B) as c: assert (a), "b"
finally: print(f'{a} {b!r:>{c}} é{d["e"]}' 'f' "g", sep='ü', *h); x = y = {**a, b: c, (d): e}
x += lambda a, *b: (a if(b)else c)
x[a:b, ::c], y[(d)] = {a, *b}, (sum (x for x in y if (z)))
f((x for x in y)); f(((a, b)), -(c) ** +d, a.b . c, ((a).b)(c), ...)
(yield_) = [[a for a in b] for c in (d, e)]; z = {a: b for a, b in c}
é = ü("ß", ä @ ö); global_ = \\
    a
((a)); ()
'''


# Where libcst and ast disagree on names.
_NAMES = {"AsyncFunctionDef": "FunctionDef", "AsyncWith": "With", "AsyncFor": "For", "Delete": "Del"}


def _stands_alone(node: ast.expr, parent: ast.AST) -> bool:
    if isinstance(node, (ast.Starred, ast.Slice)):
        return False
    if isinstance(parent, ast.Subscript):
        return not isinstance(node, ast.Tuple)
    return not isinstance(parent, (ast.JoinedStr, ast.FormattedValue)) or isinstance(node, (ast.Name, ast.Subscript))


def test_every_node_is_found() -> None:
    source = Source(_CODE)
    expressions = statements = 0
    for node, parent in source.ast_parents.items():
        if isinstance(node, ast.stmt):
            statements += 1
            found = source.statement(span_of(node, source.lines))
            assert type(found).__name__ == _NAMES.get(type(node).__name__, type(node).__name__)
        elif isinstance(node, ast.expr) and _stands_alone(node, parent):
            expressions += 1
            code = source.module.code_for_node(source.expression(span_of(node, source.lines)))
            assert ast.unparse(ast.parse(f"({code}\n)", mode="eval")) == ast.unparse(node)
    assert expressions > 150
    assert statements > 35


def test_what_means_something_else_is_refused() -> None:
    source = Source("a = b\n")
    a, b = (span_of(node, source.lines) for node in ast.walk(source.tree) if isinstance(node, ast.Name))
    found = source.expression(a)
    # As if the two parsers did not agree on positions, as they have not in f-strings.
    source._expressions[b] = found
    with pytest.raises(EditError, match="libcst has no Name of its own at line 1, column 5"):
        source.expression(b)
