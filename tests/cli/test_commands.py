"""What each verb promises: help, streams, statuses, options, the same bytes every time."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import unicodedata
from pathlib import Path

import pytest

from diag.cli.verbs import app
from tests import interruptible
from tests.cli.conftest import DIAG, Command, small_export, snapshot

VERBS = sorted(str(command.name) for command in app.registered_commands)
FORMATS = ("text", "json", "markdown")


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(verb: str, diag: Command) -> None:
    shown = diag(verb, "--help").is_quiet_success()
    assert f"Examples:\n  diag {verb} " in shown or f"Examples:\n  diag {verb}\n" in shown
    assert diag(verb, "-h").is_quiet_success() == shown


def test_help_speaks_no_python(diag: Command) -> None:
    for verb in VERBS:
        assert not re.search("list\\[|<path>|<str>|<int|{", diag(verb, "-h").out)
    assert "report [OPTIONS] INPUT...\n" in diag("report", "-h").out
    assert "query [OPTIONS] CASE [SQL]\n" in diag("query", "-h").out


def test_the_list_of_verbs_is_not_cut(diag: Command) -> None:
    shown = diag("-h").is_quiet_success().partition("Commands:")[2]
    assert "..." not in shown
    assert all(re.search(rf"(?m)^  {verb} ", shown) for verb in VERBS)


def test_a_verb_without_words_shows_its_help(diag: Command) -> None:
    for words in ([], ["report"], ["query"]):
        ran = diag(*words)
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.startswith("Usage: diag")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["nonsense"], "No such command 'nonsense'. Help: diag -h"),
        (["report", "--nonsense"], "--nonsense"),
        (
            ["report", "x", "--format", "xml"],
            "'-f': 'xml' is not one of 'text', 'json', 'markdown', 'html'.",
        ),
        (["report", "x", "--fail-on", "error"], "'error' is not one of 'info', "),
        (["report", "x", "--top", "0"], "'--top': it should be greater than or equal to 1. Help: diag report -h"),
        (["report", "x", "--top", "many"], "'--top': it should be a valid integer. Help: diag report -h"),
        (["report", "x", "--top"], "--top"),
        (["export", "x"], "Missing option '--output' / '-o'. Help: diag export -h"),
        (["query", "x", "y", "z"], "z"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_wrong_words_are_wrong_usage(words: list[str], hint: str, diag: Command) -> None:
    assert hint in " ".join(diag(*words).err.split())
    assert diag(*words).err.count("\n") == 1
    assert (diag(*words).status, diag(*words).out) == (2, "")


@pytest.mark.parametrize("output_format", FORMATS)
def test_nothing_but_text_in_a_pipe(output_format: str, diag: Command, export: Path) -> None:
    shown = diag("report", export, "--format", output_format, env={"FORCE_COLOR": "1"}).is_quiet_success()
    assert "\x1b" not in shown
    assert shown.endswith("\n")
    if output_format == "text":
        assert max(map(_cells, shown.splitlines())) <= 80
    if output_format == "json":
        assert json.loads(shown)["schema"] == "diag.report/1"


def _cells(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def test_a_terminal_has_colours_unless_it_wants_none(diag: Command, export: Path) -> None:
    import pty

    def shown(**env: str) -> bytes:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [DIAG, "report", export], env=diag.environment({"TERM": "xterm", **env}), stdout=theirs, stderr=theirs
        )
        import os

        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            pass
        os.close(ours)
        assert process.wait() == 0
        return b"".join(parts)

    assert b"\x1b[" in shown()
    assert b"\x1b[" not in shown(NO_COLOR="1")
    assert b"\x1b[" not in shown(TERM="dumb")


@pytest.mark.parametrize("output_format", FORMATS)
def test_the_same_bytes_every_time(output_format: str, diag: Command, export: Path, tmp_path: Path) -> None:
    words = ("report", export, "--format", output_format)
    first = diag(*words, env={"PYTHONHASHSEED": "1"}).is_quiet_success()
    assert diag(*words, env={"PYTHONHASHSEED": "2"}).is_quiet_success() == first
    assert diag(*words, "--no-cache", env={"PYTHONHASHSEED": "77"}).is_quiet_success() == first
    fresh = Command(tmp_path / "fresh")
    assert fresh(*words, env={"TZ": "Asia/Tokyo", "LANG": "C", "LC_ALL": "C"}).is_quiet_success() == first


def test_a_stream_that_is_not_utf8(diag: Command, export: Path) -> None:
    for encoding in ("ascii", "latin-1"):
        ran = subprocess.run(
            [DIAG, "report", export],
            env=diag.environment({"PYTHONIOENCODING": encoding}),
            capture_output=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert ran.stdout.decode(encoding)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream(closed: str, diag: Command, export: Path) -> None:
    ran = subprocess.run(
        ["sh", "-c", f'"$0" report "$1" {closed}', DIAG, export],
        env=diag.environment(),
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize(
    "words",
    [("report", "--format", "json"), ("query", "SELECT a.* FROM gpu_op a, gpu_op b", "--format", "csv"), ("explain",)],
    ids=lambda words: words[0],
)
def test_a_reader_who_has_seen_enough(words: tuple[str, ...], diag: Command, export: Path) -> None:
    inputs = [] if words[0] == "explain" else [export]
    process = diag.start(words[0], *inputs, *words[1:])
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


# ---- status --------------------------------------------------------------------------------------------------------


def test_fail_on(diag: Command, export: Path) -> None:
    report = json.loads(diag("report", export, "--format", "json").is_quiet_success())
    severities = ["info", "warning", "critical"]
    worst = max(severities.index(finding["severity"]) for finding in report["findings"])
    for rank, severity in enumerate(severities):
        ran = diag("report", export, "--format", "json", "--fail-on", severity)
        assert ran.status == int(worst >= rank)
        assert json.loads(ran.out) == report
        at_or_above = sum(severities.index(finding["severity"]) >= rank for finding in report["findings"])
        said = f"diag: {at_or_above} finding{'s' if at_or_above > 1 else ''} at or above {severity}.\n"
        assert ran.err == (said if at_or_above else "")
    assert diag("report", export, "--fail-on", "never").status == 0


def test_nothing_could_be_told(diag: Command, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": [], "deviceProperties": []}')
    ran = diag("report", trace, "--format", "json")
    assert ran.status == 4
    assert ran.err.startswith("diag: Nothing could be told")
    assert json.loads(ran.out)["findings"] == []


def test_a_trace_cut_in_the_middle_says_so(diag: Command, tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"op{i}", "ts": 10 * i, "dur": 5, "pid": 1, "tid": 1} for i in range(90)
    ]
    text = json.dumps({"traceEvents": events})
    path = tmp_path / "cut.json"
    path.write_text(text[: len(text) // 2])
    report = json.loads(diag("report", path, "--format", "json").out)
    assert any("cut" in note or "end" in note for note in report["sources"][0]["notes"]), report["sources"]


# ---- scope ---------------------------------------------------------------------------------------------------------


def test_window_and_range(diag: Command, export: Path) -> None:
    whole = json.loads(diag("report", export, "--format", "json").is_quiet_success())
    for words in (("--window", "0us:20us"), ("--range", "step", "--window", ":20us")):
        part = json.loads(diag("report", export, "--format", "json", *words).is_quiet_success())
        assert 0 < part["devices"][0]["n_kernels"] < whole["devices"][0]["n_kernels"]
        assert part["part"]["window"] == [0, 20_000]
        assert 0 < part["part"]["measure_ns"] <= 20_000 < part["part"]["trace_ns"]
        assert "\n  Part: " in diag("report", export, *words).is_quiet_success()
    assert whole["part"] is None


def test_changed_thresholds_are_told(diag: Command, export: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text('["idle.gpu"]\nshare = 0.5\n')
    assert (
        "\n  Thresholds changed: idle.gpu.share 0.02 → 0.5."
        in diag("report", export, "--thresholds", file).is_quiet_success()
    )
    report = json.loads(diag("report", export, "--thresholds", file, "--format", "json").is_quiet_success())
    (changed,) = report["changed_thresholds"]
    assert changed == {"rule": "idle.gpu", "name": "share", "shipped": 0.02, "value": 0.5}


@pytest.mark.parametrize(
    "words",
    [
        ("--window", "5"),
        ("--window", ""),
        ("--window", "2s:1s"),
        ("--window", "1s:1s"),
        ("--window", "-1s:2s"),
        ("--window", "1s:2s:3s"),
        ("--window", "infs:"),
        ("--window", "9" * 400 + "s:"),
        ("--window", "500s:600s"),
        ("--range", "no such range"),
        ("--range", ""),
        ("--thresholds", "none.toml"),
        ("--thresholds", "/"),
        ("--thresholds", "/dev/null/x"),
        ("--max-size", ""),
        ("--max-size", "-1"),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_wrong_scopes_are_wrong_usage(words: tuple[str, ...], diag: Command, export: Path) -> None:
    diag("report", export, *words).is_one_sentence(2)
    assert not diag.leftovers()


@pytest.mark.parametrize(
    "text",
    [
        '["idle.gpu"]\nnone = 1',
        '["idle.gpu"]\nshare = "much"',
        '["no.rule"]\nshare = 1',
        "idle = [",
        "share = 1",
        "\x00",
    ],
)
def test_wrong_thresholds_are_wrong_usage(text: str, diag: Command, export: Path, tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(text)
    diag("report", export, "--thresholds", file).is_one_sentence(2)


def test_thresholds_change_what_fires(diag: Command, export: Path, tmp_path: Path) -> None:
    """The listing is a file to edit and hand back: as it is, it changes nothing; shares out of reach clear rules."""
    before = json.loads(diag("report", export, "--format", "json").is_quiet_success())
    listing = diag("explain", "thresholds").is_quiet_success()
    file = tmp_path / "limits.toml"
    file.write_text(listing)
    assert json.loads(diag("report", export, "--format", "json", "--thresholds", file).out) == before
    file.write_text(re.sub(r"(?m)^share = .*$", "share = 1e9", listing))
    after = json.loads(diag("report", export, "--format", "json", "--thresholds", file).out)
    fired = {finding["rule"] for finding in before["findings"]}
    assert {finding["rule"] for finding in after["findings"]} < fired
    assert {clear["rule"] for clear in after["clear"]} & fired


def test_top(diag: Command, export: Path) -> None:
    assert len(diag("report", export, "--top", "1").out.splitlines()) < len(diag("report", export).out.splitlines())


def test_two_sources_of_two_kinds(diag: Command, export: Path) -> None:
    trace = export.with_name("rank0.json")
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": i, "dur": 1, "pid": 1, "tid": 1} for i in range(50)]
    trace.write_text(json.dumps({"traceEvents": events}))
    for output_format in FORMATS:
        shown = diag("report", export, trace, "--format", output_format).is_quiet_success()
        assert "rank0.json" in shown
        assert "report.sqlite" in shown


# ---- query ---------------------------------------------------------------------------------------------------------


def test_query_formats(diag: Command, export: Path) -> None:
    sql = "SELECT kind, COUNT(*) AS n, NULL AS none, x'00ff' AS raw, 'ä,\"' AS text FROM gpu_op GROUP BY 1 ORDER BY 1"
    rows = json.loads(diag("query", export, sql, "--format", "json").is_quiet_success())
    assert rows[1] == {"kind": "kernel", "n": 40, "none": None, "raw": "00ff", "text": 'ä,"'}
    assert diag("query", export, sql, "--format", "csv").is_quiet_success() == (
        'kind,n,none,raw,text\ncopy,1,,00ff,"ä,"""\nkernel,40,,00ff,"ä,"""\n'
    )
    assert "(2 bytes)" in diag("query", export, sql).is_quiet_success()


