"""The published schemas: they are what the code says, every document holds to them, and each key is explained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from diag.collect.live_record import Recorder
from diag.doctor.check import Check
from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.heartbeat import Heartbeat
from diag.model.plan import Answer, Column, Figure
from diag.ranks.heartbeats import RankBeat
from diag.render import COMPARISON_RENDERERS
from diag.render.checks import render_checks_as_json
from diag.render.contract import schema
from diag.render.contract.record import fields_of
from diag.render.hang_json import render_hang_json
from diag.render.json_report import render_json
from diag.render.live_json import render_live_json
from diag.render.live_view import view_of
from diag.render.plan import render_json as render_plan
from diag.render.published import names, schema_text
from diag.rules.analysis import analyse
from tests import published
from tests.builders.benchmark import BenchmarkFile, streaming
from tests.builders.hanging import analysis, host_blocked
from tests.builders.imported import Recorded
from tests.builders.live import PID, watched
from tests.builders.nccl_tests import NcclTests, on_line
from tests.builders.ncu_report import NcuReport
from tests.builders.rank_job import RankJob
from tests.builders.recorder_dumps import Job
from tests.builders.serving_results import SAMPLES
from tests.compare.conftest import Compare, compared
from tests.compare.runs import loop
from tests.compare.test_nccl import degraded, healthy
from tests.compare.test_serving import load, one
from tests.fuzz import samples
from tests.render.live_moments import answers, run
from tests.render.test_hang import ALL_REDUCE, FINDING, STEP, thread, view

__all__ = ["compared"]  # a fixture

ROOT = Path(__file__).parents[3]
CONTRACT = (ROOT / "docs" / "json-contract.md").read_text("utf-8")


def test_what_is_shipped_is_what_the_code_says() -> None:
    shipped = {file.name: file.read_text("utf-8") for file in (ROOT / "diag" / "render" / "schemas").iterdir()}
    assert shipped == dict(schema.pages()), "run: make docs"


@pytest.mark.parametrize("name", names())
def test_each_is_a_schema_with_its_name(name: str) -> None:
    said = json.loads(schema_text(name))
    Draft202012Validator.check_schema(said)
    assert said["$id"] == name


@pytest.mark.parametrize("name", names())
def test_every_key_is_described_with_its_unit(name: str) -> None:
    for key, said in keys(json.loads(schema_text(name))):
        assert len(said["description"]) > 5, key
        if re.search(r"_ns$|bytes$|_pct$|_hz$", key) and "integer" in json.dumps(said):
            assert re.search(r"\((ns|bytes|%.*|Hz)\)$", said["description"]), (key, said)


def keys(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield from (value.get("properties") or {}).items()
        for item in value.values():
            yield from keys(item)
    if isinstance(value, list):
        for item in value:
            yield from keys(item)


def test_no_description_is_of_a_key_that_is_gone() -> None:
    words = schema._descriptions()
    described: dict[str, set[str]] = {}
    for document in schema.DOCUMENTS:
        for record, said in schema.schema_of(document)["$defs"].items():
            described.setdefault(record, set()).update(said.get("properties", ()))
    every = set().union(*described.values())
    assert sorted(words["any"].keys() - every) == []
    for record, own in words.items():
        if record not in ("any", "left_out"):
            assert own.keys() <= described.get(record, set()), record


@pytest.mark.parametrize("name", names())
def test_every_kind_is_in_the_contract(name: str) -> None:
    assert f"`{name}`" in CONTRACT.replace('"', "")


def test_what_is_not_in_a_schema_is_found() -> None:
    document = json.loads(render_checks_as_json([Check("Here", "diag", "ok", "0.1")]))
    published.check(document)
    changes: list[dict[str, Any]] = [{"more": 1}, {"checks": [{}]}, {"diag_version": None}]
    for wrong in changes:
        with pytest.raises(AssertionError):
            published.check(document | wrong)


def test_keys_may_be_added_to_a_document() -> None:
    document = json.loads(render_checks_as_json([Check("Here", "diag", "ok", "0.1")]))
    Draft202012Validator(json.loads(schema_text("diag.doctor/1"))).validate(document | {"more": 1})


def test_wrong_names_are_refused() -> None:
    with pytest.raises(KeyError):
        fields_of(Check, "nothing")
    with pytest.raises(KeyError):
        schema_text("diag.nothing/1")


INPUTS: Mapping[str, Callable[[Path], object]] = {
    "timeline": lambda to: samples.nsys_export().write(to / "run.sqlite"),
    "pytorch": lambda to: (to / "run.json").write_text(json.dumps(samples.kineto_document())),
    "profile": lambda to: NcuReport.of({"dram__bytes.sum": 1e9}).write(to / "kernels.ncu-rep"),
    "recorders": lambda to: Job(absent=(3,)).write(to / "dumps"),
    "ranks": lambda to: RankJob(n_ranks=2).write(to / "traces"),
    "benchmark": lambda to: BenchmarkFile([streaming(0.5)]).write(to / "bench.json"),
    "collectives": lambda to: NcclTests(on_line(100e9, 20_000)).write(to / "all_reduce.txt"),
    "log": lambda to: degraded().write(to / "job.log"),
    "load": lambda to: one(load(n=200)).write(to / "load.jsonl"),
    **{name: partial(lambda name, to: SAMPLES[name].write(to / "result"), name) for name in SAMPLES},
}
"""By name, what writes files into a folder: one kind of evidence each."""


@pytest.mark.parametrize("kind", INPUTS)
def test_a_report(kind: str, tmp_path: Path) -> None:
    INPUTS[kind](tmp_path)
    with open_inputs([tmp_path], ImportOptions(use_cache=False)) as case:
        written = render_json(analyse(case))
    assert published.check_output(written) == 1


def test_a_report_on_what_was_watched(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.diag", pid=PID, period_ns=10**9) as recorder:
        for snapshot in watched().snapshots:
            recorder.add(snapshot)
    with open_inputs([tmp_path / "run.diag"], ImportOptions(use_cache=False)) as case:
        written = render_json(analyse(case))
    assert json.loads(written)["live_devices"]
    assert published.check_output(written) == 1


def test_a_hang(tmp_path: Path) -> None:
    beat = RankBeat(1, 5, 8, 0, 0, "a", 9, 1, 1, None, None, 17, "forward", "KeyError: 'x'")
    threads = [thread(rank, [ALL_REDUCE, STEP], holds_gil=rank == 0) for rank in (0, 2)]
    shown = view(tmp_path, findings=[FINDING], hang=analysis(faults=[host_blocked()]), threads=threads, beats=[beat])
    assert published.check_output(render_hang_json(shown)) == 1


def test_a_watch() -> None:
    assert published.check_output(render_live_json(view_of(run(), answers()))) == 1
    assert published.check_output(render_live_json(view_of(run(), answers()), is_one_line=True)) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [(loop(), loop(gemm_us=120)), (one(load()), one(load(factor=0.8))), (healthy(), degraded())],
    ids=["timelines", "loads", "logs"],
)
def test_a_comparison(before: Recorded, after: Recorded, compared: Compare) -> None:
    assert published.check_output(COMPARISON_RENDERERS["json"](compared([before], [after]))) == 1


def test_a_plan() -> None:
    table = [Column("tokens", "tokens", [1, 2]), Column("name", "text", ["a", "b"])]
    answer = Answer("title", [Figure("time", 1.5, "ns", "a / b", 0.1)], ["assumed"], table, "yes", ["what"])
    assert published.check_output(render_plan([answer, Answer("title", [])])) == 1


def test_files_that_one_verb_writes_for_another(tmp_path: Path) -> None:
    published.check(json.loads(BenchmarkFile([streaming(0.5)]).write(tmp_path / "bench.json").read_bytes()))
    beat = Heartbeat("diag.heartbeat/1", 0, 1, 2, step=3)
    published.check(json.loads(msgspec.json.encode(beat)))
    header, *records = one(load(n=3)).write(tmp_path / "load.jsonl").read_text("utf-8").splitlines()
    name = json.loads(header)["schema"]
    for line in (header, *records):
        published.check(json.loads(line), name)
