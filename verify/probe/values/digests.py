"""Many tensors at once: a digest that any changed bit changes, and sums by which distances are measured afterwards.

The sums of a tensor are ``SUMS`` numbers: each of its values is added to one of them, with a sign of its own that
looks random and is the same in every run. Sums of a difference are the difference of sums, and the root of their
squares estimates the length of the tensor that they are of (a count sketch: Charikar, Chen and Farach-Colton, 2002). So
two runs that never meet can be held side by side, tensor by tensor, by all of their values.
"""

from __future__ import annotations

import base64
from typing import Any

from .tensors import content, hasher, unseen

#: Of so many numbers the estimated length is off by a sixth; a single value that differs is told exactly.
SUMS = 16
#: Elements that are taken at once; temporary copies must not show in anyone's memory, nor leave the processor's cache.
_CHUNK = 1 << 16
#: Tensors below this size are laid end to end first: calls into torch are what costs time there.
_SMALL = 1 << 12
#: Elements that a card folds at once.
_FOLD = 1 << 18


class _Batch:
    """Small tensors of one type and device: their places in the list, and where each of their values is added."""

    __slots__ = ("places", "signs", "targets")

    def __init__(self, places: list[int]) -> None:
        self.places = places
        self.targets: Any = None
        self.signs: Any = None


