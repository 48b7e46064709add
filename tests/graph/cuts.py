"""What cuts the graph, found out from the installed torch: ``python -m tests.graph.cuts`` writes the table.

Each public function, method and attribute runs on small attached tensors, with every combination of a few arguments
that it takes; then ``requires_grad`` of all that came out is looked at, fields and elements included. What no
combination suits is not in the table, and so carries on whatever goes in.
"""

from __future__ import annotations

import contextlib
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import torch
import torch.nn.functional
from torch.nn.utils import rnn

TABLE = Path(__file__).parents[2] / "codemods" / "graph" / "model" / "cutting.py"

_NOT_CALLED = """
    save load compile seed import_ir_module import_ir_module_from_buffer from_file fork wait cudnn_affine_grid_generator
    autocast_increment_nesting autocast_decrement_nesting clear_autocast_cache backward share_memory_ share_memory
    pin_memory parse_ir parse_schema parse_type_comment merge_type_from_type_comment module_load record_stream
    retain_grad sym_fresh_size vitals_enabled read_vitals cuda xpu ipu hpu mtia hip classproperty resize_as_ grad
    volatile prepare_multiprocessing_environment use_deterministic_algorithms unify_type_list
    """.split()  # noqa: SIM905
"""What changes torch itself, needs a device or a file, never comes back, or is another matter."""

ATTACHED, INDEX, FRESH, PLAIN, OTHER = "+", "i", "f", "p", "?"
"""What an output is: part of the graph; integers or booleans, that never are; another tensor without history; certainly
no tensor; something that may hold anything."""

_SIMPLE = (
    *(type(None), bool, int, float, complex, str, bytes, numpy.ndarray, numpy.generic, torch.dtype, torch.device),
    *(torch.layout, torch.memory_format, torch.Size, torch.UntypedStorage, torch.TypedStorage, torch.Generator),
)


_ONLY_INTEGERS = re.compile(r"not implemented for 'Double'|integral inputs|only applicable to index")


