"""Probes against their reference and against the ceilings of their machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diag.model.benchmark import Machine
from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.benchmark import CEILINGS, CPU, BenchmarkFile, bandwidth, multiplying, streaming
from tests.rules.asking import Analyse, Ask, ThreeCases, figures, only_finding

CASES = {
    "probe.wrong": ThreeCases(
        fires=lambda: BenchmarkFile([streaming(0.9, max_rel_error=2e-6), streaming(0.9, "new")]),
        clear=lambda: BenchmarkFile([streaming(0.9)]),
        untold=lambda: BenchmarkFile([streaming(0.9, max_rel_error=None)]),
    ),
    "probe.above_roof": ThreeCases(
        fires=lambda: BenchmarkFile([streaming(1.1), multiplying(0.9)]),
        clear=lambda: BenchmarkFile([streaming(1.02)]),
        untold=lambda: BenchmarkFile([streaming(0.9)], ceilings=()),
    ),
    "probe.roof": ThreeCases(
        fires=lambda: BenchmarkFile([streaming(0.5), multiplying(0.9)]),
        clear=lambda: BenchmarkFile([streaming(0.85), multiplying(0.75)]),
        untold=lambda: BenchmarkFile([streaming(0.5)], ceilings=()),
    ),
}


def test_a_wrong_result_is_critical(ask: Ask) -> None:
    finding = only_finding(ask("probe.wrong", BenchmarkFile([streaming(0.9, max_rel_error=2e-6)])))
    assert finding.severity == "critical"
    assert finding.title == "vector_add out fp32 computes something wrong"


@pytest.mark.parametrize(("share", "repeats", "kind"), [(1.035, 4, Clear), (1.035, 400, Finding)])
def test_more_repeats_leave_less_room_above_a_roof(ask: Ask, share: float, repeats: int, kind: type) -> None:
    """1 % by the ceiling, 2 % of slack, and of a spread of 2 %: 0.75 % by four runs, 0.07 % by four hundred."""
    (answer,) = ask("probe.above_roof", BenchmarkFile([streaming(share, repeats=repeats)]))
    assert isinstance(answer, kind)


def test_the_fastest_variant_speaks_for_a_probe(ask: Ask) -> None:
    naive = streaming(0.1, "new", median_ns=9e6, p5_ns=9e6, p95_ns=9e6)
    (answer,) = ask("probe.roof", BenchmarkFile([naive, streaming(0.9)]))
    assert isinstance(answer, Clear)
    assert answer.subject.range == "vector_add out fp32 (n=1000)"


def test_the_ceiling_that_takes_most_of_the_time_counts(ask: Ask) -> None:
    finding = only_finding(ask("probe.roof", BenchmarkFile([multiplying(0.6)])))
    assert finding.title == "gemm tiled fp32 reaches 60.0 % of its FP32 ceiling"
    assert finding.recoverable_ns == 400_000
    assert figures(finding)["ceiling"] == 1000e9


def test_the_best_access_of_a_level_is_its_ceiling(ask: Ask) -> None:
    finding = only_finding(ask("probe.roof", BenchmarkFile([streaming(0.5)], (bandwidth(50e9), *CEILINGS))))
    assert figures(finding)["share of the ceiling"] == pytest.approx(0.5)


def test_what_others_disturbed_is_not_called_slow(ask: Ask) -> None:
    (answer,) = ask("probe.roof", BenchmarkFile([streaming(0.5, is_disturbed=True)]))
    assert isinstance(answer, CannotTell)
    assert "other programs" in answer.because
    (answer,) = ask("probe.roof", BenchmarkFile([streaming(0.9, is_disturbed=True)]))
    assert isinstance(answer, Clear)


def test_what_claims_no_bound_is_not_held_against_one(ask: Ask) -> None:
    loader = streaming(0.1, level=None, arithmetic=None)
    assert ask("probe.roof", BenchmarkFile([loader])) == []
    assert ask("probe.above_roof", BenchmarkFile([loader], ())) == []


def test_a_datasheet_is_no_ceiling_that_anyone_reached(ask: Ask, report_on: Analyse) -> None:
    gpu = Machine("cuda", "NVIDIA A100-SXM4-40GB", 108, compute_capability=(8, 0))
    printed = BenchmarkFile([streaming(0.5)], (), gpu)
    (answer,) = ask("probe.roof", printed)
    assert isinstance(answer, CannotTell)
    assert "diag calibrate" in answer.because
    (row,) = report_on(printed).measurements
    assert (row.nearest, row.roof_origin, row.roof_per_s) == ("DRAM", "datasheet", 1555e9)


def test_a_row_has_all_that_was_measured(report_on: Analyse) -> None:
    (row,) = report_on(BenchmarkFile([multiplying(0.75, baseline_ns=9e5)])).measurements
    assert (row.nearest, row.roof_origin) == ("FP32", "measured")
    assert [row.roof_share, row.flops_per_s] == pytest.approx([0.75, 750e9])
    assert [row.intensity, row.ridge_point] == pytest.approx([750_000, 10])
    assert (row.baseline_ns, row.max_rel_error, row.tolerance) == (9e5, 1e-7, 1e-6)


def test_ceilings_of_another_machine_hold_for_none(ask: Ask) -> None:
    from diag.model.standing import is_same

    assert is_same(CPU, replace(CPU))
    assert not is_same(CPU, replace(CPU, n_units=4))
    gpu = Machine("cuda", "GPU", 132, uuid="GPU-1", host="here")
    assert is_same(gpu, replace(gpu, host="there"))
    assert not is_same(gpu, replace(gpu, uuid="GPU-2"))


def test_the_verdict_of_probes_does_not_speak_of_a_run(report_on: Analyse) -> None:
    verdict = report_on(BenchmarkFile([streaming(0.5)])).verdict
    assert verdict.title == "vector_add out fp32 reaches 50.0 % of its DRAM ceiling"
    assert verdict.summary.endswith("no run of a program is in sight here.")
