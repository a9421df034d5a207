"""A comparison as text, Markdown and JSON: the verdict first, nothing too wide, nothing that acts on its reader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from diag.compare import of_case
from diag.compare.comparison import Comparison, compare
from diag.compare.recording import Side
from diag.render import COMPARISON_RENDERERS
from diag.render.comparison_json import document
from diag.render.layout import cells
from diag.rules.analysis import AnalysisOptions
from tests import published
from tests.builders.imported import Recorded, imported
from tests.builders.ncu_report import NcuReport
from tests.compare.runs import A100, loop

Compare = Callable[..., Comparison]

HOSTILE = "gemm\x1b[31m\n| `x` <b>@ops #1 \u202e[a](http://b)" + "y" * 300


@pytest.fixture
def compared(tmp_path: Path) -> Compare:
    def side(runs: Sequence[Recorded], name: str) -> Side:
        recordings = []
        for run in runs:
            with imported(run, tmp_path) as case:
                recordings.append(of_case.recording_of(case, AnalysisOptions(), name))
        return Side(name, recordings)

    def comparison(before: Sequence[Recorded], after: Sequence[Recorded], **options: object) -> Comparison:
        return compare(side(before, "before.sqlite"), side(after, "after.sqlite"), **options)  # type: ignore[arg-type]

    return comparison


def shown(comparison: Comparison, how: str = "text", **options: int) -> str:
    return COMPARISON_RENDERERS[how](comparison, **options)  # type: ignore[arg-type]


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_verdict_is_the_first_line(compared: Compare) -> None:
    text = flat(shown(compared([loop()], [loop(gemm_us=120)])))
    assert text.startswith("Regressed: kernel time 5.6 ms → 6.4 ms (+14.3 %) Noise is that of launches within one run")
    assert "up to 2 % counts as noise" in text


def test_each_condition_has_its_answer_and_what_tells_it(compared: Compare) -> None:
    text = flat(shown(compared([loop()], [loop(hardware=A100)])))
    assert "Not comparable: kernel time" in text
    assert (
        "The two sides differ in hardware and topology (GPUs, limits). If that is what you compare: --allow hardware."
        in text
    )
    assert "differs: hardware and topology. GPUs: NVIDIA H100 80GB HBM3 → NVIDIA A100-SXM4-80GB;" in text
    for condition in ("model and precision", "input and output lengths", "arrival process", "metric and correctness"):
        assert f": {condition}" in text
    assert "configuration and cache warmth" in text


def test_repeats_are_said_to_be_runs(compared: Compare) -> None:
    before, after = ([loop(gemm_us=us, pid=us) for us in some] for some in ((100, 101, 102), (120, 121, 122)))
    text = flat(shown(compared(before, after)))
    assert "Noise is that of runs, 3 before and 3 after: the change lies between +" in text
    assert "What two runs differ by was not measured" not in text
    assert "before: before.sqlite, 3 runs" in text


def test_what_cannot_be_told_says_what_would(compared: Compare) -> None:
    text = flat(shown(compared([loop()], [loop(gap_us=90)], metric="window")))
    assert text.startswith("Cannot tell: window 6.8 ms → 9.1 ms")
    assert "Noise is not known, as nothing repeats here: to measure it, name folders with repeats of each run." in text


def test_profiles_are_told_apart_from_runs(compared: Compare) -> None:
    profile = NcuReport.of({}, name="gemm")
    text = flat(shown(compared([profile], [loop()])))
    assert text.startswith("Not comparable: the two sides have no figure in common")
    assert "Nsight Compute runs each launch alone" in text
    alike = flat(shown(compared([profile], [profile])))
    assert "Kernels as Nsight Compute measured them" in alike
    assert "not as the run had them" in alike


@pytest.mark.parametrize("width", [24, 40, 80, 120])
@pytest.mark.parametrize("steps", [False, True])
def test_no_line_is_wider_than_asked(width: int, steps: bool, compared: Compare) -> None:
    before = loop(steps=steps, more=["softmax"], name="void at::native::gemm<float, 128, 64>(float*)")
    text = shown(compared([before], [loop(steps=steps, more=["a", "b", "c"])]), width=width)
    assert max(map(cells, text.splitlines())) <= width


def test_tables_show_as_many_rows_as_asked(compared: Compare) -> None:
    comparison = compared([loop(more=["a", "b", "c", "d"])], [loop()])
    assert "… and 3 more (--top 4)." in flat(shown(comparison, top=1))
    assert "more (--top" not in shown(comparison, top=9)


@pytest.mark.parametrize("how", ["text", "markdown", "json"])
def test_names_from_files_act_on_nobody(how: str, compared: Compare) -> None:
    comparison = compared([loop(name=HOSTILE)], [loop(name=HOSTILE, gemm_us=150)], metric=f"kernel:{HOSTILE}")
    hostile = replace(comparison, before=Side(HOSTILE, comparison.before.runs))
    text = shown(hostile, how)
    assert text.replace("\n", "").isprintable()
    assert "gemm" in text
    if how == "markdown":
        outside_code = "".join(re.split(r"(`+).*?\1", text))
        assert not re.search(r"<b>|[^;]@ops|\[a\]\(", outside_code)


def test_markdown_has_the_same_sections(compared: Compare) -> None:
    text = shown(compared([loop(steps=True)], [loop(steps=True, gemm_us=150)]), "markdown")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "## Regressed: step time ('step #') 170.2 µs → 220.2 µs (+29.4 %)",
        "### May they be compared?",
        "### Devices",
        "### Kernels, by how much they moved",
        "### Findings",
        "### How it was judged",
        "### Read",
    ]


def test_the_json_contract(compared: Compare) -> None:
    comparison = compared([loop()], [loop(gemm_us=120)])
    written = json.loads(shown(comparison, "json"))
    published.check(written)
    assert written["schema"] == "diag.compare/1"
    assert list(written) == [
        "schema", "diag_version", "verdict", "per_step", "before", "after", "conditions", "devices", "kernels",
        "launches", "ranges", "findings", "nccl", "serving",
    ]  # fmt: skip
    verdict = written["verdict"]
    assert verdict["answer"] == "regressed"
    assert verdict["metric"] == "kernels"
    assert verdict["against"] == []
    assert verdict["ratio"] == pytest.approx(0.143, abs=0.001)
    assert verdict["noise"].keys() == {
        "repeats", "n_before", "n_after", "shift_ns", "low_ns", "high_ns", "level", "p",
    }  # fmt: skip
    (gemm, _) = written["kernels"]
    assert gemm["name"] == "gemm"
    assert gemm["answer"] == "regressed"
    assert gemm["configuration"] is None
    assert gemm["before"]["count"] == 40
    assert gemm["by_count_ns"] == 0
    assert [condition["name"] for condition in written["conditions"]] == [
        "model", "hardware", "lengths", "arrival", "configuration", "metric",
    ]  # fmt: skip
    assert document(comparison)["per_step"] is None


def test_the_same_runs_give_the_same_bytes(compared: Compare) -> None:
    once = compared([loop(steps=True)], [loop(steps=True, gemm_us=120, more=["a", "b"])])
    again = compare(once.before, once.after)
    for how in COMPARISON_RENDERERS:
        assert shown(once, how) == shown(again, how)
