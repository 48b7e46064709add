"""Classes by what they derive from: modules, optimizers, functions of autograd, things that cannot be seen."""

from __future__ import annotations

from collections.abc import Collection

from codemods.graph.model.facts.libraries import FRAMEWORK_BASES, SCHEDULERS
from codemods.graph.model.nodes import Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.values import Class, Library, Unknown

_TENSORS = frozenset({"Parameter", "UninitializedParameter", "Buffer", "UninitializedBuffer"})
"""Classes of torch.nn that are tensors (docs: torch.nn)."""


def family_of(bases: tuple[Value, ...], methods: Collection[str]) -> str:
    """The family of a class with these bases, which defines these methods."""
    family = "plain"
    for base in bases:
        if isinstance(base, Class):
            if base.info.family != "plain":
                return base.info.family
        elif isinstance(base, Library):
            path = canonical(base.path)
            if path in FRAMEWORK_BASES:
                return FRAMEWORK_BASES[path]
            if path.startswith("torch.nn.") and path.rpartition(".")[2] not in _TENSORS:
                return "module"
            if path == "torch.optim.AveragedModel":
                return "module"
            if path.startswith("torch.optim.") and not path.startswith(SCHEDULERS):
                return "optimizer"
            if path.endswith("LightningModule"):
                return "lightning"
            if path.split(".")[0] in (
                "builtins",
                "abc",
                "typing",
                "enum",
                "collections",
                "threading",
                "unittest",
                "argparse",
            ):
                continue
            family = "external"
        elif isinstance(base, Unknown):
            family = "external"
    if family == "external":
        return "module" if "forward" in methods else family
    return family
