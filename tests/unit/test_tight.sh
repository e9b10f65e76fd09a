#!/bin/sh
# SPDX-License-Identifier: MIT
# How a pool is kept once its demand is known may cost a little memory and few calls of
# the driver, and growing few misses. test_tight.sh SOMASHIM
set -eu
somashim=$1
here=$(dirname "$0")
log=$(mktemp "${TMPDIR:-/tmp}/somashim-tight.XXXXXX")
trap 'rm -f "$log"' EXIT

# generate KIND SEED OPTIONS...
generate() {
	kind=$1 first=$2
	shift 2
	awk -v seed="$first" "$@" -f "$here/log.awk" -f "$here/$kind.awk" >"$log"
}

# replay BACKING WHAT KEY OPERATOR LIMIT ...; on a device of $vram that is behind by $lag calls
vram=64G lag=0
replay() {
	backing=$1 what=$2
	shift 2
	json=$("$somashim" replay --backing "$backing" --vram $vram --lag $lag --json "$log")
	while [ $# != 0 ]; do
		echo "$json" | awk -v key="\"$1\": " -v less="$2" -v limit="$3" -v what="$what, $backing" '{
			at = index($0, key)
			v = at ? substr($0, at + length(key)) + 0 : "none"
			printf "%s: %s%s (%s %s)\n", what, key, v, less, limit
			exit v == "none" || (less == "<=" ? v > limit : v < limit) }' || exit 1
		shift 3
	done
}

# Exactly periodic: known soon, and kept fast only where that is cheap.
for seed in 11 34 39; do
	generate loop $((seed * 7919)) -v sizes=20 -v steps=100 -v rounds=90
	replay vmm "loop $seed" ratio "<=" 1.15 driver_calls_per_100_after_peak "<=" 5
done

# Random lifetimes: a demand that only comes near its peak is nobody's to be kept fast.
for seed in 2 45; do
	"$somashim" generate --seed $seed -o "$log" powers
	replay hip "powers $seed" ratio "<=" 1.12
done

for seed in 2 6; do
	generate lives $((seed * 7919)) -v live=100 -v allocations=200000
	replay hip "lives $seed" ratio "<=" 1.12
done
# Nor after a long time, as a level demand would be.
generate lives $((3 * 7919)) -v live=150 -v allocations=200000
replay hip "lives 3" ratio "<=" 1.05

# Nothing is freed while it grows: it grows ahead.
generate steps 7 -v blocks=200 -v steps=7
for backing in hip vmm; do
	replay $backing steps hit_rate ">=" 0.9 ratio "<=" 1.05
done

# Large blocks come back to segments of their own, although a small one is there still when they
# do (1.21 if it lies in one of them).
for large in 128 256; do
	generate homes 1 -v rounds=40 -v large=$((large << 20))
	replay hip "homes $large" ratio "<=" 1.05 driver_calls_per_100_after_peak "<=" 5
done

# Buffers that go in turn lie where the pool is expected to lack least, or on virtual memory one
# behind the other. How much that takes above the peak, and how many calls after it, is chance in a
# single log, so the mean of ten counts. BACKING LIMIT CALLS OPTIONS...
in_turn() {
	backing=$1 limit=$2 most=$3
	shift 3
	for seed in 1 2 3 4 5 6 7 8 9 10; do
		generate turns $((seed * 7919)) -v allocations=4000 "$@"
		"$somashim" replay --backing $backing --vram $vram --json "$log"
	done | awk -v what="in turn $*, $backing" -v limit="$limit" -v most="$most" '
		function value(key) {
			key = "\"" key "\": "
			return index($0, key) ? substr($0, index($0, key) + length(key)) + 0 : 0
		}
		value("ratio") >= 1 {
			sum += log(value("ratio"))
			calls += value("driver_calls_per_100_after_peak")
			n++
			few += value("hit_rate") < 0.9
		}
		END {
			mean = n ? exp(sum / n) : 0
			calls = n ? calls / n : 0
			printf "%s: ratio %.3f (<= %s), calls %.1f (<= %s), %d with few hits (0)\n",
				what, mean, limit, calls, most, few
			exit n != 10 || mean > limit || calls > most || few
		}' || exit 1
}
in_turn hip 1.16 10 -v live=8           # 1.27 by best fit
in_turn hip 1.17 10 -v live=16          # 1.23
in_turn hip 1.17 10 -v live=40          # 1.25
in_turn hip 1.13 10 -v live=8 -v kept=20 # 1.15; 1.18 if a segment that one of those is in counts as soon free
in_turn hip 1.19 10 -v live=8 -v late=20 # 1.24
in_turn hip 1.13 10 -v live=8 -v keeps=100 # 1.16, or if those wait for their turn
# (4.2 calls by best fit; 4.0 if the cheapest run is filled, 3.7 if that in turn always is, or from
# where most is free, 3.6 if no run may go on over a hole.)
in_turn vmm 1.04 3.2 -v live=8
# (7.6; 7.0 if the blocks lie elsewhere, 7.4 if no run goes on over a hole, 6.5 if holes are filled
# from the right as well.)
in_turn vmm 1.04 5.6 -v live=16
# Meshes that are regridded drop a level at once: that is not in turn (1.077 if it is).
"$somashim" generate --seed 801 --scale 0.17 -o "$log" amr
replay hip "amr 801" ratio "<=" 1.05
# Where the device lags it is not known when what others freed is back (6.0 if that is believed).
"$somashim" generate --seed 101 -o "$log" handoff
lag=4
replay hip "handoff 101, behind" ratio "<=" 3.5
lag=0

