"""A pipeline: every rank is a stage, and micro-batches go through all of them, forward and back (GPipe).

A stage works for a known time on each micro-batch, by waiting for a clock and not by computing: what is measured is
then the bubble of the schedule, the same on a machine with fewer cores than stages. What goes through is counted by
each stage on its way, so that the result proves its path.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from diag.model import units
from diag.model.collective import Primitive, Signature
from diag.model.pipeline import bubble_share
from diag.probes.collective.collective_probe import CollectiveProbe, Exercise
from diag.probes.collective.sizes import ELEMENT_BYTES
from diag.probes.collective.world import World
from diag.probes.probe import Checked, ProbeVariant, Shape

ONE = ProbeVariant("one_batch", "The whole batch at once: all stages but one wait.")
MICRO = ProbeVariant("micro_batches", "The batch in parts: stages work at the same time, but for filling and draining.")


@dataclass
class Seen:
    """Of each step so far, on this rank, in ns."""

    worked_ns: list[int] = field(default_factory=list)
    took_ns: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Stage:
    """One rank of the pipeline."""

    world: World
    n_micro: int
    micro_batch: int
    width: int
    work_ns: int  # on one micro-batch, in each direction
    seen: Seen = field(default_factory=Seen)

    @property
    def is_first(self) -> bool:
        return self.world.rank == 0

    @property
    def is_last(self) -> bool:
        return self.world.rank == self.world.n_ranks - 1

    def step(self) -> list[Any]:
        """All micro-batches forward, then all of them back; returns what this stage has made of each at the end."""
        begun = time.perf_counter_ns()
        self.seen.worked_ns.append(0)
        sent: list[Any] = []
        outputs = [self._forward(number, sent) for number in range(self.n_micro)]
        gradients = [self._backward(output, sent) for output in reversed(outputs)]
        for work in sent:
            work.wait()
        self.world.synchronize()
        self.seen.took_ns.append(time.perf_counter_ns() - begun)
        return gradients

    def _forward(self, number: int, sent: list[Any]) -> Any:
        import torch.distributed as dist

        came = self._empty() + number if self.is_first else self._received(self.world.rank - 1)
        done = self._worked(came)
        if not self.is_last:
            sent.append(dist.isend(done, self.world.rank + 1))
        return done

    def _backward(self, output: Any, sent: list[Any]) -> Any:
        import torch.distributed as dist

        came = output * 2 if self.is_last else self._received(self.world.rank + 1)
        done = self._worked(came)
        if not self.is_first:
            sent.append(dist.isend(done, self.world.rank - 1))
        return done

    def _empty(self) -> Any:
        return self.world.zeros(self.micro_batch, self.width)

    def _received(self, source: int) -> Any:
        import torch.distributed as dist

        came = self._empty()
        dist.recv(came, source)
        return came

    def _worked(self, came: Any) -> Any:
        """The device has nothing to do meanwhile, and no other rank's work makes it longer."""
        done = came + 1
        self.world.synchronize()
        begun = time.perf_counter_ns()
        time.sleep(self.work_ns / 1e9)
        self.seen.worked_ns[-1] += time.perf_counter_ns() - begun
        return done


def make(world: World, shape: Shape, variant: str) -> Exercise:
    n_micro = shape["micro_batches"] if variant == MICRO.name else 1
    # A step is the same work in all variants.
    work_ns = 1000 * shape["work_us"] // n_micro
    micro_batch = max(1, shape["batch"] // n_micro)
    stage = Stage(world, n_micro, micro_batch, shape["width"], work_ns)

    def check() -> Checked:
        """Forward every stage adds 1 to the number of the micro-batch; the last one doubles it; back all add 1."""
        p = world.n_ranks
        wanted = [2 * (number + p) + p - world.rank for number in reversed(range(n_micro))]
        n_wrong = world.total(sum(int((got != want).sum()) for got, want in zip(stage.step(), wanted, strict=True)))
        return Checked(n_wrong, n_wrong, 0.0)

    def remark() -> str:
        # A step ends with the first stage, which is the last one to go back.
        took_ns = world.largest(median(stage.seen.took_ns))
        measured = 1 - world.total(median(stage.seen.worked_ns)) / (world.n_ranks * took_ns)
        expected = bubble_share(world.n_ranks, n_micro)
        return f"bubble {units.share(measured)}, of which {units.share(expected)} by (p - 1)/(m + p - 1)"

    said = signatures(world.rank, world.n_ranks, n_micro, micro_batch, shape["width"])
    return Exercise(stage.step, check, said, remark)


def signatures(rank: int, n_ranks: int, n_micro: int, micro_batch: int, width: int) -> list[Signature]:
    """What a stage sends: activations to the next one, gradients to the one before."""
    said = []
    if rank < n_ranks - 1:
        said.append(_signature("forward", "activations", n_ranks, n_micro, micro_batch, width))
    if rank > 0:
        said.append(_signature("backward", "gradients of activations", n_ranks, n_micro, micro_batch, width))
    return said


def _signature(way: str, payload: str, n_ranks: int, n_micro: int, micro_batch: int, width: int) -> Signature:
    return Signature(
        name=f"pipeline, {way}", group="pp", n_ranks=n_ranks, primitive=Primitive.SEND_RECV, payload=payload,
        size_bytes=micro_batch * width * ELEMENT_BYTES, calls=n_micro, is_critical=True,
        formula=f"micro-batch x width x {ELEMENT_BYTES}; a call for each micro-batch",
    )  # fmt: skip


PROBE = CollectiveProbe(
    name="pipeline",
    idea="layers in stages, one on each rank, that micro-batches go through",
    teaches="the bubble (p - 1)/(m + p - 1), and that more micro-batches shrink it",
    variants=[ONE, MICRO],
    shapes={
        device: {
            "tiny": {"batch": 32, "width": 64, "micro_batches": 4, "work_us": 20_000},
            "small": {"batch": 64, "width": 1024, "micro_batches": 8, "work_us": 80_000},
            "full": {"batch": 256, "width": 4096, "micro_batches": 16, "work_us": 320_000},
        }
        for device in ("cpu", "cuda")
    },
    make=make,
)
