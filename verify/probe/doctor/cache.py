"""What CUDA's allocator keeps beyond what tensors take; in a second run also the lines for which it takes more."""

from __future__ import annotations

from typing import Any

from ..lines.sites import Tree

_MOST_STEPS = 2000
_MOST_LINES = 3
#: So many of the allocator's last actions are remembered where lines are asked for.
_HISTORY = 200_000


class Cache:
    """Reads the allocators of all cards after each step, once CUDA is in use."""

    def __init__(self, tree: Tree, *, lines: bool) -> None:
        self._tree = tree
        self._wanted = lines
        self._recording = False
        #: Of each step the bytes that are reserved at its end, and the most that tensors took in it.
        self.steps: list[list[int]] = []

    def stepped(self) -> None:
        """A step is over, and its peaks are not reset yet."""
        import torch

        cuda: Any = torch.cuda
        if not cuda.is_initialized() or len(self.steps) >= _MOST_STEPS:
            return
        if self._wanted and not self._recording:
            self._recording = True
            # Steps before did what is done once.
            _record(cuda, "all")
        cards = range(cuda.device_count())
        self.steps.append(
            [sum(map(cuda.memory_reserved, cards)), sum(map(cuda.max_memory_allocated, cards))],
        )

    def event(self) -> dict[str, Any]:
        """All steps, how often the allocator gave back what it keeps to find memory, and the lines."""
        if not self.steps:
            return {"what": "cache", "steps": [], "retries": 0, "lines": []}
        import torch

        cuda: Any = torch.cuda
        stats = map(cuda.memory_stats, range(cuda.device_count()))
        retries = sum(card.get("num_alloc_retries", 0) for card in stats)
        return {"what": "cache", "steps": self.steps, "retries": retries, "lines": self._lines(cuda)}

    def _lines(self, cuda: Any) -> list[dict[str, Any]]:
        """The lines for which the allocator took memory from the driver, the largest first."""
        if not self._recording:
            return []
        try:
            traces = cuda.memory._snapshot()["device_traces"]
        except (AttributeError, KeyError, RuntimeError):
            # The history is no public interface.
            return []
        finally:
            _record(cuda, None)
        rows: dict[tuple[Any, ...], int] = {}
        for action in (one for trace in traces for one in trace if one.get("action") == "segment_alloc"):
            site = self._site(action.get("frames") or [])
            if site is not None:
                rows[site] = rows.get(site, 0) + action["size"]
        largest = sorted(rows.items(), key=lambda row: -row[1])[:_MOST_LINES]
        return [{"site": list(site), "bytes": size} for site, size in largest]

    def _site(self, frames: list[dict[str, Any]]) -> tuple[str, int, str] | None:
        for frame in frames:
            path = self._tree.relative(frame["filename"])
            if path is not None:
                return path, frame["line"], frame["name"]
        return None


def _record(cuda: Any, enabled: str | None) -> None:
    try:
        cuda.memory._record_memory_history(enabled, stacks="python", max_entries=_HISTORY)
    except (AttributeError, TypeError, RuntimeError):
        # Of other releases; then no line is named.
        return
