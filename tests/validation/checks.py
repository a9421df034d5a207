"""What was checked by hand on every real report: the first three findings, their key figures, and what an expert says.

One list, from which `page` writes docs/validation.md and `test_checks` compares the figures with the report's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.validation.originals import Both, ByHand, Union, Value, Without


@dataclass(frozen=True)
class Figure:
    """`label` is that of the evidence, or `share` or `recoverable` for what the finding itself says."""

    label: str
    by_hand: ByHand
    off_by: float = 0.0
    """How far the two may be apart, relative: for medians and quartiles, which round in other ways."""


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


# ---- idle time -----------------------------------------------------------------------------------------------------

_HOST_LATE = Value('SELECT SUM("end" - start) FROM late')
_WINDOW = 'SELECT MIN(start), MAX("end") FROM work'
_GAPS = 'SELECT start, "end" FROM gap'
_TO_LAUNCH = 'SELECT start, "end" FROM gap WHERE called >= start'

IDLE = (
    Figure("idle", Without(_WINDOW, 'SELECT start, "end" FROM work')),
    Figure("host late", _HOST_LATE),
    Figure("launch latency", Value('SELECT SUM("end" - MIN(called, "end")) FROM gap WHERE called >= start')),
)
DEVICE_SIDE = Figure("device side", Value('SELECT SUM("end" - start) FROM gap WHERE called < start'))
NOT_CAPTURED = Figure("not captured", Value('SELECT SUM("end" - start) FROM gap WHERE called IS NULL'))


def _inside(label: str, name: str) -> Figure:
    """Idle time in ranges of the thread that most host-late time belongs to."""
    thread = '(SELECT tid FROM late GROUP BY tid ORDER BY SUM("end" - start) DESC LIMIT 1)'
    ranges = f"SELECT start, \"end\" FROM range WHERE name LIKE '{name}' AND tid = {thread}"
    return Figure(f"idle inside '{label}'", Both(_GAPS, ranges))


def _late_on(tid: int) -> Figure:
    return Figure(f"host late: thread {tid}", Value(f'SELECT SUM("end" - start) FROM late WHERE tid = {tid}'))


def _samples(label: str, symbols: str) -> Figure:
    """Of the launching thread's samples in host-late time outside CUDA calls, the share with such a function."""
    samples = (
        "SELECT c.id FROM late CROSS JOIN COMPOSITE_EVENTS c ON c.globalTid % 0x1000000 = late.tid "
        'AND c.start >= late.start AND c.start < late."end" WHERE c.start >= '
        '(SELECT "end" FROM call WHERE call.tid = late.tid AND call.start <= c.start ORDER BY start DESC LIMIT 1)'
    )
    found = f"SELECT DISTINCT s.id FROM SAMPLING_CALLCHAINS s JOIN StringIds n ON n.id = s.symbol WHERE {symbols}"
    return Figure(label, Value(f"SELECT AVG(id IN ({found})) FROM ({samples})"), off_by=0.03)


# ---- launches ------------------------------------------------------------------------------------------------------


def _nth(of: str, rows: str, which: str) -> Value:
    """A median or quartile: the row of that rank."""
    ranked = f"SELECT {of} AS d, ROW_NUMBER() OVER (ORDER BY {of}) AS i, COUNT(*) OVER () AS n FROM {rows}"
    return Value(f"SELECT AVG(d) FROM ({ranked}) WHERE {which}")


_MEDIAN = "i IN ((n + 1) / 2, (n + 2) / 2)"
_USUAL = "i = 1 + (n - 1) / 4"
_LAUNCHING = "(SELECT * FROM call WHERE correlation IN (SELECT correlation FROM work))"
_PERIODS = f"(SELECT start - LAG(start) OVER (PARTITION BY tid ORDER BY start) AS period FROM {_LAUNCHING})"
_USUAL_CALL = _nth('"end" - start', _LAUNCHING, _USUAL).sql
_SYNCHRONISING = "SELECT start, \"end\" FROM call WHERE name LIKE '%Synchronize%'"


_SHORT = f'SELECT start, "end" FROM gap WHERE called >= start AND "end" - start <= 20 * ({_USUAL_CALL})'
_PACED = Without(_SHORT, _SYNCHRONISING)

