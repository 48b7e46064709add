"""``codemod fix``: from a fault that the doctor found to a change that was run and removed it."""
