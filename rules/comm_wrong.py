"""Collectives that compute something wrong."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.ranks.comm_measurements import CommSeries, TimedSize
from diag.ranks.job import Job
from diag.rules.comm_series_facts import rows_of, subject_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits


@job_rule("comm.wrong", needs=("comm_measurement",))
def wrong_results(job: Job, limits: Limits) -> Iterator[Answer]:
    """A collective whose result is wrong.

    Asks      Did every collective that was measured give the right result?
    Decides   Fires where the benchmark counted wrong elements (#wrong of nccl-tests), in place or out of place. A
              critical fault. Cannot tell where results were not checked, as by versions before 2022, which print a
              largest error, or with -c 0.
    Matters   What ranks sum up wrongly, a model learns from; and no time of a wrong result counts.
    Do        Repeat on pairs of GPUs to find the one at fault; check memory (dcgmi diag -r 3), links (nvidia-smi nvlink
              -e), PCIe settings of peer-to-peer copies (IOMMU, ACS), and the versions of driver and NCCL.
    Refute    Repeated, on the same GPUs, no element is wrong.
    """
    for series in job.comm_series:
        checked = [of for of in series.sizes if of.n_wrong is not None]
        wrong = [of for of in checked if of.n_wrong]
        if not checked:
            yield CannotTell(subject_of(series), "its results were not checked")
        elif not wrong:
            yield Clear(subject_of(series))
        else:
            yield _wrong(series, wrong, len(checked))


def _wrong(series: CommSeries, wrong: list[TimedSize], n_checked: int) -> Finding:
    n_elements, formula = sum(of.n_wrong or 0 for of in wrong), "sum of both places over all sizes"
    return Finding(
        title=f"{series.name} gives wrong results",
        claim=f"{units.count(n_elements, 'element')} are wrong, at {len(wrong)} of {units.count(n_checked, 'size')} "
        f"from {units.size(wrong[0].size_bytes)} on.",
        subject=subject_of(series),
        level="critical",
        counterfactual="Nothing would be faster; the results would be right.",
        refute="Repeated, on the same GPUs, no element is wrong.",
        next=["Repeat on pairs of GPUs: CUDA_VISIBLE_DEVICES=0,1 all_reduce_perf -b 8 -e 1G -f 2 -g 2"],
        evidence=[Evidence("wrong elements", n_elements, "count", formula, rows_of(series))],
    )
