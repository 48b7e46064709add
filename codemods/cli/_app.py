"""The commands put together, and what becomes of their errors."""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

import codemods.cli
from codemods import __version__
from codemods.cli._help import Command, Commands
from codemods.cli._terminal import TROUBLE, BadValue, complain, emit, require_choice
from codemods.source.errors import os_reason
from codemods.terms.errors import UserError

FIRST = """\
Usage: codemod COMMAND [PATH]...; to begin with, in the folder of a training project:
  codemod check                shows the mistakes with the autograd graph, and changes nothing
  codemod apply --dry-run      shows the diff that mends them; without --dry-run it is written
  codemod verify train.py      runs the script before and after, and proves the change
  codemod --help               names all commands, codemod explain RULE tells why
"""

_ELSEWHERE = {
    "--fix": "codemod apply makes the rewrites",
    "--unsafe-fixes": "codemod apply --unsafe makes those of promise behaviour too",
    "--diff": "codemod apply --dry-run shows the diff",
}
"""What tools of this kind call something, and what it is here."""

_SHELLS = ("bash", "zsh", "fish")


def command_names() -> tuple[str, ...]:
    """Return the names of all commands, which are those of the modules beside this one."""
    modules = (module.name for module in pkgutil.iter_modules(codemods.cli.__path__))
    return tuple(sorted(name for name in modules if not name.startswith("_")))


def build(names: Sequence[str]) -> typer.Typer:
    """Return the application with the commands ``names``."""
    app = typer.Typer(
        name="codemod",
        help="Find, rewrite and prove away the autograd-graph mistakes of PyTorch training code.",
        cls=Commands,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # A callback keeps the command's name on the command line, however few commands there are.
    app.callback(invoke_without_command=True)(_root)
    for name in names:
        module = importlib.import_module(f"codemods.cli.{name}")
        if hasattr(module, "app"):
            # A command that has commands of its own.
            app.add_typer(module.app, name=name)
        else:
            app.command(name, cls=Command)(module.command)
    return app


@functools.cache
def _parser(names: tuple[str, ...]) -> Callable[..., object]:
    """The commands ``names``, ready to parse arguments; kept, because a second use builds no option again."""
    return typer.main.get_command(build(names))


def run(arguments: Sequence[str]) -> int:
    """Run the command line ``arguments``, return the exit status.

    Raises KeyboardInterrupt and BrokenPipeError, and OSError where an error cannot be told.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A path or a message may hold what the terminal's encoding has not.
            reconfigure(errors="backslashreplace")
    names = command_names()
    if arguments and arguments[0] in names:
        names = (arguments[0],)
    if "_CODEMOD_COMPLETE" in os.environ:
        from codemods.cli._completion import prepare

        prepare(_parser(names))
    try:
        status = _parser(names)(list(arguments), prog_name="codemod", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except (BrokenPipeError, SystemExit) as error:
        if getattr(error, "code", None) == 0:
            # a shell was answered
            return 0
        # Asked not to exit by itself, the library that parses options still does for a broken pipe.
        raise BrokenPipeError from None
    except typer.Abort:
        raise KeyboardInterrupt from None
    except UserError as error:
        complain(error.as_typed(arguments) if isinstance(error, BadValue) else str(error))
        return TROUBLE
    except Exception as error:
        show = getattr(error, "show", None)
        if show is not None:
            # Bad usage, told by the library that parses the options.
            show()
            if hint := _hint(arguments):
                complain(hint)
            return TROUBLE
        if isinstance(error, OSError) and (told := _closed_to_us(error)):
            complain(told)
            return TROUBLE
        return _own_error(error, verbose="-v" in arguments or "--verbose" in arguments)


def _hint(arguments: Sequence[str]) -> str:
    """What somebody means who types a path without a command, or an option of another tool; empty for anything else."""
    command, *rest = arguments
    if command not in command_names() and not command.startswith("-") and os.path.exists(command):
        return f"a path comes behind a command: codemod check {shlex.quote(command)}"
    if command not in ("check", "apply"):
        return ""
    return next((_ELSEWHERE[word] for word in rest if word in _ELSEWHERE), "")


def _closed_to_us(error: OSError) -> str:
    """What to say of an ``error`` that the folder or its permissions are to blame for; empty for any other."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the working directory is gone; change to a folder that is there"
    if isinstance(error, PermissionError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {os_reason(error)}"
    return ""


def _own_error(error: Exception, *, verbose: bool) -> int:
    text = " ".join(str(error).split())
    complain(f"internal error, please report it: {type(error).__name__}: {text}")
    frames = traceback.extract_tb(error.__traceback__)
    # Not every command has -v: where it happened is told in any case.
    for frame in frames if verbose else frames[-1:]:
        print(f"  in {frame.name}, {frame.filename}:{frame.lineno}", file=sys.stderr)
    return TROUBLE


def _show_version(wanted: bool) -> None:
    if wanted:
        emit(f"codemod {__version__}\n", None)
        raise typer.Exit(0)


def _show_completion(shell: str | None) -> None:
    if shell is not None:
        from codemods.cli._completion import script

        require_choice("--show-completion", shell, _SHELLS)
        emit(script(shell), None, report=False)
        raise typer.Exit(0)


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    completion: Annotated[
        str | None,
        typer.Option(
            "--show-completion",
            metavar="|".join(_SHELLS),
            callback=_show_completion,
            is_eager=True,
            help="Print the completion script for this shell, and stop.",
        ),
    ] = None,
) -> int:
    if context.invoked_subcommand is None:
        print(FIRST, end="", file=sys.stderr)
        return TROUBLE
    return 0
