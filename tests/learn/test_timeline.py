"""Lesson 4 on this machine: the gaps are those of the closed form, and each fault of the exercise is found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from diag.learn.course import lesson
from diag.learn.exercises import timeline as sick
from diag.learn.lesson import Command, Lab
from diag.learn.lessons import timeline as taught
from diag.learn.page import page
from diag.learn.timelines import RETURN_NS
from tests.learn.fired import findings, fired

pytest.importorskip("torch")

LAUNCHES, PERIOD_NS, CALL_NS = 300, 9_000.0, 2_000.0


def test_figures_agree_with_each_other(lab: Lab) -> None:
    measured = lesson(4).measure(lab)
    figures = {each.key: each.value for each in measured.figures}
    assert list(figures) == list(page(4, "en").labels)
    assert figures["period_ns"] == pytest.approx(figures["step_ns"] / figures["launches"])
    assert figures["period_ns"] > figures["call_ns"] > 0
    assert figures["bytes_ns"] < figures["step_ns"]
    assert 20 * taught.LAYERS["tiny"] < figures["launches"] < 60 * taught.LAYERS["tiny"]
    n, period_ns = figures["launches"], max(figures["period_ns"], taught.KERNEL_NS)
    step_ns = n * period_ns + taught.KERNEL_NS + RETURN_NS
    assert figures["idle"] == pytest.approx(1 - n * taught.KERNEL_NS / step_ns, abs=0.05)


def test_launches_grow_with_layers(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for layers in (1, 2, 3):
        monkeypatch.setattr(taught, "LAYERS", {"tiny": layers})
        counts.append(taught.launches_of(taught._decode(lab, taught.NARROW)))
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0


def test_synthetic_gaps_are_those_of_the_closed_form(tmp_path: Path) -> None:
    eager, graph = tmp_path / "eager.pt.trace.json.gz", tmp_path / "graph.pt.trace.json.gz"
    taught.synthetic(LAUNCHES, PERIOD_NS, CALL_NS, eager, graph)
    busy_ns = LAUNCHES * taught.KERNEL_NS
    eager_ns = LAUNCHES * PERIOD_NS + taught.KERNEL_NS + RETURN_NS
    graph_ns = PERIOD_NS + busy_ns + (LAUNCHES - 1) * taught.NODE_GAP_NS + RETURN_NS
    (idle, eager_window), (_, graph_window) = map(taught.idle_and_window, (eager, graph))
    assert idle == pytest.approx(1 - busy_ns / eager_ns, abs=0.01)
    assert eager_window / graph_window == pytest.approx(eager_ns / graph_ns, rel=0.01)
    assert {"launch.bound", "idle.gpu"} <= fired([("report", str(eager))])
    assert "launch.bound" not in fired([("report", str(graph))])


def titles(commands: Sequence[Command], rule: str) -> str:
    """What the findings of one rule are called."""
    return "\n".join(each.title for each in findings(commands) if each.rule == rule)


TELLS = {"host_asleep": "sleep", "text_formatting": "join"}
"""By which a finding of `host.hot` is about the fault: it always names the hottest function of a host."""


@pytest.mark.parametrize("fault", tuple(sick.FAULTS))
def test_each_fault_is_found_by_its_rule_and_its_twin_is_healthy(
    lab: Lab, fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen, twin = sick.FAULTS[fault], tmp_path / "twin.pt.trace.json.gz"
    monkeypatch.setattr(sick, "FAULTS", {fault: chosen})
    incident = sick.exercise(lab, random.Random(0))
    assert incident.fault == fault
    assert fault in page(4, "en").faults
    assert incident.rule is not None
    assert TELLS.get(fault, "") in titles(incident.commands, incident.rule)
    assert incident.rule in fired(incident.commands)
    if chosen.synthetic:
        sick.timeline(sick.STEPS["tiny"]).write(twin)
    else:
        sick.run(lab, chosen.name, twin, 0.0, 0)
    if fault in TELLS:
        assert TELLS[fault] not in titles([("report", str(twin))], incident.rule)
    else:
        assert incident.rule not in fired([("report", str(twin))])


@pytest.mark.parametrize("fault", [name for name, each in sick.FAULTS.items() if not each.synthetic])
def test_no_name_in_a_real_trace_tells_the_fault(lab: Lab, fault: str) -> None:
    import gzip

    trace = lab.folder / "run.pt.trace.json.gz"
    sick.run(lab, sick.FAULTS[fault].name, trace, 0.2, 1)
    text = gzip.decompress(trace.read_bytes()).decode()
    assert "train.py" in text
    assert f"{sick.FAULTS[fault].name.replace('-', '_')}.py" not in text
