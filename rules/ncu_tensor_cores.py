"""Whether multiply-adds that tensor cores could do are done beside them."""

from __future__ import annotations

from collections.abc import Iterator

from diag.launches.breakdown import floor_pct
from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.datasheets import times_fp32
from diag.model.hardware import Gpu
from diag.model.quantities import Missing
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence
from diag.rules.thresholds import Limits


@kernel_rule("ncu.tensor_cores", needs=("fma_pipe", "tensor_pipe"))
def idle_tensor_cores(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Multiply-adds by the dozen, beside tensor cores that do nothing.

    Asks      Does a kernel that consists of FP32 or FP16 multiply-adds leave the device's tensor cores idle?
    Decides   Fires on a device with tensor cores when the pipe of the multiply-adds, FMA or FP16, is at `busy` or
              more, at least `fused_share` of all instructions that threads execute are such multiply-adds, as in a
              product of matrices, and the tensor pipe is below `idle`. Counters decide, never the kernel's name; that
              the multiply-adds are a matrix product they cannot show, so confidence is medium.
              Recoverable: time · pipe · (1 - FP32 peak / tensor peak of the datasheet; without one, all of it), but
              the launch takes no less than its busiest other unit is busy.
    Matters   Tensor cores multiply TF32, BF16 or FP16 several times as fast as the FMA pipe does FP32.
    Do        Use a library or a compiler that does (cuBLAS with TF32 allowed, CUTLASS, Triton's `tl.dot`); in PyTorch
              `torch.set_float32_matmul_precision("high")` or `torch.autocast`. Check the results: TF32 keeps 10 bits.
    Refute    The work is no matrix product, it needs FP32, or with tensor cores it takes as long: then data come too
              late.
    """
    gpu = kernel.launch.gpu
    if gpu.has_tensor_cores is None:
        yield CannotTell(kernel_subject(kernel), "whether this device has tensor cores is not known")
        return
    fp16 = kernel.known("fp16_pipe")
    pipe = "fp16_pipe" if fp16 is not None and fp16 > kernel.value("fma_pipe") else "fma_pipe"
    busy, tensor = kernel.value(pipe), kernel.value("tensor_pipe")
    if not gpu.has_tensor_cores or busy < 100 * limits["busy"] or tensor >= 100 * limits["idle"]:
        yield Clear(kernel_subject(kernel))
        return
    fused = kernel.quantity("fused_share")
    if isinstance(fused, Missing):
        yield CannotTell(kernel_subject(kernel), fused.because)
        return
    if fused.value < limits["fused_share"]:
        yield Clear(kernel_subject(kernel))
        return
    yield profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} multiplies beside the tensor cores",
        claim=f"{units.share(fused.value)} of its instructions are multiply-adds. Their pipe is {busy:.1f} % busy, the "
        f"tensor pipe {tensor:.2f} %; this device has one for {', '.join(_types(gpu))}.",
        counterfactual="As if tensor cores did the multiply-adds, by the ratio of the datasheet, and the rest stayed.",
        fraction=min(busy / 100 * (1 - _slower(gpu)), 1 - floor_pct(kernel, without=_OF_FMA) / 100),
        confidence="medium",
        evidence=[
            profiled.evidence(kernel, "fused_share"),
            profiled.evidence(kernel, pipe),
            profiled.evidence(kernel, "tensor_pipe"),
            Evidence("tensor cores for", ", ".join(_types(gpu)), "text", "by compute capability (limits.toml)"),
        ],
        refute="The work is no matrix product, needs FP32, or takes as long on the tensor cores.",
        steps=['torch.set_float32_matmul_precision("high"), torch.autocast, cuBLAS, CUTLASS or tl.dot of Triton'],
    )


_OF_FMA = (
    "sm__pipe_fma_cycles_active",
    "sm__pipe_fmaheavy_cycles_active",
    "sm__inst_executed_pipe_fp16",
    "sm__inst_executed",
    "sm__issue_active",
)
"""Where the multiply-adds show: they leave the pipe and, a thousand at a time, the issue slots too."""


def _types(gpu: Gpu) -> list[str]:
    return [each.upper() for each in gpu.limits.tensor_cores] if gpu.limits else []


def _slower(gpu: Gpu) -> float:
    """The datasheet's FP32 peak outside the tensor cores as a share of the peak inside; 0 where it is not known."""
    faster = times_fp32(gpu.product)
    best = faster.get("TF32", faster.get("FP16"))
    return 1 / best if best else 0.0
