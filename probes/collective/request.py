"""What is asked of the ranks, in their command line and back: they are processes of their own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from diag.errors import UsageError
from diag.model.near import did_you_mean, near
from diag.probes.collective.collective_probe import CollectiveProbe
from diag.probes.collective.traced import Late
from diag.probes.probe import Scale, Shape
from diag.probes.runs import parsed_shape

LONGEST_DELAY_MS = 10_000


@dataclass(frozen=True)
class Request:
    names: Sequence[str]
    scale: Scale = "small"
    variant: str | None = None  # None: all
    shape: Shape = field(default_factory=dict)  # sizes in the place of those of the scale
    trace: Path | None = None  # a folder
    late: Late | None = None

    @property
    def arguments(self) -> Sequence[str]:
        """As `parser` reads them again."""
        said = [*self.names, "--scale", self.scale]
        if self.variant is not None:
            said += ["--variant", self.variant]
        if self.shape:
            said += ["--shape", ",".join(f"{name}={size}" for name, size in self.shape.items())]
        if self.trace is not None:
            said += ["--trace", str(self.trace)]
        if self.late is not None:
            said += ["--late-rank", str(self.late.rank), "--late-ms", str(self.late.ms)]
        return said


def check(request: Request, probes: Sequence[CollectiveProbe], n_ranks: int) -> None:
    """Raises UsageError for what no probe has, or no such job."""
    for probe in probes:
        names = [each.name for each in probe.variants]
        if request.variant is not None and request.variant not in names:
            hint = did_you_mean(near(request.variant, names))
            raise UsageError(f"{probe.name} has no variant {request.variant!r}.{hint} It has: {', '.join(names)}.")
        probe.check_shape(request.shape)
    if request.trace is not None and not request.trace.is_dir():
        raise UsageError(f"--trace {request.trace} is no folder. Make it first.")
    if request.late is None:
        return
    if request.trace is None:
        raise UsageError("A late rank is for traces. Say where they go: --trace FOLDER")
    if not 0 <= request.late.rank < n_ranks:
        raise UsageError(f"--late-rank {request.late.rank}: ranks are 0 to {n_ranks - 1}.")
    if not 0 < request.late.ms <= LONGEST_DELAY_MS:
        raise UsageError(f"--late-ms {request.late.ms:g}: give one above 0, up to {LONGEST_DELAY_MS}.")


def late(rank: int | None, ms: float | None) -> Late | None:
    """Raises UsageError for one without the other."""
    if (rank is None) != (ms is None):
        raise UsageError("Say who is late and by how much: --late-rank 1 --late-ms 20")
    return None if rank is None or ms is None else Late(rank, ms)


def parser() -> argparse.ArgumentParser:
    built = argparse.ArgumentParser(
        prog="python -m diag.probes.collective", description="One rank of a probe of several; start it with torchrun."
    )
    built.add_argument("names", nargs="+", metavar="NAME", help="probes, or collectives for all (diag probe list)")
    built.add_argument("-o", "--output", type=Path, help="where rank 0 writes the measurements")
    built.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    built.add_argument("--scale", choices=get_args(Scale), default="small")
    built.add_argument("--variant", help="only this one")
    built.add_argument("--shape", help="sizes in the place of those of the scale, NAME=SIZE,...")
    built.add_argument("--trace", type=Path, metavar="FOLDER", help="record each rank with torch.profiler")
    built.add_argument("--late-rank", type=int, help="this rank sleeps in each traced step")
    built.add_argument("--late-ms", type=float, help="for so long")
    built.add_argument("--rendezvous", type=Path, help=argparse.SUPPRESS)
    return built


def request_of(chosen: argparse.Namespace) -> Request:
    """Raises UsageError."""
    return Request(
        names=chosen.names,
        scale=chosen.scale,
        variant=chosen.variant,
        shape=parsed_shape(chosen.shape) if chosen.shape is not None else {},
        trace=chosen.trace,
        late=late(chosen.late_rank, chosen.late_ms),
    )
