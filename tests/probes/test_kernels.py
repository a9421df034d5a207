"""What probes say of the Triton kernels that they run on a GPU is what the kernels say of themselves."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from diag.probes import gemm, norm, reduce, softmax, vector_add
from diag.probes.catalogue import PROBES
from diag.probes.implementations import kernels
from tests.probes.conftest import tiny

if find_spec("triton") is None:
    pytest.skip("triton is not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)


@pytest.mark.parametrize(
    ("probe", "operator"),
    [(vector_add, "vector_add"), (reduce, "reduce"), (gemm, "gemm"), (softmax, "softmax"), (norm, "rms_norm")],
)
def test_both_count_the_same_work(probe: object, operator: str) -> None:
    setup = tiny(probe.PROBE)  # type: ignore[attr-defined]
    sizes = {name.lower(): size for name, size in setup.shape.items()}
    ours, theirs = probe.count(setup), kernels(operator).count(dtype=setup.dtype, **sizes)  # type: ignore[attr-defined]
    assert (ours.flops, ours.read_bytes, ours.written_bytes) == (theirs.flops, theirs.read_bytes, theirs.written_bytes)


@pytest.mark.parametrize("name", ["vector_add", "reduce", "gemm", "softmax", "norm", "flash_attention"])
def test_a_probe_of_an_operator_offers_its_ladder_on_a_gpu(name: str) -> None:
    ladder = [each.name for each in PROBES[name].variants("cuda")]
    assert len(ladder) > 1
    assert len(set(ladder)) == len(ladder)
