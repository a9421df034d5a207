from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[object]:
    """Two workers of this machine, each of one thread, whose processes know the modules of the tests."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as local:
            yield local


@pytest.fixture
def scheduler(local_cluster: object) -> str:
    return str(local_cluster.scheduler_address)  # type: ignore[attr-defined]
