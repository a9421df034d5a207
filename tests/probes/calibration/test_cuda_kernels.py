"""The kernels of the calibration do what their work is counted as, in Triton's interpreter; and they compile."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

if find_spec("torch") is None or find_spec("triton") is None:
    pytest.skip("torch and triton are not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

RIGHT = """
import torch
from diag.probes.calibration import cuda_kernels as kernels

device = "cuda" if torch.cuda.is_available() else "cpu"
a, b = (torch.rand(1000, device=device) for _ in range(2))
c, n_blocks, size = torch.zeros(1000, device=device), 15, 64

sums = torch.zeros(4, device=device)
kernels.read[(4,)](a, sums, n_blocks, 3, stride=1, block_size=size)
torch.testing.assert_close(sums.sum(), 3 * a[: n_blocks * size].sum())

kernels.read[(4,)](a, sums, 7, 1, stride=2, block_size=size)
torch.testing.assert_close(sums.sum(), a[: 2 * 7 * size : 2].sum())

kernels.read_near[(4,)](a, sums, 6, blocks=2, block_size=size)
torch.testing.assert_close(sums.sum(), 3 * a[: 8 * size].sum())

kernels.copy[(4,)](a, c, n_blocks, 2, block_size=size)
assert torch.equal(c[: n_blocks * size], a[: n_blocks * size])
assert not c[n_blocks * size :].any()

kernels.triad[(4,)](a, b, c, n_blocks, 1, block_size=size)
torch.testing.assert_close(c[: n_blocks * size], (a + 0.5 * b)[: n_blocks * size])

kernels.fill[(4,)](c, n_blocks, 1, block_size=size)
assert c[: n_blocks * size].eq(1).all()

for dtype in (torch.float32, torch.float64):
    values = torch.ones(128, device=device, dtype=dtype)
    kernels.multiply_adds[(2,)](values, torch.tensor([0.5, 1.0], device=device, dtype=dtype), 3, block_size=64)
    assert values.eq(((1 * 0.5 + 1) * 0.5 + 1) * 0.5 + 1).all()

kernels.nothing[(1,)](a)
"""


def test_each_kernel_touches_what_is_counted() -> None:
    has_gpu = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    on_gpu = subprocess.run([sys.executable, "-c", has_gpu], check=False).returncode == 0
    env = os.environ if on_gpu else {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", RIGHT], check=True, env=env)


COMPILES = """
import triton, sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from diag.probes.calibration import cuda_kernels as kernels

ptr, count, constant = "*fp32", "i32", "constexpr"
builds = {
    "read": ({"source": ptr, "sums": ptr, "n_blocks": count, "rounds": count}, {"stride": 1, "block_size": 4096}),
    "read_near": ({"source": ptr, "sums": ptr, "rounds": count}, {"blocks": 2, "block_size": 4096}),
    "fill": ({"target": ptr, "n_blocks": count, "rounds": count}, {"block_size": 4096}),
    "copy": ({"source": ptr, "target": ptr, "n_blocks": count, "rounds": count}, {"block_size": 4096}),
    "triad": ({"a": ptr, "b": ptr, "target": ptr, "n_blocks": count, "rounds": count}, {"block_size": 4096}),
    "multiply_adds": ({"values": ptr, "factors": ptr, "n_steps": count}, {"block_size": 1024}),
    "nothing": ({"unused": ptr}, {}),
}
divisible = [["tt.divisibility", 16]]
for name, (signature, constants) in builds.items():
    attrs = {(i,): divisible for i, kind in enumerate(signature.values()) if kind == ptr}
    source = ASTSource(
        getattr(kernels, name), {**signature, **dict.fromkeys(constants, constant)}, constexprs=constants, attrs=attrs
    )
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8}).asm["ptx"]
    print(name, *(ptx.count(what) for what in ("ld.global", "ld.global.cg", "v4", "fma.rn.f32")))
"""


def test_they_compile_without_a_gpu_and_load_past_l1_in_wide_loads(tmp_path: object) -> None:
    others = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    env = {**others, "TRITON_DEFAULT_FP_FUSION": "1", "TRITON_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", COMPILES], check=True, env=env, capture_output=True, text=True)
    counts = {name: list(map(int, rest)) for name, *rest in map(str.split, ran.stdout.splitlines())}
    for name in ("read", "copy", "triad"):
        loads, past_l1, wide, _ = counts[name]
        assert loads == past_l1 > 0
        assert wide >= loads
    loads, past_l1, wide, _ = counts["read_near"]
    assert wide >= loads > past_l1 == 0
    assert counts["fill"][2] > 0
    assert counts["multiply_adds"][3] > 0
