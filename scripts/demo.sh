#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The main job, side by side: a plain HIP program replays an allocation log without and with the preload,
# as hipMalloc/hipFree and as hipMallocAsync/hipFreeAsync. It checks the contents of every block.
#   scripts/demo.sh [LOG ...]
# A log is an RMM CSV or a PyTorch memory snapshot, packed by xz, gzip, zstd or not.
# Uses the AMD GPU of this machine if it works, else the software device, with its usual random delays, so that
# it is behind its host; with what calls cost on a real one: 14 us per hipMalloc, 20 us and the wait for the
# device per hipFree (spack#27535); and with the runtime's own pool, which reuses whole blocks. Ends with three sentences on the sums, and with an
# error if a byte was wrong.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
for log in "$@"; do
	[ -r "$log" ] || wrong_call "$log cannot be read"
done
logs=()
for log in "$@"; do logs+=("$(realpath "$log")"); done
cd "$(dirname "$0")/.."
. scripts/packages.sh

install_packages
build=${BUILD:-build}
[ -f "$build/build.ninja" ] || meson setup "$build" >/dev/null
parts=(shim/libsomashim.so cli/somashim sim/libamdhip64.so.{5,6,7} tests/apps/{replay_hip,alloc_loop,libobserve.so})
[ -e "$build/${parts[0]}" ] || echo "building what the demo needs: a minute or two on two idle cores"
ninja -C "$build" "${parts[@]}" >/dev/null || ninja -C "$build" "${parts[@]}"
root=$(realpath "$build")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# The loader splits LD_PRELOAD at spaces and colons.
case $root in *[[:space:]:]*)
	ln -s "$root" "$tmp/build"
	root=$tmp/build
	;;
esac
case $root in *[[:space:]:]*)
	echo "demo.sh: TMPDIR has a space or a colon too, at which LD_PRELOAD is split: $root" >&2
	exit 2
	;;
esac
app=$root/tests/apps/replay_hip

if [ ${#logs[@]} = 0 ]; then
	for kind in training:2 serving:50 dataframe:1; do
		"$root/cli/somashim" generate --rounds "${kind#*:}" -o "$tmp/${kind%:*}.csv" \
			"${kind%:*}"
		logs+=("$tmp/${kind%:*}.csv")
	done
fi

if [ -e /dev/kfd ] && timeout 60 "$root/tests/apps/alloc_loop" 1 >/dev/null 2>&1; then
	echo "device: the AMD GPU of this machine"
	library_path=${LD_LIBRARY_PATH:-}
else
	echo "device: the software device (no AMD GPU that works was found)"
	library_path=$root/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export SOMASIM_COST=${SOMASIM_COST:-hipMalloc:14,hipExtMallocWithFlags:14,hipFree:20}
	echo "costs of calls in microseconds: $SOMASIM_COST"
fi

# get KEY FILE: the value of KEY=value, or "-".
get() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" "$2" 2>/dev/null | grep . | tail -1 || echo -; }

mib() { if [ "$1" = - ]; then echo -; else awk -v n="$1" 'BEGIN { printf "%.1f", n / 1048576 }'; fi; }

status=0
# Sums for the last lines: KEY is the mode and "with" or "without".
declare -A calls=() seconds=() taken=()
add() { awk -v a="${1:-0}" -v b="$2" 'BEGIN { printf "%.10g", a + (b == "-" ? 0 : b) }'; }

# one LABEL PRELOAD OPTIONS... LOG
one() {
	local label=$1 preload=$2 reserved
	shift 2
	rm -f "$tmp"/out "$tmp"/observe "$tmp"/stats
	if ! env LD_LIBRARY_PATH="$library_path" SOMASIM_SEED="${SOMASIM_SEED:-1}" \
		OBSERVE_OUT="$tmp/observe" SOMASHIM_STATS=1 SOMASHIM_LOG="$tmp/stats" \
		LD_PRELOAD="$preload$root/tests/apps/libobserve.so" \
		"$app" "$@" >"$tmp/out" 2>"$tmp/err" ||
		{ [ -n "$preload" ] && ! grep -q 'allocations [1-9]' "$tmp/stats"; }; then
		# The real runtime may fail on its own; somashim may not.
		printf '%-26s did not pass: %s\n' "$label" "$(grep . "$tmp/err" | tail -1)"
		[ -z "$preload" ] || status=1
		grep -q mode= "$tmp/out" || return 0
	fi
	# What was taken from the device: by the shim's own table, by the pool's
	# attribute, or, for plain hipMalloc, by the device's free figure.
	reserved=$(sed -n 's/.*reserved [0-9.]* MiB (high \([0-9.]*\)).*/\1/p' "$tmp/stats" \
		2>/dev/null | awk '{ n += $1 } END { if (NR) printf "%.1f", n }' || true)
	[ -n "$reserved" ] || reserved=$(mib "$(get reserved_high "$tmp/out")")
	[ "$reserved" != - ] || reserved=$(mib "$(get device_high "$tmp/out")")
	[ "$(get corrupt "$tmp/out")" = 0 ] || status=1
	local key="$1 ${preload:+with}"
	calls[$key]=$(add "${calls[$key]:-0}" "$(get memory_calls "$tmp/observe")")
	seconds[$key]=$(add "${seconds[$key]:-0}" "$(get seconds "$tmp/out")")
	taken[$key]=$(add "${taken[$key]:-0}" "$reserved")
	printf '%-26s %9s %8s %8s %9s %9s %7s %10s %10s %9s\n' "$label" \
		"$(get allocations "$tmp/out")" "$(get verified "$tmp/out")" \
		"$(get corrupt "$tmp/out")" "$(get runtime_calls "$tmp/observe")" \
		"$(get memory_calls "$tmp/observe")" "$(get behind "$tmp/observe")" \
		"$(mib "$(get peak_requested "$tmp/out")")" "$reserved" \
		"$(get seconds "$tmp/out")"
}

modes=("--classic" "--async")
[ $# = 0 ] || modes+=("--async --streams 4")
for log in "${logs[@]}"; do
	printf '\n%s\n' "$(basename "$log")"
	printf '%-26s %9s %8s %8s %9s %9s %7s %10s %10s %9s\n' "" allocs verified corrupt \
		calls "of memory" behind "peak MiB" "taken MiB" seconds
	for mode in "${modes[@]}"; do
		# shellcheck disable=SC2086
		one "${mode#--}" "" $mode "$log"
		# shellcheck disable=SC2086
		one "  with somashim" "$root/shim/libsomashim.so:" $mode "$log"
	done
done
cat <<END

calls: into the runtime, all of them and those that get or return memory. behind: by how many commands a
stream was behind the host, in the mean: the program enqueues as fast as it can, but for where hipFree waits.
The seconds include writing and checking every block.

hipMalloc and hipFree: ${calls[--classic ]} calls that get or return memory became ${calls[--classic with]}, because freed blocks are
  handed out again without asking the device.
hipMallocAsync: ${taken[--async ]} MiB taken from the device became ${taken[--async with]} MiB, because blocks are split and
  merged, where the runtime's own pool reuses whole blocks only.
END
if [ $status = 0 ]; then
	echo "Every block held what was written to it."
else
	echo "Something was wrong; see the table."
fi
exit $status
