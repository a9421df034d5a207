"""A job of many ranks by this process alone and by a Dask cluster of this machine: time, memory, and that both agree.

    python -m tests.bench.bench_cluster [RANKS] [KERNELS]

256 ranks of 100,000 kernels each unless said otherwise. The files differ in rank, host, process and name only.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diag.cluster.gathering import gathered
from diag.cluster.reading import Reading
from diag.cluster.shards import shards_of
from diag.cluster.workers import DaskCluster, ThisProcess, Workers, connected
from diag.ingest.importer import ImportOptions
from diag.ingest.inputs import find_inputs
from diag.render.json_report import render_json
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from tests.builders.rank_job import N_KERNELS, Call, RankJob


def write(folder: Path, n_ranks: int, n_kernels: int) -> None:
    made = RankJob(n_ranks=n_ranks, n_steps=n_kernels // (N_KERNELS + 1), calls=(Call(),), recorded=(0,))
    first = json.loads((made.write(folder) / "rank0.json").read_text("utf-8"))
    (folder / "rank0.json").unlink()
    events = json.dumps(first.pop("traceEvents"))
    for rank in range(n_ranks):
        about = json.dumps(
            first | {"distributedInfo": {"rank": rank, "world_size": n_ranks}, "host_name": f"host{rank // 8}"}
        )
        text = f'{about[:-1]}, "traceEvents": {events}}}'
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(text.encode(), 1))


def measured(what: str, folder: Path, workers: Workers) -> str:
    os.environ["DIAG_CACHE"] = str(folder.parent / what)
    began_s, options = time.perf_counter(), AnalysisOptions()
    reading = Reading.of(ImportOptions(), options)
    shards, others = shards_of(find_inputs([folder]))
    with gathered(shards, others, ImportOptions(), reading, workers, lambda _: None) as case:
        text = render_json(report_of(case, options))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {time.perf_counter() - began_s:.0f} s, this process at most {peak:.0f} MB", flush=True)
    return text


def main(arguments: Sequence[str]) -> None:
    from distributed import LocalCluster

    n_ranks, n_kernels = (*map(int, arguments), *(256, 100_000)[len(arguments) :])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "traces"
        write(folder, n_ranks, n_kernels)
        print(f"{n_ranks} ranks of {n_kernels:,} kernels, {folder_bytes(folder) >> 20:,} MiB", flush=True)
        cluster: Any = LocalCluster(
            n_workers=os.cpu_count(), threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )
        with cluster, connected(cluster.scheduler_address) as client:
            os.environ["DIAG_CACHE"] = str(folder.parent / "cluster")
            together = measured("cluster", folder, DaskCluster(client))
        alone = measured("alone", folder, ThisProcess())
        print("equal" if alone == together else "DIFFERENT")


def folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


if __name__ == "__main__":
    main(sys.argv[1:])
