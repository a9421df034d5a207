"""A worker: reads launches of the report on its standard input and writes frames to its standard output.

    python -m diag.ingest.ncu_official.worker LIMITS FIRST_LAUNCH <REPORT >ANSWER

It stops after the launch with which it has grown large, and says where another has to go on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from diag.child import end_with_parent
from diag.ingest.ncu_official.frames import End, Failure, SourceFile, write
from diag.ingest.ncu_official.limits import Limits, resident_bytes, was_short_of_memory

REPORT = "/proc/self/fd/0"
"""The open file and not its name, which the library might not take: it may hold bytes that are no text."""

CANNOT_ANSWER = 74
"""Exit status: an answer could not be written (EX_IOERR of sysexits.h)."""


class Answer:
    """Standard output, out of the way of the library: what that prints goes where its errors go."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def __call__(self, record: object) -> None:
        try:
            write(self._file, record)
            self._file.flush()
        except OSError:
            os._exit(CANNOT_ANSWER)


def main(arguments: list[str]) -> None:
    limits = msgspec.json.decode(arguments[0], type=Limits)
    end_with_parent()
    limits.impose()
    answer = Answer()
    try:
        end = _read(answer, int(arguments[1]), limits.growth_bytes)
        if was_short_of_memory():
            raise MemoryError
        answer(end)
    except MemoryError:
        answer(Failure("needs more memory than it may have"))
    except Exception as error:  # noqa: BLE001 - whatever it is, it has come up inside the library
        said = "".join(char if char.isprintable() else " " for char in str(error))
        answer(Failure(f"gave up ({type(error).__name__}: {said[:300]})"))
    os._exit(0)  # all is said, and what the library does at its end is its own affair


def _read(answer: Answer, first: int, most_growth_bytes: int) -> End:
    """Answers with what it finds, and returns where it ends."""
    import ncu_report  # only now, within the limits

    from diag.ingest.ncu_official import records

    reader = records.ActionReader(ncu_report)
    devices: set[int] = set()
    sources: set[str] = set()
    damaged = 0
    base_bytes = 0
    for number, action in enumerate(_actions(ncu_report.load_report(REPORT), first), first):
        launch = reader.launch(action)
        if launch is None:
            damaged += 1
            continue
        if (device := records.device(launch)) and device.ordinal not in devices:
            devices.add(device.ordinal)
            answer(device)
        for name, text in records.sources(action):
            if name not in sources:
                sources.add(name)
                answer(SourceFile(name, text))
        answer(launch)
        base_bytes = base_bytes or resident_bytes()  # with all that the library loads for a first launch
        if resident_bytes() - base_bytes > most_growth_bytes:
            return End(number + 1, damaged, reader.n_nameless_metrics)
    return End(None, damaged, reader.n_nameless_metrics)


def _actions(report: Any, first: int) -> Iterator[Any]:
    """From the launch of this number on. Those before it are not even looked at, which would load them."""
    places = ((each, at) for each in report for at in range(len(each)))
    return (each.action_by_idx(at) for each, at in islice(places, first, None))


if __name__ == "__main__":
    main(sys.argv[1:])
