"""Changes to source text: what rules ask for (:mod:`codemods.terms.edits`), made by libcst and nothing else touched.

libcst is loaded when the first edit is made, and not to find out that there is none to make.
"""
