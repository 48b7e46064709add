"""``python -m codemods`` is the command ``codemod``."""

import os
import sys

# ``-m`` puts the working directory first on the path: a user's signal.py there must never be imported for Python's own
_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if sys.path and sys.path[0] in ("", os.getcwd()) and os.path.realpath(sys.path[0] or ".") != os.path.realpath(_here):
    del sys.path[0]

from codemods.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
