"""Rules of plug-ins: they are asked as those of diag, and a broken one says so and takes nothing down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from diag.cluster.gathering import gathered
from diag.cluster.reading import Reading
from diag.cluster.shards import shards_of
from diag.cluster.workers import Processes
from diag.errors import UsageError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.inputs import find_inputs
from diag.render import RENDERERS, explanation, rule_pages
from diag.rules import stored, thresholds
from diag.rules.analysis import AnalysisOptions
from diag.rules.engine import rules
from diag.rules.report import Report
from diag.rules.stored import report_of
from tests.plugins.conftest import Install
from tests.plugins.packages import RULE, with_rule

TRACE = Path(__file__).parents[2] / "examples/data/synthetic-training.pt.trace.json.gz"
CLEAR = "yield Clear(Subject(trace.source.id))"
FINDING = "yield Finding('t', 'c', Subject(trace.source.id), '', '', [], [Evidence('e', {value}, '{unit}', 'f')])"


@pytest.fixture(scope="module")
def case_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("case") / "training.diag"
    with open_inputs([TRACE], ImportOptions(keep=path, use_cache=False)):
        return path


def report_on(case_file: Path) -> Report:
    with open_inputs([case_file], ImportOptions(use_cache=False)) as case:
        return report_of(case, AnalysisOptions())


def untold(report: Report) -> dict[str, str]:
    return {answer.rule: answer.because for answer in report.cannot_tell}


def test_a_rule_is_asked_after_those_of_diag(install: Install, case_file: Path) -> None:
    without = report_on(case_file)
    install(with_rule())
    report = report_on(case_file)
    assert list(rules())[-1] == "mine.answer"
    assert report.clear[-1].rule == "mine.answer"
    assert [finding.id for finding in report.findings] == [finding.id for finding in without.findings]
    assert (report.clear[:-1], report.cannot_tell) == (without.clear, without.cannot_tell)


def test_plugins_can_be_switched_off(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIAG_PLUGINS", "0")
    install(with_rule("raise SystemExit"))
    assert all(rule.module.startswith("diag.") for rule in rules().values())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("1 / 0; yield", "ZeroDivisionError: division by zero"),
        (f"{CLEAR}; {{}}['lost']", "KeyError: 'lost'"),
        ("raise SystemExit; yield", "SystemExit"),
        ("return 3", "TypeError: 'int' object is not iterable"),
        ("yield 'all is well'", "TypeError: a rule answers a Finding, Clear or CannotTell, and not str"),
        ("yield Clear(Subject(0.5))", "ValidationError: Expected `int`"),
        ("yield Clear(Subject(99))", "ValueError: it answered about source 99, which it was not asked about"),
        (FINDING.format(value=1, unit="furlong"), "ValueError: 'furlong' is none of the units of evidence"),
        (FINDING.format(value="__import__('numpy').int64(1)", unit="count"), "TypeError: a int64 cannot be kept"),
        ("yield from trace.case.db.execute('SELECT * FROM nowhere')", "OperationalError: no such table: nowhere"),
    ],
)
def test_one_that_fails_cannot_tell(install: Install, case_file: Path, answer: str, said: str) -> None:
    """What it answered before it failed does not count either."""
    install(with_rule(RULE.replace(CLEAR, answer)))
    report = report_on(case_file)
    assert "mine.answer" not in {finding.rule for finding in report.findings} | {clear.rule for clear in report.clear}
    assert untold(report)["mine.answer"].startswith(f"the plug-in mine (mine 1.0) failed: {said}")
    assert report.findings


def test_a_plugin_whose_own_need_is_installed_later_is_asked_anew(install: Install, tmp_path: Path) -> None:
    """None of its own files has changed."""
    install(with_rule(f"import wanted\n{RULE}"))
    lost = stored.digest_of_code()
    (tmp_path / "installed/wanted.py").write_text("")
    install()
    assert "mine.answer" in rules()
    assert stored.digest_of_code() != lost


def test_want_of_memory_is_no_fault_of_a_rule(install: Install, case_file: Path) -> None:
    install(with_rule(RULE.replace(CLEAR, "raise MemoryError; yield")))
    with pytest.raises(MemoryError):
        report_on(case_file)


@pytest.mark.parametrize(
    ("code", "limits", "said"),
    [
        ("import nowhere_at_all", "", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("raise SystemExit", "", "SystemExit"),
        ("def", "", "SyntaxError"),
        (RULE.replace("mine.answer", "idle.gpu"), "", "RuntimeError: Two rules are called idle.gpu"),
        (RULE.replace("Refute", "Never"), "", "RuntimeError: Rule mine.answer lacks Refute in its docstring"),
        (RULE.replace('"mine.answer"', '"mine.answer", needs=("luck",)'), "", "its rule mine.answer needs luck, which"),
        (
            RULE,
            '["idle.gpu"]\nshare = { value = 1, source = "me" }',
            "ValueError: its thresholds.toml sets thresholds of diag's own idle.gpu",
        ),
        (
            RULE,
            '["mine.answer"]\nshare = 1',
            'ValueError: its thresholds.toml holds no thresholds in ["mine.answer"]: Expected',
        ),
        (RULE, "share = 1", 'holds no thresholds in ["share"]: Expected `object`, got `int`'),
        (RULE, '["mine.answer"]\nshare = { value = -1, source = "me" }', "Expected `float` >= 0"),
        (RULE, '["mine.answer"', "TOMLDecodeError"),
    ],
)
def test_one_that_cannot_be_loaded_has_a_place_in_the_report(
    install: Install, case_file: Path, code: str, limits: str, said: str
) -> None:
    shipped = thresholds.load()
    install(with_rule(code, thresholds=limits), with_rule(RULE.replace("mine", "whole"), module="whole"))
    report = report_on(case_file)
    because = untold(report)["plugin.mine.mine"]
    assert because.startswith("the plug-in mine (mine 1.0) failed: ")
    assert said in because
    assert because in explanation.rule(rules()["plugin.mine.mine"], width=10_000)
    assert "mine.answer" not in rules()
    assert report.clear[-1].rule == "whole.answer"
    assert {rule: thresholds.load()[rule] for rule in shipped} == shipped


def test_of_two_plugins_with_one_rule_the_second_is_refused(install: Install, case_file: Path) -> None:
    install(with_rule(), with_rule(module="other"))
    assert "Two rules are called mine.answer" in untold(report_on(case_file))["plugin.other.other"]


def test_thresholds_are_documented_and_can_be_changed(install: Install, tmp_path: Path) -> None:
    install(with_rule(thresholds='["mine.answer"]\nshare = { value = 0.25, source = "A guess." }'))
    assert thresholds.load()["mine.answer"] == {"share": 0.25}
    assert "share = 0.25: A guess." in explanation.rule(rules()["mine.answer"])
    assert '["mine.answer"]\n# A guess.\nshare = 0.25' in explanation.thresholds()
    changed = tmp_path / "changed.toml"
    changed.write_text('["mine.answer"]\nshare = 0.5')
    assert thresholds.load(changed)["mine.answer"] == {"share": 0.5}
    install()
    changed.write_text('["mine.other"]\nshare = 0.5')
    with pytest.raises(UsageError, match="not a threshold"):
        thresholds.load(changed)


@pytest.mark.parametrize("change", [{"code": f"{RULE}\n# edited"}, {"version": "1.1"}, {"thresholds": "# edited"}])
def test_a_plugin_that_changed_is_asked_anew(install: Install, tmp_path: Path, change: dict[str, str]) -> None:
    def fingerprints() -> Sequence[str]:
        with open_inputs([TRACE], ImportOptions()) as case:
            report_of(case, AnalysisOptions())
            return [row["fingerprint"] for row in case.rows("SELECT fingerprint FROM report")]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIAG_CACHE", str(tmp_path / "cache"))
        assert len(fingerprints()) == 1
        install(with_rule())
        assert len(fingerprints()) == 2
        assert len(fingerprints()) == 2
        install(with_rule(**change))
        assert len(fingerprints()) == 3


@pytest.mark.parametrize("name", RENDERERS)
def test_every_format_tells_what_plugins_found_and_what_became_of_the_broken(
    install: Install, case_file: Path, name: str
) -> None:
    found = FINDING.format(value=1, unit="count").replace("'t'", "'Found by a plug-in'")
    install(
        with_rule(RULE.replace(CLEAR, found)),
        with_rule(RULE.replace("mine.answer", "fails.answer").replace(CLEAR, "1 / 0; yield"), module="fails"),
        with_rule("1 / 0", module="lost"),
    )
    shown = " ".join(RENDERERS[name](report_on(case_file), width=10_000, top=1000).split())
    assert "Found by a plug-in" in shown
    assert "the plug-in fails (fails 1.0) failed: ZeroDivisionError: division by zero" in shown
    assert "the plug-in lost (lost 1.0) failed: ZeroDivisionError: division by zero" in shown


def test_pages_of_rules_are_of_diag_alone_and_the_terminal_shows_any(install: Install) -> None:
    install(with_rule(), with_rule("1 / 0", module="lost"))
    assert not {"mine.answer.md", "plugin.lost.lost.md"} & rule_pages.pages().keys()
    assert rule_pages.page(rules()["mine.answer"]).startswith("# mine.answer\n")
    assert "ZeroDivisionError" in rule_pages.page(rules()["plugin.lost.lost"])


def test_workers_ask_them_too(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is a process of its own."""
    monkeypatch.setenv("DIAG_CACHE", str(tmp_path / "cache"))
    install(with_rule(), with_rule("1 / 0", module="lost"))
    imports, options = ImportOptions(), AnalysisOptions()
    shards, others = shards_of(find_inputs([TRACE]))
    with gathered(shards, others, imports, Reading.of(imports, options), Processes(1), print) as case:
        report = report_of(case, options)
    assert report.clear[-1].rule == "mine.answer"
    assert untold(report)["plugin.lost.lost"].endswith("ZeroDivisionError: division by zero")
