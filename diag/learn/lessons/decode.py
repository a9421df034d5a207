"""Lesson 7: bytes of the KV cache, the time of a decode step, batches that are refilled, and what pages waste."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diag.learn.exercises.decode import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question

if TYPE_CHECKING:
    from diag.model.serving_log import StepRecord
    from diag.probes.engine.config import Batching
    from diag.probes.engine.models import Model
    from diag.probes.serve.logged import LoggedRun

MODEL = {"cpu": ("small", "fp32"), "cuda": ("1b", "bf16")}
"""By device: shape of the mini-engine, and type of its weights and its cache."""
ADDING = {"cpu": "out", "cuda": "vectorised"}
"""Variant of vector add that reaches most of the memory, by device."""

PROMPT_TOKENS = 16
DECODED_TOKENS = 24
"""In steps of one size, of which the time is taken."""
MANY = 8
"""Sequences that decode together."""

LENGTHS = (10, 10, 10, 50) * 4
"""Output tokens of the requests that are batched, in the order in which they come."""
PLACES = 4
BLOCK_TOKENS = 16
RESERVED_TOKENS = 2048
"""For each sequence, where a cache has no pages."""


@dataclass(frozen=True)
class Decoded:
    """What was measured. `one` and `many`: median time of the model in a step of so many sequences."""

    kv_token_bytes: float
    weight_bytes: int
    bytes_per_s: float
    one_ns: float
    many_ns: float
    static: Sequence[StepRecord]
    continuous: Sequence[StepRecord]


def measure(lab: Lab) -> Measured:
    from diag.learn.probing import probed, run_of
    from diag.learn.threads import one_thread
    from diag.probes.engine.models import SHAPES, random_model
    from diag.probes.engine.step_work import work
    from diag.probes.serve.logged import write

    name, dtype = MODEL[lab.device]
    name = "tiny" if lab.scale == "tiny" else name
    lab.progress(f"making the model {name}")
    model = random_model(SHAPES[name], name=name, dtype=dtype, device=lab.device)
    element_bytes = model.weights.embedding.element_size()
    adding = probed(lab, run_of(lab, "vector_add", ADDING[lab.device]))
    lab.progress("decoding")
    one, many = (_step_ns(model, n) for n in (1, MANY))
    lab.progress("batching")
    with one_thread():
        static, continuous = _batched(model, "static"), _batched(model, "continuous")
    log = write(lab.folder / "batches.jsonl", [static, continuous])
    found = Decoded(
        kv_token_bytes=_kv_token_bytes(model),
        weight_bytes=work([(PROMPT_TOKENS, 1)], 1, model.shape, element_bytes).weight_bytes,
        bytes_per_s=adding.bytes_per_s or 0.0,
        one_ns=one,
        many_ns=many,
        static=static.steps,
        continuous=continuous.steps,
    )
    return Measured(figures(found), [("report", str(log))])


def figures(of: Decoded) -> list[Figure]:
    running = [step for step in of.continuous if step.used_blocks]
    held = sum(step.used_tokens or 0 for step in running)
    paged = BLOCK_TOKENS * sum(step.used_blocks or 0 for step in running)
    reserved = RESERVED_TOKENS * sum(step.n_running or 0 for step in running)
    ratio, n_static, n_continuous = of.many_ns / of.one_ns, len(of.static), len(of.continuous)
    return [
        Figure("kv_token_bytes", of.kv_token_bytes, "bytes", "bytes of the cache / tokens that it has room for"),
        Figure("weight_bytes", of.weight_bytes, "bytes", "matrices that a step reads, embedding aside"),
        Figure("bandwidth", of.bytes_per_s, "bytes/s", "of a sum of vectors, as in lesson 1"),
        Figure("bound_ns", 1e9 * of.weight_bytes / of.bytes_per_s, "ns", "weights / bandwidth"),
        Figure("step_ns", of.one_ns, "ns", "median time of the model in steps of one sequence"),
        Figure("many_ratio", ratio, "x", f"step of {MANY} sequences / step of one"),
        Figure("token_ratio", MANY / ratio, "x", f"tokens/s with {MANY} sequences / with one"),
        Figure("static_steps", n_static, "steps", f"static batches of {PLACES}"),
        Figure("continuous_steps", n_continuous, "steps", f"continuous batching, {PLACES} places"),
        Figure("batch_ratio", n_static / n_continuous, "x", "static / continuous"),
        Figure("paged_waste", 1 - held / paged, "share", f"1 - tokens held / (blocks in use x {BLOCK_TOKENS})"),
        Figure("reserved_waste", 1 - held / reserved, "share", f"1 - tokens held / (sequences x {RESERVED_TOKENS:,})"),
    ]  # fmt: skip


def _kv_token_bytes(model: Model) -> float:
    """Of a cache that is there: counted, not worked out."""
    from diag.probes.engine.kv_cache import KvCache

    n_blocks = 4
    cache = KvCache(model.shape, n_blocks=n_blocks, block_tokens=BLOCK_TOKENS, dtype=model.dtype, device=model.device)
    return int(cache.blocks.nbytes) / ((n_blocks + 1) * BLOCK_TOKENS)  # one block is of no sequence


def _step_ns(model: Model, n: int) -> float:
    """Median, of steps in which nothing but decode happens."""
    run = _run(model, [DECODED_TOKENS] * n, "continuous", n)
    took = [step.model_ns or 0 for step in run.steps if step.n_decodes == n and not step.n_prefills]
    return float(statistics.median(took))


def _batched(model: Model, batching: Batching) -> LoggedRun:
    return _run(model, LENGTHS, batching, PLACES)


def _run(model: Model, lengths: Sequence[int], batching: Batching, places: int) -> LoggedRun:
    """Requests of such lengths, all at once. The engine knows when each was queued; here that is when it was sent."""
    import msgspec

    from diag import __version__
    from diag.model.serving_log import LoadConditions, RequestRecord, StepRecord
    from diag.probes.engine.config import EngineConfig
    from diag.probes.engine.engine import Engine
    from diag.probes.engine.journal import engine_conditions
    from diag.probes.engine.runner import TorchRunner
    from diag.probes.engine.sequence import Request, SamplingParams
    from diag.probes.serve.logged import LoggedRun

    buckets = (1, PLACES, MANY) if model.device == "cuda" else ()  # of graphs: launches would hide the memory
    config = EngineConfig(
        n_blocks=128, block_tokens=BLOCK_TOKENS, max_sequences=places, batching=batching, prefix_cache="none",
        max_context=RESERVED_TOKENS, graph_buckets=buckets,
    )  # fmt: skip
    records: list[RequestRecord | StepRecord] = []
    engine = Engine(config, TorchRunner(model, config), sink=records.append)
    for number, length in enumerate(lengths):
        prompt = tuple(range(number, number + PROMPT_TOKENS))
        engine.add(Request(f"r{number}", prompt, SamplingParams(max_tokens=length)))
    engine.drain()
    requests = [each for each in records if isinstance(each, RequestRecord)]
    return LoggedRun(
        [msgspec.structs.replace(each, sent_ns=each.queued_ns, intended_ns=each.queued_ns) for each in requests],
        [each for each in records if isinstance(each, StepRecord)],
        LoadConditions(arrival="at_once"),
        engine_conditions(config),
        backend="mini-engine",
        model=model.name,
        label=f"{batching} batching",
        diag_version=__version__,
    )


LESSON = Lesson(
    number=7,
    slug="decode",
    questions=(
        Question("kv_token_bytes", "kB", close=1.05),
        Question("step_ns", "ms", close=1.5),
        Question("batch_ratio", "x"),
        Question("paged_waste", "%", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
)
