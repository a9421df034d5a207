"""How steps are timed, with steps whose time is known."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest

from diag.errors import OutOfMemory, ToolMissing, UsageError
from diag.probes import decode_step, machine, measure
from diag.probes.calibration import host
from diag.probes.catalogue import PROBES, named
from diag.probes.measure import CpuClock, CudaClock, Plan, Times, is_steady, timed, warm_up
from diag.probes.measured import measured, measurements
from diag.probes.nvtx_ranges import nvtx_range
from diag.probes.probe import Step
from diag.probes.runs import Run, Wish, parsed_dtype, parsed_shape, runs_of
from tests.probes.conftest import CACHE_BYTES, tiny


class FakeClock(CpuClock):
    """Steps take what they say."""

    def __init__(self, took_ns: Iterator[float]) -> None:
        self.took_ns = took_ns

    def once_ns(self, step: Step) -> float:
        step()
        return next(self.took_ns)


def test_median_and_percentiles_are_of_what_was_measured() -> None:
    times = Times([float(ns) for ns in range(1, 102)])
    assert (times.median_ns, times.percentile_ns(0.05), times.percentile_ns(0.95)) == (51, 6, 96)


def test_warming_up_ends_when_steps_are_steady() -> None:
    slow_then_steady = iter([float(ns) for ns in (900, 700, 500, 300, *[100] * 50)])
    assert warm_up(cycle([lambda: None]), FakeClock(slow_then_steady), seconds=60) == 12
    assert not is_steady([100.0] * 9)


def test_warming_up_ends_when_its_time_is_over() -> None:
    never_steady = iter([2.0**n for n in range(60)])
    assert warm_up(cycle([lambda: None]), FakeClock(never_steady), seconds=0) == 1


def test_buffers_take_turns() -> None:
    turns: list[int] = []
    steps = [lambda i=i: turns.append(i) for i in range(3)]
    timed(steps, CpuClock(), Plan(0.001, 0.001), "turns")
    assert turns == [at % 3 for at in range(len(turns))]
    assert len(turns) > 3


def test_steps_that_others_disturb_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = cycle([0, 0, 0, 1_000_000_000])  # before and after each step: every second one waits for a second
    total = 0

    def waited_ns() -> int:
        nonlocal total
        total += next(waits)
        return total

    monkeypatch.setattr(host, "waited_ns", waited_ns)
    took = cycle([100.0, 900.0])
    times = FakeClock(took).times(cycle([lambda: None]), Plan(0.001, 0.01), "disturbed")
    assert set(times.device_ns) == {100.0}
    assert times.n_disturbed == pytest.approx(len(times.device_ns), abs=1)


def test_where_most_are_disturbed_the_others_say_little(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = cycle([0, 0, *[1_000_000_000] * 6])  # of four steps, three wait for a second
    total = 0

    def waited_ns() -> int:
        nonlocal total
        total += next(waits)
        return total

    monkeypatch.setattr(host, "waited_ns", waited_ns)
    times = FakeClock(cycle([100.0])).times(cycle([lambda: None]), Plan(0.001, 0.01), "disturbed")
    assert len(times.device_ns) < times.n_disturbed
    assert times.are_disturbed


def test_where_all_are_disturbed_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    ever_more = iter(range(0, 10**15, 10**9))
    monkeypatch.setattr(host, "waited_ns", lambda: next(ever_more))
    times = FakeClock(cycle([100.0])).times(cycle([lambda: None]), Plan(0.001, 0.001), "disturbed")
    assert len(times.device_ns) >= measure.FEWEST
    assert times.are_disturbed
    assert times.n_disturbed == len(times.device_ns)


class FakeCuda:
    """A GPU whose time passes when steps say so, in ms."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.calls: list[str] = []

    def synchronize(self) -> None:
        self.calls.append("synchronize")

    def _sleep(self, cycles: int) -> None:
        self.calls.append("sleep")
        self.now_ms += 100

    def Event(self, *, enable_timing: bool) -> Any:  # noqa: N802  # as in torch.cuda
        cuda = self

        class Event:
            at_ms = 0.0

            def record(self) -> None:
                cuda.calls.append("record")
                self.at_ms = cuda.now_ms

            def synchronize(self) -> None:
                cuda.calls.append("wait")

            def elapsed_time(self, end: Event) -> float:
                return end.at_ms - self.at_ms

        assert enable_timing
        return Event()


def test_on_a_gpu_the_time_between_two_events_is_that_of_the_step() -> None:
    clock, cuda = CudaClock(), FakeCuda()
    clock._cuda = cuda

    def step() -> None:
        cuda.calls.append("step")
        cuda.now_ms += 2

    times = clock.times(cycle([step]), Plan(0, 0), "step")
    assert times.device_ns == [2e6] * measure.FEWEST
    assert len(times.end_to_end_ns) == measure.FEWEST
    whole, on_device = ["synchronize", "step", "synchronize"], ["sleep", "record", "step", "record", "wait"]
    assert cuda.calls == [*whole, *on_device] * measure.FEWEST


