"""What anomaly-mode-left-on finds and leaves alone."""

from __future__ import annotations

from tests.rules.tools import LEARNING, advising

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

told, test_found, test_left = advising(RULE, HEAD, FOUND, LEFT)
