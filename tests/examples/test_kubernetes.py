"""The manifests are valid for old and new clusters, and what one of them names another one has."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from diag.collect import torch_runner

FOLDER = Path(__file__).parents[2] / "examples/kubernetes"
RELEASES = ("1.29", kubernetes_validate.latest_version())
"""From the first in which a container beside another one needs no feature gate."""


def manifests(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text("utf-8")))


FILES = sorted(file.name for file in FOLDER.glob("*.yaml"))
ALL = {(each["kind"], each["metadata"]["name"]): each for each in chain.from_iterable(map(manifests, FILES))}


def pods() -> Iterator[dict[str, Any]]:
    return (each["spec"]["template"]["spec"] for each in ALL.values() if "template" in each["spec"])


def containers() -> Iterator[dict[str, Any]]:
    return (each for pod in pods() for each in chain(pod["containers"], pod.get("initContainers", [])))


def commands() -> Iterator[str]:
    """What a shell is told to do."""
    for container in containers():
        words = [*container["command"], *container.get("args", [])]
        if words[:2] == ["/bin/sh", "-c"]:
            yield words[2]


def environment(name: str) -> str:
    values = [each["value"] for container in containers() for each in container.get("env", []) if each["name"] == name]
    (value,) = values
    return str(value)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("file", FILES)
def test_it_follows_the_schema(file: str, release: str) -> None:
    for manifest in manifests(file):
        kubernetes_validate.validate(manifest, release, strict=True)


def test_the_schema_refuses_what_it_does_not_know() -> None:
    (claim,) = manifests("storage.yaml")
    claim["spec"]["accessMode"] = ["ReadWriteMany"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(claim, RELEASES[-1], strict=True)


def test_volumes_that_are_mounted_exist() -> None:
    for pod in pods():
        volumes = {volume["name"]: volume for volume in pod["volumes"]} if "volumes" in pod else {}
        mounts = {
            mount["name"]
            for container in chain(pod["containers"], pod.get("initContainers", []))
            for mount in container.get("volumeMounts", [])
        }
        assert mounts == set(volumes)
        claims = [volume["persistentVolumeClaim"] for volume in volumes.values() if "persistentVolumeClaim" in volume]
        assert all(("PersistentVolumeClaim", claim["claimName"]) in ALL for claim in claims)


def test_services_choose_pods_that_exist() -> None:
    templates = [each["spec"]["template"] for each in ALL.values() if "template" in each["spec"]]
    labels = [template["metadata"]["labels"] for template in templates if "metadata" in template]
    for (kind, _), each in ALL.items():
        if kind == "Service":
            assert any(each["spec"]["selector"].items() <= of.items() for of in labels)


def test_ranks_meet_at_rank_0() -> None:
    job, service = ALL["Job", "train"], ALL["Service", "train"]
    assert job["spec"]["completionMode"] == "Indexed"
    assert service["spec"]["clusterIP"] == "None"
    assert job["spec"]["template"]["spec"]["subdomain"] == "train"
    assert environment("MASTER_ADDR") == "train-0.train"
    assert int(environment("MASTER_PORT")) == service["spec"]["ports"][0]["port"]
    assert int(environment("WORLD_SIZE")) == job["spec"]["completions"] == job["spec"]["parallelism"]


def test_the_report_and_its_workers_know_the_scheduler() -> None:
    port = ALL["Service", "diag-scheduler"]["spec"]["ports"][0]["port"]
    address = f"tcp://diag-scheduler:{port}"
    worker = ALL["Deployment", "diag-worker"]["spec"]["template"]["spec"]["containers"][0]
    assert address in worker["command"]
    assert sum(address in command for command in commands()) == 1


def test_nobody_else_reaches_the_cluster() -> None:
    policy = ALL["NetworkPolicy", "diag-cluster"]["spec"]
    of_dask = [ALL["Deployment", "diag-scheduler"], ALL["Deployment", "diag-worker"], ALL["Job", "diag-report"]]
    for each in of_dask:
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["ingress"] == [{"from": [{"podSelector": policy["podSelector"]}]}]


def test_the_collector_finds_the_rank_below_its_profiler() -> None:
    """The process of `diag run` has the rank's number as well, but is none."""
    (collector,) = [command for command in commands() if "pgrep" in command]
    (pattern,) = re.findall(r"pgrep -o -f '(.*)'", collector)
    assert re.search(pattern, f"python {torch_runner.__file__} {{}} train.py")
    assert not re.search(pattern, "diag run --with torch -- python train.py")
    assert not re.search(pattern, collector)


@pytest.mark.parametrize("command", list(commands()))
def test_a_shell_understands_its_command(command: str) -> None:
    subprocess.run(["/bin/sh", "-n", "-c", command], check=True)


USES = sorted(
    {(verb, option) for command in commands() for verb, rest in re.findall(r"\bdiag (\w+)((?:[^;\n]|\\\n)*)", command)
     for option in re.findall(r"--\w[\w-]*", rest.split(" -- ")[0])} | {("hang", "--help")}
)  # fmt: skip


@pytest.mark.parametrize(("verb", "option"), USES)
def test_diag_has_what_they_use(verb: str, option: str) -> None:
    command = [sys.executable, "-m", "diag.cli.app", verb, "--help"]
    assert option in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_instructions_name_what_is_there() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert set(re.findall(r"\b[\w-]+\.yaml", readme)) == set(FILES)
    for line in re.findall(r"^    kubectl .*", readme, re.MULTILINE):
        assert shlex.split(line.split(" && ")[0])[0] == "kubectl"
