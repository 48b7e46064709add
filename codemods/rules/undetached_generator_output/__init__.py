"""The rule ``undetached-generator-output``."""

from codemods.rules.undetached_generator_output.rule import RULE

__all__ = ["RULE"]
