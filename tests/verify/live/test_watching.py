"""verify.watch(): what it sees, what it says, and that it leaves nothing behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import verify  # noqa: E402
from tests.verify import loops  # noqa: E402
from verify.live import observer, watching  # noqa: E402

pytestmark = pytest.mark.usefixtures("few_objects")


def plugs() -> list[object]:
    """Everything in torch that a watch hooks up to, by identity."""
    from torch.nn.modules import module
    from torch.optim import optimizer

    return [
        torch.autograd._engine_run_backward,
        torch.autograd.graph._engine_run_backward,
        getattr(module, "_has_any_global_hook", None),
        *module._global_forward_hooks.values(),
        *module._global_forward_pre_hooks.values(),
        *module._global_forward_hooks_always_called,
        *optimizer._global_optimizer_post_hooks.values(),
    ]


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Whatever a test does, torch is the same afterwards."""
    before = plugs()
    yield
    after = plugs()
    assert len(before) == len(after)
    assert all(old is new for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("loop", loops.FLAT, ids=lambda loop: loop.__name__)
def test_sound_loops_are_silent(loop: loops.Loop) -> None:
    with verify.watch() as run:
        loop(16)
    run.assert_flat(at_least=16)
    assert run.leak is False
    assert (run.holders, run.growth) == ((), 0.0)
    assert run.clock == loops.FLAT[loop]
    assert run.steps == (32 if loop is loops.gan else 16)
    assert len(run.live) == (run.steps if run.backwards else 0)
    if loop in (loops.by_hand, loops.by_grad):
        with pytest.raises(verify.TooFewSteps, match=r"^0 calls of modules"):
            run.assert_no_wasted_forwards()
    elif loop is not loops.validation_reduced:
        run.assert_no_wasted_forwards()


@pytest.mark.parametrize("loop", loops.LEAKS, ids=lambda loop: loop.__name__)
def test_growth_is_counted_and_blamed(loop: loops.Loop) -> None:
    clock, nodes, holder = loops.LEAKS[loop]
    with verify.watch() as run:
        loop(16)
    # The loop's variables are gone; what a look on the way saw is not.
    assert (run.leak, run.growth, run.clock) == (True, nodes, clock)
    with pytest.raises(AssertionError) as caught:
        run.assert_flat()
    told = str(caught.value)
    assert told.startswith(f"the graph grew by {nodes} nodes a {clock} over 16 {clock}s (")
    assert f"held by {holder}" in told
    assert str(run.holders[0]) == holder


def test_variables_of_the_block_itself_are_named() -> None:
    losses = []
    with verify.watch() as run:
        net, optimizer = loops._net()
        for _ in range(12):
            losses.append(loops._step(net, optimizer))
        with pytest.raises(AssertionError, match="12 steps"):
            run.assert_flat()
    assert run.steps == 12
    (holder,) = run.holders
    assert holder == watching.Holder("losses[*]", "test_variables_of_the_block_itself_are_named", 84, 7, 12)


def test_what_was_there_before_is_no_growth() -> None:
    net, optimizer = loops._net()
    kept = [loops._step(net, optimizer) for _ in range(30)]
    with verify.watch() as run:
        for _ in range(12):
            loops._step(net, optimizer)
    run.assert_flat()
    assert len(kept) == 30


def test_garbage_is_no_growth() -> None:
    net, optimizer = loops._net()
    gc.disable()
    try:
        with verify.watch() as run:
            for _ in range(12):
                cycle: list[Any] = [loops._step(net, optimizer)]
                cycle.append(cycle)
    finally:
        gc.enable()
    run.assert_flat()


@pytest.mark.parametrize("loop", [loops.plain, loops.validation, loops.by_hand], ids=lambda loop: loop.__name__)
def test_too_few_steps_are_no_pass(loop: loops.Loop) -> None:
    with verify.watch() as run:
        loop(7)
    assert run.leak is None
    with pytest.raises(verify.TooFewSteps, match=r"7 (step|forward|backward)s seen; it takes 8"):
        run.assert_flat()
    assert issubclass(verify.TooFewSteps, ValueError)
    assert not issubclass(verify.TooFewSteps, AssertionError)


def test_nothing_at_all_is_no_pass() -> None:
    with verify.watch() as run:
        pass
    for ask in (run.assert_flat, run.assert_no_wasted_forwards):
        with pytest.raises(verify.TooFewSteps, match=r"^0 "):
            ask()
    assert (run.steps, run.backwards, run.live, run.bytes, run.forwards) == (0, 0, (), (), ())


def test_an_inner_loop_is_no_series_of_steps() -> None:
    with verify.watch() as run:
        loops.one_long_inner_loop(16)
    assert (run.steps, run.backwards) == (0, 16)
    with pytest.raises(verify.TooFewSteps):
        run.assert_flat()


def test_eight_steps_are_enough_to_see_growth() -> None:
    assert watching.FEWEST == 8
    with verify.watch() as run:
        loops.loss_list(8)
    assert run.leak is True
    with pytest.raises(ValueError, match="fewer than 8 steps"):
        run.assert_flat(at_least=7)
    with pytest.raises(AssertionError):
        # Growth is certain, however many more steps were asked for.
        run.assert_flat(at_least=100)


def test_steps_by_hand() -> None:
    weight, kept = torch.ones(3, requires_grad=True), []
    with verify.watch() as run:
        for _ in range(10):
            # No module, no backward, no optimizer.
            kept.append(weight.exp().sum())
            run.step()
        assert (run.steps, run.clock) == (10, "hand")
        with pytest.raises(AssertionError, match=r"2 nodes a step over 10 steps .*; held by `kept"):
            run.assert_flat()
        kept.clear()
    with pytest.raises(RuntimeError, match="after the end"):
        run.step()


def test_steps_by_hand_take_over_from_optimizers() -> None:
    # Outputs of one batch an epoch pile up over the epochs, not over the steps.
    net, optimizer = loops._net()
    kept = []
    with verify.watch() as by_step:
        for _ in range(10):
            for _ in range(6):
                loss = loops._step(net, optimizer)
            kept.append(loss)
    by_step.assert_flat()
    kept.clear()
    with verify.watch() as run:
        for _ in range(10):
            for _ in range(6):
                loss = loops._step(net, optimizer)
            kept.append(loss)
            run.step()
    assert run.steps == 10
    with pytest.raises(AssertionError, match="held by `kept"):
        run.assert_flat()


def test_wasted_forwards_are_named_with_their_calls() -> None:
    net, optimizer = loops._net()
    with verify.watch() as run:
        for _ in range(8):
            loops._step(net, optimizer)
        outputs = [net(torch.randn(3, 4)) for _ in range(5)]
        del outputs
    run.assert_flat()
    used, wasted = run.forwards
    assert (used.calls, used.used, used.wasted) == (8, 8, False)
    assert run.wasted_forwards == (wasted,)
    assert (wasted.calls, wasted.used, wasted.peak) == (5, 0, 5)
    with pytest.raises(AssertionError) as caught:
        run.assert_no_wasted_forwards()
    told = str(caught.value)
    assert told.startswith("5 forwards at tests/verify/live/test_watching.py:")
    assert " built a graph that no backward used, 5 of them alive at once; torch.no_grad() saves it" in told
    assert "1 forward" not in told


def test_few_unused_forwards_are_a_matter_of_choice() -> None:
    net, optimizer = loops._net()
    with verify.watch() as run:
        net(torch.zeros(1, 4))
        for _ in range(8):
            loops._step(net, optimizer)
    run.assert_no_wasted_forwards()
    with pytest.raises(AssertionError, match=r"^1 forward at"):
        run.assert_no_wasted_forwards(at_least=1)
    with pytest.raises(ValueError, match="1 or more"):
        run.assert_no_wasted_forwards(at_least=0)


def test_errors_of_the_block_pass_and_what_was_seen_stays() -> None:
    def train() -> None:
        losses = []
        net, optimizer = loops._net()
        for _ in range(11):
            losses.append(loops._step(net, optimizer))
        raise KeyboardInterrupt

    run = verify.watch()
    with pytest.raises(KeyboardInterrupt), run:
        train()
    assert run.steps == 11
    # From the frames of the traceback, which are all that is left of the loop.
    assert str(run.holders[0]) == "`losses[*]` in train() (11 tensors)"
    # Nothing is left on.
    with verify.watch():
        pass


def test_failing_backwards_are_no_steps() -> None:
    with verify.watch() as run:
        loss = torch.ones(3, requires_grad=True).exp().sum()
        loss.backward()
        for _ in range(10):
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()
    assert (run.backwards, run.steps) == (1, 1)


def test_one_watch_at_a_time() -> None:
    with verify.watch() as outer:
        with pytest.raises(RuntimeError, match="Another watch is on"), verify.watch():
            pass
        failed: list[BaseException] = []

        def elsewhere() -> None:
            try:
                with verify.watch():
                    pass
            except RuntimeError as error:
                failed.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert len(failed) == 1
        loops.plain(9)
    outer.assert_flat()
    with pytest.raises(RuntimeError, match="used once"), outer:
        pass


def test_a_watch_that_never_started_says_so() -> None:
    run = verify.watch()
    assert repr(run) == "<Watch: not started>"
    for ask in (run.assert_flat, run.assert_no_wasted_forwards, run.report, run.step):
        with pytest.raises(RuntimeError, match="never started"):
            ask()


def test_numbers_do_not_change() -> None:
    def train() -> list[Any]:
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.LSTM(4, 5, batch_first=True))
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(9):
            loss = torch.nn.functional.dropout(net(torch.randn(2, 6, 4))[0], 0.3).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [*net.parameters(), torch.rand(3)]

    alone = train()
    with verify.watch() as run:
        watched = train()
    run.assert_flat()
    assert all(torch.equal(one, other) for one, other in zip(alone, watched, strict=True))


