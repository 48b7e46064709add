"""Where this project is, and how it is installed: the one place that says so."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

HOME = ""
"""The address of the project's repository, such as ``https://host/owner/codemod``; empty as long as it has none that
everybody can reach. Every link to it, and every line that installs from it, is made of this."""


def home() -> str:
    """Return the address of the repository: :data:`HOME`, or within our action on GitHub that of the action itself."""
    action, server = os.environ.get("GITHUB_ACTION_REPOSITORY", ""), os.environ.get("GITHUB_SERVER_URL", "")
    return HOME or (f"{server}/{action}" if action.endswith("/codemod") and server else "")


def install(version: str) -> str:
    """Return the command that installs this ``version``: from its tag, or where no address is known from a clone."""
    address = home()
    if not address:
        return f"python -m pip install .  # in a clone of codemod, version {version}"
    return f"python -m pip install 'torch-codemod @ git+{address}@v{version}'"


def needs(who: str, what: str, extra: str) -> str:
    """Return the sentence that says that ``who`` needs ``what``, and how to install the ``extra`` that brings it."""
    address = home()
    if not address:
        return f"{who} needs {what}: python -m pip install '.[{extra}]' in a clone of codemod"
    return f"{who} needs {what}: python -m pip install 'torch-codemod[{extra}] @ git+{address}'"


def shareable(words: Sequence[str]) -> str:
    """Return a command line for others to read, of the words that :func:`shareable_words` makes."""
    return shlex.join(shareable_words(words))


def shareable_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command line for others to read: paths within the working directory relative to it, of
    others the last part, behind ``...``: where somebody keeps their files is nobody else's business."""
    return list(map(_told, words))


def _told(word: str) -> str:
    option, mark, value = word.partition("=") if word.startswith("--") else ("", "", word)
    if os.path.isabs(value):
        inside = os.path.relpath(value)
        value = inside if inside.split(os.sep)[0] != os.pardir else os.path.join("...", os.path.basename(value))
    return f"{option}{mark}{value}"
