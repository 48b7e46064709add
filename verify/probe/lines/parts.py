"""Tells which parts of lines ran: sides of conditions, bodies of comprehensions and lambdas, outcomes of conditions.

Each instruction knows the place in the text that it comes from, from Python 3.11 on; before, no part is seen to run.
"""

from __future__ import annotations

import dis
import gc
from collections.abc import Callable, Container, Iterable
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from ..guarding.guard import Write
from .places import lines_of, places
from .sites import Tree

if TYPE_CHECKING:
    from .places import Place

#: What stands between the value of a condition and the jump.
_BETWEEN = ("COPY", "TO_BOOL", "SWAP", "CACHE", "EXTENDED_ARG", "NOT_TAKEN")
#: Kinds of parts that can be seen: by instructions, by jumps, by what a function is called with.
_RAN, _BOTH, _LOOP, _DEFAULT = "ran", "both", "loop", "default "
#: Calls of a function of which the defaults are looked up: one that is made anew each time may have others each time.
_LOOKUPS = 50
#: What a loop does first; the jump of a condition is told by its name.
_LOOPS = ("FOR_ITER", "SEND")


class _Jump:
    """A conditional jump: ``fall`` is the offset behind it, ``met`` whether the condition is met if that follows."""

    def __init__(self, fall: int, met: bool, parts: list[int]) -> None:
        self.fall, self.met, self.parts = fall, met, parts


class Plan:
    """What to look for in one code object: parts by the offsets that show them, jumps by theirs, and their lines."""

    def __init__(self) -> None:
        self.ran: dict[int, list[int]] = {}
        self.jumps: dict[int, _Jump] = {}
        self.lines: set[int] = set()
        self.parts: set[int] = set()
        #: Parameters by the parts that tell of their defaults.
        self.defaults: dict[int, str] = {}
        self.lookups = 0


class Parts:
    """Watches ``wanted``, [path relative to the tree, line, column, end line, end column, kind] each; see
    :class:`codemods.rewriting.parts.Part` for the kinds. Writes a ``part`` event for each when it has been seen."""

    def __init__(self, wanted: Iterable[list[Any]], tree: Tree, write: Write) -> None:
        self._wanted = [tuple(each) for each in wanted]
        self._open = {index for index, part in enumerate(self._wanted) if _is_seen(part[5])}
        self._outcomes: dict[int, set[bool]] = {}
        self._tree = tree
        self._write = write
        self._plans: dict[CodeType, Plan | None] = {}

    @property
    def waiting(self) -> bool:
        """Whether parts have not been seen yet."""
        return bool(self._open)

    def waiting_in(self, paths: Container[str]) -> bool:
        """Whether parts of files ``paths`` have not been seen yet."""
        return any(self._wanted[index][0] in paths for index in self._open)

    def plan(self, code: CodeType) -> Plan | None:
        """What to look for in ``code``; None if there is nothing, or nothing any more."""
        if not self._open:
            return None
        if code not in self._plans:
            self._plans[code] = self._made(code)
        plan = self._plans[code]
        return plan if plan is not None and plan.parts & self._open else None

    def watch(self, plan: Plan, frame: FrameType) -> Watch:
        """Watch ``frame``, which begins to run the code that ``plan`` is of."""
        if not self._open.isdisjoint(plan.defaults):
            self._called(plan, frame)
        return Watch(plan, self._ran, self._jumped)

    def _called(self, plan: Plan, frame: FrameType) -> None:
        """See which parameters were left to their defaults."""
        plan.lookups += 1
        functions = _functions(frame.f_code) if plan.lookups <= _LOOKUPS else []
        given = frame.f_locals
        for index, name in plan.defaults.items():
            if any(name in given and _default(function, name) is given[name] for function in functions):
                self._ran([index])

    def _made(self, code: CodeType) -> Plan | None:
        path = self._tree.relative(code.co_filename)
        mine = [index for index in self._open if self._wanted[index][0] == path]
        plan = Plan()
        for index in mine:
            kind = self._wanted[index][5]
            if kind.startswith(_DEFAULT) and _takes(code, self._wanted[index][1], kind[len(_DEFAULT) :]):
                plan.defaults[index] = kind[len(_DEFAULT) :]
                plan.parts.add(index)
        if not mine or not _meets(code, [self._wanted[index] for index in mine]):
            return plan if plan.parts else None
        instructions = list(dis.get_instructions(code))
        found = places(code)
        for number, instruction in enumerate(instructions):
            place = found.get(instruction.offset)
            if place is None:
                continue
            for index in mine:
                part = self._wanted[index]
                if part[5] == _RAN and _within(place, part):
                    plan.ran.setdefault(instruction.offset, []).append(index)
                    self._add(plan, index, place)
            self._jump(plan, instructions, number, found, mine)
        return plan if plan.parts else None

    def _jump(
        self, plan: Plan, instructions: list[dis.Instruction], number: int, found: dict[int, Place], mine: list[int]
    ) -> None:
        """Note the jump at ``number``, if it is the one of a condition or a loop that is watched."""
        name = instructions[number].opname
        if number + 1 == len(instructions):
            return
        loop = name in _LOOPS
        if not loop and "_IF_" not in name:
            return
        at = found.get(instructions[number].offset)
        before = number - 1
        while before > 0 and instructions[before].opname in _BETWEEN:
            before -= 1
        value = found.get(instructions[before].offset)
        parts = []
        for index in mine:
            part = self._wanted[index]
            if loop and part[5] == _LOOP and at is not None and _heads(at, part):
                parts.append(index)
            if not loop and part[5] == _BOTH and value is not None:
                # `x is None` is one instruction with the jump; of it only `x` stands before.
                exact = value == part[1:5]
                if exact or ("NONE" in name and _within(value, part) and value[:2] == part[1:3]):
                    parts.append(index)
        for index in parts:
            self._add(plan, index, at or value)
        if parts:
            jump = _Jump(instructions[number + 1].offset, "IF_FALSE" in name or "NOT_NONE" in name or loop, parts)
            first = number
            while first > 0 and instructions[first - 1].opname == "EXTENDED_ARG":
                first -= 1
            # Of an instruction with a long argument only the start may be told.
            for one in instructions[first : number + 1]:
                plan.jumps[one.offset] = jump

    def _add(self, plan: Plan, index: int, place: Place | None) -> None:
        plan.parts.add(index)
        if place is not None:
            plan.lines.update(range(place[0], place[2] + 1))

    def _ran(self, parts: list[int]) -> None:
        for index in parts:
            if index in self._open:
                self._open.discard(index)
                self._write({"event": "part", "place": list(self._wanted[index])})

    def _jumped(self, jump: _Jump, offset: int) -> None:
        for index in jump.parts:
            outcomes = self._outcomes.setdefault(index, set())
            outcomes.add(jump.met == (offset == jump.fall))
            if len(outcomes) == 2:
                self._ran([index])


