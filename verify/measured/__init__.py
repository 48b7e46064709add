"""What runs leave: records of the probe, and verdicts with what they rest on."""
