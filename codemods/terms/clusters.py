"""What belongs together because a chain of others ties it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def connected_groups(count: int, sets: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the numbers below ``count`` in groups: two are in one if a chain of ``sets`` joins them."""
    leader = list(range(count))

    def lead(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for members in sets:
        for member in members[1:]:
            low, high = sorted((lead(members[0]), lead(member)))
            leader[high] = low
    groups: dict[int, list[int]] = {}
    for number in range(count):
        groups.setdefault(lead(number), []).append(number)
    return [tuple(group) for group in groups.values()]
