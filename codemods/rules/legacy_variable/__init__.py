"""The rule ``legacy-variable``."""

from codemods.rules.legacy_variable.rule import RULE

__all__ = ["RULE"]
