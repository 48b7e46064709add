from __future__ import annotations

import pytest

from codemods.source.options import PerFileIgnores, fits


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("tests/", "/p/tests/a.py"),
        ("tests/", "/p/pkg/tests/deep/a.py"),
        ("/tests", "/p/tests/a.py"),
        ("./tests", "/p/tests/a.py"),
        ("*_test.py", "/p/pkg/a_test.py"),
        ("pkg/**/legacy.py", "/p/pkg/x/y/legacy.py"),
        ("a.py", "/p/a.py"),
    ],
)
def test_what_fits(pattern: str, path: str) -> None:
    assert fits((pattern,), "/p", path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("tests/", "/p/tests"),  # a file of that name
        ("/tests", "/p/pkg/tests/a.py"),
        ("a.py", "/p/ba.py"),
        ("a.py", "/elsewhere/a.py"),
        ("a.py", "/p2/a.py"),
        ("pkg/*.py", "/p/pkg/deep/a.py"),
    ],
)
def test_what_does_not_fit(pattern: str, path: str) -> None:
    assert not fits((pattern,), "/p", path)


def test_the_last_pattern_that_fits_counts() -> None:
    assert fits(("*.py", "!a.py"), "/p", "/p/b.py")
    assert not fits(("*.py", "!a.py"), "/p", "/p/a.py")


def test_rules_of_all_patterns_that_fit() -> None:
    given = PerFileIgnores("/p", (("tests/", ("a", "b")), ("*_x.py", ("c",)), ("other/", ("d",))))
    assert given.rules("/p/tests/y_x.py") == {"a", "b", "c"}
    assert given.rules("/p/y.py") == frozenset()
    assert PerFileIgnores().rules("/p/tests/a.py") == frozenset()
