"""Changes to source text: what rules ask for (:mod:`codemods.terms.edits`), made by libcst and nothing else touched.

libcst is loaded when the first edit is made, and not to find out that there is none to make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.terms.edits import EditError

if TYPE_CHECKING:
    from codemods.edits.apply import apply_edits
    from codemods.edits.positions import span_of, split_lines

__all__ = ["EditError", "apply_edits", "span_of", "split_lines"]


def __getattr__(name: str) -> object:
    if name == "apply_edits":
        from codemods.edits.apply import apply_edits

        return apply_edits
    if name in ("span_of", "split_lines"):
        from codemods.edits import positions

        return getattr(positions, name)
    raise AttributeError(name)
