"""Readers of plug-ins: they read what diag does not know, and a broken one says so and takes nothing down."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag import plugins
from diag.doctor import plugins as doctor
from diag.doctor.file import about
from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.inputs import find_inputs, kinds
from tests.plugins.conftest import Install
from tests.plugins.packages import READER, with_reader, with_rule

EXAMPLES = Path(__file__).parents[2] / "examples/data"
GREEDY = READER.replace('head.startswith(b"# counts")', "True").replace('"counts"', '"greedy"')
LAST_STEP = 'case.finish_source(source, {"count": 1})'


def test_a_file_that_only_a_plugin_knows_is_read(install: Install, counts: Path) -> None:
    install(with_reader())
    assert detect(counts) == "counts"
    with open_inputs([counts], ImportOptions(use_cache=False)) as case:
        assert [(source.kind, source.capabilities) for source in case.sources] == [("counts", {"count": 1})]
    assert kinds(find_inputs([counts.parent])) == "1 file of counts"
    assert about(counts).said.startswith("a file of counts, which the plug-in mine (mine 1.0) reads, 11 B; ")


def test_without_it_the_file_is_unknown(install: Install, counts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.SWITCH, "0")
    install(with_reader())
    with pytest.raises(InputError, match="of a kind that diag does not know"):
        detect(counts)


def test_what_diag_knows_stays_its_own(install: Install, counts: Path) -> None:
    traces = sorted(EXAMPLES.glob("*.json.gz"))
    install(with_reader(GREEDY))
    assert [detect(trace) for trace in traces] == ["kineto"] * 2
    assert detect(counts) == "greedy"


def test_no_plugin_is_loaded_for_a_file_that_diag_knows(install: Install) -> None:
    install(with_reader("raise SystemExit"))
    with open_inputs([EXAMPLES / "synthetic-training.pt.trace.json.gz"], ImportOptions(use_cache=False)) as case:
        assert len(case.sources) == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("raise SystemExit", "SystemExit"),
        ("READER = 3", "TypeError: mine.reader:READER is no diag.ingest.reader.Reader"),
        ("", "AttributeError: module 'mine.reader' has no attribute 'READER'"),
        (READER.replace('"counts"', '"kineto"'), "ValueError: files of the kind kineto have a reader already"),
        (READER.replace('"counts"', '"case"'), "ValueError: files of the kind case have a reader already"),
        (READER.replace('"counts"', '"My Counts"'), "ValueError: 'My Counts' is no kind"),
    ],
)
def test_one_that_cannot_be_loaded_is_told_where_a_file_is_unknown(
    install: Install, counts: Path, code: str, said: str
) -> None:
    install(with_reader(code))
    with pytest.raises(InputError) as raised:
        detect(counts)
    assert f"The plug-in mine (mine 1.0) failed: {said}" in str(raised.value)
    install(with_reader(code), with_reader(module="whole"))
    assert detect(counts) == "counts"


def test_one_that_fails_over_the_beginning_of_a_file_is_passed_over(install: Install, counts: Path) -> None:
    broken = READER.replace("return head", "raise ValueError('odd'); return head").replace('"counts"', '"odd"')
    install(with_reader(broken))
    with pytest.raises(InputError, match=r"does not know, and the plug-in mine \(mine 1\.0\) failed: ValueError: odd"):
        detect(counts)
    install(with_reader(broken), with_reader(module="whole"))
    assert detect(counts) == "counts"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("case.insert('nowhere', [{'a': 1}])", "OperationalError: no such table: nowhere"),
        ("with case.transaction(): pass", "OperationalError: cannot start a transaction within a transaction"),
        ("case.db.execute('DELETE FROM source')", "ValueError: it has to add one source, with the kind and path of"),
        ("case.db.execute(\"UPDATE source SET kind = 'kineto'\")", "ValueError: it has to add one source"),
    ],
)
def test_one_that_fails_over_a_file_is_named(install: Install, counts: Path, step: str, said: str) -> None:
    install(with_reader(READER.replace(LAST_STEP, step)))
    with pytest.raises(InputError) as raised, open_inputs([counts], ImportOptions(use_cache=False)):
        pass
    message = str(raised.value)
    assert message.startswith(f"{counts} cannot be read: the plug-in mine (mine 1.0) failed: {said}")
    assert message.endswith("Tell its authors, or do without plug-ins: DIAG_PLUGINS=0")


def test_what_is_wrong_with_a_file_is_said_in_the_words_of_the_reader(install: Install, counts: Path) -> None:
    step = "from diag.errors import InputError; raise InputError('Count again.')"
    install(with_reader(READER.replace(LAST_STEP, step)))
    with pytest.raises(InputError, match=r"\ACount again\.\Z"), open_inputs([counts], ImportOptions(use_cache=False)):
        pass


@pytest.mark.parametrize(
    "rows",
    [
        "'counter', [{'series_id': 7, 'time_ns': 0, 'value': 1.0}]",
        "'gpu_op', [{'source_id': source, 'process_id': 1, 'device': 0, 'kind': 'kernel', 'start_ns': 1, 'end_ns': 0}]",
    ],
)
def test_rows_that_do_not_fit_are_refused(install: Install, counts: Path, rows: str) -> None:
    install(with_reader(READER.replace(LAST_STEP, f"{LAST_STEP}; case.insert({rows})")))
    with (
        pytest.raises(InputError, match=r"holds rows that do not fit after the plug-in mine \(mine 1\.0\) has read"),
        open_inputs([counts], ImportOptions(use_cache=False)),
    ):
        pass


def test_another_version_reads_anew(install: Install, counts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = counts.parent / "cache"
    monkeypatch.setenv("DIAG_CACHE", os.fspath(cache))
    for version, n_cases in (("1.0", 1), ("1.0", 1), ("1.1", 2)):
        install(with_reader(version=version))
        with open_inputs([counts], ImportOptions()):
            assert len(list(cache.glob("*.diag"))) == n_cases


def test_the_doctor_lists_them(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install(with_reader(), with_rule(module="judges"), with_reader("1 / 0", module="broken"))
    assert [(check.name, check.state, check.said) for check in doctor.checks()] == [
        (
            "broken (broken 1.0)",
            "limited",
            "the plug-in broken (broken 1.0) failed: ZeroDivisionError: division by zero",
        ),
        ("mine (mine 1.0)", "ok", "reads a file of counts (counts)"),
        ("judges (judges 1.0)", "ok", "has rules (judges.rules), which diag explain lists"),
    ]
    install()
    monkeypatch.setenv(plugins.SWITCH, "0")
    plugins.installed.cache_clear()
    assert [check.said for check in doctor.checks()] == ["switched off by DIAG_PLUGINS=0"]
