"""The rule ``best-state-not-copied``."""

from codemods.rules.best_state_not_copied.rule import RULE

__all__ = ["RULE"]
