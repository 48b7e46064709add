"""What a probed process wrote down, and how it is read back: the one contract between the probe and everything else.

The probe (:mod:`verify.probe`) runs in the user's interpreter and knows nothing of this module; it writes one JSON
object a line, each flushed at once, so that what a killed process saw is not lost; while a small model trains, some at
a time (``held``), and a run that was killed then is made again without that. The first word of every line is ``event``.
A file holds one process; its name is ``<process>-<pid>.jsonl``. Unknown events and unknown fields are ignored, so that
an older reader copes with a newer probe.

A *site* is ``[path, line, function]``, the innermost frame that belongs to the user's tree; ``path`` is relative to the
root of the tree with ``/``, and the whole is null where no frame of the tree was on the stack. Times are seconds since
the probe started, memory is in bytes, and floats that must be compared bit for bit are ``float.hex()`` strings
(``"nan"``, ``"inf"``, ``"-inf"`` for those).

The events and their fields:

* ``start``: version (of this contract, 1), pid, process (``main``, ``rank-1``, ``SpawnProcess-2``), python, torch,
  device (``cpu``, the card's name, or ``shapes alone``), cuda (version or null), threads, argv
* ``backward``: index (from 0), site, call (k-th call at that site, from 1), time, losses (list of {value, digest,
  numel} for each output, value null unless one element), rng (fingerprint of the generators; empty from the first
  optimizer step on), waiting (now and then: gradients of optimizers that never stepped, as in ``state``), retain,
  create, grad (true where ``autograd.grad`` was called), nodes (new graph nodes walked), live (graph nodes
  alive before it), seconds (that it took), bytes, peak, error (null or {type, message, kind})
* ``tensors``: of (an optimizer's index, or ``buffers``), names, shapes, types, initial (of an optimizer: *values* of
  the parameters before its first step), made (its number as in ``state``); again where the list changes
* ``step``: optimizer (index in order of first step), name (its class), call (k-th step of it, from 1), site, time,
  live (graph nodes alive), params (*values* of the parameters after it), grads (those of the gradients before it, with
  missing: how many have none), rates (list of {lr, momentum, ...} a group; null where it is as at its last step),
  buffers (of all modules, or null), rng (of the generators at its end), waiting, bytes, peak
* ``held``: from here on events may be held back in memory for some steps: a process that was killed has lost them
* ``output``: site, line (of the lines that call modules, for each class and mode, in order of first call), call, module
  (its class), thread (whether another than the main one called it), digest, count, sums: what a module returned that no
  other module called; digest is empty where it was too large
* ``trains``: line as above, of which backwards have used what it returned: their losses and gradients speak for it
* ``returned``: name ([path, full name]), call, form, digest, count, sums: what a function of which that is asked
  returned; of its first calls
* ``carried``: name, call as above, numbers, texts, names, digest, count, sums as in ``variables``: what those of its
  variables led to that a turn of a loop reads from before
* ``precision``: type (float16 or bfloat16) in which modules compute, whatever their parameters are
* ``printed``: stream (stdout, stderr, ``descriptor 1`` and ``2``; ``words`` for lines of standard output without
  digits, ``commands`` for programs that are started), text (a line that has digits; null: from here on lines were left
  out)
* ``file``: path (below the root, else its name), kind (``tensors``: names, digest, count, sums, numbers {name: hex},
  kinds {name: type of whatever stands there, of a tensor its class, dtype and shape}, texts {name: text}, a
  ``torch.save``, a ``pickle.dump`` or an array; ``text``: lines; ``bytes``: digest), in order of writing
* ``changed``: paths {path below the root: kind and mode as ``ls`` shows them, or ``gone``}: files and folders that are
  others than at the start
* ``state``: what is alive at the end: rng, names and parameters (of modules that were called), buffers, rates, waiting
  (list of {made, name, digest, count, sums, missing}: gradients of optimizers that made no step)
* ``variables``: what the user's variables hold at the end, by name: numbers {name: hex}, texts {name: text}, names,
  digest, count, sums
* ``reached``: path, line: a watched line ran for the first time
* ``part``: place ([path, line, column, end line, end column, kind]): a watched part of lines has been seen
* ``seed``: generator (torch, random, numpy), value: what the script seeded with, replayed by later runs; instead (where
  an earlier run's value was replayed): the script's own
* ``standin``: what (the data set or file), why, shape: data of ours took the place of missing data
* ``made``: kind (``open``, ``list``, ``glob``, ``exists``, ``write``: only its folder), path, site (path, function),
  suffix, recipe, told: a file or folder that is not there was made where the program asked for it
* ``device``: what: a request for a device that this machine lacks was answered by the CPU (once a kind of request)
* ``unrepeatable``: what: torch has no deterministic kernel for this operation here (once an operation)
* ``invented``: site: a number that the script read out of a tensor, where shapes alone are known, was made up (once a
  site)
* ``capped``: site, length, cap: a DataLoader that stopped after ``cap`` of ``length`` batches (once a site)
* ``knob``: kind (``loop``, ``bound``, ``batch``), path, line (as read), turns: a knob of the run's own did something
* ``drive``, ``driven``: path, name, how, call, reason, error, recipe: a function is called at the end of the run, and
  has returned; ``reason``: why it could not be called, ``error``: what it raised (as below), ``recipe``: what was made
  up, null for nothing
* ``left``: place, span, why, recipe, told: a call that was left out ran for the first time; what it gave instead
* ``observed``: place, call, begun (whether a watched line had run), whole (whether all that goes in was read), form,
  graphs and *values*: what was given to a call that is left out, or to a module that is not there
* ``stopped``: frames (of the tree, the innermost first: path, span, hollow), graph, missing, why: see
  probe/calls/stops.py
* ``caught``: site, error: an exception out of ``backward`` or ``autograd.grad``; the script may have caught it
* ``raised``: the same out of a module that no other module called
* ``error``: type, message, kind, site, traceback (text, user frames and the last frames of libraries), missing (null,
  or the path, module or variable of the environment that is not there)
* ``forwards``: sites: list of {site, calls, used, peak}: root-module forwards with gradients on; ``used`` were
  reached by a backward, ``peak`` unused ones were alive at once
* ``loaded``: paths: the Python files of the tree that were imported or run, relative to the root; libraries: modules
  that are neither there nor of Python, in the order in which their imports began, where that was asked for
* ``census``: boundaries (number of steps or backwards that cut time), ages ({birth: nodes alive}), leak (bool),
  holders (list of {name, function, nodes, births, made: the site of the newest, in a diagnosis})
* ``diagnosis``: what, and what belongs to it: see verify/diagnosis/evidence.py
* ``overhead``: seconds: what the probe itself took
* ``note``: text: something that limits what may be claimed, for people
* ``end``: reason: steps, backwards, completed, exit (with ``status``), left (by ``os._exit``), raised, watchdog;
  time; stack: sites, the innermost first, of what was running

*Values* of tensors are {digest, count, sums}: see probe/values/digests.py for what the sums are.

``kind`` of an error is ``freed`` (a second time through a graph), ``inplace``, ``memory`` (out of memory), ``missing``
(module, file or variable), or ``other``.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from verify.measured.steered import Driven, Knob, Observed, Stopped
from verify.measured.values import Site, Trouble, Values

VERSION = 1
#: The device of a run in which tensors have shapes and no memory.
BY_SHAPES = "shapes alone"


class Caught(NamedTuple):
    """An exception out of autograd or (``forward``) a module, whoever caught it: the last one may have ended the run.

    ``steps_before`` optimizer steps, of all optimizers together, were complete then, and ``backwards`` had been called.
    """

    site: Site | None
    error: Trouble
    steps_before: int = 0
    backwards: int = 0
    forward: bool = False


class Loss(NamedTuple):
    """One output of a backward: its value if it has one element, and a digest of its bytes."""

    value: float | None
    digest: str
    numel: int


class Waiting(NamedTuple):
    """Gradients of an optimizer that has made no step; ``made`` numbers optimizers in the order of their making."""

    made: int
    name: str
    values: Values


class Output(NamedTuple):
    """What a ``module`` returned: the k-th call of the ``line``-th line that calls modules. ``steps_before`` as below.

    Of a function that was called by itself: what it is made of (``form``), and which tensors carry ``graphs``.
    """

    site: Site | None
    line: int
    call: int
    values: Values
    steps_before: int
    form: tuple[str, ...] | None = None
    graphs: str = ""
    module: str = ""
    #: Whether another thread than the main one called it.
    thread: bool = False


class Tensors(NamedTuple):
    """Names, types and first values of tensors that are read again and again."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    initial: Values | None


