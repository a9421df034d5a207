"""Labels of launchers before a line."""

from __future__ import annotations

import pytest

from diag.ingest.job_log.event import Place
from diag.ingest.job_log.prefix import date_of, labelled, moment_of, nccl_head


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("[rank3]:[E1218 said", 3, "[E1218 said"),
        ("[rank3]: Traceback", 3, " Traceback"),
        ("3: said", 3, "said"),
        ("  13: said", 13, "said"),
        ("[1,4]<stderr>:said", 4, "said"),
        ("3: [rank3]:[E said", 3, "[E said"),
        ("(PolicyWorker[rank=9] pid=3098446) said", 9, " said"),
        ("(pid=12, ip=10.0.0.1) said", None, "(pid=12, ip=10.0.0.1) said"),
        ("[default0]:said", None, "said"),
        ("said: 3: x", None, "said: 3: x"),
        ("[0] said", None, "[0] said"),
    ],
)
def test_the_rank_is_what_a_label_says(line: str, rank: int | None, text: str) -> None:
    found = labelled(line)
    assert (found.place.rank, found.text) == (rank, text)


def test_torchruns_label_is_a_local_rank() -> None:
    assert labelled("[default3]:said").place.local_rank == 3


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("[2026-03-03 12:11:38] n0", 1_772_539_898_000_000_000),
        ("2026-03-03T12:11:38,25 n0", 1_772_539_898_250_000_000),
        ("2026-99-03 12:11:38 n0", None),
        ("n0", None),
    ],
)
def test_dates(text: str, ns: int | None) -> None:
    assert date_of(text) == ns


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("[E321 02:07:08.4 x", "03-21T02:07:08.400000000"),
        ("[W1206 18:44:12 x", "12-06T18:44:12.000000000"),
        ("x", None),
    ],
)
def test_pytorch_writes_no_year(text: str, moment: str | None) -> None:
    assert moment_of(text) == moment


def test_what_stands_before_nccl_must_name_a_process() -> None:
    assert nccl_head("I like", Place()) is None
    assert nccl_head("n0:1:2 [0]", Place()) == (Place("n0", 1, 2, None, 0), None)
