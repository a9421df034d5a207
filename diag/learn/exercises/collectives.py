"""Exercise 8: a job of two ranks that runs, and has one thing wrong with it."""

from __future__ import annotations

import random
from collections.abc import Mapping

from diag.learn.lesson import Figure, Incident, Lab

N_RANKS = 2

RULES: Mapping[str, str] = {
    "late_rank": "ranks.straggler",
    "now_one_now_another": "ranks.skew",
    "small_pieces": "comm.bandwidth",
    "narrow_sum": "comm.wrong",
}
"""By fault: whose finding proves it."""

MEASURED = frozenset({"narrow_sum", "small_pieces"})
"""Faults of a benchmark, which is shown beside an earlier one that was right; others are of jobs that are traced."""


def exercise(lab: Lab, draw: random.Random) -> Incident:
    from diag.learn.sick_ranks import run

    fault = draw.choice(sorted(RULES))
    lab.progress(f"starting {N_RANKS} ranks")
    jobs = ["benchmark", fault] if fault in MEASURED else [fault]
    left = run(jobs, N_RANKS, lab.folder, draw.randrange(1 << 31))
    return Incident(fault, [("report", *map(str, left.values()))], RULES[fault], injected(fault))


def injected(fault: str) -> list[Figure]:
    from diag.learn.sick_ranks import LATE_MS, PIECE_BYTES

    late = Figure("injected", LATE_MS * 1e6, "ns", "by which a rank comes late to a step")
    return {
        "late_rank": [late],
        "now_one_now_another": [late],
        "small_pieces": [Figure("injected", PIECE_BYTES, "bytes", "of a piece, each with a call of its own")],
        "narrow_sum": [Figure("injected", 2.0**-8, "ratio", "unit roundoff of BF16, where FP32 has 2^-24")],
    }[fault]
