"""The truth suite in small: every synthetic fault once with fixed seeds, and one fault that is captured here."""

from __future__ import annotations

import pytest

from diag.probes import machine
from diag.probes.catalogue import PROBES
from diag.probes.faults import table
from diag.probes.runs import Wish, runs_of
from tests.truth import build, healthy, live, profiles, serving_loads, synthetic
from tests.truth.healthy import Judged
from tests.truth.page import page
from tests.truth.page import table as as_table
from tests.truth.trial import TOLERANCE, Score, Trial


def well_judged(sick: Trial, twin: Trial) -> None:
    assert sick.reported == pytest.approx(sick.injected, rel=TOLERANCE)
    assert sick.injected > 0.1
    assert twin.reported is None
    assert (sick.accused, twin.accused) == ((), ())


@pytest.mark.parametrize("name", synthetic.FAULTS)
def test_a_synthetic_fault_is_found_at_its_size_and_its_twin_is_not_accused(name: str) -> None:
    well_judged(*(build.timeline(name, 0.3, seed=7, is_sick=is_sick) for is_sick in (True, False)))


@pytest.mark.parametrize("name", profiles.FAULTS)
def test_a_fault_in_a_kernel_is_found_at_its_size_and_its_twin_is_not_accused(name: str) -> None:
    well_judged(*(build.kernel_profile(name, 0.3, seed=7, is_sick=is_sick) for is_sick in (True, False)))


@pytest.mark.parametrize("name", serving_loads.FAULTS)
def test_a_fault_of_a_load_is_found_at_its_size_and_its_twin_is_not_accused(name: str) -> None:
    well_judged(*(build.load(name, 0.3, seed=7, is_sick=is_sick) for is_sick in (True, False)))


def test_places_sizes_and_names_are_drawn_and_the_twin_has_the_same() -> None:
    fault = synthetic.FAULTS["sleep in the loop"]
    one, twin, other = (
        synthetic.make(fault, 0.3, seed, is_sick=is_sick) for seed, is_sick in ((1, True), (1, False), (2, True))
    )
    assert one.name == twin.name != other.name
    kernels = [made.export.rows["CUPTI_ACTIVITY_KIND_KERNEL"] for made in (one, twin, other)]
    durations = [[row["end"] - row["start"] for row in rows] for rows in kernels]
    assert durations[0] == durations[1] != durations[2]


@pytest.mark.parametrize("dose", [0.3, 0.0])
def test_a_fault_that_is_captured_here(dose: float) -> None:
    fault = table.FAULTS["sleep-in-loop"]
    (trial,) = live.run(live.Planned(fault, "torch", "cpu", dose, seed=7))
    assert trial.miss is None
    assert (trial.reported is not None) == (dose > 0)


def trial(*, is_sick: bool, injected: float, reported: float | None, accused: tuple[str, ...] = ()) -> Trial:
    return Trial("sleep", "nsys", "host.os_calls", 0.3, 1, is_sick, injected, reported, accused, threshold=0.1)


@pytest.mark.parametrize(
    ("judged", "says"),
    [
        (trial(is_sick=True, injected=0.3, reported=None), "did not find 30.0%"),
        (trial(is_sick=True, injected=0.3, reported=0.35), "reports 35.0% of 30.0%"),
        (trial(is_sick=True, injected=0.3, reported=0.3, accused=("host.locks",)), "also accused by host.locks"),
        (trial(is_sick=False, injected=0.0, reported=0.2), "accuses the healthy twin"),
    ],
)
def test_each_way_to_be_wrong_is_a_miss(judged: Trial, says: str) -> None:
    assert says in (judged.miss or "")


@pytest.mark.parametrize(
    "judged",
    [
        trial(is_sick=True, injected=0.3, reported=0.32),
        trial(is_sick=True, injected=0.09, reported=None),  # below the threshold
        trial(is_sick=False, injected=0.0, reported=None),
        trial(is_sick=False, injected=0.2, reported=0.2),  # the machine did it
    ],
)
def test_what_is_no_miss(judged: Trial) -> None:
    assert judged.miss is None


def test_recall_and_precision_are_of_what_was_found_and_of_what_was_said() -> None:
    score = Score(
        [
            *(trial(is_sick=True, injected=0.3, reported=reported) for reported in (0.3, None)),
            *(trial(is_sick=False, injected=0.0, reported=reported) for reported in (0.2, None)),
        ]
    )
    assert score.recall == 0.5
    assert score.precision(elsewhere=0) == 0.5
    assert score.precision(elsewhere=2) == 0.25


def test_the_table_has_a_row_for_each_rule_and_fault() -> None:
    page = as_table([trial(is_sick=True, injected=0.3, reported=0.33), trial(is_sick=False, injected=0, reported=None)])
    row = page.splitlines()[-1]
    assert "| host.os_calls | sleep | nsys | 1 of 1 | 1 of 1 | 1.00 | 1.00 |" in row
    assert "+10.0%" in row


def test_what_is_said_of_a_healthy_probe_is_a_miss_unless_it_is_true() -> None:
    fine = Judged("softmax fused fp32", "Hot on the host: aten::_softmax")
    wrong = Judged("softmax fused fp32", "The data loader holds up the program", ("host.data_loader",))
    right = Judged("data_pipeline workers fp32", "The data loader holds up the program", ("host.data_loader",))
    both = Judged("data_pipeline workers fp32", "Sleeps", ("host.data_loader", "host.hot"))
    assert (fine.miss, fine.reason) == (None, None)
    assert wrong.miss is not None
    assert wrong.reason is None
    assert right.miss is not None
    assert right.reason
    assert both.reason is None
    written = page([], [], [fine, wrong], [], [], {wrong.miss: wrong.reason})
    assert "| softmax fused fp32 | Hot on the host: aten::_softmax | by none |" in written
    assert "**No reason is known.**" in written


@pytest.mark.parametrize(
    ("probe", "variant", "accused"),
    [("data_pipeline", "in_process", {"host.data_loader"}), ("vector_add", "out", set())],
)
def test_a_rule_that_finds_a_fault_in_a_probe_is_named(probe: str, variant: str, accused: set[str]) -> None:
    """A loop that decodes its batches itself does wait for them."""
    (run,) = runs_of([PROBES[probe]], Wish("cpu", variant=variant), machine.cache_bytes("cpu"), print)
    assert healthy.accusers(healthy.report_on(run), "cpu") == accused
