"""Runs somebody's program on their tree so that it cannot change a file of theirs.

The program sees the tree at its own path, with some files replaced, writes whatever it likes, and when it is over every
process of it is dead and every byte of it gone. A launcher process does this (:mod:`verify.isolation.launcher`); this
package is what stays with the caller.
"""

from verify.isolation.execution import Ending, Execution, Limits, machine_memory
from verify.isolation.place import Place
from verify.isolation.view import View
from verify.isolation.warm import Start
from verify.isolation.workspace import Unavailable, Workspace

__all__ = ["Ending", "Execution", "Limits", "Place", "Start", "Unavailable", "View", "Workspace", "machine_memory"]
