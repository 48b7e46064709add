"""Which findings count, and which could be mended: selection, suppressions, baselines, changed lines."""
