"""``codemod doctor``: what is wrong with a program that runs, from the records of one or two short runs of it."""
