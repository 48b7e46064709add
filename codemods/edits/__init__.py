"""Changes to a file that keep every other byte: what a rule may ask for, and the transformers that make it."""

from codemods.edits.apply import apply_edits
from codemods.edits.model import EditError
from codemods.edits.positions import span_of, split_lines

__all__ = ["EditError", "apply_edits", "span_of", "split_lines"]
