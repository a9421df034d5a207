"""Lesson 11: what a model needs, on paper: bytes of weights and of KV cache, sequences that fit, time of a token."""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from diag.learn import planned
from diag.learn.exercises.capacity import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.model.card_budget import weights_bytes
from diag.model.kv_cache import bytes_per_token
from diag.model.plan import whole_number

TP = 8
COPIED_BYTES = {"tiny": 1 << 20, "small": 1 << 28, "full": 1 << 30}
"""By scale: read in each copy, and as many are written. A cache holds the tiny one, whose rate is of no use."""
REPEATS = 9


def measure(lab: Lab) -> Measured:
    lab.progress("copying in this machine's memory")
    bytes_per_s = copy_bytes_per_s(COPIED_BYTES[lab.scale])
    fit = str(planned.use(TP).budget(planned.model()).sequences_of(planned.CONTEXT_TOKENS))
    of = ("--model", planned.MODEL)
    lengths = ("--prompt", str(planned.PROMPT_TOKENS), "--output", str(planned.OUTPUT_TOKENS))
    objectives = ("--ttft", "1s", "--tpot", "50ms")
    return Measured(
        figures(bytes_per_s),
        [
            ("plan", "memory", *of, "--tp", str(TP), "--sequences", fit, "--context", str(planned.CONTEXT_TOKENS)),
            ("plan", "serving", *of, "--gpus", str(TP), "--tp", str(TP), *lengths, *objectives),
            ("plan", "transfer", *of, "--tp", str(TP), "--prompt", str(planned.PROMPT_TOKENS)),
        ],
    )


def figures(bytes_per_s: float) -> list[Figure]:
    """`bytes_per_s`: of this machine's memory."""
    model, use = planned.model(), planned.use(TP)
    assert model.kv is not None, "the shape is known"
    assert use.card.memory_bytes_per_s is not None, "and so is what the card is printed to reach"
    budget, context = use.budget(model), planned.CONTEXT_TOKENS
    whole = weights_bytes(model.parts, use.weights, use.other)
    kv_token = bytes_per_token(model.kv, use.kv.bytes_each)
    each = f"{whole_number(model.params):,} parameters x {use.weights.bytes_each:g} B"
    of_card = f"{budget.weights_bytes / 1e9:.1f} GB / {use.card.memory_bytes_per_s / 1e12:g} TB/s, as printed"
    return [
        Figure("weights_bytes", whole, "bytes", each),
        Figure("kv_token_bytes", kv_token, "bytes", f"{model.kv.formula} x {use.kv.bytes_each:g} B"),
        Figure("room_bytes", TP * budget.kv_room_bytes, "bytes", f"{TP} x (usable - weights - workspace - graphs)"),
        Figure("sequences", budget.sequences_of(context), "sequences", f"room / ({context:,} x KV of a token)"),
        Figure("bandwidth", bytes_per_s, "bytes/s", f"bytes read and written / median of {REPEATS} copies"),
        Figure("token_here_ns", 1e9 * whole / bytes_per_s, "ns", "weights / bandwidth of this machine"),
        Figure("token_there_ns", 1e9 * budget.weights_bytes / use.card.memory_bytes_per_s, "ns", of_card),
    ]


def copy_bytes_per_s(n_bytes: int) -> float:
    """Bytes read and bytes written, by a thread for each core that this process may use."""
    n_threads = len(os.sched_getaffinity(0))
    source = np.ones(n_bytes // 8)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(target, n_threads), np.array_split(source, n_threads), strict=True))

    def copy(part: tuple[np.ndarray, np.ndarray]) -> None:
        np.copyto(*part)

    with ThreadPoolExecutor(n_threads) as pool:
        took = []
        for _ in range(1 + REPEATS):
            begun = time.perf_counter_ns()
            list(pool.map(copy, parts))
            took.append(time.perf_counter_ns() - begun)
    return 1e9 * 2 * source.nbytes / statistics.median(took[1:])


LESSON = Lesson(
    number=11,
    slug="capacity",
    questions=(
        Question("weights_bytes", "GB", close=1.05),
        Question("kv_token_bytes", "kB", close=1.05),
        Question("sequences", "sequences"),
        Question("token_here_ns", "s", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
    needs_torch=False,
)
