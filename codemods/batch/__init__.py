"""Many repositories: a campaign is a file, what became of it stands in a ledger, and both outlive any crash.

``campaign`` (the file) -> ``sources`` (where the repositories are) -> ``running`` (which keeps the ``ledger``) ->
``executors`` (who does it) -> ``jobs`` (the stages: ``cloning``, ``rewriting``, ``verifying``) -> ``fleet`` (what came
out) and ``publishing``. Like the commands it knows the dynamic half, and imports it only where something is verified.
"""
