"""Who reads the shards: this process, several of this machine, or the workers of a Dask cluster.

All give the same results in whatever order they come. A result is handed over as soon as it is there and kept nowhere
else, so that a worker that is lost afterwards takes nothing with it; what it was at is done again by another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from diag import __version__
from diag.errors import UsageError, WorkersLost

if TYPE_CHECKING:
    from distributed import Client

Shard = TypeVar("Shard")
Result = TypeVar("Result")

MOST_LOSSES = 3
"""Times that a shard may take its worker with it: after that it is the shard."""


@dataclass(frozen=True)
class Task(Generic[Shard, Result]):
    """What is done to each shard; both travel to the worker, and so does the result back."""

    work: Callable[[Shard], Result]
    shards: Sequence[Shard]
    hosts: Mapping[int, Sequence[str]]  # of shards that not every worker can see: the hosts of those that do


def cores() -> int:
    """That this process may run on."""
    return len(os.sched_getaffinity(0))


class Workers(Protocol):
    def results(self, task: Task[Shard, Result]) -> Iterator[tuple[int, Result]]:
        """The place of a shard and its result, each as soon as it is there. Raises what `work` raised."""
        ...


class ThisProcess:
    def results(self, task: Task[Shard, Result]) -> Iterator[tuple[int, Result]]:
        return ((at, task.work(shard)) for at, shard in enumerate(task.shards))


@dataclass(frozen=True)
class Processes:
    """Of this machine, so many at a time."""

    n: int

    def results(self, task: Task[Shard, Result]) -> Iterator[tuple[int, Result]]:
        left = dict.fromkeys(range(len(task.shards)), 0)
        while left:
            try:
                for at, result in self._pool_results(task, list(left)):
                    del left[at]
                    yield at, result
            except BrokenProcessPool as error:
                # A pool cannot tell which of its processes died of what: all that ran count one loss.
                left = {at: losses + 1 for at, losses in left.items()}
                if min(left.values()) > MOST_LOSSES:
                    raise WorkersLost(LOST.format(n=MOST_LOSSES + 1)) from error

    def _pool_results(self, task: Task[Shard, Result], places: Sequence[int]) -> Iterator[tuple[int, Result]]:
        # Forked children would share this process's connections to databases.
        with ProcessPoolExecutor(self.n, get_context("spawn")) as pool:
            waiting: dict[Future[Result], int] = {pool.submit(task.work, task.shards[at]): at for at in places}
            try:
                while waiting:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield waiting.pop(future), future.result()
            finally:
                pool.shutdown(cancel_futures=True)


LOST = (
    "Processes that read inputs were killed {n} times over, as the system does when memory is short. "
    "Use fewer at a time: --jobs 1"
)


@dataclass(frozen=True)
class DaskCluster:
    """The workers of a scheduler of dask.distributed, at an address like 'tcp://10.0.0.1:8786'."""

    client: Client

    def results(self, task: Task[Shard, Result]) -> Iterator[tuple[int, Result]]:
        from distributed import KilledWorker, as_completed
        from distributed.scheduler import NoValidWorkerError, NoWorkerError

        futures = {}
        for at, shard in enumerate(task.shards):
            where: dict[str, Any] = {"workers": task.hosts[at]} if at in task.hosts else {}
            # Not pure: the same file may have changed since an earlier report.
            futures[self.client.submit(task.work, shard, pure=False, **where)] = at
        try:
            for future in as_completed(futures, loop=self.client.loop):
                try:
                    result = future.result()
                except KilledWorker as error:
                    raise WorkersLost(LOST_WORKERS.format(error=str(error).split(".")[0])) from error
                except (NoValidWorkerError, NoWorkerError) as error:  # where the scheduler does not wait for ever
                    raise WorkersLost(NO_WORKERS) from error
                yield futures.pop(future), result
                future.release()
        finally:
            self.client.cancel(list(futures))


NO_WORKERS = "For too long no worker was there that sees an input. Start one next to the data, and ask again."
LOST_WORKERS = "Every worker that read one of the inputs was lost ({error}). Give workers more memory."


def connected(address: str, patience_s: float = 30.0) -> Client:
    """A client of the scheduler at an address, whose workers run the same diag.

    Raises UsageError where dask is not installed, nobody answers, no worker is there, or one has another release.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError('--scheduler needs dask.distributed: pip install "gpu-diag[cluster]"') from error
    try:
        client = Client(address, timeout=patience_s, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        sentence = f"No Dask scheduler answers at {address}. Start one with: dask scheduler --port 8786"
        raise UsageError(sentence) from error
    try:
        _check_releases(client, address, patience_s)
    except BaseException:
        with closing(client):
            raise
    return client


def _check_releases(client: Client, address: str, patience_s: float) -> None:
    from distributed import TimeoutError as DaskTimeout

    try:
        client.wait_for_workers(1, timeout=patience_s)
    except (DaskTimeout, TimeoutError) as error:
        raise UsageError(
            f"The scheduler at {address} has no workers. Start one next to the data with: dask worker {address}"
        ) from error
    for worker, release in client.run(release_here, on_error="return").items():
        if release != __version__:
            found = f"has diag {release}" if isinstance(release, str) else "has no diag"
            raise UsageError(f"The worker {worker} {found}, this is {__version__}. Install the same on all of them.")


def release_here() -> str:
    return __version__
