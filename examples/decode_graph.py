"""A decode step of many small operators: what launching them costs, and what a CUDA graph makes of it.

    python examples/decode_graph.py FOLDER

With a GPU it decodes the same tokens launch by launch and as a CUDA graph, and writes a trace of each to FOLDER.
Without one it measures on the CPU, where calls cost time too: the part of a step that does not grow with the batch. The
traces in FOLDER are then those of examples/synthetic_decode.py, of a run that never was. It needs PyTorch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu
from torch.profiler import ProfilerActivity, profile, schedule

from diag.probes import synthetic_decode

WIDTH, HEADS, LAYERS, VOCABULARY = 32, 2, 4, 256
CONTEXT = 64
"""Tokens that the cache has room for, and that are decoded in one go."""
FEW, MANY = 1, 64
"""Sequences of a batch."""
SKIPPED_STEPS, RECORDED_STEPS = 4, 20

Step = Callable[[], None]


class Layer(nn.Module):
    """Attention over all tokens so far, then two linear maps. Nothing is fused, as in a model written down plainly."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.norm, self.norm_again = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, HEADS, CONTEXT, WIDTH // HEADS))

    def forward(self, hidden: Tensor, position: Tensor, is_ahead: Tensor) -> Tensor:
        """(sequence, width) → the same; the token's key and value go into the cache at `position`."""
        query, key, value = self.qkv(self.norm(hidden)).view(len(hidden), 3, HEADS, -1).unbind(1)
        self.keys.index_copy_(2, position, key.unsqueeze(2))
        self.values.index_copy_(2, position, value.unsqueeze(2))
        scores = (self.keys @ query.unsqueeze(3)).squeeze(3) * query.shape[2] ** -0.5
        weights = scores.masked_fill(is_ahead, float("-inf")).softmax(2)
        hidden = hidden + self.out((weights.unsqueeze(2) @ self.values).flatten(1))
        return hidden + self.down(gelu(self.up(self.norm_again(hidden))))


class Decoder(nn.Module):
    """A model that feeds itself; its state lies in buffers that stay where they are, so that a graph can hold it."""

    def __init__(self, batch: int, device: str) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(batch) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("tokens", torch.zeros(batch, dtype=torch.long))
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))
        self.register_buffer("places", torch.arange(CONTEXT))
        self.to(device)

    def step(self) -> None:
        """Decode one token of each sequence."""
        is_ahead = self.places > self.position
        hidden = self.embed(self.tokens)
        for layer in self.layers:
            hidden = layer(hidden, self.position, is_ahead)
        self.tokens.copy_(self.head(hidden).argmax(1))
        self.position.add_(1)

    def restart(self) -> None:
        self.tokens.zero_()
        self.position.zero_()


# ---- with a GPU ----------------------------------------------------------------------------------------------------


def as_graph(decoder: Decoder) -> Step:
    """The step, recorded once. What allocates or loads code at first must have run before, on a stream of its own."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            decoder.step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        decoder.step()
    return graph.replay  # type: ignore[no-any-return]


def decoded(decoder: Decoder, step: Step) -> list[int]:
    """The tokens of the first sequence."""
    decoder.restart()
    tokens = []
    for _ in range(CONTEXT):
        step()
        tokens.append(int(decoder.tokens[0]))
    return tokens


def record(decoder: Decoder, step: Step, trace: Path) -> None:
    decoder.restart()
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=SKIPPED_STEPS, active=RECORDED_STEPS, repeat=1),
        on_trace_ready=lambda recorded: recorded.export_chrome_trace(str(trace)),
    ) as profiler:
        for _ in range(SKIPPED_STEPS + RECORDED_STEPS):
            step()
            torch.cuda.synchronize()
            profiler.step()


def on_gpu(folder: Path) -> tuple[Path, Path]:
    decoder = Decoder(FEW, "cuda")
    steps = {"eager": decoder.step, "graph": as_graph(decoder)}
    tokens = {name: decoded(decoder, step) for name, step in steps.items()}
    print(f"Decoded the same tokens: {'yes' if tokens['eager'] == tokens['graph'] else 'NO'}")
    for name, step in steps.items():
        print(f"{name}  {step_time_us(decoder, step, torch.cuda.synchronize):7.1f} µs per token")
        record(decoder, step, folder / f"{name}.pt.trace.json.gz")
    return folder / "eager.pt.trace.json.gz", folder / "graph.pt.trace.json.gz"


# ---- without one ---------------------------------------------------------------------------------------------------


def operators_of(step: Step) -> int:
    """Operators that the program itself calls, not those that these call."""
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        step()
    return sum(event.cpu_parent is None for event in recorded.events())


def on_host() -> None:
    """A step takes `fixed + sequences · growing`; two batches tell both."""
    torch.set_num_threads(1)  # so that both batches run on as many
    few, many = Decoder(FEW, "cpu"), Decoder(MANY, "cpu")
    few_us, many_us = (step_time_us(each, each.step) for each in (few, many))
    growing_us = (many_us - few_us) / (MANY - FEW)
    fixed_us = few_us - FEW * growing_us
    few.restart()
    n = operators_of(few.step)
    print(f"{FEW:3} sequence    {few_us:8.0f} µs per step, {n} operators: {few_us / n:.1f} µs each")
    print(f"{MANY:3} sequences   {many_us:8.0f} µs per step, as many operators")
    print(f"For each more   {growing_us:8.1f} µs: that is the work")
    print(f"For any number  {fixed_us:8.0f} µs: {fixed_us / few_us:.0%} of the step of one sequence goes into calling")


# ---- both ----------------------------------------------------------------------------------------------------------


def step_time_us(decoder: Decoder, step: Step, wait: Step = lambda: None) -> float:
    """Decode until the cache is full, three times; of the last two, the median of steps that each ran to its end."""
    times_us = []
    for round_ in range(3):
        decoder.restart()
        for _ in range(CONTEXT):
            wait()
            began = time.perf_counter()
            step()
            wait()
            if round_ > 0:
                times_us.append(1e6 * (time.perf_counter() - began))
    return statistics.median(times_us)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description="Decode launch by launch and as a CUDA graph.")
    parser.add_argument("folder", type=Path, help="where to write the two traces")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    if torch.cuda.is_available():
        eager, graph = on_gpu(folder)
    else:
        on_host()
        print("There is no GPU here: the traces are synthetic, of a run that never was.")
        eager, graph = synthetic_decode.write(folder)
    print(f"Now: diag report {eager}; diag report {graph}")
    print(f"     diag compare {eager} {graph}")


if __name__ == "__main__":
    main()
