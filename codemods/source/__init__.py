"""Files in and out: which files, their text, their settings, and how they are written back."""
