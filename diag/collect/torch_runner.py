"""Runs a Python program under torch.profiler: `python torch_runner.py SETTINGS PROGRAM ARGUMENT...`.

A file of its own, which needs nothing but PyTorch 2 and Python 3.10: the Python that runs it is the program's, and diag
need not be installed there. SETTINGS is a JSON object (see torch_capture.py), PROGRAM a script, -m MODULE or -c CODE.

The profiler starts when the program has imported torch, and no sooner: what a program sets before that (threads,
visible devices) acts when torch is loaded. It is started and stopped in the main thread, as it records only what
runs in the thread that started it, and in the threads of the backward pass.
"""

from __future__ import annotations

import _thread
import importlib.abc
import importlib.machinery
import json
import os
import runpy
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

_OURS = signal.SIGRTMAX
"""Never sent by the system: `interrupt_main` only has Python run its handler, between two instructions."""


class Recorder:
    """One recording: by time, or by the steps of the optimizer."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.trace = settings["trace"]
        self.delay_s = settings["delay_s"]
        self.duration_s = settings["duration_s"]
        self.steps = settings["steps"]
        self.stacks = settings["stacks"]
        self.process = os.getpid()
        self.profiler: Any = None
        self.optimizer: object = None
        self.n_steps = 0
        self.has_started = False
        self.is_written = False

    def torch_is_loaded(self) -> None:
        if self.delay_s and not self.steps:
            self._later(self.delay_s, self._start)
        else:
            self._start()

    def finish(self) -> None:
        """At the end of the program, whatever ended it, or of the recording."""
        profiler, self.profiler = self.profiler, None
        if profiler is None or os.getpid() != self.process:  # a child that was forked
            return
        try:
            profiler.stop()
            if not self.steps:
                self._write(profiler)
        except Exception as error:  # noqa: BLE001  # the program's own fate must not depend on it
            _say(f"the recording is lost: {error}")

    def report(self) -> None:
        """What diag is told beside the trace."""
        if os.getpid() != self.process:
            return
        with open(self.trace + ".json", "w", encoding="utf-8") as file:
            told = {"started": self.has_started, "steps": self.n_steps, "written": self.is_written}
            json.dump({"torch": "torch" in sys.modules, **told}, file)

    def _start(self) -> None:
        try:
            profiler = self._new_profiler()
            profiler.start()
        except Exception as error:  # noqa: BLE001  # as above
            _say(f"torch.profiler cannot be started: {error}")
            return
        self.profiler, self.has_started = profiler, True
        if not self.steps:
            self._watch_memory()
        if self.duration_s and not self.steps:
            self._later(self.duration_s, self.finish)

    def _new_profiler(self) -> Any:
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook
        from torch.profiler import ProfilerActivity, profile, schedule

        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        options = {"activities": activities, "record_shapes": True, "with_stack": self.stacks}
        if not self.steps:
            return profile(**options)
        register_optimizer_step_post_hook(self._step)
        wait, warmup, active = self.steps
        phases = schedule(wait=wait, warmup=warmup, active=active, repeat=1)
        return profile(schedule=phases, on_trace_ready=self._write, **options)

    def _step(self, optimizer: object, *_: object) -> None:
        """A step ends when the optimizer that steps first has stepped: of several, each step counts once."""
        if self.optimizer is None:
            self.optimizer = optimizer
        if optimizer is self.optimizer and threading.current_thread() is threading.main_thread():
            self.n_steps += 1
            if self.profiler is not None:
                self.profiler.step()
                if self.n_steps == sum(self.steps):
                    self.finish()

    def _write(self, profiler: Any) -> None:
        profiler.export_chrome_trace(self.trace)
        self.is_written = True

    def terminated(self, number: int, _: object) -> None:
        """SIGTERM ends the program as it would have, only that the recording is written first."""
        self.finish()
        self.report()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _watch_memory(self) -> None:
        """Stops a recording that will not fit into memory: a trace takes eight times what its events take meanwhile.

        Measured with PyTorch 2.13: a million small operators, 1.9 GB while recorded, 16 GB when stopped.
        """
        before, room = _kibibytes("/proc/self/status", "RssAnon"), _kibibytes("/proc/meminfo", "MemAvailable")
        if not before or not room:
            return
        most = before + room // 16

        def watch() -> None:
            while self.profiler is not None:
                if _kibibytes("/proc/self/status", "RssAnon") > most:
                    _say("recording stops: with more events, memory would not hold the trace (--no-stacks, --duration)")
                    _thread.interrupt_main(_OURS)
                    return
                time.sleep(0.1)

        signal.signal(_OURS, lambda *_: self.finish())
        threading.Thread(target=watch, daemon=True).start()

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        """Does something in the main thread: no signal is sent, so no call of the system is cut short."""
        signal.signal(_OURS, lambda *_: do())
        timer = threading.Timer(seconds, _thread.interrupt_main, (_OURS,))
        timer.daemon = True
        timer.start()


class AfterImport:
    """Finds the package torch as Python does, and has `do` called when it is loaded."""

    def __init__(self, do: Callable[[], None]) -> None:
        self.do = do

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_tell(module: types.ModuleType) -> None:
                load(module)
                self.do()

            spec.loader.exec_module = load_and_tell  # type: ignore[method-assign]  # of this one loader
        return spec


def run(program: str, arguments: list[str]) -> None:
    """As `python PROGRAM ARGUMENT...` does, in a new module __main__."""
    if program == "-m":
        sys.argv = arguments
        _first_on_path(os.getcwd())
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif program == "-c":
        sys.argv = ["-c", *arguments[1:]]
        _first_on_path("")
        _execute(compile(arguments[0], "<string>", "exec"))
    elif os.path.isdir(program) or program.endswith((".zip", ".pyz")):
        sys.argv = [program, *arguments]
        runpy.run_path(program, run_name="__main__")
    else:
        sys.argv = [program, *arguments]
        _first_on_path(os.path.dirname(os.path.realpath(program)))
        path = os.path.abspath(program)
        _execute(compile(_read(path), path, "exec"), path)


def _read(path: str) -> bytes:
    """A script. One that cannot be opened ends the program as it ends Python."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        print(f"{sys.orig_argv[0]}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        sys.exit(2)