class Parameters:
    """Reads lists of tensors. Where their shapes stay, so does the plan by which they are read."""

    def __init__(self) -> None:
        self._plans: dict[Any, tuple[list[_Batch], list[int]]] = {}
        self._weights: dict[Any, Any] = {}
        self._signs: dict[Any, Any] = {}
        self._tables: dict[Any, Any] = {}

    def read(self, tensors: list[Any], light: bool = False) -> dict[str, Any]:
        """``{digest, count, sums}``; ``count`` is how many numbers all tensors have, ``sums`` base64 of 64-bit floats.

        None stands for a tensor that is not there: its sums are 0. So are those of tensors without memory (fake). Of
        sparse tensors the values are read, of distributed ones the shard that this process has. ``light``: the digest
        is made of the sums where a tensor is large, which takes a third of the time and misses changes that are lost in
        sums of 64-bit floats.
        """
        import torch

        with unseen():
            state = hasher()
            flat: list[Any] = [None if tensor is None else _flat(tensor, state) for tensor in tensors]
            shape = tuple([None if each is None else (each.numel(), each.dtype, each.device) for each in flat])
            plan = self._plans.get(shape)
            if plan is None:
                plan = self._plans[shape] = self._plan(flat)
            batches, single = plan
            sums: dict[Any, Any] = {}
            folded: list[Any] = []
            for batch in batches:
                values = torch.cat([flat[place] for place in batch.places])
                self._note(values, state, folded)
                table = self._table(sums, values.device, len(flat))
                table.view(-1).index_add_(0, batch.targets, signed(values, batch.signs))
            for place in single:
                row = self._table(sums, flat[place].device, len(flat))[place]
                self._add(flat[place], row)
                self._note(row if light else flat[place], state, folded)
            if folded:
                state.update(content(torch.stack([each.to(folded[0].device) for each in folded])))
            if None in shape:
                state.update(repr([place for place, each in enumerate(shape) if each is None]).encode())
            # One copy a device: each one waits for the card.
            tables = [table if device.type == "cpu" else table.cpu() for device, table in sums.items()]
            data = (
                bytes(content(tables[0] if len(tables) == 1 else sum(tables)))
                if tables
                else bytes(8 * SUMS * len(flat))
            )
            text = base64.b64encode(data).decode("ascii")
        count = sum([each[0] for each in shape if each is not None])
        return {"digest": state.hexdigest()[:16], "count": count, "sums": text}

    def _note(self, values: Any, state: Any, folded: list[Any]) -> None:
        if values.device.type == "cpu":
            state.update(content(values))
        else:
            folded.append(self._fold(values))

    def _plan(self, flat: list[Any]) -> tuple[list[_Batch], list[int]]:
        import torch

        batches: dict[Any, _Batch] = {}
        done: list[_Batch] = []
        single: list[int] = []
        for place in range(len(flat)):
            values = flat[place]
            if values is None or not values.numel():
                continue
            if values.numel() >= _SMALL:
                single.append(place)
                continue
            batch = batches.setdefault((values.dtype, values.device), _Batch([]))
            batch.places.append(place)
            if sum([flat[each].numel() for each in batch.places]) >= _CHUNK - _SMALL:
                done.append(batches.pop((values.dtype, values.device)))
        done.extend(batches.values())
        for batch in done:
            device = flat[batch.places[0]].device
            inside = [torch.arange(flat[place].numel(), device=device) for place in batch.places]
            batch.signs = torch.cat([self.signs(device)[: len(each)] for each in inside])
            batch.targets = torch.cat(
                [batch.places[i] * SUMS + inside[i].remainder(SUMS) for i in range(len(batch.places))]
            )
        return done, single

    def _table(self, sums: dict[Any, Any], device: Any, length: int) -> Any:
        table = sums.get(device)
        if table is None:
            table = self._tables.get((device, length))
            if table is None:
                import torch

                # A type that does not round what is added up here.
                table = torch.zeros(length, SUMS, dtype=torch.float64, device=device)
                self._tables[device, length] = table
            sums[device] = table.zero_()
        return table

    def _add(self, values: Any, row: Any) -> None:
        signs = self.signs(values.device)
        count = values.numel()
        if count <= _CHUNK and count % SUMS == 0:
            row.copy_(signed(values, signs[:count]).view(-1, SUMS).sum(0))
            return
        for start in range(0, count, _CHUNK):
            part = values[start : start + _CHUNK]
            part = signed(part, signs[: part.numel()])
            even = part.numel() // SUMS * SUMS
            total = part[:even].view(-1, SUMS).sum(0)
            rest = part[even:]
            if rest.numel():
                total[: rest.numel()] += rest
            # Else what differs at the same place of two chunks could cancel out.
            row.add_(total, alpha=_sign_of(start // _CHUNK))

    def signs(self, device: Any) -> Any:
        """The sign of each value of a chunk on ``device``."""
        signs = self._signs.get(device)
        if signs is None:
            import torch

            bits = mixed(torch.arange(_CHUNK, dtype=torch.int64))
            signs = self._signs[device] = ((bits >> 40) & 1).mul(2).sub(1).double().to(device)
        return signs

    def _fold(self, tensor: Any) -> Any:
        """All bits of a tensor on a card in one 64-bit integer, computed there.

        The elements' bits, read as integers, are summed with odd weights modulo 2**64. A single changed element changes
        the sum by an odd multiple of a difference that is not 0 modulo 2**64, so the sum changes for certain.
        """
        import torch

        whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        flat = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        bits = flat.reshape(-1).view(whole[flat.element_size()])
        weights = self._weights.get(tensor.device)
        if weights is None:
            # Odd numbers without a pattern that parameters could have.
            weights = self._weights[tensor.device] = (
                mixed(torch.arange(_FOLD, dtype=torch.int64, device=tensor.device)) | 1
            )
        total = torch.zeros((), dtype=torch.int64, device=tensor.device)
        for start in range(0, bits.numel(), _FOLD):
            part = bits[start : start + _FOLD].to(torch.int64)
            # The factor of a chunk is odd, too.
            total = total * 3 + (part * weights[: part.numel()]).sum()
        return total


def signed(values: Any, signs: Any) -> Any:
    """``values`` as 64-bit floats, each with its sign."""
    import torch

    # In one pass where torch itself turns the type into the larger one.
    return torch.mul(values, signs) if values.dtype is torch.float32 else values.double().mul_(signs)


def mixed(places: Any) -> Any:
    """Numbers from 0 on turned into numbers without a pattern; multiplication wraps round by definition."""
    mixed = (places + 1) * -7046029254386353131
    return (mixed ^ (mixed >> 29)) * -4658895280553007687


def _sign_of(number: int) -> int:
    mixed = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
    return 1 if (mixed ^ (mixed >> 29)) >> 40 & 1 else -1


def _flat(tensor: Any, state: Any) -> Any:
    """The values of ``tensor`` in this process's memory in one row, or None; places of sparse ones go to ``state``."""
    import torch

    if type(tensor) is not torch.nn.Parameter and type(tensor) is not torch.Tensor:
        to_local = getattr(type(tensor), "to_local", None)
        if to_local is not None:
            tensor = to_local(tensor)
    if tensor.dtype is torch.float32 and tensor.layout is torch.strided and tensor.device.type == "cpu":
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        return tensor.reshape(-1)
    if tensor.is_meta:
        return None
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        state.update(content(tensor.indices()))
        tensor = tensor.values()
    if tensor.layout is not torch.strided:
        return None
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor.reshape(-1)
