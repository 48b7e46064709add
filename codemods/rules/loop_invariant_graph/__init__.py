"""The rule ``loop-invariant-graph``."""

from codemods.rules.loop_invariant_graph.rule import RULE

__all__ = ["RULE"]
