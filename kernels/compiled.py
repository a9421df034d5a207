"""Compiles a kernel for a GPU that need not be there, and reads its machine code.

Nothing can be compiled in a process in which Triton interprets its kernels: `diag.kernels.compilation` starts others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

from diag.kernels.catalogue import operators
from diag.kernels.machine_code import instruction_mix, printed_by, resource_usage
from diag.kernels.operator import Build, DType
from diag.model.hardware import WARP_THREADS
from diag.model.inspection import CompiledKernel, NotCompiled

_DIVISIBLE_BY_16 = [["tt.divisibility", 16]]


def builds_of_variant(operator: str, variant: str, dtype: DType) -> Sequence[Build]:
    """Raises KeyError for an operator or a variant that is none."""
    return operators()[operator].variant(variant).builds(dtype)


def compiled(build: Build, target: str) -> CompiledKernel | NotCompiled:
    """The kernel as it would run on `target` ('sm_90'). Raises ToolMissing.

    The compiler raises errors of many kinds, some of them plain RuntimeErrors: each is an answer here.
    """
    try:
        binary = _binary(build, target)
    except Exception as error:  # noqa: BLE001 - whatever it is, it has come up inside the compiler
        return NotCompiled(build.kernel.__name__, target, _said(error))
    with TemporaryDirectory(prefix="diag-") as folder:
        cubin = Path(folder, "kernel.cubin")
        cubin.write_bytes(binary.asm["cubin"])
        usage = resource_usage(printed_by("cuobjdump", "-res-usage", cubin))[binary.metadata.name]
        instructions = instruction_mix(printed_by("nvdisasm", "-c", cubin))
    return CompiledKernel(
        name=binary.metadata.name,
        target=target,
        registers_per_thread=usage.registers_per_thread,
        stack_bytes=usage.stack_bytes,
        shared_bytes=binary.metadata.shared,
        threads=WARP_THREADS * binary.metadata.num_warps,
        instructions=instructions,
        tensor_memory_columns=getattr(binary.metadata, "tmem_size", None) or 0,
        programs=build.programs,
    )


def _binary(build: Build, target: str) -> Any:
    names = build.kernel.arg_names
    source = GluonASTSource if build.kernel.is_gluon() else ASTSource
    return triton.compile(
        source(
            build.kernel,
            signature={name: build.signature.get(name, "constexpr") for name in names},
            constexprs=dict(build.constants),
            attrs={(names.index(name),): _DIVISIBLE_BY_16 for name in build.divisible_by_16},
        ),
        target=GPUTarget("cuda", int(target.removeprefix("sm_")), WARP_THREADS),
        options={"num_warps": build.num_warps, "num_stages": build.num_stages},
    )


def _said(error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:300]}" if said else type(error).__name__
