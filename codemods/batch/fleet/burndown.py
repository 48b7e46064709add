"""What is left of a campaign's requests from day to day: the burn-down of the fleet report."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from codemods.batch.fleet.charts import WIDTH, drawing
from codemods.batch.fleet.numbers import grouped
from codemods.batch.ledger.ledger import Ledger

#: When each request was opened, and how and when it came to its end. One that nobody has followed is open since its
#: branch was published.
QUERY = """
SELECT coalesce(
    r.opened_at, (SELECT min(at) FROM events e WHERE e.repository = r.id AND e.stage = 'publish')
  ) AS opened,
  coalesce(r.ended_at, r.followed_at) AS ended, q.state
FROM requests q JOIN repositories r ON r.slug = q.slug
"""
_HEIGHT, _MOST = 220, 90


class Day(NamedTuple):
    """How many requests were opened, merged and closed by the end of a day, of ``total`` that there are to be."""

    date: str
    opened: int
    merged: int
    closed: int
    total: int

    @property
    def open(self) -> int:
        """Those that people have to look at."""
        return self.opened - self.merged - self.closed

    @property
    def left(self) -> int:
        """All that is not settled, also what is not opened yet."""
        return self.total - self.merged - self.closed


def days(ledger: Ledger, total: int) -> list[Day]:
    """Read the days from the first request to the last change off a ledger; none without requests.

    ``total`` is the number of repositories with something to change; each may come to a request.
    """
    opened: Counter[datetime.date] = Counter()
    ended: dict[str, Counter[datetime.date]] = {"merged": Counter(), "closed": Counter()}
    for row in ledger.each(QUERY):
        if row["opened"] is None:
            continue
        first = datetime.date.fromtimestamp(row["opened"])
        opened[first] += 1
        if row["state"] in ended and row["ended"] is not None:
            # No clock of a forge ends a request before another's has opened it.
            ended[row["state"]][max(first, datetime.date.fromtimestamp(row["ended"]))] += 1
    if not opened:
        return []
    seen = {*opened, *ended["merged"], *ended["closed"]}
    told = []
    begun = merged = closed = 0
    total = max(total, sum(opened.values()))
    day = min(seen)
    while day <= max(seen):
        begun, merged, closed = begun + opened[day], merged + ended["merged"][day], closed + ended["closed"][day]
        told.append(Day(day.isoformat(), begun, merged, closed, total))
        day += datetime.timedelta(days=1)
    return told


def thinned(told: Sequence[Day]) -> list[Day]:
    """``told`` with no more than :data:`_MOST` days, at equal distances and with the last."""
    step = -(-len(told) // _MOST)
    return list(told[::-1][::step][::-1]) if told else []


def chart(told: Sequence[Day]) -> Markup:
    """A column a day: what is open, and above it what is not opened yet. It falls as requests are settled."""
    shown = thinned(told)
    left, top, room = 60, 10, _HEIGHT - 40
    most = max(day.left for day in shown) or 1
    width = min(40.0, (WIDTH - left) / len(shown))
    shapes = []
    for share in (0, 0.5, 1):
        y = top + room * (1 - share)
        shapes.append(Markup('<line x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>').format(left, WIDTH, y=y))
        named = '<text x="{}" y="{:.1f}" class="name">{}</text>'
        shapes.append(Markup(named).format(left - 8, y + 4, grouped(round(most * share))))
    for index, day in enumerate(shown):
        x, base = left + index * width, float(top + room)
        words = f"{day.date}: {grouped(day.open)} open, {grouped(day.total - day.opened)} not opened yet, "
        words += f"{grouped(day.merged)} merged, {grouped(day.closed)} closed"
        rectangles = Markup("")
        for count, tone in ((day.open, "fixed"), (day.total - day.opened, "left")):
            height = room * count / most
            base -= height
            rectangles += Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>').format(
                x, base, max(width - 1, 0.5), height, tone
            )
        shapes.append(Markup("<g><title>{}</title>{}</g>").format(words, rectangles))
    for day, x, anchor in ((shown[0], left, "start"), (shown[-1], left + len(shown) * width, "end")):
        if anchor == "start" or len(shown) * width > 220:
            shape = '<text x="{:.1f}" y="{}" style="text-anchor:{}" class="value">{}</text>'
            shapes.append(Markup(shape).format(x, _HEIGHT - 8, anchor, day.date))
    return drawing(_HEIGHT, shapes, "Requests that are not settled, day by day")
