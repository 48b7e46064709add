"""Rewrites as commits that can each be reverted alone."""
