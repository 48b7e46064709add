"""What calls of torch do to tensors, modules and optimizers."""
