"""JUnit's XML, which build servers show as tests: a test a finding, failed; a file that cannot be checked is an error.

The form, as far as it is agreed upon: https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

from itertools import groupby

from codemods.reports import Detail, Report
from codemods.reports._listed import Listed, listed
from codemods.reports.checkstyle import attribute


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return a suite a file with a test a finding, or one that passed; ``detail`` and ``colour`` change nothing."""
    found = list(listed(report))
    errors = sum(one.finding is None for one in found)
    counts = f'tests="{max(1, len(found))}" failures="{len(found) - errors}" errors="{errors}"'
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<testsuites name="codemod" {counts}>']
    for path, group in groupby(found, key=lambda one: one.path):
        tests = list(group)
        bad = sum(one.finding is None for one in tests)
        own = f'tests="{len(tests)}" failures="{len(tests) - bad}" errors="{bad}"'
        lines += [f"  <testsuite name={attribute(path)} {own}>", *map(_test, tests), "  </testsuite>"]
    if not found:
        lines += [
            '  <testsuite name="codemod" tests="1" failures="0" errors="0">',
            f'    <testcase name="no findings in {report.files} files" classname="codemod"/>',
            "  </testsuite>",
        ]
    return "\n".join([*lines, "</testsuites>", ""])


def _test(one: Listed) -> str:
    place = f"{one.path}:{one.line}:{one.column}" if one.line else one.path
    kind = "failure" if one.finding else "error"
    name, where = attribute(f"{one.rule} at {place}"), attribute(one.path.removesuffix(".py"))
    line = f' line="{one.line}"' if one.line else ""
    told = f"<{kind} type={attribute(one.level)} message={attribute(one.text)}/>"
    return f"    <testcase name={name} classname={where} file={attribute(one.path)}{line}>{told}</testcase>"
