"""What NCCL itself warns of."""

from __future__ import annotations

from diag.ingest.job_log.nccl_warning import class_of
from tests.builders.job_log import CANCELLED, JobLog, Rank, nccl_log
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

IB_ERROR = (
    "NET/IB: Got completion from peer 10.99.91.63<51161> with status=12 opcode=32614 len=32614 vendor err 129 (Send) "
    "localGid ::ffff:10.99.92.59 remoteGids::ffff:10.99.91.63 hca mlx5_1"
)
CLOSED = "socketProgress: Connection closed by remote peer n1<51161>"


def warned(*said: str, rank: int = 0) -> JobLog:
    one = Rank(rank)
    return nccl_log(Rank(0), Rank(1)).add(*(one.line(each, "WARN", "transport/net_ib.cc:2453") for each in said))


CASES = {
    "nccl.warnings": ThreeCases(
        fires=lambda: warned(IB_ERROR),
        clear=lambda: nccl_log(Rank(0), Rank(1)),
        untold=lambda: JobLog().add(CANCELLED),
    ),
}


def test_the_class_and_the_rank_are_named(ask: Ask) -> None:
    finding = only_finding(ask("nccl.warnings", warned(IB_ERROR, IB_ERROR, rank=1)))
    assert finding.title == "NCCL warns of: InfiniBand completion error"
    assert finding.level == "critical"
    assert finding.subject.ranks == (1,)
    assert "rank 1 on n0 (GPU 1)" in finding.claim
    assert "vendor err 129" in finding.claim
    assert figures(finding) == {"InfiniBand completion error": 2}


def test_several_classes_are_one_finding(ask: Ask) -> None:
    finding = only_finding(ask("nccl.warnings", warned(CLOSED, CLOSED, IB_ERROR)))
    assert figures(finding) == {"peer closed the connection": 2, "InfiniBand completion error": 1}


def test_that_there_is_no_infiniband_is_not_critical(ask: Ask) -> None:
    assert only_finding(ask("nccl.warnings", warned("Failed to open libibverbs.so[.1]"))).level == "warning"


def test_every_class_says_what_to_look_at() -> None:
    from diag.rules import nccl_warnings  # here, lest this rule is registered before others

    classes = {
        class_of(said)
        for said in (IB_ERROR, CLOSED, "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000")
    }
    assert classes == {"InfiniBand completion error", "peer closed the connection", "duplicate GPU"}
    assert classes <= set(nccl_warnings.FOLLOW)
