"""Tiny kernels, and chains of elementwise kernels."""

from __future__ import annotations

import pytest

from diag.rules.families import families, operation
from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, too_short

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, char*>(int)"
MUL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, "
    "at::native::binary_internal::MulFunctor<float> >, char*>(int)"
)


def tiny(n: int = 10, kernel_ns: int = 20, call_ns: int = 50) -> NsysExport:
    """n kernels, each launched by a call that takes `call_ns`, one per 100, starting as its call returns."""
    scene = Scene()
    for start in range(0, 100 * n, 100):
        scene.main.launch(scene.gpu, start - call_ns, start, start + kernel_ns, returns=start)
    return scene.export


def chained(*names: str) -> NsysExport:
    """Ten times kernels of these names of 10, 20, 30, ... in a row, then a gemm of 40."""
    scene = Scene()
    start = 0
    for _ in range(10):
        for number, name in enumerate((*names, "gemm"), 1):
            length = 40 if name == "gemm" else 10 * number
            scene.gpu.kernel(start, start + length, name)
            start += length
    return scene.export


CASES = {
    "kernels.tiny": ThreeCases(
        fires=tiny,
        clear=lambda: tiny(kernel_ns=50),
        untold=lambda: tiny().drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
    "kernels.fusion": ThreeCases(
        fires=lambda: chained(ADD, MUL, ADD),
        clear=lambda: chained(ADD),
        untold=lambda: too_short().export,
    ),
}


# ---- tiny kernels --------------------------------------------------------------------------------------------------


def test_a_kernel_is_tiny_beside_a_usual_launching_call(ask: Ask, query: Query) -> None:
    """Ten kernels of 20, calls of 50: with 50 of idle time before all but the first one, 10 x 20 + 9 x 50 of 920."""
    finding = only_finding(ask("kernels.tiny", tiny()))
    found = figures(finding)
    assert (found["tiny kernels"], found["kernels with a call of their own"]) == (10, 10)
    assert (found["tiny kernel"], found["usual launching call"]) == (20, 50)
    assert found["with idle time before them"] == 10 * 20 + 9 * 50
    assert finding.share == pytest.approx(650 / 920)
    assert (finding.severity, finding.recoverable_ns) == ("info", None)
    assert [row[1:] for row in query(tiny(), finding.evidence[0])] == [(20, 50)] * 10


def test_kernels_as_long_as_their_calls_are_not_tiny(ask: Ask) -> None:
    assert [type(answer) for answer in ask("kernels.tiny", tiny(kernel_ns=50))] == [Clear]


def test_a_first_call_that_loads_code_does_not_make_kernels_tiny(ask: Ask) -> None:
    """Four of ten calls take 90; the lower quartile is 10."""
    scene = Scene()
    for i in range(10):
        called = 100 * i - (90 if i < 4 else 10)
        scene.main.launch(scene.gpu, called, 100 * i, 100 * i + 20, returns=100 * i)
    assert [type(answer) for answer in ask("kernels.tiny", scene.export)] == [Clear]


def test_calls_that_launch_many_kernels_say_nothing(ask: Ask) -> None:
    scene = Scene()
    correlation = scene.main.call("cudaGraphLaunch_v10000", -90, -10)
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 20, correlation=correlation)
    (answer,) = ask("kernels.tiny", scene.export)
    assert isinstance(answer, CannotTell)
    assert "(0)" in answer.because


def test_tiny_kernels_that_hardly_take_time_are_no_matter(ask: Ask) -> None:
    export = tiny()
    export.process(100).gpu().kernel(920, 100_000, "gemm")
    assert [type(answer) for answer in ask("kernels.tiny", export)] == [Clear]


# ---- chains --------------------------------------------------------------------------------------------------------


def test_a_chain_could_be_as_short_as_its_longest_member(ask: Ask) -> None:
    """Ten times 10 + 20 + 30, then 40: without all but the longest, ten times 30 of 1000 would be won."""
    finding = only_finding(ask("kernels.fusion", chained(ADD, MUL, ADD)))
    found = figures(finding)
    assert (found["chains"], found["kernels in chains"], found["longest chain"]) == (10, 30, 3)
    assert found["time of the chains"] == 600
    assert finding.recoverable_ns == found["won by fusion at most"] == 300
    assert finding.share == 0.3
    assert (finding.severity, finding.confidence) == ("warning", "low")


def test_the_costliest_chain_is_named_by_what_its_kernels_compute(ask: Ask) -> None:
    found = figures(only_finding(ask("kernels.fusion", chained(ADD, MUL, ADD))))
    assert (found["costliest chain"], found["occurs"]) == ("AddFunctor → MulFunctor → AddFunctor", 10)


