"""What moved between two runs of a small program of which one thing was changed; every figure is worked out by hand."""

from __future__ import annotations

from diag.compare.changes import Change
from diag.compare.comparison import Comparison
from tests.compare.conftest import Compare
from tests.compare.runs import US, loop


def kernels(comparison: Comparison) -> dict[str, Change]:
    return {change.name: change for change in comparison.kernels}


def figures(comparison: Comparison) -> dict[str, Change]:
    return {change.name: change for change in comparison.figures}


def test_a_run_against_itself_is_within_noise_everywhere(compared: Compare) -> None:
    comparison = compared(loop(), loop())
    assert comparison.answer == "within noise"
    assert {change.answer for change in (*comparison.figures, *comparison.kernels)} == {"within noise"}
    assert all(change.moved_ns == 0 for change in comparison.kernels)


def test_a_kernel_that_takes_a_fifth_more(compared: Compare) -> None:
    """42 launches of 100 us, whose variations add up to nothing, become 42 of 120 us; the window is 42 · 170 us less
    the last gap.
    """
    comparison = compared(loop(42), loop(42, gemm_us=120))
    gemm = kernels(comparison)["gemm"]
    assert gemm.answer == "regressed"
    assert gemm.repeats == "launches"
    assert (gemm.moved_ns, gemm.by_count_ns, gemm.by_speed_ns) == (840 * US, 0, 840 * US)
    assert gemm.share == 840 / (42 * 170 - 30)
    assert gemm.shift is not None
    assert gemm.shift.ns == 20 * US
    assert kernels(comparison)["relu"].answer == "within noise"
    assert [change.name for change in comparison.kernels] == ["gemm", "relu"]


def test_a_kernel_that_is_launched_more_often_does_other_work(compared: Compare) -> None:
    comparison = compared(loop(42), loop(42, relus=3))
    relu = kernels(comparison)["relu"]
    assert relu.answer == "regressed"
    assert relu.before is not None
    assert relu.after is not None
    assert (relu.before.count, relu.after.count) == (84, 126)
    assert relu.by_count_ns == 840 * US
    assert abs(relu.by_speed_ns) < US
    assert relu.shift is not None
    assert relu.shift.p == 1


def test_kernels_that_come_and_go(compared: Compare) -> None:
    comparison = compared(loop(more=["softmax"]), loop(more=["fused"]))
    answers = {name: change.answer for name, change in kernels(comparison).items()}
    assert answers == {"softmax": "gone", "fused": "new", "gemm": "within noise", "relu": "within noise"}
    assert kernels(comparison)["fused"].before is None


def test_a_kernel_that_is_launched_otherwise_is_still_the_same_one(compared: Compare) -> None:
    comparison = compared(loop(block=128), loop(block=256, gemm_us=80))
    gemm = kernels(comparison)["gemm"]
    assert gemm.configuration == "64 blocks of 128 threads → 64 blocks of 256 threads"
    assert gemm.answer == "improved"


def test_configurations_that_both_have_are_told_apart(compared: Compare) -> None:
    """A kernel in two configurations of which one got slower; the third of one side stands by itself."""
    before, after = loop(grid=64), loop(grid=64, gemm_us=130)
    for export, other in ((before, 32), (after, 16)):
        gpu = export.process(100).gpu()
        for i in range(10):
            at = 20_000 * US + 100 * US * i
            block = {"blockX": 128, "blockY": 1, "blockZ": 1, "gridY": 1, "gridZ": 1}
            gpu.kernel(at, at + 10 * US + i, "gemm", gridX=8, **block)
            gpu.kernel(at + 20 * US, at + 30 * US, "gemm", gridX=other, **block)
    found = {change.configuration: change.answer for change in compared(before, after).kernels if change.name == "gemm"}
    assert found == {
        "64 blocks of 128 threads": "regressed",
        "8 blocks of 128 threads": "within noise",
        "other configurations": "within noise",
    }


def test_less_than_two_percent_is_what_two_runs_differ_by(compared: Compare) -> None:
    near, far = compared(loop(gemm_us=1000), loop(gemm_us=1015)), compared(loop(gemm_us=1000), loop(gemm_us=1060))
    assert kernels(near)["gemm"].answer == "within noise"
    assert kernels(far)["gemm"].answer == "regressed"


def test_two_launches_tell_no_noise(compared: Compare) -> None:
    comparison = compared(loop(2), loop(2, gemm_us=150))
    assert kernels(comparison)["gemm"].answer == "cannot tell"
    assert kernels(comparison)["gemm"].shift is None


def test_a_window_of_single_runs_has_no_noise_to_tell(compared: Compare) -> None:
    comparison = compared(loop(), loop(gap_us=90), metric="window")
    assert comparison.answer == "cannot tell"
    assert figures(comparison)["idle"].answer == "cannot tell"
    assert figures(comparison)["busy"].answer == "within noise"


# ---- steps ---------------------------------------------------------------------------------------------------------


