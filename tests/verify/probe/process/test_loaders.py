"""The cap on DataLoaders: who is stopped, who is not, and that what comes before it is what always came."""

import json
from textwrap import dedent, indent

import pytest

from tests.verify.probe.tools import forked, forked_plain, probe
from verify.measured.records import Record
from verify.measured.steered import KnobKind

#: Twenty items in five shuffled batches.
LOADER = """
import json
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.arange(20.0))
loader = DataLoader(data, batch_size=4, shuffle=True)
"""


def test_an_epoch_ends_after_the_cap_and_its_batches_are_those_that_always_came() -> None:
    script = LOADER + "print(json.dumps([batch[0].tolist() for batch in loader]))\n"
    record, done = forked(script, batches=2)
    whole = json.loads(forked_plain(script).stdout)
    assert json.loads(done.stdout) == whole[:2]
    assert len(whole) == 5
    assert [(loader["length"], loader["cap"]) for loader in record.capped] == [(5, 2)]


def test_a_site_is_told_once_however_many_epochs_it_runs() -> None:
    epochs = "for epoch in range(3):\n    for batch in loader:\n        pass\nfor batch in loader:\n    pass\n"
    record, _done = forked(LOADER + epochs, batches=2)
    lines = (LOADER + epochs).splitlines()
    sites = [loader["site"] for loader in record.capped]
    assert [(site[0], lines[site[1] - 1].strip(), site[2]) for site in sites] == [
        ("train.py", "for batch in loader:", "<module>")
    ] * 2
    assert sites[0] != sites[1]


def test_the_length_stays_for_schedules_and_averages() -> None:
    _record, done = forked(LOADER + "print(len(loader), sum(1 for _ in loader), len(loader))\n", batches=2)
    assert done.stdout.split() == ["5", "2", "5"]


def test_two_runs_with_one_cap_shuffle_all_epochs_alike() -> None:
    script = LOADER + "print([[batch[0].tolist() for batch in loader] for _ in range(3)], torch.rand(2))\n"
    assert forked(script, batches=2)[1].stdout == forked(script, batches=2)[1].stdout


@pytest.mark.parametrize("batches", [None, 5, 50])
def test_a_cap_that_is_not_reached_is_not_told(batches: int | None) -> None:
    record, done = forked(LOADER + "print(sum(1 for _ in loader))\n", batches=batches)
    assert done.stdout.split() == ["5"]
    assert record.capped == []


@pytest.mark.parametrize(
    ("made", "sizes"),
    [
        ("DataLoader(data, batch_size=6)", [2, 2]),
        ("DataLoader(data, 6, drop_last=True)", [2, 2]),
        ("DataLoader(data, batch_size=1)", [1, 1]),
        ("DataLoader(data, batch_size=None)", [0, 0]),
        # what samples batches by itself has its own size
        ("DataLoader(data, batch_sampler=[[0, 1, 2], [3, 4, 5]])", [3, 3]),
    ],
)
def test_batches_are_made_smaller(made: str, sizes: list[int]) -> None:
    script = f"{LOADER}loader = {made}\nprint([b[0].numel() if b[0].dim() else 0 for b in loader][:2])\n"
    record, done = forked(script, batches=None, batch=2)
    assert json.loads(done.stdout) == sizes
    # The first of the file takes four.
    line = LOADER.splitlines().index("loader = DataLoader(data, batch_size=4, shuffle=True)") + 1
    assert record.knobs[0] == (KnobKind.BATCH, "train.py", line, 2)
    assert len(record.knobs) == 1 + ("6" in made)


def test_batches_have_their_size_where_nobody_asks_for_smaller_ones() -> None:
    record, done = forked(LOADER + "print(len(next(iter(loader))[0]))\n", batches=2)
    assert done.stdout.split() == ["4"]
    assert record.knobs == []


def test_a_loader_without_a_length_ends_too() -> None:
    script = """
    class Stream(IterableDataset):
        def __iter__(self):
            value = 0
            while True:
                yield value
                value += 1

    for batch in DataLoader(Stream(), batch_size=3):
        print(batch.tolist())
    """
    record, done = forked(LOADER + dedent(script), batches=2)
    assert done.stdout == "[0, 1, 2]\n[3, 4, 5]\n"
    assert [loader["length"] for loader in record.capped] == [None]


