#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# How tightly the pools place: reserved peak over used peak of every kind of log
# and of the real traces, on each backing, with the limits of the project. Exits
# non-zero if a limit is missed, a block overlaps, or a replay fails.
#   scripts/placement.sh [BACKING ...]     SOMASHIM=path of the command
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
somashim=${SOMASHIM:-build/cli/somashim}
[ -x "$somashim" ] || { echo "placement.sh: $somashim is not built" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for kind in training serving dataframe handoff amr oneshot weightsync powers; do
	for seed in 1 2 3; do
		"$somashim" generate --seed $seed -o "$tmp/$kind-$seed.csv" $kind || exit 2
	done
	"$somashim" generate --seed 4 --scale 0.5 -o "$tmp/$kind-half.csv" $kind || exit 2
	"$somashim" generate --seed 5 --scale 2 -o "$tmp/$kind-double.csv" $kind || exit 2
done
logs=("$tmp"/*.csv)
[ ! -d ../shared/traces ] || logs+=(../shared/traces/*.csv.xz)

for backing in "${@:-hip hsa vmm}"; do
	for b in $backing; do
		for log in "${logs[@]}"; do
			json=$("$somashim" replay --backing "$b" --json "$log" 2>"$tmp/err") ||
				json="{\"error\": \"$(tr -d '"\n' <"$tmp/err")\"}"
			printf '%s %s %s\n' "$b" "$(basename "$log" | sed 's/\.csv.*//')" "$json"
		done
	done
done | awk '
	# limits: geometric mean, maximum, hit rate, driver calls per 100 after the peak
	BEGIN {
		mean["vmm"] = 1.02; most["vmm"] = 1.05
		mean["hip"] = mean["hsa"] = 1.08; most["hip"] = most["hsa"] = 1.20
		printf "%-5s %-28s %8s %8s %9s %8s\n", "", "log", "ratio", "hits", "calls/100", "host KiB"
	}
	function value(key) {
		if (!match($0, "\"" key "\": [0-9.]+")) return -1
		return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
	}
	function report(b) {
		if (!n) return
		g = exp(sum / n)
		verdict = g <= mean[b] && max <= most[b] ? "" : "  MISSED"
		if (verdict != "") missed++
		printf "%-5s %-28s %8.4f  (limit %.2f), maximum %.4f (limit %.2f)%s\n\n", b,
			"geometric mean", g, mean[b], max, most[b], verdict
	}
	$1 != last { report(last); last = $1; n = sum = max = 0 }
	{
		r = value("ratio")
		if (r <= 0) {
			printf "%-5s %-28s failed: %s\n", $1, $2, substr($0, index($0, "{"))
			missed++
			next
		}
		hits = value("hit_rate"); calls = value("driver_calls_per_100_after_peak")
		note = (r > most[$1] ? " ratio" : "") (hits < 0.9 ? " hits" : "") \
			(calls > 5 ? " calls" : "")
		if (hits < 0.9 || calls > 5) missed++
		printf "%-5s %-28s %8.4f %8.4f %9.2f %8.0f%s\n", $1, $2, r, hits, calls,
			value("host_bytes") / 1024, note != "" ? "  <-" note : ""
		n++; sum += log(r); if (r > max) max = r
	}
	END { report(last); exit missed != 0 }
'
