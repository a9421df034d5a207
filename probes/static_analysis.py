"""What follows from a kernel's machine code without running it: limits, occupancy, waves, and the least time.

Nothing here is measured: a kernel that fits, fills the SMs and does not spill may still be slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from diag.kernels.compilation import Done, Job, compile_all, variant_source
from diag.kernels.operator import Count, DType, Operator, Variant
from diag.model.ceilings import Arithmetic, arithmetic
from diag.model.datasheets import datasheet_peaks
from diag.model.hardware import ComputeCapability, Product, SmLimits, gpu, sm_limits
from diag.model.inspection import (
    TENSOR_MEMORY_COLUMNS,
    CompiledKernel,
    Excess,
    InspectedKernel,
    Inspection,
    StaticRoofline,
    VariantInspection,
    capability_of,
    reference_product,
)
from diag.model.occupancy import Block, Occupancy, allocated_registers, theoretical_occupancy
from diag.model.throughput import dram_peak


def inspect(operator: Operator, variants: Sequence[Variant], targets: Sequence[str], dtype: DType) -> Inspection:
    """Compiles these variants for these targets at the operator's default shape. Raises ToolMissing."""
    pairs = [(variant, target) for variant in variants for target in targets]
    compiled = compile_all(
        [Job(variant_source(operator.name, variant.name, dtype), target) for variant, target in pairs]
    )
    count = operator.count(**operator.default_shape, dtype=dtype)
    return Inspection(
        operator=operator.name,
        dtype=dtype,
        shape=operator.default_shape,
        formula=count.formula,
        variants=[
            _inspected_variant(variant, target, done, count, dtype)
            for (variant, target), done in zip(pairs, compiled, strict=True)
        ],
        left_out=[variant.name for variant in operator.variants if variant not in variants],
    )


def _inspected_variant(variant: Variant, target: str, done: Done, count: Count, dtype: DType) -> VariantInspection:
    return VariantInspection(
        variant=variant.name,
        target=target,
        kernels=[inspected(kernel) for kernel in done.kernels],
        not_compiled=done.not_compiled,
        roofline=static_roofline(count, done.kernels, target, dtype) if done.kernels else None,
        spills_on_purpose=variant.spills,
    )


def inspected(kernel: CompiledKernel) -> InspectedKernel:
    """Raises KeyError for a target without a reference product."""
    limits = limits_of(capability_of(kernel.target))
    excesses = tuple(_excesses(kernel, limits))
    occupancy = None if excesses else occupancy_of(kernel, limits)
    return InspectedKernel(kernel, excesses, occupancy, _waves(kernel, occupancy, reference_product(kernel.target)))


def limits_of(capability: ComputeCapability) -> SmLimits:
    """Raises KeyError."""
    limits = sm_limits(capability)
    if limits is None:
        raise KeyError(capability)
    return limits


def _excesses(kernel: CompiledKernel, limits: SmLimits) -> Iterator[Excess]:
    registers = allocated_registers(limits, _block(kernel))
    for resource, used, limit, unit in (
        ("shared memory of a block", kernel.shared_bytes, limits.shared_per_block_optin_bytes, "bytes"),
        ("registers of a thread", kernel.registers_per_thread, limits.registers_per_thread, "count"),
        ("registers of a block", registers, limits.registers_per_block, "count"),
        ("tensor memory columns of a block", kernel.tensor_memory_columns, TENSOR_MEMORY_COLUMNS, "count"),
    ):
        if used > limit:
            yield Excess(resource, used, limit, unit)


def _block(kernel: CompiledKernel) -> Block:
    return Block(kernel.threads, kernel.registers_per_thread, kernel.shared_bytes)


def occupancy_of(kernel: CompiledKernel, limits: SmLimits) -> Occupancy | None:
    """Theoretical occupancy, by tensor memory, too: a block waits for free columns. None: it never fits."""
    occupancy = theoretical_occupancy(limits, _block(kernel))
    if occupancy is None or not kernel.tensor_memory_columns:
        return occupancy
    blocks = TENSOR_MEMORY_COLUMNS // kernel.tensor_memory_columns
    if blocks > occupancy.blocks_per_sm:
        return occupancy
    if blocks == occupancy.blocks_per_sm:
        return replace(occupancy, limiters=(*occupancy.limiters, "tensor_memory"))
    warps = blocks * _block(kernel).warps
    return Occupancy(blocks, warps, 100 * warps / limits.warps_per_sm, occupancy.limits, ("tensor_memory",))


def _waves(kernel: CompiledKernel, occupancy: Occupancy | None, on: Product) -> float | None:
    if occupancy is None or kernel.programs is None or on.sm_count is None:
        return None
    return kernel.programs / (occupancy.blocks_per_sm * on.sm_count)


def static_roofline(
    count: Count, kernels: Sequence[CompiledKernel], target: str, dtype: DType
) -> StaticRoofline | None:
    """The least time of the operator's count on the target's reference product; None where a peak is not known."""
    on = reference_product(target)
    work = datasheet_peaks(on).get(arithmetic_of(kernels, dtype))
    traffic = dram_peak(gpu({"name": on.name}))
    return None if work is None or traffic is None else StaticRoofline(count.flops, count.n_bytes, work, traffic)


def arithmetic_of(kernels: Sequence[CompiledKernel], dtype: DType) -> Arithmetic:
    """Whose peak the operator's FLOPs are held against: of the tensor cores where the code uses them, else FP32.

    Sums are kept in FP32 whatever goes in. FP32 that the tensor cores take in is TF32.
    """
    if any(kernel.uses_tensor_cores for kernel in kernels):
        return arithmetic("tensor_tf32" if dtype == "fp32" else f"tensor_{dtype}")
    return arithmetic("fp32")
