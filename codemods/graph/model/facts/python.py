"""Python's own functions, decorators and special methods."""

from __future__ import annotations

from codemods.terms.words import words

CALLING_LATER = words("weakref.finalize weakref.ref atexit.register threading.Timer signal.signal")
"""Functions of Python that call what they get at a moment that is not followed (docs)."""

UNFOLLOWED_METHODS = words(
    """
    __bool__ __len__ __str__ __repr__ __format__ __contains__ __hash__ __del__ __float__ __int__ __complex__ __index__
    __round__ __sizeof__ __bytes__ __dir__ __length_hint__ __array__ __reduce__ __reduce_ex__ __getstate__ __setstate__
    __copy__ __deepcopy__ __get__ __set__ __delete__ __set_name__ __delattr__ __delitem__ __missing__ __instancecheck__
    __subclasscheck__ __class_getitem__ __fspath__ __torch_function__ __torch_dispatch__
    __eq__ __lt__ __le__ __gt__ __ge__ __ne__
    """
)
"""Special methods that Python or torch calls by itself, and the simulation does not (docs: data model, Extending
PyTorch)."""

OF_COROUTINES = words("send throw __await__")
"""Methods of coroutines, which tensors do not have (docs: data model)."""

CARRYING_LIBRARIES = words(
    """
    itertools collections functools heapq operator types dataclasses typing statistics enum abc threading
    multiprocessing queue inspect copyreg random copy weakref contextlib contextvars concurrent asyncio bisect
    """
)
"""Libraries of Python that hand on what they are given, tensors with their history, too (docs)."""

NUMBERS_OF = words(
    """
    random.random random.uniform random.randint random.randrange random.gauss random.normalvariate random.seed
    random.getrandbits random.betavariate random.expovariate bisect.bisect bisect.bisect_left bisect.bisect_right
    statistics.mean statistics.fmean statistics.stdev statistics.pstdev statistics.variance statistics.pvariance
    itertools.count operator.index operator.length_hint operator.countOf operator.indexOf operator.truth operator.not_
    operator.is_ operator.is_not operator.contains threading.get_ident threading.active_count multiprocessing.cpu_count
    inspect.signature inspect.getsource inspect.isclass inspect.isfunction
    """
)
"""Functions among them whose results are numbers, texts or other plain data (docs)."""

COMMAND_LINES = words(
    """
    argparse.ArgumentParser optparse.OptionParser configargparse.ArgumentParser configargparse.ArgParser
    configargparse.Parser
    """
)
"""What reads a command line: words and numbers."""

PUTTING_METHODS = words("append add put push store update extend insert appendleft")
"""Methods by which what cannot be seen is most likely given something to keep; a name only makes rules more careful."""

CACHING = words("functools.lru_cache functools.cache functools.cached_property")
"""Decorators that hand a former result out again (docs: functools)."""

_QUEUES = words("queue asyncio multiprocessing torch")
"""Where queues come from whose names end so: of a context or a manager of processes, too."""


def is_queue(path: str) -> bool:
    """Whether a public path names a queue: other threads, tasks and processes take out of it, at any time."""
    return path.partition(".")[0] in _QUEUES and path.endswith("Queue")


EXIT_STACKS = words("contextlib.ExitStack contextlib.AsyncExitStack")
"""What enters contexts one by one (docs: contextlib)."""

SUPPRESSING = words("contextlib.suppress pytest.raises")
"""What ends the exceptions that it is given (docs: contextlib, pytest)."""

PASSING_DECORATORS = words(
    "abc builtins click contextlib dataclasses enum functools hydra lightning numba overrides pytest "
    "pytorch_lightning torch types typing typing_extensions"
)
"""Packages whose decorators keep nothing of what a function returns, or say so (``lru_cache`` is known by itself)."""