def test_query_lists_the_tables_and_the_export(diag: Command, export: Path) -> None:
    listing = diag("query", export).is_quiet_success()
    assert re.search(r"(?m)^gpu_op +41  id, ", listing)
    example = re.search(r'diag query \S+ "(.*)"', listing, re.DOTALL)
    assert example
    assert "gemm_0        14  5600\n" in diag("query", export, example[1]).is_quiet_success()
    tables = json.loads(diag("query", export, "-f", "json").is_quiet_success())
    assert {"table": "thread", "rows": 1} in [{key: table[key] for key in ("table", "rows")} for table in tables]
    sql = "SELECT COUNT(*) FROM source1.CUPTI_ACTIVITY_KIND_KERNEL"
    assert diag("query", export, sql, "-f", "csv").is_quiet_success() == "COUNT(*)\n40\n"
    sql = "SELECT key FROM source, json_each(source.capabilities) WHERE key = 'kernel'"
    assert diag("query", export, sql, "-f", "csv").is_quiet_success() == "key\nkernel\n"
    assert "start_ns" in diag("query", export, "PRAGMA table_info(gpu_op)").is_quiet_success()


def test_query_json_is_json_whatever_the_values(diag: Command, export: Path) -> None:
    sql = "SELECT 9e999 AS a, -9e999 AS a, 1 AS a_2, 9223372036854775807 AS big"
    (row,) = json.loads(diag("query", export, sql, "-f", "json").is_quiet_success(), parse_constant=pytest.fail)
    assert list(row.values()) == ["inf", "-inf", 1, 2**63 - 1]