def test_chains_of_other_kernels_or_another_order_are_other_chains(ask: Ask) -> None:
    scene = Scene()
    start = 0
    for names in [(ADD, MUL)] * 4 + [(MUL, ADD)] * 3 + [(ADD, ADD)] * 3:
        for name in names:
            scene.gpu.kernel(start, start + 10, name)
            start += 10
        scene.gpu.kernel(start, start + 10, "gemm")
        start += 10
    found = figures(only_finding(ask("kernels.fusion", scene.export)))
    assert (found["costliest chain"], found["occurs"]) == ("AddFunctor → MulFunctor", 4)


def test_repetitions_are_counted(ask: Ask) -> None:
    found = figures(only_finding(ask("kernels.fusion", chained(ADD, ADD, MUL))))
    assert found["costliest chain"] == "2 x AddFunctor → MulFunctor"


def test_a_chain_is_on_one_stream(ask: Ask) -> None:
    scene = Scene()
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 50, ADD, streamId=20 + i)
        scene.gpu.kernel(100 * i + 50, 100 * i + 100, ADD, streamId=40 + i)
    assert [type(answer) for answer in ask("kernels.fusion", scene.export)] == [Clear]


def test_what_another_stream_does_in_between_breaks_no_chain(ask: Ask) -> None:
    export = chained(ADD, MUL, ADD)
    gpu = export.process(100).gpu()
    for start in range(0, 1000, 10):
        gpu.kernel(start + 5, start + 6, "other", streamId=13)
    assert figures(only_finding(ask("kernels.fusion", export)))["chains"] == 10


def test_a_long_pause_ends_a_chain(ask: Ask) -> None:
    """Kernels of 10 and 10: a pause of ten times that is still in the chain, a longer one is not."""
    for gap_ns, chains in ((100, 10), (101, 0)):
        scene = Scene()
        start = 0
        for _ in range(10):
            scene.gpu.kernel(start, start + 10, ADD)
            scene.gpu.kernel(start + 10 + gap_ns, start + 20 + gap_ns, MUL)
            scene.gpu.kernel(start + 20 + gap_ns, start + 21 + gap_ns, "gemm")
            start += 21 + gap_ns
        answers = ask("kernels.fusion", scene.export)
        assert (figures(only_finding(answers))["chains"] if chains else 0) == chains
        assert any(isinstance(answer, Clear) for answer in answers) == (chains == 0)


def test_copies_and_fused_kernels_end_a_chain(ask: Ask) -> None:
    for middle in ("triton_poi_fused_add_mul_0", "nvfuser_none_f0_c0_r0_g0", "multi_tensor_apply_kernel"):
        scene = Scene()
        for start in range(0, 1000, 100):
            scene.gpu.kernel(start, start + 30, ADD)
            scene.gpu.kernel(start + 30, start + 70, middle)
            scene.gpu.kernel(start + 70, start + 90, MUL)
            scene.gpu.copy(start + 90, start + 100, 1 << 20, "Device-to-Device", ("Device", "Device"))
        assert [type(answer) for answer in ask("kernels.fusion", scene.export)] == [Clear]


def test_chains_side_by_side_never_win_more_than_their_time(ask: Ask) -> None:
    scene = Scene()
    for stream in range(10):
        for start in range(0, 300, 100):
            scene.gpu.kernel(start, start + 100, ADD, streamId=20 + stream)
    finding = only_finding(ask("kernels.fusion", scene.export))
    assert finding.recoverable_ns == finding.extent.measure_ns == 300


@pytest.mark.parametrize(
    ("name", "computes"),
    [
        (ADD, "AddFunctor"),
        (MUL, "MulFunctor"),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
            "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)>>>(R)",
            "sum_functor",
        ),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1, 128, 1>(float*)",
            "CatArrayBatchedCopy",
        ),
        ("cupy_multiply__float64_float64_float64", "cupy_multiply__float64_float64_float64"),
    ],
)
def test_what_elementwise_kernels_compute(name: str, computes: str) -> None:
    assert families()["elementwise"].has(name)
    assert operation(name) == computes


@pytest.mark.parametrize(
    "name",
    [
        "triton_poi_fused_add_0",
        "void at::native::_scatter_gather_elementwise_kernel<128, 4, at::native::gather>(int)",
        "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>(long)",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(cudnnTensorStruct)",
        "ampere_sgemm_128x64_nn",
    ],
)
def test_what_is_not_elementwise(name: str) -> None:
    assert not families()["elementwise"].has(name)
