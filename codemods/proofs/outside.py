"""What is left where callers that cannot be seen come to it."""

from __future__ import annotations

from functools import cached_property

from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.nodes import Carrier, Node, Place
from codemods.graph.model.trace import Trace


class Outside:
    """The callers of a run that cannot be seen, and what they have."""

    def __init__(self, trace: Trace) -> None:
        ran = {frame.fid for frame in trace.frames}
        called = [f for f in trace.frames if f.root or (f.call is not None and f.call.frame.fid not in ran)]
        self.frames = {frame.fid for frame in called}
        """The calls that they make."""
        self.objects = trace.handed | {getattr(frame.receiver, "oid", None) for frame in called} - {None}
        """What they certainly have."""

    @cached_property
    def any(self) -> bool:
        """Whether there are such callers."""
        return bool(self.frames or self.objects)

    def keeps(self, carrier: Carrier, place: Place) -> bool:
        """Whether a caller may come to what is stored in ``carrier`` at ``place``.

        So it is with a global variable, and with an attribute or an element of what was there before the call.
        """
        if carrier.kind is CarrierKind.LOCAL:
            return False
        if carrier.kind is CarrierKind.GLOBAL:
            return self.any
        return carrier.owner in self.objects or any(
            carrier.owner < one.frame.fid for one in place.chain() if one.frame.fid in self.frames
        )

    def keeps_node(self, node: Node, *, elements: bool = True) -> bool:
        """The same for a node, wherever it is stored; with or without the elements of containers."""
        return any(
            self.keeps(carrier, place)
            for carrier, place in node.stores
            if elements or carrier.kind in (CarrierKind.GLOBAL, CarrierKind.ATTRIBUTE)
        )
