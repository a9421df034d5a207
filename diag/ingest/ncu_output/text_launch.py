"""The lines that name a process and a launch, on the pages that ncu prints for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from diag.ingest.ncu_output.printed import Identity, capability_of, integer_of, size_of

NOBODY = Identity("")
"""No process has been named."""

_PROCESS = re.compile(r"\s*\[([0-9]{1,18})\] ([^@]+)@(\S+)\s*")
_DEVICE = re.compile(r"\s*Device ([0-9]{1,6})\s*")  # above the kernels of a summary per GPU
_ON = r"(?:, Device (?P<device>[0-9]{1,6}))?(?:, CC (?P<capability>[0-9.]{3,7}))?"
_CONTEXT = re.compile(rf", Context (?P<context>[0-9]{{1,10}})(?:, Stream (?P<stream>[0-9]{{1,10}}))?{_ON}\b.*")
_SUMMARY = re.compile(
    r", Block Size (?P<block>\([^)]*\)|[0-9.,]+), Grid Size (?P<grid>\([^)]*\)|[0-9.,]+)"
    rf"{_ON}, (?P<launches>[0-9]{{1,9}}) invocations?\s*"
)
_TIME = re.compile(r", [0-9]{4}-\S{1,12}-[0-9]{1,2} [0-9:]{5,8}$")
_CONFIGURATION = re.compile(r" (?P<grid>\([0-9, ]+\))x(?P<block>\([0-9, ]+\))$")


def process_of(line: str, before: Identity) -> Identity | None:
    """What the launches that follow share, if a line says that.

    >>> process = process_of("[101] app@127.0.0.1", NOBODY)
    >>> process.pid, process.process_name, process.host
    (101, 'app', '127.0.0.1')
    """
    if match := _PROCESS.fullmatch(line):
        return Identity("", pid=int(match[1]), process_name=match[2], host=match[3])
    if match := _DEVICE.fullmatch(line):
        return replace(before, device=int(match[1]))
    return None


def launch_of(line: str, process: Identity) -> Identity | None:
    """The launch that a line names, of a process; None when it names none.

    >>> launch = launch_of("  saxpy(int) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.0", NOBODY)
    >>> launch.name, launch.grid, launch.block, launch.compute_capability
    ('saxpy(int)', (64, 1, 1), (256, 1, 1), (8, 0))
    """
    for mark, pattern in ((", Context ", _CONTEXT), (", Block Size ", _SUMMARY)):
        at = line.rfind(mark)
        if at > 0 and (match := pattern.fullmatch(line, at)):
            return _launch(line[:at].strip(), match.groupdict(""), process)
    return None


def _launch(head: str, said: Mapping[str, str], process: Identity) -> Identity:
    head = _TIME.sub("", head)
    if match := _CONFIGURATION.search(head):
        head, said = head[: match.start()], {**said, **match.groupdict()}
    device = integer_of(said["device"])
    return replace(
        process,
        name=head,
        context=integer_of(said.get("context", "")),
        stream=integer_of(said.get("stream", "")),
        grid=size_of(said.get("grid", "")),
        block=size_of(said.get("block", "")),
        device=process.device if device is None else device,
        compute_capability=capability_of(said["capability"]),
        launches=integer_of(said.get("launches", "")),
    )
