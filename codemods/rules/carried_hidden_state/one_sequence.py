"""Whether batches continue one sequence or have nothing to do with each other."""

from __future__ import annotations

import ast

from codemods.graph.model.program import ParsedFile
from codemods.proofs.carried import Carry
from codemods.proofs.syntax import COMPREHENSIONS, DEFINITIONS
from codemods.source.walking import called, last_name, walk
from codemods.terms.words import words

_SHUFFLING = words(
    "random.shuffle random.sample random.choices numpy.random.shuffle numpy.random.permutation numpy.random.choice "
    "torch.randperm torch.utils.data.RandomSampler torch.utils.data.WeightedRandomSampler "
    "torch.utils.data.SubsetRandomSampler torch.utils.data.sampler.RandomSampler sklearn.utils.shuffle "
    "torch.utils.data.sampler.WeightedRandomSampler torch.utils.data.sampler.SubsetRandomSampler"
)
"""What puts things into an order of chance (docs)."""

_OF_GENERATORS = frozenset({"shuffle", "permutation"})
"""Methods that do so of what draws random numbers, as ``random.Random`` and ``numpy.random.Generator`` (docs)."""


def continues_sequence(carry: Carry) -> bool:
    """Whether something says that consecutive batches continue one sequence."""
    frames = [place.frame for place in carry.freed_by.place.chain()]
    files: dict[str, ParsedFile] = {f.file.path: f.file for f in frames}
    generator = _generator(carry, files)
    if any(_shuffles(file) for file in files.values()):
        return False
    loop = carry.loop
    if isinstance(loop, ast.While) or generator is not None:
        return True
    counted = isinstance(loop, (ast.For, ast.AsyncFor)) and any(
        isinstance(n, ast.Call) and frames[0].file.named(n.func) in ("builtins.range", "itertools.count")
        for n in walk(loop.iter)
    )
    return counted or any(_resets(file, carry) for file in files.values())


def _generator(carry: Carry, files: dict[str, ParsedFile]) -> ast.AST | None:
    """The generator of these files that the loop goes through."""
    loop = carry.loop
    iterated = getattr(loop, "iter", None)
    if isinstance(loop, COMPREHENSIONS):
        iterated = loop.generators[0].iter
    names = {called(n) for n in walk(iterated) if isinstance(n, ast.Call)} if iterated is not None else set()
    named = (n for f in files.values() for n in walk(f.tree) if isinstance(n, DEFINITIONS) and n.name in names)
    return next((n for n in named if any(isinstance(y, (ast.Yield, ast.YieldFrom)) for y in walk(n))), None)


def _shuffles(file: ParsedFile) -> bool:
    generators = {
        last_name(target)
        for node in walk(file.tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if file.named(node.value.func).startswith(("numpy.random.", "random."))
        for target in node.targets
        if isinstance(target, (ast.Name, ast.Attribute))
    }
    for node in walk(file.tree):
        if isinstance(node, ast.Call):
            function = node.func
            if file.named(function) in _SHUFFLING:
                return True
            if isinstance(function, ast.Attribute) and function.attr in _OF_GENERATORS:
                receiver = function.value
                made = isinstance(receiver, ast.Call) and file.named(receiver.func).startswith("numpy.random.")
                if made or last_name(receiver) in generators:
                    return True
            for keyword in node.keywords:
                off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg == "shuffle" and not off and not _of_tree(file, function):
                    return True
    return False


def _of_tree(file: ParsedFile, function: ast.expr) -> bool:
    """Whether a call goes to a function or class of the same file, whose arguments are the user's words."""
    return isinstance(function, ast.Name) and any(
        isinstance(node, (*DEFINITIONS, ast.ClassDef)) and node.name == function.id for node in walk(file.tree)
    )


def _resets(file: ParsedFile, carry: Carry) -> bool:
    """Whether code outside the class assigns the state, as a training loop does before each epoch."""
    name = carry.carrier.name
    return any(
        isinstance(target, ast.Attribute) and target.attr == name
        for node in walk(file.tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if file.enclosing(node, ast.ClassDef) is None
    )
