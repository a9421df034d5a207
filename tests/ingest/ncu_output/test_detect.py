"""What ncu printed is known by its content, and what else it may be is not taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.ingest.detect import UnknownKind, detect
from diag.ingest.inputs import find_inputs
from tests.builders.ncu_report import NcuReport
from tests.ingest.ncu_output.pages import SAXPY, details, figure, saved
from tests.ingest.ncu_output.test_text_pages import NEW, OLD, SUMMARY

CSV = details(figure("gpu__time_duration.sum", "ns", "5"))
LOG = "==PROF== Connected to process 101 (/usr/bin/python3)\n"
NOISE = "step 1, loss 0.5, 3 samples - fine (really)\n" * 5_000


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (CSV, "ncu-csv"),
        (CSV.splitlines()[0], "ncu-csv"),
        (LOG + NOISE + CSV, "ncu-csv"),
        (NEW, "ncu-text"),
        (OLD, "ncu-text"),
        (SUMMARY, "ncu-text"),
        (LOG + NOISE + NEW, "ncu-text"),
        ("\n".join(NEW.splitlines()[7:]), "ncu-text"),  # without the process
    ],
)
def test_kinds(content: str, kind: str, tmp_path: Path) -> None:
    assert detect(saved(content, tmp_path, "whatever.json")) == kind


OTHERS = {
    "nsys stats": '"Time (%)","Total Time (ns)","Instances","Name"\n100.0,179106560,61,"saxpy(int)"\n',
    "nsys trace": "Start (ns),Duration (ns),CorrId,GrdX,Device,Ctx,Strm,Name\n1,2,3,64,A100 (0),1,7,saxpy(int)\n",
    "nvidia-smi": "timestamp, name, utilization.gpu [%], memory.used [MiB]\n2024/01/01, NVIDIA A100, 97 %, 4096 MiB\n",
    "rocprof": "Dispatch_ID,GPU_ID,Kernel_Name,Counter_Name,Counter_Value\n0,1,saxpy,SQ_WAVES,64\n",
    "nvprof": '==101== Profiling result:\n"Type","Time(%)","Time","Calls","Name"\n"GPU activities",99.0,5,1,"saxpy"\n',
    "prose": "NVIDIA Nsight Compute prints Metric Name, Metric Unit and Metric Value of each Kernel Name.\n",
    "table": "Context 1, Stream 7\n---- ---- ----\na b c\n",
    "zeros": "\0" * 5_000,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownKind, match="of a kind that diag does not know"):
        detect(saved(OTHERS[name], tmp_path, "table.csv"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LOG + "==WARNING== No kernels were profiled.\n", "it says: No kernels were profiled. diag"),
        (LOG + "==ERROR== ERR_NVGPUCTRPERM - no permission\n", "it says: ERR_NVGPUCTRPERM - no permission. diag"),
        (LOG + "==PROF== Report: /data/k.ncu-rep\n", "it says: Report: /data/k.ncu-rep. diag"),
        (LOG + "==ERROR== \x1b[31mred\n", r"it says: \[31mred\. diag"),
        (f'"Kernel Name","{SAXPY}",\n"Address","Source","# Samples"\n"0x10","LDG","5"\n', "the source page"),
        (f'"Kernel Name","{SAXPY}",\n"#","Address","Source"\n"0","0x10","LDG"\n', "the source page"),
    ],
)
def test_output_without_results_is_named(content: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownKind, match=said):
        detect(saved(content, tmp_path))


def test_in_a_folder(tmp_path: Path) -> None:
    saved(CSV, tmp_path, "a.csv")
    saved(NEW, tmp_path, "b.txt")
    saved(OTHERS["nvidia-smi"], tmp_path, "c.csv")
    said: list[str] = []
    assert [item.kind for item in find_inputs([tmp_path], said.append)] == ["ncu-csv", "ncu-text"]
    assert "reading 1 Nsight Compute CSV file, 1 Nsight Compute page; passing over 1 other file" in said[-1]


def test_what_was_printed_of_a_report_beside_it_counts_once(tmp_path: Path) -> None:
    saved(CSV, tmp_path, "a.csv")
    saved(NEW, tmp_path, "other.txt")
    NcuReport.of({}).write(tmp_path / "a.ncu-rep")
    said: list[str] = []
    assert [item.path.name for item in find_inputs([tmp_path], said.append)] == ["a.ncu-rep", "other.txt"]
    assert "passing over 1 printed page." in said[-1]
