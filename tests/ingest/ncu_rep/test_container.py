"""Reports that are cut, damaged, or claim what cannot be: what is whole is read, and the rest is said."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.inputs import find_inputs
from diag.ingest.launch_records import LaunchReport
from diag.ingest.ncu_rep.magic import MAGIC
from diag.ingest.ncu_rep.read import read
from tests.builders.ncu_report import KernelLaunch, NcuReport
from tests.builders.nsys_report import Report, message

WHOLE = NcuReport([KernelLaunch({"gpu__time_duration.sum": 1000 + n}) for n in range(3)])
CONTENT = WHOLE.encoded()
HEADER = MAGIC + struct.pack("<I", 2) + message({1: 7})


def written(folder: Path, content: bytes) -> Path:
    path = folder / "kernels.ncu-rep"
    path.write_bytes(content)
    return path


def all_of(report: LaunchReport) -> tuple[int, list[str]]:
    """Number of launches, and what of them could not be read."""
    return len(list(report.launches)), report.problems


def test_a_whole_report(tmp_path: Path) -> None:
    report = read(written(tmp_path, CONTENT))
    assert not report.facts.is_cut
    assert all_of(report) == (3, [])


def test_the_name_of_the_file_does_not_matter(tmp_path: Path) -> None:
    """Before 2020 reports were called so."""
    assert detect(WHOLE.write(tmp_path / "kernels.nsight-cuprof-report")) == "ncu-report"
    assert detect(WHOLE.write(tmp_path / "kernels.txt")) == "ncu-report"
    assert [(found.path.name, found.kind) for found in find_inputs([tmp_path])] == [
        ("kernels.nsight-cuprof-report", "ncu-report"),
        ("kernels.txt", "ncu-report"),
    ]


def test_what_is_only_named_like_a_report(tmp_path: Path) -> None:
    path = tmp_path / "kernels.ncu-rep"
    path.write_bytes(Report([]).content())
    assert detect(path) == "nsys-report"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(InputError, match="does not know"):
        detect(path)


def test_cut_anywhere_it_keeps_the_launches_that_are_whole(tmp_path: Path) -> None:
    before = 0
    for end in range(len(CONTENT)):
        path = written(tmp_path, CONTENT[:end])
        try:
            report = read(path)
        except InputError:
            assert before == 0
            continue
        n_launches, problems = all_of(report)
        assert before <= n_launches <= 2
        assert n_launches or problems
        before = n_launches
    assert before == 2


def test_cut_before_its_list_of_devices_a_launch_tells_of_its_own(tmp_path: Path) -> None:
    attributes: dict[str, int | float | str] = {
        "device__attribute_display_name": "NVIDIA A10G",
        "device__attribute_multiprocessor_count": 80,
        "device__attribute_compute_capability_major": 8,
        "device__attribute_compute_capability_minor": 6,
    }
    content = NcuReport([KernelLaunch({"gpu__time_duration.sum": 1, **attributes})], device=None).encoded()
    (device,) = read(written(tmp_path, content)).facts.devices
    assert (device.name, device.compute_capability, device.attributes["multiprocessor_count"]) == (
        "NVIDIA A10G",
        (8, 6),
        80,
    )


@pytest.mark.parametrize(
    "content",
    {
        "mark only": MAGIC,
        "no header": MAGIC + struct.pack("<I", 0),
        "a header without end": MAGIC + struct.pack("<I", 1 << 31) + message({1: 7}),
        "no block": HEADER,
        "noise for a header": MAGIC + struct.pack("<I", 4) + b"\xff\xff\xff\xff",
        "a block longer than the file": HEADER + struct.pack("<I", 1 << 30) + b"x",
        "other mark": b"NVIDIA Tegra Profiler Report",
    }.values(),
)
def test_no_report_at_all_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="report"):
        read(written(tmp_path, content))


def block(header: dict[int, int | bytes], payload: bytes) -> bytes:
    encoded = message({**header, 5: len(payload)})
    return struct.pack("<I", len(encoded)) + encoded + payload


EMPTY_MESSAGE = struct.pack("<I", 0)


def test_launches_that_are_promised_and_not_there(tmp_path: Path) -> None:
    content = HEADER + block({2: 4_000_000_000}, b"")
    assert all_of(read(written(tmp_path, content))) == (
        0,
        [
            "It holds no launch: ncu met no kernel that it was to measure, or was stopped before the first one.",
            "4,000,000,000 launches that the report promises are missing.",
        ],
    )


def test_launches_that_say_nothing_are_none(tmp_path: Path) -> None:
    report = read(written(tmp_path, CONTENT + block({2: 2}, EMPTY_MESSAGE * 2)))
    assert all_of(report) == (3, ["2 launches are damaged and left out."])


def test_a_launch_that_is_noise_leaves_the_others(tmp_path: Path) -> None:
    noise = struct.pack("<I", 3) + b"\xff\xff\xff"
    report = read(written(tmp_path, CONTENT + block({2: 1}, noise)))
    assert all_of(report) == (3, ["1 launch is damaged and left out."])


def test_results_of_a_kind_that_is_not_known(tmp_path: Path) -> None:
    """Newer files may have them behind the others, counted by a field that nobody reads yet."""
    report = read(written(tmp_path, CONTENT + block({10: 1}, struct.pack("<I", 2) + message({1: 1}))))
    assert all_of(report) == (3, ["1 result is of a kind that diag does not know, and left out."])


def test_a_message_longer_than_its_block_ends_the_block(tmp_path: Path) -> None:
    report = read(written(tmp_path, CONTENT + block({2: 1}, struct.pack("<I", 900) + b"x") + block({}, b"")))
    assert all_of(report) == (3, ["1 launch that the report promises is missing."])


def test_metrics_whose_names_are_not_there(tmp_path: Path) -> None:
    nameless, beyond = {2: {5: 1}}, {1: 999, 2: {5: 1}}
    result = message({1: 101, 6: b"f", 7: b"f", 13: [nameless, beyond]})
    report = read(written(tmp_path, CONTENT + block({2: 1}, struct.pack("<I", len(result)) + result)))
    assert all_of(report) == (4, ["2 metrics are left out: the report does not hold their names."])


def test_numbers_of_any_size_and_depth(tmp_path: Path) -> None:
    """Grids, addresses and counts of 64 bits; groups in groups, which protobuf bounds."""
    most = (1 << 64) - 1
    sizes = {10: {1: most, 2: most, 3: most}, 11: {1: most}}
    result = message({1: most, 6: b"f", **sizes, 22: most, 23: most}) + b"\xfb\x01" * 5000
    assert all_of(read(written(tmp_path, CONTENT + block({2: 1}, struct.pack("<I", len(result)) + result))))[0] == 3

    result = message({1: most, 6: b"f", **sizes, 22: most, 23: most})
    report = read(written(tmp_path, CONTENT + block({2: 1}, struct.pack("<I", len(result)) + result)))
    *_, launch = report.launches
    assert launch.grid == ((1 << 63) - 1,) * 3
    assert launch.context == launch.stream == launch.tid == (1 << 32) - 1
