"""The Prometheus page: read back by a parser of the text format 0.0.4, whatever names are called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from diag.model.live_run import LiveRun
from diag.render.live_prometheus import GPU, MOST_PROCESSES, PROCESS, RECORD, VIEW, render_live_prometheus
from diag.render.live_untold import RecordRow
from diag.render.live_view import view_of
from tests.render.live_moments import EPOCH_NS, GB, HOSTILE, S, answers, gpu, hostile_run, process, run, snapshot

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|(?=}))')
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


UNITS = {"seconds", "bytes", "celsius", "watts", "hertz", "ratio"}
ABBREVIATED = {
    "s",
    "ms",
    "us",
    "ns",
    "sec",
    "b",
    "kb",
    "mb",
    "gb",
    "h",
    "m",
    "d",
    "pct",
    "percent",
    "mhz",
    "hz",
    "w",
    "c",
}
RESERVED = ("_count", "_sum", "_bucket", "_info", "_created")


def parsed(page: str) -> Samples:
    """Samples by name and labels, by the grammar of Prometheus, "Exposition formats", text-based format.

    Names and helps are held to what `promtool check metrics` complains of, too.
    """
    assert page.endswith("\n")
    kinds: dict[str, str] = {}
    helped: list[str] = []
    samples: Samples = {}
    for line in page.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            _, _, name, said = line.split(" ", 3)
            assert said
            assert name not in helped
            helped.append(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("gauge", "counter")
            assert name not in kinds, "a family stands in one piece"
            assert helped[-1] == name, "its help comes first"
            kinds[name] = kind
            lint(name)
        else:
            name, labels, value = sample(line)
            assert list(kinds)[-1] == name
            assert (kinds[name] == "counter") == name.endswith("_total")
            key = (name, frozenset(labels.items()))
            assert key not in samples
            samples[key] = float(value)
    return samples


def lint(name: str) -> None:
    """Prometheus, "Metric and label naming", and the rules of promtool."""
    words = name.split("_")
    assert name == name.lower()
    assert ":" not in name
    assert not ABBREVIATED & set(words), "a unit is written out, and is a base unit"
    assert not {"gauge", "counter"} & set(words)
    assert not name.endswith(RESERVED)
    units = [at for at, word in enumerate(words) if word in UNITS]
    after = words[units[0] + 1 :] if units else []
    assert after in ([], ["total"], ["per", "second"]), "the unit comes last"


def sample(line: str) -> tuple[str, Mapping[str, str], str]:
    match = NAME.match(line)
    assert match is not None, line
    name, rest = match[0], line[match.end() :]
    labels: dict[str, str] = {}
    if rest.startswith("{"):
        at = 1
        while rest[at] != "}":
            label = LABEL.match(rest, at)
            assert label is not None, rest[at:]
            unescaped = re.sub(r"\\(.)", lambda each: {"n": "\n"}.get(each[1], each[1]), label[2])
            labels[label[1]] = unescaped
            at = label.end()
        rest = rest[at + 1 :]
    return name, labels, rest.removeprefix(" ")


def page_of(run: LiveRun, record: RecordRow | None = None) -> Samples:
    return parsed(render_live_prometheus(view_of(run, answers(), record)))


def test_units_are_base_units() -> None:
    values = {name: value for (name, _), value in page_of(run()).items()}
    assert values["diag_gpu_kernel_resident_ratio"] == 0.97
    assert values["diag_gpu_power_watts"] == 182.4
    assert values["diag_gpu_memory_used_bytes"] == 71 * GB
    assert values["diag_gpu_sm_clock_hertz"] == 1.98e9
    assert values["diag_gpu_nvlink_receive_bytes_total"] == 8 * GB
    assert values["diag_gpu_last_xid"] == 79
    assert values["diag_gpu_xid_errors_total"] == 1
    assert values["diag_process_cpu_seconds_total"] == 3.0
    assert values["diag_process_cores"] == 1.5
    assert values["diag_watch_time_seconds"] == EPOCH_NS / S + 2
    assert values["diag_host_cores"] == 2


def test_a_gpu_without_errors_counts_none_so_that_the_first_one_is_a_rise() -> None:
    page = page_of(LiveRun(100, [snapshot(0, [gpu(xid_count=0)])]))
    assert [value for (name, _), value in page.items() if name == "diag_gpu_xid_errors_total"] == [0]


def test_a_record_says_how_full_it_is() -> None:
    page = page_of(run(), RecordRow("night.diag", 4 * GB, is_full=True))
    assert page["diag_watch_record_bytes", frozenset()] == 4 * GB
    assert page["diag_watch_record_full", frozenset()] == 1
    assert not [name for name, _ in page_of(run()) if "record" in name]


def test_labels_say_which() -> None:
    samples = page_of(run())
    gpus = {name: dict(labels) for name, labels in samples if name.startswith("diag_gpu")}
    assert gpus["diag_gpu_power_watts"] == {"gpu": "0", "uuid": "GPU-0", "name": "NVIDIA H200"}
    assert gpus["diag_gpu_clock_reason"]["reason"] == "sw_power_cap"
    findings = [dict(labels) for name, labels in samples if name == "diag_finding"]
    assert findings == [{"rule": "live.thermal", "severity": "critical", "pid": "100", "gpu": "0"}]


def test_what_is_not_known_is_absent() -> None:
    bare = replace(gpu(), power_w=None, resident_pct=0.0)
    names = {name for name, _ in page_of(LiveRun(100, [snapshot(0, [bare])]))}
    assert "diag_gpu_power_watts" not in names
    assert "diag_gpu_kernel_resident_ratio" in names
    assert "diag_process_cores" not in names
    empty = page_of(LiveRun(100, [snapshot(0, [], [])]))
    assert not [name for name, _ in empty if name.startswith(("diag_gpu", "diag_process"))]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_in_their_labels(name: str) -> None:
    page = render_live_prometheus(view_of(hostile_run(name), answers(name)))
    assert all(line.isprintable() for line in page.split("\n"))
    assert page.encode()
    assert parsed(page).keys() >= {("diag_host_cores", frozenset())}
    assert len(page) < 40_000


def test_a_quote_and_a_backslash_come_back_as_they_were() -> None:
    names = {dict(labels)["name"] for name, labels in page_of(hostile_run('quo"te\\n')) if name == "diag_process_cores"}
    assert names == {'quo"te\\n'}


def test_a_crowd_of_processes_is_bounded() -> None:
    processes = [process(0, pid) for pid in range(100, 100 + 3 * MOST_PROCESSES)]
    samples = page_of(LiveRun(100, [snapshot(0, processes=processes)]))
    assert sum(name == "diag_process_threads" for name, _ in samples) == MOST_PROCESSES


def test_every_metric_has_its_line_in_the_documentation() -> None:
    said = (Path(__file__).parents[2] / "docs" / "live" / "watch.md").read_text("utf-8")
    names = [each.name for family in (VIEW, RECORD, GPU, PROCESS) for each in family]
    assert [name for name in (*names, "diag_gpu_clock_reason", "diag_finding") if f"`{name}`" not in said] == []
