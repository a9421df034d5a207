"""What a fault is: how it is injected, and which rule must find it under which capture."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Device = Literal["cpu", "cuda"]
Capture = Literal["nsys", "torch"]
Rules = Mapping[Capture, tuple[str, ...]]


@dataclass(frozen=True)
class Setting:
    """Where a fault is injected."""

    device: Device
    name: str
    """Drawn for this run: of the range around the fault, and of what else carries a name."""
    draw: random.Random
    largest_ns: int
    """The most that one step will ask for: buffers are made for it before the loop."""


class Injector(Protocol):
    """A fault that is ready to be injected."""

    def spend(self, budget_ns: int) -> int:
        """Does the wrong thing for about so long, none of it without a budget; returns for how long it was, in ns."""
        ...

    def close(self) -> int:
        """Ends what the fault started; returns what could be measured only now, in ns."""
        ...


@dataclass(frozen=True)
class Fault:
    """One thing wrong.

    `on_cpu` and `on_gpu` name the rules that must fire, by capture; `tells` is what the rule's finding must say to be
    about this fault, a regular expression in which {name} stands for the drawn name.
    """

    name: str
    idea: str
    start: Callable[[Setting], Injector]
    on_gpu: Rules
    on_cpu: Rules = field(default_factory=dict)
    tells: Mapping[str, str] = field(default_factory=dict)
    range_names: tuple[str, ...] = ()
    """Beginnings of the range's name, where a rule knows the fault by it; else the name is free."""
    is_its_range: bool = False
    """Whether rules know it by its range alone: then what it takes to enter and leave that is part of the fault."""
    needs_switches: bool = False
    """Whether nsys must record context switches."""

    @property
    def needs_gpu(self) -> bool:
        return not self.on_cpu

    @property
    def captures(self) -> tuple[Capture, ...]:
        return tuple(dict.fromkeys((*self.on_cpu, *self.on_gpu)))

    def rules_on(self, device: Device) -> Rules:
        return self.on_cpu if device == "cpu" else self.on_gpu