def test_an_error_of_the_watch_is_no_error_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise LookupError("out of order")

    with verify.watch() as run:
        monkeypatch.setattr(run._seen._memory, "look", broken)
        loops.plain(12)
    assert run.leak is None
    for ask in (run.assert_flat, run.assert_no_wasted_forwards):
        with pytest.raises(RuntimeError, match="could not go on watching the graph: LookupError: out of order"):
            ask()
    assert "out of order" in run.report()


def test_reports() -> None:
    with verify.watch() as run:
        assert repr(run) == "<Watch: 0 forwards so far>"
        loops.plain(9)
        assert repr(run) == "<Watch: 9 steps so far>"
        first = run.report().splitlines()
    assert first[0] == "9 steps, 9 backwards"
    assert first[1] == f"the graph stayed flat ({run.live[-1]} nodes alive at the last)"
    assert repr(run).splitlines()[:2] == first[:2]
    with verify.watch() as run:
        loops.validation_kept(16)
    counted, grown, wasted = run.report().splitlines()[:3]
    assert counted == "16 forwards, 0 backwards"
    assert grown.startswith("the graph grew by 5 nodes a forward")
    assert wasted.startswith("16 forwards at tests/verify/loops.py:")
    with verify.watch() as run:
        loops.by_hand(2)
    counted, grown = run.report().splitlines()[:2]
    assert (counted, grown) == ("2 backwards", "too few steps to tell whether the graph grows (that takes 8 backwards)")


