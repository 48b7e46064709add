"""Which requests were answered by the CPU, and how a device is told from other arguments."""

from __future__ import annotations

from typing import Any

from ..guarding.guard import Write
from .labels import Labels


class Requests:
    """Writes each kind of request once, as a ``device`` event.

    ``labels`` are told what is put where, where a diagnosis wants to know.
    """

    def __init__(self, write: Write, labels: Labels | None = None) -> None:
        self._write = write
        self.labels = labels
        self._seen: set[str] = set()

    def note(self, what: str) -> None:
        """Record a request that the CPU answers; ``what`` is how a script spells it: ``Tensor.cuda()``."""
        if what not in self._seen:
            self._seen.add(what)
            if self.labels is not None:
                self.labels.noted(what)
            self._write({"event": "device", "what": what})

    def device(self, value: Any, what: str) -> Any:
        """``value`` as it may be used here: what names a CUDA device becomes ``"cpu"``, anything else stays as it is.

        A whole number is the index of a CUDA device (-1 is what ``Tensor.get_device()`` says of the CPU).
        """
        if not names_cuda(value):
            return value
        self.note(what)
        return "cpu"

    def placed(self, source: Any, result: Any, asked: Any) -> Any:
        """``result`` of asking that ``source``, or something new, be on the device ``asked``."""
        if self.labels is None or (not isinstance(asked, str) and type(asked).__name__ != "device"):
            return result
        return self.labels.moved(source, result, "cuda" if names_cuda(asked) else "cpu")


def names_cuda(value: Any) -> bool:
    """Whether a device argument (string, ``torch.device`` or index) means CUDA."""
    if isinstance(value, str):
        return value == "cuda" or value.startswith("cuda:")
    if isinstance(value, int):
        return not isinstance(value, bool)
    return type(value).__name__ == "device" and getattr(value, "type", "") == "cuda"
