"""Measured collectives: every version of the output, logs in between, JSON, PyTorch's benchmarks, damage."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.collective import Primitive, bus_bytes_per_s
from tests.builders.job_log import Rank
from tests.builders.nccl_tests import GPU, SIZES, NcclTests, on_line, written

RUN = NcclTests(on_line(400e9, 20_000))
ROWS = "SELECT * FROM comm_measurement ORDER BY is_in_place, size_bytes"


def rows_of(path: Path) -> list[dict[str, Any]]:
    assert detect(path) == "nccl-tests"
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        return [dict(row) for row in case.rows(ROWS)]


def notes_of(path: Path) -> list[str]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        return case.notes(1)


def written_to(folder: Path, text: str, name: str = "out.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "run",
    [
        RUN,
        replace(RUN, is_old=True),
        replace(RUN, names_program=False),
        replace(RUN, log_host="node-7.cluster"),
        replace(RUN, log_host="0fed198eb8ba"),
        replace(RUN, prefix="[1,0]<stdout>:"),
        replace(RUN, prefix="0: "),
    ],
    ids=["new", "old", "unnamed", "log", "log of a container", "mpirun", "srun"],
)
def test_every_way_of_printing_gives_the_same_rows(tmp_path: Path, run: NcclTests) -> None:
    rows = rows_of(run.write(tmp_path / "out.txt"))
    assert [row["size_bytes"] for row in rows] == [*SIZES, *SIZES]
    assert {(row["op"], row["n_ranks"], row["n_hosts"], row["device_name"]) for row in rows} == {
        ("all_reduce", 8, 1, GPU)
    }
    assert {(row["dtype"], row["reduction"], row["repeats"]) for row in rows} == {("float", "sum", 20)}
    assert {row["n_wrong"] for row in rows} == {None if run.is_old else 0}
    for row in rows:
        share = 0.99 if row["is_in_place"] else 1.0
        assert row["time_ns"] == pytest.approx(run.times(row["size_bytes"]) * share, abs=5.1)


@pytest.mark.parametrize(
    "op", [Primitive.ALL_REDUCE, Primitive.REDUCE_SCATTER, Primitive.BROADCAST, Primitive.REDUCE, Primitive.SEND_RECV]
)
def test_columns_tell_most_collectives_apart(tmp_path: Path, op: Primitive) -> None:
    run = NcclTests(on_line(400e9, 20_000, op), op=op, names_program=False)
    assert {row["op"] for row in rows_of(run.write(tmp_path / "out.txt"))} == {op.value}


def test_what_columns_cannot_tell_the_name_of_the_file_does(tmp_path: Path) -> None:
    run = NcclTests(on_line(400e9, 20_000), op=Primitive.ALL_GATHER, names_program=False)
    with pytest.raises(InputError, match=r"does not say of which collective.*all_gather_perf\.txt"):
        rows_of(run.write(tmp_path / "out.txt"))
    assert {row["op"] for row in rows_of(run.write(tmp_path / "all_gather_perf.txt"))} == {"all_gather"}


def test_several_runs_in_one_file_keep_their_ranks_and_programs(tmp_path: Path) -> None:
    other = NcclTests(on_line(90e9, 30_000), op=Primitive.ALL_GATHER, n_ranks=16, n_hosts=2, sizes=SIZES[:3])
    shell = replace(other, op=Primitive.ALL_TO_ALL, names_program=False).text
    path = written_to(tmp_path, RUN.text + other.text + "$ ./build/alltoall_perf -b 1024\n" + shell)
    found = {(row["op"], row["n_ranks"], row["n_hosts"]) for row in rows_of(path)}
    assert found == {("all_reduce", 8, 1), ("all_gather", 16, 2), ("all_to_all", 16, 2)}


def test_json_tells_the_same(tmp_path: Path) -> None:
    text = written(RUN)
    assert "SECRET" in text
    path = written_to(tmp_path, text, "out.json")
    rows = rows_of(path)
    printed = rows_of(RUN.write(tmp_path / "out.txt"))
    for one, other in zip(rows, printed, strict=True):
        assert one["time_ns"] == pytest.approx(other["time_ns"], abs=5.1)
        assert {**one, "time_ns": 0} == {**other, "time_ns": 0}
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        assert not any("SECRET" in line for line in case.db.iterdump())


def test_damaged_json_ends_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no whole result"):
        rows_of(written_to(tmp_path, written(RUN)[:-40], "out.json"))


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("# nThread 1 nGpus 8 minBytes 8 maxBytes 8 iters: 20\n", "Did the test end"),
        (RUN.text.replace("#  Rank", "#  Rang"), "does not list its ranks"),
        (RUN.text.replace("all_reduce", "hypercube"), "hypercube_perf is no collective"),
        (RUN.text.replace("    time", " cputime"), "time of the CPU alone"),
    ],
)
def test_what_holds_no_measurement_says_why(tmp_path: Path, text: str, because: str) -> None:
    with pytest.raises(InputError, match=because):
        rows_of(written_to(tmp_path, text))


def test_impossible_figures_are_no_rows(tmp_path: Path) -> None:
    head = RUN.text.partition("#\n#  ")[0]
    bad = ("nan", "inf", "-1", "0", "1e300")
    lines = [f"{1 << 20} 262144 float sum -1 {time} 1 1 0 5.0 1 1 0" for time in bad]
    lines += [f"{'9' * 30} 1 float sum -1 5.0 1 1 0 5.0 1 1 0", f"{'9' * 5000} 1 float sum -1 5 1 1 0 5 1 1 0"]
    table = RUN.text[len(head) :].partition("        1024")[0]
    rows = rows_of(written_to(tmp_path, head + table + "\n".join(lines)))
    assert [(row["is_in_place"], row["time_ns"]) for row in rows] == [(1, 5000.0)] * len(bad)


def test_a_long_line_takes_no_long_time(tmp_path: Path) -> None:
    line = "x" * 200_000 + ":1:1 [0] NCCL \n"
    path = written_to(tmp_path, RUN.text + line * 50)
    assert len(rows_of(path)) == 2 * len(SIZES)


# ---- PyTorch -------------------------------------------------------------------------------------------------------

TRIAL = """\
ignore me 1
{rank}:
 duration: 0.0480 sec
 algo throughput: 1330000000000.0000 bps, 1330.0000 Gbps
 busbw: {gbps:.4f}  Gbps
