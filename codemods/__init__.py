"""codemod: find, rewrite and prove away the mistakes with PyTorch's autograd graph.

The static half of the project: it reads source and never imports torch.
"""

__version__ = "0.1.0"
