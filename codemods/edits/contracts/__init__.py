"""What the edits of a file may change: the tree that they ask for, worked out on :mod:`ast`, against the one they made.

The text is rewritten by libcst. Here the same edits are made a second time, on the syntax tree alone, in the plainest
way: what each kind may change is said in :mod:`codemods.terms.edits`, and everything else has to stay as it was. Where
both do not come to the same tree the edits are refused, whichever of the two is wrong.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Sequence

from codemods.edits.contracts.comparison import Comparison
from codemods.edits.contracts.expected import Expected, Unused
from codemods.edits.source import Source
from codemods.edits.whitespace import is_directive
from codemods.terms.edits import Edit, EditError
from codemods.terms.spans import Span


def check_contract(source: Source, edits: Sequence[Edit], unused: Unused, result: str, after: ast.Module) -> None:
    """Raise EditError if ``after``, the tree of ``result``, is not what ``edits`` may make of ``source``.

    ``unused`` are imports that nothing needs any more, with the indexes of their names.
    """
    expected = Expected(source, list(dict.fromkeys(edits)), unused)
    needed = {node.id for node in ast.walk(after) if isinstance(node, ast.Name)}.intersection(expected.forgotten)
    if needed:
        raise EditError(f"{min(needed)} would no longer be imported, but is used")
    comparison = Comparison(expected.extras)
    comparison.bodies(expected.tree.body, after.body, at_top=True)
    comparison.check_helpers(source.tree, after)
    comparison.check_names(after)
    _check_comments(source, expected.lost, result)


# comments


def _check_comments(source: Source, lost: Sequence[Span], result: str) -> None:
    """Raise EditError if a comment is gone that none of the ``lost`` places had in it."""
    kept = Counter(
        text for line, column, text in _comments(source.text) if not any(_within(line, column, s) for s in lost)
    )
    missing = kept - Counter(text for _, _, text in _comments(result))
    directives = [text for text in missing if is_directive(text)]
    for text in directives:
        del missing[text]
    if missing:
        raise EditError(f"a comment would be lost: {min(missing)}")


def _within(line: int, column: int, span: Span) -> bool:
    return span.start <= (line, column) < span.end


def _comments(text: str) -> list[tuple[int, int, str]]:
    if "#" not in text:
        return []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [(t.start[0], t.start[1], t.string.rstrip()) for t in tokens if t.type == tokenize.COMMENT]
