"""The rule ``grad-in-evaluation``."""

from codemods.rules.grad_in_evaluation.rule import RULE

__all__ = ["RULE"]
