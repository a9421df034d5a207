"""A plan beside runs of which only a file's figures are known, and beside one of which nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.model.card_use import CardUse
from diag.model.deployment import Objectives
from diag.model.model_catalogue import known_model
from diag.model.plan_against import CANNOT_TELL, Line, against
from diag.model.plan_serving import Layout, Load, lay_out
from diag.model.planned_card import card
from diag.model.planned_model import of_shape
from diag.model.planned_requests import Requests, lengths
from diag.model.precision import precision
from diag.model.serving_roofline import CardRates
from diag.serving.measured_plan import fullest, inference_lines, run_lines
from diag.serving.run import serving_runs
from diag.store.case import Case

MS = 1_000_000
BF16 = precision("bf16")


@pytest.fixture(scope="module")
def layout() -> Layout:
    requests = Requests.drawn(lengths("p", "1000"), lengths("o", "200"), 0)
    load = Load(requests, None, Objectives(), 0.01, 0.8, None, 0)
    model = of_shape("m", known_model("llama-3.1-8b").shape, "")
    return lay_out(model, CardUse(card("h100"), BF16, BF16, BF16), CardRates(6e14, 3e12, 3e11, 1e4), 1, load)


def stated(case: Case, **figures: tuple[str, float, str]) -> None:
    """A run of ten seconds that completed 20 requests, with figures by name: statistic, value, unit."""
    source_id = case.add_source(
        kind="serving", path="f", sha256="", size_bytes=1, tool="t", time_resolution_ns=1
    )  # fmt: skip
    run_id = case.insert_returning_id(
        "serving_run", {"source_id": source_id, "duration_ns": 10**10, "n_completed": 20, "load": "{}"}
    )
    rows = [
        {"run_id": run_id, "name": name, "statistic": statistic, "value": value, "unit": unit, "stated_as": name}
        for name, (statistic, value, unit) in figures.items()
    ]
    case.insert("serving_figure", rows)
    case.finish_source(source_id, {"serving_run": 1})


def test_figures_of_a_file_stand_in_for_requests(tmp_path: Path, layout: Layout) -> None:
    with Case.create(tmp_path / "case.diag") as case:
        stated(case, ttft=("mean", 40.0 * MS, "ns"), itl=("p99", 30.0 * MS, "ns"))
        (run,) = serving_runs(case)
        lines = {line.what: line for line in run_lines(run, layout)}
    assert lines["TTFT, mean"].measured == 40 * MS
    assert lines["ITL, P99"].measured == 30 * MS
    assert lines["ITL, mean"].measured is None
    assert lines["rate, most that meets it"].measured == 2.0
    assert isinstance(lines["TTFT, mean"].planned, float)
    assert lines["requests completed"].measured == 20


def test_a_stated_rate_goes_before_a_counted_one(tmp_path: Path, layout: Layout) -> None:
    with Case.create(tmp_path / "case.diag") as case:
        stated(case, request_rate=("value", 1000.0, "requests/s"))
        lines = {line.what: line for line in run_lines(serving_runs(case)[0], layout)}
    assert lines["rate, most that meets it"].measured == 1000.0
    assert lines["TTFT, mean"].planned == "cannot keep up"


def test_an_empty_case_tells_nothing(tmp_path: Path, layout: Layout) -> None:
    with Case.create(tmp_path / "case.diag") as case:
        assert fullest(case) is None
        lines = inference_lines(case, layout.replica.budget)
    assert all(line.measured is None and line.because for line in lines)
    assert {line.unit for line in lines} == {"bytes", "count"}


def test_the_farthest_line_is_named() -> None:
    lines = [Line("a", "ns", 100.0, 110.0), Line("b", "ns", 100.0, 70.0), Line("c", "ns", 5.0, None, "it was not seen")]
    (answer,) = against("Against x", lines)
    assert answer.verdict == "Farthest from the plan: b, 30% under it."
    assert answer.table[0].values == [110.0, 70.0, CANNOT_TELL]
    assert answer.cannot_tell == ["c: it was not seen."]
    (slow,) = against("Against x", [Line("a", "ns", 100.0, 900.0)])
    assert slow.verdict == "Farthest from the plan: a, 9.0 times it."
