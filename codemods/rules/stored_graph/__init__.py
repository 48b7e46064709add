"""The rule ``stored-graph``."""

from codemods.rules.stored_graph.rule import RULE

__all__ = ["RULE"]
