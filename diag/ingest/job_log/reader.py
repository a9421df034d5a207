"""Reader of 'job-log': text with lines of NCCL, the watchdog, torchrun, Slurm, RAS, servers or the kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from diag.ingest.input_file import InputFile
from diag.ingest.job_log import cluster, gloo, launcher, nccl, ras_text, server, server_forms, watchdog
from diag.ingest.job_log.communicators import with_communicators, with_ranks, world_of
from diag.ingest.job_log.event import Event
from diag.ingest.job_log.lines import Line, Marks, marked_lines
from diag.ingest.job_log.store import Kept, add_source, notes_of
from diag.ingest.serving.engine_log import runs_in
from diag.ingest.stack_dump import threads_in_log
from diag.store.case import Case

Read = Callable[[Line], Iterator[Event]]


@dataclass(frozen=True)
class LogRead:
    """What the lines of one file say, in their order."""

    events: Sequence[Event]
    n_ranks: int | None  # of the largest communicator that NCCL made
    passed_over: Counter[str]

    @property
    def nccl_version(self) -> str | None:
        versions = {event.fields["version"] for event in self.events if event.kind == "nccl.version"}
        return str(versions.pop()) if len(versions) == 1 else None


def read_lines(stream: BinaryIO) -> LogRead:
    """The events of any text, in memory that does not grow with it."""
    kept, families = Kept(), _Families()
    for line in marked_lines(stream, families.marks):
        kept.add(families.read(line))
    kept.add(families.tallies())
    events = with_communicators(kept.events)
    world = world_of(events)
    return LogRead(with_ranks(events, world), world.n_ranks if world else None, kept.passed_over)


def read(file: InputFile, case: Case) -> int:
    """Adds a log to the case, inside the caller's transaction, and returns the source's id."""
    with file.data.open("rb") as stream:
        found = read_lines(stream)
        stream.seek(0)
        runs = runs_in(stream, found.events)
    return add_source(
        file,
        case,
        found.events,
        tool="NCCL" if found.nccl_version else None,
        tool_version=found.nccl_version,
        world_size=found.n_ranks,
        notes=notes_of(found.passed_over),
        threads=threads_in_log(file.data),
        runs=runs,
    )


class _Families:
    """All families of messages; the first that knows a line has it."""

    def __init__(self) -> None:
        self._nccl, self._ras, self._server = nccl.Nccl(), ras_text.RasText(), server.Server()
        self._readers: Sequence[tuple[Marks, Read]] = (
            (nccl.MARKS, self._nccl.read),
            (watchdog.MARKS, watchdog.read),
            (cluster.SLURM, cluster.read_slurm),
            (cluster.KERNEL, cluster.read_kernel),
            (gloo.MARKS, gloo.read),
            (launcher.MARKS, launcher.Launcher().read),
            (ras_text.MARKS, self._ras.read),
            (launcher.TRACEBACK, launcher.Tracebacks().read),
        )

    @property
    def marks(self) -> Sequence[Marks]:
        return [server_forms.MARKS, *(marks for marks, _ in self._readers)]

    def read(self, line: Line) -> Iterator[Event]:
        """What a server says is told beside the others: want of memory is also the end of a traceback."""
        if server.is_batch(line.text):  # of which a log may have millions
            self._server.follow(line.text)
            return
        if server_forms.MARKS.are_in(line.text):
            yield from self._server.read(line)
        readers = self._readers[:1] if nccl.is_of_nccl(line.text) else self._readers
        for marks, read in readers:
            found = list(read(line)) if marks.are_in(line.text) else []
            if found:
                yield from found
                return

    def tallies(self) -> Iterator[Event]:
        yield from self._nccl.tallies()
        yield from self._ras.tallies()
