"""Which folders a run finds empty, and what in them it needs all the same."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.terms.words import words
from verify.isolation.launcher.mounts import inside
from verify.isolation.launcher.places import devices

#: Here are the sockets of services, and what they hand to containers as secrets.
SERVICES = ("/run", "/var/run")
#: Here are sockets and pipes of everybody.
TEMPORARY = ("/tmp", "/var/tmp")
#: Some system users have one of these as their home; nothing would run without them.
_SYSTEM = words(
    "/ /bin /boot /dev /etc /home /lib /lib64 /media /mnt /opt /proc /sbin /srv /sys /usr /usr/bin /usr/sbin /var "
    "/var/lib"
).union(SERVICES, TEMPORARY)
#: Variables that name programs, libraries and environments.
_PLACES = (
    *("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("CONDA_PREFIX", "PYENV_ROOT", "CUDA_HOME", "CUDA_PATH", "CPATH", "LIBRARY_PATH", "TRITON_LIBCUDA_PATH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
#: Below a home's .local, where there are keyrings too.
_INSTALLED = ("bin", "include", "lib", "lib64")
#: Drivers and name resolution, where a system keeps them among the services.
_OF_SYSTEM = ("/run/opengl-driver", "/run/opengl-driver-32", "/run/current-system", "/run/booted-system")
#: Our own, which the probe and the launcher are read from.
_OURS = (str(Path(__file__).parents[1]), sys.prefix, sys.base_prefix)
_RESOLVER = "/etc/resolv.conf"

#: What an interpreter answers with a list of paths, its own and where its packages lie; any Python 3 knows the words.
QUESTION = """
import json, site, sys
found = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, sys.executable] + sys.path
found.append(getattr(site, "getusersitepackages", str)())
def add(value, depth):
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, dict) and depth:
        for entry in value.values():
            add(entry, depth - 1)
    elif isinstance(value, (list, tuple, set, frozenset)) and depth:
        for entry in value:
            add(entry, depth - 1)
# Packages that are installed to be edited have a finder that knows their folders.
for finder in sys.meta_path:
    module = getattr(finder, "__module__", None)
    if "edit" in str(module) or "edit" in str(getattr(finder, "__name__", "")).lower():
        for place in (finder, sys.modules.get(module)):
            for value in list(getattr(place, "__dict__", {}).values()):
                add(value, 3)
print(json.dumps([path for path in found if path and path[0] == "/"]))
"""


@dataclass(frozen=True)
class View:
    """What of the hidden folders a program sees: what it ``needed`` to run at all, and what the user ``exposed``."""

    needed: Sequence[str] = ()
    exposed: Sequence[str] = ()


@dataclass(frozen=True)
class Veil:
    """Folders that are ``hidden`` (real paths), and paths that are ``shown`` or ``exposed`` (not to be written)."""

    hidden: tuple[str, ...]
    shown: tuple[str, ...]
    exposed: tuple[str, ...]


def homes(environment: Mapping[str, str]) -> list[str]:
    """The real paths of the home folders of this user: as the variable and as the system has it."""
    named = [environment.get("HOME", ""), os.environ.get("HOME", "")]
    if sys.platform != "win32":
        import pwd

        # A container may run under a number that has no name.
        with contextlib.suppress(KeyError):
            named.append(pwd.getpwuid(os.getuid()).pw_dir)
    real = dict.fromkeys(os.path.realpath(name) for name in named if os.path.isabs(name))
    return [home for home in real if home not in _SYSTEM and os.path.isdir(home)]


def veil(
    root: str, command: Sequence[str], environment: Mapping[str, str], view: View, *, network: bool, temporary: bool
) -> Veil:
    """What is hidden from ``command`` on the tree ``root``: homes, services, most devices and, with
    ``temporary``, temporary folders.

    A home that is the tree itself, or that is exposed, is not hidden.
    """
    exposed = [os.path.abspath(path) for path in view.exposed]
    uncovered = [root, *map(os.path.realpath, exposed)]
    folders = [*homes(environment), *SERVICES, "/dev", *(TEMPORARY if temporary else ())]
    real = dict.fromkeys(os.path.realpath(folder) for folder in folders if os.path.isdir(folder))
    hidden = tuple(folder for folder in real if folder != "/" and not any(inside(folder, path) for path in exposed))
    hidden = tuple(folder for folder in hidden if folder not in uncovered)
    shown = [root, *view.needed, *_named(environment), *_OF_SYSTEM, *_OURS, *devices()]
    if command and (program := shutil.which(command[0], path=environment.get("PATH"))):
        shown.append(os.path.abspath(program))
    if network:
        shown.append(_RESOLVER)
    # One that holds a hidden folder would show what is hidden in it.
    kept = [
        path for path in _parts(shown, hidden) if not any(inside(folder, os.path.realpath(path)) for folder in hidden)
    ]
    return Veil(hidden, tuple(dict.fromkeys(kept)), tuple(dict.fromkeys(exposed)))


def _named(environment: Mapping[str, str]) -> Iterable[str]:
    for name in _PLACES:
        for path in environment.get(name, "").split(os.pathsep):
            if os.path.isabs(path):
                yield os.path.normpath(path)


def _parts(paths: Iterable[str], hidden: Iterable[str]) -> Iterable[str]:
    """``paths``, but of a home's .local only what is installed there."""
    local = {os.path.join(folder, ".local") for folder in hidden}
    for path in paths:
        if os.path.realpath(path) in local:
            yield from (os.path.join(path, part) for part in _INSTALLED)
        else:
            yield path
