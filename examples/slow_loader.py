"""A training loop that waits for its data: the data loader decodes text images in pure Python, in the main process.

    python examples/slow_loader.py trace.json.gz               # the sick run: the model waits for the loader
    python examples/slow_loader.py trace.json.gz --workers 2   # the cure: other processes decode ahead
    diag report trace.json.gz

It needs PyTorch and no GPU. Every sample is a small image in a text format (netpbm's P3, one number per channel), as
a data set that was never converted to a binary format would hold it.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

SIDE = 64
"""Width and height of an image, in pixels."""
BATCH = 32
SKIPPED_STEPS = 2
"""Steps before the recording: the first is not profiled, the second warms the profiler up."""
RECORDED_STEPS = 5


class TextImages(Dataset[tuple[Tensor, int]]):
    """One text file per image; the label is the number of the file, modulo ten."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("*.ppm"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        header, pixels = read_image(self.files[index])
        return normalise(header, pixels), index % 10


def read_image(file: Path) -> tuple[list[int], list[int]]:
    """The header (width, height, largest value) and the numbers of a P3 file."""
    numbers = [int(word) for word in file.read_text().split()[1:]]
    return numbers[:3], numbers[3:]


def normalise(header: list[int], pixels: list[int]) -> Tensor:
    """Numbers row by row and pixel by pixel → a tensor (channel, row, column) with mean 0 and deviation 1."""
    width, height, largest = header
    scaled = [value / largest for value in pixels]
    mean = sum(scaled) / len(scaled)
    deviation = (sum([(value - mean) ** 2 for value in scaled]) / len(scaled)) ** 0.5
    channels = [[(value - mean) / deviation for value in scaled[channel::3]] for channel in range(3)]
    return torch.tensor(channels).view(3, height, width)


def write_images(folder: Path, count: int) -> None:
    """A data set of random images, about 40 kB each."""
    shades = [f"{value} " for value in range(256)]
    source = random.Random(0)
    for number in range(count):
        pixels = "".join(source.choices(shades, k=SIDE * SIDE * 3))
        (folder / f"{number:04}.ppm").write_text(f"P3\n{SIDE} {SIDE} 255\n{pixels}\n")


def small_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def train(loader: DataLoader[tuple[Tensor, int]], trace: Path) -> float:
    """Train one epoch, write the trace of its last RECORDED_STEPS steps and return their mean duration in seconds."""
    model = small_model()
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    phases = schedule(wait=1, warmup=SKIPPED_STEPS - 1, active=RECORDED_STEPS, repeat=1)
    step_ends = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=phases,
        on_trace_ready=lambda recorded: recorded.export_chrome_trace(str(trace)),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        for images, labels in loader:
            loss = loss_function(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step_ends.append(time.perf_counter())
            profiler.step()
    return (step_ends[-1] - step_ends[SKIPPED_STEPS - 1]) / RECORDED_STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile a training loop whose data loader is slow.")
    parser.add_argument("trace", type=Path, help="where to write the trace, for example trace.json.gz")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data ahead (default: 0)")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder), count=BATCH * (SKIPPED_STEPS + RECORDED_STEPS))
        loader = DataLoader(TextImages(Path(folder)), batch_size=BATCH, num_workers=arguments.workers)
        step_s = train(loader, arguments.trace)
    print(f"{step_s * 1e3:.0f} ms per step, {BATCH / step_s:.0f} images/s. Now: diag report {arguments.trace}")


if __name__ == "__main__":
    main()
