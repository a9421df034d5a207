"""From what a serving log says of a request to what metrics are made of."""

from __future__ import annotations

import numpy as np

from diag.model.serving_log import RequestRecord
from diag.model.serving_metrics import Nanoseconds, ServedRequest


def served(record: RequestRecord, number: int) -> ServedRequest:
    """A record as a request. `number` is its place in the order of sending.

    TTFT and E2E are counted from `sent_ns` and are None without it, or without any output. Tokens are those that the
    record states, else the sum of its counts, else one for each output.

    Raises ValueError where the times of outputs go backwards or begin before the request was sent, and where counts and
    times are not equally many.
    """
    times, counts = _arrays(record)
    return ServedRequest(
        number=number,
        name=record.id,
        phase=record.phase,
        outcome=record.outcome,
        prompt_tokens=record.prompt_tokens,
        output_tokens=_output_tokens(record, times, counts),
        cached_tokens=record.cached_tokens,
        max_output_tokens=record.max_output_tokens,
        intended_ns=record.intended_ns,
        sent_ns=record.sent_ns,
        queued_ns=record.queued_ns,
        scheduled_ns=record.scheduled_ns,
        ended_ns=record.ended_ns,
        ttft_ns=_since_sent(record, times[:1]),
        e2e_ns=_since_sent(record, times[-1:]),
        itl_ns=np.diff(times),
        output_counts=counts,
        finish_reason=record.finish_reason,
        error=record.error,
        n_preemptions=record.n_preemptions,
        retry_of=record.retry_of,
        priority=record.priority,
        session=record.session,
    )


def _arrays(record: RequestRecord) -> tuple[Nanoseconds, Nanoseconds | None]:
    """Times and counts of the outputs, (outputs,) each; no counts: one token each."""
    times = np.array(record.token_ns, np.int64)
    counts = np.array(record.token_counts, np.int64) if record.token_counts else None
    if counts is not None and (len(counts) != len(times) or counts.min() < 0):
        raise ValueError(f"request {record.id} counts the tokens of {len(counts)} outputs and has {len(times)} times")
    starts = times[:1] if record.sent_ns is None else np.array([record.sent_ns], np.int64)
    if (np.diff(times) < 0).any() or (times[:1] < starts).any():
        raise ValueError(f"the times of request {record.id} go backwards")
    return times, counts


def _since_sent(record: RequestRecord, output: Nanoseconds) -> int | None:
    """`output` is the time of one, or empty."""
    return None if record.sent_ns is None or not len(output) else int(output[0]) - record.sent_ns


def _output_tokens(record: RequestRecord, times: Nanoseconds, counts: Nanoseconds | None) -> int | None:
    if record.output_tokens is not None:
        return record.output_tokens
    if counts is not None:
        return int(counts.sum())
    return len(times) or None