FORBIDDEN = (
    "DELETE FROM gpu_op",
    "CREATE TEMP TABLE t (a)",
    "ATTACH 'stolen.sqlite' AS stolen",
    "VACUUM INTO 'stolen.sqlite'",
    "PRAGMA journal_mode = WAL",
    "PRAGMA query_only = 0",
    "SELECT load_extension('evil.so')",
    "SELECT 1; DELETE FROM gpu_op",
    "SELEC",
    " -- nothing",
)
FORBIDDEN_TOO = (
    "UPDATE source SET path = ''",
    "INSERT INTO source_note VALUES (1, 'x')",
    "DROP TABLE gpu_op",
    "CREATE TABLE t (a)",
    "DETACH source1",
    "PRAGMA writable_schema = 1",
    "SELECT readfile('/etc/hostname')",
    "SELECT writefile('stolen.txt', 'x')",
    "SELECT * FROM pragma_journal_mode",
    "BEGIN",
    "SELECT * FROM nowhere",
)


@pytest.mark.parametrize("sql", [*FORBIDDEN, *(pytest.param(sql, marks=pytest.mark.slow) for sql in FORBIDDEN_TOO)])
def test_query_only_reads(sql: str, queried: tuple[Command, Path]) -> None:
    diag, export = queried
    before = snapshot(export.parent)
    said = diag("query", export, sql, cwd=export.parent).is_one_sentence(2)
    assert ("read-only here: write one SELECT" in said) or not sql.startswith(("DROP", "DELETE", "UPDATE", "INSERT"))
    assert snapshot(export.parent) == before
    assert len(diag.cases()) == 1, "a wrong query is no reason to throw a case away"


