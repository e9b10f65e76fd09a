#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Instructions per allocate+free pair, counted by callgrind: one thread, one stream, a log repeated (steady
# state). The first run of each log stands beside it and is not judged.
# Alone it judges the goals, on generated logs that are drawn anew each time, and on the recordings of
# ../shared/traces if there. With --fixed, as scripts/test.sh calls it, the logs are the same on every
# machine, and the limits are a tenth above what these logs gave (gcc 12).
#   bench/gate.sh [--fixed | --seed N] [--logs N] [BUILD_DIR [LOG ...]]
# Exits 1 where a goal, or with --fixed a limit, is missed, 2 where nothing could be measured, 77 without
# valgrind.
set -uo pipefail
. "$(dirname "$0")/../scripts/usage.sh"
seed= count=8 build= fixed=0
while [ $# != 0 ]; do
	case $1 in
	--fixed) fixed=1 seed=1 count=8; shift ;;
	--seed) needs_number "$@"; seed=$2; shift 2 ;;
	--logs) needs_number "$@"; count=$2; shift 2 ;;
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
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 77; }
[ -x "$build/bench/bench_gate" ] || { echo "gate.sh: $build has no bench/bench_gate" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if [ ${#logs[@]} = 0 ]; then
	[ $fixed = 1 ] || for log in ../shared/traces/*.csv.xz; do [ ! -f "$log" ] || logs+=("$log"); done
	seed=${seed:-$(fresh_seed)}
	echo "seed $seed: gate.sh --seed $seed draws the same logs"
	draw_logs "$build/cli/somashim" "$tmp" "$count" "$seed" || exit 2
	logs+=("$tmp"/*.csv)
fi

# The same device for all logs. No memory goes back by age, so the counts do not depend on time.
unset LD_PRELOAD LD_AUDIT ${!SOMASHIM_@} ${!SOMASIM_@}
export SOMASIM_QUIET=1 SOMASIM_SEED=1 SOMASIM_DELAY_US=0 SOMASIM_VRAM=15G
export SOMASHIM_DECAY_MS=600000000 LD_LIBRARY_PATH=$build/sim
export build tmp

# count LOG WHICH: prints "WHICH LOG FIRST STEADY", instructions per pair.
count() {
	local log=$1 which=$2 name out run
	name=$(basename "$log" .xz) && name=${name%.csv}
	out=$tmp/$name-$which
	LD_PRELOAD=$build/shim/libsomashim.so valgrind --tool=callgrind \
		--callgrind-out-file="$out.cg" --instr-atstart=no --toggle-collect=counted \
		--dump-after=counted "$build/bench/bench_gate" "$log" "$which" \
		>"$out.pairs" 2>"$out.err" || { echo "$which $name failed $(tail -1 "$out.err")"; return; }
	for run in 1 2; do
		sed -n 's/^totals: //p' "$out.cg.$run"
	done | paste -s -d ' ' | paste -d ' ' - "$out.pairs" | awk -v name="$which $name" \
		'NF == 4 { print name, $1 / $3, $2 / $4; ok = 1 } END { if (!ok) print name, "failed" }'
}
export -f count

for which in async classic; do
	printf "$which %s\n" "${logs[@]}"
done | xargs -P "$(nproc)" -L 1 bash -c 'count "$2" "$1"' - | sort | awk -v fixed=$fixed '
	BEGIN {
		# Of the mean and of each log.
		if (fixed) {
			mean["async"] = 490; most["async"] = 560
			# Any change of placement moves one log (amr) by a fifth: its
			# segments are exchanged more or less often.
			mean["classic"] = 785; most["classic"] = 1060
		} else {
			mean["async"] = 430; mean["classic"] = 720
			most["async"] = most["classic"] = 1e9
		}
		what = fixed ? "limit" : "goal"
		printf "%-8s %-38s %10s %10s\n", "", "instructions per pair", "first run", "steady"
	}
	function judge(value, limit) {
		if (value <= limit) return ""
		missed++
		return sprintf("  %s %d MISSED", toupper(what), limit)
	}
	function report(w) {
		if (n) printf "%-8s %-38s %10s %10.0f  %s %d%s\n\n", w, "mean", "", sum / n, what,
			mean[w], judge(sum / n, mean[w])
	}
	$1 != last { report(last); last = $1; n = sum = 0 }
	$3 == "failed" { print; failed++; next }
	{
		printf "%-8s %-38s %10.0f %10.0f%s\n", $1, $2, $3, $4, judge($4, most[$1])
		n++; sum += $4; all++
	}
	END {
		report(last)
		printf "%d %ss missed, %d failed\n", missed, what, failed
		exit failed || !all ? 2 : missed != 0
	}'
