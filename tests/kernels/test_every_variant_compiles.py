"""Every variant of the catalogue, for every target: good ones fit and do not spill, those that spill say so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diag.kernels.catalogue import operators
from diag.kernels.operator import DType, Operator
from diag.model.inspection import REFERENCE_PRODUCTS
from diag.probes.static_analysis import inspect

TARGETS = tuple(REFERENCE_PRODUCTS)


def checked(operator: Operator, dtype: DType) -> None:
    variants = [variant for variant in operator.variants if dtype in variant.dtypes]
    found = inspect(operator, variants, TARGETS, dtype).variants
    assert len(found) == len(variants) * len(TARGETS)
    wrong: list[str] = []
    for variant in variants:
        compiled = [each for each in found if each.variant == variant.name]
        kernels = [kernel for each in compiled for kernel in each.kernels]
        wrong += [str(refused) for each in compiled for refused in each.not_compiled]
        spilling = [kernel.compiled for kernel in kernels if kernel.compiled.spills]
        if not variant.spills:
            wrong += [f"{variant.name} spills and does not say so: {kernel}" for kernel in spilling]
        elif not spilling:
            wrong.append(f"{variant.name} says that it spills, but does so for none of {TARGETS}")
        if variant.is_good:
            wrong += [f"{variant.name} is good, and spills: {kernel}" for kernel in spilling]
            wrong += [f"{variant.name} is good, and does not fit: {kernel}" for kernel in kernels if not kernel.fits]
        assert all(each.kernels or each.not_compiled for each in compiled), f"{variant.name} has no builds"
    assert not wrong, "\n".join(wrong)


def types_of(operator: Operator) -> Sequence[DType]:
    return list(dict.fromkeys(dtype for variant in operator.variants for dtype in variant.dtypes))


OTHERS = [(name, dtype) for name, operator in operators().items() for dtype in types_of(operator)[1:]]


def test_there_are_operators() -> None:
    assert operators()
    assert all(any(variant.is_good for variant in operator.variants) for operator in operators().values())


@pytest.mark.parametrize("name", operators())
def test_in_the_first_type_of_each(name: str) -> None:
    checked(operators()[name], types_of(operators()[name])[0])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), OTHERS)
def test_in_all_its_other_types(name: str, dtype: DType) -> None:
    checked(operators()[name], dtype)
