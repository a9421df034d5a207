"""What threads did on the cores: samples of what they ran, and when a core took them up or let them go.

Fields are named after the columns that they become.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from diag.ingest.messages import Field, Message, ints, optional_ints
from diag.ingest.nsys_rep.arrow import Columns
from diag.ingest.nsys_rep.events import EventReader, Rows
from diag.ingest.nsys_rep.lockstep import Fields
from diag.ingest.nsys_rep.stacks import Stacks, frames, stack_table
from diag.ingest.nsys_rep.tables import Table

_CPU_CYCLES = 1
"""Of the counters that a sample may carry (ENUM_NSYS_EVENT_TYPE)."""

_SAMPLE_COLUMNS = optional_ints(start=1, cpu=3, threadState=6, globalTid=11)
_SAMPLE = Message(
    "Sample",
    {
        **_SAMPLE_COLUMNS,
        "frames": frames(4),
        "counters": Field(5, Message("Counter", ints(type=1, value=2)), repeated=True),
        # No columns: how unwinding the stack went, by each method, and what taking the sample cost.
        **ints(threadId=2, unwindResult=7, framePointers=8, unwindTables=9, dwarf=10, nsTime=12, isTraceCallchain=13),
        **ints(samplingOverhead=14, sequenceId=15, vmProfile=16),
    },
)
_SAMPLES = Table("COMPOSITE_EVENTS", dict.fromkeys(("id", *_SAMPLE_COLUMNS, "cpuCycles"), "INTEGER"))
_SAMPLES_SHARING_STACKS = Table(_SAMPLES.name, {**_SAMPLES.columns, "callchainId": "INTEGER"})

_SCHEDULING_COLUMNS = optional_ints(start=1, cpu=3, isSchedIn=4, globalTid=6, threadState=5, threadBlock=8)
_SCHEDULING = Message("Scheduling", {**_SCHEDULING_COLUMNS, **ints(threadId=2, nsTime=7, sequenceId=9, vmProfile=10)})
_SCHED_EVENTS = Table("SCHED_EVENTS", dict.fromkeys(_SCHEDULING_COLUMNS, "INTEGER"))

_FUNCTION = Message("MappedFunction", ints(start=1, size=2, nameId=3))
_MAPPING = Message(
    "Mapping",
    {
        **ints(time=1, pid=2, tid=3, cpu=4, kernelMode=5, filenameId=6, isVma=7, start=8, size=9, pageOffset=10),
        "functions": Field(11, _FUNCTION, repeated=True),
        **ints(debugLinkFilenameId=12, debugLinkCrc=13, buildId=14, globalTid=15, nsTime=16),
    },
)


class SampleReader(EventReader):
    """CPU samples, numbered as they come.

    With `share_stacks`, a column that Nsight's export has not says which sample's stack is a sample's.
    """

    number = 104
    message = _SAMPLE

    def __init__(self, *, share_stacks: bool) -> None:
        self._shares_stacks = share_stacks
        self._stacks = Stacks(stack_table("SAMPLING_CALLCHAINS"), self.message.fields["frames"], shared=share_stacks)
        self._n_samples = 0

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        ids = range(self._n_samples + 1, self._n_samples + 1 + len(payloads))
        self._n_samples += len(payloads)
        listed, stacks = self._stacks.add(payloads.repeated("frames"), ids)
        columns: Columns = {"id": ids, **payloads.numbers(_SAMPLE_COLUMNS), "cpuCycles": _cpu_cycles(payloads)}
        if self._shares_stacks:
            yield _SAMPLES_SHARING_STACKS, {**columns, "callchainId": listed}
        else:
            yield _SAMPLES, columns
        yield from stacks

    def rest(self) -> Iterator[Rows]:
        yield from self._stacks.unread(f"{self.number}.{self.message.fields['frames'].number}")


def _cpu_cycles(samples: Fields) -> list[int]:
    owners, counters = samples.nested("counters")
    of_cpu = np.flatnonzero(counters["type"] == _CPU_CYCLES)[::-1]  # the first of a sample's is written last
    cycles = np.zeros(len(samples), np.int64)
    cycles[owners[of_cpu]] = counters["value"][of_cpu]
    listed: list[int] = cycles.tolist()
    return listed


class SchedulingReader(EventReader):
    """Threads that a core takes up, and lets go."""

    number = 106
    message = _SCHEDULING

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        yield _SCHED_EVENTS, payloads.numbers(_SCHEDULING_COLUMNS)


class MappingReader(EventReader):
    """Files that processes mapped into their memory. Frames name the modules they are from, so no table is made."""

    number = 109
    message = _MAPPING

    def rows(self, payloads: Fields) -> Iterable[Rows]:
        payloads.nested("functions")  # which counts what of them is not declared
        return ()
