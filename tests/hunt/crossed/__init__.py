"""Programs that cross situations of training with ways for a value to get from one line to the next."""
