"""Profile a training loop: a small transformer learns to add, and torch.profiler records some of its steps.

    python examples/train.py trace.json.gz                 # healthy: the text is encoded once, before the loop
    python examples/train.py trace.json.gz --encode-late   # sick: the data loader encodes each sample when asked for it
    diag report trace.json.gz

It needs PyTorch and no GPU; where there is one, the model trains on it and the trace has its kernels.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
VOCABULARY = "0123456789+=\n"
NUMBER_OF = {character: number for number, character in enumerate(VOCABULARY)}
CONTEXT = 32
"""Characters that the model sees of a sample."""
BATCH = 16
WIDTH, HEADS, LAYERS = 64, 4, 2
UNRECORDED_STEPS = 4
"""Steps without the profiler: memory and caches warm up, and the later half tells what a step takes undisturbed."""
SKIPPED_STEPS, RECORDED_STEPS = 2, 5
"""Under the profiler the first steps are slower too, as it starts."""

Batch = tuple[Tensor, Tensor]


class Windows(Dataset[Batch]):
    """Pieces of a text as inputs and targets, which are the characters that follow."""

    def __init__(self, text: str, *, encode_late: bool) -> None:
        self.text = text
        self.encoded = None if encode_late else torch.tensor(encode(text))

    def __len__(self) -> int:
        return len(self.text) - CONTEXT

    def __getitem__(self, start: int) -> Batch:
        if self.encoded is None:
            encoded = torch.tensor(encode(self.text))[start:][: CONTEXT + 1]
        else:
            encoded = self.encoded[start:][: CONTEXT + 1]
        return encoded[:-1], encoded[1:]


def encode(text: str) -> list[int]:
    return [NUMBER_OF[character] for character in text]


def sums(n: int) -> str:
    """Lines such as 17+25=42."""
    draw = random.Random(0)
    pairs = ((draw.randrange(100), draw.randrange(100)) for _ in range(n))
    return "".join(f"{a}+{b}={a + b}\n" for a, b in pairs)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(VOCABULARY), WIDTH)
        self.position = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, len(VOCABULARY))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, characters: Tensor) -> Tensor:
        """(sample, character) → logits (sample, character, next character)."""
        hidden = self.embed(characters) + self.position
        return self.head(self.layers(hidden, mask=self.mask, is_causal=True))


class Training:
    def __init__(self) -> None:
        self.model = Transformer().to(DEVICE)
        self.loss_function = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        inputs, targets = (each.to(DEVICE, non_blocking=True) for each in (inputs, targets))
        loss: Tensor = self.loss_function(self.model(inputs).flatten(0, 1), targets.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def step_time_s(training: Training, batches: Iterator[Batch]) -> float:
    """The median over the later half of UNRECORDED_STEPS; each ends when the device has done its work."""
    ends = []
    for batch in itertools.islice(batches, UNRECORDED_STEPS):
        training.step(*batch).item()
        ends.append(time.perf_counter())
    later = ends[UNRECORDED_STEPS // 2 :]
    return statistics.median(b - a for a, b in itertools.pairwise(later))


def recorder(trace: Path) -> AbstractContextManager[profile]:
    """Shapes and Python stacks cost time in each step, and let the report name the code."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if DEVICE.type == "cuda" else [])]
    return profile(  # type: ignore[no-any-return]
        activities=activities,
        schedule=schedule(wait=0, warmup=SKIPPED_STEPS, active=RECORDED_STEPS, repeat=1),
        on_trace_ready=lambda recorded: recorded.export_chrome_trace(str(trace)),
        record_shapes=True,
        with_stack=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile a training loop.")
    parser.add_argument("trace", type=Path, help="where to write the trace, for example trace.json.gz")
    parser.add_argument("--encode-late", action="store_true", help="encode text in the data loader (the sick variant)")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # a step is so small that threads would only wait for each other
    n_samples = (UNRECORDED_STEPS + SKIPPED_STEPS + RECORDED_STEPS) * BATCH
    data = Windows(sums(8_000), encode_late=arguments.encode_late)
    chosen = torch.utils.data.RandomSampler(data, num_samples=n_samples)
    batches = iter(DataLoader(data, batch_size=BATCH, sampler=chosen, pin_memory=DEVICE.type == "cuda"))
    training = Training()
    step_s = step_time_s(training, batches)
    with recorder(arguments.trace) as profiler:
        for batch in batches:
            loss = training.step(*batch)
            profiler.step()
    print(f"{step_s * 1e3:.1f} ms per step on {DEVICE} before recording; the last loss is {loss.item():.2f}.")
    print(f"{RECORDED_STEPS} steps are in {arguments.trace}. Now: diag report {arguments.trace}")


if __name__ == "__main__":
    main()
