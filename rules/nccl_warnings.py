"""What NCCL itself warns of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from diag.model import units
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.job import Job
from diag.ranks.log_events import LogEvent
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.job_logs import NO_NCCL, lines_of, named, subject_of
from diag.rules.thresholds import Limits

FOLLOW: Mapping[str, str] = {
    "duplicate GPU": "Bind each process to the GPU of its local rank: "
    "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])).",
    "version mismatch": "Install the same NCCL everywhere.",
    "P2P disabled": "On that host: nvidia-smi topo -p2p rw, and nvidia-smi nvlink -s.",
    "InfiniBand completion error": "Look at the named adapter and its peer: ibstat, ibqueryerrors, and "
    "ib_write_bw between them.",
    "InfiniBand port or device event": "Look at the port and its cable: ibstat, dmesg.",
    "InfiniBand setup": "In a container pass --device=/dev/infiniband and --ulimit memlock=-1; look at NCCL_IB_HCA and "
    "NCCL_IB_GID_INDEX.",
    "peer closed the connection": "Look at the log of the peer first: it ended before this rank did.",
    "connection refused": "Look whether the peer runs, and whether NCCL_SOCKET_IFNAME names an interface that "
    "reaches it.",
    "timeout": "Look for the rank that is not in the collective: diag hang with flight-recorder dumps.",
    "shared memory": "Give the container more of it: --shm-size=8g or --ipc=host.",
    "CUDA error": "Look for the first CUDA error of that rank, and for Xid lines in dmesg on its host.",
    "system error": "Look at the limits of the process: ulimit -n, ulimit -l.",
    "topology": "Look at NCCL_TOPO_FILE.",
    "invalid usage": "Look at the call that NCCL names.",
}
"""What to look at next, by class of warning."""

HARMLESS_ALONE = frozenset({"topology", "InfiniBand setup", "other"})
"""A job may run well with these: hosts without InfiniBand warn that its library is not there."""


@job_rule("nccl.warnings", needs=("log_event",))
def warnings(job: Job, limits: Limits) -> Iterator[Answer]:
    """NCCL itself warns.

    Asks      Does NCCL print warnings, of what kind, and which rank printed the first?
    Decides   Fires on any line `NCCL WARN`, grouped by what it is about: GPUs bound twice, versions, InfiniBand (with
              the adapter and the vendor's error), connections refused or closed by the peer, timeouts, CUDA and system
              errors, shared memory. Alone, that InfiniBand is not there or a class that is not known is a warning;
              everything else is critical. Clear needs lines of NCCL without any warning.
    Matters   A warning is what NCCL knows of why a collective fails; PyTorch shows only its return code.
    Do        Look at the first one in time and at the rank that it comes from. That a peer closed the connection is the
              mark of another rank's end: look there.
    Refute    The same warning in a log of a run that went well.
    """
    found = [event for event in job.nccl.events if event.kind == "nccl.warning"]
    if not job.nccl.is_told:
        yield CannotTell(subject_of(job), NO_NCCL)
    elif not found:
        yield Clear(subject_of(job))
    else:
        yield _finding(job, sorted(found, key=_first_said))


def _first_said(event: LogEvent) -> tuple[bool, int, int, int]:
    return event.time_ns is None, event.time_ns or 0, event.source, event.line


def _finding(job: Job, events: Sequence[LogEvent]) -> Finding:
    by_class: defaultdict[str, list[LogEvent]] = defaultdict(list)
    for event in events:
        by_class[str(event.fields.get("class"))].append(event)
    classes = sorted(
        by_class, key=lambda name: (name in HARMLESS_ALONE, -sum(each.times for each in by_class[name]), name)
    )
    n_lines = sum(event.times for event in events)
    first = by_class[classes[0]][0]
    return Finding(
        title=f"NCCL warns of: {', '.join(classes[:4])}",
        claim=f"{units.count(n_lines, 'warning')} in {units.count(len(classes), 'class')}. The first of "
        f"'{classes[0]}' comes from {_who(first)}: {first.fields.get('said')}",
        subject=subject_of(job, {event.rank for event in by_class[classes[0]] if event.rank is not None}),
        level="warning" if set(classes) <= HARMLESS_ALONE else "critical",
        confidence="high",
        counterfactual="What NCCL warns of would not stop or slow its collectives.",
        evidence=[
            Evidence(
                name,
                sum(each.times for each in by_class[name]),
                "count",
                _by_whom(by_class[name]),
                lines_of("nccl.warning"),
            )
            for name in classes
        ],
        refute="A run that went well prints the same warnings.",
        next=[FOLLOW[name] for name in classes if name in FOLLOW][:4]
        or ["Look at the line, and at the one before it."],
    )


def _who(event: LogEvent) -> str:
    rank = f"rank {event.rank}" if event.rank is not None else "a rank"
    where = f" on {event.host}" if event.host else ""
    return f"{rank}{where}{f' (GPU {event.device})' if event.device is not None else ''}"


def _by_whom(events: Sequence[LogEvent]) -> str:
    ranks = sorted({event.rank for event in events if event.rank is not None})
    hosts = sorted({event.host for event in events if event.host})
    return f"lines of {rank_list(ranks) if ranks else 'ranks that are not named'}, {named(hosts, 'host')}"
