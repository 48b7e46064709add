"""Python itself: statements, expressions, calls, classes, containers."""