def test_bytes_are_told_where_the_c_library_tells() -> None:
    with verify.watch() as run:
        loops.plain(9)
    if observer.Memory().look()[0]:
        assert len(run.bytes) == 9
        assert all(run.bytes)
        assert "bytes in use: " in run.report()
    else:
        assert run.bytes == ()


class Keeper:
    __slots__ = ("output",)

    def __init__(self, output: Any) -> None:
        self.output = output


@pytest.mark.parametrize(("keep", "kind"), [(Keeper, r"\S+\.Keeper"), (list, r"builtins\.list")])
def test_a_root_of_ones_own(keep: Any, kind: str, tmp_path: Path) -> None:
    net = torch.nn.Linear(3, 1)
    kept = []
    with verify.watch(root=tmp_path) as run:
        for _ in range(8):
            kept.append(keep([net(torch.ones(1, 3))] if keep is list else net(torch.ones(1, 3))))
    (row,) = run.forwards
    # None of this is in there, so the blame can only go to types.
    assert row.site is None
    with pytest.raises(AssertionError, match=rf"over 8 forwards; held by something of type {kind} \(3 tensors\)"):
        run.assert_flat()


CELLS = [
    "import torch, verify; net = torch.nn.Linear(3, 1); history = []",
    "with verify.watch() as run:\n    for _ in range(12):\n        history.append(net(torch.ones(2, 3)).sum())\n"
    "        history[-1].backward()\n",
    "try:\n    run.assert_flat()\nexcept AssertionError as error:\n    told = str(error)\n",
]


