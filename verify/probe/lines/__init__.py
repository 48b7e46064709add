"""Which lines are the user's, which of them ran, and where an error came from."""
