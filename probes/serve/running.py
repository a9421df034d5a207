"""Runs loads one after the other into one log, where Ctrl-C can do no harm.

The event loop has a thread of its own: an interrupt reaches the thread that waits for it, never the loop in the middle
of a record, and then asks the load to stop.
"""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from diag import __version__
from diag.errors import DiagError
from diag.model.served import served
from diag.model.serving_log import EngineConditions, Header, RequestRecord, StepRecord
from diag.model.serving_metrics import ServedRequest
from diag.probes.serve.arrivals import ClosedLoop
from diag.probes.serve.client import Client, Clock
from diag.probes.serve.lag import Lag
from diag.probes.serve.load import Limits, Load, Progress
from diag.probes.serve.log_file import LogFile
from diag.probes.serve.workload import Workload

LOOK_S = 0.2
"""Between two looks at the progress."""


@dataclass(frozen=True)
class Target:
    """What is put under load. `client` makes one for a run; it may write its engine's steps to the log."""

    client: Callable[[Clock, Callable[[StepRecord], None]], Client]
    backend: str | None = None
    model: str | None = None
    engine: EngineConditions | None = None
    vocabulary: int | None = None  # below which tokens of prompts are; None: any will do


@dataclass(frozen=True)
class Planned:
    """`is_counted`: the number of requests is meant, and no mere limit beside that of time."""

    workload: Workload
    limits: Limits
    label: str | None = None
    is_counted: bool = True

    @property
    def title(self) -> str:
        loop = self.workload.loop
        if isinstance(loop, ClosedLoop):
            said = f"Closed loop, {loop.concurrency:,} in flight"
        elif loop.rate_per_s is not None:
            said = f"Open loop, {loop.rate_per_s:g} requests/s ({loop.arrival})"
        else:
            said = f"Open loop ({loop.arrival})"
        return said if self.label is None else f"{self.label} ({said})"


@dataclass(frozen=True)
class Ran:
    requests: Sequence[ServedRequest]  # in the order of sending, warm-up included
    lag: Lag


def run(planned: Planned, target: Target, log: LogFile, show: Callable[[Progress], None]) -> Ran:
    """One load, to its end.

    Interrupted, what is in flight is cancelled and recorded, and then KeyboardInterrupt raised. Raises what the client
    raises when it opens, and StorageError.
    """
    records: list[RequestRecord] = []

    def keep(record: RequestRecord) -> None:
        records.append(record)
        log.add(record)

    clock = new_clock()
    log.begin(_header(planned, target))
    workload = planned.workload
    if target.vocabulary is not None:
        workload = replace(workload, vocabulary=target.vocabulary)
    load = Load(workload, target.client(clock, log.add), keep, clock, planned.limits)

    def look() -> None:
        log.flush_when_due()
        show(load.progress)

    in_thread(load.run(), look, load.stop)
    return Ran(in_order(records), load.lag)


def new_clock() -> Clock:
    started_ns = time.monotonic_ns()
    return lambda: time.monotonic_ns() - started_ns


def in_order(records: list[RequestRecord]) -> list[ServedRequest]:
    """Of sending; what was never sent stands where it was due."""

    def time_ns(record: RequestRecord) -> int:
        return next((each for each in (record.sent_ns, record.intended_ns) if each is not None), 0)

    return [served(each, number) for number, each in enumerate(sorted(records, key=time_ns))]


def in_thread(main: Coroutine[Any, Any, None], look: Callable[[], None], stop: Callable[[], None]) -> None:
    """Raises what `main` raises; of several errors at once one that is meant for the user, where there is one."""
    with ThreadPoolExecutor(1, "load") as pool:
        future = pool.submit(asyncio.run, main)
        try:
            while not wait([future], LOOK_S).done:
                look()
        except BaseException:
            stop()
            raise
    try:
        future.result()
    except BaseExceptionGroup as group:
        raise _first_of(group) from group


def _first_of(group: BaseExceptionGroup) -> BaseException:
    expected = group.subgroup(DiagError) or group
    first: BaseException = expected
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


def _header(planned: Planned, target: Target) -> Header:
    load = planned.workload.conditions
    return Header(
        diag_version=__version__,
        label=planned.label,
        backend=target.backend,
        model=target.model,
        host=platform.node() or None,
        started_unix_ns=time.time_ns(),
        load=load if planned.is_counted else msgspec.structs.replace(load, n_requests=None),
        engine=target.engine,
    )
