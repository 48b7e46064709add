"""One run: its state and clock; nodes, uses, marks and joins are made here."""
