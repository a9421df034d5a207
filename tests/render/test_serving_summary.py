"""What was measured of a load, in a few lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from diag.model.serving_metrics import Objective, ServedRequest
from diag.model.written_objective import objective
from diag.render.serving_summary import render_summary

MS = 1_000_000


def requests() -> list[ServedRequest]:
    """Each 100 ms one is sent, whose 11 tokens take 50 ms + 10 × 5 ms; one fails, one is of the warm-up."""
    whole = ServedRequest(
        number=0, prompt_tokens=100, output_tokens=11, sent_ns=0, intended_ns=0, ended_ns=100 * MS,
        ttft_ns=50 * MS, e2e_ns=100 * MS, itl_ns=np.full(10, 5 * MS),
    )  # fmt: skip
    of = [
        replace(whole, number=n, sent_ns=n * 100 * MS, intended_ns=n * 100 * MS, ended_ns=(n + 1) * 100 * MS)
        for n in range(10)
    ]
    of[3] = replace(of[3], outcome="failed", error="the connection \x1b[31mbroke", ttft_ns=900 * MS)
    return [replace(whole, phase="engine_warmup", ttft_ns=5_000 * MS), *of]


def test_counts_rates_latencies_and_errors() -> None:
    shown = render_summary(requests(), width=100, title="Mine", objective=objective("ttft=60ms,tpot=5ms"))
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[0] == "Mine: 10 requests, 9 completed, 1 failed"
    assert lines[1] == (
        "in 1.0 s: 9 requests/s, 900 tokens/s in, 99 tokens/s out, 9 requests/s met the objective (goodput)"
    )
    assert lines[2] == "in flight on average: 1"
    assert lines[4] == "P50 P95 P99 mean largest count"
    assert lines[6] == "TTFT 50.0 ms 50.0 ms 50.0 ms 50.0 ms 50.0 ms 9"
    assert lines[8] == "ITL 5.0 ms 5.0 ms 5.0 ms 5.0 ms 5.0 ms 90"
    assert lines[-1].startswith("1 request: the connection")
    assert "\x1b" not in shown


def test_it_fits_a_narrow_terminal() -> None:
    shown = render_summary(requests(), width=40, title="A long title " * 5, objective=Objective(ttft_ns=1.0))
    assert max(map(len, shown.splitlines())) <= 40
    assert "TTFT" in shown


def test_of_nothing_nothing_is_said() -> None:
    assert render_summary([], width=80) == "Load: 0 requests, 0 completed\n"
    rejected = ServedRequest(number=0, outcome="rejected", sent_ns=5, ended_ns=5, error="429")
    assert render_summary([rejected], width=80) == "Load: 1 request, 0 completed, 1 rejected\n  1 request: 429\n"
