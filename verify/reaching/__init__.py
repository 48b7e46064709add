"""Runs that reach what the plain ones did not: why lines did not run, and the run's own knobs that bring it there."""
