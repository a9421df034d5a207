"""Processes, the names of their threads, and who printed something. Arguments and environments stay in the report."""

from __future__ import annotations

from collections.abc import Iterator

from diag.ingest.messages import (
    BYTES,
    NO_TEXT,
    Field,
    Message,
    columns_of,
    ints,
    message_class,
    optional_ints,
    optional_texts,
)
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.events import EventReader, Rows
from diag.ingest.nsys_rep.lockstep import Fields
from diag.ingest.nsys_rep.tables import table

PROCESSES = table("PROCESSES", globalPid="INTEGER", pid="INTEGER", name="TEXT")
THREAD_NAMES = table("ThreadNames", nameId="INTEGER", priority="INTEGER", globalTid="INTEGER")
STREAMS = table("ProcessStreams", globalPid="INTEGER", filenameId="INTEGER", contentId="INTEGER")
FILES = table("ANALYSIS_FILE", id="INTEGER", filename="TEXT", contentId="INTEGER", globalPid="INTEGER")

_THREAD = Message("Thread", optional_ints(nameId=2, priority=3, globalTid=4))
_THREADS = message_class(Message("Threads", {"list": Field(1, _THREAD, repeated=True)}))


class ProcessReader(EventReader):
    """Descriptions of processes: events of class 113."""

    number = 113
    message = Message(
        "Process",
        {
            **ints(globalPid=2),
            **optional_texts(path=5, name=6),
            # Of these nothing goes into an export, whatever their values: time seen, executable, folder, arguments,
            # and the string that is the environment.
            **ints(no_column_1=1, no_column_4=4, no_column_11=11, no_column_12=12, no_column_13=13, no_column_14=14),
            **{f"no_column_{number}": Field(number, BYTES) for number in (7, 8)},
            "no_column_9": Field(9, BYTES, repeated=True),
        },
    )

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        names = [
            path if name == NO_TEXT else name
            for name, path in zip(payloads.text("name"), payloads.text("path"), strict=True)
        ]
        yield (
            PROCESSES,
            PROCESSES.by_column(
                (process, process >> 24 & 0xFFFFFF, name)
                for process, name in zip(payloads["globalPid"].tolist(), names, strict=True)
                if name != NO_TEXT
            ),
        )


def thread_rows(message: bytes) -> Iterator[Rows]:
    """From the first message behind the table of strings. Raises DecodeError when it is something else."""
    threads = _THREADS.FromString(message).list
    if threads:
        yield THREAD_NAMES, columns_of(threads, THREAD_NAMES.columns)


def stream_rows(container: Container) -> Iterator[Rows]:
    """Which processes printed something, as whose output. The texts that they printed stay in the report."""
    rows = [(output.globalPid, output.filename, output.content) for output in container.outputs]
    if rows:
        yield STREAMS, STREAMS.by_column(rows)


def file_rows(container: Container) -> Iterator[Rows]:
    """The same as newer exports say it once more, with the names of the files."""
    names = dict(enumerate(container.strings))
    rows = [
        (index, names.get(output.filename), output.content, output.globalPid)
        for index, output in enumerate(container.outputs)
    ]
    if rows:
        yield FILES, FILES.by_column(rows)