@dataclass
class Seen:
    """What one function gave over all its trials: the sorts of single results, the patterns of several."""

    single: set[str] = field(default_factory=set)
    only_integers: bool = False
    """Whether it said that it takes none but integers."""
    several: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The sorts of the elements of tuples, a letter each, and the names of the fields (empty where they have none)."""

    @property
    def sorts(self) -> set[str]:
        """All sorts that were seen."""
        return self.single.union(*self.several)

    @property
    def settled(self) -> bool:
        """Whether it gives attached tensors, and never several."""
        return ATTACHED in self.single and not self.several

    def kind(self) -> str:
        """The sort of all results, or empty where one is attached, or may be, or nothing ran."""
        if not self.sorts or self.sorts & {ATTACHED, OTHER}:
            return ""
        return next(sort for sort in (FRESH, INDEX, PLAIN) if sort in self.sorts)

    def parts(self) -> str:
        """The elements of results of which some are attached and some are not: a word each, its name, or its place,
        and the letter of its sort where it is cut."""
        longest = max(self.several, key=len, default="")
        if not set(longest) - {ATTACHED, OTHER} or not all(longest.startswith(p) for p in self.several):
            return ""
        names = self.several[longest] or tuple(map(str, range(len(longest))))
        return " ".join(n if s in (ATTACHED, OTHER) else f"{n}:{s}" for n, s in zip(names, longest, strict=True))


def sort_of(value: Any, depth: int = 0) -> str:
    """The sort of one output, the most attached of what is in it."""
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            return ATTACHED
        return FRESH if value.is_floating_point() or value.is_complex() else INDEX
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and depth < 8:
        sorts = {sort_of(v, depth + 1) for v in value}
        return next((s for s in (ATTACHED, OTHER, FRESH, INDEX) if s in sorts), PLAIN)
    return PLAIN if isinstance(value, _SIMPLE) else OTHER


def note(seen: Seen, value: Any) -> None:
    """Add what one call gave."""
    sorts = "".join(sort_of(v) for v in value) if type(value) is not torch.Size and isinstance(value, tuple) else ""
    if len(sorts) < 2 or set(sorts) == {PLAIN}:
        seen.single.add(sort_of(value))
        return
    seen.several.setdefault(sorts, ())
    fields = getattr(type(value), "__match_args__", ()) or getattr(type(value), "_fields", ())
    if len(fields) == len(sorts):
        seen.several[sorts] = tuple(fields)


# what the trials call with


def attached(*shape: int) -> torch.Tensor:
    """A tensor in the middle of a graph, whose values suit nearly every function: between zero and one."""
    count = math.prod(shape)
    values = (torch.arange(count, dtype=torch.float64) * 7 % 11 / 17 + 0.34).reshape(shape)
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        # symmetric and positive definite
        values = (values + values.mT) / 4 + torch.eye(shape[-1], dtype=torch.float64)
        values = values / values.amax()
    return values.requires_grad_() * 1.0


Trial = tuple[tuple[Any, ...], dict[str, Any]]


def trials(make: Callable[..., torch.Tensor] = attached) -> Iterator[Trial]:
    """Arguments to try, made of what ``make`` makes of a shape; what comes first is the receiver, if it is a tensor."""
    long = torch.tensor
    for image in ((1, 4, 4), (1, 2, 4, 4), (1, 2, 4, 4, 4)):
        x = make(*image)
        for kernel in (2, (2, 2), (2, 2, 2)):
            yield (x, kernel), {"return_indices": True}
            yield (x, kernel), {"output_size": kernel, "return_indices": True}
            yield (x, kernel), {}
        for channel in ((2, 2, 1, 1), (2, 4, 1), (2, 2, 1, 1, 1), (1, 4, 4, 2)):
            yield (x, make(*channel)), {}
        for options in ({"size": (4, 4)}, {"scale_factor": 2}):
            yield (x,), dict(options)
    for shape in ((3, 3), (4,), (2, 3, 3), ()):
        x = make(*shape)
        index, mask = torch.zeros(shape, dtype=torch.long), torch.ones(shape, dtype=torch.bool)
        plain = attached(*shape).detach()
        where = (long([0]),) * len(shape)
        for options in (
            *({}, {"dim": 0}, {"return_inverse": True, "return_counts": True}, {"return_counts": True}),
            *({"dim": -1, "keepdim": True}, {"dtype": torch.float32}, {"reduction": "none"}, {"repeats": 2}),
            *(
                {"p": 2, "dim": 0},
                {"min": 0.5},
                {"n": 2},
                {"other": x},
                {"value": x, "mask": mask},
                {"out_int32": True},
            ),
        ):
            yield (x,), dict(options)
        for rest in (
            *((0,), (1,), (2,), (-1,), (0.5,), (0, 1), (1, 0), (0, 0), (0, 1, 2), (0, 0, 1), ((0, 1),), (x,), (x, x)),
            *(((2, 2),), ((1, 1, 1, 1),), ((1, 1), 0), (0, (3, 1)), (0, (1, -1)), (index,), (mask,), (plain,)),
            *((plain, plain), (0, index), (mask, 0.5), (mask, plain), (mask, x), (0, long([0])), (0, long([0]), 0.5)),
            *((0, index, plain), (0, index, x), (0, index, 0.5), (2, 0), (x, x, x), (0, x), (1, x), (x, 0), (x, 1)),
            *((where, x.reshape(-1)[:1]), (where, plain.reshape(-1)[:1]), (make(3),), (make(3, 3), make(3, 3))),
            *((long(2),), (torch.float32,), (torch.int64,), ("cpu",), (long([0, 0, 0]),), (0, long([0]), x)),
            *((None, None), (True,), ((x, x),), ([x, x],), (plain.shape,), (0, 0, 0), (0.0, 1.0), (5, 0.0, 1.0)),
            *((lambda v: v * 2,), (plain, lambda a, b: a), (None,), (1, 0, True), (long([0, 1, 1, 0]), 2), ((4,),)),
            *((0, long([0, 0, 0]), x, "sum"), (0, index, x, "sum"), (long([0]), x.reshape(-1)[:1])),
        ):
            yield (x, *rest), {}
        yield ([x, x],), {}
        yield ([x, x], 0), {}
        for before in ((mask,), (index,), (plain,), (1.0,), (2,), (plain, plain), (mask, plain), (0,), ((2,),)):
            yield (*before, x), {}
            yield (*before, x, x), {}
        yield (x, x, 4), {}
        for spec in ("...->...", "i,i->i", "ij,jk->ik"):
            yield (spec, x, x), {}
            yield (spec, x), {}
        yield (lambda v: v * 2, x), {}
    yield (make(0),), {}
    yield (make(3, 3).to_sparse(),), {}
    yield (make(3, 3).to_sparse_csr(),), {}
    yield (make(3, 3) * (1j if make is attached else 1),), {}
    yield (long([[0, 1], [1, 0]]), make(2), (3, 3)), {}
    yield (long([0, 1, 1]), long([0, 1, 2]), make(3), (2, 3)), {}
    yield (long([[0, 1], [1, 0]]), make(2, 2)), {}
    yield (make(2, 2), long([[0, 1], [1, 0]])), {}
    yield (make(3, 1, 3), long([[0, 1]]), long([3]), long([2])), {}


def detached(*shape: int) -> torch.Tensor:
    """The same without history."""
    return attached(*shape).detach()


def integers(*shape: int) -> torch.Tensor:
    """A tensor of small integers."""
    return torch.arange(math.prod(shape)).reshape(shape) % 3


def run(function: Callable[..., Any], calls: Iterable[Trial]) -> Seen:
    """What a function gives over the calls that it takes."""
    seen = Seen()
    for number, (args, options) in enumerate(calls):
        if number > 150 and seen.settled:
            break
        try:
            note(seen, function(*args, **options))
        except Exception as error:
            seen.only_integers = seen.only_integers or bool(_ONLY_INTEGERS.search(str(error)))
    return seen


def look(name: str, function: Callable[..., Any], known: Mapping[str, list[Trial]]) -> Seen:
    """The same over all trials. What takes nothing attached is looked at with plain tensors: no tensor comes out of it,
    or integers alone go in, as it says itself."""
    changes = name.endswith("_") or name.startswith("resize")
    seen = run(function, trials() if changes else known["attached"])
    if not seen.sorts:
        others = run(function, [*trials(detached), *trials(integers)] if changes else known["others"])
        if others.sorts <= ({PLAIN, INDEX} if seen.only_integers else {PLAIN}):
            return others
    return seen


def functions(space: Any) -> dict[str, Callable[..., Any]]:
    """The public functions of a module or a class of torch."""
    found = {}
    for name in dir(space):
        value = getattr(space, name, None)
        if name.startswith(("_", "set_", "init_", "is_autocast", "get_autocast")) or name in _NOT_CALLED:
            continue
        if callable(value) and not isinstance(value, (type, ModuleType)):
            found[name] = value
    return found


SPACES: dict[str, Any] = {
    "torch": torch,
    "torch.nn.functional": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
    "torch.special": torch.special,
    "torch.sparse": torch.sparse,
    "torch.nested": torch.nested,
    "Tensor": torch.Tensor,
}


def tables(only: Callable[[str], bool] = lambda _: True) -> dict[str, Seen]:
    """What all functions give, by their paths, and the attributes of tensors and packed sequences."""
    torch.manual_seed(0)
    known = {"attached": list(trials()), "others": [*trials(detached), *trials(integers)]}
    found: dict[str, Seen] = {}
    for path, space in SPACES.items():
        for name, function in functions(space).items():
            if only(f"{path}.{name}"):
                found[f"{path}.{name}"] = look(name, function, known)
    x = attached(3, 3)
    receivers = {
        "Tensor": (torch.Tensor, [x, x.to_sparse(), torch.complex(x, x), x[0, 0]]),
        "PackedSequence": (
            rnn.PackedSequence,
            [rnn.pack_sequence([attached(2, 3), attached(1, 3)], enforce_sorted=False)],
        ),
    }
    for path, (kind, things) in receivers.items():
        for name in dir(kind):
            if name.startswith("_") or name in _NOT_CALLED or callable(getattr(kind, name)):
                continue
            seen = found[f"{path}.{name}"] = Seen()
            for thing in things:
                with contextlib.suppress(Exception):
                    seen.single.add(sort_of(getattr(thing, name)))
    return found | distributions() if only("Distribution") else found


def distributions() -> dict[str, Seen]:
    """What the methods and attributes of distributions give, all classes together."""
    found: dict[str, Seen] = {}
    p, vector, matrix = attached(), attached(3), attached(3, 3)
    some = torch.distributions.Normal(vector, vector)
    given: list[tuple[Any, ...]] = [
        *((p,), (p, p), (p, p, p), (vector,), (vector, vector), (vector, matrix), (matrix,), (3, vector), (p, matrix)),
        *((some, 1), (some, [torch.distributions.ExpTransform()]), (torch.distributions.Categorical(vector), some)),
        *((vector, matrix, vector), (vector, attached(3, 1), vector), (3, p), (5.0, matrix)),
    ]
    for kind in torch.distributions.__all__:
        cls = getattr(torch.distributions, kind)
        if not isinstance(cls, type) or not issubclass(cls, torch.distributions.Distribution):
            continue
        for args in given:
            try:
                one = cls(*args, validate_args=False)
                drawn = one.sample()
            except Exception:
                continue
            for name in dir(one):
                if name.startswith("_"):
                    continue
                seen = found.setdefault(f"Distribution.{name}", Seen())
                for options in ((), ((2,),), (2,), (drawn,), (drawn * 1.0,)):
                    with contextlib.suppress(Exception):
                        value = getattr(one, name)
                        seen.single.add(sort_of(value(*options) if callable(value) else value))
    return found


# the table


def texts(found: Mapping[str, Seen]) -> str:
    """The table as a module."""
    sorts: dict[str, dict[str, list[str]]] = {}
    parts: dict[str, list[str]] = {}
    sometimes: list[str] = []
    for path, seen in found.items():
        space, _, name = path.rpartition(".")
        if seen.kind():
            sorts.setdefault(seen.kind(), {}).setdefault(space, []).append(name)
        elif seen.parts():
            parts.setdefault(seen.parts(), []).append(path)
            sometimes += [path] if seen.single else []
    lines = [_HEAD.format(version=torch.__version__.split("+")[0].rpartition(".")[0])]
    for sort, title, said in _TITLES:
        lines.append(f"{title} = {{")
        for space, names in sorts[sort].items():
            lines += [f'    "{space}": words(\n        """', *_filled(sorted(names), 8), '        """\n    ),']
        lines += ["}", f'"""{said}"""', ""]
    lines.append("_PATTERNS = {")
    for pattern, paths in parts.items():
        lines += [f'    "{pattern}": """', *_filled(sorted(paths), 8), '    """,']
    lines += ["}", _TAIL, "SOMETIMES = words(", '    """', *_filled(sorted(sometimes), 4), '    """', ")"]
    lines += [
        '"""Those of them that may give one alone, as their arguments say."""',
        "",
        "OF_TENSORS = words(",
        '    """',
    ]
    lines += [*_filled(sorted(n for n in dir(torch.Tensor) if not n.startswith("_")), 4), '    """', ")"]
    return "\n".join([*lines, '"""All that tensors have by a public name."""', ""])


def _filled(words: Iterable[str], indent: int) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(" ".join(words), 118, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)


_HEAD = '''\
"""What cuts the graph in torch {version}; written by ``python -m tests.graph.cuts``, and not by hand.

By where it stands: a module of torch, ``Tensor`` and other classes with their methods and attributes. What is in none
of these tables gives something attached of what is attached.
"""

from __future__ import annotations

from codemods.terms.words import words
'''

_TITLES = (
    (PLAIN, "PLAIN", "No tensor comes out of these."),
    (INDEX, "INTEGERS", "Integers or booleans come out of these."),
    (FRESH, "FRESH", "Other tensors without history come out of these, whatever goes in."),
)
_TAIL = '''\
PARTS = {
    path: tuple((name, sort) for name, _, sort in (part.partition(":") for part in pattern.split()))
    for pattern, paths in _PATTERNS.items()
    for path in paths.split()
}
"""What gives several, some of them cut: the name of each element, or its place, and its sort where it is cut: ``i`` for
integers, ``f`` for other tensors, ``p`` for what is none. Some give only the first of them."""
'''


def main() -> None:
    """Write the table."""
    warnings.simplefilter("ignore")
    TABLE.write_text(texts(tables()))


if __name__ == "__main__":
    main()
