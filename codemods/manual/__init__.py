"""What rules say of themselves: ``codemod explain`` and the pages of docs/rules."""