class Watch:
    """Sees the instructions of one frame, while they stand on lines that matter."""

    __slots__ = ("_jump", "_jumped", "_plan", "_ran")

    def __init__(self, plan: Plan, ran: Callable[[list[int]], None], jumped: Callable[[_Jump, int], None]) -> None:
        self._plan, self._ran, self._jumped = plan, ran, jumped
        self._jump: _Jump | None = None

    def see(self, frame: FrameType, event: str) -> None:
        """An event of the trace function: ``line`` switches the instructions on and off."""
        if event == "exception":
            self._jump = None
            return
        offset = frame.f_lasti
        if self._jump is not None:
            self._jumped(self._jump, offset)
            self._jump = None
        if event == "line":
            frame.f_trace_opcodes = frame.f_lineno in self._plan.lines
        elif event == "opcode":
            parts = self._plan.ran.get(offset)
            if parts is not None:
                self._ran(parts)
            self._jump = self._plan.jumps.get(offset)


def _is_seen(kind: str) -> bool:
    return kind in (_RAN, _BOTH, _LOOP) or kind.startswith(_DEFAULT)


def _takes(code: CodeType, line: int, name: str) -> bool:
    """Whether ``code`` is of a function that begins on ``line`` and has a parameter ``name``."""
    return code.co_firstlineno == line and name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _functions(code: CodeType) -> list[FunctionType]:
    """The functions that are made of ``code`` and alive."""
    return [each for each in gc.get_referrers(code) if type(each) is FunctionType and each.__code__ is code]


#: What no parameter is given.
_NOTHING = object()


def _default(function: FunctionType, name: str) -> Any:
    code, defaults = function.__code__, function.__defaults__ or ()
    place = code.co_varnames.index(name) - (code.co_argcount - len(defaults))
    if 0 <= place < len(defaults):
        return defaults[place]
    return (function.__kwdefaults__ or {}).get(name, _NOTHING)


def _meets(code: CodeType, parts: list[tuple[Any, ...]]) -> bool:
    lines = lines_of(code)
    return any(not lines.isdisjoint(range(part[1], part[3] + 1)) for part in parts)


def _within(place: Place, part: tuple[Any, ...]) -> bool:
    return part[1:3] <= place[:2] and place[2:] <= part[3:5]


def _heads(place: Place, part: tuple[Any, ...]) -> bool:
    """Whether a loop's instruction at ``place`` is that of the loop ``part``: it has the place of the whole loop, or of
    what is looped over."""
    return place[:2] == part[1:3] or (part[1:3] <= place[:2] and place[2:] == part[3:5])
