"""Kernels are compiled without a GPU, and their machine code is read as the tools print it."""

from __future__ import annotations

from pathlib import Path

import pytest
from triton import knobs

from diag.errors import ToolMissing
from diag.kernels import compilation, machine_code
from diag.kernels.compilation import BuildSource, Job, compile_all
from diag.kernels.machine_code import ResourceUsage, instruction_mix, printed_by, resource_usage
from diag.model.inspection import REFERENCE_PRODUCTS

TWO_FUNCTIONS = """
Resource usage:
 Common:
  GLOBAL:0
 Function column_sums:
  REG:255 STACK:264 SHARED:0 LOCAL:0 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function mm:
  REG:168 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:576 TEXTURE:0 SURFACE:0 SAMPLER:0

"""

LISTING = """
\t.target\tsm_90a

//--------------------- .text.mm                  --------------------------
\t.section\t.text.mm,"ax",@progbits
        .other          mm,@"STO_CUDA_ENTRY STV_DEFAULT"
mm:
.text.mm:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0090*/                   STL [R1+0x60], RZ ;
        /*01c0*/              @!P6 LDG.E.U16 R21, desc[UR4][R4.64] ;
        /*0200*/              @!P6 LDG.E.U16 R16, desc[UR4][R2.64] ;
        /*0420*/                   HFMA2.MMA R3, R3, 1, 1, R16 ;
        /*0640*/              @!PT LDS RZ, [RZ] ;
.L_x_3:
        /*1310*/                   HGMMA.64x128x16.F32 R88, gdesc[UR20].tnspB, R88 ;
        /*1320*/              @UP0 UIADD3 UR10, UPT, UPT, UR8, 0x18000, URZ ;
        /*1330*/                   LDL.LU.64 R2, [R1+0x60] ;
        /*1340*/                   NOP ;
        /*12350*/                  EXIT ;
"""


def test_registers_and_stack_of_each_function() -> None:
    assert resource_usage(TWO_FUNCTIONS) == {"column_sums": ResourceUsage(255, 264), "mm": ResourceUsage(168, 0)}
    assert resource_usage("") == {}


def test_instructions_are_counted_with_their_modifiers_unless_they_do_nothing() -> None:
    assert instruction_mix(LISTING) == {
        "LDG.E.U16": 2,
        "LDC": 1,
        "STL": 1,
        "HFMA2.MMA": 1,
        "HGMMA.64x128x16.F32": 1,
        "UIADD3": 1,
        "LDL.LU.64": 1,
        "EXIT": 1,
    }


def source(fault: str, dose: int, is_sick: bool) -> BuildSource:
    return BuildSource(f"diag.probes.faults.kernels.{fault}", "builds", {"dose": dose, "is_sick": is_sick})


@pytest.mark.parametrize("interprets", ["0", "1"])
def test_compiled_for_every_target_whatever_this_process_does(interprets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", interprets)
    jobs = [Job(source("bank_conflicts", 4, True), target) for target in REFERENCE_PRODUCTS]
    done = compile_all(jobs, workers=1)
    kernels = [kernel for each in done for kernel in each.kernels]
    assert [kernel.target for kernel in kernels] == list(REFERENCE_PRODUCTS)
    for kernel in kernels:
        assert (kernel.name, kernel.shared_bytes, kernel.threads) == ("transposed_tiles", 32 * 32 * 4, 128)
        assert 0 < kernel.registers_per_thread < 64
        assert not kernel.spills
        assert kernel.count("LDS") == kernel.count("STS") == 32 * 32 // 128  # a word of the tile for each thread


WITH_A_WRONG_TYPE = """
from dataclasses import replace
from diag.probes.faults.kernels import tiny_grid

def builds():
    (build,) = tiny_grid.builds(1, True)
    return [replace(build, signature={**build.signature, "x": "*fp1024"})]
"""


def test_what_the_compiler_refuses_is_an_answer_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong.py").write_text(WITH_A_WRONG_TYPE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    jobs = [Job(BuildSource("wrong", "builds", {}), "sm_90"), Job(source("tiny_grid", 1, True), "sm_90")]
    refused, done = compile_all(jobs, workers=1)
    assert not refused.kernels
    assert [(each.name, each.target) for each in refused.not_compiled] == [("doubled", "sm_90")]
    assert "fp1024" in refused.not_compiled[0].because
    assert [kernel.name for kernel in done.kernels] == ["doubled"]


def test_a_worker_that_fails_is_a_sentence() -> None:
    with pytest.raises(ToolMissing, match=r"ended with status 1: AttributeError: .*no_such_function"):
        compile_all([Job(BuildSource("diag.kernels.compiled", "no_such_function", {}), "sm_90")])


def test_a_compiler_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "START_S", 0.01)
    monkeypatch.setattr(compilation, "JOB_S", 0.0)
    with pytest.raises(ToolMissing, match=r"did not come to an end within 0\.01 s"):
        compile_all([Job(source("tiny_grid", 1, True), "sm_90")])


def test_without_triton_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "find_spec", lambda name: None if name == "triton" else name)
    with pytest.raises(ToolMissing, match=r"need Triton, .*pip install 'gpu-diag\[probes\]'"):
        compile_all([Job(source("tiny_grid", 1, True), "sm_90")])


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\necho damaged >&2\nexit 7\n", "ended with status 7: damaged"),
        ("#!/bin/sh\nexec sleep 60\n", "did not come to an end within 0.2 s"),
        ("#!/no/such/shell\n", "cannot be started"),
    ],
)
def test_a_tool_that_fails_is_a_sentence(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "cuobjdump"
    tool.write_text(script)
    tool.chmod(0o755)
    monkeypatch.setattr(machine_code, "_path", lambda name: str(tool))
    monkeypatch.setattr(machine_code, "TOOL_S", 0.2)
    with pytest.raises(ToolMissing, match=said):
        printed_by("cuobjdump", "-res-usage", tmp_path / "kernel.cubin")


def test_a_tool_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Knobs:
        class nvidia:  # noqa: N801 - as Triton calls it
            @property
            def nvdisasm(self) -> object:
                raise RuntimeError("Cannot find nvdisasm")

    monkeypatch.setattr(knobs, "nvidia", Knobs.nvidia())
    with pytest.raises(ToolMissing, match=r"nvdisasm is not where Triton brings it\..*TRITON_NVDISASM_PATH=FILE"):
        printed_by("nvdisasm", "-c", "kernel.cubin")
