"""What takes requests: the border between the load, which knows no server, and its clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from diag.model.serving_log import Outcome
from diag.probes.serve.workload import PlannedRequest

Clock: TypeAlias = Callable[[], int]
"""Monotonic ns since the run began."""


class NotServed(Exception):
    """An attempt that did not complete, and why, in words for the log.

    `rejected` is what the server turned away before any work, `expired` what passed a deadline that it keeps.
    """

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(why)
        self.outcome: Outcome = outcome


@dataclass
class Answer:
    """What came back of one attempt so far. Its client fills it as it comes, so that a cut leaves what came before."""

    token_ns: list[int] = field(default_factory=list)
    token_counts: list[int] = field(default_factory=list)  # as many as times
    prompt_tokens: int | None = None  # as the server counts them, and the next two; None: it does not say
    output_tokens: int | None = None
    cached_tokens: int | None = None
    queued_ns: int | None = None
    scheduled_ns: int | None = None
    ended_ns: int | None = None  # None: when `send` returned
    finish_reason: str | None = None
    n_preemptions: int | None = None

    def output(self, time_ns: int, n_tokens: int) -> None:
        """Tokens that arrived together. What one read brought in several events is one output."""
        if self.token_ns and self.token_ns[-1] == time_ns:
            self.token_counts[-1] += n_tokens
        else:
            self.token_ns.append(time_ns)
            self.token_counts.append(n_tokens)


class Client(Protocol):
    async def send(self, request: PlannedRequest, attempt_id: str, answer: Answer, clock: Clock) -> None:
        """Returns when the answer is complete. Raises NotServed and nothing else; cancelled, it cancels the request."""
        ...

    async def __aenter__(self) -> object: ...

    async def __aexit__(self, *error: object) -> None:
        """Leaves no connection, task or thread."""
        ...
