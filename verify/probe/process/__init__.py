"""This process: what it is, what makes it short and repeatable, how it ends, and its record."""
