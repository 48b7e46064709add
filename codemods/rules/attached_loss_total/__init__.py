"""The rule ``attached-loss-total``."""

from codemods.rules.attached_loss_total.rule import RULE

__all__ = ["RULE"]
