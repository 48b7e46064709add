"""The words that all parts share: findings and their promises, edits, spans."""
