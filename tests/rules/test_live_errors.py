"""XIDs and memory errors of a watched device."""

from __future__ import annotations

import pytest

from diag.model.live import GpuReading, Xid
from diag.rules.finding import CannotTell
from tests.builders.live import EPOCH_NS, device, untold_device, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def failing(at: int) -> GpuReading:
    return device(xids=[Xid(79, EPOCH_NS)] if at == 7 else [])


CASES = {
    "live.xid": ThreeCases(
        fires=lambda: watched(failing),
        clear=watched,
        untold=lambda: watched(lambda _: device(untold={"xids": "events need a newer driver"})),
    ),
    "live.ecc": ThreeCases(
        fires=lambda: watched(lambda at: device(ecc_uncorrected=int(at > 9), ecc_corrected=3)),
        clear=lambda: watched(lambda _: device(ecc_corrected=3)),
        untold=lambda: watched(lambda _: untold_device("ecc_uncorrected")),
    ),
}


def test_an_error_is_critical_and_named(ask: Ask) -> None:
    finding = only_finding(ask("live.xid", watched(failing)))
    assert finding.severity == "critical"
    assert finding.title == "GPU 0 reported XID 79"
    assert "fallen off the bus" in finding.claim
    assert figures(finding) == {"XID 79": 1}


def test_one_snapshot_is_enough_for_an_error(ask: Ask) -> None:
    finding = only_finding(ask("live.xid", watched(lambda _: device(xids=[Xid(31, EPOCH_NS)]), seconds=0)))
    assert finding.next[-1] == "Run the program under compute-sanitizer."


@pytest.mark.parametrize(("at_first", "severity"), [(0, "critical"), (2, "warning")])
def test_errors_of_earlier_are_less_grave(ask: Ask, at_first: int, severity: str) -> None:
    counts = watched(lambda at: device(ecc_uncorrected=2 if at else at_first))
    assert only_finding(ask("live.ecc", counts)).severity == severity


def test_without_a_gpu_its_reason_is_told(ask: Ask) -> None:
    (answer,) = ask("live.xid", watched(lambda _: [], gpus="there is no driver here"))
    assert isinstance(answer, CannotTell)
    assert answer.because == "there is no driver here"
