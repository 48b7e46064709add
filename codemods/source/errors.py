"""What can be wrong with a file, as exceptions that carry what a report says about it."""

from __future__ import annotations

from codemods.terms.errors import UserError
from codemods.terms.findings import Skipped


class SourceError(Exception):
    """One file could not be dealt with: ``path`` as shown to people, ``line`` (0 where none is to blame), ``reason``.

    Survives pickling, so a worker process may raise it.
    """

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path = path
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.reason}"

    @property
    def skipped(self) -> Skipped:
        """The entry that a report shows for this file."""
        return Skipped(self.path, self.line, self.reason)


class Unreadable(SourceError):
    """The file has no text: it is missing, closed to us, no regular file, or its bytes are not in its encoding."""


class Unparsable(SourceError):
    """The text is not Python of the running version."""


class Unencodable(SourceError):
    """New text holds a character that the file's own encoding has not."""


class ChangedSinceRead(SourceError):
    """The file on disk is not the one that was read, so writing would lose somebody's edit."""


class Unwritable(SourceError):
    """The file may not, or cannot, be replaced."""


class MissingPath(UserError):
    """A PATH that a user named and that is not there; its text says which and why."""


def os_reason(error: OSError) -> str:
    """What the operating system says, as a lower-case phrase: ``permission denied``."""
    return (error.strerror or str(error) or type(error).__name__).lower()
