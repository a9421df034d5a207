"""What a program was at when it allocated, by the functions on its stack: load, capture, forward, optimizer, ...

Names of functions and files as PyTorch, its optimizers and serving engines have them. The first phase of the list whose
mark is on the stack counts: what a backward pass computes anew runs `forward`, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

Phase = Literal["optimizer", "backward", "capture", "kv cache", "load", "prefill", "decode", "forward"]

PHASES: tuple[Phase, ...] = get_args(Phase)

_IN_FUNCTION: dict[Phase, tuple[str, ...]] = {
    "optimizer": (),
    "backward": ("backward",),
    "capture": ("capture",),
    "kv cache": ("kv_cache", "allocate_kv", "kv_pool"),
    "load": ("load_model", "load_weights", "load_state_dict", "from_pretrained"),
    "prefill": ("prefill",),
    "decode": ("decode",),
    "forward": ("forward",),
}
"""Parts of the names of functions."""


def phase_of(frames: Iterable[tuple[str, str]]) -> Phase | None:
    """Of (function, file) on a stack, in any order; None where nothing tells.

    >>> phase_of([("forward", "model.py"), ("backward", "torch/_tensor.py")])
    'backward'
    >>> phase_of([("step", "torch/optim/adamw.py")]), phase_of([("main", "train.py")])
    ('optimizer', None)
    """
    found = {phase for function, file in frames for phase in PHASES if _is_mark(phase, function, file)}
    return next((phase for phase in PHASES if phase in found), None)


def _is_mark(phase: Phase, function: str, file: str) -> bool:
    if phase == "optimizer":
        return "step" in function and "optim" in file
    return any(part in function for part in _IN_FUNCTION[phase])
