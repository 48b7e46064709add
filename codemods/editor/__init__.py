"""Findings and rewrites for editors: of texts that are not saved, one file at a time, with its project around it.

``server`` speaks the Language Server Protocol by pygls; all that it says is made in ``documents``, which needs neither.
"""
