"""What the engine writes down of each step and each request, for the file `diag.serving-log/1`, and as NVTX ranges.

A sink is any function that takes a record. A client that knows more of a request (when it should have been sent)
completes the record on its way: `msgspec.structs.replace(record, sent_ns=...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

from diag.model.serving_log import EngineConditions, RequestRecord, StepRecord
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.kv_memory import KvMemory
from diag.probes.engine.plan import StepOutput, StepPlan
from diag.probes.engine.scheduler import Scheduler, Step
from diag.probes.engine.sequence import SequenceGroup
from diag.probes.nvtx_ranges import nvtx_range, open_range

Sink: TypeAlias = Callable[[RequestRecord | StepRecord], None]


@dataclass(frozen=True)
class StepTimes:
    """On the engine's clock, in this order."""

    start_ns: int
    scheduled_ns: int
    returned_ns: int  # from the runner
    end_ns: int


class Journal:
    def __init__(self, sink: Sink, scheduler: Scheduler, memory: KvMemory) -> None:
        self._sink = sink
        self._scheduler = scheduler
        self._memory = memory
        self._ranges: dict[int, Callable[[], None]] = {}  # open ones, by the request's number

    def step_range(self, number: int) -> AbstractContextManager[None]:
        return nvtx_range("engine step", number)

    def request_began(self, group: SequenceGroup) -> None:
        self._ranges[group.number] = open_range("request", group.number)

    def request_refused(self, group: SequenceGroup) -> None:
        """It never began."""
        self._sink(request_record(group))

    def request_ended(self, group: SequenceGroup) -> None:
        self._sink(request_record(group))
        self._ranges.pop(group.number)()

    def step_ended(self, step: Step, plan: StepPlan, output: StepOutput, times: StepTimes) -> None:
        self._sink(step_record(step, plan, output, times, self._scheduler, self._memory))


def request_record(group: SequenceGroup) -> RequestRecord:
    """Raises ValueError while the request has not ended."""
    if group.outcome is None:
        raise ValueError(f"Request {group.request.id!r} has not ended.")
    request = group.request
    return RequestRecord(
        id=request.id,
        outcome=group.outcome,
        prompt_tokens=len(request.prompt),
        output_tokens=sum(group.token_counts),
        cached_tokens=group.cached_tokens,
        max_output_tokens=request.sampling.max_tokens * request.sampling.width,
        queued_ns=None if group.outcome == "rejected" else group.queued_ns,
        scheduled_ns=group.scheduled_ns,
        token_ns=tuple(group.token_ns),
        token_counts=tuple(group.token_counts) if any(n != 1 for n in group.token_counts) else (),
        ended_ns=group.ended_ns,
        finish_reason=group.finish_reason,
        error=group.error,
        n_preemptions=group.n_preemptions,
        priority=request.priority,
    )


def step_record(
    step: Step, plan: StepPlan, output: StepOutput, times: StepTimes, scheduler: Scheduler, memory: KvMemory
) -> StepRecord:
    """After the step. A runner that does not say how long its parts took has its whole time as the model's."""
    said = bool(output.model_ns or output.sample_ns)
    longest = step.longest_prefill
    return StepRecord(
        number=step.number,
        start_ns=times.start_ns,
        end_ns=times.end_ns,
        prefill_tokens=step.prefill_tokens,
        decode_tokens=step.n_decodes,
        n_prefills=len(step.chunks) - step.n_decodes,
        n_decodes=step.n_decodes,
        n_running=len(scheduler.running),
        n_waiting=len(scheduler.waiting),
        n_swapped=len(scheduler.swapped),
        used_blocks=memory.pool.n_used,
        cached_blocks=memory.pool.n_cached,
        free_blocks=memory.pool.n_free,
        used_tokens=memory.used_tokens([*scheduler.running, *scheduler.padding]),
        longest_prefill_tokens=step.longest_prefill_tokens,
        longest_prefill_request=None if longest is None else longest.group.request.id,
        preempted=tuple(each.group.request.id for each in step.preempted),
        swapped_in_blocks=len(plan.swap_in),
        swapped_out_blocks=len(plan.swap_out),
        recomputed_tokens=step.recomputed_tokens,
        padded_rows=plan.padded_rows,
        drafted_tokens=step.drafted_tokens,
        accepted_tokens=sum(each.n_accepted for each in output.emissions),
        schedule_ns=times.scheduled_ns - times.start_ns,
        model_ns=output.model_ns if said else times.returned_ns - times.scheduled_ns,
        sample_ns=output.sample_ns,
        output_ns=times.end_ns - times.returned_ns,
    )


def engine_conditions(config: EngineConfig) -> EngineConditions:
    """For the header of the log."""
    other = {
        "n_host_blocks": config.n_host_blocks,
        "max_context": config.max_context,
        "n_draft_tokens": config.n_draft_tokens,
        "graph_buckets": " ".join(map(str, config.graph_buckets)),
    }
    return EngineConditions(
        batching=config.batching,
        block_tokens=config.block_tokens,
        n_blocks=config.n_blocks,
        max_sequences=config.max_sequences,
        max_step_tokens=config.max_step_tokens,
        chunked_prefill=config.chunked_prefill,
        prefix_cache=config.prefix_cache,
        preemption=config.preemption,
        max_waiting=config.max_waiting,
        other={name: str(value) for name, value in other.items() if value},
    )
