"""The documents as a site: ``sphinx-build -W docs FOLDER`` with the extra ``docs``. The first page is the README."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from codemods import __version__
from codemods.source.home import home

project = "codemod"
author = "The codemod authors"
version = release = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"codemod {__version__}"
if home():
    html_theme_options = {"source_repository": f"{home()}/", "source_branch": "main", "source_directory": "docs/"}
