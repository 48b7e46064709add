"""Two runs compared: losses, parameters, numbers, files."""
