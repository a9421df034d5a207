"""`diag probe run` of probes of several ranks: starts them on this machine, and shows what they found."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diag.cli.choices import DeviceChoice, TextOrJson
from diag.cli.signals import ENDING
from diag.cli.terminal import StatusLine, color, note, width, write
from diag.errors import UsageError

if TYPE_CHECKING:
    from diag.probes.collective.request import Request
    from diag.probes.probe import Device, Scale, Shape


@dataclass(frozen=True)
class Ranks:
    """What of the command line is about several ranks."""

    n: int | None
    trace: Path | None
    late_rank: int | None
    late_ms: float | None

    @property
    def are_asked_for(self) -> bool:
        return any(each is not None for each in (self.n, self.trace, self.late_rank, self.late_ms))


def is_of_ranks(names: Sequence[str]) -> bool:
    """Whether any of them is a probe of several ranks."""
    from diag.probes.collective.catalogue import ALL, PROBES

    return any(name == ALL or name in PROBES for name in names)


def refuse(**options: object) -> None:
    """Raises UsageError for an option that only probes of one process have; None: not given."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"Probes of several ranks have no --{name}. Leave it out, or run the others apart.")


def run_on_ranks(
    names: Sequence[str],
    scale: Scale,
    variant: str | None,
    shape: Shape,
    ranks: Ranks,
    device: DeviceChoice,
    output: Path | None,
    output_format: TextOrJson,
) -> None:
    """Raises UsageError, ToolMissing, and DiagError where a rank fails."""
    from diag.ingest import calibrations
    from diag.probes.collective import launch, world
    from diag.probes.collective.catalogue import named
    from diag.probes.collective.request import Request, check, late

    if output is not None:
        calibrations.check_target(output, "measurements")
    request = Request(names, scale, variant, shape, ranks.trace, late(ranks.late_rank, ranks.late_ms))
    probes = named(names)
    n_ranks = world.default_ranks(device.value) if ranks.n is None else ranks.n
    launch.check_number(n_ranks)
    check(request, probes, n_ranks)
    _run(request, n_ranks, world.device_of(device.value, n_ranks), output, output_format)


def _run(request: Request, n_ranks: int, device: Device, output: Path | None, output_format: TextOrJson) -> None:
    from diag.ingest import calibrations
    from diag.ingest.benchmark import load
    from diag.model.benchmark import encoded
    from diag.probes.collective import launch
    from diag.render.collective_tables import render_collectives

    ENDING.kept = "nothing is kept of ranks that were interrupted"
    with tempfile.TemporaryDirectory(prefix="diag-") as folder, StatusLine() as status:
        file = Path(folder) / "ranks.benchmark.json"
        status(f"starting {n_ranks} ranks")
        notes = launch.run(request, n_ranks, device, file, status)
        found = load(file)
    if output is not None:
        calibrations.write(found, output)
    for each in notes:
        note(each)
    if output_format is TextOrJson.JSON:
        write(encoded(found).decode())
    else:
        write(render_collectives(found, width=width(), color=color()))
