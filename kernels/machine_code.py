"""The tools that tell what lies in a cubin, and what they print. They come with Triton; no GPU is needed.

Source: CUDA Binary Utilities, cuobjdump and nvdisasm.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from triton import knobs

from diag.errors import ToolMissing

Tool = Literal["cuobjdump", "nvdisasm"]

TOOL_S = 60.0
"""A tool that takes longer than this for one cubin hangs: the largest kernels take it two seconds."""


@dataclass(frozen=True)
class ResourceUsage:
    """Of one function. What it says of shared memory leaves out what is allocated at launch, as Triton does."""

    registers_per_thread: int
    stack_bytes: int


_FUNCTION = re.compile(r"^ Function (?P<name>\S+):\n\s+REG:(?P<registers>\d+) STACK:(?P<stack>\d+) ", re.MULTILINE)


def resource_usage(printed: str) -> Mapping[str, ResourceUsage]:
    """By function, from what `cuobjdump -res-usage` printed."""
    return {
        found["name"]: ResourceUsage(int(found["registers"]), int(found["stack"]))
        for found in _FUNCTION.finditer(printed)
    }


_INSTRUCTION = re.compile(
    r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@(?P<predicate>!?U?P\w+)\s+)?(?P<mnemonic>[A-Z][\w.]*)", re.MULTILINE
)
_NEVER = "!PT"


def instruction_mix(printed: str) -> Mapping[str, int]:
    """Instructions by mnemonic with its modifiers, from what `nvdisasm` printed; of all functions in the cubin.

    Left out is what does nothing: NOP, and instructions that are never executed (@!PT), which keep others apart.
    """
    found = [each for each in _INSTRUCTION.finditer(printed) if each["predicate"] != _NEVER]
    return dict(Counter(each["mnemonic"] for each in found if each["mnemonic"] != "NOP").most_common())


def printed_by(tool: Tool, *arguments: str | Path) -> str:
    """What a tool says of a cubin. Raises ToolMissing."""
    path = _path(tool)
    try:
        ended = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=TOOL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ToolMissing(f"{path} did not come to an end within {TOOL_S:g} s and was stopped.") from error
    except OSError as error:
        raise ToolMissing(f"{path} cannot be started: {error.strerror}. {_instead(tool)}") from error
    if ended.returncode:
        said = " ".join(ended.stderr.split())[:200]
        raise ToolMissing(f"{path} ended with status {ended.returncode}: {said}. {_instead(tool)}")
    return ended.stdout


def _path(tool: Tool) -> str:
    try:
        return str(getattr(knobs.nvidia, tool).path)
    except RuntimeError as error:  # Triton's word for a tool that it does not find
        raise ToolMissing(f"{tool} is not where Triton brings it. {_instead(tool)}") from error


def _instead(tool: Tool) -> str:
    return f"Install Triton anew, or name another: TRITON_{tool.upper()}_PATH=FILE."
