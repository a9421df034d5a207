#!/usr/bin/env bash
# Checks a machine with a CUDA GPU in less than eight minutes: calibration, all probes with reports on them, Nsight Compute
# on the good kernel of each operator, and the truth suite.
#
#     examples/gpu_check.sh [FOLDER]      (default: gpu-check)
#
# FOLDER gets a summary, what each step wrote, and reports that are small enough to be committed. A step that fails does
# not stop the others; the exit status then is 1.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:-gpu-check}
diag=${DIAG:-.venv/bin/diag}
python=${PYTHON:-.venv/bin/python}
ncu=${NCU:-ncu}
largest_kb=2048 # of a file that is worth committing

mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
summary=$out/summary.txt
failed=0
: >"$summary"

say() { echo "$*" | tee -a "$summary"; }

# step NAME SECONDS COMMAND…: what it says goes to NAME.txt; it has so long.
step() {
    local name=$1 limit=$2 status=0 began=$SECONDS
    shift 2
    timeout --kill-after=10 "$limit" "$@" >"$out/$name.txt" 2>&1 || status=$?
    case $status in
        0) say "ok      $name ($((SECONDS - began)) s)" ;;
        124 | 137) say "FAILED  $name: not done after $limit s, see $name.txt" ;;
        *) say "FAILED  $name: status $status: $(tail -n 1 "$out/$name.txt")" ;;
    esac
    [ "$status" = 0 ] || failed=1
    return "$status"
}

# The variant of each probe that is held against the roof.
good_kernels="vector_add:vectorised reduce:vectorised gemm:pipelined softmax:one_pass norm:one_pass flash_attention:flash"

# profile PROBE VARIANT: one launch, found by the NVTX range that a probe runs in.
profile() {
    local probe=$1 variant=$2 dtype=fp16
    step "ncu-$probe" 60 "$ncu" --force-overwrite --export "$out/$probe" --set full --launch-count 1 --target-processes all \
        --nvtx --nvtx-include "$probe $variant $dtype/" \
        "$diag" probe run "$probe" --device cuda --variant "$variant" --dtype "$dtype" --ceilings none &&
        step "report-$probe" 30 "$diag" report "$out/$probe.ncu-rep"
}

profile_all() {
    local each probe
    if ! command -v "$ncu" >/dev/null; then
        say "not done: ncu is not installed; diag doctor says where to get it"
        return
    fi
    for each in $good_kernels; do
        probe=${each%%:*}
        profile "$probe" "${each##*:}" && continue
        if grep -q ERR_NVGPUCTRPERM "$out/ncu-$probe.txt"; then
            say "not done: the driver keeps its counters from this user (ERR_NVGPUCTRPERM); diag doctor says what to do"
            return
        fi
    done
}

step doctor 60 "$diag" doctor
step calibrate 120 "$diag" calibrate --device cuda --output "$out/ceilings.json"
step probes 240 "$diag" probe run all --device cuda --report --output "$out/probes.json"
for dtype in fp32 tf32 fp16; do
    step "gemm-$dtype" 60 "$diag" probe run gemm --device cuda --dtype "$dtype" --output "$out/gemm-$dtype.json"
done
profile_all
step truth 180 "$python" -m tests.truth "$out/truth.md"

# Traces and profiles beyond what is worth committing: their reports stay.
find "$out" -type f -size +"${largest_kb}k" -print -delete | while read -r file; do
    say "removed $(basename "$file"): larger than $largest_kb kB"
done
{
    echo
    grep -h -A 200 'under the roofs of their machine' "$out/probes.txt" 2>/dev/null | sed '/^$/q'
} | tee -a "$summary"
say "took $SECONDS s"
exit "$failed"
