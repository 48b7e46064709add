"""What anomaly-mode-left-on finds and leaves alone."""

from __future__ import annotations

from pathlib import Path

from codemods.terms.findings import Promise
from tests.rules.tools import LEARNING, found, mended, sited

RULE = "anomaly-mode-left-on"
HEAD = (
    LEARNING
    + """

import sys

def train():
    for x, y in batches():
        learn(criterion(net(x), y))
"""
)

FOUND = {
    "at the top": (
        """
        torch.autograd.set_detect_anomaly(True)
        train()
        """,
        "torch.autograd.set_detect_anomaly(True)",
    ),
    "imported, by keyword": (
        """
        from torch.autograd import set_detect_anomaly
        set_detect_anomaly(mode=True)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
        "set_detect_anomaly(mode=True)",
    ),
    "a block around the loop": (
        """
        with torch.autograd.detect_anomaly():
            train()
        """,
        "with torch.autograd.detect_anomaly():",
    ),
}
"""Programs with the line that is found."""

LEFT = {
    "off": """
        torch.autograd.set_detect_anomaly(False)
        train()
        """,
    "an option decides": """
        torch.autograd.set_detect_anomaly("--debug" in sys.argv)
        train()
        """,
    "a condition decides": """
        if len(sys.argv) > 1:
            torch.autograd.set_detect_anomaly(True)
        train()
        """,
    "off again": """
        torch.autograd.set_detect_anomaly(True)
        learn(criterion(net(torch.randn(3, 4)), torch.randn(3, 2)))
        torch.autograd.set_detect_anomaly(False)
        train()
        """,
    "a block around one backward": """
        for x, y in batches():
            with torch.autograd.detect_anomaly():
                learn(criterion(net(x), y))
        """,
    "a block that is off": """
        with torch.autograd.detect_anomaly(False):
            train()
        """,
    "nothing trains in a loop": """
        torch.autograd.set_detect_anomaly(True)
        learn(criterion(net(torch.randn(3, 4)), torch.randn(3, 2)))
        """,
    "of another library": """
        from elsewhere import autograd
        autograd.set_detect_anomaly(True)
        train()
        """,
}

told, test_found, test_left = sited(RULE, HEAD, FOUND, LEFT)


def test_the_statement_goes_and_a_block_stays(tmp_path: Path) -> None:
    head = HEAD.rstrip() + "\n"
    (finding,) = found(tmp_path, RULE, head, *["torch.autograd.set_detect_anomaly(True)", "train()"])
    assert finding.promise is Promise.BEHAVIOUR
    assert mended(tmp_path, [finding]) == f"{head}\ntrain()"
    (finding,) = found(tmp_path, RULE, head, FOUND["a block around the loop"][0])
    assert finding.promise is Promise.ADVICE
