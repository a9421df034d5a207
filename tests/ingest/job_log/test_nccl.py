"""Lines of NCCL, in the forms of its versions."""

from __future__ import annotations

import pytest

from diag.ingest.job_log.nccl_warning import class_of
from diag.ingest.job_log.secrets import HIDDEN
from tests.ingest.job_log.reading import events, only, said

HEAD = "n0:100:200 [3] NCCL INFO"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            "Ring 00 : 2[0] -> 3[0] via direct shared memory",
            {"channel": 0, "from": 2, "to": 3, "via": "direct shared memory"},
        ),
        (
            "Ring 00 : 15 -> 0 [receive] via NET/Socket/0",
            {"channel": 0, "from": 15, "to": 0, "direction": "receive", "via": "NET/Socket/0"},
        ),
        ("Channel 00 : 3[8a000] -> 0[1a000] via P2P/IPC", {"channel": 0, "from": 3, "to": 0, "via": "P2P/IPC"}),
        (
            "Channel 11/0 : 0[0] -> 8[0] [send] via NET/IB/3/GDRDMA",
            {"channel": 11, "from": 0, "to": 8, "direction": "send", "via": "NET/IB/3/GDRDMA"},
        ),
        (
            "Channel 01/1 : 0[0] -> 1[1] via P2P/direct pointer/read",
            {"channel": 1, "from": 0, "to": 1, "via": "P2P/direct pointer/read"},
        ),
        (
            "Coll 00 : 0 [send] via COLLNET/SHARP/0",
            {"channel": 0, "from": 0, "direction": "send", "via": "COLLNET/SHARP/0"},
        ),
    ],
)
def test_transports_of_2_4_to_2_28(line: str, fields: dict[str, object]) -> None:
    event = only(f"{HEAD} {line}")
    assert (event.kind, event.fields) == ("nccl.transport", fields)
    assert (event.place.host, event.place.pid, event.place.tid, event.place.device) == ("n0", 100, 200, 3)


def test_an_initialisation() -> None:
    line = (
        "ncclCommInitRankConfig comm 0x55b6aa64a990 rank 0 nranks 2 cudaDev 0 nvmlDev 4 busId 17000 "
        "commId 0x54fe282d32a87d85 - Init START"
    )
    event = only(f"{HEAD} {line}")
    assert event.kind == "nccl.init"
    assert event.communicator == "0x54fe282d32a87d85"
    assert event.fields["bus_id"] == "17000"
    assert event.fields["nvml_dev"] == 4


@pytest.mark.parametrize(
    ("line", "kind", "fields"),
    [
        ("12 coll channels, 16 p2p channels, 4 p2p channels per peer", "nccl.channels", {"coll": 12, "p2p": 16}),
        (
            "24 coll channels, 24 collnet channels, 8 nvls channels, 32 p2p channels, 32 p2p channels per peer",
            "nccl.channels",
            {"coll": 24, "collnet": 24, "nvls": 8, "p2p": 32},
        ),
        ("Channel 00/24 :    0   1   3", "nccl.ring", {"channel": 0, "count": 24, "order": "0   1   3"}),
        ("Using network AWS Libfabric", "nccl.net", {"network": "AWS"}),
        ("NET/IB : No device found.", "nccl.net", {"ib": "none"}),
        ("NET/Socket : Using [0]eth0:10.0.0.1<0>", "nccl.net", {"sockets": "[0]eth0:10.0.0.1<0>"}),
        (
            "GPU Direct RDMA Disabled for GPU 2 / HCA 0 (distance 9 > 4)",
            "nccl.gdr",
            {"state": "Disabled", "gpu": 2, "hca": 0, "distance": 9, "allowed": 4},
        ),
        (
            "NET/IB: [0] mlx5_0:uverbs0:1/RoCE provider=Mlx5 speed=100000 context=0x7f pciPath=/sys ar=0",
            "nccl.nic",
            {"nic": "mlx5_0", "port": 1, "link": "RoCE", "mbit_per_s": 100000},
        ),
        (
            "Pattern 4, crossNic 0, nChannels 12, bw 20.000000/20.000000, type NVL/PIX, sameChannels 1",
            "nccl.graph",
            {
                "pattern": 4,
                "channels": 12,
                "intra_gb_per_s": 20.0,
                "inter_gb_per_s": 20.0,
                "intra": "NVL",
                "inter": "PIX",
            },
        ),
        ("=== System : maxBw 240.0 totalBw 240.0 ===", "nccl.system", {"max_gb_per_s": 240.0, "total_gb_per_s": 240.0}),
        ("NCCL_IB_DISABLE set by environment to 1.", "nccl.env", {"name": "NCCL_IB_DISABLE", "value": "1"}),
        ("Connected all rings, use ring PXN 0 GDR 1", "nccl.connected", {"pxn": 0, "gdr": 1}),
        ("Connected all rings", "nccl.connected", {}),
        (
            "P2P is disabled between connected GPUs 1 and 0. You can repress this message",
            "nccl.disabled",
            {"a": 1, "b": 0, "what": "P2P"},
        ),
        (
            "TUNER/Plugin: Could not find: libnccl-tuner.so.",
            "nccl.tuner",
            {"plugin": "Could not find: libnccl-tuner.so."},
        ),
        ("NCCL version 2.27.7+cuda13.0", "nccl.version", {"version": "2.27.7", "cuda": "13.0"}),
        ("cudaDriverVersion 13000", "nccl.driver", {"driver": 13000}),
    ],
)
def test_what_it_says_of_itself(line: str, kind: str, fields: dict[str, object]) -> None:
    assert said(f"{HEAD} {line}") == [(kind, fields)]


