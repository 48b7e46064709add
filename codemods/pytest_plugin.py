"""For pytest: the fixture ``graph_watch`` and the marker ``flat_graph``.

Loaded whenever pytest starts where this is installed, so it imports nothing that pytest has not imported already. It
lies here and not in the package ``verify``, because a project may have a module of that name, which must not keep
pytest from starting there.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from verify.live.watching import Watch

_MARKER = """\
flat_graph(*, wasted_forwards=True, at_least=8): fail the test if the autograd graph grows over its training steps \
(optimizer steps, else backwards, else calls of a module), of which it must make at_least, or if a line calls a module \
again and again for graphs that no backward uses, unless wasted_forwards is False."""
_RUN: pytest.StashKey[Watch] = pytest.StashKey()


class _Options(NamedTuple):
    """What the marker asks for; ``at_least`` None: as few steps as can tell."""

    wasted_forwards: bool = True
    at_least: int | None = None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def graph_watch(request: pytest.FixtureRequest) -> Iterator[Watch]:
    """A started verify.watch() over the test; asserts nothing by itself."""
    _skip_without_torch("graph_watch")
    with _watch() as run:
        # The marker asks this one then: there can be no second.
        request.node.stash[_RUN] = run
        yield run


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _options(item) is not None:
        _skip_without_torch("flat_graph")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Watch a marked test, and fail it with the blame where it did not fail by itself."""
    options = _options(item)
    if options is None:
        yield
        return
    run = item.stash.get(_RUN, None)
    with contextlib.ExitStack() as stack:
        if run is None:
            run = stack.enter_context(_watch())
        outcome = yield
    if outcome.excinfo is None:
        try:
            _check(run, options)
        except BaseException as failure:
            outcome.force_exception(failure)


def _watch() -> Watch:
    import verify

    if not hasattr(verify, "watch"):
        place = getattr(verify, "__file__", None)
        pytest.fail(f"the module verify of this project ({place}) hides the package that watches", pytrace=False)
    return verify.watch()


def _check(run: Watch, options: _Options) -> None:
    """Fail the test as the marker asks."""
    from verify.live.watching import FEWEST, TooFewSteps

    told = []
    try:
        run.assert_flat(at_least=FEWEST if options.at_least is None else options.at_least)
    except (AssertionError, TooFewSteps, RuntimeError) as error:
        told.append(str(error))
    if options.wasted_forwards and run.wasted_forwards:
        try:
            run.assert_no_wasted_forwards()
        except AssertionError as error:
            told.append(str(error))
    if told:
        pytest.fail("\n".join(told), pytrace=False)


def _options(item: pytest.Item) -> _Options | None:
    marker = item.get_closest_marker("flat_graph")
    if marker is None:
        return None
    known = set(_Options._fields)
    if marker.args or not known.issuperset(marker.kwargs):
        pytest.fail(f"flat_graph takes {' and '.join(sorted(known))}, each by name; {marker} is neither", pytrace=False)
    return _Options(**marker.kwargs)


def _skip_without_torch(what: str) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip(f"{what} needs torch 2.0 or newer, which is not installed")
