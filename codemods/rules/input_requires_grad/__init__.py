"""The rule ``input-requires-grad``."""

from codemods.rules.input_requires_grad.rule import RULE

__all__ = ["RULE"]
