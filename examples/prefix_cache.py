"""What a prefix cache saves: the mini-engine's time to first token, against what the work of the step says.

    python examples/prefix_cache.py

Prompts of 1,024 tokens share their first 768. The second of them finds these in the cache and computes the last 256: a
quarter of the tokens, but more than a quarter of the work, as each of them attends to all before it. The share of the
FLOPs is known in closed form (`diag/probes/engine/step_work.py`), and the measured time should follow it. What else the
log tells: diag report prefix-cache.jsonl. It needs PyTorch and no GPU (`pip install 'gpu-diag[probes]'`).
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

import msgspec

from diag import __version__
from diag.model.serving_log import Header, RequestRecord, StepRecord
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.engine import Engine
from diag.probes.engine.journal import engine_conditions
from diag.probes.engine.models import SHAPES, random_model
from diag.probes.engine.runner import TorchRunner
from diag.probes.engine.sequence import Request, SamplingParams
from diag.probes.engine.step_work import work

PROMPT, SHARED = 1024, 768
ROUNDS = 5
CONFIG = EngineConfig(n_blocks=512, max_step_tokens=PROMPT)
SHAPE = SHAPES["small"]


def main(log: Path) -> None:
    records: list[RequestRecord | StepRecord] = []
    engine = Engine(CONFIG, TorchRunner(random_model(SHAPE), CONFIG), sink=records.append)
    for _ in serve(engine, random.Random("warm-up"), n=2):
        pass
    records.clear()
    draw = random.Random(0)
    cold_ns, warm_ns = zip(*(serve(engine, draw, n=2) for _ in range(ROUNDS)), strict=True)
    measured = statistics.median(warm_ns) / statistics.median(cold_ns)
    print(f"computed whole   {statistics.median(cold_ns) / 1e6:6.1f} ms to the first token, median of {ROUNDS}")
    print(f"{SHARED:,} cached       {statistics.median(warm_ns) / 1e6:6.1f} ms, {measured:.1%} of that")
    print(f"FLOPs say               {flops_share():.1%}, tokens {1 - SHARED / PROMPT:.1%}")
    write(log, records)
    print(f"More: diag report {log}")


def serve(engine: Engine, draw: random.Random, n: int) -> list[int]:
    """Time to first token, in ns, of each of `n` prompts that share a prefix nobody has seen, one after the other."""
    shared = tokens(draw, SHARED)
    times_ns = []
    for _ in range(n):
        prompt = (*shared, *tokens(draw, PROMPT - SHARED))
        group = engine.add(Request(f"{draw.getrandbits(64):x}", prompt, SamplingParams(max_tokens=2)))
        engine.drain()
        times_ns.append(group.token_ns[0] - group.queued_ns)
    return times_ns


def tokens(draw: random.Random, n: int) -> tuple[int, ...]:
    return tuple(draw.randrange(SHAPE.vocab_size) for _ in range(n))


def flops_share() -> float:
    whole, rest = (work([span], 1, SHAPE, element_bytes=4).flops for span in ((0, PROMPT), (SHARED, PROMPT - SHARED)))
    return rest / whole


def write(log: Path, records: list[RequestRecord | StepRecord]) -> None:
    """The engine knows when a request was queued; here that is when it was sent."""
    header = Header(diag_version=__version__, backend="mini-engine", model="small", engine=engine_conditions(CONFIG))
    sent = [
        msgspec.structs.replace(each, sent_ns=each.queued_ns, intended_ns=each.queued_ns)
        if isinstance(each, RequestRecord)
        else each
        for each in records
    ]
    log.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in (header, *sent)))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "prefix-cache.jsonl"))
