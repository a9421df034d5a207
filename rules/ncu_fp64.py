"""FP64 where the device is slow at it, or where the kernel means FP32."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.arithmetic import KINDS, arithmetic_of
from diag.launches.breakdown import floor_pct
from diag.launches.kernel import ProfiledKernel
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear
from diag.rules.thresholds import Limits


@kernel_rule("ncu.fp64", needs=("fp64_pipe", "fp64_slowdown"))
def fp64(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """FP64 arithmetic that may be there by accident.

    Asks      Does FP64 cost much, on a device that is slow at it or in a kernel that computes in FP32?
    Decides   Looks only where the FP64 pipe is at `busy` or more. Fires when the device does FP32 `slowdown` times as
              fast or more (GeForce and inference cards: 32 or 64 times), or when FP64 instructions are fewer than
              FP32 ones: a literal without `f`, or a call of sin instead of sinf, makes a whole expression FP64. A
              kernel that is FP64 throughout, on a device made for it, is clear.
              Recoverable: time · use of the FP64 pipe · (1 - 1 / the device's ratio), but the launch takes no less
              than its busiest other unit is busy.
    Matters   One FP64 instruction costs as much as 2, 32 or 64 in FP32, twice the registers and twice the bytes.
    Do        Look for literals without `f`, double constants, `pow` and `sqrt` of doubles and conversions
              (F2F.F64.F32) in the SASS. Where FP64 is meant, keep it for the sums that need it, or run on a device
              with a full FP64 rate.
    Refute    The results need FP64, or the kernel in FP32 takes as long.
    """
    busy, slowdown = kernel.value("fp64_pipe"), kernel.value("fp64_slowdown")
    if busy < 100 * limits["busy"]:
        yield Clear(kernel_subject(kernel))
        return
    is_slow = slowdown >= limits["slowdown"]
    mixed = None if is_slow else _is_mixed(kernel)
    if isinstance(mixed, str):
        yield CannotTell(kernel_subject(kernel), mixed)
        return
    if not is_slow and not mixed:
        yield Clear(kernel_subject(kernel))
        return
    floor = floor_pct(kernel, without=_OF_FP64)
    yield profiled.finding(
        kernel,
        title=f"FP64 keeps its pipe {busy:.1f} % busy in {kernel.launch.short_name}",
        claim=f"The FP64 pipe is busy in {busy:.1f} % of the cycles, on a device that does FP32 {slowdown:.0f} times "
        f"as fast.{_MIXED if mixed else ''}",
        counterfactual="As if the same instructions ran in FP32 and the rest stayed.",
        fraction=min(busy / 100 * (1 - 1 / max(slowdown, 1.0)), 1 - floor / 100),
        confidence="high" if is_slow else "medium",
        evidence=[
            profiled.evidence(kernel, "fp64_pipe"),
            profiled.evidence(kernel, "fp64_slowdown"),
            *profiled.known(kernel, *_COUNTS),
        ],
        refute="The results need FP64, or the kernel in FP32 takes as long.",
        steps=[
            "Look for literals without f, double constants and conversions: F2F.F64.F32, DADD, DMUL, DFMA in the SASS",
            "ncu --section InstructionStats --section SourceCounters --import-source yes",
        ],
    )


_OF_FP64 = ("sm__pipe_fp64_cycles_active", "sm__pipe_shared_cycles_active")
_COUNTS = tuple(f"{precision}_{kind}" for precision in ("fp64", "fp32") for kind in KINDS)
_MIXED = " Most of its floating-point instructions are FP32."


def _is_mixed(kernel: ProfiledKernel) -> bool | str:
    """Whether FP64 is the smaller part of the floating-point instructions, or why that is not known."""
    fp64_counts, fp32_counts = arithmetic_of(kernel, "fp64"), arithmetic_of(kernel, "fp32")
    if isinstance(fp64_counts, str) or isinstance(fp32_counts, str):
        return fp64_counts if isinstance(fp64_counts, str) else str(fp32_counts)
    return 0 < fp64_counts.instructions < fp32_counts.instructions
