"""Looking for runs that reach what the plain ones do not: what it is made of."""

from __future__ import annotations

import pytest

from verify.judging.ways import parsed


@pytest.mark.parametrize(
    "text", ["x = " + "-" * 20_000 + "1\n", "x = " + "(" * 5_000 + "1" + ")" * 5_000, "a = 1\0", "a ="]
)
def test_a_file_that_cannot_be_parsed_does_not_end_it(text: str) -> None:
    assert "train.py" in dict(parsed({"other.py": text, "train.py": "x = 1\n"}))
