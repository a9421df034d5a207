"""Matrices as nvidia-smi topo -m prints them, of hosts that a test lays out; they say that they are synthetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

Kind = Callable[[str, str], str]
"""Of a pair of devices, the one that comes first in the header first."""


def nvlink_everywhere(a: str, b: str) -> str:
    """GPUs over NVSwitch, a network card next to each second of them."""
    if a.startswith("GPU") and b.startswith("GPU"):
        return "NV18"
    return "PIX" if _number(a) // 2 == _number(b) // 2 else "NODE" if _number(a) // 4 == _number(b) // 4 else "SYS"


def _number(device: str) -> int:
    """A card serves two GPUs: its place is that of the first."""
    number = int("".join(filter(str.isdigit, device)) or 0)
    return number if device.startswith("GPU") else 2 * number


@dataclass(frozen=True)
class Topology:
    kind: Kind = nvlink_everywhere
    n_gpus: int = 8
    cards: Sequence[str] = ("NIC0", "NIC1", "NIC2", "NIC3")
    about_cpus: Sequence[str] = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
    is_underlined: bool = True

    def write(self, path: Path) -> Path:
        path.write_text(self.text)
        return path

    def backwards(self) -> Topology:
        """Its rows in the opposite order."""
        first, *rows = self.text.split("\n\n")[0].splitlines()
        return _Printed("\n".join([first, *rows[::-1]]) + "\n")

    @property
    def devices(self) -> list[str]:
        return [f"GPU{number}" for number in range(self.n_gpus)] + list(self.cards)

    @property
    def text(self) -> str:
        header = "\t" + "\t".join([*self.devices, *self.about_cpus])
        rows = ["\t".join([a, *(self._cell(a, b) for b in self.devices), *self._cpus(a)]) for a in self.devices]
        shown = f"\x1b[4m{header}\x1b[0m" if self.is_underlined else header
        legend = "".join(f"  NIC{number}: mlx5_{number}\n" for number in range(len(self.cards)))
        return "\n".join([shown, *rows]) + f"\n\nLegend:\n\n  X    = Self\n  synthetic\n\nNIC Legend:\n\n{legend}"

    def _cell(self, a: str, b: str) -> str:
        return " X " if a == b else self.kind(*sorted((a, b), key=self.devices.index))

    def _cpus(self, device: str) -> list[str]:
        return ["0-55,112-167", "0", "N/A"][: len(self.about_cpus)] if device.startswith("GPU") else [""]


@dataclass(frozen=True)
class _Printed(Topology):
    printed: str = ""

    def __init__(self, printed: str) -> None:
        object.__setattr__(self, "printed", printed)

    @property
    def text(self) -> str:
        return self.printed

    def backwards(self) -> Topology:
        return replace(self)
