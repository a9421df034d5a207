"""The catalogue: that what each file says of its operator fits together."""

from __future__ import annotations

import pytest

from diag.kernels.catalogue import operators
from diag.kernels.operator import Operator, Variant

VARIANTS = [
    pytest.param(operator, variant, id=f"{operator.name}-{variant.name}")
    for operator in operators().values()
    for variant in operator.variants
]


@pytest.mark.parametrize("operator", operators().values(), ids=operators())
def test_an_operator_climbs_from_naive_to_good(operator: Operator) -> None:
    names = [variant.name for variant in operator.variants]
    assert len(set(names)) == len(names)
    assert len(names) == 1 or not operator.variants[0].is_good
    assert any(variant.is_good for variant in operator.variants)
    assert operator.count(**operator.default_shape, dtype="fp16").n_bytes > 1 << 26


@pytest.mark.parametrize(("operator", "variant"), VARIANTS)
def test_builds_say_what_each_parameter_is(operator: Operator, variant: Variant) -> None:
    for dtype in variant.dtypes:
        assert variant.builds(dtype)
        for build in variant.builds(dtype):
            assert {*build.signature, *build.constants} == set(build.kernel.arg_names)
            assert set(build.divisible_by_16) <= set(build.signature)
            assert build.programs
