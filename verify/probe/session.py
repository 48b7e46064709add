"""One watched process from start to end: puts the parts together and writes the events in order."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from .calls import stops
from .calls.drive import Drive
from .calls.leaving import leaving_of
from .calls.observing import Observer
from .diagnosing import Diagnosis
from .graph.backward import Backwards, Call
from .graph.forwards import Forwards
from .graph.steps import Calls, Optimizers, Steps
from .guarding import compiling, dynamo, hooks
from .guarding.guard import Clock, Part
from .lines import errors, knobs
from .lines.reach import Reach
from .lines.returned import Returned
from .lines.sites import Tree, key
from .process.exits import Exits, flush, last_error, with_worker
from .process.identity import about, frames_of, outward, role, version
from .process.output import Recorder
from .process.seeds import Seeds
from .process.shapes import shapes_alone
from .process.watchdog import Watchdog
from .state import ambient
from .state.files import Files
from .state.prints import Prints
from .state.readings import Readings
from .values.copies import settle
from .values.digests import Parameters

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
        self._recorder = Recorder(config["records"], eager, own, self._about, hold=config.get("hold", True))
        seeds = config.get("seed"), config.get("replay")
        self._seeds = Seeds(*seeds, self._tree, self._write, lambda: self._recorder.process())
        also, parts = config.get("also") or [], config.get("parts") or []
        returned = Returned(config.get("returning") or [], self._tree, self._returned)
        self._reach = Reach(config.get("watch") or [], self._tree, self._write, also, parts, returned)
        self._drive = Drive(config, self._tree, self._write)
        self._observer = Observer(
            self._write,
            self._part("what is given to what is left out"),
            lambda: self._reach.begun,
            lambda: self._backwards if self._torch_seen else None,
        )
        self._leaving = leaving_of(config, self._write, self._observer, self._quiet, self._tree)
        self._driving = False
        self._files = Files(config["root"], config["records"], self._write, self._part("files"))
        self._watchdog: Watchdog | None = None
        self._exits = Exits(self._here, lambda frame: self._end("left", frames=outward(frame)), self._failed)
        self._ended = False
        self._cuda = False
        self._torch_seen = False
        self._diagnosis = Diagnosis(config.get("doctor"), self._part)

    # The start.

    def start(self) -> None:
        """Hook everything up; what needs torch waits until it is imported."""
        hooks.on_error(self._part("what the script imports").note)
        dynamo.put_off()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self._at_exit)
        self._exits.install()
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
        if self._makes_files():
            with self._part("missing files"):
                from .calls.files import MissingFiles

                known, choose = self._config.get("made") or [], self._leaving.chosen
                tried = choose if self._config.get("try_files") else None
                MissingFiles(self._config["root"], known, self._tree, self._write, tried).install()
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
            if self._config.get("threads"):
                # Sums depend on it bit for bit.
                torch.set_num_threads(int(self._config["threads"]))
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
            from .process import loaders

            loaders.install(self._config, self._write)
            if self._makes_files():
                # What a worker makes nobody else hears of.
                loaders.in_this_process()
        with self._part("errors in threads"):
            self._exits.watch_threads()
        if self._config.get("params", True):
            with self._part("files"):
                self._files.torch(Parameters())
        whole = self._part("what the script does").around
        self._steps = Steps(whole(self._stepped), whole(self._begun))
        self._optimizers = Optimizers()
        self._counters()
        if self._config.get("shapes"):
            self._by_shapes()
        with self._part("backward"):
            self._backwards = Backwards(whole(self._before), whole(self._after), self._refused)
            self._backwards.install()
        with self._part("the steps"):
            self._steps.install()
            self._optimizers.install()
        with self._part("the forwards"):
            self._forwards = Forwards(
                self._tree.site,
                lambda: self._backwards.running > 0,
                self._part("the forwards").note,
                # In a forked process there are others.
                returned=lambda *told: self._readings.returned(*told),
                raised=lambda frame, error: self._refused(frame, error, "raised"),
            )
            self._forwards.install()
        with self._part("settings of the process"):
            ambient.install()
        with self._part("torch.compile"):
            compiling.hide(__name__.rpartition(".")[0])
        self._diagnosis.install(self._tree, self._write, self._clock, self._optimizers, self._readings.growth)

    def _makes_files(self) -> bool:
        return bool(self._config.get("try_files") or self._config.get("made"))

    def _by_shapes(self) -> None:
        """Go on without memory, or not at all: the model may fit nowhere."""
        part = self._part("shapes")
        with part:
            self._readings.memory = shapes_alone(self._write, self._tree)
        if not part.on:
            self._end("unsupported")
            self._exits.now(1)

    def _counters(self) -> None:
        self._readings = Readings(self._config, self._tree, self._write, self._part, self._optimizers, self._steps)
        self._calls = Calls()

    def _forked(self) -> None:
        """This is a new process; it is silent unless it calls backward itself."""
        try:
            self._watchdog = None
            self._exits.status = None
            self._recorder = self._recorder.below("child")
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
        self._readings.before(call)
        self._diagnosis.tell("before", call, call.notes["site"])
        call.notes.update(time=self._clock.now(), seconds=time.perf_counter())

    def _after(self, call: Call) -> None:
        event = call.notes
        event.update(seconds=time.perf_counter() - event["seconds"])
        self._diagnosis.tell("after", call, event["site"])
        part = self._part("backward")
        if not part.on:
            return
        with part:
            if call.error is not None:
                event.update(error=errors.trouble(call.error))
            elif not self._steps.total:
                self._readings.wait(event, self._readings.index)
            self._start_again()
            self._write(event)
            if call.error is not None:
                self._write({"event": "caught", "site": event["site"], "error": event["error"]})
                return
            if self._readings.index == 1:
                with_worker(self._end)
            stepped = self._steps.total > 0
            if not stepped:
                self._readings.cut(call.frame)
            site = key(event["site"])
            self._calls.count(site)
            if self._wanted and not self._driving and self._calls.enough(site, call.grad, self._patience(), stepped):
                self._leave("backwards", call.frame)

    def _refused(self, frame: FrameType | None, error: BaseException, event: str = "caught") -> None:
        with self._part("errors"):
            self._write({"event": event, "site": self._tree.site(frame), "error": errors.trouble(error)})

    def _begun(self, optimizer: Any, index: int, count: int) -> None:
        self._diagnosis.tell("begun", optimizer, index)
        self._readings.begun(optimizer, index)

    def _stepped(self, optimizer: Any, index: int, count: int, frame: FrameType | None) -> None:
        event: dict[str, Any] = {"event": "step", "optimizer": index, "name": type(optimizer).__name__, "call": count}
        event.update(site=self._tree.site(frame), time=0.0, **self._readings.stepped(optimizer, index))
        self._diagnosis.tell("stepped", index, event["site"], frame)
        with self._part("the steps"):
            event["time"] = self._clock.now()
            self._start_again()
            self._write(event)
            self._readings.memory.reset()
            self._forwards.rewind()
            if self._steps.total == 1:
                self._readings.growth.restart()
            self._readings.cut(frame)
            if self._wanted and not self._driving and self._steps.enough(self._patience()):
                self._leave("steps", frame)

    def _patience(self) -> int:
        """How many steps are enough: more while lines that somebody asks about have not run yet, and there is time."""
        limit = float(self._config.get("watchdog") or 0)
        late = (bool(limit) and self._clock.now() > _SHARE * limit) or bool(self._config.get("hurry"))
        return (self._wanted or 0) * (_PATIENCE if self._reach.waiting and not late else 1)

    def _start_again(self) -> None:
        import torch

        cuda: Any = torch.cuda
        if not self._cuda and cuda.is_initialized():
            self._cuda = True
            self._recorder.restart()

    # The end.

    def _at_exit(self) -> None:
        if not self._here():
            return
        ended = last_error()
        if ended is not None:
            self._failed(*ended)
            self._end("raised", frames=frames_of(ended[1]))
            return
        if not self._exits.status and self._drive_all(None):
            # The exit functions are at work already, and the status is that of the program.
            self._exits.now(1)
        self._end("completed" if self._exits.status is None else "exit")

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
            self._readings.came_back(number, site, call, values, known)
        finally:
            self._backwards.running -= 1

    def _returned(self, name: list[str], call: int, value: Any, variables: list[tuple[str, Any]]) -> None:
        if self._torch_seen and not self._driving and not self._ended and self._config.get("params", True):
            self._readings.gave(name, call, value, variables)

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
        self._recorder.write = lambda event: tell(settle([event])[0])  # type: ignore[method-assign]

    def _hung(self) -> None:
        import threading

        self._leave("watchdog", sys._current_frames().get(threading.main_thread().ident or 0))

    def _failed(self, error: BaseException, at: TracebackType | None) -> None:
        self._diagnosis.tell("failed", error, self._tree.traceback_site(at))
        with self._part("errors"):
            self._write(errors.uncaught(error, at, self._tree))
            if self._config.get("explore"):
                self._write(stops.event(error, at, self._tree))

    def _leave(self, reason: str, frame: FrameType | None) -> None:
        """End the process here and now: neither ``except:`` nor ``finally:`` nor workers can delay it."""
        failed = reason != "watchdog" and self._drive_all(frame)
        self._end(reason, frames=[] if frame is None else outward(frame))
        flush()
        self._exits.now(1 if failed else 0)

    def _end(self, reason: str, frames: list[FrameType] | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        mine: list[FrameType] = []
        with self._part("the frames"):
            mine = [frame for frame in frames or [] if self._tree.relative(frame.f_code.co_filename) is not None]
        if self._watchdog is not None and reason != "watchdog":
            self._watchdog.stop()
        with self._part("the lines that run"):
            self._reach.remove()
        if self._recorder.opened and self._config.get("params", True):
            with self._part("files"):
                self._files.end()
        if self._torch_seen and self._recorder.opened:
            with self._part("what is read at the end"):
                self._readings.end(reason, mine)
            with self._part("the forwards"):
                self._write({"event": "forwards", "sites": self._forwards.sites()})
            self._diagnosis.tell("end", mine)
        elif not self._torch_seen and "torch" in sys.modules:
            self._write({"event": "note", "text": "torch was imported in a way that the probe did not see."})
        if self._recorder.eager or self._recorder.opened:
            with self._part("the files"):
                libraries = self._tree.libraries() if self._config.get("libraries") else []
                self._write({"event": "loaded", "paths": self._tree.loaded(), "libraries": libraries})
        event: dict[str, Any] = {"event": "end", "reason": reason, "time": self._clock.now(), "stack": []}
        with self._part("the frames"):
            event["stack"] = [self._tree.site(frame) for frame in mine]
        if reason == "exit":
            event["status"] = self._exits.status
        with self._part("the end"):
            self._write({"event": "overhead", "seconds": self._clock.spent})
            self._write(event)

    def _here(self) -> bool:
        """Whether this is the process that is watched, not one forked from it in passing."""
        return os.getpid() == self._recorder.pid

    def _part(self, name: str) -> Part:
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = Part(name, self._write, self._clock)
        return part

    def _write(self, event: dict[str, Any]) -> None:
        self._recorder.write(event)

    def _about(self) -> dict[str, Any]:
        return about(bool(self._config.get("shapes")), self._torch_seen)
