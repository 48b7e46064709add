"""Gets the probe into a Python process: ``site`` imports this module at start, because its folder stands on PYTHONPATH.

It must run, and do no harm, in any Python that the user's command starts, hence the old-fashioned syntax.
"""

import os
import sys


def _hand_over():  # type: ignore[no-untyped-def]
    """Leave sys.path as the user made it, and run the sitecustomize that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    try:
        from importlib.machinery import PathFinder
        from importlib.util import module_from_spec
    except ImportError:
        return
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _too_old(folder):  # type: ignore[no-untyped-def]
    import json

    if os.environ.get("CODEMOD_PROBE_MAIN"):
        return
    os.environ["CODEMOD_PROBE_MAIN"] = str(os.getpid())
    version = ".".join(str(part) for part in sys.version_info[:3])
    sentence = "This command runs Python {0}; verify needs Python 3.8 or newer.".format(version)  # noqa: UP030, UP032
    events = [  # type: list[dict[str, object]]
        {"event": "start", "version": 1, "pid": os.getpid(), "process": "main", "python": version, "torch": None},
        {"event": "note", "text": sentence},
        {"event": "end", "reason": "unsupported"},
    ]
    with open(os.path.join(folder, "main-{0}.jsonl".format(os.getpid())), "a") as record:  # noqa: UP030, UP032
        for number, event in enumerate(events, 1):
            record.write(json.dumps(dict(event, n=number)) + "\n")


def _start(path):  # type: ignore[no-untyped-def]
    import json

    with open(path) as file:
        config = json.load(file)
    if sys.version_info < (3, 8):  # noqa: UP036
        _too_old(config["records"])
        return
    from importlib.util import module_from_spec, spec_from_file_location

    package = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    spec = spec_from_file_location(
        "_codemod_probe", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None
    assert spec.loader is not None
    probe = module_from_spec(spec)
    sys.modules["_codemod_probe"] = probe
    spec.loader.exec_module(probe)
    probe.start(config)


if os.environ.get("CODEMOD_PROBE"):
    try:
        _start(os.environ["CODEMOD_PROBE"])
    except Exception as error:
        # Nobody watches now; the parent finds no record and says so.
        sys.stderr.write("codemod verify: the probe could not start: %s: %s\n" % (type(error).__name__, error))  # noqa: UP031
# Last, and unguarded: an error in the user's own sitecustomize is theirs, and `site` reports it as it always does.
_hand_over()
