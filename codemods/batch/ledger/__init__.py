"""What became of every repository, in SQLite, and the lock of the one process that writes it."""
