"""The same counts in the user's own process: ``verify.watch()``."""
