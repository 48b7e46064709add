"""Facts about torch, as tables: what its calls do to the autograd graph.

Each table names its source. "docs" are the PyTorch 2.x API pages (``torch``, ``torch.Tensor``, ``torch.nn``,
``torch.autograd``); "derivatives" is ``tools/autograd/derivatives.yaml`` of PyTorch, which says what each operation
saves; "ran" was tried on torch 2.13 (CPU). What ends a graph stands in :mod:`codemods.graph.model.cutting`.
"""
