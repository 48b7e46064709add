"""The command line: one file a command, no logic of its own; everything it does can be called from Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

# As a shell reports a program that the signal ended.
INTERRUPTED = 130
BROKEN_PIPE = 141
TROUBLE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``codemod`` with ``arguments`` (by default those of the process) and return its exit status.

    Nothing is raised, and nothing ends in a traceback: an error is one sentence on standard error and status 2.
    """
    try:
        return _main(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    except OSError:
        # Raised by what tells errors: standard error takes nothing, and the interpreter would try once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        return TROUBLE


def _main(given: list[str]) -> int:
    if given == ["--version"]:
        # What scripts ask before anything else need not wait for the machinery that parses options.
        from codemods import __version__

        try:
            print(f"codemod {__version__}", flush=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            from codemods.cli._terminal import complain, given_up

            complain(str(given_up(sys.stdout, error)))
            return TROUBLE
        return 0
    from codemods.cli._app import run

    return run(given)
