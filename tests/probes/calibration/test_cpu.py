"""Work of a CPU's trials is what they do, and the machine obeys the order of its levels."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("torch") is None:
    pytest.skip("torch is not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

import torch

from diag.errors import OutOfMemory, ToolMissing
from diag.model.benchmark import MeasuredCeiling
from diag.model.ceilings import Arithmetic
from diag.model.measured import best_rate
from diag.probes.calibration import cpu, host
from diag.probes.calibration.calibrate import calibrate
from diag.probes.calibration.cpu import Buffers
from diag.probes.calibration.host import Caches

CACHES = Caches(48 << 10, 1 << 20, 16 << 20)


def test_windows_of_threads_share_no_cache_line() -> None:
    n_threads, rows, row = 3, 20, 1024
    slab = row + cpu.LINE_FLOATS * (rows + 64)
    view = torch.zeros(n_threads * slab).as_strided((n_threads, rows, row), (slab, cpu.LINE_FLOATS, 1))
    lines = [set((part.storage_offset() + torch.arange(row + cpu.LINE_FLOATS * (rows - 1))).tolist()) for part in view]
    assert all(not lines[a] & lines[b] for a in range(3) for b in range(a))


def test_every_level_is_gone_through_in_every_way() -> None:
    found = {(trial.level, trial.access) for trial in cpu.memory_trials(CACHES, 2)}
    assert {level for level, _ in found} == {"l1", "l2", "l3", "dram"}
    assert all((level, access) in found for level in ("l1", "l2", "l3", "dram") for access in cpu.ARRAYS)


def test_working_sets_lie_within_their_level_and_beyond_the_one_before() -> None:
    sets = {trial.level: trial.working_set_bytes or 0 for trial in cpu.memory_trials(CACHES, 2)}
    assert sets["l1"] <= 2 * CACHES.l1_bytes < sets["l2"] <= 2 * CACHES.l2_bytes < sets["l3"] <= CACHES.l3_bytes
    assert sets["dram"] >= 4 * CACHES.l3_bytes


def test_a_share_of_l3_that_l2_holds_is_no_level_of_its_own() -> None:
    assert "l3" not in {trial.level for trial in cpu.memory_trials(CACHES, 16)}


def test_bytes_are_those_that_the_calls_go_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by the operators themselves."""
    counted: list[int] = []
    monkeypatch.setattr(torch.Tensor, "fill_", lambda self, _: counted.append(self.numel() * 4))
    monkeypatch.setattr(torch.Tensor, "copy_", lambda self, other: counted.append((self.numel() + other.numel()) * 4))
    for trial in cpu.memory_trials(CACHES, 2):
        if trial.access in ("fill", "copy"):
            trial.run()
            assert counted.pop() == trial.work


def test_a_stream_goes_through_all_of_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(torch.Tensor, "fill_", lambda self, _: seen.append(self.data_ptr()))
    (fill,) = (each for each in cpu.memory_trials(CACHES, 2) if (each.level, each.access) == ("dram", "fill"))
    for _ in range((fill.working_set_bytes or 0) // fill.work):
        fill.run()
    assert len(set(seen)) == len(seen)
    fill.run()
    assert seen[-1] == seen[0]


def test_operations_are_those_that_torch_counts() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    for trial in cpu.arithmetic_trials(2):
        with FlopCounterMode(display=False) as counter:
            trial.run()
        assert counter.get_total_flops() == trial.work


@pytest.mark.parametrize("has_bf16", [True, False])
def test_types_that_the_cpu_has_no_units_for_are_left_out(has_bf16: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    features = frozenset({"avx512_bf16"} if has_bf16 else {"avx2"})
    monkeypatch.setattr(host, "cpu_features", lambda: features)
    assert (Arithmetic("bf16", "fp32") in {each.arithmetic for each in cpu.arithmetic_trials(2)}) is has_bf16


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "available_bytes", lambda: 300 << 20)
    with pytest.raises(OutOfMemory, match="End other programs"):
        Buffers.past(Caches(48 << 10, 1 << 20, 32 << 20))


def test_without_a_gpu_none_is_measured() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ToolMissing, match="--device cpu"):
        calibrate("cuda")


def _rate(of: MeasuredCeiling | None) -> float:
    return of.ceiling.per_s if of else 0.0


@pytest.mark.slow
def test_nearer_levels_are_faster_and_narrower_types_too() -> None:
    """Of this machine, while other tests run: only what no disturbance can turn round."""
    found = calibrate("cpu", quick=True)
    l1, dram = (best_rate(found.ceilings, level=level) for level in ("l1", "dram"))
    fp32, fp64 = (best_rate(found.ceilings, arithmetic=Arithmetic(of, of)) for of in ("fp32", "fp64"))
    assert all((l1, dram, fp32, fp64))
    assert _rate(l1) > 2 * _rate(dram)
    assert _rate(fp32) > 1.2 * _rate(fp64)
    assert found.is_possible
    assert {each.ceiling.origin for each in found.ceilings} == {"measured"}
    assert [each.probe for each in found.measurements] == ["launch_latency"]
