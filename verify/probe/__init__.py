"""The probe: what runs inside the user's interpreter, beside the user's script, and writes down what it sees.

It needs Python 3.8, the standard library and torch 2.0, imports nothing else, and is loaded under the private name
``_codemod_probe`` by ``boot/sitecustomize.py``, because the user may have a package called ``verify``. The record that
it writes is described in ``verify/measured/records.py``.

Three rules hold everywhere in here. What the script computes stays bit for bit what it is without the probe: no random
numbers are drawn, no saved-tensor hooks or function modes are set. An error of the probe never becomes one of the
script (:mod:`.guarding`). And the script should not be able to tell: none of its modules, arguments or threads changes.
"""

from __future__ import annotations

from typing import Any


def start(config: dict[str, Any]) -> None:
    """Start watching this process; called once, before any code of the user's has run.

    ``config``:

    | key | meaning |
    | --- | --- |
    | records | folder that the record is written to |
    | root | absolute real path of the user's tree |
    | steps | optimizer steps after which the process has shown enough, and leaves; null: never |
    | seed | for all random generators; null: left alone |
    | threads | for torch; null: left alone |
    | deterministic | whether to ask torch for deterministic algorithms |
    | device | ``auto``, ``cpu``, ``cuda``: see devices/ |
    | memory_limit | bytes of a card's memory, or null |
    | replay | [[generator, value, process], ...] that an earlier run seeded with, or null |
    | watch | [[[path relative to the root, line], ...], ...]: groups of lines, of each the first that runs is told |
    | also | [[path, line], ...]: lines that are told of when they run, and that nobody waits for |
    | knobs | whether the files have calls of ours in them: see lines/knobs.py |
    | drive, strict | functions to call at the end, and whether an error there is one of the run: see calls/drive.py |
    | batches | batches after which a DataLoader ends, or null: see process/loaders.py |
    | watchdog | seconds from now after which the process leaves, wherever it is, or null |
    | stand_ins, data | see standins/ |
    | libraries | whether to tell which modules were imported beside those of the tree and of Python |
    | hold | whether events of small models may be held back for some steps (by default) |
    | params | whether to write what the parameters are after each step |
    """
    from .session import Session

    Session(config).start()
