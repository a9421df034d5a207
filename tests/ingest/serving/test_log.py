"""Our own serving log: what is written comes back, and what cannot be is left out and told."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.serving_log import EngineConditions, LoadConditions, StepRecord
from diag.model.serving_metrics import latency
from diag.serving.run import serving_runs
from tests.builders.imported import imported
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request

STEP = StepRecord(number=0, start_ns=0, end_ns=10 * MS, decode_tokens=8, n_decodes=8, preempted=["r1"], used_blocks=3)
RUN = LoggedRun(
    requests=[request(1, SECOND), request(0, 0, ttft_ns=70 * MS), request(2, 2 * SECOND, n=0, outcome="rejected")],
    steps=[STEP],
    load=LoadConditions(arrival="poisson", rate_per_s=2.5),
    engine=EngineConditions(batching="continuous", block_tokens=16),
    model="tiny",
)


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    with imported(ServingLog([RUN, LoggedRun(label="second")]), tmp_path) as case:
        run, second = serving_runs(case)
        assert (run.name, run.model, run.load, run.engine) == ("2.5 requests/s", "tiny", RUN.load, RUN.engine)
        assert [each.name for each in run.requests] == ["r0", "r1", "r2"]  # in the order of sending
        assert [each.outcome for each in run.requests] == ["completed", "completed", "rejected"]
        assert run.requests[0].ttft_ns == 70 * MS
        assert run.requests[0].itl_ns.tolist() == [20 * MS] * 9
        assert run.requests[0].tpot_ns == 20 * MS
        (step,) = run.steps
        assert (step.decode_tokens, step.n_preempted, step.used_blocks, step.free_blocks) == (8, 1, 3, None)
        assert run.duration_ns == SECOND + SECOND + 50 * MS
        assert (itl := latency(run.requests, "itl")) is not None
        assert (itl.count, itl.p99) == (18, 20 * MS)
        assert second.requests == []
        (source,) = case.sources
        assert source.captured("engine_step")
        assert not source.has_timeline


def test_a_killed_run_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = ServingLog([RUN]).write(tmp_path / "whole.jsonl")
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole.read_bytes()[:-20])
    with open_inputs([cut], ImportOptions(use_cache=False)) as case:
        (run,) = serving_runs(case)
        assert (len(run.requests), len(run.steps)) == (3, 0)
        (source,) = case.sources
        assert source.is_cut
        assert "cut" in case.notes(source.id)[0]


@pytest.mark.parametrize(
    "wrong",
    [
        request(3, SECOND, ended_ns=SECOND),  # its tokens came after its end
        request(3, SECOND, prompt_tokens=-1),
        request(3, 1 << 62),
        request(3, SECOND, token_counts=[1]),
        msgspec.structs.replace(STEP, end_ns=-1),
        msgspec.structs.replace(STEP, model_ns=11 * MS),
        msgspec.structs.replace(STEP, used_blocks=1 << 50),
    ],
)
def test_what_cannot_be_is_left_out(tmp_path: Path, wrong: msgspec.Struct) -> None:
    path = ServingLog([RUN]).write(tmp_path / "log.jsonl")
    path.write_bytes(path.read_bytes() + msgspec.json.encode(wrong) + b"\nnonsense\n")
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (run,) = serving_runs(case)
        assert (len(run.requests), len(run.steps)) == (3, 1)
        notes = case.notes(case.sources[0].id)
        assert [note.rpartition(" ")[2] for note in notes] == ["1.", "1."]


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"record": "run", "schema": "diag.serving-log/9", "diag_version": "9"}\n')
    with pytest.raises(InputError, match="Update diag"), open_inputs([path], ImportOptions(use_cache=False)):
        pass


def test_a_log_without_a_header_is_refused(tmp_path: Path) -> None:
    path = ServingLog([RUN]).write(tmp_path / "log.jsonl")
    body = path.read_bytes().split(b"\n", 1)[1]
    path.write_bytes(b'{"note": "diag.serving-log/1"}\n' + body)
    with pytest.raises(InputError, match="header"), open_inputs([path], ImportOptions(use_cache=False)):
        pass


def test_the_log_stays_as_it_was(tmp_path: Path) -> None:
    path = ServingLog([RUN]).write(tmp_path / "log.jsonl")
    copy = shutil.copy(path, tmp_path / "copy")
    with open_inputs([path], ImportOptions(use_cache=False)):
        pass
    assert path.read_bytes() == Path(copy).read_bytes()


@pytest.mark.parametrize(
    "header",
    [
        LoggedRun(engine=EngineConditions(n_blocks=10**40)),
        LoggedRun(load=LoadConditions(seed=-(10**40))),
    ],
)
def test_settings_that_no_integer_of_a_run_can_be(tmp_path: Path, header: LoggedRun) -> None:
    with pytest.raises(InputError, match="cannot be"), imported(ServingLog([header]), tmp_path):
        pass


@pytest.mark.parametrize(
    "wrong",
    [{"started_unix_ns": 10**30}, {"load": {"n_requests": 10**30}}, {"load": {"concurrency": 10**19}},
     {"load": {"concurrency": -1}}],
)  # fmt: skip
def test_a_header_that_states_what_cannot_be_is_refused(wrong: dict[str, object], tmp_path: Path) -> None:
    header = {"record": "run", "schema": "diag.serving-log/1", "diag_version": "0", **wrong}
    log = tmp_path / "log.jsonl"
    log.write_bytes(msgspec.json.encode(header) + b"\n")
    with pytest.raises(InputError, match="cannot be"), open_inputs([log], ImportOptions(use_cache=False)):
        pass


def test_a_priority_that_cannot_be_is_left_out(tmp_path: Path) -> None:
    run = LoggedRun([request(0, 0, priority=10**30), request(1, SECOND, priority=-3)])
    with imported(ServingLog([run]), tmp_path) as case:
        (kept,) = serving_runs(case)[0].requests
        assert kept.priority == -3
        assert "1" in case.notes(case.sources[0].id)[0]


def test_a_log_is_not_read_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ServingLog([RUN, RUN]).write(tmp_path / "log.jsonl")
    monkeypatch.setattr("diag.ingest.serving.documents.MOST_RUNS", 1)
    with pytest.raises(InputError, match="more than 1 run"), open_inputs([log], ImportOptions(use_cache=False)):
        pass
    monkeypatch.setattr("diag.ingest.serving.log.MOST_BYTES", 100)
    with pytest.raises(InputError, match="Split it by runs"), open_inputs([log], ImportOptions(use_cache=False)):
        pass


def test_runs_of_a_file_are_told_apart_by_their_names(tmp_path: Path) -> None:
    with imported(ServingLog([RUN, LoggedRun(label="second"), RUN]), tmp_path) as case:
        assert [run.name for run in serving_runs(case)] == ["2.5 requests/s", "second", "2.5 requests/s (2)"]
