"""Whether all ranks run the same NCCL."""

from __future__ import annotations

from collections.abc import Iterator

from diag.ranks.job import Job
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.job_logs import lines_of, named, subject_of
from diag.rules.thresholds import Limits


@job_rule("nccl.version", needs=("log_event",))
def version(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks run different versions of NCCL.

    Asks      Is NCCL the same version on every host and in every log?
    Decides   Fires when the lines `NCCL version …` name more than one. Without such a line it cannot tell. In one log
              the first rank alone may print it: then the versions of the other hosts are those of their own logs.
    Matters   Versions differ in what they exchange while a communicator is made, in defaults and in algorithms: such a
              job fails at the start, hangs, or crawls on some ranks.
    Do        Install the same wheel or container everywhere; look for an LD_LIBRARY_PATH or LD_PRELOAD that puts
              another libnccl.so first. `python -c "import torch; print(torch.cuda.nccl.version())"` says which one is
              loaded.
    Refute    The logs are of different jobs.
    """
    versions = job.nccl.versions
    if not versions:
        yield CannotTell(
            subject_of(job), "no line says which version of NCCL runs: NCCL_DEBUG=VERSION is enough for that"
        )
    elif len(versions) == 1:
        yield Clear(subject_of(job))
    else:
        listed = ", ".join(f"{name} on {named(hosts)}" for name, hosts in versions.items())
        yield Finding(
            title=f"NCCL {' and '.join(versions)} in one job",
            claim=f"The logs name {len(versions)} versions of NCCL: {listed}.",
            subject=subject_of(job),
            level="critical",
            confidence="high",
            counterfactual="With one version a fault that comes of their difference would be gone.",
            evidence=[
                Evidence(f"hosts with NCCL {name}", len(hosts), "count", named(hosts), lines_of("nccl.version"))
                for name, hosts in versions.items()
            ],
            refute="The logs are of different jobs, or of before and after an update.",
            next=['On each host: python -c "import torch; print(torch.cuda.nccl.version())"'],
        )
