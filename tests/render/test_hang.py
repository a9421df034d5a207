"""What `diag hang` shows of a job: in a terminal, as Markdown, as JSON. The job is synthetic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from diag.model.live import Frame
from diag.ranks.checklist import checklist
from diag.ranks.hang import HangAnalysis, Suspect, Undecided
from diag.ranks.heartbeats import RankBeat
from diag.ranks.stack_answer import stack_answer
from diag.ranks.stack_clusters import clusters
from diag.ranks.thread_stacks import RankThread
from diag.render.hang_json import render_hang_json
from diag.render.hang_markdown import render_hang_markdown
from diag.render.hang_text import render_hang_text
from diag.render.hang_view import HangView
from diag.render.layout import cells
from diag.rules.finding import Evidence, Finding, Subject
from diag.rules.report import Report, Verdict
from tests import published
from tests.builders.hanging import analysis, call, case_with, host_blocked

HOSTILE = "\x1b[31mevil\n\u202e" + "<script>|"
TORCH = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
ALL_REDUCE = Frame("all_reduce", TORCH, 3007)
STEP = Frame("train_step", "/home/me/train.py", 30)
LOAD = Frame("load_batch", "/home/me/data.py", 14)

FINDING = Finding(
    title="Rank 3: its host is blocked, and 3 ranks wait for it",
    claim="Rank 3 has nothing outstanding, and has not called _all_gather_base 7 of TENSOR_MODEL_PARALLEL_GROUP 41.",
    subject=Subject(1, ranks=(3,)),
    counterfactual="",
    refute="Rank 3 has called it by the time of a later dump.",
    next=["Look where rank 3 is: py-spy dump --pid PID"],
    evidence=[Evidence("calls outstanding on rank 3", 0, "count", "entries not completed")],
    level="critical",
    rule="hang.host_blocked",
)


def thread(rank: int, frames: Sequence[Frame], *, dump: int = 0, holds_gil: bool = False) -> RankThread:
    return RankThread(
        1, dump, rank, None, 100 + rank, 1, None, None, True, False, False, holds_gil, None, None, tuple(frames)
    )


def view(
    tmp_path: Path,
    *,
    findings: Sequence[Finding] = (),
    hang: HangAnalysis | None = None,
    threads: Sequence[RankThread] = (),
    beats: Sequence[RankBeat] = (),
    notes: Sequence[str] = (),
) -> HangView:
    with case_with(tmp_path) as job:
        report = Report(
            sources=job.sources, notes={}, verdict=Verdict("", "", None), devices=[], kernels=[], ranges=[],
            findings=findings, overlaps={}, clear=[], cannot_tell=[],
        )  # fmt: skip
        return HangView(report, hang, stack_answer(threads), clusters(threads), beats, checklist(job, hang), notes)


def test_the_answer_comes_first_then_how_it_knows(tmp_path: Path) -> None:
    text = render_hang_text(view(tmp_path, findings=[FINDING], hang=analysis(faults=[host_blocked()])))
    titles = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert titles == [
        FINDING.title,
        "How it knows",
        "What to do",
        "What would refute it",
        "Who waits for whom",
        "Groups with a call that does not end",
        "Seven questions",
        "Read",
    ]
    waits = (
        "Ranks 0–2 wait for rank 3 in the end. At once: ranks 0–2 in _all_gather_base 7 of TENSOR_MODEL_PARALLEL_GROUP "
        "41: rank 3 has not called it."
    )
    assert waits in " ".join(text.split())
    assert "Last called by 3: 6; 3 others: 7." in " ".join(text.split())
    assert "diag explain" in text


def test_suspects_and_undecided_ranks_say_what_would_decide(tmp_path: Path) -> None:
    hang = analysis(
        absent=[3],
        suspects=[Suspect(3, (0, 1, 2), call(0))],
        undecided=[Undecided(2, "its completions are missing", (13, 15))],
    )
    text = " ".join(render_hang_text(view(tmp_path, hang=hang)).split())
    assert "Cannot tell yet who is at fault" in text
    assert "Rank 2: undecided, its completions are missing; the dump of rank 13 or 15 would decide." in text
    assert "Rank 3 left no dump, and ranks 0–2 may wait for it in _all_gather_base 7" in text


def test_who_is_named_comes_before_dumps_that_are_missing(tmp_path: Path) -> None:
    absent = replace(FINDING, rule="hang.absent", title="No dump of rank 1, which others may wait for")
    stands = replace(FINDING, rule="hang.stacks", title="Rank 1 stands in load_batch; 2 ranks wait for the others")
    assert render_hang_text(view(tmp_path, findings=[absent])).startswith(absent.title)
    told = render_hang_text(view(tmp_path, findings=[absent, stands]))
    assert told.startswith(stands.title)
    assert absent.title in " ".join(told.split())


def test_where_ranks_stand_and_what_their_heartbeats_say_is_shown(tmp_path: Path) -> None:
    threads = [thread(rank, [ALL_REDUCE, STEP]) for rank in (0, 2)] + [thread(1, [LOAD, STEP])]
    beat = RankBeat(1, 5, 8, 0, 0, "a", 9, 1, 1, None, None, 17, "forward", "KeyError: 'x'")
    text = render_hang_text(view(tmp_path, threads=threads, beats=[beat]))
    assert "Ranks 0, 2 in all_reduce ← train_step (/home/me/train.py:30)." in text
    assert "Rank 5 ended: KeyError: 'x' (last told: step 17, phase 'forward')" in text


def test_what_the_first_line_says_is_said_once(tmp_path: Path) -> None:
    beats = [RankBeat(1, rank, 8, 0, 0, "a", 9, 1, 1, None, None, 17, "x", f"{rank} went") for rank in range(3)]
    text = render_hang_text(view(tmp_path, beats=beats))
    assert [text.split("Seven questions")[0].count(f"{rank} went") for rank in range(3)] == [1, 1, 1]
    assert "diag hang PID" not in text.split("Seven questions")[0]  # nobody is left to be looked at


def test_what_the_claim_says_is_no_figure_once_more(tmp_path: Path) -> None:
    says = "its main thread sleeps, called from load (data.py:3)"
    finding = replace(
        FINDING,
        claim=f"{FINDING.claim} Rank 3: {says}.",
        evidence=[*FINDING.evidence, Evidence("rank 3", says, "text", "stacks")],
    )
    text = " ".join(render_hang_text(view(tmp_path, findings=[finding])).split())
    assert text.count(says) == 1


def test_a_heartbeat_says_no_more_than_it_proves(tmp_path: Path) -> None:
    traced = RankBeat(1, 5, 8, 0, 0, "a", 9, 10**9, 10**9, None, "t", 17, None, None)
    assert (traced.condition, replace(traced, written_ns=9 * 10**9).condition) == ("runs Python", "stopped")
    old = replace(traced, behind_ns=600 * 10**9)
    assert (old.condition, replace(old, ended="finished").condition) == ("not written", "finished")
    held = replace(traced, state="D", written_ns=9 * 10**9)
    assert "the kernel holds it" in " ".join(render_hang_text(view(tmp_path, beats=[held])).split())
    assert "before the newest of another rank" in " ".join(render_hang_text(view(tmp_path, beats=[old])).split())


def test_a_stopped_process_waits_for_nobody(tmp_path: Path) -> None:
    threads = [thread(rank, [ALL_REDUCE, STEP]) for rank in range(3)]
    stopped = [replace(each, state="T") if each.rank == 1 else each for each in threads]
    text = " ".join(render_hang_text(view(tmp_path, threads=stopped)).split())
    assert "stopped by a signal (state T), in all_reduce" in text


def test_ranks_that_are_undecided_for_one_reason_share_a_line(tmp_path: Path) -> None:
    hang = analysis(absent=[3], undecided=[Undecided(rank, "its completions are missing", (3,)) for rank in range(3)])
    text = " ".join(render_hang_text(view(tmp_path, hang=hang)).split())
    assert text.count("undecided, its completions") == 1
    assert "Ranks 0–2: undecided" in text


def test_what_could_not_be_learnt_is_told(tmp_path: Path) -> None:
    assert "No dump was asked of rank 3" in render_hang_text(view(tmp_path, notes=["No dump was asked of rank 3."]))


@pytest.mark.parametrize("width", [24, 40, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_nothing_reaches_it_raw(tmp_path: Path, width: int) -> None:
    hostile = Frame(HOSTILE, "/x/" + HOSTILE * 30, 1)
    beat = RankBeat(1, 5, 8, 0, 0, HOSTILE, 9, 1, 1, None, None, 17, HOSTILE, HOSTILE)
    shown = view(
        tmp_path,
        hang=analysis(faults=[host_blocked()]),
        threads=[thread(0, [ALL_REDUCE, STEP]), thread(1, [hostile] * 50)],
        beats=[beat],
        notes=[HOSTILE],
    )
    text = render_hang_text(shown, width=width)
    assert max(map(cells, text.splitlines())) <= width
    assert text.replace("\n", "").isprintable()
    assert "<script>" not in render_hang_markdown(shown)


def test_color_only_where_it_is_wanted(tmp_path: Path) -> None:
    shown = view(tmp_path, findings=[FINDING])
    assert "\x1b[1;31m" in render_hang_text(shown, color=True)
    assert "\x1b" not in render_hang_text(shown)


def test_json_is_the_report_with_an_object_hang(tmp_path: Path) -> None:
    hang = analysis(faults=[host_blocked()], undecided=[Undecided(2, "x", (13,))])
    text = render_hang_json(view(tmp_path, findings=[FINDING], hang=hang, threads=[thread(1, [LOAD])]))
    assert text.isascii()
    assert published.check_output(text)
    told = json.loads(text)
    assert told["schema"] == "diag.report/1"
    assert told["hang"]["finding_id"] == told["findings"][0]["id"]
    (fault,) = told["hang"]["faults"]
    assert (fault["cause"], fault["ranks"], fault["group"]["name"], fault["call"]["sequence"]) == ("host", [3], "41", 7)
    assert told["hang"]["named"] == [3]
    assert told["hang"]["undecided"] == [{"rank": 2, "because": "x", "deciders": [13]}]
    assert told["hang"]["stacks"][0]["own"] == {"function": "load_batch", "file": "/home/me/data.py", "line": 14}
    assert told["hang"]["checklist"][0]["answer"] == "not known"
