"""`diag export --plots`: what of a case can be drawn, a file for each plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diag.cli.terminal import StatusLine
from diag.errors import UsageError

if TYPE_CHECKING:
    from diag.render.plots.gallery import Plot
    from diag.rules.analysis import AnalysisOptions
    from diag.store.case import Case

SCALE = 2.0
"""Of a PNG, where nothing else is asked for: pictures are 960 wide, slides twice that."""

SVG, PNG = "svg", "png"


def check_plots(told_format: str | None, scale: float | None, *, is_folder: bool) -> None:
    """Raises UsageError for what does not go with --plots, ToolMissing where no PNG can be made."""
    if told_format not in (None, SVG, PNG):
        raise UsageError("Plots are pictures: --plots goes with --format svg or --format png.")
    if not is_folder:
        raise UsageError("--plots writes several files: name a folder with -o FOLDER.")
    if scale is not None and told_format != PNG:
        raise UsageError("--scale is for PNG; an SVG has any size. Add --format png.")
    if told_format == PNG:
        from diag.export import png

        png.check()


def write_plots(
    case: Case, options: AnalysisOptions, output: Path, ending: str, scale: float, status: StatusLine
) -> Sequence[Plot]:
    """Writes a file of each plot into the folder `output`; returns all plots, also those that the case lacks."""
    from diag.export.target import whole_folder
    from diag.render.plots.gallery import NAMES, plots
    from diag.rules.stored import report_of

    status("applying rules")
    report = report_of(case, options)
    made = []
    with whole_folder(output, stale=[f"{name}.{ending}" for name in NAMES]) as folder:
        for plot in plots(case, report):
            status(f"drawing {plot.name}")
            made.append(plot)
            if plot.svg:
                (folder / f"{plot.name}.{ending}").write_bytes(_bytes_of(plot, ending, scale))
        if not any(plot.svg for plot in made):
            raise UsageError("Nothing of these inputs can be drawn: they hold neither a timeline nor profiled kernels.")
    return made


def _bytes_of(plot: Plot, ending: str, scale: float) -> bytes:
    from diag.export.png import png_of

    return png_of(plot.svg, scale) if ending == PNG else plot.svg.encode("utf-8")


def remarks(made: Sequence[Plot], output: Path) -> Iterator[str]:
    """What was written, and why the rest was not."""
    from diag.model import units

    yield f"{output}: {units.count(sum(bool(plot.svg) for plot in made), 'plot')}."
    for plot in made:
        if not plot.svg:
            yield f"Not drawn: {plot.name}, for {plot.lacks}."
