"""Files that lie on some hosts only are read there. Two loopback addresses stand for two hosts: the folder
`/proc/self/cwd` of one worker is not that of the other, nor of this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diag.cli.many import Sharing, opened_by
from diag.cli.terminal import StatusLine
from diag.cluster.shards import Shard
from diag.cluster.visible import Stamp, shards_seen, spread
from diag.cluster.workers import DaskCluster, Task, connected
from diag.errors import InputError
from diag.ingest.importer import ImportOptions
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from tests.builders.rank_job import RankJob
from tests.cluster.conftest import ROOT

HERE = Path("/proc/self/cwd")
HOSTS = ("127.0.0.1", "127.0.0.2")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `HERE` is for each host, and for this process: ranks 0 and 1 on one, 2 and 3 on the other."""
    folder = tmp_path_factory.mktemp("hosts")
    made = RankJob(n_ranks=4, n_steps=12, load_ns=lambda rank, step: 3_000_000 * (rank == 2))
    for at, host in enumerate(HOSTS):
        (folder / host / "traces").mkdir(parents=True)
        for rank in (2 * at, 2 * at + 1):
            made.write_rank(rank, folder / host / "traces" / f"rank{rank}.json")
    made.write_rank(0, folder / "shared.json")
    (folder / "client").mkdir()
    return folder


@pytest.fixture(scope="module")
def two_hosts(folders: Path) -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        patch.setenv("DIAG_CACHE", str(folders / "cache"))
        scheduler = {"cls": distributed.Scheduler, "options": {"host": HOSTS[0], "port": 0, "dashboard": False}}
        workers = {
            host: {"cls": distributed.Nanny, "options": {"host": host, "nthreads": 1, "dashboard": False}}
            for host in HOSTS
        }
        with distributed.SpecCluster(workers=workers, scheduler=scheduler) as cluster:
            with connected(cluster.scheduler_address) as client:
                for address, about in client.scheduler_info(n_workers=-1)["workers"].items():
                    client.run(os.chdir, str(folders / about["host"]), workers=[address])
            yield str(cluster.scheduler_address)


@pytest.fixture(autouse=True)
def _client_sees_none(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders / "client")


def where(_: Shard) -> str:
    from distributed import get_worker

    return str(get_worker().worker_address).rpartition(":")[0].removeprefix("tcp://")


def test_a_trace_is_read_where_it_lies(two_hosts: str) -> None:
    with connected(two_hosts) as client:
        shards, others = shards_seen(client, [HERE / "traces"], lambda _: None)
        hosts = {at: shard.hosts for at, shard in enumerate(shards) if shard.hosts is not None}
        ran_on = dict(DaskCluster(client).results(Task(where, shards, hosts)))
    assert others == []
    assert {shard.paths[0].name: ran_on[at] for at, shard in enumerate(shards)} == {
        f"rank{rank}.json": HOSTS[rank // 2] for rank in range(4)
    }


def test_what_all_see_is_read_by_any(two_hosts: str, folders: Path) -> None:
    with connected(two_hosts) as client:
        shards, _ = shards_seen(client, [folders / "shared.json"], lambda _: None)
    assert shards == [Shard([folders / "shared.json"], None)]


def test_a_report_of_traces_that_this_machine_has_not(two_hosts: str) -> None:
    imports, options = ImportOptions(use_cache=False), AnalysisOptions()
    sharing = Sharing(jobs=None, scheduler=two_hosts)
    with opened_by([HERE / "traces"], imports, options, sharing, StatusLine()) as case:
        assert [row.rank for row in report_of(case, options).timeline_ranks] == [0, 1, 2, 3]


def test_what_nobody_has_is_told(two_hosts: str) -> None:
    with connected(two_hosts) as client, pytest.raises(InputError, match="nor a worker of the cluster"):
        shards_seen(client, [HERE / "nothing"], lambda _: None)


def test_a_file_of_another_kind_is_told_by_the_worker_that_has_it(two_hosts: str, folders: Path) -> None:
    (folders / HOSTS[1] / "odd.json").write_bytes(b"PK\x03\x04")
    with connected(two_hosts) as client, pytest.raises(InputError, match="zip archive"):
        shards_seen(client, [HERE / "odd.json"], lambda _: None)


def stamp(path: str, kind: str = "kineto", **changed: Any) -> Stamp:
    return Stamp(path, kind, True, 10, 1)._replace(**changed)


def test_one_path_with_other_contents_is_another_file() -> None:
    hosts = {"a": {"/t": [stamp("/t/x.json")]}, "b": {"/t": [stamp("/t/x.json", mtime_ns=2)]}}
    shards, _ = spread({"/t": []}, hosts, lambda _: None)
    assert [shard.hosts for shard in shards] == [("a",), ("b",)]


def test_a_trace_that_no_worker_sees_is_told() -> None:
    with pytest.raises(InputError, match=r"No worker sees /t/x\.json"):
        spread({"/t": [stamp("/t/x.json")]}, {"a": {"/t": []}}, lambda _: None)


def test_evidence_that_only_workers_see_is_left_out_aloud() -> None:
    notes: list[str] = []
    found = [stamp("/t/x.json"), stamp("/t/dump_1", "flight-recorder")]
    _, others = spread({"/t": []}, {"a": {"/t": found}}, notes.append)
    assert others == []
    assert "/t/dump_1 on a" in notes[0]