def test_steps_tell_the_noise_of_everything_in_them(compared: Compare) -> None:
    """A step lasts 170 us, 230 with the longer gap; what the device does in it stays the same."""
    comparison = compared(loop(steps=True), loop(steps=True, gap_us=90))
    assert comparison.per_step == "step #"
    assert comparison.headline.metric == "step"
    assert comparison.answer == "regressed"
    assert comparison.headline.change.before is not None
    assert comparison.headline.change.after is not None
    assert abs(comparison.headline.change.before.total_ns - 170 * US) < 3 * US
    assert abs(comparison.headline.change.after.total_ns - 230 * US) < 3 * US
    answers = {name: change.answer for name, change in figures(comparison).items()}
    assert answers == {"window": "regressed", "idle": "regressed", "busy": "within noise", "kernels": "within noise"}
    assert figures(comparison)["idle"].repeats == "steps"


def test_another_number_of_steps_is_no_change(compared: Compare) -> None:
    comparison = compared(loop(30, steps=True), loop(50, steps=True))
    assert comparison.answer == "within noise"
    changes = [*comparison.figures, *comparison.kernels, *(each.change for each in comparison.ranges)]
    assert {change.answer for change in changes} == {"within noise"}
    relu = kernels(comparison)["relu"]
    assert relu.before is not None
    assert relu.before.count == 2


def test_of_whole_runs_more_steps_are_more_work(compared: Compare) -> None:
    comparison = compared(loop(30, steps=True), loop(50, steps=True), whole_runs=True, metric="kernels")
    assert comparison.per_step is None
    assert comparison.answer == "regressed"
    gemm = kernels(comparison)["gemm"]
    assert gemm.before is not None
    assert gemm.after is not None
    assert (gemm.before.count, gemm.after.count) == (30, 50)


def test_another_number_of_launches_in_each_step_is_told(compared: Compare) -> None:
    comparison = compared(loop(steps=True), loop(steps=True, relus=3))
    relu = kernels(comparison)["relu"]
    assert relu.answer == "regressed"
    assert relu.counts_differ is True
    assert relu.before is not None
    assert relu.after is not None
    assert (relu.before.count, relu.after.count) == (2, 3)


def test_ranges_are_compared_by_what_they_take_on_both_sides(compared: Compare) -> None:
    """Without steps each instance counts: 60 us more on the host, nothing more on the device."""
    comparison = compared(loop(steps=True), loop(steps=True, gap_us=90), whole_runs=True)
    found = {(each.time, each.change.name): each.change for each in comparison.ranges}
    assert found["host", "step #"].answer == "regressed"
    assert found["host", "step #"].repeats == "instances"
    assert found["GPU", "step #"].answer == "within noise"
    assert found["GPU", "step #"].before is not None
    assert abs(found["GPU", "step #"].before.total_ns - 40 * 140 * US) < 10 * US


def test_a_part_of_both_runs(compared: Compare) -> None:
    comparison = compared(loop(steps=True), loop(steps=True, gemm_us=150), range_name="step #")
    assert comparison.answer == "regressed"
    assert comparison.headline.metric == "step"


# ---- repeats -------------------------------------------------------------------------------------------------------


def test_repeats_tell_what_runs_differ_by(compared: Compare) -> None:
    """Runs of 100, 101 and 102 us a launch against 104, 105 and 106: within them that would be noise, between not."""
    before = [loop(gemm_us=us, pid=us) for us in (100, 101, 102)]
    after = [loop(gemm_us=us, pid=us) for us in (104, 105, 106)]
    comparison = compared(before, after)
    gemm = kernels(comparison)["gemm"]
    assert gemm.answer == "regressed"
    assert gemm.repeats == "runs"
    assert gemm.shift is not None
    assert (gemm.shift.n_before, gemm.shift.n_after) == (3, 3)
    assert kernels(comparison)["relu"].answer == "within noise"
    assert comparison.answer == "regressed"
    assert comparison.headline.change.repeats == "runs"


def test_runs_that_differ_among_themselves_hide_a_small_change(compared: Compare) -> None:
    before = [loop(gemm_us=us, pid=us) for us in (90, 100, 110)]
    after = [loop(gemm_us=us, pid=us) for us in (95, 106, 115)]
    assert kernels(compared(before, after))["gemm"].answer == "within noise"


def test_the_window_of_repeated_runs_has_a_noise(compared: Compare) -> None:
    before = [loop(gap_us=us, pid=us) for us in (30, 31, 32)]
    after = [loop(gap_us=us, pid=us) for us in (60, 61, 62)]
    comparison = compared(before, after, metric="window")
    assert comparison.answer == "regressed"
    assert figures(comparison)["busy"].answer == "within noise"


def test_one_run_against_repeats_of_another(compared: Compare) -> None:
    before = [loop(gemm_us=us, pid=us) for us in (100, 101, 102, 103)]
    assert kernels(compared(before, loop(gemm_us=150)))["gemm"].answer == "regressed"
    assert kernels(compared(before, loop(gemm_us=102)))["gemm"].answer == "within noise"


def test_a_kernel_that_some_runs_lack_took_no_time_in_them(compared: Compare) -> None:
    before = [loop(more=["softmax"], pid=1), loop(pid=2), loop(pid=3)]
    after = [loop(pid=4), loop(pid=5), loop(pid=6)]
    softmax = kernels(compared(before, after))["softmax"]
    assert softmax.answer == "gone"
    assert softmax.before is not None
    assert abs(softmax.before.total_ns - 400 * US / 3) < US
