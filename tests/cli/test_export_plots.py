"""`diag export --plots`: a whole folder of pictures, or a sentence and nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from diag.cli.export_plots import remarks
from diag.errors import ToolMissing
from diag.export import png
from diag.render.plots.gallery import Plot
from tests.builders.benchmark import BenchmarkFile
from tests.builders.ncu_report import NcuReport
from tests.cli.conftest import DIAG, Command, snapshot
from tests.launches.profiles import TIME, dram, vector
from tests.render.plots.reading import parsed, texts

RUN = {"devices.svg", "kernels.svg", "timeline.svg"}


def test_a_folder_of_pictures(diag: Command, export: Path, tmp_path: Path) -> None:
    before = snapshot(export.parent)
    diag("export", export, "--plots", "-o", tmp_path / "plots").is_quiet_success()
    made = {file.name: file.read_text("utf-8") for file in (tmp_path / "plots").iterdir()}
    assert made.keys() >= RUN
    assert all(name.endswith(".svg") for name in made)
    for svg in made.values():
        parsed(svg)
    assert "gemm_0" in texts(made["kernels.svg"])
    assert snapshot(export.parent) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inputs", "plots"]


def test_the_same_bytes_each_time(diag: Command, export: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        diag("export", export, "--plots", "--format", "svg", "-o", tmp_path / name).is_quiet_success()
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two


def test_profiles_have_their_own(diag: Command, tmp_path: Path) -> None:
    report = NcuReport.of({**TIME, **dram(300), **vector("f", fma=1000)}).write(tmp_path / "kernels.ncu-rep")
    diag("export", report, "--plots", "-o", tmp_path / "plots").is_quiet_success()
    diag("export", report, "-o", tmp_path / "roofline.svg").is_quiet_success()
    names = {file.name for file in (tmp_path / "plots").iterdir()}
    assert "roofline.svg" in names
    assert not names & RUN
    assert (tmp_path / "plots" / "roofline.svg").read_text() == (tmp_path / "roofline.svg").read_text()


def test_force_replaces_what_an_earlier_export_left(diag: Command, export: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plots"
    diag("export", export, "--plots", "-o", folder).is_quiet_success()
    (folder / "ranks.svg").write_text("of another case")
    (folder / "notes.txt").write_text("mine")
    assert "--force" in diag("export", export, "--plots", "-o", folder).is_one_sentence(2)
    assert (folder / "ranks.svg").exists()
    diag("export", export, "--plots", "-o", folder, "--force").is_quiet_success()
    assert not (folder / "ranks.svg").exists()
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--plots", "-o", "-"], "-o FOLDER"),
        (["--plots", "-o", "p", "-f", "csv"], "--format svg or --format png"),
        (["--plots", "-o", "p", "--table", "gpu_op"], "not for plots"),
        (["--plots", "-o", "p", "--window", "1s:"], "not for plots"),
        (["--plots", "-o", "p", "--scale", "2"], "Add --format png"),
        (["--plots", "-o", "."], "exists"),
        (["--plots", "-o", "no/such"], "there is no folder"),
        (["-f", "png", "-o", "p.png"], "--plots --format png"),
        (["--scale", "2", "-o", "t.json"], "--plots --format png"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_wrong_words_are_wrong_usage(words: list[str], hint: str, diag: Command, export: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "mine").touch()
    assert hint in diag("export", export, *words, cwd=place).is_one_sentence(2)
    assert [file.name for file in place.iterdir()] == ["mine"]


def test_a_folder_that_holds_an_input_is_left_alone(diag: Command, export: Path) -> None:
    before = snapshot(export.parent)
    said = diag("export", export, "--plots", "--force", "-o", export.parent).is_one_sentence(2)
    assert "holds an input" in said
    assert snapshot(export.parent) == before


def test_nothing_to_draw_leaves_nothing(diag: Command, tmp_path: Path) -> None:
    benchmark = BenchmarkFile().write(tmp_path / "benchmark.json")
    said = diag("export", benchmark, "--plots", "-o", tmp_path / "plots").is_one_sentence(2)
    assert "can be drawn" in said
    assert [file.name for file in tmp_path.iterdir()] == ["benchmark.json"]


def test_a_full_disk_leaves_nothing(diag: Command, export: Path, tmp_path: Path) -> None:
    diag("report", export)  # so that the case need not be written
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -f 4; exec "$0" export "$1" --plots -o "$2"', DIAG, export, tmp_path / "plots"],
        env=diag.environment(),
        capture_output=True,
        check=False,
    )
    assert ran.returncode != 0
    assert [file.name for file in tmp_path.iterdir()] == ["inputs"]


def test_what_is_not_drawn_is_named_with_its_reason() -> None:
    made = [Plot("devices", "<svg/>", ""), Plot("ranks", "", "there are not several ranks")]
    said = list(remarks(made, Path("plots")))
    assert said == ["plots: 1 plot.", "Not drawn: ranks, for there are not several ranks."]


def test_png_of_the_size_asked_for(diag: Command, export: Path, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="PNG needs the extra gpu-diag[plots]")
    try:
        png.check()
    except ToolMissing as error:
        pytest.skip(str(error))
    folder = tmp_path / "plots"
    diag("export", export, "--plots", "-f", "png", "-o", folder).is_quiet_success()
    diag("export", export, "--plots", "-f", "png", "--scale", "1", "-o", tmp_path / "small").is_quiet_success()
    assert {file.name for file in folder.iterdir()} >= {name.replace("svg", "png") for name in RUN}
    for file in folder.iterdir():
        width, small = (
            int.from_bytes((place / file.name).read_bytes()[16:20], "big") for place in (folder, tmp_path / "small")
        )
        assert (width, small) == (1920, 960)


def test_png_without_its_extra_says_how_to_get_it(diag: Command, export: Path, tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "resvg_py.py").write_text("raise ImportError('as if it were not installed')\n")
    ran = diag("export", export, "--plots", "-f", "png", "-o", tmp_path / "p", env={"PYTHONPATH": str(absent)})
    assert "gpu-diag[plots]" in ran.is_one_sentence(3)
    assert not (tmp_path / "p").exists()
