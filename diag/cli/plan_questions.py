"""From the options of `diag plan comm` to its answers: a function for each question, which answers if it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from diag.errors import InputError, UsageError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.input_file import Progress
from diag.model import plan_training, units, written
from diag.model.collective import Primitive
from diag.model.collective_fit import NoFit
from diag.model.parallelism import Step, Transformer, ZeroStage
from diag.model.placement import Layout, placements
from diag.model.plan import Answer
from diag.model.plan_call import Measured, Speed, call, levels
from diag.ranks.comm_measurements import CommSeries, comm_series

_Value = TypeVar("_Value")

ELEMENT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}

MOST_GPUS = 1 << 20
LARGEST = 1 << 40
"""Of whole numbers that are multiplied with each other."""


@dataclass(frozen=True)
class Speeds:
    """None: not named."""

    domain: Speed | None
    network_per_s: float | None


# ---- options -------------------------------------------------------------------------------------------------------


def parsed(option: str, text: str | None, of: Callable[[str], _Value]) -> _Value | None:
    """None for an option that was not given. Raises UsageError, naming it, for what it cannot be."""
    try:
        return None if text is None else of(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def primitive(name: str) -> Primitive:
    try:
        return Primitive(name.replace("-", "_"))
    except ValueError:
        raise UsageError(f"--op {name!r} is none of {', '.join(Primitive)}.") from None


def zero_stage(stage: int) -> ZeroStage:
    stages: tuple[ZeroStage, ...] = (0, 1, 2, 3)
    return stages[stage]


def transformer(
    params: str | None,
    layers: int | None,
    hidden: int | None,
    seq: int | None,
    dtype: str,
    top_k: int,
    *,
    has_experts: bool,
) -> Transformer | None:
    """None where parameters and layers are not named: then no training step is asked for."""
    count = parsed("--params", params, written.count)
    if count is None and layers is None:
        return None
    named = {"--params": count, "--layers": layers, "--hidden": hidden, "--seq": seq}
    missing = [option for option, value in named.items() if value is None]
    if count is None or layers is None or hidden is None or seq is None:
        raise UsageError(f"A training step also needs {', '.join(missing)}.")
    return Transformer(
        hidden=_bounded("--hidden", hidden),
        layers=_bounded("--layers", layers),
        sequence=_bounded("--seq", seq),
        params=count,
        element_bytes=_element_bytes(dtype),
        top_k=top_k,
        moe_layers=layers if has_experts else 0,
    )


def speeds(
    bandwidth: str | None, latency: str | None, fit: Path | None, network: str | None, op: Primitive, gpus: int | None,
    progress: Progress,
) -> Speeds:  # fmt: skip
    hop_ns = parsed("--latency", latency, written.time_ns)
    bus = parsed("--bandwidth", bandwidth, written.bytes_per_s)
    if fit is not None and (bus is not None or hop_ns is not None):
        raise UsageError("--fit takes bandwidth and latency from a file: leave out --bandwidth and --latency.")
    given = Speed(bus, hop_ns or 0.0) if bus is not None else None
    domain = given if fit is None else Speed.of(measured(fit, op, gpus, progress))
    return Speeds(domain, parsed("--network", network, written.bytes_per_s))


def measured(path: Path, op: Primitive, gpus: int | None, progress: Progress) -> Measured:
    """The line through the series of `op` whose ranks are nearest to `gpus`. Raises InputError where there is none."""
    with open_inputs([path], ImportOptions(), progress) as case:
        series = comm_series(case)
    if not series:
        raise InputError(
            f"{path} holds no measured collective. Measure with nccl-tests: all_reduce_perf -b 8 -e 4G -f 2"
        )
    of_op = [each for each in series if each.op is op]
    if not of_op:
        raise InputError(f"{path} holds {', '.join({each.op: None for each in series})}, but no {op}: see --op.")

    def distance(each: CommSeries) -> tuple[float, int]:
        ratio = each.n_ranks / (gpus or each.n_ranks)
        return max(ratio, 1 / ratio), -len(each.sizes)

    nearest = min(of_op, key=distance)
    if isinstance(nearest.fit, NoFit):
        raise InputError(f"{path} does not tell latency and bandwidth of {nearest.name}: {nearest.fit.because}.")
    return Measured(nearest.fit, op, nearest.n_ranks, nearest.name)


def _bounded(option: str, value: int) -> int:
    if value > LARGEST:
        raise UsageError(f"{option} is {value}; {LARGEST:,} is the most that can be.")
    return value


def _element_bytes(dtype: str) -> int:
    if dtype not in ELEMENT_BYTES:
        raise UsageError(f"--dtype {dtype!r} is none of {', '.join(ELEMENT_BYTES)}.")
    return ELEMENT_BYTES[dtype]


# ---- questions -----------------------------------------------------------------------------------------------------


def check_gpus(gpus: int | None, size: str | None, layout: Layout) -> None:
    """Raises UsageError for GPUs that a layout does not have."""
    if gpus is not None and size is None and layout.n_ranks > 1:
        product = " x ".join(map(str, (layout.tp, layout.cp, layout.dp, layout.pp)))
        raise UsageError(
            f"A layout of tp x cp x dp x pp = {product} is of {layout.n_ranks:,} GPUs by itself: leave out --gpus "
            f"{gpus}, which is that of one collective."
        )


def of_call(op: str, size: str | None, gpus: int | None, domain: int, speeds: Speeds) -> list[Answer]:
    n_bytes, speed = parsed("--size", size, written.size_bytes), speeds.domain
    if n_bytes is None and gpus is None:
        return []
    n_ranks = gpus or (speed.measured.n_ranks if speed and speed.measured else None)
    if n_bytes is None or n_ranks is None:
        raise UsageError("A collective has a number of GPUs and a size: --gpus 8 --size 2GB.")
    if speed is None:
        raise UsageError("How fast? Name --bandwidth 350GB/s, or --fit FILE with output of nccl-tests.")
    if n_ranks > MOST_GPUS:
        raise UsageError(f"--gpus {n_ranks}: {MOST_GPUS:,} is the most that can be.")
    answer = call(primitive(op), n_bytes, n_ranks, speed)
    if speeds.network_per_s is None or n_ranks <= domain:
        return [answer]
    if n_ranks % domain:
        raise UsageError(f"{n_ranks} GPUs do not fill domains of {domain}: see --domain.")
    rates = speed.bus_bytes_per_s, speeds.network_per_s
    return [answer, levels(primitive(op), n_bytes, domain, n_ranks // domain, *rates)]


def of_pipeline(stages: int, micro_batches: int, chunks: int) -> list[Answer]:
    _bounded("--micro-batches", micro_batches)
    _bounded("--chunks", chunks)
    if stages > 1 and chunks > 1 and micro_batches % stages:
        raise UsageError(
            f"With --chunks, stages take micro-batches in turns of {stages}: --micro-batches {micro_batches} is no "
            f"multiple of --pp {stages}."
        )
    return [plan_training.pipeline(stages, micro_batches, chunks)] if stages > 1 else []


def of_experts(n_experts: int | None, seq: int | None, top_k: int, factor: float, load: str | None) -> list[Answer]:
    loads = parsed("--load", load, _loads) or []
    if n_experts is None:
        if loads:
            raise UsageError("--load also needs --experts N: of how many experts.")
        return []
    if top_k > n_experts:
        raise UsageError(f"--top-k {top_k} is more than there are experts ({n_experts}).")
    if loads and len(loads) != n_experts:
        raise UsageError(f"--load names {len(loads)} experts, --experts {n_experts}. Name the tokens of each.")
    tokens = sum(loads) // top_k if loads else seq
    if tokens is None:
        raise UsageError("--experts also needs --seq N, the tokens that are spread over them, or --load.")
    return [plan_training.experts(_bounded("--seq", tokens), n_experts, top_k, factor, loads)]


def _loads(text: str) -> Sequence[int]:
    parts = [part.strip() for part in text.split(",")]
    loads = [int(part) if part.isascii() and part.isdecimal() and len(part) < 20 else -1 for part in parts]
    if not all(0 <= tokens <= LARGEST for tokens in loads) or not any(loads):
        raise ValueError("it has the tokens of each expert, as in 300,100,100,12.")
    return loads


def of_context(
    n_ranks: int, hidden: int | None, seq: int | None, dtype: str, flops: str | None, speeds: Speeds
) -> list[Answer]:
    if n_ranks == 1:
        return []
    if hidden is None or seq is None:
        raise UsageError("--cp also needs --hidden and --seq: what moves are keys and values of a sequence.")
    model = Transformer(_bounded("--hidden", hidden), 1, _bounded("--seq", seq), 0.0, _element_bytes(dtype))
    rate = speeds.domain.bus_bytes_per_s if speeds.domain else None
    return [plan_training.context(n_ranks, model, rate, parsed("--flops", flops, written.flops_per_s))]


def of_layout(layout: Layout, model: Transformer | None, step: Step, domain: int, speeds: Speeds) -> list[Answer]:
    if fault := layout.fault:
        raise UsageError(f"Such a layout cannot be: {fault}.")
    if model is None:
        return []
    if layout.pp * step.chunks > model.layers:
        raise UsageError(
            f"{model.layers} layers do not fill {layout.pp} stages of {units.count(step.chunks, 'chunk')}: each has a "
            "layer at least. See --pp, --chunks and --layers."
        )
    if layout.n_ranks == 1:
        raise UsageError("A training step on one GPU communicates nothing: name --tp, --pp, --dp or --cp.")
    if speeds.domain is None:
        raise UsageError("How fast? Name --bandwidth 350GB/s, or --fit FILE with output of nccl-tests.")
    inside = all(place.is_inside for place in placements(layout, domain))
    if not inside and speeds.network_per_s is None:
        raise UsageError(f"Groups reach over domains of {domain} GPUs: name --network 400Gbit/s, or another --domain.")
    domain_per_s = speeds.domain.bus_bytes_per_s
    network_per_s = speeds.network_per_s or domain_per_s
    return [plan_training.layout(layout, model, step, domain, domain_per_s, network_per_s)]


def check_any(found: Sequence[Answer]) -> None:
    if not found:
        raise UsageError("Nothing is asked. Try: diag plan comm --gpus 8 --size 2GB --bandwidth 350GB/s")
