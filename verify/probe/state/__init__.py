"""What a script leaves beside its graph: losses and parameters, files, output, settings, memory."""
