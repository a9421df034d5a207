"""Serving runs in every form of a report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.serving_log import EngineConditions, LoadConditions
from diag.render import phrases
from diag.render.html.page import render_html
from diag.render.json_report import render_json
from diag.render.markdown import render_markdown
from diag.render.serving_tables import latencies, serving_runs, stated_figures
from diag.render.text import render_text
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.finding import Clear, Subject
from diag.rules.report import Report
from diag.rules.serving_rows import StatedRow
from diag.rules.stored import report_of
from diag.rules.verdict import verdict
from tests.builders.imported import imported
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request, step

# Every half a second a request, of which the second half of the run has longer prompts; one fails and one is refused.
DONE = [
    request(
        n, n * SECOND // 2, ttft_ns=(40 if n < 40 else 90) * MS, prompt_tokens=100 if n < 40 else 1000,
        intended_ns=n * SECOND // 2 - MS, queued_ns=n * SECOND // 2 + MS, scheduled_ns=n * SECOND // 2 + 4 * MS,
        max_output_tokens=10 if n % 4 else 20, cached_tokens=50,
    )
    for n in range(80)
]  # fmt: skip
NOT_DONE = [
    msgspec.structs.replace(request(80, 0), outcome="failed", error="stream cut"),
    request(81, SECOND, n=0, outcome="rejected"),
]
WARM_UP = request(82, 0, phase="engine_warmup")
STEPS = [
    step(n, n * 10 * MS, n * 10 * MS + 8 * MS, decode_tokens=4, n_decodes=4, n_running=4, used_blocks=6,
         cached_blocks=1, free_blocks=1, used_tokens=72, model_ns=6 * MS)
    for n in range(10)
]  # fmt: skip
RUN = LoggedRun(
    [*DONE, *NOT_DONE, WARM_UP],
    STEPS,
    LoadConditions(arrival="constant", rate_per_s=2),
    EngineConditions(block_tokens=16),
    backend="mini-engine",
)
SWEEP = ServingLog(
    [RUN, replace(RUN, load=LoadConditions(rate_per_s=4)), replace(RUN, load=LoadConditions(rate_per_s=8))]
)
OBJECTIVE = '["serving.goodput"]\nttft_ms = 50\ntpot_ms = 30\n'


def report_on(log: ServingLog, folder: Path, thresholds: Path | None = None) -> Report:
    with imported(log, folder) as case:
        return analyse(case, AnalysisOptions(thresholds=thresholds))


def test_json_has_every_figure(tmp_path: Path) -> None:
    (run,) = json.loads(render_json(report_on(ServingLog([RUN]), tmp_path)))["requests"]["runs"]
    assert (run["name"], run["arrival"], run["rate_per_s"]) == ("2 requests/s", "constant", 2)
    outcomes = ("sent", "completed", "failed", "rejected", "cancelled", "expired", "warm_up", "stopped_early")
    assert [run[name] for name in outcomes] == [82, 80, 1, 1, 0, 0, 1, 20]
    # The last one is sent after 39.5 s and takes 90 ms + 9 x 20 ms.
    assert run["duration_ns"] == 39_770 * MS
    assert run["requests_per_s"] == pytest.approx(80 / 39.77)
    assert run["output_tokens_per_s"] == pytest.approx(800 / 39.77)
    assert run["input_tokens_per_s"] == pytest.approx(40 * 1100 / 39.77)
    assert run["goodput_per_s"] == run["requests_per_s"]
    assert (run["mean_prompt_tokens"], run["mean_output_tokens"], run["settings"]) == (550, 10, {"block_tokens": "16"})
    latency = {each["name"]: each for each in run["latencies"]}
    assert list(latency) == ["send_delay", "queue", "ttft", "tpot", "itl", "e2e"]
    assert {name: (each["p50_ns"], each["count"]) for name, each in latency.items()} == {
        "send_delay": (1 * MS, 80),
        "queue": (3 * MS, 80),
        "ttft": (65 * MS, 80),
        "tpot": (20 * MS, 80),
        "itl": (20 * MS, 720),
        "e2e": (245 * MS, 80),
    }
    assert latency["ttft"]["p99_ns"] == latency["ttft"]["max_ns"] == 90 * MS
    assert [(each["least_tokens"], each["ttft_p50_ns"], each["e2e_p99_ns"]) for each in run["by_prompt"]] == [
        (100, 40 * MS, 220 * MS),
        (1000, 90 * MS, 270 * MS),
    ]
    assert run["kv_cache"]["peak_share"] == 0.75
    assert run["kv_cache"]["tail_waste_share"] == 0.25
    assert run["kv_cache"]["prefix_hit_share"] == pytest.approx(4000 / 44_000)
    assert run["engine_steps"]["model_share"] == pytest.approx(60 / 98)
    assert run["engine_steps"]["between_share"] == pytest.approx(18 / 98)
    assert {check["name"]: check["holds"] for check in run["checks"]} == {
        "Little's law": True,
        "E2E": True,
        "outputs": True,
        "tokens of engine steps": False,
    }


def test_without_serving_runs_there_are_no_requests(tmp_path: Path) -> None:
    report = replace(report_on(ServingLog([RUN]), tmp_path), serving=())
    assert json.loads(render_json(report))["requests"] == {}
    assert "Serving" not in render_text(report)


def test_goodput_is_shown_where_an_objective_is_known(tmp_path: Path) -> None:
    thresholds = tmp_path / "slo.toml"
    thresholds.write_text(OBJECTIVE)
    report = report_on(ServingLog([RUN]), tmp_path, thresholds)
    (row,) = report.serving
    assert row.goodput_per_s == pytest.approx(40 / 39.77)  # those with short prompts
    table = serving_runs(report, 5)
    assert dict(zip(table.header, table.rows[0], strict=True))["goodput"] == "1.01"
    assert "Goodput: completed requests a second with TTFT ≤ 50.0 ms and TPOT ≤ 30.0 ms." in table.notes
    thresholds.write_text('["serving.goodput"]\nttft_ms = 0\ntpot_ms = 0\n')
    report = report_on(ServingLog([RUN]), tmp_path, thresholds)
    assert (report.serving[0].goodput_per_s, report.serving[0].objective) == (None, None)
    assert "goodput" not in serving_runs(report, 5).header


TEXT = """\
Serving
  done  not done  req/s  goodput  out tok/s  in flight  run
    80         2   2.01     2.01       20.1        0.5  2 requests/s, constant
                                                          rate
