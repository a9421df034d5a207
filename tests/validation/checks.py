"""What was checked by hand on every real report: the first three findings, their key figures, and what an expert says.

One list, from which `page` writes docs/validation.md and `test_checks` compares the figures with the report's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.validation.figures import (
    COMMUNICATION,
    DEVICE_SIDE,
    GRAPHS,
    IDLE,
    KERNELS,
    LAUNCH_BOUND,
    NOT_CAPTURED,
    SIMT,
    TO_LAUNCH,
    WINDOW,
    Figure,
    busy,
    chains,
    hot,
    inside,
    late_on,
    samples,
    self_time,
    transfer_bound,
)
from tests.validation.originals import Both, Union, Value, Without


@dataclass(frozen=True)
class Checked:
    rule: str
    figures: Sequence[Figure]
    judgement: str
    device: int | None = None
    """Which one, where the rule fires for several."""


@dataclass(frozen=True)
class Report:
    file: str
    what: str
    findings: Sequence[Checked]  # the first three, or as many as there are
    expert: str
    """What an expert would add or object to."""


_SYNC_COPIES = "SELECT start, \"end\" FROM call WHERE name LIKE 'cudaMemcpy_v%'"
_FUSER_EXPERT = (
    "A test that compiles one fusion and runs it once: the window measures a compiler, of whose 387 ms NVRTC alone "
    "takes 346 ms. The advice to run it once before the measurement is what one would say; that nothing repeats is "
    "said below the table of devices. The 48 ms of launch latency are first launches that load their code lazily "
    "(CUDA_MODULE_LOADING); load.steady rightly cannot tell, for there is no steady state. Of the kernels nothing is "
    "claimed, and with 0.4 ms of them in half a second nothing should be."
)
_RESNET = (
    "FP32 on a GPU of the Volta generation, told from its libraries' kernels. The finding names no time that would be "
    "won, since the device is not described: right."
)

REPORTS = (
    Report(
        "nsys/a100-saxpy-schema2.9.sqlite",
        "MPI program, saxpy on an A100 (hpcgroup/pipit); five launches, fifteen copies; an export of 2022 without "
        "tables of enumerations",
        [
            Checked(
                "idle.gpu",
                [
                    *IDLE,
                    DEVICE_SIDE,
                    inside("MPI_Send", "MPI_Send"),
                    inside("MPI_Recv", "MPI_Recv"),
                    samples("samples in main", "s.stackDepth = 0 AND n.value = 'main'"),
                ],
                "True: between two rounds the host prepares its vectors for some 180 ms, two thirds of the samples "
                "lie in `main` itself. MPI is named with what it covers, and not as the cause.",
            ),
            Checked(
                "transfer.pageable",
                [
                    busy("h2d pageable→device, 10 copies", "copyKind = 1 AND srcKind = 0"),
                    busy("d2h device→pageable, 5 copies", "copyKind = 2 AND dstKind = 0"),
                    Figure(
                        "recoverable",
                        Value('SELECT SUM("end" - start) - SUM(bytes) / 31.507692307 FROM copy'),
                        off_by=1e-6,
                    ),
                    Figure(
                        "host blocked in the launching calls",
                        Both("SELECT start, \"end\" FROM call WHERE name LIKE 'cudaMemcpy%'", WINDOW),
                    ),
                ],
                "True. The bound is what the copies take beyond the full rate of PCIe 4.0 x16, 31.5 GB/s.",
            ),
            Checked(
                "transfer.bound",
                transfer_bound("pageable→device, 10 copies", 1230493, "copyKind = 1"),
                "True; with a quarter of the window the copies are exposed, but do not bind the run, and the title "
                "says just that.",
            ),
        ],
        "Two blocks of 512 threads on 108 SMs are the one fault of the kernel (17.7 ms for what takes some 0.5 ms at "
        "the rate of HBM); kernels.grid says so in fourth place. With the vectors made on the device both the copies "
        "and the host's work would vanish.",
    ),
    Report(
        "nsys/h100x2-offload.sqlite",
        "Two processes on two H100s, FSDP with parameters on the host (GindaChen/nsys-ai); one second out of a run",
        [
            Checked(
                "transfer.bound",
                transfer_bound("pinned→device, 223 copies", 112, "copyKind = 1 AND srcKind = 1"),
                "True, and the reason for everything else: the parameters of each layer come over the link for 2 % of "
                "computing.",
                device=1,
            ),
            Checked(
                "transfer.bound",
                transfer_bound("pinned→device, 223 copies", 111, "copyKind = 1 AND srcKind = 1"),
                "The same on the other device.",
                device=0,
            ),
            Checked(
                "transfer.duplicate",
                [
                    Figure(
                        "copies of this size",
                        Value("SELECT COUNT(*) FROM copy WHERE pid = 112 AND copyKind = 1 AND bytes = 167772160"),
                    ),
                    Figure(
                        "not hidden by kernels",
                        Without(
                            'SELECT start, "end" FROM copy WHERE pid = 112 AND copyKind = 1 AND bytes = 167772160',
                            f"{KERNELS} WHERE pid = 112",
                        ),
                    ),
                ],
                "A suspicion, called one, information only. Layers of equal sizes are the likely reason: other data of "
                "one shape, which comes again with each pass over the model.",
                device=1,
            ),
        ],
        "27.7 GB/s is half of what PCIe 5.0 x16 carries. The export holds no table of devices, so that the share of "
        "the link cannot be told; one would look at the link next (Gen 4, or a switch that both share). Larger "
        "batches, or parameters in FP8 or BF16, divide the copies by as much. The products are FP32 (ffma): at 2 % of"
        " the window no matter yet.",
    ),
    Report(
        "nsys/h200-fuser-2024.6.sqlite",
        "nvFuser's matmul test on an H200 (NVIDIA/Fuser)",
        [
            Checked(
                "idle.gpu",
                [*IDLE, inside("KernelExecutor::compileFusion", "KernelExecutor::compileFusion")],
                "True, and named for what it is: a compilation, which a run pays once.",
            )
        ],
        _FUSER_EXPERT,
    ),
    Report(
        "nsys/h200-fuser-matmul.sqlite",
        "The same test, another run (NVIDIA/Fuser)",
        [
            Checked(
                "idle.gpu",
                [*IDLE, inside("KernelExecutor::compileFusion", "KernelExecutor::compileFusion")],
                "True, as above.",
            )
        ],
        "As above.",
    ),
    Report(
        "nsys/jetson-darknet.qdrep",
        "darknet on a Jetson Xavier, nsys of 2021 (skycs97/darknet); exported by nsys 2022.4 for both sides",
        [
            Checked(
                "idle.gpu",
                [
                    *IDLE,
                    DEVICE_SIDE,
                    Figure(
                        "host late: in CUDA calls: synchronising",
                        Both('SELECT start, "end" FROM late', _SYNC_COPIES),
                        off_by=0.05,
                    ),
                    samples("samples in rand_normal", "s.stackDepth = 0 AND n.value = 'rand_normal'"),
                ],
                "True: the network is being built, and `rand_normal` makes up its weights.",
            ),
            Checked(
                "transfer.synchronous",
                [
                    Figure(
                        "blocking copies", Value("SELECT COUNT(*) FROM call WHERE name LIKE 'cudaMemcpy_v%'"), off_by=0
                    ),
                    Figure("host inside these calls", Both(_SYNC_COPIES, WINDOW)),
                    Figure("device idle meanwhile", Both(TO_LAUNCH, _SYNC_COPIES), off_by=1e-3),
                ],
                "True as an account; in a program that only loads there is little to launch meanwhile, as its "
                "refutation says.",
            ),
            Checked(
                "transfer.pageable",
                [
                    busy("h2d pageable→device, 2,712 copies", "srcKind = 0"),
                    Figure(
                        "recoverable",
                        Value(
                            'SELECT SUM(("end" - start) * (srcKind = 0)) - SUM(bytes * (srcKind = 0)) * '
                            'SUM(("end" - start) * (srcKind = 1)) * 1.0 / SUM(bytes * (srcKind = 1)) FROM copy'
                        ),
                        off_by=1e-3,
                    ),
                ],
                "True. On hardware that shares its memory with the host the copy itself is needless: its first advice.",
            ),
        ],
        "The window holds one kernel: all of it is construction of the network, and an inference would begin after "
        "it. One would capture later. diag says that nothing repeats, and so has no word on the 3,420 allocations of "
        "this phase.",
    ),
    Report(
        "nsys/t4-power-iteration.sqlite",
        "CuPy power iteration in FP64 on a Tesla T4 that writes each result as text (brycelelbach/nsightful)",
        [
            Checked(
                "idle.gpu",
                [
                    *IDLE,
                    DEVICE_SIDE,
                    inside("IO #", "IO %"),
                    Figure(
                        "in write()",
                        Both(
                            'SELECT start, "end" FROM late',
                            "SELECT start, \"end\" FROM OSRT_API JOIN StringIds ON id = nameId WHERE value = 'write' "
                            "AND globalTid % 0x1000000 = 9946",
                        ),
                    ),
                    samples(
                        "samples formatting numbers as text",
                        "n.value LIKE '%dtoa' OR n.value LIKE '%printf%' OR n.value LIKE 'PyUnicode_FromFormat%' OR "
                        "n.value LIKE '%xsputn%' OR n.value LIKE '%UnicodeWriter%' OR n.value LIKE "
                        "'PyUnicode_Format%'",
                    ),
                ],
                "True, and more than the range alone says: not the disk (write takes 11 ms), the formatting. The next "
                "step to take is the first one named.",
            ),
            Checked(
                "kernels.hot",
                hot("%gemv2T_kernel_val%"),
                "True. A matrix-vector product in FP64 is bound by memory; one would look at its bandwidth next, as "
                "the finding says.",
            ),
            Checked(
                "capture.lost",
                [
                    Figure(
                        "messages",
                        Value("SELECT COUNT(*) FROM DIAGNOSTIC_EVENT WHERE severity = 2 AND text LIKE 'Not all%'"),
                    )
                ],
                "True as a warning; every kernel has its call here, so that nothing seems to be missing.",
            ),
        ],
        "That poll() of another thread covers the idle time is said to explain nothing: correct, and one sentence more "
        "than one needs. Nothing is missing.",
    ),
    Report(
        "nsys/titanrtx-nvtx-22k.sqlite",
        "Point-cloud detection with TensorRT on a Titan RTX, NVTX alone (YoonKyonghwan/EfficientCenterFormer); its "
        ".nsys-rep gives the same report",
        [
            Checked(
                "host.hot",
                [
                    self_time("3D_backbone", "3D_backbone", 1383917),
                    self_time("post_processing", "post_processing", 1383917),
                ],
                "True as far as it goes, with low confidence: nothing is recorded inside.",
            )
        ],
        "Such ranges enclose launches and waits for the device: what takes 3 s may be the GPU. The report says that "
        "no GPU work is in sight; the capture to make is one with --trace=cuda, which is its first advice.",
    ),
    Report(
        "nsys/titanrtx-nvtx-only.sqlite",
        "The same project, another run, NVTX alone; its .nsys-rep gives the same report",
        [
            Checked(
                "host.hot",
                [
                    self_time("find_centers", "find_centers", 1618242),
                    self_time("transformer_forward", "transformer_forward", 1618242),
                ],
                "As above. `find_centers` may be where the host first looks at a result, and waits for all that was "
                "launched before.",
            )
        ],
        "As above. On both files host.data_loader cannot tell, for no range says where data are loaded.",
    ),
    Report(
        "nsys/v100-julia-one-kernel.sqlite",
        "Julia on a V100, one kernel (trixi-gpu/TrixiCUDA.jl)",
        [],
        "Nothing can be told of one kernel, and nothing is: status 4. Its .nsys-rep and that of h200-fuser-2024.6 ask"
        " for a newer nsys than was used here, and the message says which.",
    ),
    Report(
        "kineto/cpu-only-rank.json.gz",
        "One rank's training step, host side only (facebookresearch/HolisticTraceAnalysis)",
        [
            Checked(
                "host.hot",
                [
                    self_time("## backward ##", "## backward ##", 3113936),
                    self_time("aten::copy_", "aten::copy\\_' ESCAPE '\\", 3113936),
                ],
                "True, and easily misread: the main thread waits there for autograd's threads, whose operators are not "
                "in this trace. The claim says so.",
            )
        ],
        "aten::_local_scalar_dense (4.8 ms) is a read of a device value that waits for the GPU: the trace cannot "
        "prove it without GPU activity.",
    ),
    Report(
        "kineto/event-sync.json.gz",
        "A test of event synchronisation, five GPU operations (facebookresearch/HolisticTraceAnalysis)",
        [],
        "Too few operations for shares: right.",
    ),
    Report(
        "kineto/gpu-only.json.gz",
        "A training step on an AMD Instinct, device activity and HIP calls only (AMD-AGI/TraceLens)",
        [
            Checked(
                "idle.gpu",
                [*IDLE, DEVICE_SIDE, late_on(44077)],
                "True; without host ranges nothing more can be named. What it advises exists for AMD, too.",
            ),
            Checked(
                "kernels.hot",
                hot("%batch_norm_backward_kernel%"),
                "True, with the profiler of the vendor.",
            ),
        ],
        "Barely critical: 10.6 % idle, of which the host accounts for 7.1 % of the window. One would first look at the "
        "batched transposes (NCHW against NHWC), another 7 % of the kernel time; no rule knows layouts yet.",
    ),
    Report(
        "kineto/h100-bert-small.json.gz",
        "A small BERT, one inference step on an H100 (AMD-AGI/TraceLens)",
        [
            Checked(
                "idle.gpu",
                [*IDLE, inside("nn.Module: BertModel_#", "nn.Module: BertModel\\_%' ESCAPE '\\")],
                "True. The model is named, not the step that encloses everything; the verdict rightly is the next "
                "finding.",
            ),
            Checked("launch.bound", LAUNCH_BOUND, "True: 60 kernels of 5 µs, one launched every 54 µs."),
            Checked(
                "graph.coverage",
                GRAPHS,
                "True. All of a step could be one graph; the share speaks of what provably repeats within one step.",
            ),
        ],
        "The trace holds Python stacks and shapes, which slow eager code by a factor: without the profiler the gaps "
        "are shorter, if still there.",
    ),
    Report(
        "kineto/job128-rank0.json.gz",
        "A recommendation model on 128 GPUs, rank 0 (facebookresearch/HolisticTraceAnalysis)",
        [
            Checked(
                "idle.gpu",
                [*IDLE, DEVICE_SIDE, late_on(4037)],
                "True: the two longest pieces of that kind, 59 ms and 32 ms, end with an operation that was launched "
                "62 and 102 ms before it began. Every call of the trace has its operation, so that no kernel is "
                "missing in these gaps. For what it waited the trace does not hold, and the title leaves that open.",
            ),
            Checked(
                "overlap.communication",
                COMMUNICATION,
                "True; that part of it may be waiting for slower ranks is said.",
            ),
        ],
        "Idle time with work queued on a rank of 128 points at what comes in over events (embedding exchange): one "
        "would record events and compare ranks, which is what the two findings advise.",
    ),
    Report(
        "kineto/job128-rank1.json.gz",
        "The same job, rank 1",
        [
            Checked(
                "idle.gpu",
                [*IDLE, DEVICE_SIDE, late_on(4045)],
                "True, with the confidence that it deserves: host late (320 ms) and device side (310 ms) are nearly "
                "equal, so that two ranks of one job get different titles. No range of autograd's thread covers much "
                "of its part, and the advice says just that.",
            ),
            Checked("overlap.communication", COMMUNICATION, "True, as above."),
        ],
        "As above.",
    ),
    Report(
        "kineto/nccl-message-sizes.json.gz",
        "Data-parallel training of a convolutional network, three steps (facebookresearch/HolisticTraceAnalysis)",
        [
            Checked(
                "idle.gpu",
                [*IDLE, DEVICE_SIDE, inside("## forward ##", "## forward ##"), late_on(2919752)],
                "True: eager code that launches too slowly.",
            ),
            Checked("launch.bound", LAUNCH_BOUND, "True for the short gaps, which it keeps to."),
            Checked(
                "graph.coverage", GRAPHS, "True: every launch is part of a sequence that occurs at least three times."
            ),
        ],
        "Gaps of 200 µs per operator are more than eager PyTorch needs: the recording of shapes and stacks, or a busy "
        "core, adds to them. A capture without `record_shapes` would tell.",
    ),
    Report(
        "kineto/resnet50-workers0.pt.trace.json.gz",
        "ResNet-50 training, data loader without workers (pytorch/kineto)",
        [
            Checked(
                "idle.gpu",
                [
                    *IDLE,
                    DEVICE_SIDE,
                    NOT_CAPTURED,
                    inside("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "enumerate(DataLoader)#%"),
                    inside("Optimizer.zero_grad#SGD.zero_grad", "Optimizer.zero\\_grad#%' ESCAPE '\\"),
                ],
                "True: the textbook case, cause and cure.",
            ),
            Checked(
                "graph.coverage",
                GRAPHS,
                "True as a bound; zero_grad, named above, is two thirds of it and cheaper to cure.",
            ),
            Checked(
                "kernels.simt_gemm",
                [
                    Figure("FP32 outside the tensor cores", Union(f"{KERNELS} WHERE {SIMT}"), off_by=0.01),
                    Figure("dgrad_engine", Union(f"{KERNELS} WHERE name LIKE '%dgrad_engine<%'")),
                ],
                _RESNET,
            ),
        ],
        "Nothing is missing.",
    ),
    Report(
        "kineto/resnet50-workers4.pt.trace.json.gz",
        "The same training with four workers (pytorch/kineto)",
        [
            Checked(
                "idle.gpu",
                [
                    *IDLE,
                    DEVICE_SIDE,
                    NOT_CAPTURED,
                    inside("Optimizer.zero_grad#SGD.zero_grad", "Optimizer.zero\\_grad#%' ESCAPE '\\"),
                ],
                "True: the loader is gone, as it should be. What is left has its name: 161 fills a step.",
            ),
            Checked("graph.coverage", GRAPHS, "As above."),
            Checked(
                "kernels.fusion",
                [
                    Figure("chains", chains("COUNT(*)")),
                    Figure("kernels in chains", chains("SUM(n)")),
                    Figure("won by fusion at most", chains("SUM(won)")),
                ],
                "True as a bound. The longest chain, 484 kernels, is as long as SGD's three for each of 161 "
                "parameters: a foreach or fused optimiser does it.",
            ),
        ],
        "At 90 % busy the matrix products are the run: mixed precision is what to try first. Its finding comes later,"
        " for no time that would be won can be named without the device's description.",
    ),
    Report(
        "kineto/vllm-graph-execution.json.gz",
        "One decoding step of vLLM as a graph on an AMD Instinct (AMD-AGI/TraceLens)",
        [
            Checked("kernels.hot", hot("\\_matmul\\_ogs\\_NNT\\_bf16xbf16xmxfp4\\_16x128x256x1' ESCAPE '\\"), "True."),
            Checked(
                "launch.back_pressure",
                [
                    Figure(
                        "launches into a busy queue",
                        Value(
                            "SELECT AVG(queued) FROM (SELECT COALESCE(returned <= busy_until, 0) AS queued, "
                            "ROW_NUMBER() OVER (PARTITION BY called ORDER BY start) AS i FROM launched WHERE called "
                            "IS NOT NULL) WHERE i = 1"
                        ),
                        off_by=1e-3,
                    )
                ],
                "True: one graph holds the step.",
            ),
        ],
        "Two mixture-of-experts products in MXFP4 take two thirds: at 32 sequences they are bound by the weights that "
        "they read. 'No fault on the timeline' is the right verdict.",
    ),
)
