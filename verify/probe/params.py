"""The parameters after a step: a digest that any changed bit changes, and a sample to measure differences by."""

from __future__ import annotations

from typing import Any

from .tensors import content, hasher, unseen

#: Values in a sample at most, evenly spaced over all parameters in order. Writing them is most of what a step costs.
SAMPLE = 1024
#: Elements that a card folds at once; the temporary copies must not show in anyone's memory.
_CHUNK = 1 << 18


class Parameters:
    """Reads lists of parameters. Where their shapes stay, so do the places that are sampled."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, ...], list[list[int]]] = {}
        self._weights: dict[Any, Any] = {}

    def read(self, tensors: list[Any]) -> dict[str, Any]:
        """``{digest, count, sample}`` as the step event has it; ``count`` is the number of elements of all tensors.

        Tensors without plain memory (sparse, fake) are left out. Shards of distributed tensors stand for the whole.
        """
        import torch

        plain = [each for each in [_local(tensor) for tensor in tensors] if each is not None]
        with unseen():
            detached = [each.detach() for each in plain]
            sizes = tuple(each.numel() for each in detached)
            state = hasher()
            folded = []
            for each in detached:
                if each.device.type == "cpu":
                    state.update(content(each))
                else:
                    folded.append(self._fold(each))
            if folded:
                state.update(content(torch.stack([each.to(folded[0].device) for each in folded])))
            values = self._sample(detached, sizes)
        return {"digest": state.hexdigest()[:16], "count": sum(sizes), "sample": [value.hex() for value in values]}

    def _sample(self, tensors: list[Any], sizes: tuple[int, ...]) -> list[float]:
        import torch

        places = self._places.get(sizes)
        if places is None:
            places = self._places[sizes] = _spread(sizes)
        parts: dict[Any, list[Any]] = {}
        order = []
        for i in range(len(tensors)):
            if not places[i]:
                continue
            tensor = tensors[i]
            real = torch.view_as_real(tensor)[..., 0] if tensor.is_complex() else tensor
            index = torch.tensor(places[i], device=tensor.device)
            part = real.reshape(-1).index_select(0, index).to(torch.float64)
            of_device = parts.setdefault(tensor.device, [])
            order.append((tensor.device, sum(each.numel() for each in of_device), len(places[i])))
            of_device.append(part)
        # One copy a device: each one waits for the card.
        read = {device: torch.cat(each).cpu().tolist() for device, each in parts.items()}
        values: list[float] = []
        for device, start, length in order:
            values.extend(read[device][start : start + length])
        return values

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
            # Odd numbers without a pattern that parameters could have; multiplication wraps round by definition.
            places = torch.arange(_CHUNK, dtype=torch.int64, device=tensor.device)
            mixed = (places + 1) * -7046029254386353131
            mixed = (mixed ^ (mixed >> 29)) * -4658895280553007687
            weights = self._weights[tensor.device] = mixed | 1
        total = torch.zeros((), dtype=torch.int64, device=tensor.device)
        for start in range(0, bits.numel(), _CHUNK):
            part = bits[start : start + _CHUNK].to(torch.int64)
            # The factor of a chunk is odd, too.
            total = total * 3 + (part * weights[: part.numel()]).sum()
        return total


def _spread(sizes: tuple[int, ...]) -> list[list[int]]:
    """For tensors of these sizes, laid end to end, the places in each that are sampled."""
    total = sum(sizes)
    wanted = min(total, SAMPLE)
    places: list[list[int]] = [[] for _ in sizes]
    owner, start = 0, 0
    for k in range(wanted):
        place = k * total // wanted
        while place >= start + sizes[owner]:
            start += sizes[owner]
            owner += 1
        places[owner].append(place - start)
    return places


def _local(tensor: Any) -> Any:
    """The part of ``tensor`` that is in this process's memory, or None."""
    import torch

    to_local = getattr(type(tensor), "to_local", None)
    if to_local is not None:
        tensor = to_local(tensor)
    return None if tensor.layout is not torch.strided or tensor.is_meta else tensor
