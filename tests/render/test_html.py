"""The HTML page: well-formed, whole in itself, safe with any name, the same each time, and never too large."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.render.html import render_html, timeline_of
from diag.render.html.page import SCRIPTS, STYLES
from diag.rules.analysis import AnalysisOptions
from diag.rules.finding import CannotTell, Evidence, Subject
from diag.rules.report import Report
from diag.rules.stored import report_of
from diag.rules.timeline_report import KernelRow, RangeRow
from tests.render.pages import HOSTILE, Page, columns, page_of, timeline_data, trace
from tests.render.rooflines import kernel as roofline

MB = 1_000_000
ASSETS = Path(__file__).parents[2] / "diag/render/html/assets"


def test_the_page_is_well_formed_and_in_order(any_report: Report) -> None:
    page = Page(render_html(any_report))
    assert page.elements[0] == ("html", {"lang": "en"})
    headings = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(headings))
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.all(landmark)) == 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [str(each["href"]) for each in page.all("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    for attributes in page.all("section"):
        assert attributes["aria-labelledby"] in ids


def test_it_needs_nothing_else_and_may_do_nothing_else(tmp_path: Path) -> None:
    html = page_of(trace(tmp_path / "a.sqlite", ["gemm", "relu"]))
    page = Page(html)
    assert html.isascii()
    assert not any(tag in {"link", "img", "iframe", "object", "embed", "base"} for tag, _ in page.elements)
    for tag, attributes in page.elements:
        assert not attributes.keys() & {"src", "style", "srcset", "action", "formaction", "xlink:href"}, tag
        assert not any(key.startswith("on") for key in attributes), (tag, attributes)
    style, script = (re.search(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL) for tag in ("style", "script"))
    assert style is not None
    assert script is not None
    assert not re.search(r"url\(|@import|https?:|//[a-z]", style[1])
    assert "https:" not in script[1]
    assert page.policy.startswith("default-src 'none'; ")
    for kind, text in (("script-src", script[1]), ("style-src", style[1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}';" in page.policy
    assert "unsafe" not in page.policy


def test_the_script_never_makes_markup_or_code_of_text() -> None:
    for file in SCRIPTS:
        source = (ASSETS / file).read_text("ascii")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(", source), (
            file
        )
        assert not re.search(r"fetch\(|XMLHttpRequest|import\(|localStorage", source), file
    assert sorted([*SCRIPTS, *STYLES]) == sorted(path.name for path in ASSETS.iterdir())


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_report_holds_is_text(hostile: Callable[[str], Report], name: str) -> None:
    html = render_html(replace(hostile(HOSTILE[name]), rooflines=[roofline(HOSTILE[name], device=HOSTILE[name])]))
    plain = Page(render_html(replace(hostile("gemm"), rooflines=[roofline("gemm", device="gemm")])))
    page = Page(html)
    allowed = {tag for tag, _ in plain.elements} | {"details", "summary", "code"}
    assert {tag for tag, _ in page.elements} <= allowed
    assert len(page.all("script")) == len(plain.all("script"))
    assert len(html) < MB
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f]", html)
    letters = {int(number) for number in re.findall(r"&#(\d+);", html)}
    assert all(chr(letter).isprintable() for letter in letters)  # neither overrides nor lone surrogates
    for link in page.all("a"):
        assert str(link["href"]).startswith("#")


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_trace_holds_is_text(tmp_path: Path, name: str) -> None:
    safe = HOSTILE[name].encode("utf-8", "replace").decode()
    html = page_of(trace(tmp_path / "a.sqlite", [safe or "x", "gemm"]))
    page = Page(html)
    assert len(page.all("script")) == 2
    assert not page.all("img")
    data = timeline_data(html)
    assert all(len(said) <= 160 for said in data["names"])
    assert all(said.isprintable() for said in data["names"])
    raw = html.partition('id="timeline-data">')[2].partition("</script>")[0]
    assert not set("<>&") & set(raw)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.sqlite", ["gemm", "relu"])
    assert page_of(path) == page_of(path)


def test_the_report_that_was_kept_gives_the_same_page(tmp_path: Path) -> None:
    """What a case keeps of a report lacks the extents of findings."""
    path = trace(tmp_path / "a.sqlite", ["gemm", "relu"])
    with open_inputs([path], ImportOptions(use_cache=False, keep=tmp_path / "a.diag")) as case:
        report = report_of(case, AnalysisOptions())
        first = render_html(report, timeline_of(case, report))
    with open_inputs([tmp_path / "a.diag"], ImportOptions(use_cache=False)) as case:
        report = report_of(case, AnalysisOptions())
        assert render_html(report, timeline_of(case, report)) == first


def test_a_finding_is_told_in_full(report: Report) -> None:
    page = Page(render_html(report))
    findings = [each for each in page.all("details") if each.get("class") == "finding"]
    assert [each["id"] for each in findings] == [finding.id for finding in report.findings]
    assert ["open" in each for each in findings] == [True, False]
    said = page.text("main")
    first = report.findings[0]
    for part in (first.claim, first.refute, *first.next, first.counterfactual, first.rule, first.id, "36.0 ms"):
        assert part in said
    for evidence in first.evidence:
        assert evidence.formula in said
        assert (evidence.sql or "") in said


def test_rows_can_be_sorted_by_what_they_say(report: Report) -> None:
    keys = [each["data-key"] for each in Page(render_html(report)).all("td") if "data-key" in each]
    assert keys
    assert all(float(str(key)) >= 0 for key in keys)


def test_thousands_of_everything_stay_below_the_bound(report: Report) -> None:
    def kernel(at: int) -> KernelRow:
        return replace(report.kernels[0], name=f"void kernel_{at}<{'float, ' * 200}>(int)", short_name=f"kernel_{at}")

    finding = report.findings[0]
    evidence = [Evidence(f"figure {at}", at, "count", "sum of x" * 40, "SELECT 1 " * 200) for at in range(60)]
    findings = [
        replace(finding, subject=replace(finding.subject, stream=at), title=f"{at}", evidence=evidence)
        for at in range(1_000)
    ]
    many = replace(
        report,
        kernels=[kernel(at) for at in range(16_000)],
        ranges=[RangeRow(1, 9946, 0, f"{'行' * 900}{at}", 1, 1, 1, 1) for at in range(9_000)],
        findings=findings,
        verdict=replace(report.verdict, finding_id=findings[0].id),
        overlaps={},
        devices=[replace(report.devices[0], device=at) for at in range(40)],
        sources=[replace(report.sources[0], id=at, path=f"{'dir/' * 50}{at}") for at in range(60)],
        notes={at: ["note " * 300] * 70 for at in range(60)},
        cannot_tell=[CannotTell(Subject(source=1), f"{at} {'because ' * 100}", "idle.gpu") for at in range(150)],
        rooflines=[roofline(f"k{at}", device=f"GPU {at}") for at in range(60)],
    )
    html = render_html(many)
    assert len(html) < 1.5 * MB
    said = Page(html).text("main")
    assert re.search(r"The first \d+ of 1,000 findings as they are ranked", said)
    assert re.search(r"The first \d+ of 16,000 rows", said)
    assert re.search(r"The first \d+ of 9,000 rows", said)
    assert re.search(r"[\d,]+ more reasons", said)
    assert re.search(r"[\d,]+ more inputs", said)


def test_a_large_trace_stays_below_the_bound_and_says_how(tmp_path: Path) -> None:
    """16,000 kernels and 16,000 ranges, each of a name of its own."""
    path = trace(tmp_path / "a.sqlite", [f"kernel_{at}_{'x' * 100}" for at in range(16_000)], 16_000)
    html = page_of(path)
    assert len(html) < 3 * MB
    data = timeline_data(html)
    assert data["resolution"] > 0
    assert sum(map(len, data["names"])) < 300_000
    slices = [row for group in data["groups"] for row in group["rows"] if row["kind"] != "counter"]
    assert sum(row["count"] for row in slices) == sum(sum(kind // 8 for kind in columns(row)[3]) for row in slices)
    assert "drawn as one block" in Page(html).text("main")
    assert "every slice is there as far as there is room" in Page(html).text("main")


def test_without_javascript_a_picture_and_tables_remain(tmp_path: Path) -> None:
    page = Page(page_of(trace(tmp_path / "a.sqlite", ["gemm", "relu"])))
    (still,) = (each for each in page.all("svg") if each["class"] == "still-picture")
    assert str(still["aria-label"]).startswith("Timeline of ")
    assert any("needs-script" in str(attributes.get("class")) for _, attributes in page.elements)
    assert "gemm" in page.text("table")


@pytest.mark.skipif("DIAG_REAL_REPORTS" not in os.environ, reason="DIAG_REAL_REPORTS is not set")
@pytest.mark.parametrize(
    "name",
    [
        "nsys/h100x2-offload.sqlite",
        "nsys/titanrtx-nvtx-22k.sqlite",
        "kineto/resnet50-workers0.pt.trace.json.gz",
        "ncu/a100-selfjoin-full.ncu-rep",
    ],
)
def test_pages_of_real_files(name: str) -> None:
    html = page_of(Path(os.environ["DIAG_REAL_REPORTS"]) / name)
    assert len(html) < MB
    Page(html)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_is_javascript(tmp_path: Path) -> None:
    """Each file by itself, so that a message names it, and all of them as they stand in the page, in one scope."""
    (whole,) = re.findall("<script>(.*?)</script>", page_of(trace(tmp_path / "a.sqlite", ["gemm"])), re.DOTALL)
    (tmp_path / "page.js").write_text(whole, encoding="ascii")
    for path in (*sorted(ASSETS.glob("*.js")), tmp_path / "page.js"):
        checked = subprocess.run(["node", "--check", path], check=False, capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0, checked.stderr
