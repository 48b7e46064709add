"""One watched process from start to end: puts the parts together and writes the events in order."""

from __future__ import annotations

import atexit
import os
import platform
import sys
import time
import typing
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from . import ambient, compiling, errors, hooks, knobs, settings, stops
from .backward import Backwards, Call
from .drive import Drive
from .files import Files
from .forwards import Forwards
from .graph import Graph
from .growth import Growth
from .guard import Clock, Part
from .leaving import Leaving, modules_alive
from .memory import Memory
from .observing import Observer
from .output import Recorder
from .params import Parameters
from .prints import Prints
from .processes import frames_of, outward, role, version
from .reach import Reach
from .seeds import Seeds
from .shapes import OLDEST, Shapes
from .sites import Tree, key
from .state import State
from .steps import Calls, Optimizers, Steps, parameters
from .tensors import generators, loss
from .variables import held
from .watchdog import Watchdog

#: How many times the wanted steps a run goes on for lines that have not run: a teacher is trained before the student, a
#: report comes at the end of the epoch.
_PATIENCE = 5
#: Of the time that a run has, how much it may spend waiting for them.
_SHARE = 0.5


class Session:
    """The probe of this process; ``config`` as :func:`start` describes it."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._wanted: int | None = config.get("steps")
        self._clock = Clock()
        self._tree = Tree(config["root"])
        self._parts: dict[str, Part] = {}
        eager, own = role()
        self._recorder = Recorder(config["records"], eager, own, self._about)
        self._seeds = Seeds(config.get("seed"), config.get("replay"), self._tree, self._write)
        lines = [config.get(name) or [] for name in ("also", "parts")]
        self._reach = Reach(config.get("watch") or [], self._tree, self._write, *lines)
        self._drive = Drive(config, self._tree, self._write)
        self._observer = Observer(
            self._write,
            self._part("what is given to what is left out"),
            lambda: self._reach.begun,
            lambda: self._backwards if self._torch_seen else None,
        )
        wanted = {(path, line) for group in config.get("watch") or [] for path, line in group}
        self._leaving = Leaving(
            config.get("left") or [],
            self._write,
            self._observer,
            self._quiet,
            modules_alive,
            wanted,
            self._tree.loaded,
            self._tree.relative,
            bool(config.get("again")),
        )
        self._driving = False
        self._files = Files(config["root"], config["records"], self._write, self._part("files"))
        self._watchdog: Watchdog | None = None
        self._memory: Memory | Shapes
        self._status: int | None = None
        self._ended = False
        self._cuda = False
        self._torch_seen = False
        self._index = 0
        self._doctor: Any = None

    # The start.

    def start(self) -> None:
        """Hook everything up; what needs torch waits until it is imported."""
        hooks.on_error(self._part("what the script imports").note)
        settings.before_torch(self._config)
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self._at_exit)
        self._wrap_exit()
        self._wrap_leaving()
        with self._part("the seeds"):
            self._seeds.install()
        if self._config.get("knobs"):
            knobs.install(self._write)
        if self._config.get("params", True):
            with self._part("what is printed"):
                Prints(self._write, self._part("what is printed")).install()
            with self._part("files"):
                self._files.install()
        with self._part("missing data"):
            from . import standins

            standins.install(self._config, self._write, self._observer.see)
        self._leaving.install()
        with self._part("the lines that run"):
            self._reach.install()
        if self._config.get("watchdog"):
            self._watchdog = Watchdog(float(self._config["watchdog"]), self._hung)
            self._watchdog.start()
        hooks.when_imported("torch", self._torch_imported)

    def _torch_imported(self) -> None:
        import torch

        self._torch_seen = True
        self._tree.note_main()
        if version(torch.__version__) < (2, 0):
            text = f"This command runs torch {torch.__version__}; verify needs torch 2.0 or newer."
            self._write({"event": "note", "text": text})
            self._end("unsupported")
            return
        with self._part("the settings"):
            settings.after_torch(self._config)
        if self._recorder.opened:
            # Something was to be told before torch was there to be described.
            self._recorder.restart()
        elif self._recorder.eager:
            self._recorder.open()
        with self._part("the seeds"):
            self._seeds.torch()
        with self._part("the device"):
            from . import devices

            devices.install(self._config, self._write)
        with self._part("the loaders"):
            from . import loaders

            loaders.install(self._config, self._write)
        with self._part("errors in threads"):
            self._wrap_threads()
        if self._config.get("params", True):
            with self._part("files"):
                self._files.torch(Parameters())
        self._steps = Steps(self._stepped, self._begun)
        self._optimizers = Optimizers()
        self._counters()
        if self._config.get("shapes"):
            self._by_shapes(torch.__version__)
        with self._part("backward"):
            self._backwards = Backwards(self._before, self._after, self._refused)
            self._backwards.install()
        with self._part("the steps"):
            self._steps.install()
            self._optimizers.install()
        with self._part("the forwards"):
            self._forwards = Forwards(
                self._tree.site,
                lambda: self._backwards.running > 0,
                self._forwards_failed,
                returned=self._returned,
                raised=self._raised,
            )
            self._forwards.install()
        with self._part("settings of the process"):
            ambient.install()
        with self._part("torch.compile"):
            compiling.hide(__name__.rpartition(".")[0])
        if self._config.get("doctor") is not None:
            with self._part("the diagnosis"):
                from .doctor import Doctor

                plan, growth = self._config["doctor"], self._growth
                self._doctor = Doctor(plan, self._tree, self._write, self._clock, self._optimizers, growth)
                self._doctor.install()

    def _by_shapes(self, torch: str) -> None:
        """Go on without memory, or not at all: the model may fit nowhere."""
        part = self._part("shapes")
        with part:
            if version(torch) < OLDEST:
                raise RuntimeError(f"torch {torch} is older than {OLDEST[0]}.{OLDEST[1]}")
            shapes = Shapes(self._write, self._tree)
            shapes.install()
            self._memory = shapes
        if not part.on:
            self._end("unsupported")
            self._exit(1)

    def _counters(self) -> None:
        self._graph = Graph()
        self._growth = Growth(self._graph, self._tree)
        self._memory = Memory()
        self._parameters = Parameters()
        self._state = State(self._parameters, self._optimizers, self._steps, self._tree, self._write)
        self._gradients: dict[int, Any] = {}
        self._calls = Calls()
        self._sites: dict[Any, int] = {}
        self._index = 0

    def _forked(self) -> None:
        """This is a new process; it is silent unless it calls backward itself."""
        try:
            self._watchdog = None
            self._status = None
            self._recorder = Recorder(self._config["records"], False, "child", self._about, self._recorder)
            self._seeds.pid = os.getpid()
            if self._torch_seen and not self._ended:
                self._counters()
                self._backwards.pid = self._steps.pid = self._forwards.pid = os.getpid()
                self._steps.restart()
                self._forwards.restart()
        except Exception as error:
            self._part("a forked process").note(error)

    # What happens while the script runs.

    def _before(self, call: Call) -> None:
        event: dict[str, Any] = {"event": "backward", "index": self._index}
        self._index += 1
        event.update(site=None, call=0, time=0.0, losses=[], rng="", retain=call.retain, create=call.create)
        event.update(grad=call.grad, nodes=0, live=0, seconds=0.0, bytes=0, peak=0, error=None)
        call.notes = event
        part = self._part("backward")
        if part.on:
            with part:
                site = self._tree.site(call.frame)
                self._sites[key(site)] = self._sites.get(key(site), 0) + 1
                event.update(site=site, call=self._sites[key(site)])
                event.update(losses=[loss(output) for output in call.outputs if hasattr(output, "numel")])
        if not self._steps.total:
            # From the first step on, steps tell.
            self._draw(event)
        self._look(event)
        part = self._part("the graph")
        if part.on:
            with part:
                event.update(nodes=self._graph.walk(call.outputs))
        self._diagnose("before", call, event["site"])
        event.update(time=self._clock.now(), seconds=time.perf_counter())

    def _after(self, call: Call) -> None:
        event = call.notes
        event.update(seconds=time.perf_counter() - event["seconds"])
        self._diagnose("after", call, event["site"])
        part = self._part("backward")
        if not part.on:
            return
        with part:
            if call.error is not None:
                event.update(error=errors.trouble(call.error))
            elif not self._steps.total:
                self._wait(event, self._index)
            self._start_again()
            self._write(event)
            if call.error is not None:
                self._write({"event": "caught", "site": event["site"], "error": event["error"]})
                return
            if self._index == 1:
                self._end_with_worker()
            stepped = self._steps.total > 0
            if not stepped:
                self._cut(call.frame)
            site = key(event["site"])
            self._calls.count(site)
            if self._wanted and not self._driving and self._calls.enough(site, call.grad, self._patience(), stepped):
                self._leave("backwards", call.frame)

    def _refused(self, frame: FrameType | None, error: BaseException) -> None:
        with self._part("errors"):
            self._write({"event": "caught", "site": self._tree.site(frame), "error": errors.trouble(error)})

    def _begun(self, optimizer: Any, index: int, count: int) -> None:
        part = self._part("the gradients")
        self._diagnose("begun", optimizer, index)
        self._gradients.pop(index, None)
        if part.on and self._config.get("params", True):
            with part:
                self._gradients[index] = self._state.begun(optimizer, index)

    def _stepped(self, optimizer: Any, index: int, count: int, frame: FrameType | None) -> None:
        event: dict[str, Any] = {"event": "step", "optimizer": index, "name": type(optimizer).__name__, "call": count}
        event.update(site=None, time=0.0, live=0, params={"digest": "", "count": 0, "sums": ""}, bytes=0, peak=0)
        self._look(event)
        if self._config.get("params", True):
            part = self._part("the parameters")
            if part.on:
                with part:
                    event.update(params=self._parameters.read(parameters(optimizer)))
            part = self._part("learning rates")
            if part.on:
                with part:
                    event.update(grads=self._gradients.pop(index, None), rates=self._state.rates(optimizer, index))
            part = self._part("the buffers")
            if part.on:
                with part:
                    event.update(buffers=self._state.buffers())
            self._wait(event, self._steps.total)
            self._draw(event)
        self._diagnose("stepped", index, self._tree.site(frame), frame)
        with self._part("the steps"):
            event.update(site=self._tree.site(frame), time=self._clock.now())
            self._start_again()
            self._write(event)
            self._memory.reset()
            self._forwards.rewind()
            if self._steps.total == 1:
                self._growth.restart()
            self._cut(frame)
            if self._wanted and not self._driving and self._steps.enough(self._patience()):
                self._leave("steps", frame)

    def _returned(self, module: Any, output: Any, frame: FrameType, used: int) -> None:
        part = self._part("outputs")
        if part.on and self._config.get("params", True):
            with part:
                event = self._state.returned(module, output, frame, used)
                if event is not None:
                    self._write(event)

    def _raised(self, frame: FrameType, error: BaseException) -> None:
        with self._part("errors"):
            self._write({"event": "raised", "site": self._tree.site(frame), "error": errors.trouble(error)})

    def _wait(self, event: dict[str, Any], count: int) -> None:
        """Add the gradients that no step has taken yet."""
        part = self._part("the gradients")
        if part.on and self._config.get("params", True):
            with part:
                waiting = self._state.waiting_at(count)
                if waiting:
                    event.update(waiting=waiting)

    def _draw(self, event: dict[str, Any]) -> None:
        part = self._part("the random generators")
        if part.on and not self._config.get("shapes"):
            with part:
                event.update(rng=generators())

    def _patience(self) -> int:
        """How many steps are enough: more while lines that somebody asks about have not run yet, and there is time."""
        limit = float(self._config.get("watchdog") or 0)
        late = bool(limit) and self._clock.now() > _SHARE * limit
        return (self._wanted or 0) * (_PATIENCE if self._reach.waiting and not late else 1)

    def _look(self, event: dict[str, Any]) -> None:
        part = self._part("memory")
        if part.on:
            with part:
                used, peak = self._memory.look()
                event.update(bytes=used, peak=peak)
        part = self._part("the graph")
        if part.on:
            with part:
                event.update(live=self._graph.live())

    def _cut(self, frame: FrameType | None) -> None:
        part = self._part("the graph")
        if part.on:
            with part:
                self._growth.cut(frame)

    def _start_again(self) -> None:
        import torch

        cuda: Any = torch.cuda
        if not self._cuda and cuda.is_initialized():
            self._cuda = True
            self._recorder.restart()

    def _forwards_failed(self, error: Exception) -> None:
        self._part("the forwards").note(error)

    # The end.

    def _at_exit(self) -> None:
        if os.getpid() != self._recorder.pid:
            return
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if error is not None:
            at = error.__traceback__ or getattr(sys, "last_traceback", None)
            self._failed(error, at)
            self._end("raised", frames=frames_of(at))
            return
        if not self._status and self._drive_all(None):
            # The exit functions are at work already, and the status is that of the program.
            self._exit(1)
        if self._status is not None:
            self._end("exit")
        else:
            self._end("completed")

    def _drive_all(self, frame: FrameType | None) -> bool:
        """Call the functions that are to be called at the end; whether one of them raised and ends the run so."""
        # Not in processes that the program starts: they have not what it has.
        if not self._drive.waiting or not self._torch_seen or self._ended or not self._recorder.eager:
            return False
        import torch

        self._driving = True
        with torch.enable_grad():
            error = self._drive.run(outward(frame), self._came_back, self._silenced)
        if error is None:
            return False
        self._failed(error, error.__traceback__)
        self._end("raised", frames=frames_of(error.__traceback__))
        return True

    def _came_back(self, number: int, site: list[Any], call: int, values: Any, known: tuple[Any, ...]) -> None:
        # Its own backward is none of the script's.
        self._backwards.running += 1
        try:
            with self._part("outputs"):
                event = self._state.came_back(number, site, call, values, known)
                if event is not None:
                    self._write(event)
        finally:
            self._backwards.running -= 1

    def _silenced(self) -> Callable[..., list[Any]]:
        """In a forked process that tries something: nothing is written any more; what watches lines anew."""
        import torch

        # The other threads have not come along, and whoever waits for one waits for ever.
        torch.set_num_threads(1)
        self._recorder.pid = -1
        return self._reach.again

    def _quiet(self, tell: Callable[[dict[str, Any]], None]) -> None:
        """In a forked process that goes on by trial: all events go to ``tell``."""
        if self._torch_seen:
            self._silenced()
        self._recorder.pid, self._ended = -1, True
        self._recorder.write = tell  # type: ignore[assignment, method-assign]

    def _hung(self) -> None:
        import threading

        self._leave("watchdog", sys._current_frames().get(threading.main_thread().ident or 0))

    def _failed(self, error: BaseException, at: TracebackType | None) -> None:
        self._diagnose("failed", error, self._tree.traceback_site(at))
        with self._part("errors"):
            self._write(errors.uncaught(error, at, self._tree))
            if self._config.get("explore"):
                self._write(stops.event(error, at, self._tree))

    def _leave(self, reason: str, frame: FrameType | None) -> None:
        """End the process here and now: neither ``except:`` nor ``finally:`` nor workers can delay it."""
        failed = reason != "watchdog" and self._drive_all(frame)
        self._end(reason, frames=[] if frame is None else outward(frame))
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                # Closed, replaced or broken streams; the script would have the same trouble.
                continue
        self._exit(1 if failed else 0)

    def _end(self, reason: str, frames: list[FrameType] | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        if self._watchdog is not None and reason != "watchdog":
            self._watchdog.stop()
        with self._part("the lines that run"):
            self._reach.remove()
        if self._recorder.opened and self._config.get("params", True):
            with self._part("files"):
                self._files.end()
        if self._torch_seen and self._recorder.opened:
            if reason not in ("watchdog", "raised") and self._config.get("params", True):
                with self._part("what is left at the end"):
                    self._write(self._state.event())
                with self._part("what variables hold at the end"):
                    found = [frame for frame in frames or [] if self._mine(frame)]
                    self._write(held(self._tree, found, self._parameters))
            if self._index:
                with self._part("the census"):
                    self._write(self._growth.census([frame for frame in frames or [] if self._mine(frame)]))
            with self._part("the forwards"):
                self._write({"event": "forwards", "sites": self._forwards.sites()})
            self._diagnose("end", [frame for frame in frames or [] if self._mine(frame)])
        elif not self._torch_seen and "torch" in sys.modules:
            self._write({"event": "note", "text": "torch was imported in a way that the probe did not see."})
        if self._recorder.eager or self._recorder.opened:
            with self._part("the files"):
                self._write({"event": "loaded", "paths": self._tree.loaded()})
        event: dict[str, Any] = {"event": "end", "reason": reason}
        try:
            event["stack"] = [self._tree.site(frame) for frame in frames or [] if self._mine(frame)]
        except Exception:
            # Told of already, where the probe looked at frames before; and the end itself must be told.
            event["stack"] = []
        if reason == "exit":
            event["status"] = self._status
        with self._part("the end"):
            self._write({"event": "overhead", "seconds": self._clock.spent})
            self._write(event)

    def _mine(self, frame: FrameType) -> bool:
        return self._tree.relative(frame.f_code.co_filename) is not None

    def _end_with_worker(self) -> None:
        """Workers of multiprocessing leave without atexit; they have finalizers of their own."""
        process = sys.modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:
            from multiprocessing.util import Finalize

            Finalize(None, self._end, args=("completed",), exitpriority=0)

    # What it all stands on.

    def _diagnose(self, what: str, *args: Any) -> None:
        """Tell the doctor, where there is one, of what happens in this process."""
        if self._doctor is None or self._doctor.pid != os.getpid():
            return
        part = self._part(f"the diagnosis ({what})")
        if part.on:
            with part:
                getattr(self._doctor, what)(*args)

    def _part(self, name: str) -> Part:
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = Part(name, self._write, self._clock)
        return part

    def _write(self, event: dict[str, Any]) -> None:
        self._recorder.write(event)

    def _about(self) -> dict[str, Any]:
        torch = sys.modules.get("torch")
        about: dict[str, Any] = {"python": platform.python_version(), "torch": None, "device": "cpu", "cuda": None}
        about.update(threads=None, argv=list(getattr(sys, "argv", [])))
        if torch is not None and self._torch_seen:
            about.update(torch=str(torch.__version__), cuda=torch.version.cuda, threads=torch.get_num_threads())
            if self._config.get("shapes"):
                about.update(device="shapes alone")
            elif torch.cuda.is_initialized():
                about.update(device=torch.cuda.get_device_name())
        return about

    def _wrap_exit(self) -> None:
        original = sys.exit

        def leave(status: Any = None) -> None:
            # The exception itself cannot be seen any more once Python runs the exit functions.
            if os.getpid() == self._recorder.pid:
                self._status = 0 if status is None else status if isinstance(status, int) else 1
            original(status)

        leave.__name__ = leave.__qualname__ = "exit"
        leave.__doc__ = original.__doc__
        sys.exit = leave  # type: ignore[assignment]

    def _wrap_leaving(self) -> None:
        """``os._exit`` passes all that Python does at the end, so what is seen at the end is looked at before it."""
        original = self._exit = os._exit

        def _exit(status: int) -> typing.NoReturn:
            if os.getpid() == self._recorder.pid:
                self._end("left", frames=outward(sys._getframe(1)))
            original(status)

        os._exit = _exit

    def _wrap_threads(self) -> None:
        import threading

        original = threading.excepthook

        def excepthook(args: Any) -> None:
            if args.exc_type is not SystemExit and args.exc_value is not None and os.getpid() == self._recorder.pid:
                self._failed(args.exc_value, args.exc_traceback)
            original(args)

        threading.excepthook = excepthook
