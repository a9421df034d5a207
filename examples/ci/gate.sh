#!/usr/bin/env bash
# Fails when a candidate is slower than its baseline, by more than a limit and beyond noise.
#
#     examples/ci/gate.sh FOLDER BASELINE [CANDIDATE]
#     examples/ci/gate.sh gate "python base/train.py" "python head/train.py"
#
# BASELINE and CANDIDATE are commands that record one run into the trace which they get as one more argument. FOLDER keeps
# the traces of both and what was told. A baseline that it already has is kept, and only the candidate is recorded; without
# a CANDIDATE only the baseline is.
#
#     REPEATS    runs of each side (default: 3): what they differ by is the noise
#     LIMIT_PCT  growth that is let pass (default: 10)
#     METRIC     what must not grow, as diag compare names it (default: step)
#     FORMAT     text, json or markdown (default: text)
#
# Status: 0 passes, 1 slower, 4 nobody can tell (diag compare says why), 2 nothing was compared.
set -uo pipefail

repeats=${REPEATS:-3}
limit_pct=${LIMIT_PCT:-10}
metric=${METRIC:-step}
format=${FORMAT:-text}

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo "usage: gate.sh FOLDER BASELINE [CANDIDATE]" >&2
    exit 2
fi
folder=$1 baseline=$2 candidate=${3-}

# record SIDE NUMBER COMMAND
record() {
    local trace=$folder/$1/$2.json.gz
    echo "recording $trace" >&2
    bash -c "$3 \"\$1\"" gate "$trace" >"$folder/$1-$2.log" 2>&1 && [ -s "$trace" ] && return
    echo "gate.sh: '$3' recorded no trace; see $folder/$1-$2.log" >&2
    exit 2
}

keep_baseline=
[ -n "$(ls -A "$folder/baseline" 2>/dev/null)" ] && keep_baseline=yes
rm -rf "$folder/candidate"
mkdir -p "$folder/baseline" "$folder/candidate" || exit 2

# In turns, so that what slows the machine for a while slows both sides.
for number in $(seq "$repeats"); do
    [ "$keep_baseline" ] || record baseline "$number" "$baseline"
    [ -z "$candidate" ] || record candidate "$number" "$candidate"
done
[ "$candidate" ] || exit 0

diag compare "$folder/baseline" "$folder/candidate" \
    --metric "$metric" --fail-on-regression "$limit_pct" --format "$format" | tee "$folder/comparison.txt"
exit "${PIPESTATUS[0]}"