class FileKind(str, enum.Enum):
    """What is known of the contents of a file."""

    TENSORS = "tensors"
    TEXT = "text"
    BYTES = "bytes"
    """Only a digest."""


class Written(NamedTuple):
    """A file as it was written: ``tensors`` by their ``names``, ``numbers`` and ``texts`` by theirs, the ``lines`` of a
    text, or the digest of something else. ``kinds`` are the types of these and of what contains them, and what wrote
    the whole."""

    path: str
    kind: FileKind
    names: tuple[str, ...]
    tensors: Values
    numbers: Mapping[str, float]
    lines: tuple[str, ...]
    texts: Mapping[str, str] = {}
    kinds: Mapping[str, str] = {}


class Returned(NamedTuple):
    """What the ``call``-th call of the function ``name`` of ``path`` returned, and what that is made of (``form``)."""

    path: str
    name: str
    call: int
    values: Values
    form: tuple[str, ...]


#: What schedulers change, by group: {lr: 0.1, ...}.
Rates = tuple[Mapping[str, float], ...]


@dataclass(frozen=True)
class State:
    """What was alive when the process ended."""

    rng: str
    names: tuple[str, ...]
    parameters: Values
    buffers: Values | None
    rates: tuple[Rates, ...]
    waiting: tuple[Waiting, ...]


