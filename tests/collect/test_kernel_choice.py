"""Which kernels are profiled in depth, and in which of their launches."""

from __future__ import annotations

import itertools
import random

from diag.collect.kernel_choice import MOST_LAUNCHES, KernelTime, Selection, select, shortest_stretch, worth_it


def test_what_can_be_won_decides_and_not_the_time_taken() -> None:
    kernels = [KernelTime("gemm", 900, recoverable_ns=20), KernelTime("norm", 90, recoverable_ns=60)]
    assert worth_it(kernels) == ["norm", "gemm"]


def test_nothing_more_than_its_time_can_be_won_of_a_kernel() -> None:
    assert KernelTime("gemm", 900).at_most_ns == 900
    assert KernelTime("gemm", 900, recoverable_ns=5000).at_most_ns == 900


def test_kernels_beyond_nine_tenths_are_left_out() -> None:
    times = {"gemm": 500, "softmax": 400, "fill": 60, "copy": 40}
    assert worth_it([KernelTime(name, ns) for name, ns in times.items()]) == ["gemm", "softmax"]


def test_ties_are_decided_by_name() -> None:
    assert worth_it([KernelTime("b", 10), KernelTime("a", 10)]) == ["a", "b"]


def test_the_stretch_is_the_shortest_and_of_equal_ones_the_last() -> None:
    assert shortest_stretch(["a", "x", "a", "b", "a", "a", "b"], ["a", "b"]) == (4, 2)
    assert shortest_stretch(["a", "a", "a"], ["a"]) == (2, 1)


def test_the_stretch_is_what_trying_all_of_them_finds() -> None:
    source = random.Random(7)
    for _ in range(200):
        launches = source.choices("abcx", k=source.randint(3, 12))
        chosen = {"a", "b", "c"} & set(launches)
        matching = [name for name in launches if name in chosen]
        if not chosen:
            continue
        lengths = [
            end - start
            for start, end in itertools.combinations(range(len(matching) + 1), 2)
            if chosen <= set(matching[start:end])
        ]
        skip, count = shortest_stretch(launches, chosen)
        assert count == min(lengths)
        assert chosen <= set(matching[skip : skip + count])


def test_a_kernel_that_lies_far_from_the_others_is_given_up_for_fewer_launches() -> None:
    launches = ["rare"] + ["gemm"] * (2 * MOST_LAUNCHES) + ["norm"]
    kernels = [KernelTime("gemm", 500), KernelTime("norm", 400), KernelTime("rare", 300)]
    assert select(kernels, launches) == Selection(["gemm", "norm"], skip=2 * MOST_LAUNCHES - 1, count=2)


def test_without_kernels_there_is_nothing_to_select() -> None:
    assert select([], []) is None
    assert select([KernelTime("of another process", 5)], ["gemm"]) is None
