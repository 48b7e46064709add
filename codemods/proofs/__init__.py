"""What rules ask of a trace: is a graph walked again, does it escape, what would a cut change."""
