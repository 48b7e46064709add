"""What is asked of the interpreter that programs are run with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Collection

from verify.isolation import engines

# Without importing torch, which takes seconds, and in words that any Python 3 knows.
VERSIONS = """
import importlib.util, sys
version = ""
if importlib.util.find_spec("torch") is not None:
    version = "unknown"
    try:
        from importlib.metadata import version as of
        version = of("torch")
    except Exception:
        pass
print("%d.%d;%s" % (sys.version_info[0], sys.version_info[1], version))
"""
_LACKING = """
    try:
        if importlib.util.find_spec(name) is None:
            found.append(name)
    except (ImportError, ValueError):
        pass
print(json.dumps(found))
"""


def lacking_modules(python: str, names: Collection[str], image: str = "") -> list[str]:
    """Which of these top-level modules the interpreter ``python`` lacks, that of an ``image`` where there is one.

    None where it does not answer: an image that is not here is not fetched for that.
    """
    question = f"import importlib.util, json\nfound = []\nfor name in {sorted(names)!r}:" + _LACKING
    return names_told(python, image, question)


def names_told(python: str, image: str, question: str) -> list[str]:
    """The names that an interpreter answers with, in JSON on its last line; none where it does not answer."""
    try:
        return list(json.loads(answer(python, image, question, 60).stdout.splitlines()[-1]))
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired, engines.NoContainers):
        return []


def answer(python: str, image: str, question: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Have an interpreter answer, outside of any tree: nothing is isolated yet.

    Python looks for modules in the folder in which it is started, also where ``PYTHONPATH`` contains a dot. Raises
    OSError, subprocess.TimeoutExpired, and NoContainers.
    """
    if image:
        return engines.find().ask(image, python, question, seconds)
    return subprocess.run(
        [python, "-c", question], capture_output=True, text=True, timeout=seconds, cwd=os.sep, check=False
    )
