"""Which arithmetic pipelines a kernel keeps busy, and which stand by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from diag.launches.breakdown import floor_pct
from diag.launches.kernel import ProfiledKernel
from diag.model.quantities import Measured
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, Clear
from diag.rules.thresholds import Limits


@dataclass(frozen=True)
class Pipe:
    name: str
    counters: Sequence[str]  # of the speed of light, in which its work shows
    do: str


PIPES: Mapping[str, Pipe] = {
    "alu_pipe": Pipe(
        "ALU", ("sm__pipe_alu_cycles_active",), "Fewer integer and logic instructions: simpler indices, no 64-bit ones"
    ),
    "fma_pipe": Pipe(
        "FMA",
        ("sm__pipe_fma_cycles_active", "sm__pipe_fmaheavy_cycles_active"),
        "Fused multiply-adds, FP16 or BF16 pairs, tensor cores; fewer integer multiplications for indices",
    ),
    "fp16_pipe": Pipe("FP16", ("sm__inst_executed_pipe_fp16",), "Matrix work on the tensor cores"),
    "fp64_pipe": Pipe(
        "FP64",
        ("sm__pipe_fp64_cycles_active", "sm__pipe_shared_cycles_active"),
        "FP32 where its precision is enough; FP64 tensor cores where the device has them",
    ),
    "xu_pipe": Pipe(
        "XU",
        ("sm__inst_executed_pipe_xu",),
        "Fewer special functions and conversions: tables, polynomials, divisions once per thread",
    ),
}


@kernel_rule("ncu.pipes", needs=("alu_pipe", "fma_pipe"))
def over_used_pipe(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """A pipeline that the kernel runs into.

    Asks      Is one arithmetic pipeline of the SMs busy nearly all the time?
    Decides   Fires when the busiest of the ALU, FMA, FP16, FP64 and XU pipelines that were measured is busy in `busy`
              or more of the SMs' active cycles (where only elapsed cycles were collected, of those: they are no
              fewer). The tensor pipe is left out: one at its limit is what is wanted. An information, without a bound
              on the time: a pipeline that is full of work that is needed is no fault, and what of it is not needed
              no counter tells. The busiest other unit of the device is named, which would be the limit without it.
    Matters   Instructions queue for the pipeline, however many warps there are; the others have room.
    Do        Give it less to do, or move work to a pipeline that has room (the finding names what it executes).
    Refute    With half the instructions for this pipeline the kernel takes as long.
    """
    used = {name: found.value for name in PIPES if isinstance(found := kernel.quantity(name), Measured)}
    busiest = max(used, key=lambda name: used[name])
    pipe = PIPES[busiest]
    if used[busiest] < 100 * limits["busy"]:
        yield Clear(kernel_subject(kernel))
        return
    floor = floor_pct(kernel, without=pipe.counters)
    yield profiled.finding(
        kernel,
        title=f"The {pipe.name} pipeline limits {kernel.launch.short_name}: it is {used[busiest]:.1f} % busy",
        claim=f"The {pipe.name} pipeline is busy in {used[busiest]:.1f} % of the cycles. "
        f"{_others(used, busiest)} No other unit of the device is busier than {floor:.1f} %.",
        counterfactual="Only with less work for this pipeline does the kernel get faster; nothing stands still.",
        evidence=[profiled.evidence(kernel, name) for name in sorted(used, key=lambda name: -used[name])],
        refute="Half the instructions for this pipeline change nothing.",
        steps=[pipe.do, "See which instructions: ncu --section InstructionStats --section SourceCounters"],
    )


def _others(used: Mapping[str, float], busiest: str) -> str:
    others = sorted((name for name in used if name != busiest), key=lambda name: -used[name])
    return "Others: " + ", ".join(f"{PIPES[name].name} {used[name]:.1f} %" for name in others) + "."
