"""Keeps the probe out of the script's way: its errors, torch.compile, and what waits for an import."""
