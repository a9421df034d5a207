"""Runs workers side by side and takes in their answers; whatever goes wrong with a dump is a refusal of that dump."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from diag.errors import InputError
from diag.ingest.recorder.dump import Answer, Refusal
from diag.ingest.recorder.limits import Limits
from diag.ingest.recorder.worker import LENGTH_BYTES, SHORT_OF_MEMORY
from diag.model import units

MOST_WORKERS = 8
DUMPS_OF_A_WORKER = 32
"""From which on another is worth its start."""
_WORKER = "diag.ingest.recorder.worker"
_LAST_WORDS_S = 1.0
"""That a process has to end by itself once nobody listens; one that decodes a dump may not notice before."""
_PIPE_BYTES = 1 << 20
"""So that a worker may be some dumps ahead."""
_DECODER: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def answers(paths: Sequence[Path], limits: Limits) -> Generator[Answer]:
    """What each of the dumps says, in their order. Workers run until the last is taken, or the iterator closed."""
    n_workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS, -(-len(paths) // DUMPS_OF_A_WORKER))
    with ExitStack() as running:
        workers = [running.enter_context(_Worker(paths[first::n_workers], limits)) for first in range(n_workers)]
        for at in range(len(paths)):
            yield workers[at % n_workers].next()


class _Worker:
    """Answers for its paths, one after the other. A dump that a process ends over is refused, and another goes on."""

    def __init__(self, paths: Sequence[Path], limits: Limits) -> None:
        self._left = deque(os.fsencode(path) for path in paths)
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = self._started()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._ended(self._process)

    def next(self) -> Answer:
        if self._process is None:
            self._process = self._started()
        self._left.popleft()
        process = self._process
        if (answer := self._heard(process.stdout)) is not None:
            return answer
        self._process = None
        return Refusal(self._why(self._ended(process)))

    def _started(self) -> subprocess.Popen[bytes]:
        # -P: the folder that diag happens to run in is no place to import from.
        command = [sys.executable, "-P", "-m", _WORKER, msgspec.json.encode(self._limits).decode()]
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, pipesize=_PIPE_BYTES
            )
        except OSError as error:
            said = error.strerror or error
            raise InputError(f"No process can be started to read flight-recorder dumps: {said}. Try again.") from error
        assert process.stdin is not None
        with (
            process.stdin,
            suppress(BrokenPipeError),
        ):  # from one that has ended already, which is told when it is heard
            process.stdin.write(msgspec.msgpack.encode(list(self._left)))
        return process

    def _heard(self, answers: IO[bytes] | None) -> Answer | None:
        """The next answer; None when the process ends before it has given it."""
        assert answers is not None
        length = int.from_bytes(answers.read(LENGTH_BYTES), "little")
        if not 0 < length <= self._limits.answer_bytes:
            return None
        answer = answers.read(length)
        return _DECODER.decode(answer) if len(answer) == length else None

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        """Its exit status, or the negative number of the signal that ended it."""
        assert process.stdout is not None
        process.stdout.close()
        try:
            return process.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _why(self, status: int) -> str:
        if status == SHORT_OF_MEMORY:
            return f"it takes more memory than {units.size(self._limits.memory_bytes)} to read"
        if status == -signal.SIGXCPU:
            return f"it takes more than {self._limits.cpu_s} s of a processor to read"
        return f"what reads it was ended by signal {-status}" if status < 0 else f"what reads it ended with {status}"
