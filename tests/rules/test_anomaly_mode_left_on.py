"""What anomaly-mode-left-on finds and leaves alone."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import LEARNING, found, marked, mended, sited

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


GONE = {
    "in a function": """
        def main():
            torch.autograd.set_detect_anomaly(True)  #
            train()

        main()
        """,
    "by another name": """
        from torch import autograd as ag
        ag.set_detect_anomaly(True, check_nan=False)  #
        train()
        """,
    "the only statement of a function": """
        def debug():
            torch.autograd.set_detect_anomaly(True)  #

        debug()
        train()
        """,
    "in a constructor": """
        class Trainer:
            def __init__(self):
                torch.autograd.set_detect_anomaly(mode=True)  #
                self.epochs = 2

            def run(self):
                for _ in range(self.epochs):
                    train()

        Trainer().run()
        """,
    "beside others on its line": """
        torch.manual_seed(0); torch.autograd.set_detect_anomaly(True)  #
        train()
        """,
    "below its documentation": """
        # anomalies
        torch.autograd.set_detect_anomaly(True)  #
        train()
        """,
}
"""Programs with a statement that goes, in the marked line."""


@pytest.mark.parametrize("name", GONE)
def test_the_statement_goes(tmp_path: Path, name: str) -> None:
    (finding,) = found(tmp_path, RULE, HEAD, GONE[name])
    assert finding.promise is Promise.BEHAVIOUR
    assert finding.span.line == marked("\n".join((HEAD, dedent(GONE[name]))))
    text = mended(tmp_path, [finding])
    ast.parse(text)
    assert "detect_anomaly" not in text
    assert [line for line in dedent(GONE[name]).splitlines() if not line.endswith(("#", "as ag"))] == [
        line for line in text[len(HEAD) + 1 :].splitlines() if not line.endswith(("#", "pass"))
    ]


def test_a_block_stays(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, RULE, HEAD, FOUND["a block around the loop"][0])
    assert finding.promise is Promise.ADVICE


WRITTEN = len(GONE)
