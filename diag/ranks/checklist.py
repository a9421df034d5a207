"""The seven questions that find most hangs, and what the evidence of a job already answers of them.

*Yes* is the healthy answer to all but the last two, which say whether the evidence is there. *Not known* names what
would answer; a part of the ranks never answers for all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.model.rank_lists import ranks
from diag.model.units import count
from diag.ranks.checklist_evidence import Evidence
from diag.ranks.device_binding import bindings
from diag.ranks.hang import Cause, HangAnalysis
from diag.ranks.job import Job

Answer = Literal["yes", "no", "not known"]


@dataclass(frozen=True)
class Check:
    """One question. `next` is empty where nothing is left to find out."""

    question: str
    answer: Answer
    because: str
    next: str = ""


def checklist(job: Job, hang: HangAnalysis | None) -> Sequence[Check]:
    """`hang`: of the same job; None where no rank left a dump."""
    evidence = Evidence(job, hang)
    return [check(evidence) for check in _CHECKS]


# ---- the seven -----------------------------------------------------------------------------------------------------


def _same_calls(evidence: Evidence) -> Check:
    question = "Does every rank call the same collectives, in the same order and with the same shapes?"
    if differs := evidence.faults(Cause.CALL, Cause.TENSORS, Cause.GROUPS):
        said = "; ".join(f"{fault.cause} ({ranks(fault.ranks or fault.candidates)})" for fault in differs)
        return Check(question, "no", f"{said}.")
    how = "Set TORCH_FR_BUFFER_SIZE=2000 before the job starts, and collect the dumps of all ranks."
    hang = evidence.hang
    if hang is None or not hang.dumped:
        return Check(question, "not known", "No flight-recorder dump is at hand.", how)
    if hang.absent:
        seen = count(len(hang.dumped), "dump")
        return Check(
            question, "not known", f"The {seen} at hand agree; {ranks(hang.absent)} left none.", f"Add them. {how}"
        )
    size = evidence.world_size
    if size is None:
        return Check(question, "not known", "The dumps agree, and do not say how many ranks there are.", how)
    if missing := set(range(size)) - evidence.called:
        return Check(question, "not known", f"The dumps of {ranks(missing)} hold no collective.", how)
    if late := [
        fault
        for fault in evidence.faults(Cause.HOST, Cause.CYCLE, Cause.DEAD, Cause.RESTARTED, Cause.LATE)
        if fault.call
    ]:
        who, call = ranks(rank for fault in late for rank in fault.ranks), late[0].call
        said = f"So far the dumps of all {size} ranks agree; {who} came no further than before {call}."
        return Check(question, "not known", said, "See where these ranks are: did they leave it out, or do they come?")
    return Check(question, "yes", f"The dumps of all {size} ranks agree as far as they overlap.")


def _rendezvous(evidence: Evidence) -> Check:
    question = "Do world size, rank and rendezvous agree?"
    sizes = sorted(evidence.world_sizes)
    if len(sizes) > 1:
        return Check(question, "no", f"Ranks were started with different world sizes: {', '.join(map(str, sizes))}.")
    if evidence.faults(Cause.INIT):
        return Check(question, "no", "The dumps show an initialisation that disagrees; see the faults.")
    alive = [beat for beat in evidence.job.heartbeats if beat.ended is None]
    if twice := [rank for rank, n in Counter(beat.rank for beat in alive).items() if n > 1]:
        return Check(question, "no", f"Several living processes are {ranks(twice)}.")
    how = "On every node: tr '\\0' '\\n' < /proc/PID/environ | grep -E '^(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_)'"
    known = {
        *(beat.rank for beat in alive),
        *(source.rank for source in evidence.job.sources if source.rank is not None and not source.is_unread),
    }
    size = evidence.world_size
    if size is None:
        return Check(question, "not known", "Nothing says how many ranks the job has.", how)
    if beyond := [rank for rank in known if rank >= size]:
        return Check(question, "no", f"{ranks(beyond).capitalize()} cannot be among {size} ranks (0 to {size - 1}).")
    if missing := set(range(size)) - known:
        return Check(question, "not known", f"Nothing is heard of {ranks(missing)} of {size}.", how)
    heard = f"All {size} ranks were heard of once, with one world size"
    if set(range(size)) - evidence.called:
        return Check(question, "not known", f"{heard}; that they met at one address, no dump of all ranks shows.", how)
    return Check(question, "yes", f"{heard}, and each has called a collective, so that they met.")


def _device(evidence: Evidence) -> Check:
    question = "Is each rank's device bound by its local rank?"
    by_rank, by_bus = evidence.devices_of_ranks, evidence.devices_of_processes
    places = max(by_rank, by_bus, key=len)
    wrong = bindings(evidence.job.events)
    if sure := [each for each in wrong if each.wrong != "by global rank"]:
        return Check(question, "no", f"A log says so: {sure[0].event.text}")
    numbered = {host for host, _ in by_rank if len({device for at, device in by_rank if at == host}) > 1}
    certain = [*by_bus.items(), *(item for item in by_rank.items() if item[0][0] in numbered)]
    if shared := [(place, who) for place, who in certain if len(who) > 1]:
        (host, device), who = shared[0]
        return Check(question, "no", f"{count(len(who), 'process')} use device {device} of host {host}.")
    how = "Look for torch.cuda.set_device(LOCAL_RANK), not RANK; NCCL_DEBUG=INFO prints cudaDev and busId of each rank."
    if not places:
        return Check(question, "not known", "Neither a heartbeat nor a log of NCCL names a device.", how)
    if alike := [(place, who) for place, who in by_rank.items() if len(who) > 1 and not by_bus]:
        (host, device), who = alike[0]
        said = f"All ranks of host {host} name device {device}, which Slurm and containers may number for each anew."
        return Check(
            question, "not known", said, f"On {host}: nvidia-smi --query-compute-apps=pid,gpu_uuid --format=csv"
        )
    if wrong:
        said = f"On host {wrong[0].host} {ranks(wrong[0].ranks)} took the devices of their numbers in the job."
        return Check(question, "not known", said, how)
    size = evidence.world_size
    if size is None or len(places) < size:
        return Check(question, "not known", f"The {count(len(places), 'device')} named are of one rank each.", how)
    return Check(question, "yes", f"All {len(places)} devices named are of one rank each.")


def _network(evidence: Evidence) -> Check:
    question = "Do all ranks use the same network, NICs and IB or RoCE settings?"
    networks: defaultdict[str, set[object]] = defaultdict(set)
    for event in evidence.of_kind("nccl.net"):
        if "network" in event.fields:
            networks[str(event.fields["network"])].add((event.host, event.pid, event.device))
    settings: defaultdict[str, set[str]] = defaultdict(set)
    for event in evidence.of_kind("nccl.env"):
        settings[str(event.fields.get("name"))].add(str(event.fields.get("value")))
    if len(networks) > 1:
        said = ", ".join(f"{name} ({count(len(who), 'rank')})" for name, who in sorted(networks.items()))
        return Check(question, "no", f"Different networks are in use: {said}.")
    if mixed := [name for name, values in sorted(settings.items()) if len(values) > 1 and name not in _PER_RANK]:
        return Check(question, "no", f"{mixed[0]} differs: {', '.join(sorted(settings[mixed[0]]))}.")
    how = "Start with NCCL_DEBUG=INFO NCCL_DEBUG_FILE=nccl.%h.%p, and pass the logs of all nodes."
    if not networks:
        return Check(question, "not known", "No log of NCCL says which network it uses.", how)
    ((network, who),) = networks.items()
    size = evidence.world_size
    if size is None or len(who) < size:
        return Check(question, "not known", f"{count(len(who), 'rank')} that say so use {network}.", how)
    return Check(question, "yes", f"All {len(who)} ranks use {network}.")


_PER_RANK = ("NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE")


def _early(evidence: Evidence) -> Check:
    question = "Are all ranks still there, so that none left early?"
    ended = [beat for beat in evidence.job.heartbeats if beat.ended is not None]
    if ended:
        said = "; ".join(f"rank {beat.rank}: {beat.ended}" for beat in ended[:4])
        return Check(question, "no", f"{said}{f'; {len(ended) - 4} more' if len(ended) > 4 else ''}.")
    if gone := evidence.faults(Cause.DEAD, Cause.RESTARTED):
        said = "; ".join(f"{fault.cause} ({ranks(fault.ranks)})" for fault in gone)
        return Check(question, "no", f"{said[:1].upper()}{said[1:]}.")
    if ends := evidence.of_kind(*_ENDS):
        return Check(question, "no", f"A log says: {ends[0].text}")
    alive = {beat.rank for beat in evidence.job.heartbeats if beat.condition != "not written"}
    alive |= {thread.rank for thread in evidence.job.stacks if thread.rank is not None}
    size = evidence.world_size
    how = "sacct -j JOB --format=JobID,State,ExitCode,Node; dmesg -T | grep -iE 'oom|killed process|xid' on each node."
    if size is not None and set(range(size)) <= alive:
        return Check(question, "yes", f"All {size} ranks were alive when somebody looked.")
    seen = (
        f"{ranks(alive).capitalize()} were alive when somebody looked." if alive else "Nobody looked at the processes."
    )
    return Check(question, "not known", seen, how)


_ENDS = (
    "slurm.oom", "slurm.node_fail", "slurm.cancelled", "slurm.time_limit", "slurm.preempted", "slurm.exit",
    "slurm.terminating", "launcher.exit", "launcher.signal", "nccl.ras.dead",
)  # fmt: skip


def _connections(evidence: Evidence) -> Check:
    question = "Does NCCL_DEBUG=INFO show the topology and the connections?"
    case = evidence.job.case
    if not case.value(_N_CONNECTIONS):
        how = (
            "Start with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV, or, of a running job: nccl ras (ncclras)."
        )
        return Check(question, "no", "No log of NCCL with connections is at hand.", how)
    warnings = evidence.of_kind("nccl.warning")
    first = (
        f" The first of {count(len(warnings), 'warning')}: {warnings[0].text}" if warnings else " It warns of nothing."
    )
    most = ", ".join(f"{row['via']} ({row['n']})" for row in case.rows(_TRANSPORTS))
    return Check(question, "yes", f"{f'Connections: {most}.' if most else 'It shows its rings.'}{first}")


def _nccl_tests(evidence: Evidence) -> Check:
    question = "Do nccl-tests on the same nodes pass, so that it is the code and not the network?"
    case = evidence.job.case
    n, checked, wrong, most_ranks = case.rows(_MEASURED)[0]
    if not n:
        how = (
            "On the same nodes: mpirun -np RANKS ./build/all_reduce_perf -b 8 -e 1G -f 2 -g 1; it hangs, too: network "
            "or driver; it passes: the code, or the order of its collectives."
        )
        return Check(question, "not known", "No measurement of nccl-tests is at hand.", how)
    if wrong:
        return Check(question, "no", f"{count(wrong, 'element')} came out wrong in {count(n, 'measurement')}.")
    said = f"{count(checked, 'measurement')} on up to {count(most_ranks, 'rank')} came out right"
    how = "See that they ran on the nodes of this job, all of them, and with checks (-c 1)."
    if checked < n:
        return Check(question, "not known", f"{said}; {n - checked} more were not checked.", how)
    if (size := evidence.world_size) is not None and most_ranks < size:
        return Check(question, "not known", f"{said}, and this job has {size}.", how)
    return Check(question, "yes", f"{said}.", how)


_CHECKS: Sequence[Callable[[Evidence], Check]] = (
    _same_calls, _rendezvous, _device, _network, _early, _connections, _nccl_tests,
)  # fmt: skip


_N_CONNECTIONS = """
SELECT count(*)
  FROM log_event
 WHERE kind IN ('nccl.transport', 'nccl.ring', 'nccl.connected', 'nccl.graph', 'nccl.path')
"""

_MEASURED = """
SELECT count(*) AS n, count(n_wrong) AS checked, coalesce(sum(n_wrong), 0) AS wrong,
       coalesce(max(n_ranks), 0) AS most_ranks
  FROM comm_measurement
 WHERE backend = 'nccl'
"""

_TRANSPORTS = """
SELECT substr(fields ->> 'via', 1, 40) AS via, count(*) AS n
  FROM log_event
 WHERE kind = 'nccl.transport'
 GROUP BY via
 ORDER BY n DESC, via
 LIMIT 3
"""
