"""The graph of this process: backwards, forwards, steps, live nodes and who holds them."""
