"""A program under torch.profiler behaves as without, and what it did is in the trace."""

from __future__ import annotations

import _thread
import json
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from diag.collect import torch_runner
from diag.collect.target_python import python_command
from diag.collect.torch_capture import Steps, TorchOptions, torch_command, why_nothing
from tests import interruptible

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")

HEAD = "import torch\n"
LOOP = """
import torch
model = torch.nn.Linear(4, 4)
first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
for _ in range(8):
    model(torch.ones(2, 4)).sum().backward()
    first.step()
    second.step()
    print("stepped", flush=True)
"""
TIMEOUT_S = 120
ALL = TorchOptions()


class Program:
    """A script in a folder of its own, with and without the profiler."""

    def __init__(self, folder: Path, source: str) -> None:
        self.script = folder / "program.py"
        self.script.write_text(source)
        self.trace = folder / "trace.json"

    def plain(self, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return self._run([sys.executable, *options, *(words or ("program.py",))])

    def recorded(self, *words: str, options: TorchOptions = ALL) -> subprocess.CompletedProcess[str]:
        return self._run(self.command(*words, options=options))

    def command(self, *words: str, options: TorchOptions = ALL) -> list[str | Path]:
        python = python_command([sys.executable, *(words or ("program.py",))])
        assert python is not None
        return torch_command(python, options, self.trace)

    def _run(self, command: list[str | Path] | list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.script.parent, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )

    def names(self) -> set[str]:
        events: list[dict[str, Any]] = json.loads(self.trace.read_text())["traceEvents"]
        return {event["name"] for event in events if "name" in event}

    def told(self) -> dict[str, Any]:
        return dict(json.loads(self.trace.with_name("trace.json.json").read_text()))


def same_as_without(program: Program, *words: str) -> subprocess.CompletedProcess[str]:
    plain, recorded = program.plain(*words), program.recorded(*words)
    assert (recorded.returncode, recorded.stdout, recorded.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    return recorded


WHO = """
import sys, os
print(__name__, __file__, sys.argv, sys.path[0], os.getcwd(), __spec__ is None, __package__)
import helper
print(helper.__file__, sys.modules["__main__"].__dict__ is globals())
"""


@pytest.mark.parametrize("words", [("program.py", "-x", "--", "y"), ("-m", "program", "-c"), ("-m", "package", "z")])
def test_the_program_is_who_it_would_be(words: tuple[str, ...], tmp_path: Path) -> None:
    program = Program(tmp_path, HEAD + WHO)
    (tmp_path / "helper.py").touch()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(HEAD + WHO)
    if words[0] == "-m":  # runpy's own __main__ is a module of its own while it runs
        recorded, plain = program.recorded(*words), program.plain(*words)
        assert (recorded.returncode, recorded.stdout) == (0, plain.stdout)
    else:
        assert same_as_without(program, *words).returncode == 0
    assert program.told() == {"torch": True, "started": True, "steps": 0, "written": True}


def test_code_on_the_command_line(tmp_path: Path) -> None:
    program = Program(tmp_path, "")
    same_as_without(program, "-c", "import sys, torch; torch.ones(2) + 1; print(sys.argv, __name__)", "a")
    assert "aten::add" in program.names()


def test_a_script_that_is_not_there_ends_as_without(tmp_path: Path) -> None:
    assert same_as_without(Program(tmp_path, ""), "nothing.py").returncode == 2


def test_a_module_that_is_not_there_leaves_no_frame_of_the_runner(tmp_path: Path) -> None:
    ended = Program(tmp_path, "").recorded("-m", "no_such_module")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == ["ImportError: No module named no_such_module"]


def test_a_failure_before_torch_is_no_advice_to_leave_torch(tmp_path: Path) -> None:
    program = Program(tmp_path, "raise SystemExit(3)")
    assert program.recorded().returncode == 3
    assert why_nothing(ALL, program.told(), 3).startswith("The program ended with status 3 before it imported torch")


def test_what_raises_ends_with_its_own_traceback_and_leaves_a_trace(tmp_path: Path) -> None:
    program = Program(tmp_path, HEAD + "def fail():\n    torch.ones(2) + 1\n    raise ValueError('boom')\nfail()\n")
    recorded = same_as_without(program)
    assert recorded.returncode == 1
    assert "boom" in recorded.stderr
    assert "aten::add" in program.names()


@pytest.mark.parametrize("ending", ["sys.exit(7)", "sys.exit('no more')"])
def test_exits_are_the_programs_own(ending: str, tmp_path: Path) -> None:
    program = Program(tmp_path, f"import sys, torch\ntorch.ones(2) + 1\n{ending}\n")
    same_as_without(program)
    assert "aten::add" in program.names()


def test_a_hook_for_exceptions_is_still_the_programs(tmp_path: Path) -> None:
    program = Program(
        tmp_path, HEAD + "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\n1 / 0\n"
    )
    assert same_as_without(program).stdout == "hooked ZeroDivisionError\n"


def test_what_is_set_before_torch_is_loaded_acts(tmp_path: Path) -> None:
    program = Program(
        tmp_path, "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\nprint(torch.get_num_threads())"
    )
    assert program.recorded().stdout == "1\n"


def test_shapes_and_stacks_are_recorded(tmp_path: Path) -> None:
    program = Program(tmp_path, HEAD + "def work():\n    return torch.ones(2, 3) + 1\nwork()\n")
    program.recorded()
    assert any("work" in name for name in program.names())
    assert '"Input Dims": [[2, 3], []' in program.trace.read_text()
    program.recorded(options=TorchOptions(stacks=False))
    assert not any("work" in name for name in program.names())


def test_steps_are_those_of_the_optimizer_that_steps_first(tmp_path: Path) -> None:
    program = Program(tmp_path, LOOP)
    program.recorded(options=TorchOptions(steps=Steps(2, 1, 3)))
    assert program.told() == {"torch": True, "started": True, "steps": 8, "written": True}
    assert {name for name in program.names() if name.startswith("ProfilerStep")} == {
        "ProfilerStep#3",
        "ProfilerStep#4",
        "ProfilerStep#5",
    }


def test_too_few_steps_leave_what_was_recorded_or_a_sentence(tmp_path: Path) -> None:
    program = Program(tmp_path, LOOP)
    program.recorded(options=TorchOptions(steps=Steps(2, 1, 30)))
    assert program.told()["written"]
    program.trace.unlink()
    late = TorchOptions(steps=Steps(20, 1, 1))
    program.recorded(options=late)
    assert not program.told()["written"]
    assert "8 of the 22 steps" in why_nothing(late, program.told())


WAITS = """
import os, sys, time, torch
from torch.profiler import record_function
def repeat(name, is_over):
    while not is_over():
        with record_function(name):
            time.sleep(0.01)
began = time.monotonic()
repeat("early", lambda: time.monotonic() > began + 0.2)
repeat("middle", lambda: os.path.exists(sys.argv[1]) or time.monotonic() > began + 60)
repeat("late", lambda: time.monotonic() > began + 2)
with record_function("late"):
    pass
"""


def test_a_recording_begins_after_its_delay_and_ends_after_its_duration(tmp_path: Path) -> None:
    """The program goes on until it sees the trace: that is written while it runs, not at its end."""
    program = Program(tmp_path, WAITS)
    program.recorded("program.py", str(program.trace), options=TorchOptions(delay_s=1, duration_s=1, stacks=False))
    assert {"early", "middle", "late"} & program.names() == {"middle"}


def test_a_delay_longer_than_the_program_is_explained(tmp_path: Path) -> None:
    program, options = Program(tmp_path, HEAD), TorchOptions(delay_s=60)
    program.recorded(options=options)
    assert "delay of 60 s" in why_nothing(options, program.told())


def test_a_program_without_torch_is_explained(tmp_path: Path) -> None:
    program = Program(tmp_path, "print('done')")
    assert same_as_without(program).stdout == "done\n"
    assert "did not import torch" in why_nothing(TorchOptions(), program.told())


def test_a_program_that_leaves_at_once_is_explained(tmp_path: Path) -> None:
    program = Program(tmp_path, HEAD + "import os\nos._exit(4)\n")
    assert program.recorded().returncode == 4
    assert not program.trace.exists()
    assert "os._exit" in why_nothing(TorchOptions(), {})


def test_a_torch_that_cannot_be_loaded_is_the_programs_own_error(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('broken')")
    program = Program(tmp_path, "try:\n    import torch\nexcept ImportError as error:\n    print(error)\n")
    assert same_as_without(program).stdout == "broken\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_as_without_and_the_trace_is_written(number: signal.Signals, tmp_path: Path) -> None:
    program = Program(tmp_path, LOOP.replace("range(8)", "iter(int, 1)"))
    ends = []
    for command in ([sys.executable, program.script], program.command(str(program.script))):
        process = interruptible.start([str(word) for word in command], os.environ)
        assert process.stdout is not None
        assert process.stdout.readline() == b"stepped\n"
        process.send_signal(number)
        process.communicate(timeout=TIMEOUT_S)
        ends.append(process.returncode)
    assert ends[0] == ends[1] != 0
    assert "aten::linear" in program.names()


def test_children_that_are_forked_write_no_trace(tmp_path: Path) -> None:
    fork = "import multiprocessing as mp\nchild = mp.get_context('fork').Process(target=print, args=['child'])\n"
    program = Program(tmp_path, f"{HEAD}{fork}child.start()\nchild.join(60)\nprint(child.exitcode)\n")
    assert program.recorded().stdout == "child\n0\n"
    assert program.told()["written"]


def test_a_recording_that_memory_will_not_hold_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,600 are free: it stops when the program has grown by more than 100."""
    grown = iter([1000, 1050, 1100, 1101])
    said: list[str] = []
    stopped = threading.Event()
    monkeypatch.setattr(torch_runner, "_kibibytes", lambda file, _: 1600 if "meminfo" in file else next(grown))
    monkeypatch.setattr(torch_runner, "_say", said.append)
    monkeypatch.setattr(_thread, "interrupt_main", lambda _: stopped.set())
    before = signal.getsignal(torch_runner._OURS)
    recorder = torch_runner.Recorder({"trace": "", "delay_s": 0, "duration_s": 0, "steps": None, "stacks": True})
    recorder.profiler = object()
    try:
        recorder._watch_memory()
        assert stopped.wait(10)
    finally:
        signal.signal(torch_runner._OURS, before)
    assert "--no-stacks" in said[0]
    assert next(grown, None) is None


def test_a_figure_that_proc_does_not_tell_is_none() -> None:
    assert torch_runner._kibibytes("/proc/self/status", "RssAnon") > 1000
    assert torch_runner._kibibytes("/proc/self/status", "NoSuch") == 0
    assert torch_runner._kibibytes("/proc/no/such", "RssAnon") == 0
