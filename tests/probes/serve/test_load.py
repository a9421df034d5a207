"""The load itself, on a server that a test holds in its hand."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from diag.errors import StorageError, UsageError
from diag.model import serving_metrics as metrics
from diag.model.serving_log import RequestRecord
from diag.model.token_lengths import Constant
from diag.probes.serve import load as load_module
from diag.probes.serve.arrivals import ClosedLoop, OpenLoop
from diag.probes.serve.client import Answer, Clock, NotServed
from diag.probes.serve.load import NOT_SENT, Limits, Load
from diag.probes.serve.running import in_order, in_thread, new_clock
from diag.probes.serve.workload import PlannedRequest, Workload

MS = 1_000_000
CLOSED = Workload(loop=ClosedLoop(3), n_requests=12, prompt_lengths=Constant(5), output_lengths=Constant(4))
OPEN = replace(CLOSED, loop=OpenLoop("constant", 200.0))


async def at_once(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
    """Two tokens, with room for others in between."""
    answer.output(clock(), 1)
    await asyncio.sleep(0)
    answer.output(clock(), 1)


async def in_5_ms(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
    await asyncio.sleep(0.005)
    answer.output(clock(), 1)


async def never(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
    answer.output(clock(), 1)
    await asyncio.Event().wait()


@dataclass
class FakeClient:
    """`most` were in flight together. `closed` is whether it was left."""

    serve: Callable[[PlannedRequest, Answer, Clock], Awaitable[None]] = at_once
    sent: list[str] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    n_in_flight: int = 0
    most: int = 0
    closed: bool = False

    async def __aenter__(self) -> FakeClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self.n_in_flight == 0
        self.closed = True

    async def send(self, request: PlannedRequest, attempt_id: str, answer: Answer, clock: Clock) -> None:
        self.sent.append(attempt_id)
        self.phases.append(request.phase)
        self.n_in_flight += 1
        self.most = max(self.most, self.n_in_flight)
        try:
            await self.serve(request, answer, clock)
        finally:
            self.n_in_flight -= 1


def run(workload: Workload, client: FakeClient, limits: Limits | None = None) -> Sequence[RequestRecord]:
    records: list[RequestRecord] = []
    asyncio.run(Load(workload, client, records.append, new_clock(), limits or Limits()).run())
    assert client.closed
    return records


def by_id(records: Sequence[RequestRecord]) -> Sequence[RequestRecord]:
    return sorted(records, key=lambda record: int(record.id))


# ---- when they are sent ----------------------------------------------------------------------------------------------


def test_a_closed_loop_keeps_so_many_in_flight() -> None:
    client = FakeClient(in_5_ms)
    records = run(CLOSED, client)
    assert client.most == 3
    assert client.sent == [str(number) for number in range(12)]
    assert [record.outcome for record in records] == ["completed"] * 12


def test_an_open_loop_sends_by_its_schedule_whoever_is_in_flight() -> None:
    all_are_sent = asyncio.Event()

    async def waits_for_all(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        if client.n_in_flight == 12:
            all_are_sent.set()
        await all_are_sent.wait()

    client = FakeClient(waits_for_all)
    records = by_id(run(replace(OPEN, loop=OpenLoop("at_once")), client))
    assert client.most == 12
    assert len({record.intended_ns for record in records}) == 1


def test_a_client_that_blocks_makes_no_wait_disappear() -> None:
    """Due each 5 ms, and each blocks everything for 20 ms: sent later and later, and due as the schedule says."""

    async def blocks(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        time.sleep(0.02)
        answer.output(clock(), 1)

    records = by_id(run(replace(OPEN, n_requests=8), FakeClient(blocks)))
    intended = [record.intended_ns or 0 for record in records]
    assert [b - a for a, b in itertools.pairwise(intended)] == [5 * MS] * 7
    delays = [request.send_delay_ns or 0 for request in in_order(list(records))]
    assert delays == sorted(delays)
    assert delays[-1] > 7 * 15 * MS
    from_due = [(r.token_ns[-1] - (r.intended_ns or 0)) for r in records]
    assert from_due[-1] > 7 * 15 * MS, "what a user would have waited can be worked out"


def test_who_has_no_place_waits_and_the_log_says_how_long() -> None:
    records = by_id(run(replace(OPEN, loop=OpenLoop("at_once")), FakeClient(in_5_ms), Limits(most_in_flight=2)))
    delays = [(record.sent_ns or 0) - (record.intended_ns or 0) for record in records]
    assert delays == sorted(delays)
    assert delays[-1] >= 5 * 5 * MS


def test_in_a_closed_loop_a_request_is_due_when_its_place_is_free() -> None:
    requests = in_order(list(run(replace(CLOSED, loop=ClosedLoop(1)), FakeClient(in_5_ms))))
    for before, after in itertools.pairwise(requests):
        assert (after.intended_ns or 0) >= (before.ended_ns or 0)
        assert (after.send_delay_ns or 0) < 100 * MS


def test_after_the_time_nothing_is_sent_and_what_is_in_flight_ends() -> None:
    workload = replace(OPEN, n_requests=1000)
    records = run(workload, FakeClient(in_5_ms), Limits(seconds=0.05))
    assert len(records) == 9, "those due 5 to 45 ms after the start"
    assert {record.outcome for record in records} == {"completed"}
    closed = run(replace(CLOSED, n_requests=1000), FakeClient(in_5_ms), Limits(seconds=0.05))
    assert 1 <= len(closed) <= 33
    assert {record.outcome for record in closed} == {"completed"}


def test_what_was_due_and_had_no_place_before_the_time_was_up_is_recorded() -> None:
    async def slowly(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        await asyncio.sleep(0.3)

    records = run(replace(OPEN, n_requests=1000), FakeClient(slowly), Limits(seconds=0.0501, most_in_flight=1))
    (sent,) = (record for record in records if record.sent_ns is not None)
    assert sent.outcome == "completed"
    unsent = [record for record in records if record.sent_ns is None]
    assert {(record.outcome, record.error) for record in unsent} == {("cancelled", NOT_SENT)}
    assert len(unsent) == 9, "one each 5 ms, from 10 to 50 ms after the start"


def test_both_warm_ups_end_before_what_is_measured() -> None:
    workload = replace(CLOSED, n_warmup=5, shared_prefix_share=0.5, warms_cache=True)
    client = FakeClient()
    records = run(workload, client)
    assert client.phases == ["engine_warmup"] * 5 + ["cache_warmup"] + ["measured"] * 12
    ends = [max(r.ended_ns or 0 for r in records if r.phase == phase) for phase in ("engine_warmup", "cache_warmup")]
    begins = [min(r.sent_ns or 0 for r in records if r.phase == phase) for phase in ("cache_warmup", "measured")]
    assert ends[0] <= begins[0]
    assert ends[1] <= begins[1]
    assert metrics.counts(in_order(list(records))).sent == 12


# ---- what becomes of them --------------------------------------------------------------------------------------------


def test_what_is_not_served_is_recorded_and_others_go_on() -> None:
    async def every_third(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        answer.output(clock(), 1)
        if int(request.id) % 3 == 0:
            raise NotServed("rejected" if request.id == "0" else "failed", "no")

    records = by_id(run(CLOSED, FakeClient(every_third)))
    assert [record.outcome for record in records] == ["rejected", "completed", "completed"] + (
        ["failed", "completed", "completed"] * 3
    )
    assert records[3].error == "no"
    assert len(records[3].token_ns) == 1


def test_a_retry_is_a_record_of_its_own() -> None:
    tried: list[str] = []

    async def third_time(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        tried.append(request.id)
        if len(tried) < 3:
            raise NotServed("rejected", "busy")

    limits = Limits(n_retries=3, retry_wait_s=0.002)
    records = run(replace(CLOSED, n_requests=1), FakeClient(third_time), limits)
    assert [(r.id, r.retry_of, r.outcome) for r in records] == [
        ("0", None, "rejected"),
        ("0~1", "0", "rejected"),
        ("0~2", "0~1", "completed"),
    ]
    assert (records[2].intended_ns or 0) - (records[1].ended_ns or 0) >= 4 * MS


def test_nothing_is_tried_again_unless_it_is_asked_for() -> None:
    async def fails(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        raise NotServed("failed", "no")

    assert len(run(CLOSED, FakeClient(fails))) == 12


def test_an_answer_past_its_time_expires() -> None:
    records = run(replace(CLOSED, n_requests=2), FakeClient(never), Limits(timeout_s=0.02))
    assert {(r.outcome, r.error) for r in records} == {("expired", "no whole answer within 0.02 s")}
    assert [len(record.token_ns) for record in records] == [1, 1]


@pytest.mark.parametrize("workload", [CLOSED, OPEN])
def test_a_stopped_run_has_recorded_all_that_was_sent(workload: Workload) -> None:
    client, records = FakeClient(never), list[RequestRecord]()
    load = Load(replace(workload, n_requests=10_000), client, records.append, new_clock(), Limits())

    def stop_when_three_run() -> None:
        if client.n_in_flight >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_thread(load.run(), stop_when_three_run, load.stop)
    assert client.closed
    assert sorted(r.id for r in records if r.sent_ns is not None) == sorted(client.sent)
    assert {record.outcome for record in records} == {"cancelled"}
    assert all(len(r.token_ns) == 1 for r in records if r.sent_ns is not None)


def test_a_run_that_is_stopped_before_it_begins_sends_nothing() -> None:
    client, records = FakeClient(), list[RequestRecord]()
    load = Load(CLOSED, client, records.append, new_clock(), Limits())
    load.stop()
    asyncio.run(load.run())
    assert (client.sent, records) == ([], [])


def test_a_full_disk_ends_the_run_in_one_sentence() -> None:
    def full(_: RequestRecord) -> None:
        raise StorageError("Cannot write run.jsonl: No space left on device.")

    client = FakeClient(in_5_ms)
    load = Load(CLOSED, client, full, new_clock(), Limits())
    with pytest.raises(StorageError, match="No space left"):
        in_thread(load.run(), lambda: None, load.stop)
    assert client.closed


def test_a_client_that_breaks_down_is_an_error_of_the_program() -> None:
    async def breaks(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        raise ZeroDivisionError

    load = Load(CLOSED, FakeClient(breaks), lambda _: None, new_clock(), Limits())
    with pytest.raises(ZeroDivisionError):
        in_thread(load.run(), lambda: None, load.stop)


# ---- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [replace(CLOSED, n_requests=60), replace(OPEN, n_requests=60)])
def test_littles_law_holds(workload: Workload) -> None:
    """Mean number in flight = rate of requests × mean time of each, whatever their distributions (Little, 1961)."""

    async def of_many_lengths(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        await asyncio.sleep(0.001 * (1 + int(request.id) % 7))
        answer.output(clock(), 1)

    requests = in_order(list(run(workload, FakeClient(of_many_lengths))))
    over_ns = metrics.span_ns(requests)
    assert over_ns is not None
    seen = metrics.in_flight(requests, over_ns)
    times_s = [((metrics.end_ns(each) or 0) - (each.sent_ns or 0)) / 1e9 for each in requests]
    assert seen == pytest.approx(metrics.rates(requests, over_ns).requests_per_s * sum(times_s) / len(times_s))
    if isinstance(workload.loop, ClosedLoop):
        assert 2.5 < (seen or 0) <= 3


def test_no_request_and_no_token_is_lost_or_counted_twice() -> None:
    async def now_and_then(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        for _ in range(request.max_output_tokens):
            answer.output(clock(), 1)
            await asyncio.sleep(0)
        if int(request.id) % 4 == 0:
            raise NotServed("failed", "no")

    records = run(replace(OPEN, loop=OpenLoop("at_once"), n_requests=200), FakeClient(now_and_then))
    requests = in_order(list(records))
    counts = metrics.counts(requests)
    assert (counts.sent, counts.completed, counts.failed) == (200, 150, 50)
    assert sorted(int(record.id) for record in records) == list(range(200))
    assert sum(each.output_tokens or 0 for each in metrics.completed(requests)) == 150 * 4
    assert sum(1 + len(each.itl_ns) for each in metrics.completed(requests) if each.output_counts is None) <= 600


@pytest.mark.parametrize(
    "settings", [{"seconds": 0}, {"timeout_s": 0}, {"most_in_flight": 0}, {"n_retries": -1}, {"seconds": float("nan")}]
)
def test_limits_that_cannot_be_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="Choose"):
        Limits(**settings)  # type: ignore[arg-type]


def test_warming_up_has_a_limit_of_its_own_in_an_open_loop() -> None:
    client = FakeClient(in_5_ms)
    run(replace(OPEN, n_requests=1, n_warmup=30), client)
    assert client.most == load_module.WARMUP_IN_FLIGHT


def test_a_loop_that_is_kept_busy_says_how_late_it_was() -> None:
    async def blocks(request: PlannedRequest, answer: Answer, clock: Clock) -> None:
        time.sleep(0.05)
        await asyncio.sleep(0)

    lags = []
    for serve in (blocks, in_5_ms):
        load = Load(replace(CLOSED, n_requests=30), FakeClient(serve), lambda _: None, new_clock(), Limits())
        asyncio.run(load.run())
        lags.append(load.lag)
    assert lags[0].is_too_large
    assert lags[0].mean_ns > 25 * MS
    assert lags[1].mean_ns < lags[0].mean_ns


def test_an_interrupt_in_an_overload_records_all_that_were_due() -> None:
    client, records = FakeClient(never), list[RequestRecord]()
    workload = replace(OPEN, loop=OpenLoop("at_once"), n_requests=20_000)
    load = Load(workload, client, records.append, new_clock(), Limits(most_in_flight=4))

    def stop_when_full() -> None:
        if client.n_in_flight == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_thread(load.run(), stop_when_full, load.stop)
    assert sorted(int(record.id) for record in records) == list(range(20_000))
    assert sum(record.sent_ns is not None for record in records) == 4
