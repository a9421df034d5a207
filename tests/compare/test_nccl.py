"""Two logs of NCCL against each other: one sentence, then each difference."""

from __future__ import annotations

import json

from diag.compare.comparison import Comparison
from diag.compare.nccl import NcclComparison
from diag.render import COMPARISON_RENDERERS
from tests.builders.job_log import JobLog, Rank, nccl_log
from tests.compare.conftest import Compare
from tests.compare.runs import loop


def healthy() -> JobLog:
    return nccl_log(Rank(0), Rank(1))


def degraded() -> JobLog:
    """One direction of the link is slow in the topology that was loaded."""
    more = ("Loading topology file /etc/topo.xml",)
    variables = {"NCCL_TOPO_FILE": "/etc/topo.xml"}
    return nccl_log(*(Rank(r, channels=2, nvlink=(240.0, 20.0), more=more, variables=variables) for r in range(2)))


def said(comparison: Comparison) -> NcclComparison:
    assert comparison.nccl is not None
    return comparison.nccl


def test_what_differs_is_one_sentence(compared: Compare) -> None:
    assert said(compared(healthy(), degraded())).sentence == (
        "NCCL built 2 channels instead of 16 for communicators of 2 ranks: its topology has 20 GB/s instead of 240 one "
        "way between GPU 17000 and GPU 65000 of n0 and it loaded that topology from a file, /etc/topo.xml, which it "
        "did not before; transports, networks, versions and warnings are the same"
    )


def test_each_difference_is_listed(compared: Compare) -> None:
    found = [
        (each.what, each.where, each.before, each.after) for each in said(compared(healthy(), degraded())).differences
    ]
    assert found == [
        ("channels", "2 ranks", "16", "2"),
        ("topology", "GPU 17000 and GPU 65000 of n0", "240", "20"),
        ("topology file", "", "none", "/etc/topo.xml"),
        ("variable", "NCCL_TOPO_FILE", "none", "/etc/topo.xml"),
    ]


def test_the_same_run_has_no_difference(compared: Compare) -> None:
    told = said(compared(healthy(), healthy()))
    assert told.differences == []
    assert told.sentence.startswith("NCCL made the same of both runs, as far as its logs tell: channels, transports")


def test_a_variable_that_changes_the_transport(compared: Compare) -> None:
    off = nccl_log(
        *(Rank(r, via=lambda *_: "SHM/direct/direct", variables={"NCCL_P2P_DISABLE": "1"}) for r in range(2))
    )
    assert said(compared(healthy(), off)).sentence.startswith(
        "NCCL connected ranks via SHM/direct/direct instead of P2P/CUMEM/read; also different: NCCL_P2P_DISABLE=1"
    )


def test_what_one_side_does_not_print_is_no_difference(compared: Compare) -> None:
    silent = nccl_log(*(Rank(rank, nvlink=None) for rank in range(2)))
    told = said(compared(healthy(), silent))
    assert told.differences == []
    assert "topology" not in told.same


def test_a_trace_has_no_log(compared: Compare) -> None:
    assert compared(loop(), loop()).nccl is None


def test_text_says_the_sentence_first(compared: Compare) -> None:
    comparison = compared(healthy(), degraded())
    assert comparison.tells_something
    text = COMPARISON_RENDERERS["text"](comparison)
    assert text.startswith("NCCL built 2 channels instead of 16")
    assert "channels (2 ranks): 16 → 2" in text
    assert "metric and correctness (times)" not in text


def test_json_holds_sentence_and_differences(compared: Compare) -> None:
    document = json.loads(COMPARISON_RENDERERS["json"](compared(healthy(), degraded())))
    assert document["verdict"]["title"] == document["nccl"]["sentence"]
    assert document["nccl"]["differences"][0] == {"what": "channels", "where": "2 ranks", "before": "16", "after": "2"}
    assert document["nccl"]["same"] == ["transport", "network", "version", "warnings"]
    assert json.loads(COMPARISON_RENDERERS["json"](compared(loop(), loop())))["nccl"] is None


def test_markdown_has_it_too(compared: Compare) -> None:
    assert "### What NCCL did differently" in COMPARISON_RENDERERS["markdown"](compared(healthy(), degraded()))
