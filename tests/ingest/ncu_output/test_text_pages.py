"""The pages that ncu prints for people, in the layouts of old and new versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.ingest.launch_records import OpenRange, RuleResult
from tests.ingest.ncu_output.pages import SAXPY, launches, metric, told, values

NEW = f"""\
==PROF== Connected to process 101 (/home/user/train)
==PROF== Profiling "saxpy" - 0: 0%
==WARNING== Launching the workload is taking more time than expected.
....50%....100% - 9 passes
loss 0.5
==PROF== Disconnected from process 101
[101] train@127.0.0.1
  {SAXPY} (64, 2, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Ghz         1.21
    Duration                         us       205.22
    Elapsed Cycles                cycle      307,595
    ----------------------- ----------- ------------

    OPT   Est. Local Speedup: 31.65%
          On average, each warp waits for something that is
          told on two lines.

    INF   All is well.

    Section: Memory Workload Analysis
    ----------------------------------- ----------- ------------
    Metric Name                         Metric Unit Metric Value
    ----------------------------------- ----------- ------------
    Memory Throughput                       Gbyte/s       425.29
    lts__t_sectors_hit_rate.pct                          (!) n/a
    ----------------------------------- ----------- ------------

    Section: A section without a table
    WRN   Metrics are missing.

  gemm (1, 1, 1)x(32, 1, 1), Context 1, Stream 13, Device 1, CC 9.0
    Section: Command line profiler metrics
    ------------------------ ----------- ------------
    Metric Name              Metric Unit Metric Value
    ------------------------ ----------- ------------
    inst_executed                   inst            5
    ------------------------ ----------- ------------

[202] worker@127.0.0.1
  range, Context 1, Device 0, CC 8.0
    Section: Command line profiler metrics
    ------------------------ ----------- ------------
    Metric Name              Metric Unit Metric Value
    ------------------------ ----------- ------------
    inst_executed                   inst            6
    ------------------------ ----------- ------------

"""


def test_a_page_of_several_launches(tmp_path: Path) -> None:
    saxpy, gemm, measured = launches(NEW, tmp_path, "page.txt")
    assert (saxpy.name, saxpy.short_name, saxpy.pid, saxpy.process_name) == (SAXPY, "saxpy", 101, "train")
    assert (saxpy.grid, saxpy.block, saxpy.device) == ((64, 2, 1), (256, 1, 1), 0)
    assert values(saxpy) == {
        "dram__cycles_elapsed.avg.per_second": 1_210_000_000.0,
        "gpu__time_duration.sum": 205_220.0,
        "gpc__cycles_elapsed.max": 307_595,
        "dram__bytes.sum.per_second": 425_290_000_000.0,
    }
    assert metric(saxpy, "gpu__time_duration.sum").unit == "ns"
    assert (gemm.name, gemm.stream, gemm.device, values(gemm)) == ("gemm", 13, 1, {"inst_executed": 5})
    assert gemm.measured_on is not None
    assert gemm.measured_on.compute_capability == (9, 0)
    assert (measured.kind, measured.pid, measured.stream, values(measured)) == (
        "range",
        202,
        None,
        {"inst_executed": 6},
    )


def test_what_rules_said(tmp_path: Path) -> None:
    saxpy, *_ = launches(NEW, tmp_path, "page.txt")
    first, second, third = saxpy.rules
    assert first == RuleResult(
        rule="",
        section="SpeedOfLight",
        name="a rule of GPU Speed Of Light Throughput",
        type="optimization",
        title=None,
        message="On average, each warp waits for something that is told on two lines.",
        speedup_pct=31.65,
        speedup_kind="local",
    )
    assert (second.type, second.message) == ("ok", "All is well.")
    assert (third.type, third.section, third.message) == (
        "warning",
        "A section without a table",
        "Metrics are missing.",
    )


def test_what_is_told(tmp_path: Path) -> None:
    said = told(NEW, tmp_path, "page.txt")
    assert "ncu said: Launching the workload is taking more time than expected." in said
    assert "ncu had no value for lts__t_sectors_hit_rate.pct." in said


def test_other_indentation(tmp_path: Path) -> None:
    """As people paste it."""
    content = "\n".join(line.strip() for line in NEW.splitlines())
    assert [values(launch) for launch in launches(content, tmp_path, "page.txt")] == [
        values(launch) for launch in launches(NEW, tmp_path, "other.txt")
    ]


OLD = """\
[101] train@127.0.0.1
  void print<"a,b">(int,
 float), 2023-Nov-14 22:13:20, Context 1, Stream 7

    NVTX Start/End Ranges:
      NCCL
        <3,epoch 1>

    NVTX Push/Pop Stack for Thread 303:
     <default domain>
        <0,step 3>
          Uint64: 42
          RGB: 0xff00ff00
        <1,layer <a>>
    Section: GPU Speed Of Light Throughput
    -------------------------------- --------------- -------------
    Duration                                 usecond        993.02
    {UNIT}: (lts__t_sectors.avg.pct_                %          4.61
    of_peak_sustained_elapsed)
    inst_executed                               inst     1,254
                                                     (1,000; 250;
                                                                4)
    -------------------------------- --------------- -------------
    WRN   First.
    ----- --------------------------------------------------------
          Second, which has no mark.
    >     Metric: sm__throughput.avg.pct_of_peak_sustained_elapsed
          Value : 51.659003

"""


def test_the_layout_of_2022(tmp_path: Path) -> None:
    (launch,) = launches(OLD, tmp_path, "page.txt")
    assert (launch.name, launch.short_name, launch.tid) == ('void print<"a,b">(int,\n float)', "print", 303)
    assert values(launch) == {
        "gpu__time_duration.sum": 993_020.0,
        "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 4.61,
        "inst_executed": 1_254,
    }
    assert [part.value for part in metric(launch, "inst_executed").instances] == [1_000, 250, 4]
    assert [(rule.type, rule.message) for rule in launch.rules] == [
        ("warning", "First."),
        ("info", "Second, which has no mark."),
    ]
    assert launch.ranges == [
        OpenRange(0, "start", "NCCL", "epoch 1"),
        OpenRange(0, "push", "<default domain>", "step 3"),
        OpenRange(1, "push", "<default domain>", "layer <a>"),
    ]
    assert launch.device is None
    assert "does not say on which device" in told(OLD, tmp_path, "page.txt")


SUMMARY = """\
[101] train@127.0.0.1
  Device 1
    saxpy, Block Size 256, Grid Size 64, 14 invocations
      Section: GPU Speed Of Light Throughput
      Metric Name            Metric Unit Minimum      Maximum      Average
      ---------------------- ----------- ------------ ------------ ------------
      gpu__time_duration.sum usecond     1.000000     3.000000     2.500000

    saxpy, Block Size 256, Grid Size 64, 14 invocations
      Section: Launch Statistics
      Metric Name            Metric Unit Minimum      Maximum      Average
      ---------------------- ----------- ------------ ------------ ------------
      launch__grid_size                  64           64           64

"""


def test_a_summary_names_the_kernel_above_each_section(tmp_path: Path) -> None:
    (launch,) = launches(SUMMARY, tmp_path, "page.txt")
    assert values(launch) == {"gpu__time_duration.sum": 2_500.0, "launch__grid_size": 64}
    assert launch.device == 1
    assert "This is a summary" in told(SUMMARY, tmp_path, "page.txt")


@pytest.mark.parametrize("tenths", range(3, 10))
def test_a_page_that_ends_early_has_what_was_printed_whole(tenths: int, tmp_path: Path) -> None:
    content = NEW[: len(NEW) * tenths // 10]
    whole = [values(launch) for launch in launches(NEW, tmp_path, "whole.txt")]
    cut = [values(launch) for launch in launches(content, tmp_path, "cut.txt")]
    assert cut[:-1] == whole[: len(cut) - 1]
    assert cut[-1].items() <= whole[len(cut) - 1].items()
    assert ("ends in the middle of a line" in told(content, tmp_path, "cut.txt")) == (content[-1] != "\n")
