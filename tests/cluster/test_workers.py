"""Every kind of workers gives every result once, whatever is lost meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from diag.cluster import workers
from diag.cluster.workers import DaskCluster, Processes, Task, ThisProcess, Workers, connected
from diag.errors import InputError, UsageError, WorkersLost
from tests.cluster.conftest import ROOT


@pytest.fixture(autouse=True, scope="module")
def _children_know_this_module() -> Iterator[None]:
    """They are new processes, which import it by its name. For the module, as the cluster is: what begins within a test
    and ends after it would put back the path of that test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield


@pytest.fixture(params=["this process", "processes", "dask"])
def some_workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    match request.param:
        case "this process":
            yield ThisProcess()
        case "processes":
            yield Processes(2)
        case _:
            with connected(request.getfixturevalue("scheduler")) as client:
                yield DaskCluster(client)


@dataclass(frozen=True)
class Number:
    """A shard that notes in a folder of its own how often it was read."""

    value: int
    folder: Path
    deadly: int = 0  # times that it ends its worker

    @property
    def attempts(self) -> int:
        return len(list(self.folder.glob(f"{self.value}-*")))


def squared(number: Number) -> int:
    (number.folder / f"{number.value}-{time.monotonic_ns()}").touch()
    if number.attempts <= number.deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return number.value**2


def refused(number: Number) -> int:
    raise InputError(f"{number.value} is damaged.")


def numbers(folder: Path, deadly: int = 0) -> list[Number]:
    return [Number(value, folder, deadly if value == 3 else 0) for value in range(6)]


def test_every_result_comes_once(some_workers: Workers, tmp_path: Path) -> None:
    results = list(some_workers.results(Task(squared, numbers(tmp_path), {})))
    assert sorted(results) == [(value, value**2) for value in range(6)]


def test_an_error_is_what_it_was(some_workers: Workers, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is damaged"):
        list(some_workers.results(Task(refused, numbers(tmp_path), {})))


def test_a_process_that_is_lost_loses_nothing(tmp_path: Path) -> None:
    given = numbers(tmp_path, deadly=1)
    assert sorted(Processes(2).results(Task(squared, given, {}))) == [(value, value**2) for value in range(6)]
    assert given[3].attempts == 2


def test_a_worker_that_is_lost_loses_nothing(scheduler: str, tmp_path: Path) -> None:
    given = numbers(tmp_path, deadly=1)
    with connected(scheduler) as client:
        results = sorted(DaskCluster(client).results(Task(squared, given, {})))
    assert results == [(value, value**2) for value in range(6)]
    assert given[3].attempts == 2


def test_a_shard_that_kills_every_process_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(WorkersLost, match="--jobs 1"):
        list(Processes(2).results(Task(squared, numbers(tmp_path, deadly=99), {})))


def test_a_shard_that_kills_every_worker_is_given_up(scheduler: str, tmp_path: Path) -> None:
    with connected(scheduler) as client, pytest.raises(WorkersLost, match="more memory"):
        list(DaskCluster(client).results(Task(squared, numbers(tmp_path, deadly=99), {})))


def test_nobody_answers() -> None:
    with pytest.raises(UsageError, match="dask scheduler --port"):
        connected("tcp://127.0.0.1:9", patience_s=1)


def test_an_address_that_is_none() -> None:
    with pytest.raises(UsageError, match="No Dask scheduler answers"):
        connected("nonsense://x", patience_s=1)


def test_workers_of_another_release(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "__version__", "99.0")
    with pytest.raises(UsageError, match=r"this is 99\.0"):
        connected(scheduler)


def test_a_scheduler_without_workers() -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as empty,
        pytest.raises(UsageError, match="has no workers"),
    ):
        connected(empty.scheduler_address, patience_s=1)
