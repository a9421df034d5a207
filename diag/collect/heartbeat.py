"""A file per rank that tells, from outside, whether the rank runs Python, stands in a call, or is gone.

    with Heartbeat("beats") as beat:
        for step, batch in enumerate(loader):
            beat(step=step, phase="forward")

A thread of the rank notes twice a second that Python runs, in memory shared with a small process beside it, which
writes the file. So a rank in which a C call holds the GIL shows a fresh file with an old time, one whose main thread
waits in a call shows a fresh time with an old step, and one that is killed shows that it vanished. Nothing here raises
once the rank runs, waits for anything but 0.1 s at the start, or outlives the rank.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from diag.collect import heartbeat_page
from diag.collect.heartbeat_page import Beat
from diag.model.heartbeat import SCHEMA, SUFFIX

ALIVE_EVERY_S = 0.5
"""How often the rank's thread needs the GIL, for some microseconds."""
WRITE_EVERY_S = 2.0
_WRITER = "import sys; sys.path.append(sys.argv.pop(1)); from diag.collect.heartbeat_writer import main; main()"
_ROOT = Path(__file__).parents[2]
_START_S = 20.0
"""Most that starting the process beside the rank may take, on a machine where everything is slow."""


class Heartbeat:
    """Writes `rank<N>.heartbeat.json` into `folder` while its block runs. Call it from one thread.

    `rank`, `world_size` and `local_rank` come from the environment that torchrun sets, where they are not given;
    `device` from CUDA_VISIBLE_DEVICES where that names one alone. Where no file can be written a warning says why, and
    the program goes on without.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        local_rank: int | None = None,
        device: int | None = None,
        every_s: float = WRITE_EVERY_S,
    ) -> None:
        self._folder = Path(folder)
        self._every_s = every_s
        given = {"rank": rank, "world_size": world_size, "local_rank": local_rank, "device": device}
        defaults = from_environment(os.environ)
        self._rank = {key: defaults.get(key) if value is None else value for key, value in given.items()}
        self._pid = 0  # of the process that beats: one that it forks does not
        self._page: memoryview | None = None
        self._stop = threading.Event()
        self._last = Beat(0, -1, "", "")

    @property
    def path(self) -> Path:
        return self._folder / f"rank{self._rank['rank']}{SUFFIX}"

    def __enter__(self) -> Heartbeat:
        try:
            self._start()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._page = None
            warnings.warn(f"No heartbeat is written to {self._folder}: {error}", RuntimeWarning, stacklevel=2)
        return self

    def __call__(self, *, step: int | None = None, phase: str | None = None) -> None:
        """Tells where the program is. What is not given stays as it was."""
        if self._page is None or os.getpid() != self._pid:
            return
        last = self._last
        self._last = Beat(
            time.time_ns(), last.step if step is None else step, last.phase if phase is None else phase, ""
        )
        heartbeat_page.write_beat(self._page, self._last)

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._page is None or os.getpid() != self._pid:
            return
        heartbeat_page.write_alive(self._page, time.monotonic_ns())
        heartbeat_page.write_beat(self._page, self._last._replace(ended=how_it_ended(error)))
        self._stop.set()

    def _start(self) -> None:
        if self._rank["rank"] is None:
            raise ValueError("its rank is not known. Pass rank=, or run it under torchrun")
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.memfd_create("diag-heartbeat")
        os.ftruncate(descriptor, heartbeat_page.BYTES)
        self._page = memoryview(mmap.mmap(descriptor, heartbeat_page.BYTES))
        self._pid = os.getpid()
        heartbeat_page.write_alive(self._page, time.monotonic_ns())
        heartbeat_page.write_beat(self._page, self._last)
        told = {
            "rank": {"schema": SCHEMA, **self._rank, "host": os.uname().nodename, "pid": self._pid},
            "pid": self._pid,
            "started": _started(),
            "descriptor": descriptor,
            "link": os.readlink(f"/proc/self/fd/{descriptor}"),
            "every_s": self._every_s,
            "path": str(self.path.absolute()),
        }
        # Of its own accord the writer's parent ends at once. Nothing of the rank's output stays open in it.
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _WRITER, str(_ROOT), json.dumps(told)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[descriptor],
            timeout=_START_S,
            check=True,
        )
        threading.Thread(target=_beat_on, args=(self._page, self._stop), name="diag-heartbeat", daemon=True).start()


def _beat_on(page: memoryview, stop: threading.Event) -> None:
    while not stop.wait(ALIVE_EVERY_S):
        heartbeat_page.write_alive(page, time.monotonic_ns())


def from_environment(environment: Mapping[str, str]) -> Mapping[str, int]:
    """
    >>> from_environment({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "x", "CUDA_VISIBLE_DEVICES": "2"})
    {'rank': 3, 'world_size': 8, 'device': 2}
    """
    names = {"rank": "RANK", "world_size": "WORLD_SIZE", "local_rank": "LOCAL_RANK", "device": "CUDA_VISIBLE_DEVICES"}
    found = {key: environment.get(name, "") for key, name in names.items()}
    return {key: int(text) for key, text in found.items() if re.fullmatch(r"[0-9]{1,9}", text)}


def how_it_ended(error: BaseException | None) -> str:
    """
    >>> how_it_ended(None), how_it_ended(KeyError("x"))
    ('finished', "KeyError: 'x'")
    """
    return "finished" if error is None else traceback.format_exception_only(error)[-1].strip()


def _started() -> str:
    return Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19]
