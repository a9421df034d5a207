"""Multiplications and additions that could be one instruction."""

from __future__ import annotations

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.test_ncu_pipes import FMA, FP64

COUNT = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
PER_OPCODE = "sass__inst_executed_per_opcode"


def pipes(fma: float, fp64: float) -> dict[str, Value]:
    return {FMA.format("active"): fma, FP64.format("active"): fp64}


def counted(*, fma: float = 60.0, fp64: float = 0.0, **counts: int) -> NcuReport:
    """Instructions of threads by the name of their opcode."""
    return NcuReport.of({**pipes(fma, fp64), **{COUNT.format(opcode): n for opcode, n in counts.items()}})


CASES = {
    "ncu.fused_multiply_add": ThreeCases(
        fires=lambda: counted(fadd=300, fmul=300, ffma=400),
        clear=lambda: counted(fadd=90, fmul=90, ffma=820),
        untold=lambda: NcuReport.of(pipes(60.0, 0.0)),
    ),
}


def test_each_pair_is_one_instruction_too_many(ask: Ask) -> None:
    """300 of 1,000 instructions, of the 60 % of the time that the pipeline is busy."""
    finding = only_finding(ask("ncu.fused_multiply_add", counted(fadd=300, fmul=300, ffma=400)))
    assert "30.0 % of the FP32 instructions" in finding.title
    assert finding.recoverable_ns == 180_000


def test_additions_without_products_have_nothing_to_fuse(ask: Ask) -> None:
    """Half of the instructions are not fused, which is what Nsight Compute's own rule looks at."""
    (answer,) = ask("ncu.fused_multiply_add", counted(fadd=500, fmul=0, ffma=500))
    assert isinstance(answer, Clear)


def test_fewer_products_than_additions_make_fewer_pairs(ask: Ask) -> None:
    finding = only_finding(ask("ncu.fused_multiply_add", counted(fadd=500, fmul=100, ffma=400)))
    assert finding.recoverable_ns == 60_000


def test_a_pipeline_with_little_to_do_is_left_alone(ask: Ask) -> None:
    (answer,) = ask("ncu.fused_multiply_add", counted(fma=19.9, fadd=300, fmul=300, ffma=400))
    assert isinstance(answer, Clear)


def test_fp64_has_a_pipeline_of_its_own(ask: Ask) -> None:
    finding = only_finding(ask("ncu.fused_multiply_add", counted(fma=5.0, fp64=50.0, dadd=1, dmul=1, dfma=2)))
    assert finding.recoverable_ns == 125_000
    assert figures(finding)["FP64 pipe"] == 50.0


def test_rates_per_cycle_are_counts_as_well(ask: Ask) -> None:
    rates: dict[str, Value] = {f"{COUNT.format(op)}.per_cycle_elapsed": n for op, n in FP32_RATES.items()}
    report = NcuReport.of({**pipes(60.0, 0.0), **rates, "gpc__cycles_elapsed.max": 1000.0})
    finding = only_finding(ask("ncu.fused_multiply_add", report))
    assert figures(finding)["FP32 additions"] == 2000.0
    assert finding.recoverable_ns == 120_000


FP32_RATES = {"fadd": 2.0, "fmul": 2.0, "ffma": 6.0}


def test_the_mix_of_instructions_stands_in_for_the_counters(ask: Ask) -> None:
    mix: dict[str, object] = {"FADD": 300, "FMUL": 300, "FFMA": 400, "LDG": 500}
    report = NcuReport.of({**pipes(60.0, 0.0), PER_OPCODE: 1500}, instances={PER_OPCODE: mix})
    finding = only_finding(ask("ncu.fused_multiply_add", report))
    assert finding.recoverable_ns == 180_000
    assert [e.formula for e in finding.evidence][:1] == ["sass__inst_executed_per_opcode of FADD"]


def test_what_is_missing_is_named(ask: Ask) -> None:
    (answer,) = ask("ncu.fused_multiply_add", CASES["ncu.fused_multiply_add"].untold())
    assert isinstance(answer, CannotTell)
    assert answer.because.endswith("were not collected (ncu --section SpeedOfLight_RooflineChart)")
