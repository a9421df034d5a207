"""Records a workload with Nsight Systems, and finds out whether anything was recorded."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from diag.collect import workload
from diag.collect.capture import Capture
from diag.collect.descendants import end_orphans
from diag.collect.nsys_options import Abilities, NsysOptions, nsys_command
from diag.collect.target_python import name_of, python_command, versions
from diag.errors import ToolMissing
from diag.ingest.nsys_tool import Nsys, parse_version, run
from diag.store.case import Case

_HELP_TIMEOUT_S = 20.0
_START_S = 60.0
_FINISH_S = 600.0
"""A large recording takes minutes to write; an nsys that lost its agent never ends."""

_NVTX_UNSEEN_FROM = (0, 2, 12)
_NVTX_SEEN_AFTER = (2023, 4, 999)


def abilities_of(nsys: Nsys) -> Abilities:
    """Raises ToolMissing when it does not tell."""
    try:
        return Abilities.of_help(run([nsys.path, "profile", "--help"], timeout_s=_HELP_TIMEOUT_S).output)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolMissing(f"{nsys.path} does not answer `profile --help`. Install it again.") from error


def record(nsys: Nsys, command: Sequence[str], folder: Path, options: NsysOptions) -> Capture:
    """Runs the workload under nsys, which writes into `folder`. Raises ToolMissing when nsys cannot be started."""
    pid, log = folder / "workload.pid", folder / "nsys.log"
    arguments = nsys_command(
        nsys.path, abilities_of(nsys), options, folder / name_of(command), workload.beside(pid, command)
    )
    with log.open("wb") as hears:
        ended = workload.run(
            arguments, log=hears, workload=lambda: workload.pid_in(pid), overdue=_Patience(pid).is_over
        )
    end_orphans()
    said = log.read_text("utf-8", "replace")
    file = next((file for ending in (".nsys-rep", ".qdrep", ".qdstrm") for file in folder.glob(f"*{ending}")), None)
    if not pid.exists():
        raise ToolMissing(f"nsys did not start the workload: {last_words(said)}. Try again, or see: diag doctor")
    notes = [note] if (note := unseen_ranges(nsys.version, _python_packages(command))) else []
    capture = Capture(ended, file, notes=notes)
    return capture if file else replace(capture, lacks=why_nothing(options, ended, said))


class _Patience:
    """nsys now and then loses its own agent on a busy machine, and then waits for it for ever."""

    def __init__(self, pid: Path) -> None:
        self._pid = pid
        self._has_started = False
        self._until = time.monotonic() + _START_S

    def is_over(self) -> bool:
        starts_now = not self._has_started and self._pid.exists()
        if starts_now or workload.pid_in(self._pid) is not None:
            self._has_started, self._until = True, time.monotonic() + _FINISH_S
        return time.monotonic() > self._until


def why_nothing(options: NsysOptions, ended: workload.Ended, said: str) -> str:
    """Why nsys wrote no report although the workload ran, and what to do."""
    if ended.was_stopped:
        return "nsys did not end after the workload and was stopped. This happens on busy machines: run it again."
    if options.range_name:
        return (
            f"No NVTX range {options.range_name} began, so nsys recorded nothing. Check its name, that the workload "
            "reaches it, and, with diag doctor, that nsys records NVTX here."
        )
    if options.delay_s:
        return f"The workload ended before the delay of {options.delay_s} s was over. Choose a shorter --delay."
    return (
        f"nsys wrote no report although it ran the workload: {last_words(said)}. Run it again; if that is no help, "
        "use --with torch, or see: diag doctor"
    )


def is_empty(case: Case) -> bool:
    """Whether a recording holds nothing that the workload did."""
    return not any(case.value(f"SELECT EXISTS (SELECT 1 FROM {table})") for table in _EVENTS)


def has_cuda(case: Case) -> bool:
    return any(case.value(f"SELECT EXISTS (SELECT 1 FROM {table})") for table in ("gpu_op", "api_call"))


_EVENTS = ("gpu_op", "api_call", "cpu_range", "range_summary", "os_call", "sched", "cpu_sample", "counter")

NO_CUDA = (
    "nsys recorded no CUDA call of the workload. Does it use the GPU in the part that was recorded, and in a process "
    "that it starts itself?"
)

NOTHING_INSIDE = (
    "nsys ended well, but its report holds nothing that the workload did. Does the work happen in another process "
    "than the one named, on another machine, or outside of --delay, --duration and --range? A workload that a signal "
    "kills may take with it what nsys had not yet been told."
)


def unseen_ranges(nsys: tuple[int, ...], packages: Mapping[str, str]) -> str | None:
    """A warning where nsys will not record the ranges of the nvtx package that the workload uses."""
    installed = packages.get("nvtx")
    if installed is None or _numbers(installed) < _NVTX_UNSEEN_FROM or nsys > _NVTX_SEEN_AFTER:
        return None
    return (
        f"NVTX ranges are not recorded: nvtx {installed} does not work with this nsys, and does not say so. "
        "Run pip install 'nvtx<0.2.12', or use an nsys of 2024 or newer."
    )


def last_words(said: str) -> str:
    """The last line of a log that is neither a bar of progress nor empty."""
    lines = (re.sub(r"[^ -~]", "", line).strip() for line in re.split(r"[\r\n]+", said))
    return next((line.rstrip(".") for line in reversed(list(lines)) if _is_said(line)), "it said nothing")[:300]


def _is_said(line: str) -> bool:
    return bool(re.search(r"\w{2}", line)) and not line.startswith(("[1/", "Generat"))


def _python_packages(command: Sequence[str]) -> Mapping[str, str]:
    python = python_command(command)
    return versions(python.python, ["nvtx"]) if python else {}


def _numbers(version: str) -> tuple[int, ...]:
    """
    >>> _numbers("0.2.12"), _numbers("0.2.13rc1")
    ((0, 2, 12), (0, 2, 13))
    """
    return parse_version(re.match(r"\d+(\.\d+)*", version)[0]) if version[:1].isdigit() else ()  # type: ignore[index]
