"""Runs the truth suite and writes its page: python -m tests.truth docs/truth.md [--seed N]

Exit status 1 if something went wrong for which no reason is stated.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from itertools import chain
from os import getloadavg, sched_getaffinity
from pathlib import Path
from typing import TypeVar

import torch

from diag.ingest.nsys_tool import find_nsys
from diag.probes.faults import table
from diag.probes.faults.fault import Capture, Device
from tests.truth import build, healthy, live, serving
from tests.truth.page import page
from tests.truth.trial import Trial

Outcome = TypeVar("Outcome", Trial, Trial | live.NotCaptured)

REASONS: Mapping[tuple[str, str, str], str] = {}
"""Why a rule is known to miss a fault under a capture: by rule, fault and capture."""


def main() -> int:
    chosen = _parser().parse_args()
    print(f"seed {chosen.seed}", file=sys.stderr)
    device: Device = "cuda" if torch.cuda.is_available() else "cpu"
    captures: tuple[Capture, ...] = ("torch", "nsys") if find_nsys() else ("torch",)
    planned = live.plan(chosen.seed, build.DOSES, device, captures)
    ran = [_noted(each) for each in live.trials(planned)]
    captured = [each for each in ran if isinstance(each, Trial)]
    lost = [str(each) for each in ran if isinstance(each, live.NotCaptured)]
    both = chain(build.timelines(chosen.seed), build.kernel_profiles(chosen.seed), build.loads(chosen.seed))
    built = [_noted(trial) for trial in both]
    served = list(serving.trials(chosen.seed))
    probes = list(healthy.judged(device))
    misses = {
        **{
            miss: REASONS.get((trial.rule, trial.fault, trial.kind))
            for trial in (*captured, *built)
            if (miss := trial.miss) is not None
        },
        **{miss: each.reason for each in probes if (miss := each.miss) is not None},
        **{miss: None for each in served if (miss := each.miss) is not None},
    }
    conditions, not_run = list(_conditions(chosen.seed, device)), [*_not_run(device, captures), *lost]
    written = page(captured, built, probes, conditions, not_run, misses, served)
    chosen.page.write_text(written, encoding="utf-8")
    print(written)
    return 1 if None in misses.values() else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description="Score the rules on known faults.")
    parser.add_argument("page", type=Path, help="where to write the page, for example docs/truth.md")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="draws all runs (default: random)")
    return parser


def _noted(trial: Outcome) -> Outcome:
    """Says on stderr what is done, as the whole takes minutes."""
    if not isinstance(trial, Trial):
        print(trial, file=sys.stderr)
        return trial
    said = "-" if trial.reported is None else f"{trial.reported:.1%}"
    kind = "sick" if trial.is_sick else "twin"
    print(f"{trial.kind:13} {trial.fault:22} {kind} {trial.injected:6.1%} {said}", file=sys.stderr)
    return trial


def _conditions(seed: int, device: Device) -> Iterator[str]:
    nsys = find_nsys()
    hardware = torch.cuda.get_device_name() if device == "cuda" else "no GPU"
    yield f"`python -m tests.truth docs/truth.md --seed {seed}` (doses {', '.join(map(str, build.DOSES))})"
    yield f"{len(sched_getaffinity(0))} cores, {platform.system()} {platform.machine()}, {hardware}"
    yield f"load {getloadavg()[2]:.1f} over a quarter of an hour: beyond the number of cores, others took turns with us"
    yield f"Python {platform.python_version()}, PyTorch {metadata.version('torch')}, nvtx {metadata.version('nvtx')}"
    yield f"Nsight Systems {nsys.release}" if nsys else "no Nsight Systems"


def _not_run(device: Device, captures: tuple[Capture, ...]) -> Iterator[str]:
    for fault in table.FAULTS.values():
        rules = fault.rules_on(device)
        if not rules:
            yield f"{fault.name}: needs a GPU"
        for capture in rules:
            if capture not in captures:
                yield f"{fault.name} under {capture}: nsys is not installed"


if __name__ == "__main__":
    sys.exit(main())
