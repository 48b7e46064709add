"""What libraries do, a file each or one for several of a kind.

Every file of this folder is loaded, and puts its functions under public names: ``@CALLS.of("apex.amp.initialize")``. To
teach the engine a library is to add a file.
"""

from __future__ import annotations

import importlib
import pkgutil

for _file in pkgutil.iter_modules(__path__):
    if _file.name != "calls":
        importlib.import_module(f"{__name__}.{_file.name}")
