"""Values made without the guard of frozen dataclasses stay what they are to those who compare and copy them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, is_dataclass, replace

import pytest

from codemods.graph.model import nodes, trace, values
from codemods.graph.model.fixed import dataclass
from codemods.graph.model.kinds import CarrierKind, PlainKind
from codemods.graph.model.nodes import Carrier, Owned, Place
from codemods.graph.model.values import Const, Plain, Tensor


def test_what_is_compared_by_its_fields_has_a_hash_of_them() -> None:
    one, other = Carrier(CarrierKind.LOCAL, 3, "x"), Carrier(CarrierKind.LOCAL, 3, "x")
    assert one == other
    assert len({one, other, Carrier(CarrierKind.LOCAL, 4, "x")}) == 2
    assert len({Owned((), True, False), Owned((), True, False)}) == 1


def test_what_is_not_compared_stays_itself() -> None:
    assert Const(1) != Const(1)
    assert len({Plain(PlainKind.TEXT), Plain(PlainKind.TEXT)}) == 2


@pytest.mark.parametrize("kind", [Const, Plain, Tensor, Place])
def test_no_other_field_can_be_set(kind: type) -> None:
    assert is_dataclass(kind)
    one = object.__new__(kind)
    with pytest.raises(AttributeError):
        one.another = 1


def test_copies_and_pickles_are_equal_in_all_fields() -> None:
    given = Plain(PlainKind.TEXT, "a", "b")
    for made in (replace(given), copy.copy(given), pickle.loads(pickle.dumps(given))):
        assert [getattr(made, f.name) for f in fields(given)] == [
            PlainKind.TEXT,
            "a",
            "b",
            None,
            None,
            False,
            None,
            frozenset(),
        ]
    assert replace(given, end="c").end == "c"


def test_what_may_change_has_no_hash_of_its_fields() -> None:
    @dataclass(eq=True)
    class Changing:
        number: int

    with pytest.raises(TypeError):
        hash(Changing(1))


def test_every_class_of_values_is_made_in_this_way() -> None:
    # one that is frozen could not derive from one that is not
    for module in (nodes, values, trace):
        for one in vars(module).values():
            if isinstance(one, type) and is_dataclass(one) and one.__module__ == module.__name__:
                assert not one.__dataclass_params__.frozen  # type: ignore[attr-defined]
