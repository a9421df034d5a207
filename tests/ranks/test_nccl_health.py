"""What logs of NCCL say, summed up."""

from __future__ import annotations

from pathlib import Path

from diag.ranks.job import Job
from diag.ranks.nccl_connections import Connection
from diag.ranks.nccl_health import Communicator, NcclHealth
from tests.builders.imported import imported
from tests.builders.job_log import JobLog, Rank, nccl_log


def health(log: JobLog, folder: Path) -> NcclHealth:
    with imported(log, folder) as case:
        return Job(case).nccl


def over_ib(_: int, __: int) -> str:
    return "NET/IB/0/GDRDMA"


def test_a_communicator_across_two_hosts(tmp_path: Path) -> None:
    ranks = [Rank(rank, host=f"n{rank}", local=0, n_hosts=2, via=over_ib) for rank in range(2)]
    found = health(nccl_log(*ranks), tmp_path)
    assert found.communicators == [Communicator("0xabc1", 2, ("n0", "n1"), 2, {"n0": 16, "n1": 16})]
    assert found.communicators[0].crosses_hosts
    assert found.connections == [
        Connection("0xabc1", 0, 1, "n0", "n1", "NET/IB/GDRDMA", 2),
        Connection("0xabc1", 1, 0, "n1", "n0", "NET/IB/GDRDMA", 2),
    ]
    assert [each.is_within_host for each in found.connections] == [False, False]
    assert found.hosts == ("n0", "n1")
    assert found.versions == {"2.27.7": ("n0", "n1")}


def test_a_connection_that_both_ends_print_counts_once(tmp_path: Path) -> None:
    sent = "n0:1000:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"
    received = "n1:1001:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/2"
    (one,) = health(JobLog().add(sent, received), tmp_path).connections
    assert (one.host, one.peer_host, one.channels, one.network) == ("n0", None, 1, "IB")


def test_shared_memory_is_within_a_host_even_if_no_line_says_which(tmp_path: Path) -> None:
    line = "n0:1000:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct"
    (one,) = health(JobLog().add(line), tmp_path).connections
    assert one.is_within_host is True


def test_variables_by_value_and_host(tmp_path: Path) -> None:
    ranks = [Rank(r, host=f"n{r}", local=0, variables={"NCCL_IB_HCA": f"mlx5_{r % 2}"}) for r in range(3)]
    found = health(nccl_log(*ranks), tmp_path)
    assert found.values("NCCL_IB_HCA") == {"mlx5_0": ("n0", "n2"), "mlx5_1": ("n1",)}
    assert found.is_set("NCCL_IB_HCA")
    assert not found.is_set("NCCL_P2P_DISABLE")


def test_a_log_without_nccl_tells_nothing(tmp_path: Path) -> None:
    assert not health(JobLog().add("NCCL version 2.7.8+cuda10.2", "srun: error: n0: task 0: Killed"), tmp_path).is_told
