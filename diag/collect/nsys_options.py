"""The command line of `nsys profile`. It has kept its meaning from 2022 to 2026, and gained options on the way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_OPTION = re.compile(r"^\s*(?:-\w, )?(--[a-z][a-z0-9-]*)", re.MULTILINE)
_TRACES = re.compile(r"^\s*(?:-\w, )?--trace=\s*(.*?)(?:^\s*(?:-\w, )?--[a-z]|\Z)", re.MULTILINE | re.DOTALL)
_CHOICE = re.compile(r"'([a-z][a-z0-9-]*)'")

_HOST = ("nvtx", "osrt")
_DEVICE = ("cuda", *_HOST, "cudnn", "cublas")


@dataclass(frozen=True)
class Abilities:
    """What an installed nsys can do, as `nsys profile --help` tells."""

    options: frozenset[str]
    traces: frozenset[str]

    @classmethod
    def of_help(cls, text: str) -> Abilities:
        traces = _TRACES.search(text)
        return cls(frozenset(_OPTION.findall(text)), frozenset(_CHOICE.findall(traces[1]) if traces else ()))


@dataclass(frozen=True)
class NsysOptions:
    with_gpu: bool = True
    """Whether there is a GPU whose work could be traced."""
    sample: bool = False
    """CPU samples and context switches. Of 30 s they make 358 MB, and take as long again."""
    delay_s: int = 0
    duration_s: int | None = None
    """The workload goes on when it is over."""
    range_name: str | None = None
    """Record only the first NVTX range of this name, in any domain."""

    @property
    def is_partial(self) -> bool:
        return bool(self.delay_s or self.duration_s or self.range_name)


def nsys_command(
    nsys: Path, abilities: Abilities, options: NsysOptions, output: Path, workload: Sequence[str | Path]
) -> list[str | Path]:
    """The arguments that record `workload` into `output`, to whose name nsys adds its own ending.

    Option by option: Nsight Systems User Guide, "CLI Profile Command Switch Options".
    """
    sampled = "process-tree" if options.sample else "none"
    wanted = {
        "--trace": ",".join(_traces(abilities, options)),
        "--cuda-memory-usage": "true" if options.with_gpu else None,
        "--sample": sampled,
        "--cpuctxsw": sampled,
        "--delay": options.delay_s or None,
        "--duration": options.duration_s,
        "--kill": "none" if options.duration_s or options.range_name else None,
        "--capture-range": "nvtx" if options.range_name else None,
        "--capture-range-end": "stop" if options.range_name else None,
        "--nvtx-capture": _in_any_domain(options.range_name) if options.range_name else None,
        # Texts are looked at only where they were registered, unless this is set in the workload.
        "--env-var": "NSYS_NVTX_PROFILER_REGISTER_ONLY=0" if options.range_name else None,
        "--stats": "false",
        "--export": "none",
        "--force-overwrite": "true",
        "--output": output,
    }
    given = [f"{name}={value}" for name, value in wanted.items() if value is not None and name in abilities.options]
    return [nsys, "profile", *given, *workload]


def _traces(abilities: Abilities, options: NsysOptions) -> list[str]:
    wanted = _DEVICE if options.with_gpu else _HOST
    return [trace for trace in wanted if not abilities.traces or trace in abilities.traces]


def _in_any_domain(name: str) -> str:
    return name if "@" in name else f"{name}@*"