LAUNCH_BOUND = (
    Figure(
        "launches into an empty queue",
        Value("SELECT AVG(called >= COALESCE(busy_until, called)) FROM launched WHERE called IS NOT NULL"),
        off_by=1e-3,
    ),
    Figure("time between launches", _nth("period", f"{_PERIODS} WHERE period IS NOT NULL", _MEDIAN), off_by=1e-3),
    Figure("launching call", _nth('"end" - start', _LAUNCHING, _USUAL), off_by=0.02),
    Figure("kernel", _nth('"end" - start', "kernel", _MEDIAN), off_by=1e-3),
    Figure("gaps paced by launching", _PACED, off_by=1e-3),
)


# ---- launches that repeat --------------------------------------------------------------------------------------------

_WHAT = (
    "SELECT correlation, name || '/' || gridX AS what, 0 AS refused FROM kernel UNION ALL "
    "SELECT correlation, name, name LIKE '%Pageable%' FROM copy UNION ALL SELECT correlation, 'memset', 0 FROM fill"
)


def _repeating() -> Value:
    """Launches in ten consecutive ones of a thread that occur three times; nothing in between may break a capture.

    A call that synchronises begins a new group, a pageable copy is one of its own.
    """
    events = (
        f"SELECT tid, start, what, refused, 0 AS breaks FROM ({_WHAT}) JOIN call USING (correlation) UNION ALL "
        "SELECT tid, start, NULL, 0, 1 FROM call WHERE name LIKE '%Synchronize%'"
    )
    before = "OVER (PARTITION BY tid ORDER BY start)"
    groups = f"SELECT *, SUM(breaks + 2 * refused) {before} - refused AS part FROM ({events})"
    numbered = (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY tid, part ORDER BY start) AS i FROM ({groups}) WHERE NOT breaks"
    )
    stretches = (
        f"SELECT tid, part, i, GROUP_CONCAT(what, '|') OVER ten AS stretch, COUNT(*) OVER ten AS n FROM ({numbered}) "
        "WINDOW ten AS (PARTITION BY tid, part ORDER BY i ROWS BETWEEN CURRENT ROW AND 9 FOLLOWING)"
    )
    repeated = f"SELECT *, COUNT(*) OVER (PARTITION BY stretch) AS times FROM ({stretches}) WHERE n = 10"
    members = (
        f"SELECT DISTINCT tid, part, i + value AS i FROM ({repeated}), json_each('[0,1,2,3,4,5,6,7,8,9]') "
        "WHERE times >= 3"
    )
    return Value(f"SELECT COUNT(*) FROM ({members})")


REPEATING = Figure("launches that repeat", _repeating())

GRAPHS = (
    REPEATING,
    Figure("launches of graphs", Value("SELECT COUNT(*) FROM call WHERE name LIKE '%GraphLaunch%'")),
)

# ---- copies --------------------------------------------------------------------------------------------------------

_KERNELS = 'SELECT start, "end" FROM kernel'


def _busy(label: str, where: str) -> Figure:
    return Figure(label, Union(f'SELECT start, "end" FROM copy WHERE {where}'))


def _transfer_bound(label: str, pid: int, top: str) -> Sequence[Figure]:
    """`top`: the copies that the label speaks of. Copies to the device are of kind 1, from it of kind 2."""
    copies = f'SELECT start, "end" FROM copy WHERE copyKind IN (1, 2) AND pid = {pid}'
    kernels = f"{_KERNELS} WHERE pid = {pid}"
    rate = f'SELECT SUM(bytes) * 1e9 / SUM("end" - start) FROM copy WHERE {top} AND pid = {pid}'
    return (
        _busy(f"h2d {label}", f"{top} AND pid = {pid}"),
        Figure(f"rate h2d {label.split(',', maxsplit=1)[0]}", Value(rate), off_by=1e-6),
        Figure("exposed copies", Without(copies, kernels)),
        Figure("kernels", Union(kernels)),
        Figure("won by perfect overlap", Without(kernels, copies)),
    )


# ---- kernels, communication, host ------------------------------------------------------------------------------------


def _hot(kernel: str) -> Sequence[Figure]:
    of = f"kernel WHERE name LIKE '{kernel}'"
    return (
        Figure("launches", Value(f"SELECT COUNT(*) FROM {of}")),
        Figure("total", Value(f'SELECT SUM("end" - start) FROM {of}')),
        Figure("median", _nth('"end" - start', of, _MEDIAN), off_by=1e-4),
        Figure("longest", Value(f'SELECT MAX("end" - start) FROM {of}')),
    )