# Many of the blocks stay: it grows ahead by as much as the slack allows (0.72, 0.60 and 0.52 if by
# no more than others), also in holes within the pool (0.75, 0.62 and 0.75 if only at its end).
for row in "1 3 0.76" "9 2 0.63" "20 3 0.77"; do
	set -- $row
	generate layers $(($1 * 7919)) -v layers=30 -v share=$2 -v unit=3000000
	replay vmm "layers $1, one of $2 stays" hit_rate ">=" $3 ratio "<=" 1.05
done

# Layers of which each keeps some blocks among others that it frees: smaller chunks move what lies
# between (1.10 to 1.13 without), and what stays lies apart (1.07 to 1.10 with the rest).
for seed in 4 10 11 21; do
	generate layers $((seed * 7919)) -v layers=$((8 + seed % 9)) -v unit=$((400000 + seed * 50000))
	replay vmm "layers $seed" ratio "<=" 1.055
done
# While it is small it grows by more than is missing (0.76 and 0.81 without).
generate layers $((1 * 7919)) -v layers=9 -v unit=450000
replay vmm "layers 1" hit_rate ">=" 0.8
generate layers $((9 * 7919)) -v layers=8 -v unit=850000
replay vmm "layers 9" hit_rate ">=" 0.84

# A tight fit costs no more hits than it may in a short log either (0.87 and 0.88 if it does).
for seed in 3 4; do
	generate layers $((seed * 7919)) -v layers=$((8 + seed % 9)) -v unit=$((400000 + seed * 50000))
	replay hip "layers $seed" hit_rate ">=" 0.9
done

# Small chunks that move together come back as large ones (2.6 calls if they stay small).
"$somashim" generate --seed 5 --scale 2 -o "$log" handoff
replay vmm "handoff 5" ratio "<=" 1.06 driver_calls_per_100_after_peak "<=" 1.5

# Chunks move to where the fewest new ones are needed beside them, rather than the fewest at all
# (1.10).
"$somashim" generate --seed 389 -o "$log" handoff
replay vmm "handoff 389" ratio "<=" 1.05
"$somashim" generate --seed 60407 --scale 0.38 -o "$log" handoff
replay vmm "handoff 60407" ratio "<=" 1.08

# A run may also end with what is free behind a hole (6.5 calls if it has to begin before it).
"$somashim" generate --seed 2 -o "$log" serving
replay vmm "serving 2" ratio "<=" 1.05 driver_calls_per_100_after_peak "<=" 5

# Layers that are all alike: what is live when their large blocks come is known by what was asked
# for before it, and lies together (1.22 to 1.33 without); also when the demand has long been known
# (up to 1.26 with 17 to 29 calls, if the stream is then kept fast).
for seed in 2 5 10; do
	generate recur $((seed * 7919)) -v layers=120 -v steps=40 -v unit=3000000
	replay vmm "recur $seed" ratio "<=" 1.05 driver_calls_per_100_after_peak "<=" 5
done
generate recur $((10 * 7919)) -v layers=300 -v steps=40 -v unit=3000000
replay vmm "recur 10, long" ratio "<=" 1.05 driver_calls_per_100_after_peak "<=" 2

# What only seems to stay takes the room of others in the end (1.27 if it never did), and at
# once where there is no other memory: nothing fails on a device that is almost full.
generate mistaken 7 -v more=40
replay vmm mistaken ratio "<=" 1.13
vram=104M
replay vmm "mistaken, full" failed "<=" 0
