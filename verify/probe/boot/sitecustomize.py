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


def _load(name, package):  # type: ignore[no-untyped-def]
    """Execute the package in this folder under a name of ours; one that is there already stays."""
    from importlib.util import module_from_spec, spec_from_file_location

    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, os.path.join(package, "__init__.py"), submodule_search_locations=[package])
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _wait(told):  # type: ignore[no-untyped-def]
    """Import ahead and be forked from; in a fork that is a program what the probe has to do before it starts."""
    from importlib import import_module

    _load("_codemod_probe", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return import_module("_codemod_probe.process.early").wait(told, _load)


def _start(path):  # type: ignore[no-untyped-def]
    import json

    with open(path) as file:
        config = json.load(file)
    if sys.version_info < (3, 8):  # noqa: UP036
        _too_old(config["records"])
        return
    _load("_codemod_probe", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))).start(config)


_begin = None
if os.environ.get("CODEMOD_WARM"):
    # Outside of any isolation: whatever happens here, the program must not run.
    try:
        _told = os.environ.pop("CODEMOD_WARM")
        if _told == "?":
            os._exit(77)
        _begin = _wait(_told)
    except BaseException:
        os._exit(1)
if os.environ.get("CODEMOD_PROBE"):
    try:
        _start(os.environ["CODEMOD_PROBE"])
    except Exception as error:
        # Nobody watches now; the parent finds no record and says so.
        sys.stderr.write("codemod verify: the probe could not start: %s: %s\n" % (type(error).__name__, error))  # noqa: UP031
if _begin is not None:
    _begin()
# Last, and unguarded: an error in the user's own sitecustomize is theirs, and `site` reports it as it always does.
_hand_over()
