"""Which runs can be held against each other: of the same server, asked for the same kind of requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diag.serving.run import ServingRun

TOKENS_APART = 0.15
"""Mean lengths of the same distribution, drawn twice, differ by a few per cent; other data sets by far more."""


def same_requests(a: ServingRun, b: ServingRun) -> bool:
    """Whether lengths were drawn alike: as the files say, and by their mean where it is known of both."""
    words = ("prompt_lengths", "output_lengths", "shared_prefix_share")
    if any(getattr(a.load, name) != getattr(b.load, name) for name in words):
        return False
    return all(_close(tokens_of(a, name), tokens_of(b, name)) for name in ("prompt_tokens", "output_tokens"))


def same_server(a: ServingRun, b: ServingRun) -> bool:
    return (a.backend, a.model, a.engine) == (b.backend, b.model, b.engine)


def alike(a: ServingRun, b: ServingRun) -> bool:
    """Whether they differ in how fast requests came and in nothing else that is known."""
    return same_server(a, b) and same_requests(a, b)


def groups(runs: Iterable[ServingRun]) -> Sequence[Sequence[ServingRun]]:
    """Runs that are alike, in the order in which the first of each was met."""
    found: list[list[ServingRun]] = []
    for run in runs:
        of = next((group for group in found if alike(group[0], run)), None)
        if of is None:
            found.append([run])
        else:
            of.append(run)
    return found


_STATED = {"prompt_tokens": "input_tokens", "output_tokens": "output_tokens"}


def tokens_of(run: ServingRun, name: str) -> float | None:
    """Mean `prompt_tokens` or `output_tokens` of completed requests, where known of all; else of the stated total."""
    tokens = [getattr(each, name) for each in run.completed]
    if tokens and None not in tokens:
        return float(sum(tokens)) / len(tokens)
    total = run.stated(_STATED[name], "total")
    return None if total is None or not run.n_completed else total.value / run.n_completed


def _close(a: float | None, b: float | None) -> bool:
    return a is None or b is None or abs(a - b) <= TOKENS_APART * max(a, b)
