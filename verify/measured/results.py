"""What ``verify`` found out, as data: every report is a rendering of a :class:`Verification` and knows nothing else."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codemods.source.files import SourceFile
from codemods.terms.findings import Finding, ShownLine
from verify.measured.records import Record
from verify.measured.values import Trouble


class Verdict(enum.Enum):
    """What the runs say of one rewrite.

    ``kept``: its promise held; ``broken``: it did not; ``partly reached``: it held as far as was seen, but statements
    that it changes did not run; ``not reached``: no run executed its lines, so nothing is known;
    ``not judged``: the lines ran but the runs allow no statement (the script does not run, or is not deterministic).
    """

    KEPT = "kept"
    BROKEN = "broken"
    PARTLY_REACHED = "partly reached"
    NOT_REACHED = "not reached"
    NOT_JUDGED = "not judged"


#: How the record of a process ends that the probe has stopped: it had more steps to make.
STOPPED = frozenset({"steps", "backwards"})


class Outcome(enum.Enum):
    """How a run ended. ``ok`` includes being stopped by the probe after enough steps."""

    OK = "ok"
    RAISED = "raised"
    TIMEOUT = "timed out"
    MEMORY = "out of memory"
    DISK = "wrote too much"
    KILLED = "killed"
    NO_TORCH = "no torch"
    NOT_STARTED = "not started"


@dataclass(frozen=True)
class Run:
    """One execution of one command on one version of the tree.

    ``records`` holds a record a process, the main one first; ``record`` is the one to look at: the process that called
    ``backward`` most. ``output`` is the tail of what the program printed. ``wall`` is in seconds, ``peak`` the largest
    resident size of the whole process tree in bytes.
    """

    name: str
    command: tuple[str, ...]
    outcome: Outcome
    status: int | None
    wall: float
    peak: int
    records: tuple[Record, ...]
    output: str
    sandbox: str = ""
    notes: tuple[str, ...] = ()
    unsteady: frozenset[str] | None = None
    """What differs, beside losses and parameters, when the original is run twice; None where that is not known."""
    warm: bool = False
    """Whether it began with what was imported ahead."""

    @property
    def record(self) -> Record:
        """The record of the process that trains: most backwards, the main process of equals."""
        if not self.records:
            return Record()
        return max(self.records, key=lambda record: len(record.backwards))

    @property
    def failed(self) -> Record:
        """The record with the error that ended the run; where none did, that of the process that trains."""
        return next((record for record in (self.record, *self.records) if record.error is not None), self.record)

    @property
    def reached(self) -> set[tuple[str, int]]:
        """The watched lines that ran, in any process."""
        return {line for record in self.records for line in record.reached}

    def beside(self, other: Run) -> Iterator[tuple[Record, Record | None]]:
        """The record of each process, with that of the same process in ``other``: of several of one name that which was
        started with the same words, else in their order."""
        found: dict[int, Record] = {}
        theirs = list(other.records)
        for same_words in (True, False):
            for record in self.records:
                for each in theirs if id(record) not in found else ():
                    words = each.about.get("argv") == record.about.get("argv")
                    if each.process == record.process and (words or not same_words):
                        found[id(record)] = each
                        theirs = [one for one in theirs if one is not each]
                        break
        return ((record, found.get(id(record))) for record in self.records)

    @property
    def unrepeatable(self) -> list[str]:
        """The operations for which torch has no deterministic kernel on its device."""
        return list(dict.fromkeys(what for record in self.records for what in record.unrepeatable))

    @property
    def error(self) -> Trouble | None:
        """The exception that ended it, if one did."""
        return self.failed.error


class Difference(enum.Enum):
    """How far two runs agree: the strongest statement that is true."""

    IDENTICAL = "identical"
    CLOSE = "close"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Comparison:
    """Two runs held side by side, as far as both came.

    ``first`` says where they part first ("loss of call 3 of the backward at train.py:41: 0.1 and 0.2"), empty where
    they do not. ``losses`` is the largest absolute difference, ``parameters`` the largest distance of a tensor, no
    value of which differs by more (nan where one side alone is not finite), None where nothing could be compared;
    ``updates`` is the same in proportion to what the tensor has moved. ``steps``, ``backwards`` and ``outputs`` of
    modules were compared. ``random_moved``: the generators parted before or with the values, so that the random
    numbers differ and not only the mathematics. ``digits``: how far totals and outputs are apart where their last
    digits alone differ. ``undecided``: something differs of which this run does not show what comes of it.
    ``loss_first``: it was a loss that parted, and all before it was the same bit for bit.
    ``compared`` counts what was compared beside losses and parameters, by its name; ``not_compared`` says what was
    not, and why.
    """

    difference: Difference
    first: str
    losses: float | None
    parameters: float | None
    steps: int
    backwards: int
    random_moved: bool = False
    updates: float | None = None
    outputs: int = 0
    digits: float = 0.0
    undecided: str = ""
    loss_first: bool = False
    compared: Mapping[str, int] = field(default_factory=dict)
    not_compared: tuple[str, ...] = ()

    @property
    def learns_the_same(self) -> bool:
        """Whether all losses and parameters are the same, so that what differs is something else."""
        return self.losses == 0 and self.parameters == 0


@dataclass(frozen=True)
class Rewrite:
    """One rewrite (an edit, or those that are made together or not at all) and what became of its promise.

    ``why`` is the figure or the sentence behind the verdict. ``without``: for a broken one, whether the rest was shown
    to hold without it. ``alone``: no run came to its lines; its function was called by itself, at the end of one.
    ``made`` says what was made up in that run in the place of what the program lacks: where, and what.
    ``run`` is the place of the run behind the verdict among the entries, from 0.
    """

    findings: tuple[Finding, ...]
    verdict: Verdict
    why: str
    without: str = ""
    alone: bool = False
    run: int = 0
    made: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The verdict as people read it."""
        parts = [self.verdict.value, *["driven alone"] * self.alone, *["with made-up values"] * bool(self.made)]
        return ", ".join(parts)

    @property
    def likely(self) -> bool:
        """Whether it is made only where a run shows that it holds."""
        return any(finding.likely is not None for finding in self.findings)

    @property
    def key(self) -> frozenset[tuple[str, str, int]]:
        """What tells it from others."""
        return frozenset(finding.key for finding in self.findings)

    @property
    def finding(self) -> Finding:
        """The finding that gives the rewrite its name: the one with the weakest promise."""
        return max(self.findings, key=lambda finding: finding.promise.rank)