class Program(importlib.abc.InspectLoader):
    """Loads code that is compiled already: a module's own loader would write bytecode beside a script."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code

    def get_code(self, fullname: str) -> types.CodeType:  # noqa: ARG002  # one loader has one module
        return self.code

    def get_source(self, fullname: str) -> None:  # noqa: ARG002
        return None


def _execute(code: types.CodeType, file: str | None = None) -> None:
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if file is not None:
        main.__file__ = file
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    sys.modules["__main__"] = main
    Program(code).exec_module(main)


def _first_on_path(folder: str) -> None:
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:  # then this file's folder is not there either
        return
    sys.path[0] = folder


_NOT_ITS_OWN = (__file__, "<frozen runpy>", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
"""Files of the frames between Python's start and the program's first line."""


def _without_runner(hook: Callable[..., object]) -> Callable[..., None]:
    """An excepthook that shows a traceback as if the program had been run by itself."""

    def shown(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
        while traceback is not None and traceback.tb_frame.f_code.co_filename in _NOT_ITS_OWN:
            traceback = traceback.tb_next
        hook(kind, error.with_traceback(traceback), traceback)

    return shown


def _kibibytes(file: str, name: str) -> int:
    """A figure of /proc; 0 where there is none."""
    try:
        with open(file, encoding="ascii", errors="replace") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
    except OSError:
        return 0


def _say(text: str) -> None:
    print(f"diag: {text}", file=sys.stderr)


def main() -> None:
    recorder = Recorder(json.loads(sys.argv[1]))
    # PyTorch 2.13 else writes two lines about each recording between the program's own.
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    sys.meta_path.insert(0, AfterImport(recorder.torch_is_loaded))
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, recorder.terminated)
    try:
        run(sys.argv[2], sys.argv[3:])
    finally:
        recorder.finish()
        recorder.report()
        sys.excepthook = _without_runner(sys.excepthook)


if __name__ == "__main__":
    runner = sys.modules["__main__"]  # kept: the program's __main__ takes its place
    main()
