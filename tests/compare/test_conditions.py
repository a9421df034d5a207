"""The six conditions: what tells each, and which figures stand against which difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from diag.compare.comparison import Comparison
from diag.compare.conditions import Condition, conditions_of
from diag.compare.facts import Facts
from diag.compare.precision import operator_types_of, precision_of
from diag.compare.questions import Domain
from diag.compare.recording import Recording, Side
from diag.rules.document import Document
from tests.builders.ncu_report import NcuReport
from tests.builders.nsys_export import NsysExport
from tests.compare.conftest import Compare
from tests.compare.runs import A100, H100, US, loop

DOMAINS: tuple[Domain, ...] = ("run", "device", "profile")
CONDITIONS = ("model", "hardware", "lengths", "arrival", "configuration", "metric")


def recording(facts: Facts) -> Recording:
    return Recording("a", Document([]), facts, 1, 0, None, {}, {}, {}, {}, has_all_ranges=True)


def asked(before: Facts, after: Facts, *allowed: str) -> dict[str, Condition]:
    sides = Side("a", [recording(before)]), Side("b", [recording(after)])
    return {condition.name: condition for condition in conditions_of(*sides, allowed)}


def answers(comparison: Comparison) -> dict[str, str]:
    return {condition.name: condition.answer for condition in comparison.conditions}


FACTS = Facts(
    gpus="NVIDIA H100",
    n_gpus=1,
    limits={"SMs": "132", "memory": "80 GB"},
    kernels={"gemm": 3.0, "relu": 1.0},
    operators={"aten::mm": 3.0},
    precision="BF16",
    shapes={"aten::mm": {"[[2, 2]]": 5.0}},
    grids={"gemm of 128 threads": {"64 blocks": 9.0}},
    request_rate_per_s=10.0,
    tools="NVIDIA Nsight Systems",
    captured="api, nvtx",
    graph_mode="node",
    is_cut=False,
    startup_share=0.1,
    bases="timeline",
    tick_ns=1,
)


def test_six_conditions_in_the_order_in_which_one_asks() -> None:
    assert tuple(asked(FACTS, FACTS)) == CONDITIONS


def test_whether_results_are_right_no_trace_tells() -> None:
    same = {name: condition.answer for name, condition in asked(FACTS, FACTS).items()}
    assert same == {name: "unknown" if name == "metric" else "same" for name in CONDITIONS}


def test_what_is_known_of_nothing_is_unknown() -> None:
    nothing = replace(Facts(), bases="timeline")
    assert {condition.answer for condition in asked(nothing, nothing).values()} == {"unknown", "same"}
    assert [name for name, each in asked(nothing, nothing).items() if each.answer == "same"] == ["configuration"]


@pytest.mark.parametrize(
    ("changed", "name", "answer"),
    [
        ({"kernels": {"gemm": 3.0, "relu": 1.0, "copy": 0.1}}, "model", "same"),
        ({"kernels": {"gemm": 3.0, "fused": 2.0}}, "model", "same"),  # the operators are the same
        ({"kernels": {"gemm": 3.0, "fused": 2.0}, "operators": None}, "model", "same"),  # so is the precision
        ({"kernels": {"gemm": 3.0, "fused": 2.0}, "operators": None, "precision": None}, "model", "unknown"),
        ({"kernels": {"fused": 2.0}}, "model", "differs"),
        ({"operators": {"aten::conv2d": 2.0}}, "model", "differs"),
        ({"precision": "FP8"}, "model", "differs"),
        ({"gpus": "NVIDIA A100"}, "hardware", "differs"),
        ({"gpus": None}, "hardware", "unknown"),
        ({"n_gpus": 2}, "hardware", "differs"),
        ({"limits": {"SMs": "114", "memory": "80 GB"}}, "hardware", "differs"),
        ({"limits": {"SMs": "132"}}, "hardware", "same"),  # what one side does not tell sets none apart
        ({"mig": "1"}, "hardware", "same"),  # of a case, where the other is a JSON report
        ({"world_size": "8"}, "hardware", "same"),  # of the other side it is not known
        ({"hosts": "b", "pieces": "GPU-2"}, "hardware", "same"),
        ({"shapes": {"aten::mm": {"[[4, 2]]": 5.0}}}, "lengths", "differs"),
        ({"shapes": {"aten::mm": {"[[2, 2]]": 95.0, "[[1, 2]]": 5.0}}, "grids": None}, "lengths", "unknown"),
        ({"grids": {"gemm of 128 threads": {"32 blocks": 9.0}}}, "lengths", "differs"),
        ({"grids": {"gemm of 256 threads": {"32 blocks": 9.0}}}, "lengths", "same"),  # launched otherwise: shapes tell
        ({"grids": {"gemm of 256 threads": {"32 blocks": 9.0}}, "shapes": None}, "lengths", "unknown"),
        ({"request_rate_per_s": 10.4}, "arrival", "same"),
        ({"request_rate_per_s": 12.0}, "arrival", "differs"),
        ({"request_rate_per_s": None}, "arrival", "unknown"),
        ({"tools": "PyTorch profiler"}, "configuration", "differs"),
        ({"captured": "api, nvtx, python"}, "configuration", "differs"),
        ({"graph_mode": "graph"}, "configuration", "differs"),
        ({"part": "3 s to 5 s"}, "configuration", "differs"),
        ({"startup_share": 0.19}, "configuration", "same"),
        ({"startup_share": 0.3}, "configuration", "differs"),
        ({"tool_versions": "2026.1"}, "configuration", "same"),
        ({"bases": "profile"}, "metric", "differs"),
        ({"bases": "profile, timeline"}, "metric", "unknown"),
        ({"tick_ns": 1000}, "metric", "unknown"),
    ],
)
def test_one_thing_is_changed(changed: dict[str, Any], name: str, answer: str) -> None:
    after = asked(FACTS, replace(FACTS, **changed))
    assert after[name].answer == answer
    others = {other: condition.answer for other, condition in after.items() if other != name}
    assert others == {other: asked(FACTS, FACTS)[other].answer for other in others}


@pytest.mark.parametrize(
    ("changed", "against"),
    [
        ({"gpus": "NVIDIA A100"}, {"run", "device", "profile"}),
        ({"captured": "api"}, {"run"}),
        ({"tools": "PyTorch profiler"}, {"run"}),
        ({"request_rate_per_s": 99.0}, {"run"}),
        ({"graph_mode": "graph"}, {"run", "device"}),
        ({"is_cut": True}, {"run", "device"}),
        ({"tool_versions": "2026.1", "hosts": "b", "pieces": "GPU-2"}, set()),
    ],
)
def test_a_difference_decides_some_figures(changed: dict[str, Any], against: set[str]) -> None:
    before = replace(FACTS, tool_versions="2025.1", hosts="a", pieces="GPU-1")
    found = asked(before, replace(before, **changed)).values()
    closed = {domain for domain in DOMAINS if any(condition.stands_against(domain) for condition in found)}
    assert closed == against


def test_clocks_decide_profiles_alone() -> None:
    found = asked(replace(FACTS, clocks="not locked"), replace(FACTS, clocks="locked to base"))["configuration"]
    assert found.answer == "differs"
    assert [each.what for each in found.stands_against("profile")] == ["clocks"]
    assert found.stands_against("run") == []


def test_what_the_user_allows_stands_against_nothing() -> None:
    found = asked(FACTS, replace(FACTS, gpus="NVIDIA A100"), "hardware")["hardware"]
    assert found.answer == "differs"
    assert found.stands_against("run") == []


def test_links_between_several_gpus_are_not_recorded() -> None:
    two = replace(FACTS, gpus="2 × NVIDIA H100", n_gpus=2, pieces="GPU-1, GPU-2")
    assert asked(two, two)["hardware"].answer == "same"
    assert asked(two, replace(two, pieces="GPU-3, GPU-4"))["hardware"].answer == "unknown"


def test_repeats_that_do_not_agree_among_themselves_differ() -> None:
    runs = [recording(FACTS), recording(replace(FACTS, gpus="NVIDIA A100"))]
    found = conditions_of(Side("a", runs), Side("b", [recording(FACTS)]))
    hardware = next(condition for condition in found if condition.name == "hardware")
    assert hardware.answer == "differs"
    assert hardware.evidence[0].said == "NVIDIA H100 / NVIDIA A100 → NVIDIA H100"


# ---- from recordings -----------------------------------------------------------------------------------------------


def test_another_gpu_makes_every_time_incomparable(compared: Compare) -> None:
    comparison = compared(loop(), loop(hardware=A100, gemm_us=300))
    assert answers(comparison)["hardware"] == "differs"
    assert comparison.answer == "not comparable"
    assert list(comparison.against) == ["hardware"]
    assert {change.answer for change in (*comparison.figures, *comparison.kernels)} == {"not comparable"}
    assert compared(loop(), loop(hardware=A100, gemm_us=300), allowed=["hardware"]).answer == "regressed"


def test_more_captured_is_no_matter_for_kernels(compared: Compare) -> None:
    """OS calls cost the host time: its window cannot be compared, the launches of a kernel can."""
    traced = loop(gemm_us=150)
    traced.process(100).thread().os_call("read", 0, 10)
    comparison = compared(loop(), traced)
    assert answers(comparison)["configuration"] == "differs"
    assert comparison.answer == "regressed"
    assert compared(loop(), traced, metric="window").answer == "not comparable"
    by_figure = {change.name: change.answer for change in comparison.figures}
    assert by_figure["window"] == by_figure["idle"] == "not comparable"
    assert by_figure["busy"] == "cannot tell"


def test_another_grid_is_another_input(compared: Compare) -> None:
    assert answers(compared(loop(grid=64), loop(grid=32)))["lengths"] == "differs"
    assert answers(compared(loop(block=128), loop(block=256)))["lengths"] == "unknown"
    assert answers(compared(loop(), loop()))["lengths"] == "same"


def test_requests_that_come_faster_are_another_arrival(compared: Compare) -> None:
    def served(every_us: int) -> NsysExport:
        export = loop()
        thread = export.process(100).thread(7)
        for i in range(10):
            thread.range(f"request {i}", i * every_us * US, (i * every_us + 5) * US)
        return export

    assert answers(compared(served(100), served(100)))["arrival"] == "same"
    assert answers(compared(served(100), served(50)))["arrival"] == "differs"
    assert answers(compared(loop(), loop()))["arrival"] == "unknown"


def test_a_profile_is_never_set_against_a_run(compared: Compare) -> None:
    profile = NcuReport.of({}, name="gemm")
    comparison = compared(profile, loop(), allowed=["model", "hardware", "lengths", "configuration"])
    assert answers(comparison)["metric"] == "differs"
    assert comparison.answer == "not comparable"
    assert not comparison.tells_something


@pytest.mark.parametrize(
    ("kernel", "precision"),
    [
        ("ampere_sgemm_128x64_tn", "FP32"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_ffma_execute_kernel__5x_cublas", "FP32"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32", "TF32"),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4", "TF32"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>", "BF16"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "FP16"),
        ("turing_h1688gemm_128x64_nn", "FP16"),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT", "FP16"),
        ("Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32", "BF16"),
        ("volta_dgemm_64x64_nn", "FP64"),
        ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", "FP8"),
        ("turing_int8_i8816cudnn_int8_imma_gemm", "INT8"),
        ("my_gemm", None),
    ],
)
def test_the_precision_that_a_kernels_name_tells(kernel: str, precision: str | None) -> None:
    assert precision_of({kernel: 1.0}) == precision


def test_precision_is_told_when_most_of_the_time_tells_it() -> None:
    single, half = "volta_sgemm_128x64_nn", "turing_h1688gemm_128x64_nn"
    assert precision_of({single: 60.0, half: 39.0, "my_gemm": 1.0}) == "FP16, FP32"
    assert precision_of({single: 60.0, "my_gemm": 40.0}) is None
    assert precision_of({single: 999.0, half: 1.0}) == "FP32"
    assert precision_of({"softmax": 9.0}) is None


def test_a_part_of_a_gpu_is_no_whole_one() -> None:
    assert asked(replace(FACTS, mig="none"), replace(FACTS, mig="1"))["hardware"].answer == "differs"


def test_types_of_operators() -> None:
    assert operator_types_of({("c10::BFloat16", "c10::BFloat16", ""): 3, ("float", "Scalar"): 1}) == "BFloat16, float"
    assert operator_types_of({("long int",): 3}) is None


def test_hardware_is_described_by_its_limits(compared: Compare) -> None:
    (gpus, _, limits, *_) = next(
        condition.evidence for condition in compared(loop(), loop()).conditions if condition.name == "hardware"
    )
    assert gpus.said == H100["name"]
    assert "SMs 132" in limits.said
