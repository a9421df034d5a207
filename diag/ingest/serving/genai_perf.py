"""Reader of the requests that GenAI-Perf's engine (perf_analyzer) writes to `profile_export.json`.

It has the times of all responses, but tokens only as text, which is not kept: how many there were is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from diag.errors import InputError
from diag.ingest.input_file import LATEST_NS, InputFile
from diag.ingest.serving import documents as doc
from diag.ingest.serving.documents import Left
from diag.ingest.serving.store import FoundRun, add_source
from diag.model.serving_log import LoadConditions
from diag.model.serving_metrics import ServedRequest
from diag.store.case import Case

KIND = "genai-perf"


def looks_like_genai_perf(head: bytes) -> bool:
    signs = (b'"experiments"', b'"requests"', b'"timestamp"', b'"mode"')
    return head.lstrip()[:1] == b"{" and all(sign in head for sign in signs)


class _Request(msgspec.Struct):
    timestamp: int
    response_timestamps: list[int] = []
    response_outputs: list[msgspec.Raw] = []
    sequence_id: int | str | None = None


class _Load(msgspec.Struct):
    mode: str | None = None
    value: float | None = None


class _Experiment(msgspec.Struct):
    experiment: _Load
    requests: list[_Request] = []


class _File(msgspec.Struct):
    experiments: list[_Experiment]
    version: str | None = None
    service_kind: str | None = None


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    try:
        found = msgspec.json.decode(doc.read_bytes(file.data, "profile of GenAI-Perf"), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(f"{file.path} is no whole profile of GenAI-Perf ({said}). Was the run interrupted?") from error
    doc.check_runs(len(found.experiments), file.path)
    left = Left()
    runs = [_run(found, experiment, left) for experiment in found.experiments]
    version = found.version and found.version[:40]
    return add_source(case, file, runs, left.notes(), tool="perf_analyzer", tool_version=version)


def _run(file: _File, experiment: _Experiment, left: Left) -> FoundRun:
    requests = sorted(filter(_is_possible, experiment.requests), key=lambda request: request.timestamp)
    left.add("Requests whose times cannot be, left out", len(experiment.requests) - len(requests))
    start = requests[0].timestamp if requests else None
    return FoundRun(
        backend=file.service_kind,
        started_unix_ns=start,
        load=_load(experiment.experiment, len(requests)),
        requests=[_served(request, number, start or 0) for number, request in enumerate(requests)],
    )


def _load(of: _Load, n_requests: int) -> LoadConditions:
    value = doc.number(of.value)
    rate = value if of.mode == "request_rate" and value is not None and value > 0 else None
    concurrency = doc.whole(value) if of.mode == "concurrency" else None
    arrival: Any = "closed" if concurrency is not None else None
    return LoadConditions(arrival=arrival, rate_per_s=rate, concurrency=concurrency, n_requests=n_requests or None)


def _is_possible(request: _Request) -> bool:
    times = [request.timestamp, *request.response_timestamps]
    return all(0 <= time <= LATEST_NS for time in times) and all(a <= b for a, b in pairwise(times))


def _served(request: _Request, number: int, start: int) -> ServedRequest:
    times = np.array(list(_with_text(request)), np.int64)
    session = None if request.sequence_id is None else str(request.sequence_id)
    return ServedRequest(
        number=number,
        outcome="completed" if len(times) else "failed",
        sent_ns=request.timestamp - start,
        ended_ns=request.response_timestamps[-1] - start if request.response_timestamps else None,
        ttft_ns=int(times[0]) - request.timestamp if len(times) else None,
        e2e_ns=int(times[-1]) - request.timestamp if len(times) else None,
        itl_ns=np.diff(times),
        session=session,
    )


_WITHOUT_TEXT = re.compile(
    rb'\[DONE\]|\\"choices\\": ?\[\]|\\"content\\": ?\\"\\"|\\"text\\": ?\\"\\"|"text_output": ?""'
)


def _with_text(request: _Request) -> Iterator[int]:
    """Times of responses that brought something: the first may name a role alone, the last ones end the stream."""
    outputs: Sequence[msgspec.Raw] = request.response_outputs
    if len(outputs) != len(request.response_timestamps):
        yield from request.response_timestamps
        return
    for time, output in zip(request.response_timestamps, outputs, strict=True):
        if not _WITHOUT_TEXT.search(bytes(output)):
            yield time
