"""Heartbeat files: rows of the case, what they prove, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.heartbeats import Condition
from diag.ranks.job import Job

S = 1_000_000_000
WHOLE: dict[str, Any] = {
    "schema": "diag.heartbeat/1", "rank": 3, "world_size": 8, "local_rank": 1, "device": None, "host": "node1",
    "pid": 4711, "time_ns": 100 * S, "written_ns": 101 * S, "beat_ns": 40 * S, "state": "S", "step": 7,
    "phase": "forward", "ended": None,
}  # fmt: skip


def written(path: Path, **changed: object) -> Path:
    path.write_text(json.dumps(WHOLE | changed))
    return path


def test_a_file_becomes_a_row(tmp_path: Path) -> None:
    file = written(tmp_path / "a")
    assert detect(file) == "heartbeat"
    with open_inputs([file], ImportOptions(use_cache=False)) as case:
        (source,) = case.sources
        assert (source.rank, source.world_size, source.host, source.rank_origin) == (3, 8, "node1", "content")
        (beat,) = Job(case).heartbeats
        assert (beat.rank, beat.step, beat.phase, beat.silent_ns) == (3, 7, "forward", 61 * S)


@pytest.mark.parametrize(
    ("changed", "condition"),
    [
        ({}, "runs Python"),
        ({"written_ns": 200 * S}, "no Python"),
        ({"written_ns": 200 * S, "state": "T"}, "stopped"),
        ({"state": "t"}, "runs Python"),
        ({"written_ns": 200 * S, "ended": "KeyError: 'x'"}, "ended"),
        ({"written_ns": 200 * S, "ended": "finished"}, "finished"),
    ],
)
def test_what_a_heartbeat_proves(tmp_path: Path, changed: dict[str, object], condition: Condition) -> None:
    with open_inputs([written(tmp_path / "a", **changed)], ImportOptions(use_cache=False)) as case:
        assert [beat.condition for beat in Job(case).heartbeats] == [condition]


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": "diag.heartbeat/2"},
        {"rank": 2**63},
        {"rank": -1},
        {"time_ns": None},
        {"time_ns": 2**70},
        {"phase": "x" * 501},
        {"phase": ["x"]},
    ],
)
def test_what_no_rank_wrote_is_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    file = written(tmp_path / "a", **changed)
    with pytest.raises(InputError, match="no heartbeat of diag"), open_inputs([file], ImportOptions(use_cache=False)):
        pass