#: Loops over a loader; each is the body of a function and counts its batches.
STOPPED = {
    "enumerate": """
        for index, batch in enumerate(loader):
            count += 1
    """,
    "zip": """
        for batch, again in zip(loader, loader):
            count += 1
    """,
    "list": """
        count = len(list(loader))
    """,
    "default": """
        iterator = iter(loader)
        while next(iterator, None) is not None:
            count += 1
    """,
    "handler": """
        iterator = iter(loader)
        while True:
            try:
                next(iterator)
            except StopIteration:
                break
            count += 1
    """,
    "iterator_around_it": """
        class Around:
            def __iter__(self):
                self.iterator = iter(loader)
                return self

            def __next__(self):
                return next(self.iterator)

        for batch in Around():
            count += 1
    """,
    "yield_from": """
        def through():
            yield from loader

        for batch in through():
            count += 1
    """,
}
GOES_ON = {
    "range_of_the_length": """
        iterator = iter(loader)
        for index in range(len(loader)):
            next(iterator)
            count += 1
    """,
    "generator": """
        def steps():
            iterator = iter(loader)
            for index in range(5):
                yield next(iterator)

        for batch in steps():
            count += 1
    """,
    "raises_another_error": """
        iterator = iter(loader)
        for index in range(5):
            try:
                next(iterator)
            except StopIteration as error:
                raise ValueError("too short") from error
            count += 1
    """,
    "handler_of_everything": """
        iterator = iter(loader)
        try:
            for index in range(5):
                next(iterator)
                count += 1
        except Exception as error:
            count = -1
    """,
}


@pytest.fixture(scope="module")
def loops() -> tuple[Record, dict[str, int]]:
    """One run of all loops in one child, and how many batches each saw."""
    script = LOADER + "counts = {}\n"
    for name, loop in {**STOPPED, **GOES_ON}.items():
        body = "count = 0\n" + dedent(loop) + f"counts[{name!r}] = count\n"
        script += f"def loop_{name}():\n{indent(body, '    ')}loop_{name}()\n"
    record, done = probe(script + "print(json.dumps(counts))\n", batches=2)
    assert record.error is None, done.stderr
    return record, json.loads(done.stdout)


@pytest.mark.parametrize("loop", STOPPED)
def test_whoever_expects_an_end_is_stopped(loops: tuple[Record, dict[str, int]], loop: str) -> None:
    assert loops[1][loop] == 2


@pytest.mark.parametrize("loop", GOES_ON)
def test_an_end_that_would_be_an_error_does_not_come(loops: tuple[Record, dict[str, int]], loop: str) -> None:
    record, counts = loops
    assert counts[loop] == 5
    assert f"loop_{loop}" not in {loader["site"][2] for loader in record.capped}


@pytest.mark.slow
def test_a_stopped_iterator_stays_at_its_end() -> None:
    script = "iterator = iter(loader)\nfor batch in iterator:\n    pass\nprint(sum(1 for _ in iterator))\n"
    assert forked(LOADER + script, batches=2)[1].stdout.split() == ["0"]


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_serve_the_next_epoch_or_are_gone(persistent: bool) -> None:
    script = f"""
    import multiprocessing

    loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=2, persistent_workers={persistent})
    print(json.dumps([[batch[0].tolist() for batch in loader] for _ in range(3)]))
    print(len(multiprocessing.active_children()))
    """
    record, done = probe(LOADER + dedent(script), batches=2)
    epochs, children = done.stdout.splitlines()
    assert [len(epoch) for epoch in json.loads(epochs)] == [2, 2, 2]
    # Nothing that was fetched ahead in one epoch is served in the next: each is a shuffle of all items.
    assert all(len({item for batch in epoch for item in batch}) == 8 for epoch in json.loads(epochs))
    assert int(children) == (2 if persistent else 0)
    assert record.end == "completed"


@pytest.mark.slow
def test_workers_that_fetch_ahead_do_not_change_the_first_epoch() -> None:
    script = LOADER.replace("shuffle=True", "shuffle=True, num_workers=1")
    script += "print(json.dumps([batch[0].tolist() for batch in loader]))\n"
    assert json.loads(forked(script, batches=2)[1].stdout) == json.loads(forked_plain(script).stdout)[:2]
