"""Each kernel's fault is proved from its machine code or in closed form, and its twin is clean and does the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import pytest

if find_spec("torch") is None or find_spec("triton") is None:
    pytest.skip("torch and triton are not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

import torch

from diag.kernels.compilation import BuildSource, Job, compile_all
from diag.kernels.correctness import error_of, tolerance
from diag.model.inspection import REFERENCE_PRODUCTS, CompiledKernel, NotCompiled
from diag.probes.faults.kernels.bank_conflicts import conflict_ways
from diag.probes.faults.kernels.fault import KernelFault
from diag.probes.faults.kernels.fp64_by_accident import ELEMENTS_PER_THREAD
from diag.probes.faults.kernels.register_spills import least_stack_bytes
from diag.probes.faults.kernels.strided_access import sectors_per_request
from diag.probes.faults.kernels.tiny_grid import idle_share
from diag.rules.engine import rules

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NAMES = ("register_spills", "fp64_by_accident", "strided_access", "tiny_grid", "bank_conflicts")


def fault(name: str) -> KernelFault:
    found: KernelFault = import_module(f"diag.probes.faults.kernels.{name}").FAULT
    return found


Key = tuple[str, int, bool]  # target, dose, is_sick


@cache
def compiled(name: str) -> Mapping[Key, CompiledKernel]:
    """All doses for one target, the one that is compiled fastest, and the mildest for the others."""
    keys = [
        (target, dose, is_sick)
        for target in REFERENCE_PRODUCTS
        for dose in (fault(name).doses if target == "sm_80" else fault(name).doses[:1])
        for is_sick in (False, True)
    ]
    module = f"diag.probes.faults.kernels.{name}"
    jobs = [
        Job(BuildSource(module, "builds", {"dose": dose, "is_sick": is_sick}), target) for target, dose, is_sick in keys
    ]
    done = compile_all(jobs, workers=1)
    assert [refused for each in done for refused in each.not_compiled] == list[NotCompiled]()
    return {key: each.kernels[0] for key, each in zip(keys, done, strict=True)}


@pytest.mark.parametrize("name", NAMES)
def test_the_sick_twin_is_proved_sick_and_the_healthy_one_clean(name: str) -> None:
    of = fault(name)
    kernels = compiled(name)
    symptoms = {key: of.proof(kernel, *key[1:]) for key, kernel in kernels.items()}
    for target in REFERENCE_PRODUCTS:
        healthy = [symptoms[key] for key in symptoms if key[0] == target and not key[2]]
        sick = [symptoms[key] for key in symptoms if key[0] == target and key[2]]
        assert set(healthy) == {of.clean}
        assert of.clean < sick[0]
        assert sick == sorted(set(sick)), "a larger dose is a larger symptom"
    for key, symptom in symptoms.items():
        _IS_AS_EXPECTED[name](kernels, key, symptom)


def _spills_are_on_the_stack_and_in_the_code(kernels: Mapping[Key, CompiledKernel], key: Key, symptom: float) -> None:
    kernel, (_, dose, is_sick) = kernels[key], key
    if is_sick:
        assert kernel.stack_bytes == symptom >= least_stack_bytes(dose)
        assert min(kernel.local_loads, kernel.local_stores) > 0
    else:
        assert (kernel.stack_bytes, kernel.local_loads, kernel.local_stores) == (0, 0, 0)


def _each_step_of_each_element_is_fp64(kernels: Mapping[Key, CompiledKernel], key: Key, symptom: float) -> None:
    _, dose, is_sick = key
    steps = dose * ELEMENTS_PER_THREAD
    assert symptom == (steps if is_sick else 0)
    assert kernels[key].count("FFMA", "FFMA2") > 0 or is_sick


def _sectors_grow_with_the_stride(_: Mapping[Key, CompiledKernel], key: Key, symptom: float) -> None:
    assert symptom == (4 * key[1] if key[2] else 4)


def _the_code_of_both_is_the_same(kernels: Mapping[Key, CompiledKernel], key: Key, symptom: float) -> None:
    target, dose, is_sick = key
    sms = {"sm_80": 108, "sm_90": 132, "sm_100": 148, "sm_120": 170}[target]
    assert symptom == (1 - dose / sms if is_sick else 0)
    assert kernels[key].instructions == kernels[target, dose, False].instructions


def _turns_are_the_dose_and_the_loads_the_same(kernels: Mapping[Key, CompiledKernel], key: Key, symptom: float) -> None:
    target, dose, is_sick = key
    assert symptom == (dose if is_sick else 1)
    assert kernels[key].count("LDS") == kernels[target, dose, False].count("LDS")
    assert kernels[key].count("STS") == kernels[target, dose, False].count("STS")


_IS_AS_EXPECTED = {
    "register_spills": _spills_are_on_the_stack_and_in_the_code,
    "fp64_by_accident": _each_step_of_each_element_is_fp64,
    "strided_access": _sectors_grow_with_the_stride,
    "tiny_grid": _the_code_of_both_is_the_same,
    "bank_conflicts": _turns_are_the_dose_and_the_loads_the_same,
}


@pytest.mark.parametrize("name", NAMES)
def test_each_fault_has_doses_and_rules_that_exist(name: str) -> None:
    assert fault(name).name == name
    assert len(set(fault(name).doses)) >= 3
    assert set(fault(name).rules) <= set(rules())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bank_conflicts" or DEVICE == "cuda"])
def test_both_twins_are_right(name: str) -> None:
    of = fault(name)
    for dose in of.doses[:2]:
        given = of.inputs(dose, DEVICE)
        healthy, sick = of.run(given, dose, False), of.run(given, dose, True)
        wanted = of.reference(given, dose)
        for result in (healthy, sick):
            assert error_of(result, wanted).relative <= tolerance("fp32", 64)
        if name != "fp64_by_accident":  # whose twins round differently
            assert torch.equal(healthy, sick)


def test_proofs_hold_only_for_the_code_they_were_made_for() -> None:
    vectorised = CompiledKernel("k", "sm_90", 32, 0, 0, 128, {"LDG.E.128": 1, "LDS.128": 1})
    for name in ("strided_access", "bank_conflicts"):
        with pytest.raises(ValueError, match="the closed form holds for"):
            fault(name).proof(vectorised, 4, True)


def test_closed_forms() -> None:
    assert [sectors_per_request(stride, 4) for stride in (1, 2, 3, 8, 100)] == [4, 8, 12, 32, 32]
    assert sectors_per_request(1, 8) == 8
    assert [conflict_ways(phases) for phases in (1, 2, 4, 8, 16, 32)] == [32, 16, 8, 4, 2, 1]
    assert [idle_share(blocks, 100) for blocks in (1, 50, 100, 1000)] == [0.99, 0.5, 0, 0]
    assert [least_stack_bytes(sums) for sums in (16, 255, 256, 512)] == [0, 0, 4, 1028]
