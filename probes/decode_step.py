"""One token for each of a few sequences: every weight is read, and next to nothing is done with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from shutil import which
from typing import TYPE_CHECKING, Any

from diag.errors import ToolMissing
from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.probe import Checked, Device, Probe, ProbeVariant, Setup, Workload

if TYPE_CHECKING:
    from diag.probes.decoder import Decoder, Sizes

EAGER = ProbeVariant("eager", "An operator after the other: some twenty for each layer.")
COMPILED = ProbeVariant("compiled", "torch.compile makes one layer to a few kernels, and all layers use them.")
GRAPH = ProbeVariant("cuda_graph", "All kernels start with one launch, for the next larger of some sizes of batches.")

BUCKETS = (1, 2, 4, 8, 16, 32)
KV_PER_HEAD = 2


def variants(device: Device) -> Sequence[ProbeVariant]:
    return (EAGER, COMPILED) if device == "cpu" else (EAGER, COMPILED, GRAPH)


def sizes_of(setup: Setup) -> Sizes:
    from diag.probes.decoder import Sizes

    width, heads = setup["width"], setup["heads"]
    return Sizes(setup["layers"], width, heads, heads // 4, 11 * width // 4, 8 * width)


def weights(setup: Setup) -> int:
    """That are read for each token: all but the embedding, of which it takes one row; of norms those of a layer."""
    width, layers = setup["width"], setup["layers"]
    attention = 2 * width * width + 2 * width * width // 4
    return layers * (attention + 3 * width * (11 * width // 4) + 2 * width) + 8 * width * width + width


def count(setup: Setup) -> Count:
    """Products with weights, and with keys and values of the context. Keys and values are read once for four heads."""
    batch, width, layers, size = setup["batch"], setup["width"], setup["layers"], ELEMENT_BYTES[setup.dtype]
    tokens = setup["context"] + 1
    attended = batch * layers * tokens * width
    read = weights(setup) + attended * KV_PER_HEAD // 4
    formula = (
        "FLOPs: 2 x batch x weights + 4 x batch x layers x (context + 1) x width; "
        f"bytes: (weights + batch x layers x (context + 1) x width / 2 + batch x logits) x {size}, "
        f"weights = {weights(setup)}"
    )
    return Count(2 * batch * weights(setup) + 4 * attended, read * size, 8 * batch * width * size, formula)


def make(setup: Setup, variant: str) -> Workload:
    import torch

    from diag.probes import tensors
    from diag.probes.decoder import Decoder

    if variant == COMPILED.name:
        check_compiler(setup.device)
    torch.manual_seed(setup.seed)
    with torch.device(setup.device):
        model = Decoder(sizes_of(setup), _padded(setup["batch"]), setup["context"])
    model = model.to(tensors.torch_type(setup.dtype)).requires_grad_(False).eval()
    tokens = torch.arange(setup["batch"], device=setup.device)

    def check() -> Checked:
        """Of the logits. The twin has the same weights and the same cache, as far as they are of this type."""
        with torch.device(setup.device):
            exact = Decoder(sizes_of(setup), _padded(setup["batch"]), setup["context"]).double()
        exact.load_state_dict(model.state_dict())
        exact.requires_grad_(False)
        depth = 4 * setup["layers"]
        return tensors.checked(setup, run(tokens), exact(tokens), setup["width"], depth=depth)

    run = _runner(setup, variant, model)
    return Workload(
        steps=[lambda: run(tokens)],
        count=count(setup),
        arithmetic=tensors.product(setup.device, setup.dtype),
        level="dram",
        check=check,
    )


def _runner(setup: Setup, variant: str, model: Decoder) -> Callable[[Any], Any]:
    if variant == COMPILED.name:
        for block in model.blocks:
            block.compile()
    if variant == GRAPH.name:
        from diag.probes.decoder import PaddedGraphs

        return PaddedGraphs(model, tuple(each for each in BUCKETS if each <= _padded(setup["batch"])))
    return model


def _padded(batch: int) -> int:
    """The size in which a batch runs."""
    return min((each for each in BUCKETS if each >= batch), default=batch)


def check_compiler(device: Device) -> None:
    """Raises ToolMissing: torch.compile has a C++ compiler make the code of a CPU, and Triton a C compiler its own."""
    if device == "cpu" and not any(which(each) for each in (os.environ.get("CXX", ""), "g++", "clang++")):
        raise ToolMissing(
            "torch.compile needs a C++ compiler here, and there is none. Install g++, name one in CXX, or run another "
            "variant: diag probe run decode_step --variant eager"
        )
    if device == "cuda" and not any(which(each) for each in (os.environ.get("CC", ""), "gcc", "clang", "cc")):
        raise ToolMissing(
            "torch.compile needs a C compiler here, and there is none. Install gcc, name one in CC, or run another "
            "variant: diag probe run decode_step --variant cuda_graph"
        )


def needs_bytes(setup: Setup) -> int:
    """Weights and their twin in FP64, with embedding and cache."""
    cache = KV_PER_HEAD * setup["batch"] * setup["layers"] * (setup["context"] + 1) * setup["width"] // 4
    return (weights(setup) + 8 * setup["width"] ** 2 + cache) * (ELEMENT_BYTES[setup.dtype] + 8)


PROBE = Probe(
    name="decode_step",
    idea="the next token, by a small decoder of Llama's design",
    bound="memory bandwidth, or launches",
    dtypes={"cpu": ("fp32", "bf16"), "cuda": ("bf16", "fp16", "fp32")},
    shapes={
        "cpu": {
            "tiny": {"batch": 2, "layers": 2, "width": 64, "heads": 4, "context": 16},
            "small": {"batch": 1, "layers": 6, "width": 1024, "heads": 16, "context": 256},
            "full": {"batch": 1, "layers": 12, "width": 1024, "heads": 16, "context": 1024},
        },
        "cuda": {
            "tiny": {"batch": 3, "layers": 2, "width": 256, "heads": 4, "context": 16},
            "small": {"batch": 3, "layers": 16, "width": 2048, "heads": 16, "context": 1024},
            "full": {"batch": 6, "layers": 24, "width": 4096, "heads": 32, "context": 4096},
        },
    },
    variants=variants,
    needs_bytes=needs_bytes,
    make=make,
)
