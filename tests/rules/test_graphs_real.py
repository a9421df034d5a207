"""What the rules about CUDA graphs and loading say of real files, next to figures that plain SQL gives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, Finding
from diag.store.case import Case
from diag.timeline.graphs import find_replays
from diag.timeline.trace import Trace
from tests.rules.asking import figures, only_finding

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")

RULES = ("capture.graphs", "graph.coverage", "graph.replay", "graph.padding", "load.steady")


@contextmanager
def opened(name: str) -> Iterator[tuple[Case, Trace]]:
    with open_inputs([Path(str(REPORTS)) / name], ImportOptions(use_cache=False)) as case:
        yield case, Trace(case, case.sources[0])


def answers(trace: Trace, rule_id: str) -> list[Answer]:
    return list(running.run(engine.trace_rule(rule_id), trace, thresholds.load()[rule_id]))


@pytest.mark.parametrize("name", ["h100x2-offload", "t4-power-iteration", "h200-fuser-matmul", "a100-saxpy-schema2.9"])
def test_captures_without_graphs_that_load_ahead(name: str) -> None:
    with opened(f"nsys/{name}.sqlite") as (_, trace):
        found = [answer for rule_id in RULES for answer in answers(trace, rule_id)]
        assert not [answer for answer in found if isinstance(answer, Finding)]


def test_one_replay_of_vllm() -> None:
    with opened("kineto/vllm-graph-execution.json.gz") as (case, trace):
        (device,) = trace.devices
        replays = find_replays(device)
        by_hand = case.db.execute(ROWS_OF_GRAPH_LAUNCHES).fetchall()
        assert list(zip(replays.n_rows.tolist(), replays.time, strict=True)) == [
            (count, (start, end)) for count, start, end, _ in by_hand
        ]
        # Its nodes do not overlap: what their sum lacks of the replay are the gaps between them.
        ((_, start, end, nodes_ns),) = by_hand
        assert (replays.time - device.busy).measure_ns == end - start - nodes_ns
        assert not [answer for rule_id in RULES for answer in answers(trace, rule_id) if isinstance(answer, Finding)]


ROWS_OF_GRAPH_LAUNCHES = """
    SELECT COUNT(*), MIN(g.start_ns), MAX(g.end_ns), SUM(g.end_ns - g.start_ns)
      FROM gpu_op g JOIN api_call a ON a.correlation = g.correlation JOIN name n ON n.id = a.name_id
     WHERE n.text LIKE '%GraphLaunch%'
     GROUP BY a.id
"""


@pytest.mark.parametrize("workers", [0, 4])
def test_eager_training_could_be_replayed(workers: int) -> None:
    """Every step waits once for the device and copies its batch from pageable memory: all else repeats."""
    with opened(f"kineto/resnet50-workers{workers}.pt.trace.json.gz") as (case, trace):
        found = figures(only_finding(answers(trace, "graph.coverage")))
        ((n_launches,),) = case.db.execute(LAUNCHING_CALLS).fetchall()
        assert found["breaks a capture: copies from or to pageable memory"] == 12
        assert found["breaks a capture: cudaStreamSynchronize"] == 12
        assert found["launches that repeat"] == n_launches - 12
        ((short_gaps_ns,),) = case.db.execute(SHORT_GAPS).fetchall()
        assert 0 < int(found["gaps before launches that repeat"]) <= short_gaps_ns


LAUNCHING_CALLS = "SELECT COUNT(*) FROM api_call WHERE correlation IN (SELECT correlation FROM gpu_op)"
SHORT_GAPS = """
    SELECT SUM(gap_ns)
      FROM (SELECT start_ns - MAX(end_ns) OVER (ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                   AS gap_ns
              FROM gpu_op)
     WHERE gap_ns BETWEEN 1 AND 20 * 9000
"""
