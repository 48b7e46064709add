"""Two runs held side by side: losses, parameters, numbers, files."""