"""
TRIALS = "".join(f"{rank} data size: 4.0 GB\n" for rank in range(4)) + "".join(
    TRIAL.format(rank=rank, gbps=gbps) for gbps in (100.0, 1000.0, 990.0, 1010.0) for rank in range(4)
)


def test_trials_of_ranks_become_one_row_without_the_first(tmp_path: Path) -> None:
    path = written_to(tmp_path, TRIALS)
    (row,) = rows_of(path)
    assert (row["op"], row["n_ranks"], row["size_bytes"], row["repeats"]) == ("all_reduce", 4, 4_000_000_000, 3)
    assert bus_bytes_per_s(Primitive.ALL_REDUCE, 4e9, 4, row["time_ns"]) == pytest.approx(125e9)
    assert "the first was left out" in notes_of(path)[0]


def test_a_table_of_payloads(tmp_path: Path) -> None:
    table = (
        "The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):\n\n"
        "| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n"
        "|   32KiB |   1.44GBps |   0.82GBps |\n|    1GiB | 437.50GBps | 250.00GBps |\n"
    )
    rows = rows_of(written_to(tmp_path, table))
    assert [(row["size_bytes"], row["n_ranks"], row["repeats"]) for row in rows] == [(1 << 15, 8, 20), (1 << 30, 8, 20)]
    assert rows[1]["time_ns"] == pytest.approx((1 << 30) / 250)


# ---- the log of NCCL in it -----------------------------------------------------------------------------------------


def log_of(path: Path) -> list[str]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        return [row["kind"] for row in case.rows("SELECT DISTINCT kind FROM log_event ORDER BY kind")]


def test_the_log_of_nccl_in_the_output_is_read_with_its_rows(tmp_path: Path) -> None:
    log = "\n".join(line for rank in (0, 1) for line in Rank(rank).lines())
    run = NcclTests(on_line(200e9, 10e3), n_ranks=2).text
    path = tmp_path / "run.log"
    path.write_text(f"{run.splitlines()[0]}\n{log}\n{run}")
    assert len(rows_of(path)) == 2 * len(SIZES)
    assert {"nccl.path", "nccl.channels", "nccl.transport"} <= set(log_of(path))
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        assert case.sources[0].captured("log_event")


def test_a_test_that_ended_before_its_first_size_still_has_its_log(tmp_path: Path) -> None:
    log = "\n".join(line for rank in (0, 1) for line in Rank(rank).lines())
    path = written_to(tmp_path, f"# nThread 1 nGpus 1 minBytes 8 maxBytes 128\n{log}\n")
    assert "nccl.channels" in log_of(path)
    assert "before its first size" in notes_of(path)[0]


def test_without_a_log_nothing_is_known_of_nccl(tmp_path: Path) -> None:
    path = NcclTests(on_line(200e9, 10e3), n_ranks=2).write(tmp_path / "run.log")
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        assert not case.sources[0].has("log_event")
        assert "log_event" not in case.sources[0].capabilities or case.sources[0].capabilities["log_event"] is None


def test_a_program_that_speaks_of_its_marks_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "printed.py"
    path.write_text('STARTING = "# Collective test starting:"\nHEADER = ["# nThread 1"]\n')
    with pytest.raises(InputError, match="of a kind that diag does not know"):
        detect(path)


# ---- real files ----------------------------------------------------------------------------------------------------

REAL = os.environ.get("DIAG_REAL_REPORTS")
with_real_reports = pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder")


@with_real_reports
@pytest.mark.parametrize(("name", "largest_per_s"), [("healthy", 216.61e9), ("degraded", 28.60e9)])
def test_real_output_with_a_log_in_its_rows(name: str, largest_per_s: float) -> None:
    rows = rows_of(Path(REAL or "") / "nccl" / f"a100x2-{name}.log")
    assert [row["size_bytes"] for row in rows] == [1 << power for power in range(23, 34)] * 2
    assert {row["device_name"] for row in rows} == {"NVIDIA A100 80GB PCIe"}
    last = rows[-1]
    assert bus_bytes_per_s(Primitive.ALL_REDUCE, last["size_bytes"], 2, last["time_ns"]) == pytest.approx(
        largest_per_s, rel=5e-4
    )


@with_real_reports
@pytest.mark.parametrize("name", ["healthy", "degraded"])
def test_real_output_gives_its_log_too(name: str) -> None:
    assert {"nccl.channels", "nccl.path", "nccl.transport"} <= set(
        log_of(Path(REAL or "") / "nccl" / f"a100x2-{name}.log")
    )


@with_real_reports
def test_real_trials_of_pytorch() -> None:
    """1002 Gbit/s on the bus: 125 GB/s."""
    (row,) = rows_of(Path(REAL or "") / "nccl" / "v100-all-reduce-n1.txt")
    assert bus_bytes_per_s(Primitive.ALL_REDUCE, 4e9, 4, row["time_ns"]) == pytest.approx(125.3e9, rel=1e-3)
