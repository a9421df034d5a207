"""`diag calibrate`: measure the ceilings of this machine."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from diag.cli.choices import DeviceChoice, TextOrJson
from diag.cli.signals import ENDING
from diag.cli.terminal import StatusLine, color, note, width, write
from diag.errors import NothingToTell, ToolMissing


def calibrate(
    device: Annotated[
        DeviceChoice, typer.Option(help="What to measure; auto takes the GPU if there is one.")
    ] = DeviceChoice.AUTO,
    quick: Annotated[bool, typer.Option("--quick", help="In 8 s instead of 20, with a larger error.")] = False,
    output_format: Annotated[
        TextOrJson, typer.Option("--format", "-f", help="How to write it; JSON is what is stored.")
    ] = TextOrJson.TEXT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a copy to FILE, for another machine.")
    ] = None,
) -> None:
    """Measure what this machine does at most: memory by level and access, arithmetic by type, launches, links.

    The result is stored, and rooflines of later reports on this device go by it (docs/calibration.md).

    Example: diag calibrate
    Example: diag calibrate --device cpu --quick -o ceilings.json

    Exit status 3: PyTorch is missing, or the result cannot be kept.
    Exit status 4: Other programs disturbed the measurement: nothing is stored.
    Environment: DIAG_CEILINGS, NO_COLOR, TMPDIR
    See also: docs/calibration.md, docs/roofline.md, diag probe run
    """
    if find_spec("torch") is None:
        raise ToolMissing("Calibration runs on PyTorch, which is not installed: pip install 'gpu-diag[probes]'")
    from diag.ingest import calibrations
    from diag.model.benchmark import encoded
    from diag.render.calibration import render_calibration

    calibrations.check_store()
    if output is not None:
        calibrations.check_target(output, "ceilings")
    ENDING.kept = "nothing was stored, and an earlier calibration stands as it was"
    with StatusLine() as status:
        status("loading PyTorch")
        from diag.probes.calibration import calibrate as calibration

        wanted = calibration.present() if device is DeviceChoice.AUTO else calibration.DEVICES[device.value]
        found = calibration.calibrate(wanted, quick=quick, progress=status)
    if output is not None:
        calibrations.write(found, output)
    if output_format is TextOrJson.JSON:
        write(encoded(found).decode())
    else:
        write(render_calibration(found, width=width(), color=color()))
    if n_disturbed := sum(each.is_disturbed for each in found.ceilings):
        raise NothingToTell(
            f"Nothing is stored: other programs never left {n_disturbed} of {len(found.ceilings)} ceilings alone. "
            "Calibrate again when they are done."
        )
    stored = calibrations.keep(found)
    if output_format is TextOrJson.TEXT:
        note(f"stored in {stored}; rooflines of reports on this device go by it.")