@pytest.mark.parametrize("name", ["<ipython-input-{}-0f3a>", "/tmp/ipykernel_77/{}.py", "<stdin>"])
def test_cells_of_a_notebook_are_the_users_code(name: str) -> None:
    cells: dict[str, Any] = {"__name__": "__main__"}
    for number in range(len(CELLS)):
        exec(compile(CELLS[number], name.format(number), "exec"), cells)
    assert cells["told"] == (
        f"the graph grew by 3 nodes a backward over 12 backwards ({name.format(1)}:4); "
        "held by `history[*]` at module level (12 tensors)"
    )


@pytest.mark.slow
def test_cells_of_ipython_have_their_numbers() -> None:
    pytest.importorskip("IPython")
    script = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for cell in {CELLS!r}: shell.run_cell(cell, store_history=True).raise_error()\n"
        "print(shell.user_ns['told'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1:] == [
        "the graph grew by 3 nodes a backward over 12 backwards (In[2]:4); "
        "held by `history[*]` at module level (12 tensors)"
    ], done.stderr


def test_importing_verify_imports_next_to_nothing() -> None:
    script = "import sys, verify; print(sorted({name.partition('.')[0] for name in sys.modules} & {'torch', 'libcst'}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
    script = script.replace("import sys, verify;", "import sys, verify; verify.watch();")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
    with pytest.raises(AttributeError, match="no attribute 'wach'"):
        verify.wach  # noqa: B018


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="newer, which cannot be imported"), verify.watch():
        pass


def test_with_an_old_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "1.13.1")
    with pytest.raises(ImportError, match=r"this is 1\.13\.1"), verify.watch():
        pass


@pytest.mark.slow
def test_a_watch_and_the_probe_see_the_same() -> None:
    from tests.verify.probe.tools import probe

    script = """
        import torch, verify
        net, losses = torch.nn.Linear(3, 1), []
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        with verify.watch() as run:
            for _ in range(18):
                losses.append(net(torch.ones(2, 3)).sum())
                losses[-1].backward()
                optimizer.step()
        print(run.live, run.leak, run.holders[0].name)
    """
    record, done = probe(script)
    assert done.stderr == ""
    assert done.stdout.strip() == f"{tuple(step.live for step in record.steps)} True losses[*]"
    assert record.census is not None
    assert record.census.leak
    assert [(row.calls, row.used) for row in record.forwards] == [(18, 18)]


@pytest.mark.slow
def test_compiled_modules_are_watched() -> None:
    net, optimizer = loops._net()
    compiled = torch.compile(net, backend="eager")
    losses = []
    with verify.watch() as run:
        for _ in range(10):
            losses.append(loops._step(compiled, optimizer))
        with pytest.raises(AssertionError, match="held by `losses"):
            run.assert_flat()
        assert sum(row.used for row in run.forwards) == sum(row.calls for row in run.forwards)
