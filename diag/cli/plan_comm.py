"""`diag plan comm`: what collectives and layouts of a job communicate, and how long that takes.

One verb and not one for each question: bandwidth and sizes are those of one job, and most questions share them. Each
is answered as soon as the options are there that it needs.
"""

from __future__ import annotations

from diag.cli import plan_options
from diag.cli.choices import TextOrJson
from diag.cli.terminal import StatusLine


def comm(
    gpus: plan_options.Gpus = None,
    size: plan_options.CallSize = None,
    op: plan_options.Operation = "all_reduce",
    bandwidth: plan_options.BusRate = None,
    latency: plan_options.HopTime = None,
    fit: plan_options.FitFile = None,
    network: plan_options.NetworkRate = None,
    domain: plan_options.DomainGpus = 8,
    tp: plan_options.TensorParallel = 1,
    cp: plan_options.ContextParallel = 1,
    dp: plan_options.DataParallel = 1,
    pp: plan_options.PipelineStages = 1,
    ep: plan_options.ExpertParallel = 1,
    micro_batches: plan_options.MicroBatches = 1,
    chunks: plan_options.Chunks = 1,
    sequence_parallel: plan_options.SequenceParallel = False,
    zero: plan_options.Zero = 0,
    params: plan_options.Parameters = None,
    layers: plan_options.Layers = None,
    hidden: plan_options.HiddenSize = None,
    seq: plan_options.SequenceTokens = None,
    dtype: plan_options.Dtype = "bf16",
    flops: plan_options.AttentionRate = None,
    experts: plan_options.Experts = None,
    top_k: plan_options.TopK = 1,
    capacity_factor: plan_options.CapacityFactor = 1.0,
    load: plan_options.ExpertLoad = None,
    output_format: plan_options.OutputFormat = TextOrJson.TEXT,
) -> None:
    """Tell what a collective takes (--gpus, --size), or a training step (--params, --layers, --hidden, --seq).

    Also the bubble of a pipeline (--pp, --micro-batches), the capacity of experts (--experts, --seq) and what context
    parallelism moves (--cp, --hidden, --seq). Formulas and sources: docs/collectives.md.

    Example: diag plan comm --gpus 8 --size 2GB --bandwidth 350GB/s
    Example: diag plan comm --gpus 64 --size 1MB --fit nccl-tests.txt
    Example: diag plan comm --pp 4 --micro-batches 12
    Example: diag plan comm --tp 8 --pp 4 --dp 16 --micro-batches 32 --params 70B --layers 80 --hidden 8192 --seq 8192
    --bandwidth 350GB/s --network 400Gbit/s

    Exit status 3: A file that an option names could not be read.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_PLUGINS, DIAG_NSYS, TMPDIR
    See also: docs/collectives.md, diag plan transfer
    """
    from diag.cli import plan_questions as questions
    from diag.cli.plan_answers import show
    from diag.model.parallelism import Step
    from diag.model.placement import Layout

    layout = Layout(tp, cp, ep, dp, pp)
    questions.check_gpus(gpus, size, layout)
    model = questions.transformer(params, layers, hidden, seq, dtype, top_k, has_experts=ep > 1)
    with StatusLine() as status:
        speeds = questions.speeds(bandwidth, latency, fit, network, questions.primitive(op), gpus, status)
    found = [
        *questions.of_call(op, size, gpus, domain, speeds),
        *questions.of_pipeline(pp, micro_batches, chunks),
        *questions.of_experts(experts, seq, top_k, capacity_factor, load),
        *questions.of_context(cp, hidden, seq, dtype, flops, speeds),
        *questions.of_layout(
            layout, model, Step(micro_batches, chunks, questions.zero_stage(zero), sequence_parallel), domain, speeds
        ),
    ]
    questions.check_any(found)
    show(found, output_format)
