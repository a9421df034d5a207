"""The command that looks closer at one kernel: ncu, or rocprof-compute on AMD."""

from __future__ import annotations

import re

import numpy as np

from diag.store.names import LOST_NAME
from diag.timeline.device import DeviceTimeline


def is_amd(device: DeviceTimeline) -> bool:
    """Told from the calls: HIP and CUDA work look alike on the device."""
    return any(device.names[i].startswith("hip") for i in np.flatnonzero(np.bincount(device.calls.name_id)).tolist())


def command(device: DeviceTimeline, short_name: str) -> str:
    if is_amd(device):
        return f"rocprof-compute profile -n hot -k {_longest_word(short_name)} -- YOUR COMMAND"
    if short_name.startswith(LOST_NAME):
        return "ncu --set full --launch-count 5 -o kernels YOUR COMMAND"
    return f"ncu --set full --kernel-name regex:{_regex_for(short_name)} --launch-count 5 -o kernels YOUR COMMAND"


def _regex_for(short_name: str) -> str:
    """A pattern that is safe to paste into a shell."""
    return re.sub(r"[^0-9A-Za-z_]+", ".", short_name)[:60]


def _longest_word(short_name: str) -> str:
    """A part of the name that is safe to paste into a shell; rocprof-compute looks for it, it knows no patterns."""
    return max(re.findall(r"[0-9A-Za-z_]+", short_name), key=len, default="KERNEL")[:60]
