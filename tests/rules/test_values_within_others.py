"""What is put aside may be an object that holds the tensor: it is not the object that is detached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import LEARNING, found

RULES = ("stored-graph", "attached-loss-total")

PROGRAM = """
import dataclasses
from collections import namedtuple

Row = namedtuple("Row", "loss count")

@dataclasses.dataclass(frozen=True)
class Seen:
    loss: object = 0

row, seen, listed, mean = Row(0, 0), Seen(), [0], torch.zeros(())
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    {line}
print(row, seen, listed, mean)
"""


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("mean = torch.lerp(mean, loss, 0.1)", True),
        ("mean = 0.9 * mean + 0.1 * loss", True),
        ("mean = mean.mul(0.9).add(loss)", True),
        ("mean = torch.cat([mean.view(-1), loss.view(1)])", True),
        ("row = row._replace(loss=row.loss + loss)", False),
        ("row = Row(row.loss + loss, 1)", False),
        ("total, count = row; row = Row(total + loss, count + 1)", False),
        ("seen = dataclasses.replace(seen, loss=seen.loss + loss)", False),
        ("seen = Seen(seen.loss + loss)", False),
        ("listed = list([listed[0] + loss])", False),
    ],
)
def test_an_object_is_not_detached_for_what_it_holds(tmp_path: Path, line: str, edited: bool) -> None:
    program = PROGRAM.format(line=line)
    findings = [one for rule in RULES for one in found(tmp_path, rule, LEARNING, program)]
    assert any(one.edits for one in findings) is edited
