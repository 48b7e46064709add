"""Changes that may remove a fault, made at the lines that the doctor names. None is trusted: each one is run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator

from codemods.source.errors import SourceError
from codemods.source.syntax import FAILURES
from verify.diagnosis.model import Fault, Kind
from verify.fixing import states, stored
from verify.fixing.clues import Candidate, place_of, printed, same_loss, variable
from verify.fixing.learners import attached, cleared, frozen, made_later, recording, registered, spared, switched_on
from verify.fixing.losses import retained, summed, walked_once
from verify.fixing.moved import begun_in_loop, changed_later, rebuilt_in_loop
from verify.fixing.shared import kept_elsewhere, read_cloned, read_detached
from verify.fixing.states import always, cut_where_it_enters, kept_detached, rebuilt, uncached
from verify.fixing.stored import stored_detached
from verify.fixing.texts import Text, Texts
from verify.fixing.written import out_of_place, without_inplace


def candidates(fault: Fault, texts: Texts, loaded: Collection[str] = ()) -> list[Candidate]:
    """Return changes that may remove ``fault``, the one that keeps most learning first.

    ``texts`` returns the file at a path below the root; files for which it raises SourceError are left alone.
    ``loaded`` are the paths of those that ran, where a class may be that no line of the fault leads to.
    """
    makers = {
        Kind.SECOND_BACKWARD: (
            always,
            uncached,
            rebuilt_in_loop,
            rebuilt,
            states.detached_after_backward,
            states.handed_back,
            kept_elsewhere,
            cut_where_it_enters,
            kept_detached,
            read_detached,
            stored_detached,
            begun_in_loop,
            retained,
            summed,
        ),
        Kind.CHANGED_IN_PLACE: (
            changed_later,
            summed,
            out_of_place,
            without_inplace,
            read_cloned,
            kept_detached,
            states.grown_from_values,
        ),
        Kind.GROWING_GRAPH: (stored_detached, kept_detached, stored.detached_after_backward),
        Kind.NO_GRADIENT: (attached, recording, frozen),
        Kind.LOSS_CUT_OFF: (attached, recording, switched_on),
        Kind.NOT_IN_OPTIMIZER: (functools.partial(registered, loaded=loaded), made_later),
        Kind.NEVER_CLEARED: (cleared,),
        Kind.UNUSED_FORWARDS: (spared,),
        Kind.OTHER_DEVICE: (_moved,),
    }.get(fault.kind, ())
    if same_loss(fault):
        makers = (walked_once, retained)
    found: list[Candidate] = []
    for make in makers:
        try:
            found += [each for each in make(fault, texts) if each not in found and _parses(each)]
        except (SourceError, *FAILURES):
            # Not Python that we can read: nothing is offered there.
            continue
    return found


def _parses(candidate: Candidate) -> bool:
    """Whether the new texts are valid Python; of a notebook that is the program made of its cells."""
    try:
        for text in candidate.files.values():
            ast.parse(text)
    except FAILURES:
        return False
    return True


def _moved(fault: Fault, texts: Texts) -> Iterator[Candidate]:
    """Move the tensor that is on another device: with its module, or just before its use."""
    wrong, right, born = fault.clue("carrier"), fault.clue("other"), place_of(fault.clue("cause"), texts)
    use = place_of(fault.clue("consumer"), texts)
    name = printed(variable(wrong))
    if not name:
        return
    if born is not None and (code := _buffer(*born, name)) is not None:
        title = f"register {name} as a buffer at {born[0].at(born[1].lineno)}"
        yield Candidate(title, "it goes wherever its module goes", born[0].replaced(born[1], code))
    if use is not None and right is not None and (other := printed(right.name)) and wrong is not None:
        title = f"move {name} to the device of {other} before {use[0].at(use[1].lineno)}"
        moved = use[0].inserted(use[1], f"{name} = {name}.to({other}.device)", before=True)
        if wrong.function == right.function == fault.figures.get("function"):
            yield Candidate(title, "it is copied there in every step", moved)


def _buffer(file: Text, statement: ast.stmt, name: str) -> str | None:
    """Register a buffer where a module's ``__init__`` assigns a plain attribute."""
    function = file.function(statement)
    if not isinstance(statement, ast.Assign) or function is None or function.name != "__init__":
        return None
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Attribute) or not function.args.args:
        return None
    owner = function.args.args[0].arg
    if not isinstance(target.value, ast.Name) or target.value.id != owner or name.rpartition(".")[2] != target.attr:
        return None
    return f'{owner}.register_buffer("{target.attr}", {file.segment(statement.value)}, persistent=False)'