@dataclass(frozen=True)
class Entry:
    """One command on the tree: its runs and how they compare.

    ``deterministic`` is None where the second original run could not be compared. ``staged`` are the rewritten runs
    with only some of the rewrites, made to tell promises apart or to find the one that breaks. ``plan`` says how these
    runs differ from the command as it stands: what was done to reach lines that it does not; empty where nothing was.
    """

    command: tuple[str, ...]
    original: Run
    again: Run | None = None
    rewritten: Run | None = None
    repeatable: Comparison | None = None
    comparison: Comparison | None = None
    rewrites: tuple[Rewrite, ...] = ()
    staged: tuple[tuple[str, Run], ...] = ()
    notes: tuple[str, ...] = ()
    plan: str = ""

    @property
    def runs(self) -> list[Run]:
        """All runs that were made."""
        runs = (self.original, self.again, self.rewritten, *(run for _, run in self.staged))
        return [run for run in runs if run is not None]

    @property
    def deterministic(self) -> bool | None:
        """Whether the original, run twice, computed the same bit for bit."""
        return None if self.repeatable is None else self.repeatable.difference is Difference.IDENTICAL


@dataclass(frozen=True)
class Verification:
    """Everything that ``codemod verify`` has to say: an entry a command, verdicts over all of them, and the diff.

    ``rewrites`` joins the entries: a rewrite is broken if any entry breaks it, kept if one entry kept it and none broke
    it. ``judged`` is false where the original itself could not be run to any purpose; ``reason`` says why and what to
    do. ``diff`` is the unified diff of what was verified, and ``readable`` the one for people: of notebooks the Python
    of each cell that changes, where the other has the JSON of the file.
    """

    root: str
    entries: tuple[Entry, ...]
    rewrites: tuple[Rewrite, ...]
    diff: str
    readable: str
    judged: bool
    reason: str = ""
    advice: tuple[str, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)
    notebooks: Mapping[str, SourceFile] = field(default_factory=dict)
    """The notebooks that were rewritten, as they were read, by the path under which they are shown."""

    def place(self, path: str, line: int) -> ShownLine:
        """Where a line of a finding is for people: in a notebook the cell and the line in it."""
        source = self.notebooks.get(path)
        return ShownLine(None, line) if source is None else source.place(line)

    @property
    def status(self) -> int:
        """The exit status: 0 every promise held, 1 one was broken, 3 could not be judged.

        Rewrites that were not reached, or in part, do not count, but where no rewrite at all could be held to its
        promise, nothing was judged. Of what is only likely the verdict is the very question: none counts.
        """
        verdicts = [rewrite.verdict for rewrite in self.rewrites if not rewrite.likely]
        if Verdict.BROKEN in verdicts:
            return 1
        if not self.judged or Verdict.NOT_JUDGED in verdicts or (verdicts and Verdict.KEPT not in verdicts):
            return 3
        return 0


def join(entries: Sequence[Sequence[Rewrite]]) -> tuple[Rewrite, ...]:
    """Join the verdicts of several entries: for each rewrite the one that says most, a broken one before all."""
    order = [Verdict.BROKEN, Verdict.KEPT, Verdict.PARTLY_REACHED, Verdict.NOT_JUDGED, Verdict.NOT_REACHED]
    best: dict[tuple[Finding, ...], Rewrite] = {}
    for run, rewrites in enumerate(entries):
        for rewrite in rewrites:
            known = best.get(rewrite.findings)
            if known is None or order.index(rewrite.verdict) < order.index(known.verdict):
                best[rewrite.findings] = replace(rewrite, run=run)
    return tuple(best.values())
