"""Several devices in one process, several processes on one device, slices of a GPU: nothing mixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.ingest.nsys_devices import mig_instance
from diag.rules.analysis import analyse
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport


def two_devices() -> NsysExport:
    """One process, one thread: device 0 in context 1, device 1 in context 2, both on stream 7."""
    export = NsysExport()
    main = export.process().thread()
    for ordinal in range(2):
        export.hardware(ordinal, uuid=f"GPU-{ordinal}")
        main.process.sees(ordinal, ordinal)
        gpu = main.process.gpu(ordinal, context=ordinal + 1)
        shift = 1000 * ordinal
        for i in range(10):
            main.launch(gpu, called=shift + 100 * i, start=shift + 100 * i + 10, end=shift + 100 * i + 60)
        gpu.sync("Stream sync", shift + 970, shift + 980, main.call("sync", shift + 970, shift + 980), streamId=7)
    return export


def test_devices_of_one_process_have_windows_of_their_own(tmp_path: Path) -> None:
    with imported(two_devices(), tmp_path) as case:
        devices = analyse(case).devices
    assert [(d.device, d.window, d.busy_ns, d.n_kernels) for d in devices] == [
        (0, (10, 960), 500, 10),
        (1, (1010, 1960), 500, 10),
    ]
    assert [d.uuid for d in devices] == ["GPU-0", "GPU-1"]


def test_launches_and_streams_are_those_of_the_device(tmp_path: Path) -> None:
    with imported(two_devices(), tmp_path) as case:
        trace = Trace(case, case.sources[0])
        for device in trace.devices:
            assert device.launched_share == 1
            called = device.calls.start_ns[device.launch]
            assert (device.ops.start_ns - called).tolist() == [10] * 10
            assert trace.dependencies_of(device).previous.tolist() == [-1, *range(9)]


def test_a_synchronisation_waits_for_its_own_device(tmp_path: Path) -> None:
    with imported(two_devices(), tmp_path) as case:
        sql = "SELECT g.device, g.end_ns FROM wait w JOIN gpu_op g ON g.id = w.from_op ORDER BY 1"
        assert case.db.execute(sql).fetchall() == [(0, 960), (1, 1960)]


def test_the_same_correlations_in_two_processes(tmp_path: Path) -> None:
    export = NsysExport()
    for pid, shift in ((100, 0), (200, 5000)):
        main = export.process(pid).thread()
        for i in range(10):
            main.call("cudaLaunchKernel_v7000", shift + 100 * i, shift + 100 * i + 1, correlation=i + 1)
            main.process.gpu().kernel(shift + 100 * i + 10, shift + 100 * i + 60, correlation=i + 1)
    with imported(export, tmp_path) as case:
        for device in Trace(case, case.sources[0]).devices:
            assert (device.ops.start_ns - device.calls.start_ns[device.launch]).tolist() == [10] * 10
        launches = "SELECT COUNT(*) FROM dependency WHERE kind = 'launch'"
        assert case.value(launches) == 20


@pytest.mark.parametrize(("recorded_on", "peer"), [(0, 1), (1, 0)])
def test_a_copy_between_devices_names_the_other_one(recorded_on: int, peer: int, tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process().gpu(recorded_on)
    gpu.copy(0, 10, 1 << 20, "Peer-to-Peer", ("Device", "Device"), srcDeviceId=0, dstDeviceId=1)
    gpu.copy(20, 30, 1 << 20, srcDeviceId=0, dstDeviceId=recorded_on)
    with imported(export, tmp_path) as case:
        sql = "SELECT device, copy_kind, peer_device FROM gpu_op ORDER BY start_ns"
        assert case.db.execute(sql).fetchall() == [(recorded_on, "p2p", peer), (recorded_on, "h2d", None)]


@pytest.mark.parametrize(
    ("uuid", "name", "instance"),
    [
        ("GPU-1", "NVIDIA H100", None),
        ("MIG-8f3a", "NVIDIA H100", "MIG-8f3a"),
        ("MIG-8f3a", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "1g.5gb"),
        (None, "NVIDIA A100 MIG 3g.20gb+me", "3g.20gb+me"),
        (None, None, None),
    ],
)
def test_slices_are_known_by_name_or_uuid(uuid: str | None, name: str | None, instance: str | None) -> None:
    assert mig_instance(uuid, name) == instance


def test_a_slice_is_called_one_in_the_report(tmp_path: Path) -> None:
    export = two_devices()
    for row in export.rows["TARGET_INFO_GPU"]:
        row["uuid"] = row["uuid"].replace("GPU", "MIG")
    with imported(export, tmp_path) as case:
        assert [device.name for device in analyse(case).devices] == ["NVIDIA H100 (MIG 0)", "NVIDIA H100 (MIG 1)"]


def test_green_contexts_are_told(tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process().gpu()
    gpu.kernel(0, 10, greenContextId=3)
    gpu.kernel(20, 30, greenContextId=0xFFFFFFFF)
    gpu.describe_context(is_green=True)
    export.rows["TARGET_INFO_CUDA_CONTEXT_INFO"][0]["parentContextId"] = 9
    with imported(export, tmp_path) as case:
        assert case.db.execute("SELECT green_context FROM gpu_op ORDER BY id").fetchall() == [(3,), (None,)]
        assert case.db.execute("SELECT is_green, parent_context FROM context").fetchall() == [(1, 9)]
        assert case.notes(1)[0].startswith("1 GPU operations ran in green contexts")


ODD_VALUES = ("'text'", "1e300", "9223372036854775807")


@pytest.mark.parametrize("value", ODD_VALUES)
@pytest.mark.parametrize(
    "place",
    [
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT.streamId", "CUPTI_ACTIVITY_KIND_CUDA_EVENT.eventId",
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT.eventSyncId", "CUPTI_ACTIVITY_KIND_CUDA_EVENT.correlationId",
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT.timestamp", "CUPTI_ACTIVITY_KIND_CUDA_EVENT.deviceId",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.eventId", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.eventSyncId",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.streamId", "CUPTI_ACTIVITY_KIND_KERNEL.greenContextId",
        "CUPTI_ACTIVITY_KIND_KERNEL.streamId", "CUPTI_ACTIVITY_KIND_KERNEL.contextId",
        "NVTX_EVENTS.binaryData", "NVTX_EVENTS.category", "NVTX_EVENTS.jsonText", "NVTX_EVENTS.domainId",
        "NVTX_PAYLOAD_SCHEMA_ENTRIES.offset", "NVTX_PAYLOAD_SCHEMA_ENTRIES.type",
        "NVTX_PAYLOAD_SCHEMA_ENTRIES.schemaId", "NVTX_PAYLOAD_SCHEMA_ENTRIES.name",
        "TARGET_INFO_CUDA_STREAM.priority", "TARGET_INFO_CUDA_STREAM.flag",
        "TARGET_INFO_CUDA_CONTEXT_INFO.parentContextId", "TARGET_INFO_GPU.uuid", "TARGET_INFO_GPU.name",
    ],
)  # fmt: skip
def test_odd_values_do_no_harm(place: str, value: str, tmp_path: Path) -> None:
    table, column = place.split(".")
    export = two_devices()
    main = export.process(100).thread()
    gpu = main.process.gpu()
    gpu.describe_context()
    gpu.describe_stream(20, priority=-1)
    gpu.record(1, 7, main.call("cudaEventRecord_v3020", 5, 6), eventSyncId=3, timestamp=50)
    gpu.sync("Stream wait sync", 7, 8, main.call("wait", 7, 8), streamId=20, eventId=1, eventSyncId=3)
    main.launch(gpu, called=9, start=65, end=70, name="ncclDevKernel", streamId=20)
    main.category(1, "io")
    main.range("ncclAllReduce", 0, 5, domain=1, category=1, binaryData=bytes(48))
    entry = {"domainId": 1, "schemaId": 2, "idx": 0, "type": 18, "name": "NCCL communicator ID"}
    export.insert("NVTX_PAYLOAD_SCHEMA_ENTRIES", **entry)
    export.then(f'UPDATE "{table}" SET "{column}" = {value}')
    with imported(export, tmp_path) as case:
        assert len(analyse(case).devices) in (1, 2)
        case.db.execute("SELECT * FROM dependency").fetchall()
