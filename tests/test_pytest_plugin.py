"""The fixture and the marker, in pytest runs of their own."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

# Not to be imported and thrown away again by the runs inside: torch can be loaded once, and its first optimizer loads
# the rest of it.
torch = pytest.importorskip("torch")
torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1).step()

import verify.live.watching  # noqa: E402, F401

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("few_objects")

LOOP = """
import pytest
import torch
import verify


def train(keep, steps=9):
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        loss = net(torch.randn(2, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss if keep else loss.item())
    return losses


def waste(calls=4):
    net = torch.nn.Linear(3, 1)
    for _ in range(calls):
        net(torch.randn(2, 3)).mean().item()

"""


def run(pytester: pytest.Pytester, tests: str, *args: str) -> pytest.RunResult:
    pytester.makepyfile(LOOP + tests)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest", *args)


def test_it_is_registered() -> None:
    (entry,) = [entry for entry in importlib.metadata.entry_points(group="pytest11") if entry.name == "codemod"]
    assert entry.value == "codemods.pytest_plugin"


def test_flat_tests_pass(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.flat_graph
def test_flat():
    train(keep=False)

@pytest.mark.flat_graph(wasted_forwards=False)
def test_allowed_waste():
    train(keep=False)
    waste()

@pytest.mark.flat_graph
def test_without_modules():
    weight = torch.ones(3, requires_grad=True)
    for _ in range(8):
        weight.exp().sum().backward()

@pytest.mark.flat_graph(at_least=9)
@pytest.mark.parametrize("keep", [False])
class TestGroup:
    def test_flat(self, keep):
        train(keep)

def test_unmarked():
    kept = train(keep=True, steps=30)
""",
    )
    result.assert_outcomes(passed=5)


def test_growing_tests_fail_with_the_blame(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.flat_graph
def test_grows():
    train(keep=True)

pytestmark = []
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["the graph grew by 4 nodes a step over 8 steps (*.py:14); held by `losses[[]*[]]` in train() (7 tensors)"]
    )
    # The message alone: no line of ours and none of the test's is where it happened.
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_waste_and_short_loops_fail(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
pytestmark = pytest.mark.flat_graph

def test_wastes():
    train(keep=False)
    waste()

def test_short():
    train(keep=False, steps=7)

@pytest.mark.flat_graph(at_least=20)
def test_short_of_what_was_asked():
    train(keep=False)
""",
    )
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "4 forwards at *.py:22 in waste() built a graph that no backward used; torch.no_grad() saves it",
            "7 steps seen; it takes 8 to tell whether the graph grows. *",
            "9 steps seen; it takes 20 to tell whether the graph grows. *",
        ]
    )


def test_other_outcomes_stay_what_they_are(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
pytestmark = pytest.mark.flat_graph

def test_fails_by_itself():
    kept = train(keep=True)
    assert len(kept) == 1, "of its own"

def test_skips():
    pytest.skip("not here")

@pytest.mark.xfail(strict=True)
def test_is_known_to_grow():
    train(keep=True)
""",
    )
    result.assert_outcomes(failed=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["*AssertionError: of its own*"])
    result.stdout.no_fnmatch_line("*the graph grew*")


def test_the_fixture_asserts_nothing_by_itself(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_silent(graph_watch):
    kept = train(keep=True)

def test_asks(graph_watch):
    train(keep=False)
    graph_watch.assert_flat()
    assert graph_watch.steps == 9

def test_blames(graph_watch):
    mine = train(keep=True)
    with pytest.raises(AssertionError, match=r"held by `mine\\[\\*\\]` in test_blames\\(\\) \\(9 tensors\\)"):
        graph_watch.assert_flat()

def test_second(graph_watch):
    with pytest.raises(RuntimeError, match="Another watch is on"):
        verify.watch().__enter__()

@pytest.mark.flat_graph
def test_both(graph_watch):
    train(keep=True)
""",
    )
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["the graph grew by 4 nodes a step over 8 steps *"])


@pytest.mark.parametrize("arguments", ["9", "wasted=False"])
def test_misspelt_options_are_told(pytester: pytest.Pytester, arguments: str) -> None:
    result = run(pytester, f"@pytest.mark.flat_graph({arguments})\ndef test_flat():\n    train(keep=False)\n")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*flat_graph takes at_least and wasted_forwards, each by name; *"])


def test_tests_of_unittest_are_watched_too(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import unittest

@pytest.mark.flat_graph
class TestCase(unittest.TestCase):
    def test_flat(self):
        train(keep=False)

    def test_grows(self):
        train(keep=True)
""",
    )
    result.assert_outcomes(passed=1, failed=1)


def test_the_marker_is_documented(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--markers", "--strict-markers")
    result.stdout.fnmatch_lines(["@pytest.mark.flat_graph(?, wasted_forwards=True, at_least=8): fail the test if *"])


def test_without_torch(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    from codemods import pytest_plugin

    monkeypatch.setattr(pytest_plugin.importlib.util, "find_spec", lambda name: None)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.flat_graph
        def test_marked():
            raise AssertionError

        def test_with_fixture(graph_watch):
            raise AssertionError

        def test_neither():
            pass
        """
    )
    result = pytester.runpytest_inprocess("-rs", "-p", "no:cacheprovider")
    result.assert_outcomes(skipped=2, passed=1)
    result.stdout.fnmatch_lines(["*flat_graph needs torch 2.0 or newer*"])


@pytest.mark.slow
def test_with_xdist(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    marks = "@pytest.mark.flat_graph\n@pytest.mark.parametrize('keep', [False, True])\n"
    pytester.makepyfile(f"{LOOP}{marks}def test_it(keep):\n    train(keep)\n")
    result = pytester.runpytest_subprocess("-n", "2", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["the graph grew by 4 nodes a step over 8 steps *"])


def test_starting_pytest_loads_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            assert "codemods.pytest_plugin" in sys.modules
            assert not {"torch", "libcst", "verify", "codemods.graph"} & set(sys.modules)
        """
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], capture_output=True, text=True, timeout=60
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_project_with_a_module_called_verify_can_still_run_its_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(verify="def check(): return 1")
    pytester.makepyfile("import verify\n\ndef test_own(): assert verify.check() == 1")
    result = pytester.run(sys.executable, "-m", "pytest", "-q")
    result.assert_outcomes(passed=1)


def test_a_module_called_verify_hides_the_watch_and_that_is_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(verify="def check(): return 1")
    pytester.makepyfile("import pytest\n\n@pytest.mark.flat_graph\ndef test_own(): pass")
    result = pytester.run(sys.executable, "-m", "pytest", "-q")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*verify of this project*hides*"])