class Variables(NamedTuple):
    """What variables led to when the process ended: tensors by their ``names``, ``numbers`` and ``texts`` by theirs."""

    names: tuple[str, ...]
    tensors: Values
    numbers: Mapping[str, float]
    texts: Mapping[str, str] = {}


@dataclass(frozen=True)
class Backward:
    """One call of ``backward`` or ``autograd.grad``."""

    index: int
    site: Site | None
    call: int
    time: float
    losses: tuple[Loss, ...]
    rng: str
    retain: bool
    create: bool
    grad: bool
    nodes: int
    live: int
    seconds: float
    bytes: int
    peak: int
    error: Trouble | None
    #: How many optimizer steps, of all optimizers together, were complete when it was called.
    steps_before: int
    waiting: tuple[Waiting, ...] = ()


@dataclass(frozen=True)
class Step:
    """One optimizer step that was made: who, when, the parameters and all else after it, the gradients before it.

    ``tensors`` is what ``params`` and ``grads`` are of, ``buffer_names`` what ``buffers`` are.
    """

    optimizer: int
    name: str
    call: int
    site: Site | None
    time: float
    live: int
    params: Values
    bytes: int
    peak: int
    grads: Values | None = None
    rates: Rates = ()
    rng: str = ""
    buffers: Values | None = None
    tensors: Tensors | None = None
    buffer_names: tuple[str, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def digest(self) -> str:
        """Of all parameters."""
        return self.params.digest

    @property
    def count(self) -> int:
        """The number of values in all parameters."""
        return self.params.count


class Forwards(NamedTuple):
    """Forwards of root modules at one site while gradients were on."""

    site: Site | None
    calls: int
    used: int
    peak: int

    @property
    def wasted(self) -> bool:
        """Whether graphs are built here that no backward ever uses; fewer than three calls say nothing."""
        return self.used == 0 and self.calls >= 3


class Holder(NamedTuple):
    """Who keeps old graph nodes alive: a variable's name, the function or module it stands in, nodes and births."""

    name: str
    function: str
    nodes: int
    births: int
    made: Site | None = None


@dataclass(frozen=True)
class Census:
    """The graph nodes alive at the end, by the step in which they were made."""

    boundaries: int
    ages: Mapping[int, int]
    leak: bool
    holders: tuple[Holder, ...]


@dataclass
class Record:
    """One process of one run, as far as it came."""

    process: str = "main"
    about: dict[str, Any] = field(default_factory=dict)
    backwards: list[Backward] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    reached: set[tuple[str, int]] = field(default_factory=set)
    #: How many steps were complete when a line ran first.
    reached_after: dict[tuple[str, int], int] = field(default_factory=dict)
    #: The same of parts of lines.
    parts_after: dict[tuple[Any, ...], int] = field(default_factory=dict)
    seeds: list[tuple[str, Any]] = field(default_factory=list)
    #: What it would have seeded with, had no earlier run's values been replayed.
    own_seeds: list[tuple[str, Any]] = field(default_factory=list)
    standins: list[dict[str, Any]] = field(default_factory=list)
    #: Files and folders that were made where the program asked for them, by the events.
    made: list[dict[str, Any]] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    #: Operations without a deterministic kernel.
    unrepeatable: list[str] = field(default_factory=list)
    capped: list[dict[str, Any]] = field(default_factory=list)
    invented: list[Site | None] = field(default_factory=list)
    caught: list[Caught] = field(default_factory=list)
    error: Trouble | None = None
    error_site: Site | None = None
    #: Where ``error_site`` is the line of a cell: the path and the line in the notebook's program.
    error_program: tuple[str, int] | None = None
    traceback: str = ""
    missing: str | None = None
    loaded: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    forwards: list[Forwards] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    returned: list[Returned] = field(default_factory=list)
    #: Which optimizers made steps, by the order in which they were made.
    trained: set[int] = field(default_factory=set)
    precision: str = ""
    #: Lines that have digits, by stream; None stands for those that were left out.
    printed: dict[str, list[str | None]] = field(default_factory=dict)
    files: list[Written] = field(default_factory=list)
    #: Kind and mode of files and folders that are others than at the start, by path; ``gone`` where nothing is.
    changed: dict[str, str] = field(default_factory=dict)
    state: State | None = None
    variables: Variables | None = None
    #: The same of functions that returned, by path, name and call.
    carried: dict[tuple[str, str, int], Variables] = field(default_factory=dict)
    census: Census | None = None
    overhead: float = 0.0
    notes: list[str] = field(default_factory=list)
    #: Whether events may be held back that were never written.
    held: bool = False
    #: What the doctor's part of the probe saw, as it was written.
    diagnoses: list[dict[str, Any]] = field(default_factory=list)
    #: What the run's own knobs did, functions that it called at its end, and lines that only these calls reached.
    knobs: list[Knob] = field(default_factory=list)
    driven: list[Driven] = field(default_factory=list)
    #: What was left out, by the events; what went into that; where the program stopped for want of something.
    left: list[dict[str, Any]] = field(default_factory=list)
    observed: list[Observed] = field(default_factory=list)
    stopped: Stopped | None = None
    alone: set[tuple[str, int]] = field(default_factory=set)
    #: What was running at the end, the innermost first.
    stack: tuple[Site, ...] = ()
    end: str | None = None
    #: Seconds, as above; nan where the process could not say it.
    ended: float = math.nan
    status: int | None = None
    #: Why these lines are not all that the probe wrote, and nothing else; empty where they are.
    tampered: str = ""

    @property
    def error_line(self) -> tuple[str, int] | None:
        """The path and the line of ``error_site`` as ``reached`` has them: of a notebook those of its program."""
        site = self.error_site
        return self.error_program or (None if site is None else (site.path, site.line))
