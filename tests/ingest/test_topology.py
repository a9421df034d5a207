"""Matrices of nvidia-smi topo -m, of several versions, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.topology import read_matrix
from tests.builders.topology import Topology


def links_of(path: Path) -> dict[tuple[str, str], str]:
    assert detect(path) == "topology"
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        return {(row["a"], row["b"]): row["kind"] for row in case.rows("SELECT a, b, kind FROM link")}


@pytest.mark.parametrize(
    "topology",
    [
        Topology(),
        Topology(is_underlined=False),
        Topology(about_cpus=("CPU Affinity",)),
        Topology(about_cpus=("CPU Affinity", "NUMA Affinity")),
        Topology(cards=()),
        Topology(cards=("mlx5_0", "mlx5_1")),
        Topology(n_gpus=2, cards=()),
    ],
)
def test_each_pair_has_one_link(tmp_path: Path, topology: Topology) -> None:
    devices = topology.devices
    expected = {(a, b): topology.kind(a, b) for at, a in enumerate(devices) for b in devices[at + 1 :]}
    assert links_of(topology.write(tmp_path / "topo.txt")) == expected
    assert links_of(topology.backwards().write(tmp_path / "other.txt")) == expected


def test_spaces_in_the_place_of_tabs(tmp_path: Path) -> None:
    spaced = Topology().text.expandtabs(8)
    path = tmp_path / "topo.txt"
    path.write_text("$ nvidia-smi topo -m\n" + spaced)
    assert links_of(path) == links_of(Topology().write(tmp_path / "tabs.txt"))


def test_a_damaged_row_is_noted_and_read_from_the_others() -> None:
    lines = Topology(n_gpus=3, cards=()).text.splitlines()
    lines[2] = "GPU1\tNV18 NV18"
    lines[3] = "GPU2\tNV18\tNODENODE\tX"
    matrix = read_matrix(lines)
    assert [(each.a, each.b) for each in matrix.links] == [("GPU0", "GPU1"), ("GPU0", "GPU2")]
    assert matrix.notes == ["The row of GPU1 is damaged and was left out.", "1 cell of GPU2 name no kind of link."]


def test_of_several_hosts_the_first_is_read() -> None:
    matrix = read_matrix((Topology(n_gpus=2, cards=()).text + Topology(n_gpus=8, cards=()).text).splitlines())
    assert len(matrix.links) == 1
    assert "several matrices" in matrix.notes[0]


def test_a_single_gpu_has_no_links(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no link between two devices"):
        links_of(Topology(n_gpus=1, cards=()).write(tmp_path / "topo.txt"))