@pytest.fixture(scope="module")
def queried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Command, Path]:
    """An export that is in the cache already."""
    diag = Command(tmp_path_factory.mktemp("cache"))
    export = small_export().write(tmp_path_factory.mktemp("inputs") / "report.sqlite")
    diag("query", export).is_quiet_success()
    return diag, export


def test_an_endless_query_can_be_interrupted(diag: Command, export: Path) -> None:
    diag("query", export).is_quiet_success()
    process = diag.start(
        "query", export, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT COUNT(*) FROM n"
    )
    interruptible.wait_until(lambda: interruptible.has_open(process, ".diag"), process)
    time.sleep(1)  # until it is the query that is interrupted, not what comes before it
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert err == b"diag: interrupted; what was read is kept, and is not read again next time.\n"
    assert len(diag.cases()) == 1


# ---- explain -------------------------------------------------------------------------------------------------------


def test_explain(diag: Command, export: Path) -> None:
    listing = diag("explain").is_quiet_success()
    assert "idle.gpu" in listing
    assert "refute" in diag("explain", "idle.gpu").is_quiet_success().lower()
    report = json.loads(diag("report", export, "--format", "json").is_quiet_success())
    finding = report["findings"][0]["id"]
    explained = diag("explain", finding).is_quiet_success()
    assert diag("explain", finding, export).is_quiet_success() == explained
    assert f"diag explain {finding}" not in explained
    for words in (["F0000000000"], ["F0000000000", export], ["idle"], [""], ["../../etc/passwd"]):
        diag("explain", *words).is_one_sentence(2)
    assert "Did you mean idle.gpu, idle.shared?" in diag("explain", "idle").is_one_sentence(2)
    assert "Did you mean launch.bound?" in diag("explain", "lunch.bound").is_one_sentence(2)
    assert "--window" in diag("explain", finding, "--window", ":1s").is_one_sentence(2)


def test_explain_a_rule_on_inputs(diag: Command, export: Path) -> None:
    rule = diag("explain", "idle.gpu").is_quiet_success()
    report = json.loads(diag("report", export, "--format", "json").is_quiet_success())
    finding = next(finding["id"] for finding in report["findings"] if finding["rule"] == "idle.gpu")
    shown = diag("explain", "idle.gpu", export).is_quiet_success()
    assert shown.startswith(rule.rstrip())
    assert f"[{finding}]" in shown.partition("In these inputs")[2]
    cannot_tell = report["cannot_tell"][0]["rule"]
    assert "cannot tell" in diag("explain", cannot_tell, export).is_quiet_success().partition("In these inputs")[2]


def test_explain_a_finding_of_a_part_that_no_cache_has(diag: Command, export: Path) -> None:
    words = ("--window", "1us:20us")
    report = json.loads(diag("report", export, "--no-cache", "--format", "json", *words).is_quiet_success())
    finding = report["findings"][0]["id"]
    assert "--no-cache" in diag("explain", finding).is_one_sentence(2)
    assert "name that part" in diag("explain", finding, export).is_one_sentence(2)
    diag("explain", finding, export, *words).is_quiet_success()


def test_a_range_that_is_not_there_is_guessed(diag: Command, export: Path) -> None:
    assert "Did you mean 'step'?" in diag("report", export, "--range", "stpe").is_one_sentence(2)
    assert "ends before it starts" in diag("report", export, "--window", "2s:1s").is_one_sentence(2)
    assert "ends where it starts" in diag("report", export, "--window", "1s:1s").is_one_sentence(2)


def test_explain_passes_over_damaged_cases(diag: Command, export: Path) -> None:
    report = json.loads(diag("report", export, "--format", "json").is_quiet_success())
    finding = report["findings"][0]["id"]
    (whole,) = diag.cases()
    (diag.cache / "short.diag").write_bytes(b"SQLite format 3\x00")
    (diag.cache / "torn.diag").write_bytes(whole.read_bytes()[:8192] + bytes(whole.stat().st_size - 8192))
    diag("explain", finding).is_quiet_success()
