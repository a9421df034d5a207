"""What Slurm and the kernel say of processes and GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.ingest.job_log.event import Event, Place, fields_of, form, recognised, shown
from diag.ingest.job_log.lines import Line, Marks
from diag.ingest.job_log.prefix import date_of, labelled

SLURM = Marks(
    gates=(b"slurmstepd: ", b"srun: ", b"slurm_script"),
    marks=(
        b"oom-kill event",
        b"oom_kill event",
        b"CANCELLED AT ",
        b"DUE TO ",
        b"srun: error: ",
        b"srun: Terminating",
        b"NODE FAIL",
    ),
)
KERNEL = Marks(
    gates=(b"NVRM: Xid", b"Out of memory: ", b"oom-kill:"), marks=(b"NVRM: Xid", b"Killed process ", b"oom-kill:")
)

_STEP = re.compile(r"\*\*\* (?P<what>JOB|STEP) (?P<job>[\d.]{1,40}[\w.+]{0,20}) ON (?P<host>[^\s:]{1,255}) ")

_SLURM = (
    form(
        "slurm.oom",
        "oom",
        r"Detected (?P<events>\d{1,9}) oom[-_]kill event\S* in (?:step )?(?:StepId=)?(?P<step>[\d.]{1,40}\w{0,20})",
    ),
    form("slurm.time_limit", "TIME LIMIT", r"DUE TO TIME LIMIT"),
    form("slurm.node_fail", "NODE FAIL", r"NODE FAIL"),
    form("slurm.preempted", "PREEMPTION", r"DUE TO PREEMPTION"),
    form("slurm.cancelled", "CANCELLED AT ", r"CANCELLED AT"),
    form(
        "slurm.exit",
        "srun: error: ",
        r"srun: error: (?P<host>[^\s:]{1,255}): tasks? (?P<tasks>[\d,-]{1,400}): (?P<how>[^\n]{1,120})",
    ),
    form("slurm.terminating", "srun: Terminating", r"Terminating (?:job|Step|StepId)\D{0,20}(?P<step>[\d.]{1,40})"),
    form("slurm.error", "srun: error: ", r"srun: error: (?P<said>[^\n]{1,200})"),
)  # fmt: skip

_KERNEL = (
    form(
        "xid",
        "NVRM: Xid",
        r"NVRM: Xid \((?P<pci>PCI:[0-9a-fA-F:.]{4,20})\): (?P<xid>\d{1,4})"
        r"(?:, pid='?(?P<pid>\d{1,10}))?(?P<said>[^\n]{0,200})",
    ),
    form("kernel.oom", "Killed process ", r"Killed process (?P<pid>\d{1,10}) \((?P<name>[^)]{1,40})\)"),
    form("kernel.oom", "oom-kill:", r"oom-kill:.{0,400}task=(?P<name>[^,]{1,40}),pid=(?P<pid>\d{1,10})"),
)

_SYSLOG_HOST = re.compile(r"(?:\w{3} {1,2}\d{1,2} [\d:]{8}|\d{4}-\d\d-\d\dT\S{8,40}) (?P<host>[^\s:]{1,255}) kernel:")
MOST_TASKS = 100_000


def read_slurm(line: Line) -> Iterator[Event]:
    """The rank of a task is its number, where a task is a rank, as with srun alone."""
    text = labelled(line.text).text
    for kind, said in recognised(text, _SLURM):
        step = _STEP.search(text)
        fields = {**said, **(fields_of(step) if step else {})}
        place = Place(host=fields.get("host"))
        more = {} if kind != "slurm.exit" else {"ranks": tasks_of(fields["tasks"])}
        yield Event(line.number, kind, {**_without(fields, "host"), **more}, shown(line.text), place, date_of(text))


def read_kernel(line: Line) -> Iterator[Event]:
    host = _SYSLOG_HOST.search(line.text)
    for kind, fields in recognised(line.text, _KERNEL):
        place = Place(host=host["host"] if host else None, pid=fields.get("pid"))
        yield Event(line.number, kind, _without(fields, "pid"), shown(line.text), place, date_of(line.text))


def _without(fields: dict[str, object], name: str) -> dict[str, object]:
    return {key: each for key, each in fields.items() if key != name}


def tasks_of(text: str) -> list[int]:
    """
    >>> tasks_of("8-12,14-15")
    [8, 9, 10, 11, 12, 14, 15]
    """
    tasks: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last.isdecimal() or not last) and len(first) < 8 and len(last) < 8:
            wanted = range(int(first), int(last or first) + 1)
            tasks += wanted[: MOST_TASKS - len(tasks)]
    return tasks
