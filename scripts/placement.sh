#!/bin/sh
# SPDX-License-Identifier: MIT
# How dense the pools are: reserved over live bytes at the peak, hits, and calls of
# the driver after the peak, for every kind of generated log with several seeds and
# for the logs that are named. Exit status 1 where a limit is missed.
#
#   scripts/placement.sh [-b "hip hsa vmm"] BUILD_DIR [LOG...]
set -u
backings="hip vmm"
if [ "${1:-}" = -b ]; then
	backings=$2
	shift 2
fi
[ $# -ge 1 ] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cli=$1/cli/somashim
shift
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT

for kind in training serving dataframe handoff amr oneshot weightsync powers; do
	for seed in 1 2 3; do
		"$cli" generate --seed $seed -o "$dir/$kind-$seed" $kind || exit 2
	done
	"$cli" generate --seed 4 --scale 0.5 -o "$dir/$kind-half" $kind || exit 2
	"$cli" generate --seed 5 --scale 2 -o "$dir/$kind-double" $kind || exit 2
done

# One field of the object that replay prints.
field() {
	printf '%s' "$2" | tr -d ' \n' | sed "s/.*\"$1\":\([-0-9.e+]*\).*/\1/"
}

missed=0
for backing in $backings; do
	case $backing in
	vmm) mean=1.02 max=1.05 ;;
	*) mean=1.08 max=1.20 ;;
	esac
	for log in "$@" "$dir"/*; do
		json=$("$cli" replay "$log" --backing "$backing" --json) || exit 2
		echo "$(basename "$log" | sed 's/\.csv.*//') $(field ratio "$json")" \
			"$(field hit_rate "$json")" \
			"$(field driver_calls_per_100_after_peak "$json")" \
			"$(field used_peak "$json")"
	done | awk -v backing="$backing" -v mean=$mean -v max=$max '
		BEGIN {
			printf "%-4s %-28s %8s %8s %10s\n", backing, "log", "ratio", "hits",
			       "calls/100"
		}
		{
			# Below 64 MiB the granularity says more than the policy.
			note = ""
			if ($5 >= 64 * 1048576) {
				if ($2 > max) note = note " ratio"
				if ($3 < 0.9) note = note " hits"
				if ($4 > 5) note = note " calls"
				sum += log($2); n++
				if ($2 > top) top = $2
				if (note != "") bad++
			}
			printf "     %-28s %8.4f %8.4f %10.2f%s\n", $1, $2, $3, $4,
			       note == "" ? "" : "  over:" note
		}
		END {
			geo = n ? exp(sum / n) : 0
			printf "     geometric mean %.4f (limit %.2f), maximum %.4f (limit %.2f)\n",
			       geo, mean, top, max
			exit bad > 0 || geo > mean
		}' || missed=1
done
exit $missed
