"""Local memory: what did not stay in registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.launches.kernel import profiled_kernels
from diag.rules import engine, running, thresholds
from diag.rules.finding import Clear, Finding
from tests.builders.imported import imported
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"
MARKED = "sass__inst_executed_register_spilling_mem_local"


def local(loads: int, stores: int, *, globals_: int = 9_000, **more: Value) -> NcuReport:
    """Each local access of a warp takes 4 sectors."""
    return NcuReport.of(
        {
            "smsp__sass_inst_executed_op_local_ld.sum": loads,
            "smsp__sass_inst_executed_op_local_st.sum": stores,
            SECTORS.format("local", "ld"): 4 * loads,
            SECTORS.format("local", "st"): 4 * stores,
            SECTORS.format("global", "ld"): globals_,
            SECTORS.format("global", "st"): 0,
            **more,
        }
    )


CASES = {
    "ncu.spills": ThreeCases(
        fires=lambda: local(150, 100),
        clear=lambda: local(0, 0),
        untold=lambda: NcuReport.of({"launch__registers_per_thread": 255}),
    ),
}


def test_its_part_is_that_of_the_sectors(ask: Ask) -> None:
    finding = only_finding(ask("ncu.spills", local(150, 100)))
    assert figures(finding)["local part"] == pytest.approx(0.1)
    assert finding.recoverable_ns == 100_000  # 1,000 of 10,000 sectors, capped by nothing
    assert "spills registers or keeps arrays" in finding.title


def test_a_reserved_stack_that_nobody_touches_is_no_spill(ask: Ask) -> None:
    assert isinstance(ask("ncu.spills", local(0, 0, launch__stack_size=1024))[0], Clear)
    assert isinstance(ask("ncu.spills", local(0, 0, globals_=0))[0], Clear)


def test_a_hundredth_of_the_sectors_is_not_worth_a_word(ask: Ask) -> None:
    assert isinstance(ask("ncu.spills", local(20, 2))[0], Clear)  # 88 of 9,088


def test_copies_of_the_tensor_memory_accelerator_are_traffic_too(ask: Ask) -> None:
    """A product on tensor cores loads nothing itself: its few spills are all that L1 looks up, but 1 GB comes by."""
    fetched = {"l1tex__m_xbar2l1tex_read_bytes.sum": 1_000_000_000}
    assert isinstance(ask("ncu.spills", local(150, 100, globals_=0, **fetched))[0], Clear)


def test_marked_instructions_tell_spills_from_arrays(ask: Ask) -> None:
    assert "spills registers:" in only_finding(ask("ncu.spills", local(150, 100, **{MARKED: 250}))).title
    assert "keeps arrays in local memory:" in only_finding(ask("ncu.spills", local(150, 100, **{MARKED: 0}))).title


def test_machine_code_of_the_case_is_used(tmp_path: Path) -> None:
    """Only what ran counts: the array at 0x30 was never touched."""
    metrics = {**local(150, 100).launches[0].metrics, "inst_executed": 250}
    report = NcuReport.of(metrics, instances={"inst_executed": {0x10: 150, 0x20: 100, 0x30: 0}})
    rule = engine.rules()["ncu.spills"]
    assert isinstance(rule, engine.KernelRule)
    with imported(report, tmp_path) as case:
        (kernel,) = profiled_kernels(case, 1)
        case.db.executemany(
            "INSERT INTO launch_instruction (launch_id, address, sass) VALUES (?, ?, ?)",
            [
                (kernel.launch.id, address, sass)
                for address, sass in ((0x10, "LDL R2, [R1+0x8]"), (0x20, "STL [R1+0x8], R2"), (0x30, "LDL R3, [R7]"))
            ],
        )
        (answer,) = running.run_on_kernel(rule, kernel, thresholds.load()["ncu.spills"])
    assert isinstance(answer, Finding)
    assert "spills registers:" in answer.title
