"""The dynamic half: runs original and rewritten code briefly and holds each rewrite to its promise.

Nothing lives here yet; the static half, :mod:`codemods`, never imports it.
"""
