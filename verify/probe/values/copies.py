"""Small models: what their steps leave is copied at once and read some steps later, many copies at a time.

Reading takes many calls into torch, each of which costs more than the few numbers that it is about.
"""

from __future__ import annotations

import base64
from typing import Any

from .digests import SUMS, Parameters, mixed
from .tensors import content, unseen

#: Up to so many elements a copy takes less time than the first call that would read them.
_MOST = 1 << 14
#: Copies that are read together.
_AT_ONCE = 8


class _Layout:
    """Where the tensors of a list begin in a row of all their values, and how such rows are read."""

    def __init__(self, sizes: tuple[int | None, ...], signs: Any) -> None:
        import torch

        self.count = sum([size or 0 for size in sizes])
        self.missing = sum([1 for size in sizes if size is None])
        self._lacking = repr([place for place in range(len(sizes)) if sizes[place] is None]) if self.missing else ""
        self._parts = len(sizes)
        self._bounds: list[tuple[int, int, int]] = []
        begin = 0
        for place in range(len(sizes)):
            size = sizes[place]
            if size:
                self._bounds.append((place, begin, begin + size))
                begin += size
        self._signs = torch.cat([signs[:size] for size in sizes if size])
        words = (self.count + 1) // 2
        # Odd, so that a changed word changes the sum for certain.
        self._weights = mixed(torch.arange(words)) | 1
        # Memory of its own: to ask the system for some takes longer than all that is done with it.
        self._values = torch.zeros(_AT_ONCE, 2 * words)
        self._words = torch.zeros(_AT_ONCE, words, dtype=torch.int64)
        self._signed = torch.zeros(_AT_ONCE, self.count, dtype=torch.float64)

    def read(self, rows: list[Any]) -> list[dict[str, Any]]:
        """What is told of each of ``rows``, of which there are :data:`_AT_ONCE` at most."""
        import torch

        number = len(rows)
        with unseen():
            values, signed, words = self._values[:number], self._signed[:number], self._words[:number]
            torch.stack(rows, out=values[:, : self.count])
            # All bits of a row in one number of 64.
            digests = torch.mul(values.view(torch.int64), self._weights, out=words).sum(1).tolist()
            # In two passes, of which each is four times as fast as one with two types.
            signed.copy_(values[:, : self.count]).mul_(self._signs)
            sums = torch.zeros(number, self._parts, SUMS, dtype=torch.float64)
            for place, begin, end in self._bounds:
                even = begin + (end - begin) // SUMS * SUMS
                if even > begin:
                    torch.sum(signed[:, begin:even].view(number, -1, SUMS), 1, out=sums[:, place])
                if end > even:
                    sums[:, place, : end - even] += signed[:, even:end]
            data = bytes(content(sums))
        width = len(data) // number
        return [
            {
                "digest": f"{digests[row] % 2**64:016x}{self._lacking}",
                "count": self.count,
                "sums": base64.b64encode(data[row * width : (row + 1) * width]).decode("ascii"),
                "missing": self.missing,
            }
            for row in range(number)
        ]


class Copy:
    """The values of a list of tensors as they were."""

    __slots__ = ("layout", "values")

    def __init__(self, layout: _Layout, values: Any) -> None:
        self.layout = layout
        self.values = values


class Copies:
    """Copies lists of few numbers; what is no plain list of 32-bit floats of the CPU is read by ``parameters``."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._layouts: dict[tuple[int | None, ...], _Layout] = {}

    def take(self, tensors: list[Any], light: bool = False) -> Copy | dict[str, Any]:
        """A copy, or what :meth:`Parameters.read` says, with ``missing``: how many of ``tensors`` are None."""
        import torch

        plain, parameter, float32, strided = torch.Tensor, torch.nn.Parameter, torch.float32, torch.strided
        sizes: list[int | None] = []
        count = 0
        for tensor in tensors:
            if tensor is None:
                sizes.append(None)
                continue
            size = tensor.numel()
            count += size
            kind = type(tensor)
            if (
                count > _MOST
                or (kind is not plain and kind is not parameter)
                or tensor.dtype is not float32
                or tensor.layout is not strided
                or not tensor.is_cpu
            ):
                return self._read(tensors, light)
            sizes.append(size)
        if not count:
            return self._read(tensors, light)
        known = tuple(sizes)
        flatten: Any = torch._C._nn.flatten_dense_tensors
        with unseen():
            layout = self._layouts.get(known)
            if layout is None:
                layout = self._layouts[known] = _Layout(known, self._parameters.signs(torch.device("cpu")))
            flat = flatten([tensor for tensor in tensors if tensor is not None])
            # One alone is flattened without being copied.
            return Copy(layout, flat.clone() if len(tensors) - layout.missing == 1 else flat)

    def _read(self, tensors: list[Any], light: bool) -> dict[str, Any]:
        return {**self._parameters.read(tensors, light), "missing": sum([1 for each in tensors if each is None])}


def now(found: Any) -> Any:
    """What was read; of a copy what it says."""
    return read([found])[0] if isinstance(found, Copy) else found


def settle(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``events``, where the copies in them and the generators have been read."""
    places = [(event, name) for event in events for name in event if isinstance(event[name], Copy)]
    found = read([event[name] for event, name in places])
    for number in range(len(places)):
        event, name = places[number]
        event[name] = found[number]
    for event in events:
        if callable(event.get("rng")):
            event["rng"] = event["rng"]()
    return events


def read(copies: list[Copy]) -> list[dict[str, Any]]:
    """What :meth:`Parameters.read` would have said of each of ``copies``, but for the digest, with ``missing``."""
    groups: dict[int, list[int]] = {}
    for place in range(len(copies)):
        groups.setdefault(id(copies[place].layout), []).append(place)
    found: list[dict[str, Any]] = [{} for _ in copies]
    for places in groups.values():
        for start in range(0, len(places), _AT_ONCE):
            some = places[start : start + _AT_ONCE]
            told = copies[some[0]].layout.read([copies[place].values for place in some])
            for number in range(len(some)):
                found[some[number]] = told[number]
    return found
