"""Libraries that bring torch along, a file each, named after the library.

To teach the engine another one is to add its file: all of them are loaded, and what imports such a library is taken to
come to tensors. docs/architecture.md shows it on an example.
"""

from __future__ import annotations

import importlib
import pkgutil

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
