"""Sizes of the model that patterns spread over ranks: a stack of square linear layers in FP32."""

from __future__ import annotations

from dataclasses import dataclass

from diag.errors import UsageError
from diag.probes.collective.world import World
from diag.probes.probe import Shape

ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Sizes:
    layers: int
    width: int
    batch: int  # samples of one rank

    @classmethod
    def of(cls, shape: Shape) -> Sizes:
        return cls(shape["layers"], shape["width"], shape["batch"])

    @property
    def layer_bytes(self) -> int:
        """Of the weights of one layer, or of their gradients."""
        return self.width**2 * ELEMENT_BYTES

    @property
    def model_bytes(self) -> int:
        return self.layers * self.layer_bytes


def check_divides(width: int, world: World) -> None:
    """Raises UsageError where ranks cannot have equal parts of so many rows."""
    if width % world.n_ranks:
        raise UsageError(f"{width} rows have no equal parts for {world.n_ranks} ranks. Choose another --shape width=N")
