"""Compiles kernels in processes of their own, several at a time, whatever this process has Triton do.

Triton looks at `TRITON_INTERPRET` when a kernel is decorated: a process that interprets kernels can compile none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory

import msgspec

from diag.errors import ToolMissing
from diag.model.inspection import CompiledKernel, NotCompiled

START_S = 120.0
JOB_S = 60.0
"""What a worker may take to load PyTorch, and for each job: ten times what they take on one slow core."""

_WORKER = "diag.kernels.compile_worker"


@dataclass(frozen=True)
class BuildSource:
    """A function that returns a sequence of `Build`, by its name: kernels themselves cannot be sent to a process."""

    module: str
    function: str
    arguments: Mapping[str, str | int | bool]


@dataclass(frozen=True)
class Job:
    source: BuildSource
    target: str  # 'sm_90'


@dataclass(frozen=True)
class Done:
    """What came of one job, each in the order of its builds."""

    kernels: Sequence[CompiledKernel]
    not_compiled: Sequence[NotCompiled]


@dataclass(frozen=True)
class Answer:
    """Of a worker: one `Done` for each of its jobs, or why there is none."""

    done: Sequence[Done]
    failed: str | None = None


def variant_source(operator: str, variant: str, dtype: str) -> BuildSource:
    """The builds of a variant of the catalogue."""
    arguments = {"operator": operator, "variant": variant, "dtype": dtype}
    return BuildSource("diag.kernels.compiled", "builds_of_variant", arguments)


def check_installed() -> None:
    """Raises ToolMissing where PyTorch or Triton is not installed."""
    missing = [name for name, module in (("PyTorch", "torch"), ("Triton", "triton")) if find_spec(module) is None]
    if missing:
        raise ToolMissing(
            f"The kernels need {' and '.join(missing)}, which this installation lacks: pip install 'gpu-diag[probes]'"
        )


def compile_all(jobs: Sequence[Job], *, workers: int | None = None) -> Sequence[Done]:
    """What came of each job, in their order; `workers` processes at a time, one a core unless told.

    Raises ToolMissing where Triton or a tool that it brings is missing, or a worker fails.
    """
    check_installed()
    n_workers = max(1, min(workers or len(os.sched_getaffinity(0)), len(jobs)))
    shares = [jobs[first::n_workers] for first in range(n_workers)]
    with TemporaryDirectory(prefix="diag-") as folder, ExitStack() as ending:
        started = []
        for number, share in enumerate(shares):
            worker = _Worker(Path(folder, str(number)), share)
            ending.callback(worker.end)
            worker.begin()
            started.append(worker)
        done: list[Done] = [Done((), ())] * len(jobs)
        for first, worker in enumerate(started):
            done[first::n_workers] = worker.answer()
    return done


class _Worker:
    """One process with a folder of its own, which does nothing before `begin`.

    An interrupt may come when it was started and nobody knows of it yet: then its standard input ends, and so does it.
    """

    def __init__(self, folder: Path, jobs: Sequence[Job]) -> None:
        folder.mkdir()
        self._folder = folder
        self._jobs = msgspec.json.encode([asdict(job) for job in jobs])
        self._limit_s = START_S + JOB_S * len(jobs)
        self._deadline = time.monotonic() + self._limit_s
        with (folder / "answer").open("wb") as answer, (folder / "errors").open("wb") as errors:
            self._process = subprocess.Popen(
                # -P: the folder that diag happens to run in is no place to import from.
                [sys.executable, "-P", "-m", _WORKER],
                stdin=subprocess.PIPE,
                stdout=answer,
                stderr=errors,
                env=_environment(folder),
                start_new_session=True,  # so that the assembler that it may be waiting for ends with it
            )

    def begin(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as questions:  # it is gone: `answer` says why
            questions.write(self._jobs)

    def answer(self) -> Sequence[Done]:
        """Raises ToolMissing."""
        try:
            status = self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise ToolMissing(
                f"The compiler did not come to an end within {self._limit_s:g} s and was stopped. "
                "Name one variant (--variant) and one target (--arch)."
            ) from error
        if status:
            last = (self._folder / "errors").read_text("utf-8", "replace").strip().rpartition("\n")[2]
            raise ToolMissing(f"The compiler's process ended with status {status}: {last[:300]}")
        answer = msgspec.json.decode((self._folder / "answer").read_bytes(), type=Answer)
        if answer.failed is not None:
            raise ToolMissing(answer.failed)
        return answer.done

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, SIGKILL)
            self._process.wait()


def _environment(folder: Path) -> Mapping[str, str]:
    """What the worker and its assembler leave behind when they are stopped lies in this folder, too."""
    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    ours = {"TMPDIR": str(folder), "TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
    return {**kept, **ours}
