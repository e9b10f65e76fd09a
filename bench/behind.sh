#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Memory and time of a real program on a device that is behind its host: tests/apps/replay_hip, an unmodified
# HIP program, on the software device with its usual delays. Each log runs on the pool of the software
# device itself ("native", which reuses whole blocks), and with somashim on each backing. All runs of a round
# follow each other, so that a busy machine slows all; a figure is the median of the rounds.
# The logs are generated and drawn anew each time; recordings in ../shared/traces are used, too.
#   bench/behind.sh [--seed N] [--logs N] [--rounds N] [BUILD_DIR [LOG ...]]
# SOMASIM_HIP_VERSION is the release that the device plays (7.2), SOMASIM_QUEUE how many commands a stream may
# be behind before the host waits (0: no limit).
# Exits 1 if a byte was wrong or a run with somashim failed, 2 where nothing could be measured.
set -uo pipefail
. "$(dirname "$0")/../scripts/usage.sh"
seed= count=8 rounds=1
while [ $# != 0 ]; do
	case $1 in
	--seed) needs_number "$@"; seed=$2; shift 2 ;;
	--logs) needs_number "$@"; count=$2; shift 2 ;;
	--rounds) needs_number "$@"; rounds=$2; shift 2 ;;
	-*) wrong_call "there is no option $1" ;;
	*) break ;;
	esac
done
build=${1:-${BUILD:-$(dirname "$0")/../build}}
[ -d "$build" ] || wrong_call "no directory $build"
build=$(realpath "$build")
[ $# = 0 ] || shift
logs=()
for log in "$@"; do logs+=("$(realpath "$log")"); done
cd "$(dirname "$0")/.." || exit 2
. scripts/draw.sh
app=$build/tests/apps/replay_hip somashim=$build/cli/somashim
[ -x "$app" ] || { echo "behind.sh: $build has no tests/apps/replay_hip" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

seed=${seed:-$(fresh_seed)}
echo "seed $seed: behind.sh --seed $seed draws the same logs, and the device the same delays"
if [ ${#logs[@]} = 0 ]; then
	draw_logs "$somashim" "$tmp" "$count" "$seed" || exit 2
	logs+=("$tmp"/*.csv)
	for log in ../shared/traces/*.csv.xz; do [ ! -f "$log" ] || logs+=("$log"); done
fi

MOST_STREAMS=32 # each is a thread of the software device
version=${SOMASIM_HIP_VERSION:-7.2} # the quirk table keeps vmm from some others
queue=${SOMASIM_QUEUE:-0}
unset LD_PRELOAD LD_AUDIT ${!SOMASHIM_@} ${!SOMASIM_@}
export SOMASIM_QUIET=1 SOMASIM_SEED=$seed SOMASIM_VRAM=400G SOMASIM_HIP_VERSION=$version
export SOMASIM_QUEUE=$queue
export LD_LIBRARY_PATH=$build/sim

# one WAY LOG STREAMS: prints the line of the program, or nothing
one() {
	local preload= backing=auto
	[ "$1" = native ] || preload=$build/shim/libsomashim.so backing=$1
	LD_PRELOAD=$preload SOMASHIM_BACKING=$backing "$app" --async --streams "$3" --seed 1 "$2" 2>"$tmp/err"
}

for log in "${logs[@]}"; do
	name=$(basename "$log" | sed 's/\.csv.*//')
	streams=$("$somashim" replay --json "$log" 2>/dev/null | sed -n 's/.*"streams": \([0-9]*\).*/\1/p')
	[ "${streams:-0}" -le $MOST_STREAMS ] || streams=$MOST_STREAMS
	for ((round = 0; round < rounds; round++)); do
		for way in native hip hsa vmm; do
			line=$(one $way "$log" "${streams:-1}") || line="$line failed: $(tail -1 "$tmp/err")"
			echo "$name $way $line"
		done
	done
done | python3 -c '
import re, statistics, sys
from math import exp, log

WAYS = "native", "hip", "hsa", "vmm"
print("reserved over used peak, and seconds over those of the native pool\n%-34s %9s %7s" % ("log", "used MiB",
      "streams") + "".join("%9s %6s" % (way, "s") if way == "native" else "%9s %6s" % (way, "time") for way in WAYS))
runs, wrong = {}, 0
for line in sys.stdin:
    name, way, text = line.split(" ", 2)
    v = dict(re.findall(r"(\w+)=([\w.]+)", text))
    if " failed" in text or v.get("corrupt") != "0":
        print("%s %s: %s" % (name, way, text.strip()))
        wrong += way != "native" # which may fail on its own
        continue
    runs.setdefault(name, {}).setdefault(way, []).append((int(v["reserved_high"]), float(v["seconds"])))
    runs[name]["of"] = int(v["peak_requested"]), int(v["streams"])

ratios, times = {way: [] for way in WAYS}, {way: [] for way in WAYS}
for name, run in runs.items():
    used, streams = run.pop("of")
    row = "%-34s %9.0f %7d" % (name, used / 2**20, streams)
    for way in WAYS:
        if way not in run:
            row += "%9s %6s" % ("-", "-")
            continue
        ratio = statistics.median(r for r, _ in run[way]) / used
        seconds = statistics.median(s for _, s in run[way])
        if way == "native":
            base = seconds
        relative = seconds / base if "native" in run and base else 0
        ratios[way].append(ratio)
        if relative:
            times[way].append(relative)
        row += "%9.3f %6.2f" % (ratio, seconds if way == "native" else relative)
    print(row, flush=True)
def mean(list):
    return exp(sum(map(log, list)) / len(list)) if list else 0
print("%-34s %17s" % ("geometric mean", "") + "".join("%9.3f %6.2f" % (mean(ratios[way]), mean(times[way]))
      for way in WAYS))
print("%-34s %17s" % ("largest", "") + "".join("%9.3f %6.2f" % (max(ratios[way], default=0),
      max(times[way], default=0)) for way in WAYS))
sys.exit(1 if wrong or not runs else 0)'
