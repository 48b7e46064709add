"""The hunt: small training programs by the thousand, rewritten, run, and held to every promise."""
