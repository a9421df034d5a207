"""Short requests that wait for somebody else's long prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.model.serving_metrics import ServedRequest
from diag.rules.engine import run_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.serving_loads import load_rule, request_rows
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun
from diag.timeline.intervals import Intervals

FEWEST = 8
"""Of each kind: a median of fewer moves with every one of them."""


@dataclass(frozen=True)
class _Prompts:
    """Short prompts by whether they were sent while a long one was being prefilled."""

    longs: Sequence[ServedRequest]
    behind: Sequence[ServedRequest]
    apart: Sequence[ServedRequest]
    is_engine_time: bool  # prefill as the engine saw it, without the queue before

    @property
    def behind_ns(self) -> float:
        return _median_ttft(self.behind)

    @property
    def apart_ns(self) -> float:
        return _median_ttft(self.apart)


@load_rule("serving.long_prompts")
def blocked_by_long_prompts(run: ServingRun, limits: Limits) -> Answer:
    """Long prompts block short ones.

    Asks      Does a short request wait longer for its first token when it comes while a long prompt is prefilled?
    Decides   Long are prompts of `long` times the median length and more. Short ones, up to twice the median, are told
              apart by whether they were sent between the start of a long one's prefill (scheduled; where the engine is
              not seen, sent) and its first output. Fires when the median TTFT of those behind is `ratio` times that of
              the others, with eight of each. Both have the same lengths, so that only what ran meanwhile differs.
    Matters   First come, first served makes everyone wait for the largest: a prompt of 30,000 tokens takes the engine
              for as long as dozens of short answers.
    Do        Prefill in chunks, with a budget per step that leaves room for others; let short prompts pass (priority,
              or shortest first with ageing); give long ones a replica of their own, or separate prefill.
    Refute    The same requests without the long ones wait as long at the same times.
    """
    subject = run_subject(run)
    of = [
        each for each in run.completed if each.prompt_tokens and each.sent_ns is not None and each.ttft_ns is not None
    ]
    if not of:
        return CannotTell(subject, "prompt lengths, or the times of sending and of the first token, are not known")
    found = _told_apart(of, limits["long"])
    if not found.longs:
        return Clear(subject)
    if min(len(found.behind), len(found.apart)) < FEWEST:
        return CannotTell(
            subject,
            f"too few short prompts to compare: {len(found.behind)} were sent while one of {len(found.longs)} long "
            f"ones was prefilled, {len(found.apart)} at other times ({FEWEST} of each are needed)",
        )
    return Clear(subject) if found.behind_ns < limits["ratio"] * found.apart_ns else _finding(run, found)


def _told_apart(of: Sequence[ServedRequest], long: float) -> _Prompts:
    middle = float(np.median([each.prompt_tokens for each in of if each.prompt_tokens]))
    longs = [each for each in of if (each.prompt_tokens or 0) >= long * middle]
    shorts = [each for each in of if (each.prompt_tokens or 0) <= 2 * middle]
    prefills = Intervals.union_of(
        np.array([_start_ns(each) for each in longs], np.int64),
        np.array([each.first_token_ns for each in longs], np.int64),
    )
    is_behind = prefills.contains([each.sent_ns for each in shorts if each.sent_ns is not None])
    return _Prompts(
        longs,
        [each for each, behind in zip(shorts, is_behind, strict=True) if behind],
        [each for each, behind in zip(shorts, is_behind, strict=True) if not behind],
        is_engine_time=all(each.scheduled_ns is not None for each in longs),
    )


def _start_ns(request: ServedRequest) -> int | None:
    """Of its prefill, before which it may have waited itself."""
    return request.scheduled_ns if request.scheduled_ns is not None else request.sent_ns


def _median_ttft(requests: Sequence[ServedRequest]) -> float:
    return float(np.median([each.ttft_ns for each in requests if each.ttft_ns is not None]))


def _finding(run: ServingRun, found: _Prompts) -> Finding:
    behind, apart = found.behind_ns, found.apart_ns
    longest = max(each.prompt_tokens or 0 for each in found.longs)
    share = len(found.behind) / (len(found.behind) + len(found.apart))
    chunked = run.settings.chunked_prefill
    told = " Prefill is not chunked." if chunked is False else ""
    sql = request_rows(run, "prompt_tokens", "sent_ns", "scheduled_ns", "ttft_ns")
    return Finding(
        title=f"Short prompts wait {behind / apart:.1f} times as long behind a long one" if apart else
        "Short prompts wait behind a long one",
        claim=f"{units.count(len(found.behind), 'short request')} ({units.share(share)} of them) came while one of "
        f"{units.count(len(found.longs), 'long prompt')} (up to {longest:,} tokens) was prefilled. Their median TTFT "
        f"is {units.time(behind)}, that of the others {units.time(apart)}.{told}",
        subject=run_subject(run),
        level="warning",
        confidence="high" if found.is_engine_time else "medium",
        counterfactual=f"Without the long ones before them their TTFT would be about {units.time(apart)}.",
        evidence=[
            Evidence("TTFT behind a long prompt", round(behind), "ns", "median of short ones sent meanwhile", sql),
            Evidence("TTFT at other times", round(apart), "ns", "median of the other short ones", sql),
            Evidence("behind", len(found.behind), "count", "short, sent while a long one was prefilled", sql),
            Evidence("at other times", len(found.apart), "count", "the other short ones", sql),
            Evidence("long prompts", len(found.longs), "count", "of a multiple of the median length", sql),
            Evidence("share behind", share, "share", "behind / all short ones", sql),
        ],
        refute="The same requests without the long ones wait as long at the same times.",
        next=[
            "Prefill in chunks." if chunked is False else "Make the chunks of prefill smaller, or let short ones pass.",
            "Send the same requests without the long prompts, and compare.",
        ],
    )  # fmt: skip
