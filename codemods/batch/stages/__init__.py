"""What is done with a repository, each in a process of its own: clone, rewrite, verify."""
