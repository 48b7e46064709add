"""``codemod fix``: from what the doctor names to a change that was run and proved; ``--write`` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from codemods.cli import _help as h
from codemods.cli import _options as o
from codemods.cli._choices import settle_choices
from codemods.cli._groups import expanded
from codemods.cli._places import require_apart
from codemods.cli._runs import Entry, ProgramOptions, RunOptions, report_format, settings_of, teller
from codemods.cli._terminal import emit
from codemods.terms.errors import UserError

if TYPE_CHECKING:
    from codemods.source.files import SourceFile

_FORMATS = ("text", "json")


@expanded
def command(
    *,
    program: ProgramOptions,
    runs: RunOptions,
    entry: Entry = None,
    write: Annotated[bool, h.how("--write", help="Write the repairs that were proved.")] = False,
    format: Annotated[str | None, h.report("--format", metavar="text|json", help="Report in this format.")] = None,
    output: Annotated[
        Path | None, h.report("--output", "-o", metavar="FILE", help="Write the report to this file.")
    ] = None,
    config: o.Config = None,
    quiet: o.Quiet = None,
) -> int:
    """Run a script, find what is wrong, and prove a repair.

    Tries changes and shows those that fix the script, with their proof. Changes nothing in the tree without --write.

    Exit status: 0 if nothing is wrong, or not any more, 1 if a fault is left, 3 if the script could not be run, 2 for
    bad usage or an internal error.
    """
    from codemods.analysis.workers import cores
    from verify.fixing import report
    from verify.fixing.fix import Fixer
    from verify.verification import root_of

    form = report_format(format, output, _FORMATS)
    require_apart({"--output": output}, program.files)
    settings = settings_of(runs)
    asked = program.command(entry, settings.python)
    choices = settle_choices(str(program.tree or asked.script or asked.cwd), **vars(o.RuleOptions(config=config)))
    root = root_of([asked], program.tree)
    jobs = min(2, cores())
    fixer = Fixer(asked, root, settings=settings, options=choices.options, tell=teller(bool(quiet)), jobs=jobs)
    fixed = fixer.fix()
    written = write and bool(fixed.files)
    if written:
        _write(fixed.files, fixed.sources)
    render = report.as_json if form == "json" else report.text
    emit(render(fixed, written=written), output)
    return fixed.status


def _write(files: Mapping[str, bytes], sources: Mapping[str, SourceFile]) -> None:
    """Write the changed files. Raises :class:`UserError` if somebody else changed one while the programs ran."""
    from codemods.source.errors import SourceError
    from codemods.source.files import source_from_bytes
    from codemods.source.writing import write_atomically

    try:
        for path, data in files.items():
            write_atomically(sources[path], source_from_bytes(data, path).text)
    except SourceError as error:
        raise UserError(f"{error.skipped.path}: {error.skipped.reason}") from None
