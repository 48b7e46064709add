"""``python -m codemods`` is ``codemod``."""

from codemods.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
