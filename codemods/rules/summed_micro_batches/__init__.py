"""The rule ``summed-micro-batches``."""

from codemods.rules.summed_micro_batches.rule import RULE

__all__ = ["RULE"]
