"""The rule ``step-between-backwards``."""

from codemods.rules.step_between_backwards.rule import RULE

__all__ = ["RULE"]