_NCCL = f"{_KERNELS} WHERE name LIKE 'nccl%'"
_OTHERS = f"{_KERNELS} WHERE name NOT LIKE 'nccl%'"
COMMUNICATION = (
    Figure("communication", Union(_NCCL)),
    Figure("exposed communication", Without(_NCCL, _OTHERS)),
)


def _self_time(label: str, name: str, tid: int) -> Figure:
    """A range's time less that of all ranges inside it."""
    ranges = f"SELECT start, \"end\" FROM range WHERE name LIKE '{name}' AND tid = {tid}"
    inside = (
        f'SELECT r.start, r."end" FROM range x CROSS JOIN range r ON r.tid = x.tid '
        f'AND r.start BETWEEN x.start AND x."end" AND r."end" <= x."end" '
        f"WHERE x.name LIKE '{name}' AND x.tid = {tid} "
        'AND (r.start, r."end", r.name) <> (x.start, x."end", x.name)'
    )
    return Figure(f"self time of '{label}'", Without(ranges, inside))


_SIMT = (
    "name LIKE '%scudnn%' OR name LIKE '%implicit_convolve_sgemm%' OR name LIKE '%dgrad_engine<float%' "
    "OR name LIKE '%wgrad_alg%_engine<float%' OR name LIKE '%sgemm%'"
)
_ELEMENTWISE = "name LIKE '%elementwise_kernel%' OR name LIKE '%reduce_kernel%' OR name LIKE '%CatArrayBatchedCopy%'"


def _chains(counted: str) -> Value:
    """Elementwise kernels in a row on a stream, each at most ten times the longer of both after the last."""
    stream = "OVER (PARTITION BY stream ORDER BY start)"
    work = (
        f'SELECT stream, start, "end", {_ELEMENTWISE} AS member FROM kernel UNION ALL SELECT tid, start, "end", 0 '
        "FROM event WHERE cat IN ('memcpy', 'memset')"
    )
    follows = (
        f'SELECT *, member AND LAG(member) {stream} AND start - LAG("end") {stream} <= '
        f'10 * MAX("end" - start, LAG("end" - start) {stream}) AS follows FROM ({work})'
    )
    numbered = f"SELECT *, SUM(NOT COALESCE(follows, 0)) {stream} AS chain FROM ({follows}) WHERE member"
    chains = (
        'SELECT COUNT(*) AS n, SUM("end" - start) - MAX("end" - start) AS won '
        f"FROM ({numbered}) GROUP BY stream, chain HAVING n > 1"
    )
    return Value(f"SELECT {counted} FROM ({chains})")


