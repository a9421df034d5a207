"""Loading and compilation after startup."""

from __future__ import annotations

import pytest

from diag.rules.compilers import compilers
from diag.rules.finding import CannotTell, Clear
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, starting

LOADS = "cuModuleLoadData"


def loading(busy: int, call: str = LOADS) -> Scene:
    """Ten kernels, one per 1000 and each `busy` long; the host loads for 300 in the last 500 of each 1000."""
    scene = waiting(busy)
    for i in range(10):
        scene.main.call(call, 1000 * i + 600, 1000 * i + 900)
    return scene


def waiting(busy: int = 500) -> Scene:
    """The same without anything that tells what the host does."""
    scene = Scene()
    for i in range(10):
        scene.main.launch(scene.gpu, called=1000 * i - 5, start=1000 * i, end=1000 * i + busy)
    return scene


CASES = {
    "load.steady": ThreeCases(
        fires=lambda: loading(500).export,
        clear=lambda: loading(1000).export,
        untold=lambda: loading(500).export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
}


def test_loading_counts_where_the_device_waits_for_it(ask: Ask) -> None:
    """The last call comes after the window."""
    finding = only_finding(ask("load.steady", loading(500).export))
    assert figures(finding)["loading of modules and kernels"] == finding.recoverable_ns == 9 * 300
    assert finding.share == pytest.approx(2700 / 9500)
    assert finding.title == "Code is loaded while the device waits"


@pytest.mark.parametrize(
    ("call", "title"),
    [
        ("cuLibraryGetKernel", "Code is loaded while the device waits"),
        ("cuLinkComplete", "The driver compiles kernels while the device waits"),
        ("cudaGraphInstantiate_v12000", "CUDA graphs are made while the device waits"),
    ],
)
def test_calls_that_a_steady_state_has_no_need_of(ask: Ask, call: str, title: str) -> None:
    assert only_finding(ask("load.steady", loading(500, call).export)).title == title


def test_while_a_graph_is_captured_nothing_runs(ask: Ask) -> None:
    scene = waiting()
    for i in range(10):
        scene.main.call("cudaStreamBeginCapture_v10000", 1000 * i + 600, 1000 * i + 610)
        scene.main.call("cudaStreamEndCapture_v10000", 1000 * i + 880, 1000 * i + 900)
    found = figures(only_finding(ask("load.steady", scene.export)))
    assert found["capture and instantiation of graphs"] == 9 * 300


def test_calls_that_any_loop_makes_are_none_of_it(ask: Ask) -> None:
    answers = ask("load.steady", loading(500, "cudaEventRecord_v3020").export)
    assert any(isinstance(answer, Clear) for answer in answers)


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Lazy function loading (CUDA)", "loading of modules and kernels"),
        ("Driver JIT compiler (CUDA)", "compilation by the driver (JIT)"),
    ],
)
def test_what_the_driver_does_inside_a_launch(ask: Ask, label: str, kind: str) -> None:
    """The launching call begins as the kernel before ends, loads for 300 and returns when its own kernel starts."""
    scene = Scene()
    for i in range(10):
        called = 1000 * i - 500
        scene.main.launch(scene.gpu, called=called, start=1000 * i, end=1000 * i + 500, returns=1000 * i)
        scene.main.overhead(label, called + 100, called + 400)
    assert figures(only_finding(ask("load.steady", scene.export)))[kind] == 9 * 300


def test_another_thread_that_loads_is_not_waited_for(ask: Ask) -> None:
    scene = waiting()
    other = scene.main.process.thread(101)
    for i in range(10):
        other.call(LOADS, 1000 * i + 600, 1000 * i + 900)
        other.overhead("Lazy function loading (CUDA)", 1000 * i + 600, 1000 * i + 900)
    (answer,) = ask("load.steady", scene.export)
    assert isinstance(answer, Clear)


@pytest.mark.parametrize(
    ("name", "compiler"),
    [
        ("_compile.compile_inner (dynamo_timed)", "torch.compile"),
        ("torch/_inductor/compile_fx.py(912): fx_codegen_and_compile", "torch.compile"),
        ("CachingAutotuner.benchmark_all_configs", "Triton"),
        ("triton/compiler/compiler.py(226): compile", "Triton"),
        ("TSL:XlaCompile:#module=jit_step#", "XLA"),
        ("cupy/cuda/compiler.py(512): _compile_module_with_cache", "NVRTC"),
    ],
)
def test_frameworks_that_compile(ask: Ask, name: str, compiler: str) -> None:
    scene = waiting()
    for i in range(10):
        scene.main.range(name, 1000 * i + 600, 1000 * i + 900)
    finding = only_finding(ask("load.steady", scene.export))
    assert figures(finding)[f"compilation by {compiler}"] == 9 * 300
    assert any(each.do in finding.next for each in compilers() if each.label == compiler)


@pytest.mark.parametrize(
    "name", ["TorchDynamo Cache Lookup", "Torch-Compiled Region: 0/0", "CompiledFunction", "PjitFunction(step)"]
)
def test_running_what_was_compiled_is_not_compiling(ask: Ask, name: str) -> None:
    scene = waiting()
    for i in range(10):
        scene.main.range(name, 1000 * i + 600, 1000 * i + 900)
    assert any(isinstance(answer, Clear) for answer in ask("load.steady", scene.export))


def test_startup_is_told_apart(ask: Ask) -> None:
    """Of the device's idle time 890 are spent loading before steady state, which alone is no fault."""
    scene = starting()
    assert any(isinstance(answer, Clear) for answer in ask("load.steady", scene.export))
    for i in range(10):
        at = 3000 + 500 * i
        scene.main.call(LOADS, at, at + 400)
        scene.main.launch(scene.gpu, called=at + 400, start=at + 400, end=at + 500, name="gemm")
    found = figures(only_finding(ask("load.steady", scene.export)))
    assert found["all of it"] == 10 * 400
    assert found["the same in startup"] == 890
    assert found["share of steady state"] == pytest.approx(4000 / (8000 - 990))


def test_where_nothing_repeats_there_is_no_steady_state(ask: Ask) -> None:
    (answer,) = ask("load.steady", starting(steps=4).export)
    assert isinstance(answer, CannotTell)
