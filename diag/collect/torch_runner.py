"""Runs a Python program under torch.profiler: `python torch_runner.py SETTINGS PROGRAM ARGUMENT...`.

A file of its own, which needs nothing but PyTorch 2 and Python 3.10: the Python that runs it is the program's, and diag
need not be installed there. SETTINGS is a JSON object (see torch_capture.py), PROGRAM a script, -m MODULE or -c CODE.

The profiler starts when the program has imported torch, and no sooner: what a program sets before that (threads,
visible devices) acts when torch is loaded. It is started and stopped in the main thread, as it records only what
runs in the thread that started it, and in the threads of the backward pass.
"""

import _thread
import importlib.machinery
import json
import os
import runpy
import signal
import sys
import threading
import types

_OURS = signal.SIGRTMAX
"""Never sent by the system: `interrupt_main` only has Python run its handler, between two instructions."""


class Recorder:
    """One recording: by time, or by the steps of the optimizer."""

    def __init__(self, settings):
        self.trace = settings["trace"]
        self.delay_s = settings["delay_s"]
        self.duration_s = settings["duration_s"]
        self.steps = settings["steps"]
        self.stacks = settings["stacks"]
        self.profiler = None
        self.optimizer = None
        self.n_steps = 0
        self.has_started = False
        self.is_written = False

    def torch_is_loaded(self):
        if self.steps:
            self._start()
        elif self.delay_s:
            self._later(self.delay_s, self._start)
        else:
            self._start()

    def finish(self):
        """At the end of the program, whatever ended it, or of the recording."""
        profiler, self.profiler = self.profiler, None
        if profiler is None:
            return
        try:
            profiler.stop()
            if not self.steps:
                self._write(profiler)
        except Exception as error:  # the program's own fate must not depend on it
            _say(f"the recording is lost: {error}")

    def report(self):
        """What diag is told beside the trace."""
        with open(self.trace + ".json", "w", encoding="utf-8") as file:
            told = {"started": self.has_started, "steps": self.n_steps, "written": self.is_written}
            json.dump({"torch": "torch" in sys.modules, **told}, file)

    def _start(self):
        import torch
        from torch.profiler import ProfilerActivity, profile, schedule

        if not hasattr(torch, "autograd"):  # interrupted in the middle of its import
            return
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        phases = {}
        if self.steps:
            wait, warmup, active = self.steps
            phases = {
                "schedule": schedule(wait=wait, warmup=warmup, active=active, repeat=1),
                "on_trace_ready": self._write,
            }
            torch.optim.optimizer.register_optimizer_step_post_hook(self._step)
        try:
            profiler = profile(activities=activities, record_shapes=True, with_stack=self.stacks, **phases)
            profiler.start()
        except Exception as error:
            _say(f"torch.profiler cannot be started: {error}")
            return
        self.profiler, self.has_started = profiler, True
        if self.duration_s and not self.steps:
            self._later(self.duration_s, self.finish)

    def _step(self, optimizer, *_):
        """A step ends when the optimizer that steps first has stepped: of several, each step counts once."""
        if self.optimizer is None:
            self.optimizer = optimizer
        if optimizer is self.optimizer and threading.current_thread() is threading.main_thread():
            self.n_steps += 1
            if self.profiler is not None:
                self.profiler.step()
                if self.n_steps == sum(self.steps):
                    self.finish()

    def _write(self, profiler):
        profiler.export_chrome_trace(self.trace)
        self.is_written = True

    def _later(self, seconds, do):
        """Does something in the main thread: no signal is sent, so no call of the system is cut short."""
        signal.signal(_OURS, lambda *_: do())
        timer = threading.Timer(seconds, _thread.interrupt_main, (_OURS,))
        timer.daemon = True
        timer.start()


class AfterImport:
    """Finds the package torch as Python does, and has `do` called when it is loaded."""

    def __init__(self, do):
        self.do = do

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_tell(module):
                load(module)
                self.do()

            spec.loader.exec_module = load_and_tell
        return spec


def run(program, arguments):
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
        with open(program, "rb") as file:
            code = compile(file.read(), program, "exec")
        _execute(code, program)


def _execute(code, file=None):
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if file is not None:
        main.__file__ = file
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _first_on_path(folder):
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:  # then this file's folder is not there either
        return
    sys.path[0] = folder


def _without_runner(hook):
    """An excepthook that shows a traceback as if the program had been run by itself."""

    def shown(kind, error, traceback):
        while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
            traceback = traceback.tb_next
        hook(kind, error.with_traceback(traceback), traceback)

    return shown


def _say(text):
    print(f"diag: {text}", file=sys.stderr)


def main():
    recorder = Recorder(json.loads(sys.argv[1]))
    sys.meta_path.insert(0, AfterImport(recorder.torch_is_loaded))
    try:
        run(sys.argv[2], sys.argv[3:])
    finally:
        recorder.finish()
        recorder.report()
        sys.excepthook = _without_runner(sys.excepthook)


if __name__ == "__main__":
    runner = sys.modules["__main__"]  # kept: the program's __main__ takes its place
    main()
