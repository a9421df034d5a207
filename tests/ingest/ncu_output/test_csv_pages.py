"""CSV of ncu, as it lies in files that people saved."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from diag.ingest.launch_records import OpenRange, RuleResult
from tests.ingest.ncu_output.pages import (
    DETAILS,
    IDENTITY,
    SAXPY,
    details,
    figure,
    identity,
    launches,
    message,
    metric,
    row,
    told,
    values,
)

TIME = figure("gpu__time_duration.sum", "ns", "1,127,392")
BYTES = figure("dram__bytes.sum", "Mbyte", "123.46")
TWO = details(TIME, BYTES, rules=False)


def raw(*lines: str) -> str:
    units = row(*[""] * len(IDENTITY), "ns", "Mbyte")
    return "\n".join([row(*IDENTITY, "gpu__time_duration.sum", "dram__bytes.sum"), units, *lines]) + "\n"


def test_a_launch(tmp_path: Path) -> None:
    (launch,) = launches(TWO, tmp_path)
    assert (launch.kind, launch.name, launch.short_name) == ("kernel", SAXPY, "saxpy")
    assert (launch.pid, launch.process_name, launch.context, launch.stream) == (101, "train", 1, 7)
    assert (launch.grid, launch.block, launch.device) == ((64, 2, 1), (256, 1, 1), 0)
    assert launch.measured_on is not None
    assert launch.measured_on.compute_capability == (8, 0)
    assert values(launch) == {"gpu__time_duration.sum": 1_127_392, "dram__bytes.sum": 123_460_000.0}
    assert metric(launch, "dram__bytes.sum").unit == "byte"


def test_the_raw_page_says_the_same(tmp_path: Path) -> None:
    content = raw(row(*identity(), "1,127,392", "123.46"))
    assert launches(content, tmp_path) == launches(TWO, tmp_path)


@pytest.mark.parametrize(
    "saved",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),  # PowerShell
        lambda text: text.encode("utf-16-le"),
        lambda text: text.rstrip("\n").encode(),
        lambda text: ('==PROF== Connected to process 101\nloss: 3, "best"\n' + text).encode(),
        lambda text: (text + "==PROF== Disconnected from process 101\ndone\n").encode(),
        lambda text: text.replace('\n"0"', '\nstep 1, "a"\n"0"').encode(),
        lambda text: _quoted_where_needed(text).encode(),
    ],
    ids=["CRLF", "BOM", "UTF-16", "UTF-16 bare", "no end", "log before", "log behind", "log between", "few quotes"],
)
def test_however_it_was_saved(saved: Callable[[str], bytes], tmp_path: Path) -> None:
    name = "saxpy(int, float)"
    content = details(
        figure("gpu__time_duration.sum", "ns", "1127392", name=name),
        figure("dram__bytes.sum", "Mbyte", "123.46", name=name),
        rules=False,
    )
    (launch,) = launches(saved(content), tmp_path)
    assert values(launch) == {"gpu__time_duration.sum": 1_127_392, "dram__bytes.sum": 123_460_000.0}
    assert launch.short_name == "saxpy"
    assert launch.grid == (64, 2, 1)


def _quoted_where_needed(text: str) -> str:
    """As pandas would save it again."""
    again = io.StringIO()
    csv.writer(again, lineterminator="\n").writerows(csv.reader(io.StringIO(text)))
    return again.getvalue()


def test_saved_again_by_a_german_spreadsheet(tmp_path: Path) -> None:
    content = ";".join(DETAILS) + "\n" + ";".join(map(str, [*identity(), "S", "dram__bytes.sum", "Mbyte", "1.123,46"]))
    (launch,) = launches(content, tmp_path)
    assert values(launch) == {"dram__bytes.sum": 1_123_460_000.0}
    assert launch.block == (256, 1, 1)


@pytest.mark.parametrize("name", ['print<"a,b">(int, char)', "two(int,\n float)", "julia[a, b](Array<1, C>, long)"])
def test_names_that_are_not_escaped(name: str, tmp_path: Path) -> None:
    lines = [figure("gpu__time_duration.sum", "ns", "5", name=name), figure("dram__bytes.sum", "byte", "6", name=name)]
    (launch,) = launches(details(*lines), tmp_path)
    assert launch.name == name
    assert values(launch) == {"gpu__time_duration.sum": 5, "dram__bytes.sum": 6}


def test_launches_of_several_processes_and_devices(tmp_path: Path) -> None:
    content = raw(
        row(*identity(0), "10", "1.00"),
        row(*identity(1, pid=202, device=1, cc="9.0"), "20", "2.00"),
        row(*identity(2, pid=202, device=1, cc="9.0"), "30", "3.00"),
    )
    read = launches(content, tmp_path)
    assert [(launch.pid, launch.device) for launch in read] == [(101, 0), (202, 1), (202, 1)]
    assert [launch.measured_on and launch.measured_on.compute_capability for launch in read] == [(8, 0), (9, 0), (9, 0)]


def test_two_runs_in_one_file(tmp_path: Path) -> None:
    again = details(figure("gpu__time_duration.sum", "ns", "7"), rules=False)
    assert [values(launch)["gpu__time_duration.sum"] for launch in launches(TWO + again, tmp_path)] == [1_127_392, 7]


def test_units_of_each_run_are_its_own(tmp_path: Path) -> None:
    other = raw(row(*identity(), "5", "1.50")).replace('"ns","Mbyte"', '"us","Gbyte"')
    first, second = launches(raw(row(*identity(), "5", "1.50")) + other, tmp_path)
    assert values(first) == {"gpu__time_duration.sum": 5, "dram__bytes.sum": 1_500_000.0}
    assert values(second) == {"gpu__time_duration.sum": 5_000, "dram__bytes.sum": 1_500_000_000.0}


def test_what_rules_said(tmp_path: Path) -> None:
    content = details(
        TIME,
        message("SpeedOfLight", "SOLBottleneck", "OPT", 'Look at "Memory".', "global", "45.14"),
        message("SpeedOfLight", "SOLBottleneck", "INF", "It\nhas two lines.", "", ""),
        message("Occupancy", "Occupancy", "WRN", "Slow.", "local", "none"),
    )
    (launch,) = launches(content, tmp_path)
    first, second, third = launch.rules
    message_of = partial(RuleResult, "SOLBottleneck", "SpeedOfLight", name=None, title=None)
    assert first == message_of(
        type="optimization", message='Look at "Memory".', speedup_pct=45.14, speedup_kind="global"
    )
    assert second == message_of(type="ok", message="It\nhas two lines.")
    assert (third.type, third.speedup_pct) == ("warning", None)


def test_rows_of_rules_belong_to_their_launch(tmp_path: Path) -> None:
    """ncu 2022.3 writes the context in the place of the stream there."""
    rule = message("SpeedOfLight", "SOLBottleneck", "INF", "Well.").replace('"1","7"', '"1","1"')
    (launch,) = launches(details(TIME, rule, BYTES), tmp_path)
    assert len(launch.rules) == 1
    assert launch.stream == 7


def test_ranges(tmp_path: Path) -> None:
    columns = (
        "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
        "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    )
    pushed = (
        '303  ""<default domain>:step 3:Uint64:42:RGB:0xff00ff00:ASCII:step 3""  '
        '""<default domain>:layer: attention:none:none:none:none:none:none""  '
        '""NCCL:all, "reduce":none:none:none:none:none:none"" '
    )
    started = ' ""3:NCCL:epoch 1:none:none:none:none:none:none"" '
    header = row(*DETAILS[:4], *columns, *DETAILS[4:])
    fields = identity()
    line = row(*fields[:4], pushed, started, *fields[4:], "Command line profiler metrics", "inst_executed", "inst", "5")
    (launch,) = launches(f"{header}\n{line}\n", tmp_path)
    assert launch.tid == 303
    assert launch.ranges == [
        OpenRange(0, "push", "<default domain>", "step 3"),
        OpenRange(1, "push", "<default domain>", "layer: attention"),
        OpenRange(0, "push", "NCCL", 'all, "reduce"'),
        OpenRange(0, "start", "NCCL", "epoch 1"),
    ]
    assert values(launch) == {"inst_executed": 5}


def test_a_measured_range(tmp_path: Path) -> None:
    """Its stream and sizes are none."""
    line = row(
        0, 101, "train", "127.0.0.1", "range", 1, "n/a", "n/a", "n/a", 0, "8.0", "S", "dram__bytes.sum", "byte", 5
    )
    (launch,) = launches(details(line), tmp_path)
    assert (launch.kind, launch.short_name, launch.stream, launch.grid) == ("range", None, None, None)


def test_a_summary(tmp_path: Path) -> None:
    header = [*IDENTITY[1:5], "Block Size", "Grid Size", "Device", "CC", "Invocations", "Section Name", "Metric Name"]
    header += ["Metric Unit", "Minimum", "Maximum", "Average"]
    shared = (
        101,
        "train",
        "127.0.0.1",
        SAXPY,
        "(256, 1, 1)",
        "(64, 2, 1)",
        0,
        "8.0",
        14,
        "GPU Speed Of Light Throughput",
    )
    content = "\n".join([row(*header), row(*shared, "Duration", "us", "1.00", "3.00", "2.50")])
    (launch,) = launches(content, tmp_path)
    assert values(launch) == {"gpu__time_duration.sum": 2_500.0}
    assert launch.grid == (64, 2, 1)
    assert "This is a summary" in told(content, tmp_path)


# ---- what a page does not have -------------------------------------------------------------------------------------


def test_what_was_not_collected_is_not_there(tmp_path: Path) -> None:
    content = details(TIME, figure("l2__throughput.avg", "", "(!) n/a"), figure("dram__bytes.sum", "byte", "no data"))
    (launch,) = launches(content, tmp_path)
    assert values(launch) == {"gpu__time_duration.sum": 1_127_392, "dram__bytes.sum": None}
    assert "ncu had no value for l2__throughput.avg." in told(content, tmp_path)


def test_zeros_of_a_launch_that_takes_no_time_are_no_figures(tmp_path: Path) -> None:
    """ncu 2022.3 prints so on the raw page what the report has no number for."""
    (launch,) = launches(raw(row(*identity(), "0.000000", "0.000000")), tmp_path)
    assert values(launch) == {"gpu__time_duration.sum": None, "dram__bytes.sum": None}
    (launch,) = launches(raw(row(*identity(), "1,127,392", "0.000000")), tmp_path)
    assert values(launch) == {"gpu__time_duration.sum": 1_127_392, "dram__bytes.sum": 0}


def test_labels_that_are_not_known_are_kept_and_told(tmp_path: Path) -> None:
    content = details(figure("Wonder of Tomorrow", "%", "12.50", section="Tomorrow"))
    (launch,) = launches(content, tmp_path)
    assert values(launch) == {"Wonder of Tomorrow": 12.5}
    assert metric(launch, "Wonder of Tomorrow").unit == "%"
    assert "kept under them: Wonder of Tomorrow." in told(content, tmp_path)


def test_rounded_figures_are_told(tmp_path: Path) -> None:
    assert "--print-units base keeps their digits" in told(TWO, tmp_path)
    assert "rounded" not in told(details(TIME), tmp_path)


def test_that_a_page_has_few_metrics_is_told(tmp_path: Path) -> None:
    assert "What rules miss may be on the raw page" in told(TWO, tmp_path)
    assert "What rules miss" not in told(raw(row(*identity(), "5", "1.50")), tmp_path)


def test_what_ncu_complained_about_is_told(tmp_path: Path) -> None:
    content = "==WARNING== No source files were imported.\n" + TWO
    assert "ncu said: No source files were imported." in told(content, tmp_path)


# ---- damage --------------------------------------------------------------------------------------------------------


def test_a_file_that_ends_in_a_row(tmp_path: Path) -> None:
    (launch,) = launches(TWO[:-12], tmp_path)
    assert values(launch) == {"gpu__time_duration.sum": 1_127_392}
    assert "ends in the middle of a line" in told(TWO[:-12], tmp_path)


def test_rows_with_too_many_fields_are_left_out(tmp_path: Path) -> None:
    content = details(TIME, f'{BYTES},"1","2"', rules=False)
    (launch,) = launches(content, tmp_path)
    assert list(values(launch)) == ["gpu__time_duration.sum"]
    assert "1 rows do not fit" in told(content, tmp_path)


def test_a_row_that_is_cut_takes_no_other_with_it(tmp_path: Path) -> None:
    content = TWO.replace('"1,127,392"', '"1,12')
    (launch,) = launches(content, tmp_path)
    assert values(launch) == {"dram__bytes.sum": 123_460_000.0}
    assert "1 rows do not fit" in told(content, tmp_path)


def test_shifted_columns_of_a_summary(tmp_path: Path) -> None:
    """What ncu 2022.3 writes of device attributes per GPU has fewer fields than columns."""
    header = row("Process ID", "Process Name", "Host Name", "Device Id", "Kernel Name", "Block Size", "Grid Size",
                 "Invocations", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average")  # fmt: skip
    shifted = row("", "", "354", "0", "device__attribute_x", "", "", "", "0", "0", "", "", "")
    whole = row(101, "train", "127.0.0.1", 0, SAXPY, 256, 64, 1, "dram__bytes.sum", "byte", 1, 3, 2)
    (launch,) = launches("\n".join([header, shifted, whole]), tmp_path)
    assert values(launch) == {"dram__bytes.sum": 2}
