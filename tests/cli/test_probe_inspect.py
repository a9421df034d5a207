"""`diag probe inspect` as its users run it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import interruptible
from tests.cli.conftest import Command

NEEDS_TRITON = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("triton") is None,
    reason="torch and triton are not installed (pip install 'gpu-diag[probes]')",
)


@NEEDS_TRITON
def test_a_kernel_on_paper(diag: Command) -> None:
    shown = diag("probe", "inspect", "vector_add", "--arch", "sm_90", "--arch", "sm_120").is_quiet_success()
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert shown.index("sm_90, as on H100 80GB HBM3 (132 SMs)") < shown.index(
        "sm_120, as on GeForce RTX 5090 (170 SMs)"
    )
    flowing = " ".join(shown.split())
    assert "nothing here is measured" in flowing
    assert "ridge point" in flowing
    assert "memory side" in flowing
    assert "LDG.E.128" in flowing


@NEEDS_TRITON
def test_as_json_for_all_targets_though_triton_is_told_to_interpret(diag: Command) -> None:
    ran = diag("probe", "inspect", "vector_add", "--dtype", "fp32", "-f", "json", env={"TRITON_INTERPRET": "1"})
    found = json.loads(ran.is_quiet_success())
    assert (found["schema"], found["operator"], found["dtype"]) == ("diag.inspection/1", "vector_add", "fp32")
    assert {each["target"] for each in found["variants"]} == {"sm_80", "sm_90", "sm_100", "sm_120"}
    for variant in found["variants"]:
        assert variant["not_compiled"] == []
        assert variant["roofline"]["side"] == "memory"
        (memory,) = [each for each in variant["roofline"]["ceilings"] if each["unit"] == "bytes/s"]
        n_bytes = 3 * 4 * found["shape"]["n"]
        assert variant["roofline"]["bytes"] == n_bytes
        assert variant["roofline"]["least_time_ns"] == pytest.approx(1e9 * n_bytes / memory["per_s"])
        for kernel in variant["kernels"]:
            assert kernel["fits"]
            assert not kernel["spills"]
            assert (kernel["stack_bytes"], kernel["local_loads"]) == (0, 0)
            assert kernel["waves"] > 1


@NEEDS_TRITON
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "There is no operator 'nothing'. There is: vector_add"),
        (("vector_add", "--arch", "sm_12"), "no target 'sm_12'. Did you mean sm_120? There is: sm_80, sm_90,"),
        (("vector_add", "--dtype", "fp7"), "no type 'fp7'. There is: fp32, tf32, fp16, bf16."),
        (("vector_add", "--dtype", "tf32"), "vector_add does not take tf32. It takes: fp32"),
        (("vector_add", "--variant", "worst"), "no variant of vector_add 'worst'. There is: "),
    ],
)
def test_what_there_is_not_is_a_sentence_with_what_there_is(diag: Command, words: tuple[str, ...], said: str) -> None:
    assert said in diag("probe", "inspect", *words).is_one_sentence(2)


def test_without_triton_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['triton'] = None; from diag.cli.app import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "probe", "inspect", "vector_add"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("diag: The kernels need ")
    assert ran.stderr.rstrip().endswith("pip install 'gpu-diag[probes]'")


def test_help_waits_for_neither_torch_nor_triton(diag: Command, tmp_path: Path) -> None:
    for name in ("torch", "triton"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('loaded')")
    shown = diag("probe", "inspect", "-h", env={"PYTHONPATH": str(tmp_path)}).is_quiet_success()
    assert "diag probe inspect gemm --arch sm_90" in shown


@NEEDS_TRITON
def test_an_interrupt_leaves_no_process_and_no_file(diag: Command, tmp_path: Path) -> None:
    process = diag.start("probe", "inspect", "vector_add", env={"TMPDIR": str(tmp_path)})
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    interruptible.wait_until(lambda: any(tmp_path.glob("diag-*/*/answer")) and bool(children.read_text()), process)
    workers = [int(pid) for pid in children.read_text().split()]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert err.startswith(b"diag: interrupted")
    assert all(interruptible.ended(worker) for worker in workers)
    assert list(tmp_path.iterdir()) == []
