"""`diag probe run`: measures reference workloads and shows where they stand under the ceilings of this machine."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diag.cli import probe_options
from diag.cli.choices import DeviceChoice, TextOrJson
from diag.cli.opening import opened
from diag.cli.probe_options import ScaleChoice
from diag.cli.signals import ENDING
from diag.cli.terminal import StatusLine, braille, color, note, width, write

if TYPE_CHECKING:
    from diag.model.benchmark import Measurement
    from diag.probes.probe import Scale
    from diag.probes.runs import Run
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.report import Report

MOST_ROWS = 200
"""Of the table: whoever ran a probe wants to see it."""


def run(
    names: probe_options.Probes,
    device: probe_options.Device = DeviceChoice.AUTO,
    dtype: probe_options.Dtype = None,
    variant: probe_options.Variant = None,
    scale: probe_options.Scale = ScaleChoice.SMALL,
    shape: probe_options.Shape = None,
    output: probe_options.Output = None,
    with_report: probe_options.WithReport = False,
    ceilings: probe_options.Ceilings = None,
    ranks: probe_options.Ranks = None,
    trace: probe_options.TraceFolder = None,
    late_rank: probe_options.LateRank = None,
    late_ms: probe_options.LateMs = None,
    output_format: probe_options.OutputFormat = TextOrJson.TEXT,
) -> None:
    """Measure reference workloads, and show how near each comes to the ceilings of this machine.

    Probes of several ranks start them here, and show times, bandwidths and what ranks say to each other. On several
    machines: torchrun ... -m diag.probes.collective NAME -o FILE

    Example: diag probe run vector_add gemm
    Example: diag probe run all --scale full -o probes.json --report
    Example: diag probe run gemm --dtype bf16 --shape M=512,N=512,K=64
    Example: diag probe run all_reduce data_parallel --ranks 4

    Exit status 3: PyTorch is missing, or the output cannot be written.
    Environment: DIAG_CEILINGS, NO_COLOR, TMPDIR
    See also: docs/probes.md, docs/collective-probes.md, diag calibrate, diag probe list
    """
    from diag.cli.ceilings import chosen
    from diag.cli.probe_ranks import Ranks, is_of_ranks, refuse, run_on_ranks
    from diag.ingest.calibrations import check_target
    from diag.probes import machine
    from diag.probes.catalogue import named
    from diag.probes.runs import Wish, parsed_dtype, parsed_shape, runs_of
    from diag.rules.analysis import AnalysisOptions

    # Told at once, and not when everything has been measured.
    sizes, kind = parsed_shape(shape) if shape is not None else {}, parsed_dtype(dtype) if dtype is not None else None
    on_ranks = Ranks(ranks, trace, late_rank, late_ms)
    if on_ranks.are_asked_for or is_of_ranks(names):
        refuse(dtype=dtype, report=with_report or None, ceilings=ceilings)
        run_on_ranks(names, scale.value, variant, sizes, on_ranks, device, output, output_format)
        return
    probes = named(names)
    asked = AnalysisOptions(ceilings=chosen(ceilings))
    if output is not None:
        check_target(output, "measurements")
    where = machine.device_of(device.value)
    runs = runs_of(probes, Wish(where, scale.value, kind, variant, sizes), machine.cache_bytes(where), note)
    result, traced = _results(runs, scale.value, output, asked, with_report=with_report)
    write(_rendered(result, traced, output_format, with_report))


def _results(
    runs: Sequence[Run], scale: Scale, output: Path | None, options: AnalysisOptions, *, with_report: bool
) -> tuple[Report, Mapping[str, Report]]:
    """A report on the measurements, and one on the trace of each probe where they are asked for."""
    with tempfile.TemporaryDirectory(prefix="diag-") as folder, StatusLine() as status:
        file = output or Path(folder) / "probes.benchmark.json"
        measured = _measured(runs, scale, file, output, status)
        traced = _traced(_one_of_each(runs, measured), Path(folder), output, options, status) if with_report else {}
        return _report_on(file, options, status), traced


def _measured(
    runs: Sequence[Run], scale: Scale, file: Path, output: Path | None, status: StatusLine
) -> Sequence[Measurement]:
    """What was measured, written to the file; whoever interrupts it keeps what was measured until then."""
    from diag.probes.measured import measurements

    done: list[Measurement] = []
    if output is None:
        ENDING.kept = "nothing is kept of a run without -o FILE"
    try:
        for each in measurements(runs, scale, status, note):
            done.append(each)  # noqa: PERF402  # one by one, so that they are there when the next is interrupted
    except KeyboardInterrupt:
        if output is not None and done:
            _write(done, runs, file)
            ENDING.kept = f"what was measured until then is in {output}"
        raise
    _write(done, runs, file)
    return done


def _write(done: Sequence[Measurement], runs: Sequence[Run], file: Path) -> None:
    from diag import __version__
    from diag.ingest import calibrations
    from diag.model.benchmark import Benchmark
    from diag.probes.machine import machine_of

    machine = machine_of(runs[0].setup.device)
    calibrations.write(Benchmark(machine, measurements=done, diag_version=__version__), file)


def _one_of_each(runs: Sequence[Run], measured: Sequence[Measurement]) -> Sequence[Run]:
    """Of each probe the last variant that could be measured, which is the good one."""
    could = {(each.probe, each.variant) for each in measured}
    return list({run.probe.name: run for run in runs if (run.probe.name, run.variant) in could}.values())


def _traced(
    runs: Sequence[Run], folder: Path, output: Path | None, options: AnalysisOptions, status: StatusLine
) -> Mapping[str, Report]:
    """Reports on traces, which lie beside the output where there is one."""
    from diag.probes.traced import record

    reports = {}
    for run in runs:
        status(f"recording {run.name}")
        name = f"{run.probe.name}.pt.trace.json.gz"
        trace = folder / name if output is None else output.with_name(f"{output.stem}-{name}")
        record(run, trace)
        reports[run.name] = _report_on(trace, options, status)
    return reports


def _report_on(file: Path, options: AnalysisOptions, status: StatusLine) -> Report:
    from diag.ingest.importer import ImportOptions
    from diag.rules.stored import report_of

    with opened([file], ImportOptions(), status) as case:
        return report_of(case, options)


def _rendered(result: Report, traced: Mapping[str, Report], output_format: TextOrJson, with_report: bool) -> str:
    from diag.render.json_report import document, plain, render_json
    from diag.render.probe_traces import render_traces
    from diag.render.text import render_text

    if output_format is TextOrJson.JSON:
        if not with_report:
            return render_json(result)
        whole = {
            "schema": "diag.probe/1",
            "report": document(result),
            "traces": {name: document(each) for name, each in traced.items()},
        }
        return json.dumps(plain(whole), indent=2, allow_nan=False) + "\n"
    text = render_text(result, width=width(), color=color(), braille=braille(), top=MOST_ROWS)
    return f"{text}\n{render_traces(traced, width())}" if with_report else text