"""


def test_text_says_it_in_eighty_columns(tmp_path: Path) -> None:
    text = render_text(report_on(ServingLog([RUN]), tmp_path), width=80)
    assert TEXT in text
    assert "1 rejected, 1 failed of 82 requests; 1 request of warm-up left out; 25.0 %" in " ".join(text.split())
    assert "   65.0 ms   90.0 ms   90.0 ms   65.0 ms     80  TTFT\n" in text
    assert "   40.0 ms  40.0 ms   20.0 ms  20.0 ms  220.0 ms     40  100 tokens\n" in text
    assert "  75.0 %  75.0 %      25.0 %        9.1 %          0           0  2 requests/s\n" in text
    assert text.count("Too narrow here") == 1  # tokens that came in
    assert max(map(len, text.splitlines())) <= 80


def test_page_and_markdown_have_the_same_tables(tmp_path: Path) -> None:
    report = report_on(ServingLog([RUN]), tmp_path)
    html, markdown = render_html(report, None), render_markdown(report)
    for identity in ("serving-runs", "latencies", "latencies-by-prompt", "kv-caches", "engine-steps"):
        assert f'<section id="{identity}"' in html
    for title in ("Serving", "Latencies of completed requests", "KV cache of the engine", "Steps of the engine"):
        assert f"### {title}\n" in markdown


def test_a_sweep_reads_downwards(tmp_path: Path) -> None:
    table = latencies(report_on(SWEEP, tmp_path), 5)
    ttft = [row[-1] for row in table.rows if row[-1].startswith("TTFT")]
    assert ttft == ["TTFT, 2 requests/s", "TTFT, 4 requests/s", "TTFT, 8 requests/s"]


def test_of_many_loads_an_even_choice_is_shown(tmp_path: Path) -> None:
    loads = ServingLog([LoggedRun([request(0, 0)], load=LoadConditions(rate_per_s=rate)) for rate in range(1, 16)])
    table = serving_runs(report_on(loads, tmp_path), 5)
    assert [row[-1] for row in table.rows] == [f"{rate} requests/s" for rate in (1, 3, 5, 7, 9, 11, 13, 15)]
    assert table.notes[0] == "… and 7 more (--top 15)."


def test_figures_that_a_file_states_are_told_apart(tmp_path: Path) -> None:
    report = report_on(ServingLog([LoggedRun([request(0, 0)])]), tmp_path)
    (row,) = report.serving
    stated = [replace(each, count=None, p95_ns=None, is_stated=True) for each in row.latencies if each.name == "ttft"]
    table = latencies(replace(report, serving=[replace(row, latencies=stated, has_requests=False)]), 5)
    assert table.rows == [["50.0 ms", "-", "50.0 ms", "50.0 ms", "-", "TTFT (stated)"]]
    assert table.notes[0] == "Stated: by the file, which does not hold the requests themselves."


def test_what_else_a_file_states_has_a_table(tmp_path: Path) -> None:
    report = report_on(ServingLog([LoggedRun(backend="vllm")]), tmp_path)
    (row,) = report.serving
    stated = [
        StatedRow("kv_share", "value", 0.5, "share", "kv_cache_usage_perc"),
        StatedRow("ttft", "mean", 50e6, "ns", "mean_ttft_ms"),
        StatedRow("ttft", "p99_from", 40e6, "ns", "ttft_bucket"),
    ]
    report = replace(report, serving=[replace(row, sent=None, stated=stated)])
    assert stated_figures(report, 5).rows == [
        ["50.0 %", "value", "kv share (kv_cache_usage_perc)"],
        ["40.0 ms", "p99_from", "ttft (ttft_bucket)"],
    ]
    assert serving_runs(report, 5).rows == []


def test_a_finding_of_one_of_several_loads_says_which(tmp_path: Path) -> None:
    lacking = replace(RUN, steps=(), load=LoadConditions(rate_per_s=4, n_requests=99))
    report = report_on(ServingLog([replace(RUN, steps=()), lacking]), tmp_path)
    (finding,) = [each for each in report.findings if each.rule == "serving.checks"]
    assert finding.subject.present() == {"source": 1, "load": "4 requests/s"}
    assert phrases.about(report, finding) == "4 requests/s"
    assert "serving.checks (2 requests/s)" in " ".join(render_markdown(report).split())


def test_a_stored_report_is_the_same(tmp_path: Path) -> None:
    kept = tmp_path / "kept.diag"
    log = ServingLog([RUN]).write(tmp_path / "log.jsonl")
    with open_inputs([log], ImportOptions(keep=kept, use_cache=False)) as case:
        first = render_json(report_of(case, AnalysisOptions()))
    with open_inputs([kept], ImportOptions(use_cache=False)) as case:
        assert render_json(report_of(case, AnalysisOptions())) == first


def test_a_healthy_load_is_called_so_and_contradictions_alone_are_no_verdict(tmp_path: Path) -> None:
    report = report_on(SWEEP, tmp_path)
    load = Subject(1, load="2 requests/s")
    alone = verdict([], [Clear(load, "serving.checks")], [], serving=report.serving, explained={})
    assert alone.title == "Cannot tell"
    healthy = verdict([], [Clear(load, "serving.overload")], [], serving=report.serving, explained={})
    assert healthy.title == "No fault found in serving"
    assert healthy.summary == (
        "Of 3 loads, 2 requests/s completed most: 80 requests completed at 2.01 requests/s, TTFT P50 65.0 ms, "
        "P99 90.0 ms. See below for what could not be told, and why."
    )
