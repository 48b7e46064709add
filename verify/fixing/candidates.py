"""Changes that may remove a fault, made at the lines that the doctor names. None is trusted: each one is run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection

from codemods.source.errors import SourceError
from codemods.source.syntax import FAILURES
from verify.diagnosis.model import Fault, Kind
from verify.fixing import states, stored
from verify.fixing.attaching import attached
from verify.fixing.carried import carried_on, detached_in_its_owner, forgotten, given_detached
from verify.fixing.clues import Candidate, same_loss
from verify.fixing.devices import given_values, made_there, moved
from verify.fixing.learners import cleared, frozen, made_later, recording, registered, spared, switched_on
from verify.fixing.losses import retained, summed, walked_once
from verify.fixing.moved import begun_in_loop, built_twice, changed_later, rebuilt_in_loop
from verify.fixing.shared import given_to_the_first, kept_elsewhere, read_cloned, read_detached
from verify.fixing.states import always, cut_where_it_enters, kept_detached, rebuilt, uncached
from verify.fixing.stored import stored_detached
from verify.fixing.texts import Texts
from verify.fixing.written import out_of_place, without_inplace


def candidates(fault: Fault, texts: Texts, loaded: Collection[str] = ()) -> list[Candidate]:
    """Return changes that may remove ``fault``, the one that keeps most learning first.

    ``texts`` returns the file at a path below the root; files for which it raises SourceError are left alone.
    ``loaded`` are the paths of those that ran, where a class may be that no line of the fault leads to.
    """
    stores = functools.partial(stored_detached, loaded=loaded)
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
            given_detached,
            read_detached,
            stores,
            detached_in_its_owner,
            forgotten,
            begun_in_loop,
            given_to_the_first,
            built_twice,
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
            carried_on,
        ),
        Kind.GROWING_GRAPH: (stores, stored.keys_detached, kept_detached, stored.detached_after_backward),
        Kind.NO_GRADIENT: (attached, recording, frozen),
        Kind.LOSS_CUT_OFF: (attached, recording, switched_on),
        Kind.NOT_IN_OPTIMIZER: (functools.partial(registered, loaded=loaded), made_later),
        Kind.NEVER_CLEARED: (cleared,),
        Kind.UNUSED_FORWARDS: (spared,),
        Kind.OTHER_DEVICE: (given_values, moved, made_there),
    }.get(fault.kind, ())
    if same_loss(fault):
        # What is walked in every turn would go on with the gradients of old values.
        makers = (rebuilt_in_loop,) if "in every turn" in fault.remedy else (walked_once, retained)
    found: list[Candidate] = []
    for make in makers:
        try:
            new = [each for each in make(fault, texts) if _parses(each) and _differs(each, texts)]
            found += [each for each in new if each not in found]
        except (SourceError, *FAILURES):
            # Not Python that we can read: nothing is offered there.
            continue
    return found


def _differs(candidate: Candidate, texts: Texts) -> bool:
    """Whether anything is changed: what is moved may stand there already."""
    return any(text != texts(path).text for path, text in candidate.files.items())


def _parses(candidate: Candidate) -> bool:
    """Whether the new texts are valid Python; of a notebook that is the program made of its cells."""
    try:
        for text in candidate.files.values():
            ast.parse(text)
    except FAILURES:
        return False
    return True