def test_ranges_cost_nothing_where_nvtx_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from diag.probes import nvtx_ranges

    pushed: list[str] = []

    class Nvtx:
        push_range = staticmethod(lambda name, payload: pushed.append(name))
        pop_range = staticmethod(lambda: pushed.append("end"))

    monkeypatch.setattr(nvtx_ranges, "_nvtx", lambda: Nvtx)
    with nvtx_range("gemm"):
        pushed.append("work")
    monkeypatch.setattr(nvtx_ranges, "_nvtx", lambda: None)
    with nvtx_range("none"):
        pushed.append("more")
    assert pushed == ["gemm", "work", "end", "more"]


def test_a_measurement_has_times_work_error_and_conditions() -> None:
    probe = PROBES["softmax"]
    one = measured(Run(probe, "fused", tiny(probe)), "tiny")
    assert 0 < one.p5_ns <= one.median_ns <= one.p95_ns
    assert (one.flops, one.n_bytes) == (5 * 256 * 512, 8 * 256 * 512)
    assert one.max_rel_error is not None
    assert one.max_rel_error <= (one.tolerance or 0)
    assert (one.level, one.shape) == ("dram", "rows=256 columns=512")
    assert "thread" in one.conditions
    assert "sets of buffers in turn" in one.conditions


def test_too_little_memory_is_told_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = PROBES["gemm"]
    run = Run(probe, "matmul", tiny(probe, M=1 << 20, N=1 << 20))
    monkeypatch.setattr(machine, "_free_bytes", lambda _: 1 << 30)
    with pytest.raises(OutOfMemory, match=r"gemm matmul fp32 \(M=1048576 .*\) takes 17\.\d TB of memory, and 1\.1 GB"):
        measured(run, "tiny")


def test_memory_that_runs_out_in_a_library_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = PROBES["gemm"]
    run = Run(probe, "matmul", tiny(probe, M=1 << 30, N=1 << 30, K=1 << 20))
    monkeypatch.setattr(machine, "_free_bytes", lambda _: None)
    with pytest.raises(OutOfMemory, match="does not fit into memory"):
        measured(run, "tiny")


def test_what_one_of_several_lacks_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_step, "which", lambda _: None)
    monkeypatch.delenv("CXX", raising=False)
    probe = PROBES["decode_step"]
    runs = [Run(probe, name, tiny(probe)) for name in ("compiled", "eager")]
    notes: list[str] = []
    done = list(measurements(runs, "tiny", lambda _: None, notes.append))
    assert [each.variant for each in done] == ["eager"]
    assert notes[0].startswith("torch.compile needs a C++ compiler")
    with pytest.raises(ToolMissing, match="--variant eager"):
        list(measurements(runs[:1], "tiny", lambda _: None, notes.append))


def test_a_wish_that_some_probes_cannot_meet_is_noted() -> None:
    notes: list[str] = []
    runs = runs_of(named(["gemm", "softmax"]), Wish("cpu", dtype="bf16"), CACHE_BYTES, notes.append)
    assert {run.probe.name for run in runs} == {"gemm"}
    assert notes == ["softmax has no bf16 on this device. Choose --dtype from: fp32."]


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish("cpu", dtype="tf32"), "gemm has no tf32"),
        (Wish("cpu", variant="matmull"), "no variant 'matmull'. Did you mean matmul?"),
        (Wish("cpu", shape={"rows": 3}), "gemm has no size 'rows'. Write --shape M=1024,N=1024,K=1024"),
    ],
)
def test_a_wish_that_none_can_meet_is_refused(wish: Wish, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        runs_of(named(["gemm"]), wish, CACHE_BYTES, print)
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["", "M", "M=0", "M=-1", "M=1.5", "=3", "M=²", "M=4294967296", "M=1,,N=2"])
def test_what_is_no_shape_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no size"):
        parsed_shape(text)


def test_what_is_no_type_is_refused() -> None:
    assert parsed_dtype("bf16") == "bf16"
    with pytest.raises(UsageError, match="fp32, tf32, fp16, bf16"):
        parsed_dtype("fp99")


def test_names_of_probes_are_known_or_nearly() -> None:
    assert [each.name for each in named(["gemm", "all"])][:2] == ["gemm", "vector_add"]
    with pytest.raises(UsageError, match=r"No probe is called 'sofmax'\. Did you mean softmax\?"):
        named(["sofmax"])


def test_without_a_gpu_that_is_asked_for_the_fix_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.device_of("auto") == "cpu"
    with pytest.raises(ToolMissing, match="diag doctor"):
        machine.device_of("cuda")
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    with pytest.raises(ToolMissing, match=r"pip install 'gpu-diag\[probes\]'"):
        machine.device_of("auto")


@pytest.mark.slow
def test_the_compiled_decoder_is_right() -> None:
    probe = PROBES["decode_step"]
    one = measured(Run(probe, "compiled", tiny(probe)), "tiny")
    assert one.max_rel_error is not None
    assert one.max_rel_error <= (one.tolerance or 0)
