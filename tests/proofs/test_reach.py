"""What is proven of a graph, however many ways lead through it."""

from __future__ import annotations

from codemods.graph.model.kinds import NodeKind
from codemods.proofs.reach import through_phi
from tests.graph.tools import run


def test_one_of_several_is_gone_through_once_however_many_ways_lead_to_it() -> None:
    branches = "".join(
        f"if x[{i}]:\n    y = y if x.any() else y * 2\nelse:\n    y = y if x.all() else z\n" for i in range(60)
    )
    (node,) = run("y = w.sum()\nz = w.mean()\n" + branches).nodes("y")
    found = list(through_phi(node))
    assert len(found) == len(set(found)) > 60
    assert {n.operation for n in found if n.kind is not NodeKind.PHI} == {"sum", "mean", "Mult"}
    assert set(through_phi(node, *found)) == set(found)
