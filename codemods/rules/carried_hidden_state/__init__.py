"""The rule ``carried-hidden-state``."""

from codemods.rules.carried_hidden_state.rule import RULE

__all__ = ["RULE"]