# ---- the reports -----------------------------------------------------------------------------------------------------

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
                    _inside("MPI_Send", "MPI_Send"),
                    _inside("MPI_Recv", "MPI_Recv"),
                    _samples("samples in main", "s.stackDepth = 0 AND n.value = 'main'"),
                ],
                "True: between two rounds the host prepares its vectors for some 180 ms, two thirds of the samples "
                "lie in `main` itself. MPI is named with what it covers, and not as the cause.",
            ),
            Checked(
                "transfer.pageable",
                [
                    _busy("h2d pageable→device, 10 copies", "copyKind = 1 AND srcKind = 0"),
                    _busy("d2h device→pageable, 5 copies", "copyKind = 2 AND dstKind = 0"),
                    Figure(
                        "recoverable",
                        Value('SELECT SUM("end" - start) - SUM(bytes) / 31.507692307 FROM copy'),
                        off_by=1e-6,
                    ),
                    Figure(
                        "host blocked in the launching calls",
                        Both("SELECT start, \"end\" FROM call WHERE name LIKE 'cudaMemcpy%'", _WINDOW),
                    ),
                ],
                "True. The bound is what the copies take beyond the full rate of PCIe 4.0 x16, 31.5 GB/s.",
            ),
            Checked(
                "transfer.bound",
                _transfer_bound("pageable→device, 10 copies", 1230493, "copyKind = 1"),
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
                _transfer_bound("pinned→device, 223 copies", 112, "copyKind = 1 AND srcKind = 1"),
                "True, and the reason for everything else: the parameters of each layer come over the link for 2 % of "
                "computing.",
                device=1,
            ),
            Checked(
                "transfer.bound",
                _transfer_bound("pinned→device, 223 copies", 111, "copyKind = 1 AND srcKind = 1"),
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
                            f"{_KERNELS} WHERE pid = 112",
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
                [*IDLE, _inside("KernelExecutor::compileFusion", "KernelExecutor::compileFusion")],
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
                [*IDLE, _inside("KernelExecutor::compileFusion", "KernelExecutor::compileFusion")],
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
                    _samples("samples in rand_normal", "s.stackDepth = 0 AND n.value = 'rand_normal'"),
                ],
                "True: the network is being built, and `rand_normal` makes up its weights.",
            ),
            Checked(
                "transfer.synchronous",
                [
                    Figure(
                        "blocking copies", Value("SELECT COUNT(*) FROM call WHERE name LIKE 'cudaMemcpy_v%'"), off_by=0
                    ),
                    Figure("host inside these calls", Both(_SYNC_COPIES, _WINDOW)),
                    Figure("device idle meanwhile", Both(_TO_LAUNCH, _SYNC_COPIES), off_by=1e-3),
                ],
                "True as an account; in a program that only loads there is little to launch meanwhile, as its "
                "refutation says.",
            ),
            Checked(
                "transfer.pageable",
                [
                    _busy("h2d pageable→device, 2,712 copies", "srcKind = 0"),
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
                    _inside("IO #", "IO %"),
                    Figure(
                        "in write()",
                        Both(
                            'SELECT start, "end" FROM late',
                            "SELECT start, \"end\" FROM OSRT_API JOIN StringIds ON id = nameId WHERE value = 'write' "
                            "AND globalTid % 0x1000000 = 9946",
                        ),
                    ),
                    _samples(
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
                _hot("%gemv2T_kernel_val%"),
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
                    _self_time("3D_backbone", "3D_backbone", 1383917),
                    _self_time("post_processing", "post_processing", 1383917),
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
                    _self_time("find_centers", "find_centers", 1618242),
                    _self_time("transformer_forward", "transformer_forward", 1618242),
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
                    _self_time("## backward ##", "## backward ##", 3113936),
                    _self_time("aten::copy_", "aten::copy\\_' ESCAPE '\\", 3113936),
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
                [*IDLE, DEVICE_SIDE, _late_on(44077)],
                "True; without host ranges nothing more can be named. What it advises exists for AMD, too.",
            ),
            Checked(
                "kernels.hot",
                _hot("%batch_norm_backward_kernel%"),
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
                [*IDLE, _inside("nn.Module: BertModel_#", "nn.Module: BertModel\\_%' ESCAPE '\\")],
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
                [*IDLE, DEVICE_SIDE, _late_on(4037)],
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
                [*IDLE, DEVICE_SIDE, _late_on(4045)],
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
                [*IDLE, DEVICE_SIDE, _inside("## forward ##", "## forward ##"), _late_on(2919752)],
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
                    _inside("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "enumerate(DataLoader)#%"),
                    _inside("Optimizer.zero_grad#SGD.zero_grad", "Optimizer.zero\\_grad#%' ESCAPE '\\"),
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
                    Figure("FP32 outside the tensor cores", Union(f"{_KERNELS} WHERE {_SIMT}"), off_by=0.01),
                    Figure("dgrad_engine", Union(f"{_KERNELS} WHERE name LIKE '%dgrad_engine<%'")),
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
                    _inside("Optimizer.zero_grad#SGD.zero_grad", "Optimizer.zero\\_grad#%' ESCAPE '\\"),
                ],
                "True: the loader is gone, as it should be. What is left has its name: 161 fills a step.",
            ),
            Checked("graph.coverage", GRAPHS, "As above."),
            Checked(
                "kernels.fusion",
                [
                    Figure("chains", _chains("COUNT(*)")),
                    Figure("kernels in chains", _chains("SUM(n)")),
                    Figure("won by fusion at most", _chains("SUM(won)")),
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
            Checked("kernels.hot", _hot("\\_matmul\\_ogs\\_NNT\\_bf16xbf16xmxfp4\\_16x128x256x1' ESCAPE '\\"), "True."),
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
