"""Records of a watch beside other inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.inputs import find_inputs
from diag.launches.live_runs import live_runs
from diag.store.case import Case
from tests.builders.live import SECONDS, watched
from tests.rules import hanging

ALONE = ImportOptions(use_cache=False)


def test_a_record_is_read_beside_dumps(tmp_path: Path) -> None:
    dumps, record = hanging.healthy().write(tmp_path / "dumps"), watched().write(tmp_path / "host.diag")
    before = record.read_bytes()
    with open_inputs([dumps, record], ALONE) as case:
        (run,) = live_runs(case)
        assert len(run.snapshots) == SECONDS + 1
        assert sum(source.kind == "flight-recorder" for source in case.sources) == 3
    assert record.read_bytes() == before


def test_in_a_folder_it_is_an_input_and_alone_it_is_a_case(tmp_path: Path) -> None:
    record = watched().write(hanging.healthy().write(tmp_path / "night") / "host.diag")
    assert sorted({item.kind for item in find_inputs([record.parent])}) == ["flight-recorder", "live"]
    assert [item.kind for item in find_inputs([record])] == ["case"]


def test_records_of_two_hosts_are_one_job(tmp_path: Path) -> None:
    records = [watched(seconds=5 + at).write(tmp_path / f"host{at}.diag") for at in range(2)]
    with open_inputs(records, ALONE) as case:
        assert [len(run.snapshots) for run in live_runs(case)] == [6, 7]


def test_an_edited_record_is_refused(tmp_path: Path) -> None:
    dumps, record = hanging.healthy().write(tmp_path / "dumps"), watched().write(tmp_path / "host.diag")
    with Case.open(record, "rw") as case, case.transaction():
        case.db.execute("UPDATE live_snapshot SET body = 'no JSON'")
    with pytest.raises(InputError, match="live_snapshot"), open_inputs([dumps, record], ALONE):
        pass
