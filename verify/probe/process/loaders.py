"""Short epochs: every DataLoader ends after a number of batches, so that a short run reaches validation.

What stays as it is, and why:

* ``len(loader)``. Scripts compute schedules, warm-up and print intervals from it (``if i % (len(loader) // 10) == 0``);
  a smaller length would make their first steps other steps than those of the real run, or divide by zero.
* The batches that do come. Samplers, generators and workers run unchanged; the iterator only says earlier that it is at
  its end. (Batches that are not fetched do not draw random numbers, so that a later epoch may be shuffled otherwise
  than in a run without the cap; runs with the same cap agree.)
* Iterators that are driven by hand, as in ``for i in range(len(loader)): batch = next(iterator)`` or over a sampler
  that never ends. To them StopIteration would be an error that the script does not have. They are capped only where the
  code shows that it expects the end: a ``for``, ``list(loader)``, ``next(iterator, None)``, or a ``try`` that catches
  StopIteration, as Lightning's and accelerate's loaders do.
"""

from __future__ import annotations

import ast
import functools
import linecache
import opcode
import sys
from types import FrameType
from typing import Any

from ..guarding.guard import Write
from ..lines.sites import Tree, key

#: Frames that hand StopIteration on to their caller as it is: iterators around iterators.
_TRANSPARENT = ("__next__", "<listcomp>")


def install(config: dict[str, Any], write: Write) -> None:
    """End every epoch after ``config["batches"]`` batches (None: never); writes ``capped`` events, one a site.

    With ``config["batch"]`` batches have so many items at most; a ``knob`` event says so, once a site. Call it once,
    right after torch was imported. ``config["root"]`` is the folder whose frames count as the user's.
    """
    tree = Tree(config["root"])
    if config.get("batch"):
        _smaller(int(config["batch"]), tree, write)
    batches = config.get("batches")
    if batches is None:
        return
    from torch.utils.data import dataloader

    original = dataloader._BaseDataLoaderIter.__next__
    seen: set[Any] = set()

    @functools.wraps(original)
    def capped_next(self: Any) -> Any:
        # A persistent iterator starts anew with a new sampler iterator: the mark of its last epoch is then void.
        ended = self.__dict__.get("_codemod_ended")
        if ended is not None and ended is self._sampler_iter:
            raise StopIteration
        if self._num_yielded < batches:
            return original(self)
        length = _length(self, dataloader)
        if self._num_yielded == length or not _expects_end(sys._getframe(1)):
            return original(self)
        self._codemod_ended = self._sampler_iter
        # Workers that persist drop what they fetched ahead when the next epoch begins.
        if getattr(self, "_num_workers", 0) and not getattr(self, "_persistent_workers", False):
            self._shutdown_workers()
        site = tree.site(sys._getframe(1))
        if key(site) not in seen:
            seen.add(key(site))
            write({"event": "capped", "site": site, "length": length, "cap": batches})
        raise StopIteration

    dataloader._BaseDataLoaderIter.__next__ = capped_next  # type: ignore[method-assign]


def _smaller(most: int, tree: Tree, write: Write) -> None:
    """Have loaders take batches of ``most`` items where they are told to take more. What samples batches itself does
    as it likes."""
    from torch.utils.data import DataLoader

    original = DataLoader.__init__
    seen: set[Any] = set()

    @functools.wraps(original)
    def smaller(self: Any, dataset: Any, batch_size: Any = 1, *arguments: Any, **named: Any) -> None:
        if type(batch_size) is int and batch_size > most:
            site = tree.site(sys._getframe(1))
            if site is not None and key(site) not in seen:
                seen.add(key(site))
                write({"event": "knob", "kind": "batch", "path": site[0], "line": site[1], "turns": most})
            batch_size = most
        original(self, dataset, batch_size, *arguments, **named)

    DataLoader.__init__ = smaller  # type: ignore[method-assign]


def in_this_process() -> None:
    """Have loaders work without workers."""
    from torch.utils.data import DataLoader

    original = DataLoader.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        original(self, *args, **named)
        # Set around the class's own check: what only workers have (a time, how far ahead) does not matter any more.
        self.__dict__.update(num_workers=0, timeout=0, persistent_workers=False, pin_memory=False)

    DataLoader.__init__ = __init__  # type: ignore[method-assign]


def _length(iterator: Any, dataloader: Any) -> int | None:
    """The number of batches of an epoch, None where it is not known (IterableDataset, samplers without a length)."""
    if iterator._dataset_kind != dataloader._DatasetKind.Map:
        return None
    try:
        return len(iterator._index_sampler)
    except Exception:  # whatever the script's own sampler raises
        return None


def _expects_end(frame: FrameType | None) -> bool:
    """Whether the code that asks for the next batch copes with there being none."""
    while frame is not None:
        code = frame.f_code
        # A `for`, an unpacking or `yield from` asks by an instruction of its own; only calls can be next().
        if "CALL" not in _instruction(code.co_code, frame.f_lasti):
            return True
        if "next" not in code.co_names and "__next__" not in code.co_names:
            return True
        if _caught_at(code.co_filename, frame.f_lineno):
            return True
        if code.co_name not in _TRANSPARENT:
            return False
        frame = frame.f_back
    return False


def _instruction(code: bytes, index: int) -> str:
    # From Python 3.11 on, a call that runs Python code stands at one of the cache entries behind it; 3.11 alone calls
    # builtins in an instruction of its own, PRECALL.
    while index > 0 and opcode.opname[code[index]] == "CACHE":
        index -= 2
    return opcode.opname[code[index]]


def _caught_at(path: str, line: int) -> bool:
    """Whether StopIteration raised in ``line`` of the file is caught there, or never leaves ``next(x, default)``."""
    return any(first <= line <= last for first, last in _catching(path, linecache.getline(path, line)))


@functools.lru_cache(maxsize=64)
def _catching(path: str, _text: str) -> tuple[tuple[int, int], ...]:
    """Line ranges of a file in which StopIteration is caught; a new text of a line asks again."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    ranges: list[tuple[int, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(_catches(handler, node.body) for handler in node.handlers):
            ranges.append((node.body[0].lineno, node.body[-1].end_lineno or 0))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "next" and len(node.args) == 2:
            ranges.append((node.lineno, node.end_lineno or node.lineno))
    return tuple(ranges)


def _catches(handler: ast.ExceptHandler, body: list[ast.stmt]) -> bool:
    expression = handler.type
    if any(isinstance(node, ast.Raise) for part in handler.body for node in ast.walk(part)):
        return False
    names = set() if expression is None else {getattr(node, "id", "") for node in ast.walk(expression)}
    if "StopIteration" in names:
        return True
    # Around a whole training loop, a handler of everything reports failures; it does not wait for the end of the data.
    broad = expression is None or not names.isdisjoint(("Exception", "BaseException"))
    return broad and not any(isinstance(node, (ast.For, ast.While)) for part in body for node in ast.walk(part))
