#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures placement: reserved peak over used peak, with goals and limits for the geometric mean and the
# 95th percentile. A missed goal is printed; only a missed limit fails. The logs are generated, of all
# kinds and scales, and drawn anew each time, so that nothing can be tuned to a seed. Recordings in
# ../shared/traces are used, too. With --rounds each generated log is replayed so many times in one
# process, as a program in a loop.
#   scripts/placement.sh [--seed N] [--logs N] [--rounds N] [BACKING ...]     SOMASHIM=path of the command
# Exits 1 if a limit is missed, a block overlaps or a replay fails, 2 if it cannot begin.
set -uo pipefail
seed='' count=64 rounds=1
while [ $# != 0 ]; do
	case $1 in
	--seed) seed=$2; shift 2 ;;
	--logs) count=$2; shift 2 ;;
	--rounds) rounds=$2; shift 2 ;;
	-*) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
	*) break ;;
	esac
done
[ $# != 0 ] || set -- hip hsa vmm
for backing in "$@"; do
	case $backing in
	hip | hsa | vmm) ;;
	*) echo "placement.sh: there is no backing $backing" >&2; exit 2 ;;
	esac
done
cd "$(dirname "$0")/.." || exit 2
. scripts/draw.sh
somashim=${SOMASHIM:-build/cli/somashim}
[ -x "$somashim" ] || { echo "placement.sh: $somashim is not built" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

seed=${seed:-$(fresh_seed)}
echo "seed $seed: placement.sh --logs $count --seed $seed draws the same logs"
draw_logs "$somashim" "$tmp" "$count" "$seed" || exit 2
logs=("$tmp"/*.csv)
if [ "$rounds" -gt 1 ]; then
	for log in "${logs[@]}"; do
		tail -n +2 "$log" >"$tmp/round"
		for ((i = 1; i < rounds; i++)); do cat "$tmp/round"; done >>"$log"
	done
else # A recording may end with live blocks.
	for log in ../shared/traces/*.csv.xz; do [ ! -f "$log" ] || logs+=("$log"); done
fi

# replay BACKING LOG: one line, "BACKING LOG JSON".
replay() {
	local json err
	err=$(mktemp "$tmp/err.XXXXXX")
	json=$("$somashim" replay --backing "$1" --json "$2" 2>"$err") ||
		json="{\"error\": \"$(tr -d '"\n' <"$err")\"}"
	printf '%s %s %s\n' "$1" "$(basename "$2" | sed 's/\.csv.*//')" "$json"
}
export -f replay
export somashim tmp

for backing in "$@"; do
	printf "$backing %s\n" "${logs[@]}"
done | xargs -P "$(nproc)" -L 1 bash -c 'replay "$1" "$2"' - |
	awk '{
		ratio = match($0, /"ratio": [0-9.]+/) ? substr($0, RSTART + 9, RLENGTH - 9) : 0
		print $1, ratio, $0
	}' | sort -k1,1 -k2,2n | cut -d ' ' -f 3- | awk '
	# The lines of a backing come in the order of their ratios.
	BEGIN {
		mean["vmm"] = 1.03; p95["vmm"] = 1.08; worse["vmm"] = 1.03
		mean["hip"] = mean["hsa"] = 1.09; p95["hip"] = p95["hsa"] = 1.30
		worse["hip"] = worse["hsa"] = 1.12
		printf "%-5s %-32s %8s %8s %9s %8s\n", "", "log", "ratio", "hits", "calls/100", "host KiB"
	}
	function value(key) {
		if (!match($0, "\"" key "\": [0-9.]+")) return -1
		return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
	}
	# `slack`: the limit is so many times the goal.
	function limit(b, what, v, least, most, slack) {
		missed += bad = v < least / slack || v > most * slack
		printf "%-5s %-32s %8.4f  goal %s%s\n", b, what, v,
			least ? "at least " least : most == 99 ? "none" : "at most " most,
			(bad ? "  LIMIT MISSED" : (v < least || v > most) ? "  missed" : "")
	}
	function report(b) {
		if (!n) return
		i = int(n * 0.95 + 0.999999) # nearest rank
		limit(b, "ratio, geometric mean", exp(sum / n), 0, mean[b], worse[b])
		# Of a few logs it is the worst one, which chance decides.
		limit(b, "ratio, 95th percentile", ratio[i], 0, n < 20 ? 99 : p95[b], worse[b])
		limit(b, "hits, mean", hits / n, 0.9, 1, 1.02)
		limit(b, "driver calls per 100, mean", calls / n, 0, 5, 3)
		print ""
	}
	$1 != last { report(last); last = $1; n = sum = hits = calls = 0 }
	{
		r = value("ratio")
		if (r <= 0) {
			printf "%-5s %-32s failed: %s\n", $1, $2, substr($0, index($0, "{"))
			failed++
			next
		}
		ratio[++n] = r; sum += log(r); all++
		hits += value("hit_rate"); calls += value("driver_calls_per_100_after_peak")
		printf "%-5s %-32s %8.4f %8.4f %9.2f %8.0f\n", $1, $2, r, value("hit_rate"),
			value("driver_calls_per_100_after_peak"), value("host_bytes") / 1024
	}
	END {
		report(last)
		printf "%d limits missed, %d failed\n", missed, failed
		exit missed || failed || !all
	}
'
