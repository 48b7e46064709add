"""What a user can choose, for every command alike; the command line and ``[tool.codemod]`` fill it in."""

from __future__ import annotations

from dataclasses import dataclass, field

from codemods.source.perfile import PerFileIgnores

#: How changes become commits.
STYLES = ("per-rule", "per-file", "one")
#: Where programs of the user's run, and how files are kept from them; the default first.
DEVICES = ("auto", "cpu", "cuda")
ISOLATIONS = ("auto", "overlay", "copy")
#: What an option may be that is one of a few words, its default first.
CHOICES = {
    "color": ("auto", "always", "never"),
    "hidden_state": ("auto", "reinit", "detach"),
    "total_style": ("auto", "float", "item", "detach"),
    "no_grad_style": ("auto", "decorator", "with"),
}


@dataclass(frozen=True)
class Options:
    """Choices that change what is found or how it is mended.

    ``select`` and ``ignore`` are rule names (an empty ``select`` means every rule that is not opt-in). What the styles
    may be stands in :data:`CHOICES`.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    likely: bool = field(default=False, metadata={"set by": "what runs the program"})
    """Whether findings that are likely are mended, too; set by what runs the program and keeps only what held."""
    hidden_state: str = "auto"
    total_style: str = "auto"
    no_grad_style: str = "auto"
    target_torch: str = "current"
    """The oldest PyTorch that the rewritten code has to run on."""
    python2: bool = False
    """Whether files of Python 2 are translated before anything else."""
    per_file_ignores: PerFileIgnores = field(default_factory=PerFileIgnores)
    """Rules that are left out of some files."""
    cache: bool = field(default=False, metadata={"set by": "--no-cache"})
    """Whether what earlier runs have found is used, and what this one finds is kept in the project."""