def test_paths_are_those_to_other_devices() -> None:
    line = "GPU/0-17000 :GPU/0-17000 (0/5000.0/LOC) GPU/0-65000 (1/20.0/NVL) CPU/0-0 (1/24.0/PHB) "
    found = [(event.fields["to"], event.fields["gb_per_s"], event.fields["type"]) for event in events(f"{HEAD} {line}")]
    assert found == [("GPU/0-65000", 20.0, "NVL"), ("CPU/0-0", 24.0, "PHB")]


def test_the_first_rank_prints_its_version_alone() -> None:
    event = only("NCCL version 2.7.8+cuda10.2")
    assert (event.kind, event.place.host, event.fields["version"]) == ("nccl.version", None, "2.7.8")


def test_calls_are_counted_with_their_last_number() -> None:
    calls = [
        f"{HEAD} AllReduce: opCount {number:x} sendbuff 0x7f recvbuff 0x7f count 8 datatype 7 op 0 root 0 comm 0xabc "
        "[nranks=16] stream 0x1"
        for number in range(40)
    ]
    event = only(*calls)
    assert event.fields == {"op": "AllReduce", "comm": "0xabc", "nranks": 16, "calls": 40, "last_op_count": 39}
    assert event.line == 40


def test_algorithms_are_counted_with_their_sizes() -> None:
    line = "AllReduce: {size} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..23}}"
    event = only(*(f"{HEAD} {line.format(size=1 << power)}" for power in (20, 12, 26)))
    assert event.fields["algorithm"] == "RING"
    assert (event.fields["calls"], event.fields["least_bytes"], event.fields["most_bytes"]) == (3, 1 << 12, 1 << 26)


def test_a_warning_with_its_date() -> None:
    line = (
        "[2026-03-03 12:11:38] n7:185303:186751 [1] transport/net_ib.cc:2453 NCCL WARN NET/IB: Got completion from "
        "peer 10.99.91.63<51161> with status=4 opcode=32614 len=32614 vendor err 81 (Send) hca mlx5_1"
    )
    event = only(line)
    assert (event.place.host, event.place.pid, event.place.device) == ("n7", 185303, 1)
    assert event.time_ns == 1_772_539_898_000_000_000
    assert event.fields["class"] == "InfiniBand completion error"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000", "duplicate GPU"),
        ("Mismatched NCCL version detected : rank 0 version 22703 rank 1 version 22602", "version mismatch"),
        ("P2P is disabled between NVLINK connected GPUs 5 and 4.", "P2P disabled"),
        ("NET/IB : mlx5_0:1 Got async event : port error", "InfiniBand port or device event"),
        ("Call to ibv_reg_mr failed", "InfiniBand setup"),
        ("socketProgress: Connection closed by remote peer n1<5>", "peer closed the connection"),
        ("socketStartConnect: Connect to 10.0.0.1<5> failed : Connection refused", "connection refused"),
        ("Error while creating shared memory segment /dev/shm/nccl-abc", "shared memory"),
        ("Cuda failure 'out of memory'", "CUDA error"),
        ("[Service thread] Accept failed Resource temporarily unavailable", "system error"),
        ("something nobody has seen", "other"),
    ],
)
def test_classes_of_warnings(line: str, name: str) -> None:
    assert class_of(line) == name


def test_another_program_wrote_into_the_line() -> None:
    lines = (f"{HEAD} Using network IB", f"     float     sum      -1{HEAD} Connected all rings")
    assert [event.place.host for event in events(*lines)] == ["n0", "n0"]


def test_repeats_are_counted() -> None:
    assert only(*[f"{HEAD} Using network IB"] * 5).fields == {"network": "IB", "times": 5}


def test_only_variables_of_the_communication_are_shown() -> None:
    event = only(f"{HEAD} AWS_SECRET_ACCESS_KEY set by environment to abc123")
    assert event.fields["value"] == HIDDEN
    assert "abc123" not in event.text
