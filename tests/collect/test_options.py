"""The command lines of nsys and ncu, without either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from diag.collect.ncu_capture import PERMISSION, status_of_workload, why_nothing
from diag.collect.ncu_options import NcuOptions, exactly, ncu_command
from diag.collect.nsys_capture import last_words, unseen_ranges
from diag.collect.nsys_options import Abilities, NsysOptions, nsys_command
from diag.ingest.nsys_tool import find_nsys

HELP = """
\t--capture-range-end=
\t   Note that '--trace=mpi' needs an implementation of 'openmpi'.
\t-d, --duration=
\t-y, --delay=
\t--kill=
\t-o, --output=
\t-s, --sample=
\t-t, --trace=

\t   Possible values are 'cuda', 'nvtx', 'cublas', 'osrt', 'cudnn' or 'none'.
\t   Default is 'cuda,nvtx,osrt,opengl'. Application scope.

\t--wait=
\t   Possible values are 'primary' or 'all'.
"""


def nsys(options: NsysOptions, text: str = HELP) -> Sequence[str]:
    command = nsys_command(Path("nsys"), Abilities.of_help(text), options, Path("out"), ["./app", "--delay=9"])
    assert [str(word) for word in command[:2]] == ["nsys", "profile"]
    assert command[-2:] == ["./app", "--delay=9"]
    return [str(word) for word in command[2:-2]]


def test_help_tells_options_and_traces() -> None:
    abilities = Abilities.of_help(HELP)
    assert {"--trace", "--duration", "--capture-range-end"} <= abilities.options
    assert abilities.traces >= {"cuda", "nvtx", "osrt", "cudnn", "cublas"}
    assert not abilities.traces & {"openmpi", "primary"}


def test_with_a_gpu_its_libraries_are_traced_without_it_the_host_alone() -> None:
    assert "--trace=cuda,nvtx,osrt,cudnn,cublas" in nsys(NsysOptions())
    assert "--trace=nvtx,osrt" in nsys(NsysOptions(with_gpu=False))


def test_only_what_this_nsys_knows_is_asked_of_it() -> None:
    assert not [word for word in nsys(NsysOptions()) if "memory-usage" in word or "cpuctxsw" in word]
    newer = nsys(NsysOptions(), HELP + "\t--cuda-memory-usage=\n\t--cpuctxsw=\n")
    assert {"--cuda-memory-usage=true", "--cpuctxsw=none"} <= set(newer)
    assert not [word for word in nsys(NsysOptions(), HELP.replace("'cudnn'", "")) if "cudnn" in word]


def test_the_cpu_is_sampled_only_when_asked_for() -> None:
    assert "--sample=none" in nsys(NsysOptions())
    assert "--sample=process-tree" in nsys(NsysOptions(sample=True))


def test_the_workload_survives_the_end_of_the_recording() -> None:
    assert {"--delay=3", "--duration=5", "--kill=none"} <= set(nsys(NsysOptions(delay_s=3, duration_s=5)))
    assert not [word for word in nsys(NsysOptions()) if word.startswith(("--delay", "--duration", "--kill"))]


def test_a_range_is_looked_for_in_any_domain_unless_one_is_named() -> None:
    text = HELP + "\t-c, --capture-range=\n\t-p, --nvtx-capture=\n\t-e, --env-var=\n"
    assert {"--capture-range=nvtx", "--nvtx-capture=step@*", "--capture-range-end=stop", "--kill=none"} <= set(
        nsys(NsysOptions(range_name="step"), text)
    )
    assert "--nvtx-capture=step@mine" in nsys(NsysOptions(range_name="step@mine"), text)


@pytest.mark.skipif(find_nsys() is None, reason="needs an installed nsys")
def test_the_installed_nsys_knows_every_option() -> None:
    from diag.collect.nsys_capture import abilities_of

    installed = find_nsys()
    assert installed is not None
    abilities = abilities_of(installed)
    options = NsysOptions(delay_s=1, duration_s=1, range_name="step")
    asked = nsys_command(installed.path, abilities, options, Path("out"), [])[2:]
    names = {str(word).partition("=")[0] for word in asked}
    assert names >= {"--trace", "--cuda-memory-usage", "--sample", "--cpuctxsw", "--kill", "--nvtx-capture", "--output"}
    assert "--trace=cuda,nvtx,osrt,cudnn,cublas" in asked


@pytest.mark.parametrize(
    ("version", "nvtx", "is_unseen"),
    [
        ((2022, 4, 2, 1), "0.2.11", False),
        ((2022, 4, 2, 1), "0.2.12", True),
        ((2023, 4, 4, 54), "0.2.15", True),
        ((2024, 1, 1, 1), "0.2.15", False),
        ((2022, 4, 2, 1), None, False),
    ],
)
def test_ranges_of_newer_nvtx_under_older_nsys(version: tuple[int, ...], nvtx: str | None, is_unseen: bool) -> None:
    assert bool(unseen_ranges(version, {"nvtx": nvtx} if nvtx else {})) == is_unseen


def test_last_words_are_no_progress() -> None:
    assert last_words("Error: no agent.\nGenerating 'x'\n[1/1] [==50%  ] a\r\n") == "Error: no agent"
    assert last_words("") == "it said nothing"


def ncu(options: NcuOptions) -> str:
    return " ".join(map(str, ncu_command(Path("ncu"), options, Path("out"), Path("log"), ["./app", "x"])))


def test_ncu_talks_to_its_log_and_follows_children() -> None:
    said = ncu(NcuOptions())
    assert said.endswith("--force-overwrite ./app x")
    for words in ("--log-file log", "--export out", "--target-processes all", "--set full", "--launch-count 20"):
        assert words in said


def test_ncu_is_given_what_was_chosen() -> None:
    said = ncu(
        NcuOptions(
            kernel=exactly(["gemm", "a.b"]),
            launch_skip=3,
            launch_count=2,
            sections=["SpeedOfLight"],
            clock_control="none",
            cache_control="none",
        )
    )
    for words in (
        r"--kernel-name regex:^(gemm|a\.b)$",
        "--launch-skip 3",
        "--launch-count 2",
        "--section SpeedOfLight",
        "--clock-control none",
        "--cache-control none",
    ):
        assert words in said
    assert "--set" not in said


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n==WARNING== No kernels were profiled.",
            "root",
        ),
        ("==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so?).", "no CUDA driver"),
        ("==WARNING== No metrics to collect found in sections.", "--list-sets"),
        ("==WARNING== No kernels were profiled.", "--kernel"),
        ("", "--kernel"),
    ],
)
def test_what_ncu_says_is_explained(said: str, told: str) -> None:
    assert told in why_nothing(said)


def test_the_remedy_for_counters_is_named() -> None:
    for words in ("CAP_SYS_ADMIN", "NVreg_RestrictProfilingToAdminUsers=0", "developer.nvidia.com/ERR_NVGPUCTRPERM"):
        assert words in PERMISSION


def test_ncu_tells_the_status_of_the_workload() -> None:
    assert status_of_workload(1, "==ERROR== The application returned an error code (7).") == 7
    assert status_of_workload(0, "==PROF== Report: out.ncu-rep") == 0
