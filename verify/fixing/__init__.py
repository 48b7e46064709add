"""``codemod fix``: from what the doctor names to a change that was run, and that removed it."""
