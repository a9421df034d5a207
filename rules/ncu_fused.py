"""Floating-point instructions that a kernel could do without, or in a cheaper precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.launches.arithmetic import PER_OPCODE, Arithmetic, Precision, arithmetic_of, opcodes_sql
from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.quantities import Measured
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence
from diag.rules.thresholds import Limits

_PIPES: Sequence[tuple[Precision, str]] = (("fp32", "fma_pipe"), ("fp64", "fp64_pipe"))


@kernel_rule("ncu.fused_multiply_add", needs=("fma_pipe", "fp64_pipe"))
def fused_multiply_add(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Multiplications and additions that could be one instruction.

    Asks      Which share of the floating-point instructions is a multiplication whose sum a fused multiply-add could
              form in the same instruction?
    Decides   For FP32 and FP64 apart: pairs = min(additions, multiplications), for an addition without a product to
              take in cannot be fused; saved = pairs / (additions + multiplications + fused). Fires at `share`, if the
              pipeline is at `busy` or more: saving instructions of a pipeline that has little to do wins nothing. For
              as many additions as multiplications this is the share that Nsight Compute's rule FPInstructions gives.
              Recoverable: time · saved · use of the pipeline, the time that it spends on those instructions.
    Matters   A fused multiply-add takes the time of either, and rounds once instead of twice.
    Do        Let the compiler fuse: no `-fmad=false`, no `__fmul_rn` or `__fadd_rn`; write a·b + c in one expression.
    Refute    The products are needed by themselves, or each sum is of other values: then there is nothing to fuse.
    """
    busy = [(precision, pipe) for precision, pipe in _PIPES if kernel.value(pipe) >= 100 * limits["busy"]]
    told = [(precision, pipe, arithmetic_of(kernel, precision)) for precision, pipe in busy]
    if missing := [counts for _, _, counts in told if isinstance(counts, str)]:
        yield CannotTell(kernel_subject(kernel), missing[0])
        return
    found = [
        (counts.saved * kernel.value(pipe) / 100, precision, pipe, counts)
        for precision, pipe, counts in told
        if isinstance(counts, Arithmetic) and counts.saved >= limits["share"]
    ]
    if not found:
        yield Clear(kernel_subject(kernel))
        return
    fraction, precision, pipe, counts = max(found, key=lambda each: each[0])
    name = precision.upper()
    yield profiled.finding(
        kernel,
        title=f"{units.share(counts.saved)} of the {name} instructions of {kernel.launch.short_name} could be fused",
        claim=f"Beside {units.quantity(counts.fused.value, 'inst')} fused multiply-adds it executes "
        f"{units.quantity(counts.adds.value, 'inst')} additions and "
        f"{units.quantity(counts.multiplications.value, 'inst')} multiplications in {name}; the pipeline is "
        f"{kernel.value(pipe):.1f} % busy.",
        counterfactual="As if each multiplication that finds an addition were fused with it.",
        fraction=fraction,
        confidence="medium",
        evidence=[
            _count(kernel, f"{name} additions", counts.adds),
            _count(kernel, f"{name} multiplications", counts.multiplications),
            _count(kernel, f"{name} fused multiply-adds", counts.fused),
            profiled.evidence(kernel, pipe),
        ],
        refute="The products are needed by themselves, or the sums are of other values.",
        steps=[
            "Compile without -fmad=false and without __fmul_rn, __fadd_rn; write a * b + c in one expression",
            "Find them: ncu --section SourceCounters --import-source yes, FMUL and FADD (DMUL and DADD) in SASS",
        ],
    )


def _count(kernel: ProfiledKernel, label: str, count: Measured) -> Evidence:
    by_opcode = count.metrics == (PER_OPCODE,)
    sql = opcodes_sql(kernel.launch.id) if by_opcode else profiled.metrics_sql(kernel, count)
    return Evidence(label, count.value, count.unit, count.formula, sql)
