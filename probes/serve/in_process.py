"""A client of an engine in this process. The engine steps in a thread of its own, and its journal has the times."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

from diag.errors import DiagError
from diag.model.serving_log import RequestRecord, StepRecord
from diag.probes.engine.journal import Sink
from diag.probes.engine.sequence import Request, SamplingParams
from diag.probes.serve.client import Answer, Clock, NotServed
from diag.probes.serve.workload import PlannedRequest

MOST_ERRORS = 10
"""Steps in a row that fail; then the engine is given up."""

CANCEL_S = 30.0
"""For the step in flight, after which what it computed is not in use any more."""


class Engine(Protocol):
    """`add` and `cancel` may be called while another thread is in `step`. Its sink gets a record of each request."""

    @property
    def has_work(self) -> bool: ...

    def add(self, request: Request) -> object: ...

    def cancel(self, request_id: str) -> object: ...

    def step(self) -> object: ...


Answered: TypeAlias = "asyncio.Future[RequestRecord]"


class InProcessClient:
    """`make` gives an engine that writes to the sink; `steps` takes the records of its steps."""

    def __init__(
        self,
        make: Callable[[Sink], Engine],
        steps: Callable[[StepRecord], None],
        sampling: Callable[[int], SamplingParams] = SamplingParams,
    ) -> None:
        """`sampling` is of a request for so many tokens."""
        self._make, self._steps, self._sampling = make, steps, sampling
        self._waiting: dict[str, Answered] = {}
        self._has_news = threading.Event()
        self._is_closing = False
        self._broken: str | None = None

    async def __aenter__(self) -> InProcessClient:
        self._loop = asyncio.get_running_loop()
        self._engine = await asyncio.to_thread(self._make, self._took)
        self._thread = threading.Thread(target=self._step_on, name="engine")
        self._thread.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._is_closing = True
        self._has_news.set()
        await asyncio.to_thread(self._thread.join)

    async def send(self, request: PlannedRequest, attempt_id: str, answer: Answer, clock: Clock) -> None:  # noqa: ARG002
        if self._broken is not None:
            raise NotServed("failed", self._broken)
        answered = self._waiting[attempt_id] = self._loop.create_future()
        self._add(Request(attempt_id, request.prompt, self._sampling(request.max_output_tokens)))
        try:
            record = await asyncio.shield(answered)
        except asyncio.CancelledError:
            self._engine.cancel(attempt_id)
            await asyncio.wait([answered], timeout=CANCEL_S)
            if answered.done():
                _fill(answer, answered.result())
            raise
        finally:
            self._waiting.pop(attempt_id, None)
        _fill(answer, record)
        if record.outcome != "completed":
            raise NotServed(record.outcome, record.error or record.outcome)

    def _add(self, request: Request) -> None:
        try:
            self._engine.add(request)
        except DiagError:
            return  # the record of the refusal is in the sink, with its reason
        self._has_news.set()

    # ---- in the engine's thread --------------------------------------------------------------------------------------

    def _step_on(self) -> None:
        n_errors = 0
        while not self._is_closing:
            if not self._engine.has_work:
                self._has_news.wait()
                self._has_news.clear()
                continue
            try:
                self._engine.step()
                n_errors = 0
            except Exception as error:  # noqa: BLE001 - of any runner; what it held has ended as failed, others go on
                n_errors += 1
                if n_errors >= MOST_ERRORS:
                    self._give_up(f"the engine failed {n_errors} times in a row: {type(error).__name__}: {error}")
                    return

    def _give_up(self, why: str) -> None:
        self._broken = why
        for attempt_id in list(self._waiting):
            self._took(RequestRecord(id=attempt_id, outcome="failed", error=why))

    def _took(self, record: RequestRecord | StepRecord) -> None:
        if isinstance(record, StepRecord):
            self._steps(record)
        elif (answered := self._waiting.get(record.id)) is not None:
            self._loop.call_soon_threadsafe(_set, answered, record)


def _set(answered: Answered, record: RequestRecord) -> None:
    if not answered.done():
        answered.set_result(record)


def _fill(answer: Answer, record: RequestRecord) -> None:
    answer.token_ns = list(record.token_ns)
    answer.token_counts = list(record.token_counts) or [1] * len(record.token_ns)
    answer.prompt_tokens = record.prompt_tokens
    answer.output_tokens = record.output_tokens
    answer.cached_tokens = record.cached_tokens
    answer.queued_ns = record.queued_ns
    answer.scheduled_ns = record.scheduled_ns
    answer.ended_ns = record.ended_ns
    answer.finish_reason = record.finish_reason
    answer.n_preemptions = record.n_preemptions
