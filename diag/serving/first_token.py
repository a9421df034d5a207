"""What passes before a request's first token: on its way in, in the queue, in its prefill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diag.model.serving_metrics import Nanoseconds, ServedRequest
from diag.serving.run import EngineStep

Part = Literal["input", "queue", "prefill"]


@dataclass(frozen=True, eq=False)
class FirstTokenParts:
    """Arrays are (requests,); the three parts add up to TTFT.

    input    sent → queued, without `boundary`: network, HTTP, templates, tokenising
    queue    queued → scheduled, and `boundary`
    prefill  scheduled → first output at the client
    """

    input_ns: Nanoseconds
    queue_ns: Nanoseconds
    prefill_ns: Nanoseconds
    boundary_ns: Nanoseconds
    """Of the queue: what remained, when the request was sent, of the step that ran, as an engine takes in what came
    when a step has ended; at most sent → queued."""

    @property
    def totals(self) -> dict[Part, int]:
        return {
            "input": int(self.input_ns.sum()),
            "queue": int(self.queue_ns.sum()),
            "prefill": int(self.prefill_ns.sum()),
        }


def first_token_parts(requests: Sequence[ServedRequest], steps: Sequence[EngineStep]) -> FirstTokenParts | None:
    """Of those whose four times are known and follow each other; None without any."""
    of = [times for each in requests if (times := _times(each)) is not None]
    if not of:
        return None
    sent, queued, scheduled, first = np.array(of, np.int64).T
    boundary = np.minimum(_rest_of_step(sent, steps), queued - sent)
    return FirstTokenParts(
        input_ns=queued - sent - boundary,
        queue_ns=scheduled - queued + boundary,
        prefill_ns=first - scheduled,
        boundary_ns=boundary,
    )


def _times(request: ServedRequest) -> tuple[int, int, int, int] | None:
    sent, queued, scheduled = request.sent_ns, request.queued_ns, request.scheduled_ns
    first = request.first_token_ns
    if sent is None or queued is None or scheduled is None or first is None:
        return None
    return (sent, queued, scheduled, first) if sent <= queued <= scheduled <= first else None


def _rest_of_step(times: Nanoseconds, steps: Sequence[EngineStep]) -> Nanoseconds:
    """How much longer the step takes that runs at each of these times; 0 where none does. Steps do not overlap."""
    if not steps:
        return np.zeros_like(times)
    in_order = sorted(steps, key=lambda step: step.start_ns)
    starts, ends = (np.array([getattr(step, name) for step in in_order]) for name in ("start_ns", "end_ns"))
    at = np.searchsorted(starts, times, side="right") - 1
    return np.where(at < 0, 0, np.maximum(ends[at] - times, 0))
